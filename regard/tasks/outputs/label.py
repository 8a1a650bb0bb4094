"""Labels: one for each input.

Axes: B batch, C labels.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.data.labels import Labels
from regard.foundation.errors import UsageError
from regard.metrics.labels import calibration, confusion, score_labels
from regard.models.encoder_model import ChoiceModel
from regard.objectives.objective import Loss
from regard.tasks.judgement import Calibration, Judgement, Sample, Table
from regard.tasks.outputs.choice import ChoiceOutput
from regard.tasks.outputs.number import number_in
from regard.tasks.results import Label
from regard.tasks.trace import Side, Trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint

MOST_SHOWN = 30
"""Maximum number of labels in a confusion matrix on a card."""
MOST_NAMED = 5
"""Maximum number of labels that a message lists."""
KINDS_SHOWN = 12
"""Number of kinds of sources, such as the first words of questions, whose scores a card shows."""
TEMPERATURES = (0.2, 5.0)
"""The range of fitted temperatures; outside it the data does not determine the temperature."""


class LabelOutput(ChoiceOutput[ChoiceModel]):
    """Loss −log P(label | input), weighted by label as configured; evaluated by accuracy and macro-F1."""

    has_labels = True
    result = Label

    @property
    def loss_name(self) -> str:
        """The unit of the loss, of the probabilities before calibration."""
        return f"nats per {self.unit}, before calibration"

    @property
    def known(self) -> Labels:
        """The labels with their counts."""
        assert self.vocabularies.labels is not None
        return self.vocabularies.labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels."""
        return self.known.names

    @property
    def outputs(self) -> int:
        """The number of scores: one per label."""
        return len(self.labels)

    # Preparing data

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """Return what is wrong with an example: it has no label, or one with a tab or line break."""
        return label_problem(pair.target)

    @classmethod
    def labels_of(cls, pair: Pair) -> list[str]:
        """Return the label."""
        return [pair.target.strip()]

    def check(self, pair: Pair, place: str) -> None:
        """Raise an error for a label that does not occur in the training data."""
        check_labels(self.known, self.labels_of(pair), place)

    def missing(self, pairs: Sequence[Pair]) -> str | None:
        """Return which labels of the training data these examples lack, so that they are not evaluated."""
        return missing_labels(self.known, (label for pair in pairs for label in self.labels_of(pair)))

    def remarks(self) -> list[str]:
        """Return a note on labels that occur once, which can hardly be learned and are often mistakes."""
        return rare_labels(self.known)

    def targets(self, pairs: Sequence[Pair]) -> list[list[int]]:
        """Return the number of each label."""
        return [[self.known.number(pair.target.strip())] for pair in pairs]

    @property
    def id_limit(self) -> int:
        """The number of labels."""
        return self.known.size

    def describe(self) -> str:
        """Return the number of labels."""
        return f"{self.known.size} labels"

    # Training

    @property
    def _weights(self) -> Tensor | None:
        """The weight of each label C, with mean 1 over the training data."""
        if getattr(self.config.task, "class_weights", "none") != "balanced":
            return None
        counts = torch.tensor(self.known.counts, dtype=torch.float32)
        return counts.sum() / (len(counts) * counts)

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return the training batch with the index of the label B."""
        return TrainingBatch({**inputs, "label": batch.target[:, 0]}, len(batch))

    def loss(
        self, model: ChoiceModel, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Return the cross-entropy; in training label-smoothed and weighted by class."""
        scores = self.batch_scores(model, batch).float()  # B×C
        nll = F.cross_entropy(scores, batch["label"], reduction="sum")
        smoothed = nll
        if point is not None:
            rows = F.cross_entropy(
                scores, batch["label"], label_smoothing=self.config.training.label_smoothing, reduction="none"
            )  # B
            if (weights := self._weights) is not None:  # of examples: torch's own would weight the smoothing by class
                rows = rows * weights.to(scores.device)[batch["label"]]
            smoothed = rows.sum()
        return Loss(smoothed * scale, nll.detach(), batch.count)

    def row_losses(self, model: ChoiceModel, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the loss of each example."""
        scores = self.batch_scores(model, batch).float()  # B×C
        found = F.cross_entropy(scores, batch["label"], reduction="none").double().cpu()
        return found, torch.ones_like(found)

    def calibrate(self, model: ChoiceModel, pairs: Sequence[Pair]) -> Calibration:
        """Fit the temperature of probabilities on validation data, if there is enough."""
        if warning := self.check_enough(pairs, "The temperature of probabilities"):
            model.temperature.fill_(1.0)
            return Calibration(note="probabilities not calibrated", warning=warning)
        sources, _ = self.readable([pair.source for pair in pairs])
        fitted = fit_temperature(self.scores(model, sources), self._numbers(pairs))
        low, high = TEMPERATURES
        model.temperature.fill_(min(max(fitted, low), high))
        warning = None
        if not low < fitted < high:
            warning = (
                f"The temperature that fits the validation data best is outside {low:g} to {high:g} and was limited. "
                "Either no prediction is wrong, or predictions are hardly related to the labels. Do not rely on the "
                "probabilities."
            )
        return Calibration(note=f"probabilities at temperature {model.temperature.item():.2f}", warning=warning)

    def _numbers(self, pairs: Sequence[Pair]) -> Tensor:
        return torch.tensor([self.known.number(pair.target.strip()) for pair in pairs])

    # Using a model

    def answer(self, model: ChoiceModel, sources: Sequence[str]) -> list[Label]:
        """Return the most likely label of each input, and the probability of every label."""
        shares = model.apply_temperature(self.scores(model, sources).double()).softmax(1)
        return [
            Label(self.labels[best], dict(zip(self.labels, row, strict=True)))
            for best, row in zip(shares.argmax(1).tolist(), shares.tolist(), strict=True)
        ]

    def trace(self, model: ChoiceModel, source: str, target: str | None = None) -> Trace:
        """Trace the model on a source, with its own label or the given one."""
        if target is not None and target not in self.labels:
            known = ", ".join(self.labels[:MOST_SHOWN])
            raise UsageError(f"`{target[:40]}` is not a label of this run. Its labels are {known}.")

        def answer(scores: Tensor) -> Side:
            number = int(scores.argmax()) if target is None else self.labels.index(target)
            return Side.of_labels([self.labels[number]], [number])

        return self.choice_trace(model, source, self.labels, answer)

    # Judging

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare labels with the references, and their probabilities with how often they are correct."""
        cut = [line.split("\t") for line in lines]
        answers, true = [parts[0].strip() for parts in cut], [pair.target.strip() for pair in pairs]
        for number, label in enumerate(answers, start=1):
            self._check(label, number)
        scores = score_labels(answers, true, self.labels)
        right = [answer == label for answer, label in zip(answers, true, strict=True)]
        if all(len(parts) > 1 for parts in cut):
            sure = [number_in(parts[1], number) for number, parts in enumerate(cut, start=1)]
            scores = replace(scores, details={**scores.details, "calibration": calibration(sure, right)})
        samples = [
            Sample(source=pair.source, reference=reference, output=answer)
            for pair, reference, answer in zip(pairs, true, answers, strict=True)
        ]
        tables = [*self._tables(answers, true, scores.details["macro_f1"]), *self._by_kind(pairs, right)]
        return Judgement(scores=scores, samples=samples, tables=tables)

    def _check(self, label: str, number: int) -> None:
        if label not in self.labels:
            known = ", ".join(self.labels[:5]) + (", …" if len(self.labels) > 5 else "")
            raise UsageError(
                f"Answer {number:,} is `{label[:40]}`, which is not a label of this run. Its labels are {known}."
            )

    def _tables(self, answers: Sequence[str], true: Sequence[str], f1: Any) -> Sequence[Table]:
        if len(self.labels) > MOST_SHOWN:
            return ()
        counts = confusion(answers, true, self.labels).tolist()
        rows = [
            (label, *(f"{count:,}" for count in row), f"{f1[label]:.1f}" if label in f1 else "–")
            for label, row in zip(self.labels, counts, strict=True)
        ]
        return [Table(title="True label by row, model by column", head=("", *self.labels, "F1"), rows=rows)]

    def _by_kind(self, pairs: Sequence[Pair], right: Sequence[bool]) -> Sequence[Table]:
        """Return the accuracy for each kind of source, if sources have kinds."""
        kinds = [self.input.breakdown(pair.source) for pair in pairs]
        known = [kind for kind in kinds if kind is not None]
        if not known:
            return ()
        correct = Counter(kind for kind, is_right in zip(kinds, right, strict=True) if is_right)
        rows = [
            (kind, f"{count:,}", f"{100 * correct[kind] / count:.1f}")
            for kind, count in Counter(known).most_common(KINDS_SHOWN)
        ]
        return [Table(title="By the first words of the question", head=("question", "number", "right %"), rows=rows)]

    def calibrated_loss(self, model: ChoiceModel, pairs: Sequence[Pair]) -> tuple[float, float]:
        """Return the mean of −log P(label | input) at the fitted temperature, and the temperature."""
        sources, _ = self.readable([pair.source for pair in pairs])
        scores = model.apply_temperature(self.scores(model, sources).double())
        return F.cross_entropy(scores, self._numbers(pairs)).item(), float(model.temperature)


def label_problem(label: str) -> str | None:
    """Return what is wrong with a label, as the end of a sentence that begins with its place, or `None`."""
    if any(mark in label.strip() for mark in "\t\r\n"):
        return "has a label with a tab or a line break in it. Rename the label."
    return None if label.strip() else "has no label. Add one, or leave the line out."


def check_labels(known: Labels, labels: Sequence[str], place: str) -> None:
    """Raise an error for labels that do not occur in the training data."""
    for label in labels:
        known.number(label, place)


def missing_labels(known: Labels, labels: Any) -> str | None:
    """Return which labels of the training data these labels lack, as the end of a sentence, or `None`."""
    there = set(labels)
    names = [name for name in known.names if name not in there]
    if not names:
        return None
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    what = "it is" if len(names) == 1 else "they are"
    return f"does not contain {named}{more}, which the training data has, so that {what} not evaluated."


def rare_labels(known: Labels) -> list[str]:
    """Return a note on labels that occur once."""
    once = [name for name, count in zip(known.names, known.counts, strict=True) if count == 1]
    if not once:
        return []
    more = f" and {len(once) - MOST_NAMED:,} more" if len(once) > MOST_NAMED else ""
    named = ", ".join(f"`{name[:40]}`" for name in once[:MOST_NAMED])
    return [f"The training data contains {named}{more} only once. Check that this is not a mistake in the data."]


def fit_temperature(scores: Tensor, labels: Tensor) -> float:
    """Return the temperature T that minimises −log softmax(scores / T)[label] (Guo et al., 2017), for N×C and N.

    Uses golden-section search over log T; the loss is convex in 1 / T, so that there is one minimum.
    """
    scores = scores.double()

    def surprise(log_temperature: float) -> float:
        return F.cross_entropy(scores / torch.tensor(log_temperature).exp(), labels).item()

    low, high = -3.0, 3.0
    ratio = (5**0.5 - 1) / 2
    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if surprise(left) <= surprise(right):
            high = right
        else:
            low = left
    return float(torch.tensor((low + high) / 2).exp())
