"""Which words belong together, as a model sees it: word alignment, and its error rate against people's.

Axes: S source words, T target words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.align.links import (
    COMBINING,
    Combining,
    Gold,
    Links,
    combine,
    read_gold,
    score,
)
from regard.inspection.analyses.align.reading_choice import (
    Asked,
    Chosen,
    Directed,
    agreement,
    choose,
    choose_for_run,
    diagonal,
    directed,
)
from regard.inspection.analyses.align.result import Alignments, TriedReading
from regard.inspection.analyses.align.word_weights import METHODS, READINGS, Method, Pair, Reading
from regard.tasks.loaded import LoadedRun

SAMPLE = 500
"""Pairs by which a layer is chosen where there is neither a run with validation pairs nor gold."""


def align(
    translator: LoadedRun,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    run: Path | str | None = None,
    gold: Path | str | None = None,
    skip_bad: bool = False,
    reverse: LoadedRun | None = None,
    reverse_run: Path | str | None = None,
    method: Method = "attention",
    layer: int | None = None,
    head: int | None = None,
    reading: Reading | None = None,
    combining: Combining | None = None,
    progress: Progress | None = None,
) -> Alignments:
    """Align the words of texts with those of their translations.

    Which layer and row is read is chosen on the validation pairs of the `run` (the directory of `translator`), once,
    and stored there. Without a run it is chosen on the gold links, or on the pairs given. `reverse` translates targets
    into sources; its reading is chosen likewise, by `reverse_run`. With `skip_bad`, bad links of `gold` are left out.
    """
    if not any(source.strip() for source in sources):
        raise UsageError("There is nothing to align, because the texts are empty: give texts with words.")
    _check(sources, targets, method, reading, combining)
    pairs = [Pair.of(translator, source, target) for source, target in zip(sources, targets, strict=True)]
    skipped: list[str] | None = [] if skip_bad else None
    wanted = None
    if gold is not None:
        wanted = read_gold(gold, [(len(pair.source), len(pair.target)) for pair in pairs], skipped=skipped)
        if skipped and not any(gold_links.possible for gold_links in wanted):
            raise UsageError(f"{gold} has no link that fits the sentences: all {len(skipped):,} were skipped.")
    forward = _side("run", translator, pairs, Asked(method, layer, head, reading), run, wanted, progress)
    links, tried, second = forward.rows, forward.tried, None
    combining = combining or ("none" if reverse is None else "grow-diag")
    others = forward.columns
    if reverse is not None:
        flipped = [Pair.of(reverse, target, source) for source, target in zip(sources, targets, strict=True)]
        turned = (
            None
            if wanted is None
            else [Gold(_flip(gold_links.sure), _flip(gold_links.possible)) for gold_links in wanted]
        )
        backward = _side("reverse", reverse, flipped, Asked(method), reverse_run, turned, progress)
        tried, second = [*tried, *backward.tried], backward.chosen.choice
        others = [_flip(links_of_pair) for links_of_pair in backward.rows]
    return Alignments(
        sources=[pair.source for pair in pairs],
        targets=[pair.target for pair in pairs],
        links=[combine(forward_links, other, combining) for forward_links, other in zip(links, others, strict=True)],
        method=method,
        combining=combining,
        choice=forward.chosen.choice,
        reverse=second,
        tried=tried,
        chosen=forward.chosen,
        diagonals=[diagonal(pair) for pair in pairs],
        gold=wanted,
        skipped=tuple(skipped or ()),
    )


@dataclass(frozen=True)
class _Side:
    """The links that one model gives, and how it was read."""

    chosen: Chosen
    rows: list[Links]
    columns: list[Links]
    tried: list[TriedReading]


def _side(
    name: str,
    translator: LoadedRun,
    pairs: Sequence[Pair],
    asked: Asked,
    run: Path | str | None,
    gold: list[Gold] | None,
    progress: Progress | None,
) -> _Side:
    """Choose how a model is read, and read it; with gold all other readings are measured as well."""
    chosen = choose_for_run(translator, run, asked, progress) if run is not None else None
    some = len(pairs) if gold is not None else 0 if chosen is not None else min(SAMPLE, len(pairs))
    found: Directed = directed(translator, pairs[:some], asked, None, progress) if some else {}
    tried = [
        TriedReading(name, choice, agreement(rows, across), None if gold is None else score(rows, gold))
        for choice, (rows, across) in found.items()
    ]
    if chosen is None:
        chosen = choose(pairs[:some], found, "given")
        if gold is not None:
            best = min(tried, key=lambda reading: reading.scores.error_rate if reading.scores else 1.0)
            chosen = replace(chosen, choice=best.choice, basis="gold")
        if len(found) == 1:
            chosen = replace(chosen, basis="asked")
    elif not tried:
        tried = [TriedReading(name, candidate.choice, candidate.agreement, None) for candidate in chosen.candidates]
    rows, across = found.get(chosen.choice, ([], []))
    if some < len(pairs):
        more = directed(translator, pairs[some:], asked, chosen.choice, progress)[chosen.choice]
        rows, across = rows + more[0], across + more[1]
    return _Side(chosen, rows, across, tried)


def _flip(links: Links) -> Links:
    return frozenset((target, source) for source, target in links)


def _check(
    sources: Sequence[str],
    targets: Sequence[str],
    method: str,
    reading: str | None,
    combining: str | None,
) -> None:
    if len(sources) != len(targets):
        raise UsageError(
            f"There are {len(sources):,} sources for {len(targets):,} targets: give one target for each source."
        )
    given: Mapping[str, tuple[str | None, Iterable[str]]] = {
        "method": (method, METHODS),
        "reading": (reading, READINGS),
        "way to combine": (combining, COMBINING),
    }
    for name, (value, known) in given.items():
        if value is not None and value not in known:
            raise UsageError(f'There is no {name} "{value}": use one of {", ".join(known)}.')
