"""Intents of responses, by label propagation from a few examples.

Responses form a bipartite graph with their words and word pairs. Intents spread over it from the seeds, as in expander
graph learning (Ravi and Diao, 2016), which Smart Reply used: the distribution of a node is a mean of its neighbours',
weighted by the edges, and seeds keep their labels. Edges are weighted by inverse document frequency, so that rare words
say more. A response that no seed reaches gets an intent of its own cluster: its most similar response.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.reply.responses import Candidate, Response

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ROUNDS = 30
"""Repetitions of propagation; distributions change by less than 1 % long before."""
PRIOR = 0.02
"""Weight of the uniform distribution: a node far from all seeds stays undecided."""
LEAST = 0.15
"""Probability below which a response is not given the intent of seeds."""


@dataclass(frozen=True)
class Seed:
    """An intent: its polarity, and responses that have it."""

    polarity: str
    examples: tuple[str, ...]


@cache
def built_in_seeds() -> Mapping[str, Seed]:
    """Return the intents that Regard comes with."""
    text = (resources.files("regard.reply") / "lists" / "intents.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return {str(name): Seed(entry["polarity"], tuple(map(str, entry["examples"]))) for name, entry in found.items()}


def assign_intents(candidates: Sequence[Candidate], seeds: Mapping[str, Seed] | None = None) -> list[Response]:
    """Return the candidates as responses, each with an intent and its polarity."""
    seeds = built_in_seeds() if seeds is None else seeds
    names = list(seeds)
    texts = [candidate.normal for candidate in candidates]
    extra = sorted({text for seed in seeds.values() for text in seed.examples} - set(texts))
    labels = {text: number for number, seed in enumerate(seeds.values()) for text in seed.examples}
    shares = propagate([*texts, *extra], labels, len(names))[: len(texts)]
    return [_response(candidate, names, seeds, row) for candidate, row in zip(candidates, shares, strict=True)]


def _response(
    candidate: Candidate, names: Sequence[str], seeds: Mapping[str, Seed], shares: NDArray[np.float64]
) -> Response:
    best = int(shares.argmax())
    if shares[best] < LEAST:
        return Response(candidate.text, candidate.normal, "neutral", candidate.count)
    return Response(candidate.text, names[best], seeds[names[best]].polarity, candidate.count)


def propagate(texts: Sequence[str], labels: Mapping[str, int], classes: int) -> NDArray[np.float64]:
    """Return the distribution of each text over classes, N×C.

    Args:
        texts: The N texts.
        labels: The classes of some of them, the seeds.
        classes: C.
    """
    edges = _edges(texts)
    uniform = np.full((1, classes), 1.0 / classes)
    known = np.array([labels.get(text, -1) for text in texts])
    seeded = np.flatnonzero(known >= 0)
    shares = np.repeat(uniform, len(texts), axis=0)
    shares[seeded] = np.eye(classes)[known[seeded]]
    to_features, to_texts = _rows_to_one(edges.T.tocsr()), _rows_to_one(edges)
    for _ in range(ROUNDS):
        features = (1 - PRIOR) * (to_features @ shares) + PRIOR * uniform
        shares = (1 - PRIOR) * (to_texts @ features) + PRIOR * uniform
        shares[seeded] = np.eye(classes)[known[seeded]]
    return shares


def _features(text: str) -> list[str]:
    """Return the words of a text, its word pairs, and the whole text."""
    words = text.replace(",", "").split()
    marked = ["<s>", *words, "</s>"]
    pairs = [f"{first} {second}" for first, second in pairwise(marked)]
    return [*words, *pairs]


def _edges(texts: Sequence[str]) -> "csr_matrix":
    """Return the weights N×F between texts and their features."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        raise RegardError(f"Intents need scipy. Install it with `{install_command('reply')}`.") from None
    features = [Counter(_features(text)) for text in texts]
    frequency = Counter(name for found in features for name in found)
    index = {name: number for number, name in enumerate(sorted(frequency))}
    rows, columns, weights = [], [], []
    for number, found in enumerate(features):
        for name in found:
            rows.append(number)
            columns.append(index[name])
            weights.append(np.log(1 + len(texts) / frequency[name]) ** 2)
    return csr_matrix((weights, (rows, columns)), shape=(len(texts), len(index)))


def _rows_to_one(matrix: "csr_matrix") -> "csr_matrix":
    """Return a matrix whose rows are divided by their sums."""
    from scipy.sparse import diags

    sums = np.asarray(matrix.sum(axis=1)).ravel()
    return (diags(1.0 / np.maximum(sums, 1e-12)) @ matrix).tocsr()
