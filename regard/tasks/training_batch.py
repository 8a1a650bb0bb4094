"""A batch as a model trains on it, and where in its training the model is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class TrainingBatch:
    """The tensors of a batch by name, the first axis of each B.

    Inspection knows some by their names: `source`, what is read (tokens B×S, or pixels); where a decoder writes,
    `inputs` B×T, what it reads, and `outputs` B×T, what it is to predict.
    """

    tensors: Mapping[str, Tensor]
    count: int
    """How many predictions are asked for: what the loss is a mean over."""

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def to(self, device: torch.device) -> Self:
        """The same on a device."""
        return replace(self, tensors={name: tensor.to(device) for name, tensor in self.tensors.items()})

    def shares(self, number: int) -> list[Self]:
        """Its rows in parts that are as even as can be, none empty; the count stays that of the whole."""
        number = min(number, len(next(iter(self.tensors.values()))))
        cut = {name: tensor.tensor_split(number) for name, tensor in self.tensors.items()}
        return [replace(self, tensors={name: parts[i] for name, parts in cut.items()}) for i in range(number)]


@dataclass(frozen=True)
class TrainingPoint:
    """Where in its training a model is when it sees a batch, and the generator of its randomness."""

    step: int
    steps: int
    random: torch.Generator
