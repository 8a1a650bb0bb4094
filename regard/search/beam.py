"""Beam search: the few best beginnings, extended together.

Axes: B sentences still searched, N beam, V vocabulary, S source positions.
"""

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis, scored
from regard.search.steps import S, StepModel, sayable
from regard.text.specials import BOS, EOS

NOTHING = float("-inf")


class Sentence:
    """The hypotheses of one sentence: those that live, in N slots, and those that have ended."""

    def __init__(self, limit: int, width: int, count: int, length_penalty: float) -> None:
        self.limit = limit
        self.width = width
        self.count = count
        self.length_penalty = length_penalty
        self.tokens: list[tuple[int, ...]] = [()] * width
        self.log_probs: list[tuple[float, ...]] = [()] * width
        self.ended: list[Hypothesis] = []

    def extend(self, candidates: list[tuple[float, float, int, int]]) -> list[tuple[float, int, int]]:
        """Take over the best candidates (total, log-probability, slot, token); the living are (total, slot, token).

        Candidates come best first. An ended hypothesis keeps its place in the beam, so the search narrows as
        hypotheses end, and stops when all have.
        """
        living, tokens, log_probs = [], [], []
        for total, log_prob, slot, token in candidates[: self.width - len(self.ended)]:
            if total == NOTHING:
                break
            costs = (*self.log_probs[slot], log_prob)
            if token == EOS:
                self.ended.append(scored(self.tokens[slot], costs, self.length_penalty, "end"))
            elif len(self.tokens[slot]) + 1 >= self.limit:
                said = (*self.tokens[slot], token)
                self.ended.append(scored(said, costs, self.length_penalty, "length"))
            else:
                living.append((total, slot, token))
                tokens.append((*self.tokens[slot], token))
                log_probs.append(costs)
        blank = self.width - len(living)
        self.tokens, self.log_probs = tokens + [()] * blank, log_probs + [()] * blank
        return living if self.can_improve(living) else []

    def can_improve(self, living: list[tuple[float, int, int]]) -> bool:
        """Whether a living hypothesis could still end among the `count` best.

        A total only falls, and a longer hypothesis divides it by more: total / (limit + 1)^penalty is the most that
        any continuation can score. Nothing is given up that could win.
        """
        if not living or len(self.ended) >= self.width:
            return False
        if len(self.ended) < self.count:
            return True
        most = living[0][0] / float(self.limit + 1) ** self.length_penalty
        worst = self.best()[-1].score
        return bool(most > worst)

    def best(self) -> list[Hypothesis]:
        """The `count` best ended hypotheses, those that ended by themselves before those cut short."""
        return sorted(self.ended, key=lambda one: (one.ended != "end", -one.score))[: self.count]


@torch.inference_mode()
def beam(
    steps: StepModel[S],
    source: Tensor,
    limits: list[int],
    *,
    width: int,
    length_penalty: float = 1.0,
    count: int = 1,
) -> list[list[Hypothesis]]:
    """The `count` best hypotheses found per row of source B×S, best first, of at most `limits[row]` tokens.

    `width` hypotheses are followed per sentence; sentences that are done leave the batch.
    """
    sentences = [Sentence(limit, width, count, length_penalty) for limit in limits]
    active = list(range(len(source)))
    rows = torch.arange(len(source), device=source.device)
    state = steps.start(source).select(rows.repeat_interleave(width))  # B·N rows
    totals = torch.full((len(source), width), NOTHING, device=source.device)
    totals[:, 0] = 0.0  # all beams begin alike: let only the first one count
    last = source.new_full((len(source) * width,), BOS)
    while active:
        scores, state = steps.step(last, state)
        vocabulary = scores.shape[1]
        scores = sayable(scores).view(-1, width, vocabulary)  # B×N×V
        reached = (totals[:, :, None] + scores).flatten(1)  # B×NV
        best, places = reached.topk(min(width, reached.shape[1]), dim=1)  # B×N
        each = scores.flatten(1).gather(1, places)
        slots, words = places // vocabulary, places % vocabulary
        chosen = zip(best.tolist(), each.tolist(), slots.tolist(), words.tolist(), strict=True)
        alive = [
            (place, living)
            for place, found in enumerate(chosen)
            if (living := sentences[active[place]].extend(list(zip(*found, strict=True))))
        ]
        active = [active[place] for place, _ in alive]
        if active:
            rows_kept, last, totals = _lay_out(alive, width, last, totals)
            state = state.select(rows_kept)
    return [sentence.best() for sentence in sentences]


def _lay_out(
    alive: list[tuple[int, list[tuple[float, int, int]]]], width: int, last: Tensor, totals: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows to keep B·N, their tokens B·N and totals B×N, with empty slots filled up by rows that count for nothing."""
    rows, tokens, sums = [], [], []
    for place, living in alive:
        spare = [(NOTHING, 0, EOS)] * (width - len(living))
        for total, slot, token in living + spare:
            rows.append(place * width + slot)
            tokens.append(token)
            sums.append(total)
    return (
        torch.tensor(rows, device=last.device),
        torch.tensor(tokens, device=last.device),
        torch.tensor(sums, device=last.device, dtype=totals.dtype).view(-1, width),
    )
