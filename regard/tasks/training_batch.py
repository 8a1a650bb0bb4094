"""A batch of training data, and the progress of training when the model sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class TrainingBatch:
    """The tensors of a batch by name, the first axis of each B.

    Inspection uses some by name: `source`, the model's input (tokens B×S, or pixels), and for a decoder its `inputs`
    B×T and the `outputs` B×T that it predicts.
    """

    tensors: Mapping[str, Tensor]
    count: int
    """The number of predictions, which the loss is a mean over."""

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        return replace(self, tensors={name: tensor.to(device) for name, tensor in self.tensors.items()})

    def shares(self, number: int) -> list[Self]:
        """Split the rows into at most `number` parts of nearly equal size; the count stays that of the whole batch."""
        number = min(number, len(next(iter(self.tensors.values()))))
        cut = {name: tensor.tensor_split(number) for name, tensor in self.tensors.items()}
        return [replace(self, tensors={name: parts[i] for name, parts in cut.items()}) for i in range(number)]


@dataclass(frozen=True)
class TrainingPoint:
    """The step of training at which a model sees a batch, and its random generator."""

    step: int
    steps: int
    random: torch.Generator
