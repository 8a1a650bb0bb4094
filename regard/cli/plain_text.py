"""`regard translate` without options: text to text on a fast engine, without importing torch."""

import json
from collections.abc import Sequence
from pathlib import Path

from regard.cli.line_input import chunks, progress
from regard.cli.partial_output import writing
from regard.cli.words import Given
from regard.engines.choice import open_engine, open_plain_text


def translate_plain_text(
    engine: str,
    run: Path,
    files: Sequence[Given],
    overrides: Sequence[str],
    output: Path | None,
    beam: int | None,
    length_penalty: float | None,
    *,
    split: bool | None,
) -> bool:
    """Translate files and texts, or standard input, if the engine supports plain text; return whether it does.

    Lines that are too long for the model take the ordinary path, which splits them.
    """
    plain = open_plain_text(engine, run, overrides)
    if plain is None:
        return False
    call = ["plain", str(run), *map(str, files), *overrides, engine, beam, length_penalty, split]
    with writing(output, json.dumps(call), 1) as (stream, done), progress(files) as advance:
        advance(done)
        for chunk in chunks(files, done, plain.facts.texts):
            texts = [line for _, line in chunk]
            outputs = plain.translate(texts, beam, length_penalty)
            if outputs is None:
                outputs = _translate_fully(engine, run, overrides, texts, beam, length_penalty, split=split)
            stream.writelines(" ".join(output.splitlines()).replace("\t", " ") + "\n" for output in outputs)
            stream.flush()
            advance(len(chunk))
    return True


def _translate_fully(
    engine: str,
    run: Path,
    overrides: Sequence[str],
    texts: list[str],
    beam: int | None,
    length_penalty: float | None,
    *,
    split: bool | None,
) -> list[str]:
    from regard.search import Search

    search = Search(beam=beam, length_penalty=length_penalty, split=split)
    return open_engine(engine, [run], overrides).translate(texts, search)
