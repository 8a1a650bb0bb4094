"""Spans of words that tags mark, such as names: B-PER I-PER O; scored by precision, recall and F1.

A span is right if its words and its type are (Tjong Kim Sang and De Meulder, 2003). The schemes IOB1, IOB2 (BIO) and
IOBES (BILOU) are read alike: B, S, U begin a span, E, L end it, and a change of type or an O ends it, too.
"""

import re
from collections.abc import Iterator, Sequence

from regard.metrics.scoring import Scores

_MARKED = re.compile(r"(?P<mark>[BIESLUO])(?:-(?P<type>.+))?")
BEGINS, ENDS = "BSU", "ESLU"

Span = tuple[int, int, str]
"""The first word, the word after the last, and the type."""


def marks_spans(tags: Sequence[str]) -> bool:
    """Return whether tags are those of a scheme for spans: O and types that begin with B- or another mark."""
    matches = [_MARKED.fullmatch(tag) for tag in tags]
    return (
        bool(tags)
        and all(match is not None and (match["mark"] == "O") == (match["type"] is None) for match in matches)
        and any(tag.startswith(("B-", "I-", "S-", "U-")) for tag in tags)
    )


def spans_of(tags: Sequence[str]) -> Iterator[Span]:
    """Yield the spans of a sentence."""
    start, kind = 0, ""
    closed = True
    for place, tag in enumerate([*tags, "O"]):
        match = _MARKED.fullmatch(tag)
        mark, own = (match["mark"], match["type"] or "") if match else ("O", "")
        if not closed and (mark == "O" or mark in BEGINS or own != kind):
            yield start, place, kind
            closed = True
        if mark != "O" and closed:
            start, kind, closed = place, own, False
        if mark in ENDS and not closed:
            yield start, place + 1, kind
            closed = True


def score_spans(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Scores:
    """Return the F1 of all spans, in per cent, with precision, recall and F1 of each type as details."""
    counts: dict[str, list[int]] = {}  # right, found, true
    for output, reference in zip(outputs, references, strict=True):
        found, true = set(spans_of(output)), set(spans_of(reference))
        for place, spans in enumerate((found & true, found, true)):
            for *_, kind in spans:
                counts.setdefault(kind, [0, 0, 0])[place] += 1
    whole = [sum(column) for column in zip(*counts.values(), strict=True)] or [0, 0, 0]
    kinds = sorted(counts)
    details = {
        "span_precision": {kind: _percent(counts[kind][0], counts[kind][1]) for kind in kinds},
        "span_recall": {kind: _percent(counts[kind][0], counts[kind][2]) for kind in kinds},
        "span_f1": {kind: _percent(2 * counts[kind][0], sum(counts[kind][1:])) for kind in kinds},
        "span_count": {kind: float(counts[kind][2]) for kind in kinds},
    }
    values = {"span_f1": _percent(2 * whole[0], sum(whole[1:]))}
    return Scores(values=values, details=details, sentences=len(outputs))


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
