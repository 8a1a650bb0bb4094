"""Beam search with a reference in view: the real search, whose steps are watched.

At each step the candidates are all live prefixes, each with every next token. As long as the reference's prefix is
live, the rank of its continuation among them is known exactly. Axes: R live prefixes, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, cast

import torch
from torch import Tensor

from regard.search import Hypothesis, Search, SearchTree, StepModel
from regard.search.steps import NEVER_GENERATED, Source
from regard.tasks.generation import SourceReader, TextGenerator
from regard.tasks.loaded import LoadedRun
from regard.text.specials import EOS

Fate = Literal["found", "left", "stopped"]
"""`found`: the reference is among the ended hypotheses; `left`: its prefix fell out of the beam; `stopped`: search
ended while its prefix was live, since enough better hypotheses had ended."""


@dataclass(frozen=True)
class Step:
    """One step at which the reference's prefix was live."""

    rank: int
    """Of the prefix with its next token among all candidates, from 1."""
    room: int
    """How many candidates were kept."""
    log_prob: float
    total: float
    """Log-probability of the prefix with its next token."""
    cut: float
    """The total of the last candidate that was kept."""


@dataclass(frozen=True)
class WatchedSearch:
    """The output of a search, and the way of a reference through it."""

    output: Hypothesis
    fate: Fate
    steps: list[Step]
    """From the first token on, up to the step at which the reference was found or left."""


@dataclass(frozen=True)
class WatchedState:
    """The state of a step model with the prefixes of its rows."""

    state: Any
    prefixes: list[tuple[int, ...]]
    totals: Tensor
    """R."""
    log_probs: Tensor | None
    """Of the last step, R×V; None before the first."""

    @property
    def attention(self) -> Tensor:
        """The attention of the last step, if the model has it."""
        found: Tensor = self.state.attention
        return found

    def select(self, rows: Tensor) -> Self:
        """Return the state of these rows in this order; rows may repeat."""
        return type(self)(
            self.state.select(rows),
            [self.prefixes[row] for row in rows.tolist()],
            self.totals.index_select(0, rows),
            None if self.log_probs is None else self.log_probs.index_select(0, rows),
        )


@dataclass
class Watcher:
    """A step model that notes how a reference fares among the candidates of each step."""

    steps: StepModel[Any]
    tokens: Sequence[int]
    """Of the reference, the end symbol last."""
    seen: list[tuple[Tensor, float, float]] = field(default_factory=list)
    """For each step at which the reference is live: the totals of all candidates, best first, that of the reference,
    and the log-probability of its token."""

    def start(self, source: Source) -> WatchedState:
        """Return the state before the first token."""
        return WatchedState(self.steps.start(source), [()], torch.zeros(1, device=source.device), None)

    def step(self, tokens: Tensor, state: WatchedState) -> tuple[Tensor, WatchedState]:
        """Return the log-probabilities R×V of the next token and the new state."""
        prefixes, totals = state.prefixes, state.totals
        if state.log_probs is not None:  # the first token that is read is the start symbol
            totals = totals + state.log_probs.gather(1, tokens[:, None])[:, 0]
            prefixes = [(*prefix, token) for prefix, token in zip(prefixes, tokens.tolist(), strict=True)]
        log_probs, after = self.steps.step(tokens, state.state)
        time, live = len(prefixes[0]), tuple(self.tokens[: len(prefixes[0])])
        if time < len(self.tokens) and live in prefixes:
            row = prefixes.index(live)
            never = torch.tensor(NEVER_GENERATED, device=log_probs.device)
            candidates = (totals[:, None] + log_probs).index_fill(1, never, float("-inf"))  # R×V
            own = candidates[row, self.tokens[time]]
            order = candidates.flatten().sort(descending=True).values
            self.seen.append((order, float(own), float(log_probs[row, self.tokens[time]])))
        return log_probs, WatchedState(after, prefixes, totals, log_probs.clone())


class WatchedReader:
    """The input of a run with watched step models; everything else is the input's own."""

    def __init__(self, reader: Any, tokens: Sequence[int]) -> None:
        self.reader, self.tokens = reader, tokens
        self.watchers: list[Watcher] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def step_model(self, *given: Any, **options: Any) -> tuple[Watcher, Source]:
        """Return the step model of a batch, watched, and its source."""
        steps, source = self.reader.step_model(*given, **options)
        self.watchers.append(Watcher(steps, self.tokens))
        return self.watchers[-1], source


def watch_search(run: LoadedRun, source: str, tokens: Sequence[int], search: Search) -> WatchedSearch:
    """Search for the output for a source with a beam, and note where a reference (`tokens`, without EOS) is left."""
    reader, tree = WatchedReader(run.input, [*tokens, EOS]), SearchTree()
    generator = TextGenerator(run.model, run.config, cast(SourceReader, reader), run.target_tokenizer)
    best = generator.hypotheses([source], replace(search, count=1), trees=[tree])[0]
    output = best[0] if best else Hypothesis((), (), 0.0, "end")
    width = search.beam or run.config.decoding.beam
    seen = reader.watchers[0].seen if reader.watchers else []
    steps = []
    for time, (order, own, log_prob) in enumerate(seen):
        ended = sum(len(hypothesis) < time for hypothesis in tree.ends)
        room = min(max(1, width - ended), len(order))
        rank = 1 + int((order > own).sum())
        steps.append(Step(rank, room, log_prob, own, float(order[room - 1])))
    return WatchedSearch(output, _fate(steps, tuple(tokens), tree), steps)


def _fate(steps: Sequence[Step], tokens: tuple[int, ...], tree: SearchTree) -> Fate:
    """Return what became of a reference."""
    if tokens in tree.ends and len(steps) == len(tokens) + 1:
        return "found"
    return "left" if not steps or steps[-1].rank > steps[-1].room else "stopped"
