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
    """An output of the set, with its log-probability."""

    output: int
    """Its index in the set."""
    log_prob: float


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

    def __len__(self) -> int:
        return len(self.output)

    def expand(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the children of all nodes, and for each child the row of its parent."""
        counts = self.first[nodes + 1] - self.first[nodes]
        parents = np.repeat(np.arange(len(nodes)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.children[np.repeat(self.first[nodes], counts) + within], parents


@torch.inference_mode()
def best_outputs(
    model: StepModel[Any], source: Source, trie: Trie, *, width: int, count: int, least: float = -math.inf
) -> list[Found]:
    """Return the `count` most probable outputs for one source, best first.

    At each depth the best `width` nodes are kept, so the cost does not depend on the number of outputs. A node is also
    dropped once `count` complete outputs are at least as probable: log-probabilities only fall, so this loses nothing,
    and a beam as wide as the trie gives exactly the best outputs. Outputs whose log-probability is below `least` are
    not searched.
    """
    state = model.start(source)
    nodes = np.zeros(1, dtype=np.int64)
    scores = np.zeros(1)
    found: list[Found] = []
    while len(nodes):
        tokens = torch.from_numpy(trie.tokens[nodes]).to(source.device)
        log_probs, state = model.step(tokens, state)  # A×V
        ends = np.flatnonzero(trie.output[nodes] != NOT_COMPLETE)
        totals = scores[ends] + _pick(log_probs, ends, np.full(len(ends), EOS))
        found += [
            Found(int(output), float(total))
            for output, total in zip(trie.output[nodes[ends]], totals, strict=True)
            if total >= least
        ]
        found = sorted(found, key=lambda one: (-one.log_prob, one.output))[:count]
        children, parents = trie.expand(nodes)
        reached = scores[parents] + _pick(log_probs, parents, trie.tokens[children])
        worst = found[-1].log_prob if len(found) == count else -math.inf
        kept = np.flatnonzero((reached > worst) & (reached >= least))
        if len(kept) > width:
            kept = np.sort(kept[np.argpartition(-reached[kept], width - 1)[:width]])
        nodes, scores, parents = children[kept], reached[kept], parents[kept]
        if len(nodes):
            state = state.select(torch.from_numpy(parents).to(source.device))
    return found


def _pick(log_probs: torch.Tensor, rows: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-probabilities A×V of some tokens, each in its row."""
    places = (torch.from_numpy(rows).to(log_probs.device), torch.from_numpy(tokens).to(log_probs.device))
    picked: NDArray[np.float64] = log_probs[places].double().cpu().numpy()
    return picked
