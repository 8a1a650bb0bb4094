"""n → m: an encoder reads the source, a decoder writes the target.

Axes: B batch, S source positions, T target positions, E output width.
"""

import shlex
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.metrics.scoring import headline_metrics, score_text
from regard.models import Model, build
from regard.objectives.exposure import expose, mixing, share_of_truth
from regard.objectives.objective import Loss, batch_loss, row_losses
from regard.tasks.reading import fit_texts
from regard.tasks.task import Course, Judgement, Lesson, Sample, Shape, Usage
from regard.tasks.translator import Translator
from regard.text.specials import PAD

ANSWERED = ("exact", "f1")
"""Scores of the answer to a question about a text."""


class Translation(Shape[Model]):
    """−log P(target | source), word by word; judged by what the model writes for a sample of sources."""

    title = "A sequence-to-sequence model"
    unit = "target token"
    loss_name = "nats per target token"
    sampled = True

    def build(self) -> Model:
        """A model of the configured cell."""
        return build(self.config.model, self.form.source.size, self.form.target.size)

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Source B×S, decoder inputs B×T and outputs B×T, in learning exposed as configured."""
        inputs, outputs = batch.inputs, batch.outputs
        if learning:
            exposure, size = self.config.training.exposure, self.form.target.size
            inputs, outputs = expose(inputs, outputs, exposure, vocabulary=size, generator=random)
        return written(batch.source, inputs, outputs)

    def loss(self, model: Model, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """Cross-entropy of the target, label-smoothed in learning."""
        training, smoothing, mix = self.config.training, 0.0, None
        if course is not None:
            smoothing = training.label_smoothing
            share = share_of_truth(training.exposure.scheduled_sampling, course.step, course.steps)
            mix = mixing(share, course.random)
        states = model.decode(model.encode(lesson["source"]), lesson["inputs"], mix)  # B×T×E
        return batch_loss(model, states, lesson["outputs"], smoothing=smoothing, scale=scale)

    def row_losses(self, model: Model, lesson: Lesson) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of target tokens of each pair."""
        states = model.decode(model.encode(lesson["source"]), lesson["inputs"])  # B×T×E
        return row_losses(model, states, lesson["outputs"])

    def metrics(self, references: Sequence[str]) -> tuple[str, ...]:
        """Return the scores that suit the references; the metric of early stopping is always among them."""
        suited = ANSWERED if self.config.data.train.texts > 1 else headline_metrics(references)
        metric = self.config.training.early_stopping.metric
        return suited if metric in (*suited, "loss") else (*suited, metric)

    def readable(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Return texts, long ones whole: they are translated piece by piece. Of several texts, as much as fits."""
        if self.config.data.train.texts > 1:
            return fit_texts(self.config, self.form.source, texts)
        most = self.config.data.cleaning.max_characters  # a broken line must not stop training for hours
        return [text[:most] for text in texts], sum(len(text) > most for text in texts)

    def written(self, model: Model, texts: Sequence[str], *, thorough: bool = True) -> list[str]:
        """Translations, by the configured beam or greedily."""
        translator = Translator(model, self.config, self.form.source, self.form.target)
        return translator.translate(list(texts), beam=None if thorough else 1)

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare translations with the references."""
        samples = [
            Sample(source=pair.source, reference=pair.target, output=output)
            for pair, output in zip(pairs, lines, strict=True)
        ]
        references = [pair.target for pair in pairs]
        scores = score_text(lines, references, self.metrics(references))
        return Judgement(scores=scores, samples=samples)

    def usage(self, place: str, example: Pair) -> Usage:
        """Translate the example."""
        return Usage(
            shell=f"echo {shlex.quote(example.source)} | regard translate {shlex.quote(place)}",
            python=f"import regard\n\nmodel = regard.load({place!r})\nmodel.translate({example.source!r})",
        )

    def next_command(self, place: str) -> str:
        """Translate a file."""
        return f"regard translate {place} < in.txt > out.txt"


def written(source: Tensor, inputs: Tensor, outputs: Tensor) -> Lesson:
    """The lesson of a text to be written: every output that is not padding is asked for."""
    return Lesson({"source": source, "inputs": inputs, "outputs": outputs}, int((outputs != PAD).sum()))
