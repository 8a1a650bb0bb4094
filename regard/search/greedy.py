"""Always the likeliest next token.

Axes: B batch, S source positions.
"""

import torch
from torch import Tensor

from regard.search.hypothesis import Ended, Hypothesis, scored
from regard.search.steps import S, StepModel, sayable
from regard.text.specials import BOS, EOS


@torch.inference_mode()
def greedy(steps: StepModel[S], source: Tensor, limits: list[int], *, length_penalty: float = 1.0) -> list[Hypothesis]:
    """One hypothesis per row of source B×S, of at most `limits[row]` tokens; finished rows leave the batch."""
    state = steps.start(source)
    rows = list(range(len(source)))
    tokens: list[list[int]] = [[] for _ in rows]
    log_probs: list[list[float]] = [[] for _ in rows]
    found: dict[int, Hypothesis] = {}
    last = source.new_full((len(source),), BOS)
    while rows:
        scores, state = steps.step(last, state)
        best, last = sayable(scores).max(dim=1)
        keep = []
        for place, (row, token, log_prob) in enumerate(zip(rows, last.tolist(), best.tolist(), strict=True)):
            log_probs[row].append(log_prob)
            if token != EOS:
                tokens[row].append(token)
            if token == EOS or len(tokens[row]) >= limits[row]:
                ended: Ended = "end" if token == EOS else "length"
                found[row] = scored(tuple(tokens[row]), tuple(log_probs[row]), length_penalty, ended)
            else:
                keep.append(place)
        if len(keep) < len(rows):
            rows = [rows[place] for place in keep]
            kept = torch.tensor(keep, dtype=torch.long, device=last.device)
            last, state = last[kept], state.select(kept)
    return [found[row] for row in range(len(source))]
