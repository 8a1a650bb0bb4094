"""Numbers as outputs.

Axes: B batch.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.foundation.errors import UsageError
from regard.metrics.labels import score_numbers
from regard.models.classifier import Classifier
from regard.objectives.objective import Loss
from regard.tasks.judgement import Calibration, Judgement, Sample
from regard.tasks.outputs.choice import ChoiceOutput
from regard.tasks.results import Number
from regard.tasks.trace import Side, Trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint

LARGEST = float(np.finfo(np.float32).max)


class NumberOutput(ChoiceOutput[Classifier]):
    """Loss (estimate − number)², evaluated by correlation; a store keeps a number as two halves of a 32-bit float."""

    result = Number

    @property
    def loss_name(self) -> str:
        """The unit of the loss."""
        return f"squared error per {self.unit}"

    @property
    def outputs(self) -> int:
        """One score, the estimate."""
        return 1

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """Return what is wrong with a target: it is not a finite number."""
        try:
            finite = abs(float(pair.target)) <= LARGEST
        except ValueError:
            finite = False
        given = pair.target.strip()[:40]
        return None if finite else f"has `{given}` instead of a number. Fix it, or set task.kind=classification."

    def targets(self, pairs: Sequence[Pair]) -> list[list[int]]:
        """Return the halves of each number."""
        numbers = np.asarray([float(pair.target) for pair in pairs], dtype="<f4")
        halves: list[list[int]] = numbers.view("<u2").reshape(-1, 2).tolist()
        return halves

    @property
    def id_limit(self) -> int:
        """Halves of a number have 16 bits."""
        return 1 << 16

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return the number B."""
        return TrainingBatch({**inputs, "number": numbers_in(batch.target)}, len(batch))

    def loss(
        self, model: Classifier, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Return the squared error."""
        estimates = self.batch_scores(model, batch)[:, 0].float()  # B
        error = F.mse_loss(estimates, batch["number"], reduction="sum")
        return Loss(error * scale, error.detach(), batch.count)

    def row_losses(self, model: Classifier, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the squared error of each example."""
        estimates = self.batch_scores(model, batch)[:, 0].float()  # B
        found = F.mse_loss(estimates, batch["number"], reduction="none").double().cpu()
        return found, torch.ones_like(found)

    def calibrate(self, model: Classifier, pairs: Sequence[Pair]) -> Calibration:
        """Fit a linear map from estimates to numbers on validation data, since dropout in training biases estimates."""
        if warning := self.check_enough(pairs, "The shift and scale of estimates"):
            return Calibration(note="estimates not calibrated", warning=warning)
        sources, _ = self.readable([pair.source for pair in pairs])
        estimates = self.scores(model, sources)[:, 0].double()
        true = torch.tensor([float(pair.target) for pair in pairs], dtype=torch.float64)
        slope, shift = fit_line(estimates, true)
        last = model.classifier[-1] if isinstance(model.classifier, nn.Sequential) else model.classifier
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(slope)
            last.bias.mul_(slope).add_(shift)
        return Calibration(note=f"estimates times {slope:.2f} plus {shift:.2f}")

    def answer(self, model: Classifier, sources: Sequence[str]) -> list[Number]:
        """Return the estimate for each input."""
        return [Number(number) for number in self.scores(model, sources)[:, 0].tolist()]

    def trace(self, model: Classifier, source: str, target: str | None = None) -> Trace:
        """Run the model on a source."""
        if target is not None:
            raise UsageError(
                "A regression run predicts one number, so that there is no other target to explain. Leave out --target."
            )
        return self.choice_trace(model, source, (), lambda scores: Side.of_labels([f"{scores.item():.4g}"], [0]))

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare estimates with the true numbers."""
        estimates = [number_in(line, number) for number, line in enumerate(lines, start=1)]
        samples = [
            Sample(source=pair.source, reference=pair.target.strip(), output=f"{estimate:.2f}")
            for pair, estimate in zip(pairs, estimates, strict=True)
        ]
        return Judgement(scores=score_numbers(estimates, [float(pair.target) for pair in pairs]), samples=samples)


def numbers_in(halves: Tensor) -> Tensor:
    """Return the numbers B whose halves B×2 a batch contains."""
    return torch.from_numpy(halves.numpy().astype("<u2").view("<f4").astype(np.float32)[:, 0])


def number_in(text: str, place: int) -> float:
    """Parse the number of line `place`."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"Answer {place:,} has `{text.strip()[:40]}` instead of a number.") from None


def fit_line(estimates: Tensor, true: Tensor) -> tuple[float, float]:
    """Return the slope and shift that minimise the squared error of slope · estimate + shift, for N estimates.

    If the slope would be negative, or all estimates are equal, only the shift is fitted.
    """
    centred = estimates - estimates.mean()
    spread = centred.square().sum().item()
    slope = (centred * (true - true.mean())).sum().item() / spread if spread > 0 else 1.0
    slope = slope if 0 < slope < math.inf else 1.0
    return slope, (true.mean() - slope * estimates.mean()).item()
