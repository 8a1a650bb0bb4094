"""Greedy search, and the token-by-token generation that sampling shares with it.

Axes: B batch, S source positions, V vocabulary.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.search.best import best
from regard.search.hypothesis import Ended, Hypothesis, scored
from regard.search.rules import NOTHING, Rule, Stuck, apply_rules, may_end, update_attention
from regard.search.steps import S, Source, StepModel, mask_special_tokens
from regard.text.loops import PATIENCE, loop_start
from regard.text.specials import BOS, EOS

Choose = Callable[[Tensor, list[int], int], Tensor]
"""(log-probabilities B×V, the rows they belong to, the number of tokens before) → one token per row: B."""


def greedy(
    steps: StepModel[S],
    source: Source | Tensor,
    limits: list[int],
    *,
    length_penalty: float = 1.0,
    rules: Sequence[Rule] | None = None,
    patience: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """Return one hypothesis per source (or row of tokens B×S) of at most `limits[row]` tokens, by greedy search."""
    return generate(
        steps,
        source,
        limits,
        lambda scores, rows, time: best(scores, 1)[1][:, 0],
        length_penalty=length_penalty,
        rules=rules,
        patience=patience,
    )


@torch.inference_mode()
def generate(
    steps: StepModel[S],
    source: Source | Tensor,
    limits: list[int],
    choose: Choose,
    *,
    repeat: int = 1,
    length_penalty: float = 1.0,
    rules: Sequence[Rule] | None = None,
    patience: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """Generate `repeat` hypotheses per source row, each token chosen by `choose`; finished rows leave the batch.

    `limits`, `rules` and `patience` (for loops, see `regard.text.loops`) have one entry per row, B·repeat in all.
    """
    source = Source.of(source)
    rows = list(range(len(source) * repeat))
    state = steps.start(source)
    if repeat > 1:
        state = state.select(torch.arange(len(source), device=source.device).repeat_interleave(repeat))
    tokens: list[list[int]] = [[] for _ in rows]
    log_probs: list[list[float]] = [[] for _ in rows]
    places = {row: rule.start for row, rule in enumerate(rules or ())}
    found: dict[int, Hypothesis] = {}
    last = torch.full((len(rows),), BOS, device=source.device)
    time = 0
    while rows:
        scores, state = steps.step(last, state)
        scores = mask_special_tokens(scores)
        if rules:
            own, left = [rules[row] for row in rows], [limits[row] - time for row in rows]
            looked = update_attention(own, [places[row] for row in rows], getattr(state, "attention", None))
            places = dict(zip(rows, looked, strict=True))
            scores = apply_rules(scores, own, looked, left)
        last = choose(scores, rows, time)
        log_probs_chosen = scores.gather(1, last[:, None])[:, 0].tolist()
        time += 1
        keep = []
        for place, (row, token, log_prob) in enumerate(zip(rows, last.tolist(), log_probs_chosen, strict=True)):
            if log_prob == NOTHING:
                raise Stuck(row // repeat)
            log_probs[row].append(log_prob)
            ended: Ended | None = "end" if token == EOS else None
            if token != EOS:
                tokens[row].append(token)
                if rules:
                    places[row] = rules[row].after(places[row], token)
                cut = loop_start(tokens[row], patience[row] if patience else PATIENCE)
                if cut is not None and (not rules or may_end(rules[row], tokens[row][:cut], scores.shape[1])):
                    ended = "repetition"
                    del tokens[row][cut:], log_probs[row][cut:]
                elif time >= limits[row]:
                    ended = "length"
            if ended:
                found[row] = scored(tuple(tokens[row]), tuple(log_probs[row]), length_penalty, ended)
            else:
                keep.append(place)
        if 0 < len(keep) < len(rows):
            kept = torch.tensor(keep, dtype=torch.long, device=last.device)
            last, state = last[kept], state.select(kept)
        rows = [rows[place] for place in keep]
    return [found[row] for row in sorted(found)]
