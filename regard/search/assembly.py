"""Selects the hypotheses to return, and joins the outputs of pieces to those of whole texts."""

from collections.abc import Sequence
from dataclasses import replace

from regard.search.hypothesis import Hypothesis, distinct, joined, rank
from regard.search.mbr import beam_weights, expected_utilities, utility_of
from regard.search.options import Search
from regard.text.sentences import Piece


def choose(hypotheses: list[Hypothesis], search: Search) -> list[Hypothesis]:
    """Return the best hypotheses by score or minimum Bayes risk, without duplicates; or all samples as drawn."""
    if search.as_drawn:
        return hypotheses
    if search.utility is None:
        return distinct(sorted(hypotheses, key=rank) if search.samples else hypotheses)[: search.count]
    utility = utility_of(search.utility) if isinstance(search.utility, str) else search.utility
    if not search.samples:  # those that were cut off are no evidence, unless there is nothing else
        hypotheses = [hypothesis for hypothesis in hypotheses if hypothesis.ended == "end"] or hypotheses
    weights = None if search.samples else beam_weights(hypotheses)
    means = expected_utilities([hypothesis.text for hypothesis in hypotheses], utility, weights)
    by_text = {
        hypothesis.text: replace(hypothesis, score=mean) for hypothesis, mean in zip(hypotheses, means, strict=True)
    }
    return sorted(by_text.values(), key=lambda hypothesis: -hypothesis.score)[: search.count]


def assemble(row: list[Piece], found: list[list[Hypothesis]], search: Search) -> list[Hypothesis]:
    """Combine the hypotheses of a text's pieces to the best hypotheses of the text, without duplicates.

    Samples that are all returned are combined as drawn: the first samples of all pieces, then the second ones.
    """
    if len(row) == 1:
        return found[0]
    parts = [(piece, best) for piece, best in zip(row, found, strict=True) if best or piece.space]
    if not any(best for _, best in parts):
        return []
    nothing = Hypothesis((), (), 0.0, "end")
    spaces = [piece.space for piece, _ in parts]
    lists = [best or [nothing] for _, best in parts]
    if search.as_drawn:
        ways = [[best[min(number, len(best) - 1)] for best in lists] for number in range(search.count)]
        return [_joined(way, spaces, search) for way in ways]
    best_ways = [[hypothesis] for hypothesis in lists[0]]
    for best in lists[1:]:
        # An n-best list of pairs never combines the i-th of one side with the j-th of the other if i·j > n.
        pairs = [
            [*before, hypothesis]
            for i, before in enumerate(best_ways, start=1)
            for hypothesis in best[: max(search.count // i, 1 if i == 1 else 0)]
        ]
        whole = {"\0".join(hypothesis.text for hypothesis in way): way for way in reversed(pairs)}
        best_ways = sorted(whole.values(), key=lambda way: rank(_joined(way, spaces[: len(way)], search)))
        best_ways = best_ways[: search.count]
    return distinct(_joined(way, spaces, search) for way in best_ways)


def _joined(parts: Sequence[Hypothesis], spaces: Sequence[str], search: Search) -> Hypothesis:
    """Join the hypotheses of a text's pieces; with a utility, its score is the mean of theirs."""
    whole = joined(parts, spaces, search.length_penalty or 0.0)
    if search.utility is None:
        return whole
    scores = [part.score for part in parts if part.log_probs]
    return replace(whole, score=sum(scores) / max(len(scores), 1))
