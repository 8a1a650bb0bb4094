"""Choose three different suggestions from ranked responses (section 5 of Kannan et al., 2016)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from regard.reply.responses import Response

SHOWN = 3
"""Number of suggestions."""


@dataclass(frozen=True)
class Scored:
    """A response with its scores for one message."""

    response: Response
    score: float
    """log P(response | message) − α log P(response), plus what feedback adds."""
    log_prob: float
    """log P(response | message), the mean of the scorer's experts."""
    prior: float
    """log P(response)."""


def choose_suggestions(
    ranked: Sequence[Scored], find_more: Callable[[str], Iterable[Scored]], *, diverse: bool = True
) -> list[Scored]:
    """Return up to three suggestions, best first.

    One suggestion per intent. If the first two are positive and none is negative, the third is the best negative
    response of a second search, and conversely.

    Args:
        ranked: Responses, best first.
        find_more: Returns responses of a polarity, best first: the second search.
        diverse: Whether to choose different intents and polarities; otherwise simply the best three.
    """
    if not diverse:
        return list(ranked[:SHOWN])
    chosen = _one_per_intent(ranked, ())[:SHOWN]
    if len(chosen) < 2:
        return chosen
    polarities = [scored.response.polarity for scored in chosen]
    for polarity, opposite in (("positive", "negative"), ("negative", "positive")):
        if polarities[:2] == [polarity, polarity] and opposite not in polarities:
            other = _one_per_intent(find_more(opposite), chosen[:2])
            if other:
                return [*chosen[:2], other[0]]
    return chosen


def _one_per_intent(ranked: Iterable[Scored], chosen: Sequence[Scored]) -> list[Scored]:
    """Return the best response of each intent, without the intents that are chosen already."""
    seen = {scored.response.intent for scored in chosen}
    found = []
    for scored in ranked:
        if scored.response.intent not in seen:
            seen.add(scored.response.intent)
            found.append(scored)
    return found
