"""`regard transcribe`: transcripts of recorded speech."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.foundation.display import escape_cell, note
from regard.foundation.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.data.sounds import KeepSound
    from regard.search import Hypothesis

CHUNK = 32
"""Sounds per batch of output."""

EXAMPLES = """
\b
Examples:
  regard transcribe runs/digits speech.wav
  regard transcribe runs/digits *.flac --format tsv
  regard transcribe runs/digits recordings.zip/7_anna_3.wav --format jsonl
  regard transcribe runs/digits speech.wav --beam 5 --n-best 3
  regard transcribe runs/digits recordings --format tsv          all sounds of a folder
  ffmpeg -i film.mp4 -f wav - | regard transcribe runs/digits -
"""


def transcribe(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run that recognises speech.", metavar="RUN")],
    sounds: Annotated[
        list[str],
        typer.Argument(
            help="Sounds: WAV, FLAC or OGG files, paths into zip files, folders and zip files (all their sounds), or "
            "- (standard input).",
            metavar="SOUND...",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="text (a line per sound), tsv (sound, rank, score, transcript) or jsonl.",
            metavar="FORMAT",
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    n_best: Annotated[
        int, typer.Option("--n-best", min=1, help="Number of different transcripts per sound, best first.")
    ] = 1,
) -> None:
    """Transcribe recorded speech.

    Every sound file gives one line. A file that cannot be read is reported on standard error, and the others are
    transcribed.
    """
    if form not in (None, "text", "tsv", "jsonl"):
        raise UsageError(f"--format is text, tsv or jsonl, not `{form}`.")
    form = form or ("tsv" if n_best > 1 else "text")

    from regard.runs.run import Run

    opened = Run.open(run)
    from regard.data.sounds import check_sound, sounds_in_memory
    from regard.search import Search
    from regard.tasks.bad_inputs import answer_each
    from regard.tasks.loaded import load_run

    recogniser = load_run(opened, verb="transcribe")
    search = Search(beam=beam, count=n_best)
    failed = 0
    with sounds_in_memory() as keep:
        waiting = _collect(sounds, keep)
        while chunk := list(islice(waiting, CHUNK)):
            readable = [given for _, given in chunk if isinstance(given, str)]
            answered = answer_each(lambda names: recogniser.hypotheses(names, search), readable, check_sound)
            found = iter(answered)
            answers = [(shown, next(found) if isinstance(given, str) else given) for shown, given in chunk]
            for shown, best in answers:
                if isinstance(best, RegardError):
                    failed += 1
                    print(f"error: {best}", file=sys.stderr)
                print(_format(shown, best, form, n_best))
            sys.stdout.flush()
    for remark in recogniser.input.remarks():  # on all sounds, such as their sample rates
        note(f"note: {remark}")
    if failed:
        raise RegardError(
            f"{failed:,} {'sound' if failed == 1 else 'sounds'} could not be transcribed. See the errors above."
        )


def _collect(given: Sequence[str], keep: "KeepSound") -> Iterator[tuple[str, str | RegardError]]:
    """Yield each sound as it is shown and as it is read, or why it cannot be; pipes and standard input are read whole.

    A folder or a zip file stands for all sounds in it.
    """
    from regard.data.sounds import read_stream, sounds_inside

    for name in given:
        try:
            if (content := read_stream(name)) is not None:
                yield name, keep(content, "Standard input" if name == "-" else name)
            elif inside := sounds_inside(name):
                yield from zip(inside, inside, strict=True)
            else:
                yield name, name
        except RegardError as error:
            yield name, error


def _format(name: str, best: "list[Hypothesis] | RegardError", form: str, count: int) -> str:
    """Return the transcripts of a sound, or an empty result with the error, as text, table rows or a JSON object."""
    if form == "jsonl":
        found: list[dict[str, Any]] = [dict.fromkeys(("text", "score", "confidence", "ended"))]
        if not isinstance(best, RegardError) and best:
            found = [
                {
                    "text": hypothesis.text,
                    "score": round(hypothesis.score, 6),
                    "confidence": round(hypothesis.confidence, 6),
                    "ended": hypothesis.ended,
                }
                for hypothesis in best
            ]
        others = {"others": found[1:]} if count > 1 else {}
        reason = {"error": str(best)} if isinstance(best, RegardError) else {}
        return json.dumps({"sound": name, **found[0], **others, **reason}, ensure_ascii=False)
    name = escape_cell(name)
    if isinstance(best, RegardError) or not best:
        return "" if form == "text" else f"{name}\t\t\t"
    texts = [" ".join(hypothesis.text.split()) for hypothesis in best]
    if form == "text":
        return "\n".join(texts)
    rows = zip(best, texts, strict=True)
    return "\n".join(
        f"{name}\t{rank}\t{hypothesis.score:.4f}\t{text}" for rank, (hypothesis, text) in enumerate(rows, start=1)
    )
