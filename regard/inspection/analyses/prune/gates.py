r"""Gates that learn which heads a model can do without (Louizos et al., 2018; Voita et al., 2019).

What a head finds is multiplied by a gate g between 0 and 1, drawn from the hard concrete distribution:

    s = σ((log u − log(1−u) + log α) / τ),  u uniform;   g = clip(s·(ζ−γ) + γ, 0, 1)

P(g > 0) = σ(log α − τ·log(−γ/ζ)) can be differentiated, so that λ times the number of open gates can join the loss.

Axes: B batch, H heads, T queries, K head width.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import Batches
from regard.foundation.weights import put_weights, weights_of
from regard.inspection.interventions import attentions
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.nn import taps
from regard.nn.taps import Write
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch
from regard.training.gradient_threads import GradientThreads
from regard.training.trainer import Trainer

TEMPERATURE, LOW, HIGH = 0.33, -0.1, 1.1
"""τ, γ and ζ of Louizos et al. (2018)."""

START = 2.0
"""First log α: gates begin nearly open (P = 0.94), so that what the model has learned is not shaken at once."""

RATE = 0.05
"""Adam's rate for log α: an unwanted gate closes within some fifty steps, while the weights move at their own pace."""

_EDGE = 1e-6


class Gates(nn.Module):
    """A gate for each head of some attentions; its log α is learned, its draw is the same for a whole batch."""

    def __init__(self, heads: Mapping[str, int]) -> None:
        super().__init__()
        self.names = list(heads)
        self.log_alpha = nn.ParameterList(nn.Parameter(torch.full((count,), START)) for count in heads.values())

    def draw(self, generator: torch.Generator) -> list[Tensor]:
        """A random gate for each head: H for each attention."""
        drawn = []
        for log_alpha in self.log_alpha:
            u = torch.rand(log_alpha.shape, generator=generator).clamp(_EDGE, 1 - _EDGE).to(log_alpha.device)
            stretched = torch.sigmoid((u.log() - (-u).log1p() + log_alpha) / TEMPERATURE) * (HIGH - LOW) + LOW
            drawn.append(stretched.clamp(0, 1))
        return drawn

    def expected_open(self) -> Tensor:
        """The expected number of open gates, as a mean over the attentions: what λ is the price of."""
        per_attention = [
            torch.sigmoid(log_alpha - TEMPERATURE * math.log(-LOW / HIGH)).sum() for log_alpha in self.log_alpha
        ]
        return torch.stack(per_attention).mean()

    def open(self) -> dict[str, list[int]]:
        """The heads whose gates are rather open than closed: P(g = 1) > P(g = 0), which is log α > 0."""
        pairs = zip(self.names, self.log_alpha, strict=True)
        return {name: [head for head, value in enumerate(values.tolist()) if value > 0] for name, values in pairs}

    def most_open(self, count: int) -> dict[str, list[int]]:
        """The `count` heads with the largest log α."""
        values = [(value, name, head) for name, head, value in self.values()]
        best = {(name, head) for _, name, head in sorted(values, key=lambda item: -item[0])[:count]}
        return {
            name: [head for head in range(len(values)) if (name, head) in best]
            for name, values in zip(self.names, self.log_alpha, strict=True)
        }

    def values(self) -> list[tuple[str, int, float]]:
        """The log α of every head: attention, head, value."""
        pairs = zip(self.names, self.log_alpha, strict=True)
        return [(name, head, value) for name, values in pairs for head, value in enumerate(values.tolist())]


def gate_heads(names: Sequence[str], factors: Sequence[Tensor]) -> dict[str, Write]:
    """What `taps.watch(…, write=…)` takes to multiply the heads of each attention by factors H."""

    def write(factor: Tensor) -> Write:
        return lambda found: found * factor[:, None, None].to(found.dtype)  # B×H×T×K

    return {f"{name}.head_outputs": write(factor) for name, factor in zip(names, factors, strict=True)}


def close_heads(kept: Mapping[str, Sequence[int]], model: Model | EncoderModel) -> dict[str, Write]:
    """Gates fixed at 1 for the heads kept of each attention, and at 0 for its others."""
    found, device = attentions(model), model.device
    factors = [torch.tensor([float(head in kept[name]) for head in range(found[name].heads)]) for name in kept]
    return gate_heads(list(kept), [factor.to(device) for factor in factors])


class GatedTrainer(Trainer):
    """The run's own trainer, begun from its final weights, with gates on heads and a price λ on those open."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        batches: Batches,
        model: Model | EncoderModel,
        names: Sequence[str],
        *,
        device: torch.device,
    ) -> None:
        single_thread = GradientThreads(1)  # one set of gates for all rows
        super().__init__(config, task, batches, device=device, threads=single_thread)
        put_weights(self.model, weights_of(model))
        self.gates = Gates({name: attentions(self.model)[name].heads for name in names}).to(device)
        self.price = 0.0
        """λ."""
        self._gate_optimizer = torch.optim.Adam(self.gates.parameters(), lr=RATE)

    def _backward(self, parts: Sequence[TrainingBatch], scale: float) -> tuple[Tensor, Tensor]:
        self._gate_optimizer.zero_grad()
        loss = nll = torch.zeros((), device=self.device)
        for part in parts:
            with taps.watch(self.model, write=gate_heads(self.gates.names, self.gates.draw(self.random))):
                more = super()._backward([part], scale)
            loss, nll = loss + more[0], nll + more[1]
        penalty = self.price * self.gates.expected_open()
        self.scaler.scale(penalty).backward()  # type: ignore[no-untyped-call]
        return loss, nll

    def _apply(self, norm: float) -> None:
        super()._apply(norm)
        self.scaler.step(self._gate_optimizer)
