"""The best of a fixed set of outputs: beam search in their trie.

Axes: A active nodes of the trie, V vocabulary.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.search.steps import Source, StepModel
from regard.text.specials import BOS, EOS

NOT_COMPLETE = -1


class Found(NamedTuple):
    """An output of the set, with its score."""

    output: int
    """Its index in the set."""
    score: float
    """Its log-probability, and what the caller added for it."""


class Trie:
    """Token sequences that share their beginnings, as flat arrays.

    The children of node n are `children[first[n]:first[n + 1]]`, and `tokens` has the token that leads to each node.
    """

    def __init__(self, outputs: Sequence[Sequence[int]]) -> None:
        nodes: list[dict[int, int]] = [{}]
        complete: dict[int, int] = {}
        for index, output in enumerate(outputs):
            node = 0
            for token in output:
                following = nodes[node].get(token)
                if following is None:
                    following = nodes[node][token] = len(nodes)
                    nodes.append({})
                node = following
            complete.setdefault(node, index)
        self.first: NDArray[np.int64] = np.cumsum([0, *map(len, nodes)], dtype=np.int64)
        self.children = np.fromiter((child for node in nodes for child in node.values()), np.int64, len(nodes) - 1)
        self.tokens = np.full(len(nodes), BOS, dtype=np.int64)
        for followers in nodes:
            for token, child in followers.items():
                self.tokens[child] = token
        self.output = np.full(len(nodes), NOT_COMPLETE, dtype=np.int64)
        """The index of the output that ends at a node."""
        self.output[list(complete)] = list(complete.values())
        self._levels = self._by_depth()

    def _by_depth(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return the inner nodes of each depth, deepest first, with the places of their children."""
        levels = []
        nodes = np.zeros(1, dtype=np.int64)
        while len(nodes):
            inner = nodes[self.first[nodes + 1] > self.first[nodes]]
            if len(inner):
                levels.append((inner, self.expand(inner)[0]))
            nodes = levels[-1][1] if len(inner) else inner
        return levels[::-1]

    def __len__(self) -> int:
        return len(self.output)

    def expand(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the children of all nodes, and for each child the row of its parent."""
        counts = self.first[nodes + 1] - self.first[nodes]
        parents = np.repeat(np.arange(len(nodes)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.children[np.repeat(self.first[nodes], counts) + within], parents

    def best_below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each node the largest value of the outputs at it and below it."""
        best = np.full(len(self), -np.inf)
        ends = np.flatnonzero(self.output != NOT_COMPLETE)
        best[ends] = values[self.output[ends]]
        for inner, children in self._levels:
            counts = self.first[inner + 1] - self.first[inner]
            below = np.maximum.reduceat(best[children], np.cumsum(counts) - counts)
            best[inner] = np.maximum(best[inner], below)
        return best


@torch.inference_mode()
def best_outputs(
    model: StepModel[Any],
    source: Source,
    trie: Trie,
    *,
    width: int,
    count: int,
    least: float = -math.inf,
    extra: NDArray[np.float64] | None = None,
    state: Any = None,
) -> list[Found]:
    """Return the `count` outputs with the best scores for one source, best first.

    The score is the log-probability, plus `extra`, which has a number for each output. At each depth the best `width`
    nodes are kept, so the model's cost does not depend on the number of outputs. A node is judged by its
    log-probability and the largest `extra` below it: no output below it can be better. So it is dropped once `count`
    complete outputs are at least as good, which loses nothing, and a beam as wide as the trie gives exactly the best
    outputs. Outputs whose score is below `least` are not searched. `state` is what `model.start(source)` returned,
    if it has been called already.
    """
    state = model.start(source) if state is None else state
    nodes = np.zeros(1, dtype=np.int64)
    scores = np.zeros(1)
    outputs, totals = np.zeros(0, dtype=np.int64), np.zeros(0)
    bonus = np.zeros(len(trie)) if extra is None else trie.best_below(extra)
    while len(nodes):
        tokens = torch.from_numpy(trie.tokens[nodes]).to(source.device)
        log_probs, state = model.step(tokens, state)  # A×V
        ends = np.flatnonzero(trie.output[nodes] != NOT_COMPLETE)
        children, parents = trie.expand(nodes)
        picked = _pick(
            log_probs,
            np.concatenate([ends, parents]),
            np.concatenate([np.full(len(ends), EOS), trie.tokens[children]]),
        )
        if len(ends):
            ended = trie.output[nodes[ends]]
            total = scores[ends] + picked[: len(ends)] + (0.0 if extra is None else extra[ended])
            enough = total >= least
            outputs, totals = np.concatenate([outputs, ended[enough]]), np.concatenate([totals, total[enough]])
            best = np.lexsort((outputs, -totals))[:count]
            outputs, totals = outputs[best], totals[best]
        reached = scores[parents] + picked[len(ends) :]
        promised = reached + bonus[children]
        worst = totals[-1] if len(totals) == count else -math.inf
        kept = np.flatnonzero((promised > worst) & (promised >= least))
        if len(kept) > width:
            kept = np.sort(kept[np.argpartition(-promised[kept], width - 1)[:width]])
        nodes, scores, parents = children[kept], reached[kept], parents[kept]
        if len(nodes):
            state = state.select(torch.from_numpy(parents).to(source.device))
    return [Found(output, total) for output, total in zip(outputs.tolist(), totals.tolist(), strict=True)]


def _pick(log_probs: torch.Tensor, rows: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-probabilities A×V of some tokens, each in its row."""
    places = torch.from_numpy(rows * log_probs.shape[1] + tokens).to(log_probs.device)
    picked: NDArray[np.float64] = log_probs.take(places).double().cpu().numpy()
    return picked
