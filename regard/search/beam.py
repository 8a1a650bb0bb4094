"""Beam search: the few best beginnings, extended together.

Axes: B sentences still searched, G groups, N slots of a group, R slots in use, V vocabulary, S source positions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.errors import UsageError
from regard.search.hypothesis import Ended, Hypothesis, scored
from regard.search.rows import Candidate, Rows
from regard.search.rules import NOTHING, Free, Rule, Stuck, keep_to, may_end
from regard.search.steps import S, StepModel, sayable
from regard.search.tree import SearchTree
from regard.text.loops import PATIENCE, loop_start
from regard.text.specials import BOS, EOS, PAD


class Path(NamedTuple):
    """A beginning that fills a slot."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    place: Any
    """Where its rule stands."""
    node: int
    """Its last node in the search tree."""


class Group:
    """The hypotheses of one sentence (or of one group of its beam): those that live, in N slots, and those that ended.

    An ended hypothesis keeps its place, so the search narrows as hypotheses end, and stops when all have.
    """

    def __init__(
        self,
        *,
        limit: int,
        width: int,
        count: int,
        length_penalty: float,
        rule: Rule,
        patience: int,
        tree: SearchTree | None,
    ) -> None:
        self.limit, self.width, self.count = limit, width, count
        self.length_penalty = length_penalty
        self.rule, self.patience, self.tree = rule, patience, tree
        self.paths = [Path((), (), rule.start, -1)]
        self.ended: list[Hypothesis] = []

    @property
    def room(self) -> int:
        """Slots not taken by ended hypotheses."""
        return self.width - len(self.ended)

    def extend(self, candidates: list[Candidate], coverage: Sequence[float], size: int) -> list[Candidate]:
        """Take over as many of the candidates (the first first) as there is room for; those that live on.

        `coverage` is what the coverage penalty takes off each slot's score, if it ends now.
        """
        candidates = [one for one in candidates if one.total != NOTHING]
        taken, left_out = candidates[: self.room], candidates[self.room :]
        living, paths = [], []
        for one in taken:
            path = self._extended(one)
            ended, kept = self._end(path, one.token, size)
            if ended:
                tokens, costs = (path.tokens, path.log_probs) if kept is None else kept
                self.ended.append(scored(tokens, costs, self.length_penalty, ended, coverage[one.slot]))
            else:
                living.append(one)
            if self.tree is not None:
                before = self.paths[one.slot].node
                node = self.tree.add(before, one.token, one.log_prob, one.total, "ended" if ended else "lived")
                path = path._replace(node=node)
                if ended:
                    self.tree.ends[self.ended[-1].tokens] = node
            if not ended:
                paths.append(path)
        if self.tree is not None:
            for one in left_out:
                self.tree.add(self.paths[one.slot].node, one.token, one.log_prob, one.total, "died")
        going = living if self._can_improve(living) else []
        self.paths = paths if going else []
        return going

    def _extended(self, one: Candidate) -> Path:
        path = self.paths[one.slot]
        costs = (*path.log_probs, one.log_prob)
        if one.token == EOS:
            return path._replace(log_probs=costs)
        return Path((*path.tokens, one.token), costs, self.rule.after(path.place, one.token), -1)

    def _end(self, path: Path, token: int, size: int) -> tuple[Ended | None, tuple[Any, Any] | None]:
        """Why a path ends here, if it does, and what is left of it when a loop is cut."""
        if token == EOS:
            return "end", None
        cut = loop_start(path.tokens, self.patience)
        if cut is not None and may_end(self.rule, path.tokens[:cut], size):
            return "repetition", (path.tokens[:cut], path.log_probs[:cut])
        return ("length" if len(path.tokens) >= self.limit else None), None

    def _can_improve(self, living: list[Candidate]) -> bool:
        """Whether a living hypothesis could still end among the `count` best.

        A total only falls, a longer hypothesis divides it by more, and a coverage penalty is never positive:
        total / (limit + 1)^penalty is the most that any continuation can score. Nothing is given up that could win.
        """
        if not living or not self.room:
            return False
        best = self.best()
        if len(best) < self.count or best[-1].ended != "end":
            return True
        most = max(one.total for one in living) / float(self.limit + 1) ** self.length_penalty
        return bool(most > best[-1].score)

    def best(self) -> list[Hypothesis]:
        """The `count` best ended hypotheses, those that ended by themselves before those cut short."""
        return ranked(self.ended)[: self.count]


def ranked(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Hypotheses best first, those that ended by themselves before those cut short."""
    return sorted(hypotheses, key=lambda one: (one.ended != "end", -one.score))


@torch.inference_mode()
def beam(
    steps: StepModel[S],
    source: Tensor,
    limits: list[int],
    *,
    width: int,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    count: int = 1,
    groups: int = 1,
    diversity: float = 0.5,
    rules: Sequence[Rule] | None = None,
    patience: Sequence[int] | None = None,
    trees: Sequence[SearchTree] | None = None,
) -> list[list[Hypothesis]]:
    """The `count` best hypotheses found per row of source B×S, best first, of at most `limits[row]` tokens.

    `width` hypotheses are followed per sentence; sentences that are done leave the batch. Several `groups` search one
    after the other, each step of each avoiding by `diversity` what the groups before have just said (Vijayakumar et
    al., 2018). `coverage_penalty` is β of Wu et al. (2016): β Σ_s log min(1, Σ_t attention) is added to scores
    (never looked at counts as 10⁻⁹).
    What `rules` require is sought by giving each number of required tokens met its share of the beam (Post and Vilar,
    2018). `trees`, one per row, record all of it.
    """
    if width % groups:
        raise UsageError(f"A beam of {width} cannot be cut into {groups} equal groups: make it a multiple.")
    slots = width // groups
    sentences = [
        [
            Group(
                limit=limit,
                width=slots,
                count=min(count, slots),
                length_penalty=length_penalty,
                rule=rules[row] if rules else Free(),
                patience=patience[row] if patience else PATIENCE,
                tree=trees[row] if trees else None,
            )
            for _ in range(groups)
        ]
        for row, limit in enumerate(limits)
    ]
    active = list(range(len(source)))
    rows = Rows.first(len(source) * groups, slots, source.device)
    state = steps.start(source)
    if groups > 1:
        state = state.select(torch.arange(len(source), device=source.device).repeat_interleave(groups))
    covered = Coverage(source.repeat_interleave(groups, dim=0), coverage_penalty)
    last = source.new_full((len(source) * groups,), BOS)
    time = 0
    while active:
        scores, state = steps.step(last, state)
        scores = sayable(scores)  # R×V
        if rules:
            paths = [(row, path.place) for row in active for group in sentences[row] for path in group.paths]
            left = [limits[row] - time for row, _ in paths]
            scores = keep_to(scores, [rules[row] for row, _ in paths], [place for _, place in paths], left)
        covered.add(state)
        costs = covered.costs(rows)
        living: list[list[Candidate]] = [[] for _ in rows.starts]
        heard = scores.new_zeros(len(active) if groups > 1 else 0, scores.shape[1])  # B×V: how often said just now
        for number in range(groups):
            found = _of_group(rows, scores, number, groups, diversity, heard, slots * (2 if trees else 1))
            for order, row in enumerate(active):
                group, place = sentences[row][number], order * groups + number
                if rules and rules[row].needs:
                    own = slice(rows.starts[place], rows.starts[place] + len(group.paths))
                    found[place] = in_banks(group, rows.totals[own, None] + scores[own], scores[own], found[place])
                living[place] = group.extend(found[place], costs[place], scores.shape[1])
                for one in found[place][:slots] if groups > 1 else ():
                    heard[order, one.token] += 1
        time += 1
        alive = [order for order in range(len(active)) if any(living[order * groups : (order + 1) * groups])]
        active = [active[order] for order in alive]
        if active:
            places = [order * groups + number for order in alive for number in range(groups)]
            chosen, last, rows = rows.followed([(place, living[place]) for place in places])
            if chosen is not None:
                state = state.select(chosen)
                covered.select(chosen)
    found_all = [ranked([one for group in sentence for one in group.best()])[:count] for sentence in sentences]
    if rules and not all(found_all):
        raise Stuck(found_all.index([]))
    for tree, given in zip(trees or [], found_all, strict=bool(trees)):
        tree.finish([one.tokens for one in given])
    return found_all


def _of_group(
    rows: Rows, scores: Tensor, number: int, groups: int, diversity: float, heard: Tensor, most: int
) -> list[list[Candidate]]:
    """The best candidates of one group of each sentence, which likes less what groups before it have said (B×V)."""
    if groups == 1:
        return rows.candidates(scores, scores, most)
    chosen = rows.every(groups, number)
    own = scores[chosen]
    liked = own - diversity * heard[rows.seats[chosen] // (rows.slots * groups)] if number else own
    return rows.candidates(own, liked, most, chosen)


def in_banks(group: Group, wanted: Tensor, scores: Tensor, found: list[Candidate]) -> list[Candidate]:
    """Candidates of one sentence, shared out evenly between banks: one for each number of required tokens met.

    To those `found`, the best overall, come each slot's best and all that bring a required phrase nearer.
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
    """How much attention each source position has had, for each row of a beam; idle while the penalty is zero."""

    def __init__(self, source: Tensor, penalty: float) -> None:
        self.penalty = penalty
        self.real = source != PAD  # R×S
        self.sums = torch.zeros_like(source, dtype=torch.float) if penalty else source[:, :0].float()

    def add(self, state: Any) -> None:
        """One more step's attention."""
        if self.penalty:
            attention = getattr(state, "attention", None)
            if attention is None:
                raise UsageError("A coverage penalty needs a step model whose states know where it looked.")
            self.sums = self.sums + attention

    def select(self, rows: Tensor) -> None:
        """Follow the beam."""
        if self.penalty:
            self.sums, self.real = self.sums.index_select(0, rows), self.real.index_select(0, rows)

    def costs(self, rows: Rows) -> list[list[float]]:
        """What is added to the score of each slot, if it ends now: B·G×N."""
        if not self.penalty:
            return [[0.0] * rows.slots] * len(rows.starts)
        each = self.sums.clamp(1e-9, 1.0).log().masked_fill(~self.real, 0.0).sum(dim=1, keepdim=True)  # R×1
        costs: list[list[float]] = rows.laid_out(self.penalty * each, 0.0).tolist()
        return costs
