"""Beam search: extends the best prefixes in parallel.

Axes: B sentences still searched, G groups, N slots of a group, R slots in use, V vocabulary, S source positions.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.search.coverage import Coverage
from regard.search.group import Distinct, Group, ranked
from regard.search.hypothesis import Hypothesis
from regard.search.rows import Candidate, Rows
from regard.search.rules import NOTHING, Free, Rule, Stuck, apply_rules, update_attention
from regard.search.steps import S, Source, StepModel, mask_special_tokens
from regard.search.tree import SearchTree
from regard.text.loops import PATIENCE
from regard.text.specials import BOS, EOS


@torch.inference_mode()
def beam(
    steps: StepModel[S],
    source: Source | Tensor,
    limits: list[int],
    *,
    width: int,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    count: int = 1,
    groups: int = 1,
    diversity: float = 0.5,
    full: bool = False,
    text: Callable[[tuple[int, ...]], str] | None = None,
    rules: Sequence[Rule] | None = None,
    patience: Sequence[int] | None = None,
    trees: Sequence[SearchTree] | None = None,
) -> list[list[Hypothesis]]:
    """Return the `count` best hypotheses per source (or row of tokens B×S), best first, of up to `limits[row]` tokens.

    `width` hypotheses are kept per sentence; finished sentences leave the batch. Several `groups` take turns in each
    step, and `diversity` penalises tokens that earlier groups have just chosen (Vijayakumar et al., 2018).
    `coverage_penalty` is β of Wu et al. (2016): β Σ_s log min(1, Σ_t attention) is added to scores (attention below
    10⁻⁹ counts as 10⁻⁹).
    The hypotheses of a sentence differ in their `text`, or else in their tokens. An ended hypothesis keeps its slot,
    or, in a `full` beam, frees it.
    For `rules` with required tokens, the beam is shared evenly among hypotheses by the number of required tokens that
    they have met (Post and Vilar, 2018). `trees`, one per row, record the search.
    """
    if width % groups:
        raise UsageError(
            f"`beam` (--beam) is {width}. It must be a multiple of `groups` (--diverse), which is {groups}."
        )
    slots = width // groups

    def begin(row: int) -> list[Group]:
        identify: Callable[[tuple[int, ...]], Hashable] = tuple if text is None else text
        several = Distinct(identify, shared=groups > 1, several=True)
        return [
            Group(
                limit=limits[row],
                width=slots,
                count=min(count, slots),
                length_penalty=length_penalty,
                full=full,
                rule=rules[row] if rules else Free(),
                patience=patience[row] if patience else PATIENCE,
                distinct=several if count > 1 else Distinct(tuple, shared=groups > 1, several=False),
                tree=trees[row] if trees else None,
            )
            for _ in range(groups)
        ]

    source = Source.of(source)
    sentences = [begin(row) for row in range(len(source))]
    active = list(range(len(source)))
    rows = Rows.first(len(source) * groups, slots, source.device)
    state = steps.start(source)
    if groups > 1:
        state = state.select(torch.arange(len(source), device=source.device).repeat_interleave(groups))
    covered = Coverage(source.mask.repeat_interleave(groups, dim=0), coverage_penalty)
    last = torch.full((len(source) * groups,), BOS, device=source.device)
    time = 0
    while active:
        scores, state = steps.step(last, state)
        scores = mask_special_tokens(scores)  # R×V
        if rules:
            scores = _apply_rules(
                scores, [group for row in active for group in sentences[row]], time, getattr(state, "attention", None)
            )
        covered.add(state)
        costs = covered.costs(rows)
        living: list[list[Candidate]] = [[] for _ in rows.starts]
        used = scores.new_zeros(
            len(active) if groups > 1 else 0, scores.shape[1]
        )  # B×V: how often earlier groups chose each token
        for number in range(groups):
            found = _group_candidates(
                rows, scores, number, groups, diversity, used, slots * (2 if full or trees or count > 1 else 1)
            )
            for order, row in enumerate(active):
                group, place = sentences[row][number], order * groups + number
                if rules and rules[row].needs:
                    own = slice(rows.starts[place], rows.starts[place] + len(group.paths))
                    found[place] = share_among_banks(
                        group, rows.totals[own, None] + scores[own], scores[own], found[place]
                    )
                widen = partial(
                    _widen, rows, scores, place, len(group.paths), used[order] if number else None, diversity
                )
                living[place], taken = group.extend(found[place], costs[place], scores.shape[1], widen)
                for candidate in taken if groups > 1 else ():
                    used[order, candidate.token] += 1
        time += 1
        alive = [order for order in range(len(active)) if any(living[order * groups : (order + 1) * groups])]
        active = [active[order] for order in alive]
        if active:
            places = [order * groups + number for order in alive for number in range(groups)]
            chosen, last, rows = rows.follow([(place, living[place]) for place in places])
            if chosen is not None:
                state = state.select(chosen)
                covered.select(chosen)
    found_all = [
        ranked([hypothesis for group in sentence for hypothesis in group.ended.values()])[:count]
        for sentence in sentences
    ]
    if rules and not all(found_all):
        raise Stuck(found_all.index([]))
    for tree, given in zip(trees or [], found_all, strict=bool(trees)):
        tree.finish([hypothesis.tokens for hypothesis in given])
    return found_all


def _apply_rules(scores: Tensor, groups: Sequence[Group], time: int, attention: Tensor | None) -> Tensor:
    """Set scores R×V of all live hypotheses to minus infinity at tokens that the rules of their sentences forbid.

    Rules get the attention to the source, R×S, if the model has it.
    """
    paths = [(group, path) for group in groups for path in group.paths]
    rules = [group.rule for group, _ in paths]
    states = update_attention(rules, [path.rule_state for _, path in paths], attention)
    updated = iter(states)
    for group in groups:
        group.paths = [path._replace(rule_state=next(updated)) for path in group.paths]
    return apply_rules(scores, rules, states, [group.limit - time for group, _ in paths])


def _group_candidates(
    rows: Rows, scores: Tensor, number: int, groups: int, diversity: float, used: Tensor, most: int
) -> list[list[Candidate]]:
    """Return the best candidates of one group of each sentence; tokens `used` by earlier groups (B×V) are penalised."""
    if groups == 1:
        return rows.candidates(scores, scores, most)
    chosen = rows.every(groups, number)
    own = scores[chosen]
    liked = own - diversity * used[rows.positions[chosen] // (rows.slots * groups)] if number else own
    return rows.candidates(own, liked, most, chosen)


def _widen(
    rows: Rows, scores: Tensor, place: int, count: int, used: Tensor | None, diversity: float, most: int
) -> list[Candidate]:
    """Return the `most` best candidates of `count` hypotheses of one place; `used` (V) as in `_group_candidates`."""
    own = slice(rows.starts[place], rows.starts[place] + count)
    log_probs = scores[own]  # N×V
    liked = (rows.totals[own, None] + log_probs - (0.0 if used is None else diversity * used)).flatten()
    found = liked.topk(min(most, len(liked))).indices
    slots, tokens = found // log_probs.shape[1], found % log_probs.shape[1]
    chosen = log_probs[slots, tokens]
    columns = (rows.totals[own][slots] + chosen, chosen, slots, tokens)
    return list(map(Candidate, *(column.tolist() for column in columns)))


def share_among_banks(group: Group, wanted: Tensor, scores: Tensor, found: list[Candidate]) -> list[Candidate]:
    """Order candidates of one sentence by taking turns among banks, one for each number of required tokens met.

    Candidates are those `found`, the best overall, each slot's best, and all that make progress in a required phrase.
    """
    pool = {(candidate.slot, candidate.token): candidate for candidate in found}
    for slot, path in enumerate(group.paths):
        tokens = [*group.rule.wanted(path.rule_state), int(wanted[slot].argmax())]
        for token, total, log_prob in zip(
            tokens, wanted[slot, tokens].tolist(), scores[slot, tokens].tolist(), strict=True
        ):
            pool.setdefault((slot, token), Candidate(total, log_prob, slot, token))
    banks: dict[int, list[Candidate]] = {}
    for candidate in sorted(pool.values(), key=lambda candidate: -candidate.total):
        if candidate.total != NOTHING:
            state = group.paths[candidate.slot].rule_state
            met = group.rule.met(state if candidate.token == EOS else group.rule.after(state, candidate.token))
            banks.setdefault(met, []).append(candidate)
    shared: list[Candidate] = []
    while banks:
        for met in sorted(banks, reverse=True):
            shared.append(banks[met].pop(0))
            if not banks[met]:
                del banks[met]
    return shared
