"""The hypotheses of one sentence in a beam: those still growing and those that ended."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from regard.search.hypothesis import Ended, Hypothesis, rank, scored
from regard.search.rows import Candidate
from regard.search.rules import NOTHING, Rule, may_end
from regard.search.tree import Fate, SearchTree
from regard.text.loops import loop_start
from regard.text.specials import EOS


class Path(NamedTuple):
    """A prefix that fills a slot."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    rule_state: Any
    """How far the constraints of its sentence are met."""
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
                known = {(candidate.slot, candidate.token) for candidate in taken}
                left_out = [candidate for candidate in wider if (candidate.slot, candidate.token) not in known]
            more, left_out = self._take(left_out, coverage, size, living, paths)
            taken += more
        if self.tree is not None:
            for candidate in left_out:
                path = self.paths[candidate.slot]
                score = candidate.total / (len(path.log_probs) + 1) ** self.length_penalty
                self.tree.add(path.node, candidate.token, candidate.log_prob, candidate.total, score, "died")
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
        candidates = [candidate for candidate in candidates if candidate.total != NOTHING]
        if self.distinct.several:
            candidates = [
                candidate for candidate in candidates if not self._is_duplicate(candidate, coverage[candidate.slot])
            ]
        taken, left_out = self._split_by_room(candidates)
        for candidate in taken:
            path = self._extended(candidate)
            ended, kept = self._end(path, candidate.token, size)
            hypothesis = None
            if ended:
                tokens, costs = (path.tokens, path.log_probs) if kept is None else kept
                hypothesis = scored(tokens, costs, self.length_penalty, ended, coverage[candidate.slot])
                self.distinct.add(self, hypothesis)
            else:
                living.append(candidate)
            if self.tree is not None:
                before = self.paths[candidate.slot].node
                score = hypothesis.score if hypothesis else candidate.total / len(path.log_probs) ** self.length_penalty
                fate: Fate = "ended" if ended else "lived"
                node = self.tree.add(before, candidate.token, candidate.log_prob, candidate.total, score, fate)
                path = path._replace(node=node)
                if ended:
                    self.tree.ends[path.tokens if kept is None else kept[0]] = node
            if not ended:
                paths.append(path)
        return taken, left_out

    def _is_duplicate(self, candidate: Candidate, bonus: float) -> bool:
        """Return whether a candidate ends with the text of an ended hypothesis; the better of the two is kept."""
        if candidate.token != EOS or not self.distinct.holds(self.paths[candidate.slot].tokens):
            return False
        path = self._extended(candidate)
        self.distinct.add(self, scored(path.tokens, path.log_probs, self.length_penalty, "end", bonus))
        return True

    def _split_by_room(self, candidates: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
        """Split candidates into those that there is room for and the others.

        In a full beam candidates that end take no room, but must be among the best of all.
        """
        room = self.room
        if not self.full:
            return candidates[:room], candidates[room:]
        going_on = {
            id(candidate) for candidate in [candidate for candidate in candidates if candidate.token != EOS][:room]
        }
        taken = [number < room or id(candidate) in going_on for number, candidate in enumerate(candidates)]
        return list(compress(candidates, taken)), [
            candidate for candidate, is_in in zip(candidates, taken, strict=True) if not is_in
        ]

    def _extended(self, candidate: Candidate) -> Path:
        path = self.paths[candidate.slot]
        costs = (*path.log_probs, candidate.log_prob)
        if candidate.token == EOS:
            return path._replace(log_probs=costs)
        return Path((*path.tokens, candidate.token), costs, self.rule.after(path.rule_state, candidate.token), -1)

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
        can = [candidate.total / scale > best[-1].score for candidate in living]
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
