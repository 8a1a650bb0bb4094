"""Token identifiability: can one tell from a hidden state which token stood there? (Brunner et al., 2020)

A map g from the states of a layer back to the input vectors is learned (or left out); a token is identified if its
input vector is the nearest to g(state): among the inputs of its own sentence, or among all words of the vocabulary put
at its place. Repeated tokens with one and the same input vector count as one.

Axes: L layers (the embedding first), N tokens, D width, E width of the input, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regard.config.cell import width_of
from regard.data.batches import SOURCE_FRAME, Frame
from regard.foundation.progress import Progress
from regard.inspection.probes import Examples, squared_error, train_probes
from regard.inspection.states import Reading, end_of_text, word_states
from regard.metrics.intervals import Interval, ratio_intervals, resample_counts
from regard.models import Model
from regard.models.encoder_model import EncoderModel

Map = Literal["none", "linear", "mlp"]
Nearness = Literal["cosine", "euclidean"]
Among = Literal["sentence", "vocabulary"]
MAPS: tuple[Map, ...] = ("none", "linear", "mlp")
NEARNESS: tuple[Nearness, ...] = ("cosine", "euclidean")
AMONG: tuple[Among, ...] = ("sentence", "vocabulary")

HIDDEN = 256
RIDGE = 1e-4
"""Penalty of the linear map for each example, which keeps it solvable."""
PORTION = 2048
"""Tokens compared with the vocabulary at a time."""


@dataclass(frozen=True)
class TokenIdentity:
    """The share of tokens that are identified, by layer."""

    found: dict[tuple[Map, Nearness, Among], list[float | None]]
    """None where a layer's states are as wide as no input vector and there is no map."""
    intervals: dict[tuple[Map, Nearness, Among], list[Interval | None]]
    """Their 95 % intervals, by a bootstrap over test sentences; the maps are not learned again."""
    chance: float
    """Of a blind guess among the tokens of a sentence."""
    tokens: int
    """Measured on; the end symbol is left out."""
    sentences: dict[str, int]
    """In the training, stopping and test part."""


def token_identity(
    model: Model | EncoderModel,
    sources: Sequence[list[int]],
    *,
    frame: Frame = SOURCE_FRAME,
    seed: int = 1,
    progress: Progress | None = None,
) -> TokenIdentity:
    """Identify the tokens of sources (without special ones): maps learn from 70 % of them, and stop by 15 %."""
    order = [sources[index] for index in np.random.default_rng(seed).permutation(len(sources)) if sources[index]]
    cuts = [0, int(0.7 * len(order)), int(0.85 * len(order)), len(order)]
    places = [[[index] for index in range(len(ids))] for ids in order]
    alone = end_of_text(model) == "decoder"
    readings = [
        Reading([], ids, words) if alone else Reading(ids, None, words)
        for ids, words in zip(order, places, strict=True)
    ]
    states = word_states(model, readings, frame=frame, task="reading layers", progress=progress)  # L×N×D
    ends = np.cumsum([0, *(len(ids) for ids in order)])
    train, stop, test = (slice(int(ends[start]), int(ends[end])) for start, end in pairwise(cuts))
    table = (model.source_embedding.weight.detach() * model.source_embedding.scale).float().cpu()  # V×E
    inputs = states[0, :, : table.shape[1]].clone()  # N×E
    ids = torch.tensor([token_id for row in order for token_id in row])  # N
    spread, mean = torch.std_mean(states[:, train], dim=1, correction=0, keepdim=True)
    scaled = (states - mean) / spread.clamp(min=1e-6)
    near = _Neighbours(inputs[test], ids[test], table, [len(row) for row in order[cuts[2] :]])
    hits: dict[tuple[Map, Nearness, Among], list[Tensor | None]] = {
        (how, by, among): [] for how in MAPS for by in NEARNESS for among in AMONG
    }
    for how in MAPS:
        if how == "none":
            same = width_of(model.cell.decoder if alone else model.cell.encoder) == table.shape[1]
            fits = [True, *[same] * (len(states) - 1)]
            guessed = states[:, test, : table.shape[1]]
        else:
            fits = [True] * len(states)
            guessed = _fit_map(how, scaled, inputs, train, stop, test)
        for layer, vectors in enumerate(guessed):
            for by in NEARNESS:
                for among in AMONG:
                    right = near.find(vectors, by, among) if fits[layer] else None
                    hits[how, by, among].append(right)
            if progress:
                progress("identifying tokens", MAPS.index(how) * len(states) + layer + 1, 3 * len(states))
    chance = len(order[cuts[2] :]) / max(1, test.stop - test.start)
    counts = dict(zip(("train", "stop", "test"), np.diff(cuts).tolist(), strict=True))
    found = {
        key: [None if right is None else int(right.sum()) / max(1, len(right)) for right in correct]
        for key, correct in hits.items()
    }
    intervals = {key: [near.interval(right) for right in correct] for key, correct in hits.items()}
    return TokenIdentity(found, intervals, chance, test.stop - test.start, counts)


def _fit_map(how: Map, states: Tensor, inputs: Tensor, train: slice, stop: slice, test: slice) -> Tensor:
    """What the map of each layer makes of the test states L×N×D: L×N×E."""
    wanted = Examples(states[:, train], inputs[train])
    if how == "mlp":
        width = inputs.shape[1]
        maps = train_probes(wanted, Examples(states[:, stop], inputs[stop]), width, HIDDEN, loss=squared_error)
        with torch.no_grad():
            return maps(states[:, test])
    return torch.stack([_linear(layer[train], inputs[train], layer[test]) for layer in states])


def _linear(known: Tensor, wanted: Tensor, asked: Tensor) -> Tensor:
    """The linear map with the least squared error on the known states N×D, applied to others: N×E."""
    with_bias = torch.cat([known, torch.ones_like(known[:, :1])], dim=1).double()  # N×D+1
    square = with_bias.T @ with_bias + RIDGE * len(with_bias) * torch.eye(with_bias.shape[1], dtype=torch.float64)
    weight: Tensor = torch.linalg.solve(square, with_bias.T @ wanted.double())  # D+1×E
    return (torch.cat([asked, torch.ones_like(asked[:, :1])], dim=1).double() @ weight).float()


class _Neighbours:
    """The test tokens, and who is nearest to a vector that should be one of theirs."""

    def __init__(self, inputs: Tensor, ids: Tensor, table: Tensor, lengths: list[int]) -> None:
        self.inputs, self.ids, self.table = inputs, ids, table
        self.sentences = list(torch.split(torch.arange(len(ids)), lengths))
        self.places = inputs - table[ids]  # N×E: what positions have added
        self.lengths = np.asarray(lengths, dtype=np.float64)[:, None]
        self.counts = resample_counts(len(lengths))

    def find(self, guessed: Tensor, by: Nearness, among: Among) -> Tensor:
        """Whether the own input vector of each token is the nearest to the guess N×E: N."""
        return self._in_sentence(guessed, by) if among == "sentence" else self._in_vocabulary(guessed, by)

    def interval(self, right: Tensor | None) -> Interval | None:
        """Return the 95 % interval of the share of tokens that are `right` (N), by a bootstrap over sentences."""
        if right is None:
            return None
        sums = np.array([[float(right[rows].sum())] for rows in self.sentences])
        found = ratio_intervals(sums, self.lengths, counts=self.counts)
        return None if found is None else (max(0.0, float(found[0, 0])), min(1.0, float(found[0, 1])))

    def _in_sentence(self, guessed: Tensor, by: Nearness) -> Tensor:
        right = torch.zeros(len(self.ids), dtype=torch.bool)
        for rows in self.sentences:
            here = self.inputs[rows]  # S×E
            nearest = _closeness(guessed[rows], here, here.square().sum(-1), by).argmax(-1)
            right[rows] = (here[nearest] == here).all(-1)
        return right

    def _in_vocabulary(self, guessed: Tensor, by: Nearness) -> Tensor:
        """Candidates are all words of the vocabulary at the token's place: e(v) + p."""
        right, sizes = torch.zeros(len(self.ids), dtype=torch.bool), self.table.square().sum(-1)  # V
        for start in range(0, len(guessed), PORTION):
            rows = slice(start, start + PORTION)
            places = self.places[rows]  # n×E
            if by == "cosine":
                crossed = places @ self.table.T  # n×V
                norms = (sizes + 2 * crossed + places.square().sum(-1, keepdim=True)).clamp(min=1e-12).sqrt()
                inner = guessed[rows] @ self.table.T + (guessed[rows] * places).sum(-1, keepdim=True)
                nearest = (inner / norms).argmax(-1)
            else:
                nearest = _closeness(guessed[rows] - places, self.table, sizes, by).argmax(-1)
            right[rows] = nearest == self.ids[rows]
        return right


def _closeness(guessed: Tensor, candidates: Tensor, sizes: Tensor, by: Nearness) -> Tensor:
    """How near each candidate C×E is to each guess N×E, up to what is the same for all candidates: N×C."""
    inner = guessed @ candidates.T
    return inner / sizes.clamp(min=1e-12).sqrt() if by == "cosine" else 2 * inner - sizes
