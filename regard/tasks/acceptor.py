"""n → 1: a text, or a pair of texts, is read and answered with a class or a number.

Axes: B batch, S source positions, C classes.
"""

import math
import shlex
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.shape import Acceptor as Settings
from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.data.reading import Labelled, numbers_in
from regard.foundation.errors import UsageError
from regard.metrics.labels import calibration, confusion, score_labels, score_numbers
from regard.models.acceptor import Acceptor, build_acceptor
from regard.models.reader import Chooser
from regard.objectives.objective import Loss
from regard.tasks.reading import fit_texts, predicting, read_all, read_one
from regard.tasks.results import Label, Number
from regard.tasks.task import Course, Judgement, Lesson, Sample, Settled, Shape, Table, Usage
from regard.tasks.trace import Side, Trace

MOST_SHOWN = 30
"""Classes in a confusion matrix on a card."""
LEAST_TO_FIT = 200
"""Validation texts that a temperature is fitted on. Of 150 fits to 200 answers with honest probabilities for two
classes, nine in ten lay between 0.80 and 1.21; with 30 answers between 0.41 and 1.76, some below 0.1."""
TEMPERATURES = (0.2, 5.0)
"""The temperatures that a fit may give; beyond them the data does not determine it."""


R = TypeVar("R", bound=Chooser)


class _Acceptance(Shape[R]):
    """What classes and numbers have in common."""

    unit = "text"

    @property
    def settings(self) -> Settings:
        """The section of this shape."""
        assert isinstance(self.config.shape, Settings)
        return self.config.shape

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many scores the model gives."""

    def build(self) -> R:
        """A model of the configured encoder and pooling."""
        texts = self.config.data.train.texts
        made = build_acceptor(self.config.model, self.settings, self.form.source.size, self.outputs, texts=texts)
        return cast(R, made)

    def say(self, model: R, lesson: Lesson) -> Tensor:
        """Scores B×C of a lesson."""
        scores: Tensor = model(lesson["source"])
        return scores

    def scores(self, model: R, texts: Sequence[str]) -> Tensor:
        """What the model says of texts, in their order, before any temperature: N×C."""
        found = read_all(self.config, self.form, model, self.form.source.encode_batch(texts), model)
        return torch.stack(found) if found else torch.zeros(0, self.outputs)

    def readable(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Return texts cut to the positions that the model has learned, and how many were cut."""
        return fit_texts(self.config, self.form.source, texts)

    def usage(self, place: str, example: Pair) -> Usage:
        """Answer the example."""
        shell = f"printf '%s\\n' {shlex.quote(example.source)} | regard predict {shlex.quote(place)}"
        return Usage(shell=shell, python=predicting(place, example.source))

    def next_command(self, place: str) -> str:
        """Answer a file."""
        return f"regard predict {place} < in.{'tsv' if self.config.data.train.texts > 1 else 'txt'}"


class Classification(_Acceptance[R]):
    """−log P(class | text), each class weighted as configured; judged by accuracy and macro-F1."""

    title = "A classifier of texts"
    result = Label
    loss_name = "nats per text, before calibration"
    perplexity = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes."""
        assert isinstance(self.form, Labelled)
        return self.form.labels.names

    @property
    def outputs(self) -> int:
        """One score a class."""
        return len(self.labels)

    @property
    def _balanced(self) -> bool:
        return self.settings.class_weights == "balanced"

    @property
    def _weights(self) -> Tensor | None:
        """The weight of each class C, 1 on average over the training data."""
        assert isinstance(self.form, Labelled)
        if not self._balanced:
            return None
        counts = torch.tensor(self.form.labels.counts, dtype=torch.float32)
        return counts.sum() / (len(counts) * counts)

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Source B×S and the number of its class B."""
        return Lesson({"source": batch.source, "label": batch.target[:, 0]}, len(batch))

    def loss(self, model: R, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """Cross-entropy; in learning label-smoothed and weighted by class."""
        scores = self.say(model, lesson).float()  # B×C
        nll = F.cross_entropy(scores, lesson["label"], reduction="sum")
        learnt = nll
        if course is not None:
            weights = self._weights
            learnt = F.cross_entropy(
                scores,
                lesson["label"],
                None if weights is None else weights.to(scores.device),
                label_smoothing=self.config.training.label_smoothing,
                reduction="sum",
            )
        return Loss(learnt * scale, nll.detach(), lesson.count)

    def row_losses(self, model: R, lesson: Lesson) -> tuple[Tensor, Tensor]:
        """Return the loss of each text."""
        scores = self.say(model, lesson).float()  # B×C
        found = F.cross_entropy(scores, lesson["label"], reduction="none").double().cpu()
        return found, torch.ones_like(found)

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare labels, and the probabilities behind them with how often they are right."""
        cut = [line.split("\t") for line in lines]
        said, true = [parts[0].strip() for parts in cut], [pair.target.strip() for pair in pairs]
        for number, label in enumerate(said, start=1):
            self._check(label, number)
        scores = score_labels(said, true, self.labels)
        if all(len(parts) > 1 for parts in cut):
            sure = [number_in(parts[1], number) for number, parts in enumerate(cut, start=1)]
            right = [one == other for one, other in zip(said, true, strict=True)]
            scores = replace(scores, details={**scores.details, "calibration": calibration(sure, right)})
        samples = [
            Sample(source=pair.source, reference=right, output=one)
            for pair, right, one in zip(pairs, true, said, strict=True)
        ]
        return Judgement(scores=scores, samples=samples, tables=self._tables(said, true, scores.details["macro_f1"]))

    def _check(self, label: str, number: int) -> None:
        if label not in self.labels:
            known = ", ".join(self.labels[:5]) + (", …" if len(self.labels) > 5 else "")
            raise UsageError(f"Answer {number:,} is `{label[:40]}`, which is no label of this run: it has {known}.")

    def _tables(self, said: Sequence[str], true: Sequence[str], f1: Any) -> Sequence[Table]:
        if len(self.labels) > MOST_SHOWN:
            return ()
        counts = confusion(said, true, self.labels).tolist()
        rows = [
            (label, *(f"{count:,}" for count in row), f"{f1[label]:.1f}" if label in f1 else "–")
            for label, row in zip(self.labels, counts, strict=True)
        ]
        return [Table(title="True label by row, model by column", head=("", *self.labels, "F1"), rows=rows)]

    def settle(self, model: R, pairs: Sequence[Pair]) -> Settled:
        """Fit the temperature at which probabilities are honest on validation data, where there is enough of it."""
        if len(pairs) < LEAST_TO_FIT:
            model.temperature.fill_(1.0)
            return Settled(
                note="probabilities as learnt", warning=_too_few(len(pairs), "The temperature of probabilities")
            )
        numbers = {label: number for number, label in enumerate(self.labels)}
        true = torch.tensor([numbers[pair.target.strip()] for pair in pairs])
        texts, _ = self.readable([pair.source for pair in pairs])
        fitted = fitted_temperature(self.scores(model, texts), true)
        low, high = TEMPERATURES
        model.temperature.fill_(min(max(fitted, low), high))
        warning = None
        if not low < fitted < high:
            warning = (
                f"The temperature that fits the validation data best is beyond {low:g} to {high:g} and was limited. "
                "Either no answer is wrong, or the answers have little to do with the labels: do not rely on the "
                "probabilities."
            )
        return Settled(note=f"probabilities at temperature {model.temperature.item():.2f}", warning=warning)

    def calibrated_loss(self, model: R, pairs: Sequence[Pair]) -> tuple[float, float]:
        """Return the mean of −log P(class | text) with the probabilities that are printed, and their temperature."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        true = torch.tensor([numbers[pair.target.strip()] for pair in pairs])
        texts, _ = self.readable([pair.source for pair in pairs])
        scores = model.tempered(self.scores(model, texts).double())
        return F.cross_entropy(scores, true).item(), float(model.temperature)

    def answer(self, model: R, texts: Sequence[str]) -> list[Label]:
        """The likeliest class of each text, and the probability of every class."""
        shares = model.tempered(self.scores(model, texts).double()).softmax(1)
        return [
            Label(self.labels[best], dict(zip(self.labels, row, strict=True)))
            for best, row in zip(shares.argmax(1).tolist(), shares.tolist(), strict=True)
        ]

    def trace(self, model: R, text: str, answer: str | None = None) -> Trace:
        """Watch the model choose a class, or ask it for another one."""
        ids = self.form.source.encode_batch([text])[0]
        return read_one(
            self.config, self.form, model, ids, [0], lambda scores: self.chosen(scores, answer), labels=self.labels
        )

    def chosen(self, scores: Tensor, answer: str | None) -> Side:
        """The likeliest class by its scores, or the one that is asked for."""
        if answer is not None and answer not in self.labels:
            raise UsageError(f"`{answer[:40]}` is no label of this run: it has {', '.join(self.labels[:MOST_SHOWN])}.")
        number = int(scores.argmax()) if answer is None else self.labels.index(answer)
        return Side.of_labels([self.labels[number]], [number])


class Estimation(_Acceptance[Acceptor]):
    """(estimate − number)², judged by correlation."""

    title = "An estimator of texts"
    result = Number
    loss_name = "squared error per text"
    perplexity = False

    @property
    def outputs(self) -> int:
        """The number."""
        return 1

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Source B×S and its number B."""
        return Lesson({"source": batch.source, "number": numbers_in(batch.target)}, len(batch))

    def loss(self, model: Acceptor, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """The squared error."""
        error = F.mse_loss(model(lesson["source"])[:, 0].float(), lesson["number"], reduction="sum")
        return Loss(error * scale, error.detach(), lesson.count)

    def row_losses(self, model: Acceptor, lesson: Lesson) -> tuple[Tensor, Tensor]:
        """Return the squared error of each text."""
        found = F.mse_loss(model(lesson["source"])[:, 0].float(), lesson["number"], reduction="none").double().cpu()
        return found, torch.ones_like(found)

    def settle(self, model: Acceptor, pairs: Sequence[Pair]) -> Settled:
        """Fit on validation data the line from estimates to numbers: noise in training shifts and stretches them."""
        if len(pairs) < LEAST_TO_FIT:
            return Settled(note="estimates as learnt", warning=_too_few(len(pairs), "The shift and scale of estimates"))
        texts, _ = self.readable([pair.source for pair in pairs])
        said = self.scores(model, texts)[:, 0].double()
        true = torch.tensor([float(pair.target) for pair in pairs], dtype=torch.float64)
        slope, shift = fitted_line(said, true)
        last = model.classifier[-1] if isinstance(model.classifier, nn.Sequential) else model.classifier
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(slope)
            last.bias.mul_(slope).add_(shift)
        return Settled(note=f"estimates times {slope:.2f} plus {shift:.2f}")

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare estimates with the true numbers."""
        said = [number_in(line, number) for number, line in enumerate(lines, start=1)]
        samples = [
            Sample(source=pair.source, reference=pair.target.strip(), output=f"{one:.2f}")
            for pair, one in zip(pairs, said, strict=True)
        ]
        return Judgement(scores=score_numbers(said, [float(pair.target) for pair in pairs]), samples=samples)

    def answer(self, model: Acceptor, texts: Sequence[str]) -> list[Number]:
        """The estimate for each text."""
        said = self.scores(model, texts)[:, 0].tolist()
        return [Number(number) for number in said]

    def trace(self, model: Acceptor, text: str, answer: str | None = None) -> Trace:
        """Watch the model estimate a number."""
        if answer is not None:
            raise UsageError("An estimate is one number, so that no other answer can be asked for: leave out --target.")
        ids = self.form.source.encode_batch([text])[0]
        return read_one(
            self.config,
            self.form,
            model,
            ids,
            [0],
            lambda scores: Side.of_labels([f"{scores.item():.4g}"], [0]),
            labels=(),
        )


def number_in(text: str, place: int) -> float:
    """The number that answer `place` is."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"Answer {place:,} has `{text.strip()[:40]}` where a number is wanted.") from None


def fitted_line(said: Tensor, true: Tensor) -> tuple[float, float]:
    """Slope and shift of the least squared error of slope · said + shift, N and N.

    A slope that would turn estimates round, or the same estimate for all texts, says that there is nothing to stretch:
    then only the shift is fitted.
    """
    centred = said - said.mean()
    spread = centred.square().sum().item()
    slope = (centred * (true - true.mean())).sum().item() / spread if spread > 0 else 1.0
    slope = slope if 0 < slope < math.inf else 1.0
    return slope, (true.mean() - slope * said.mean()).item()


def _too_few(count: int, what: str) -> str:
    return (
        f"{what} was not fitted: {count:,} validation texts are too few, {LEAST_TO_FIT} are needed. Give more with "
        "data.held_out or data.validation."
    )


def fitted_temperature(scores: Tensor, labels: Tensor) -> float:
    """The temperature T at which −log softmax(scores / T)[label] is least (Guo et al., 2017): N×C and N.

    By golden-section search over log T; the loss is convex in 1 / T, so there is one lowest place.
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
