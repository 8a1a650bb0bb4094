"""An exponential moving average of the weights (Polyak and Juditsky, 1992)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """θ̄ ← d·θ̄ + (1−d)·θ after every step, d = min(decay, (1 + step) / (10 + step)), which discounts early steps."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = dict(model.named_parameters())
        self.shadow = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average with the weights after a step."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, parameter in self.parameters.items():
            self.shadow[name].lerp_(parameter, share)

    def put(self, shadow: Mapping[str, Tensor]) -> None:
        """Load a saved average."""
        for name, tensor in self.shadow.items():
            tensor.copy_(shadow[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Context manager in which the model uses the average instead of its weights."""
        weights = {name: parameter.data for name, parameter in self.parameters.items()}
        try:
            for name, parameter in self.parameters.items():
                parameter.data = self.shadow[name]
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.data = weights[name]
