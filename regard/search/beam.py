"""Beam search: extends the best prefixes in parallel.

Axes: B sentences still searched, G groups, N slots of a group, R slots in use, V vocabulary, S source positions.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.search.hypothesis import Ended, Hypothesis, rank, scored
from regard.search.rows import Candidate, Rows
from regard.search.rules import NOTHING, Free, Rule, Stuck, apply_rules, may_end, update_attention
from regard.search.steps import S, Source, StepModel, mask_special_tokens
from regard.search.tree import Fate, SearchTree
from regard.text.loops import PATIENCE, loop_start
from regard.text.specials import BOS, EOS


class Path(NamedTuple):
    """A prefix that fills a slot."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    place: Any
    """The state of its rule."""
    node: int
    """Its last node in the search tree."""


class Group:
    """The hypotheses of one sentence (or of one group of its beam): up to N live ones, and those that ended.

    An ended hypothesis keeps its slot: the beam narrows as hypotheses end, and search stops when all have ended. In a
    `full` beam it frees its slot, so that N hypotheses stay live until none of them can win.
    """

    def __init__(
        self,
        *,
        limit: int,
        width: int,
        count: int,
        length_penalty: float,
        full: bool,
        rule: Rule,
        patience: int,
        distinct: "Distinct",
        tree: SearchTree | None,
    ) -> None:
        self.limit, self.width, self.count = limit, width, count
        self.length_penalty, self.full = length_penalty, full
        self.rule, self.patience, self.tree = rule, patience, tree
        self.distinct = distinct
        self.paths = [Path((), (), rule.start, -1)]
        self.ended: dict[Hashable, Hypothesis] = {}

    @property
    def room(self) -> int:
        """The number of slots for live hypotheses."""
        return self.width if self.full else self.width - len(self.ended)

    def extend(
        self,
        candidates: list[Candidate],
        coverage: Sequence[float],
        size: int,
        widen: Callable[[int], list[Candidate]] = lambda most: [],
    ) -> "GroupStep":
        """Take as many candidates, in their order, as there is room for.

        `coverage` is the coverage penalty of each slot if it ends now. `widen` returns a given number of best
        candidates, which are needed if all of these end with texts that are already among the hypotheses.
        """
        living: list[Candidate] = []
        paths: list[Path] = []
        taken, left_out = self._take(candidates, coverage, size, living, paths)
        tried = len(candidates)
        while self.distinct.several and not living and len(self.ended) < self.count:
            if not left_out:
                wider = widen(4 * tried)
                if len(wider) <= tried:
                    break  # there are no other candidates
                tried = len(wider)
                known = {(one.slot, one.token) for one in taken}
                left_out = [one for one in wider if (one.slot, one.token) not in known]
            more, left_out = self._take(left_out, coverage, size, living, paths)
            taken += more
        if self.tree is not None:
            for one in left_out:
                path = self.paths[one.slot]
                score = one.total / (len(path.log_probs) + 1) ** self.length_penalty
                self.tree.add(path.node, one.token, one.log_prob, one.total, score, "died")
        going = self._competitive(living)
        self.paths = paths[: len(going)]
        return GroupStep(going, taken)

    def _take(
        self,
        candidates: list[Candidate],
        coverage: Sequence[float],
        size: int,
        living: list[Candidate],
        paths: list[Path],
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Take candidates and add those that stay live to `living` and `paths`; return those taken and the rest."""
        candidates = [one for one in candidates if one.total != NOTHING]
        if self.distinct.several:
            candidates = [one for one in candidates if not self._is_duplicate(one, coverage[one.slot])]
        taken, left_out = self._split_by_room(candidates)
        for one in taken:
            path = self._extended(one)
            ended, kept = self._end(path, one.token, size)
            hypothesis = None
            if ended:
                tokens, costs = (path.tokens, path.log_probs) if kept is None else kept
                hypothesis = scored(tokens, costs, self.length_penalty, ended, coverage[one.slot])
                self.distinct.add(self, hypothesis)
            else:
                living.append(one)
            if self.tree is not None:
                before = self.paths[one.slot].node
                score = hypothesis.score if hypothesis else one.total / len(path.log_probs) ** self.length_penalty
                fate: Fate = "ended" if ended else "lived"
                node = self.tree.add(before, one.token, one.log_prob, one.total, score, fate)
                path = path._replace(node=node)
                if ended:
                    self.tree.ends[path.tokens if kept is None else kept[0]] = node
            if not ended:
                paths.append(path)
        return taken, left_out

    def _is_duplicate(self, one: Candidate, bonus: float) -> bool:
        """Return whether a candidate ends with the text of an ended hypothesis; the better of the two is kept."""
        if one.token != EOS or not self.distinct.holds(self.paths[one.slot].tokens):
            return False
        path = self._extended(one)
        self.distinct.add(self, scored(path.tokens, path.log_probs, self.length_penalty, "end", bonus))
        return True

    def _split_by_room(self, candidates: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
        """Split candidates into those that there is room for and the others.

        In a full beam candidates that end take no room, but must be among the best of all.
        """
        room = self.room
        if not self.full:
            return candidates[:room], candidates[room:]
        going_on = {id(one) for one in [one for one in candidates if one.token != EOS][:room]}
        taken = [number < room or id(one) in going_on for number, one in enumerate(candidates)]
        return list(compress(candidates, taken)), [
            one for one, is_in in zip(candidates, taken, strict=True) if not is_in
        ]

    def _extended(self, one: Candidate) -> Path:
        path = self.paths[one.slot]
        costs = (*path.log_probs, one.log_prob)
        if one.token == EOS:
            return path._replace(log_probs=costs)
        return Path((*path.tokens, one.token), costs, self.rule.after(path.place, one.token), -1)

    def _end(self, path: Path, token: int, size: int) -> tuple[Ended | None, tuple[Any, Any] | None]:
        """Return why a path ends here, if it does, and what remains of it if a loop is cut off."""
        if token == EOS:
            return "end", None
        cut = loop_start(path.tokens, self.patience)
        if cut is not None and may_end(self.rule, path.tokens[:cut], size):
            return "repetition", (path.tokens[:cut], path.log_probs[:cut])
        return ("length" if len(path.tokens) >= self.limit else None), None

    def _competitive(self, living: list[Candidate]) -> list[Candidate]:
        """Return the live hypotheses (best first) that are still needed: all, or the first few, or none.

        Totals only decrease, longer hypotheses divide them by more, and a coverage penalty is never positive, so that
        total / (limit + 1)^penalty bounds the score of every continuation. No hypothesis that could win is dropped.
        In a full beam whose candidates are ranked by their totals alone, those that cannot win come after all that can,
        and are dropped one by one; otherwise all are kept while one can win.
        """
        if self.room <= 0:
            return []
        best = self.best()
        if len(best) < self.count or best[-1].ended != "end":
            return living
        scale = float(self.limit + 1) ** self.length_penalty
        can = [one.total / scale > best[-1].score for one in living]
        if self.full and not self.rule.needs and not self.distinct.shared:
            return living[: sum(can)]
        return living if any(can) else []

    def best(self) -> list[Hypothesis]:
        """Return the `count` best ended hypotheses, those that the model ended before those cut off."""
        return ranked(self.ended.values())[: self.count]


class GroupStep(NamedTuple):
    """The result of one step of a group."""

    living: list[Candidate]
    """Candidates that stay live."""
    taken: list[Candidate]
    """Those, and the candidates that ended."""


class Distinct:
    """Maps each output of a sentence's beam to the group that found it, so that each text is kept once, at its best.

    A text that another group or path has already ended with takes no slot and no place in the n-best list.
    """

    def __init__(self, identify: Callable[[tuple[int, ...]], Hashable], *, shared: bool, several: bool) -> None:
        self.identify, self.shared, self.several = identify, shared, several
        self.owners: dict[Hashable, Group] = {}

    def holds(self, tokens: tuple[int, ...]) -> bool:
        """Return whether the text of these tokens is among the ended hypotheses."""
        return self.identify(tokens) in self.owners

    def add(self, group: Group, hypothesis: Hypothesis) -> None:
        """Add an ended hypothesis to its group, unless a better one with the same text exists."""
        key = self.identify(hypothesis.tokens)
        owner = self.owners.get(key)
        if owner is None:
            self.owners[key] = group
            group.ended[key] = hypothesis
            if group.full and len(group.ended) > group.count:
                worst = max(group.ended, key=lambda key: rank(group.ended[key]))
                del group.ended[worst], self.owners[worst]
        elif rank(hypothesis) < rank(owner.ended[key]):
            owner.ended[key] = hypothesis


def ranked(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Sort hypotheses best first, those that the model ended before those cut off."""
    return sorted(hypotheses, key=rank)


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
                for one in taken if groups > 1 else ():
                    used[order, one.token] += 1
        time += 1
        alive = [order for order in range(len(active)) if any(living[order * groups : (order + 1) * groups])]
        active = [active[order] for order in alive]
        if active:
            places = [order * groups + number for order in alive for number in range(groups)]
            chosen, last, rows = rows.follow([(place, living[place]) for place in places])
            if chosen is not None:
                state = state.select(chosen)
                covered.select(chosen)
    found_all = [ranked([one for group in sentence for one in group.ended.values()])[:count] for sentence in sentences]
    if rules and not all(found_all):
        raise Stuck(found_all.index([]))
    for tree, given in zip(trees or [], found_all, strict=bool(trees)):
        tree.finish([one.tokens for one in given])
    return found_all


def _apply_rules(scores: Tensor, groups: Sequence[Group], time: int, attention: Tensor | None) -> Tensor:
    """Set scores R×V of all live hypotheses to minus infinity at tokens that the rules of their sentences forbid.

    Rules get the attention to the source, R×S, if the model has it.
    """
    paths = [(group, path) for group in groups for path in group.paths]
    rules = [group.rule for group, _ in paths]
    states = update_attention(rules, [path.place for _, path in paths], attention)
    each = iter(states)
    for group in groups:
        group.paths = [path._replace(place=next(each)) for path in group.paths]
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
    each = scores[own]  # N×V
    liked = (rows.totals[own, None] + each - (0.0 if used is None else diversity * used)).flatten()
    found = liked.topk(min(most, len(liked))).indices
    slots, tokens = found // each.shape[1], found % each.shape[1]
    log_probs = each[slots, tokens]
    columns = (rows.totals[own][slots] + log_probs, log_probs, slots, tokens)
    return list(map(Candidate, *(column.tolist() for column in columns)))


def share_among_banks(group: Group, wanted: Tensor, scores: Tensor, found: list[Candidate]) -> list[Candidate]:
    """Order candidates of one sentence by taking turns among banks, one for each number of required tokens met.

    Candidates are those `found`, the best overall, each slot's best, and all that make progress in a required phrase.
    """
    pool = {(one.slot, one.token): one for one in found}
    for slot, path in enumerate(group.paths):
        tokens = [*group.rule.wanted(path.place), int(wanted[slot].argmax())]
        for token, total, log_prob in zip(
            tokens, wanted[slot, tokens].tolist(), scores[slot, tokens].tolist(), strict=True
        ):
            pool.setdefault((slot, token), Candidate(total, log_prob, slot, token))
    banks: dict[int, list[Candidate]] = {}
    for one in sorted(pool.values(), key=lambda one: -one.total):
        if one.total != NOTHING:
            place = group.paths[one.slot].place
            met = group.rule.met(place if one.token == EOS else group.rule.after(place, one.token))
            banks.setdefault(met, []).append(one)
    shared: list[Candidate] = []
    while banks:
        for met in sorted(banks, reverse=True):
            shared.append(banks[met].pop(0))
            if not banks[met]:
                del banks[met]
    return shared


class Coverage:
    """The sum of attention to each source position, for each row of a beam; unused while the penalty is zero."""

    def __init__(self, mask: Tensor, penalty: float) -> None:
        self.penalty = penalty
        self.real = mask  # R×S
        self.sums = torch.zeros_like(mask, dtype=torch.float) if penalty else mask[:, :0].float()

    def add(self, state: Any) -> None:
        """Add the attention of one step."""
        if self.penalty:
            attention = getattr(state, "attention", None)
            if attention is None:
                raise UsageError(
                    "A coverage penalty needs a step model whose states have `attention`. Leave the penalty out."
                )
            self.sums = self.sums + attention

    def select(self, rows: Tensor) -> None:
        """Select these rows, as the beam does."""
        if self.penalty:
            self.sums, self.real = self.sums.index_select(0, rows), self.real.index_select(0, rows)

    def costs(self, rows: Rows) -> list[list[float]]:
        """Return the penalty that is added to the score of each slot if it ends now: B·G×N."""
        if not self.penalty:
            return [[0.0] * rows.slots] * len(rows.starts)
        each = self.sums.clamp(1e-9, 1.0).log().masked_fill(~self.real, 0.0).sum(dim=1, keepdim=True)  # R×1
        costs: list[list[float]] = rows.by_place(self.penalty * each, 0.0).tolist()
        return costs
