"""0 → m: a decoder without memory writes text from nothing, or from its beginning.

Axes: B batch, T target positions.
"""

import shlex
from collections.abc import Sequence

import torch

from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.metrics.scoring import Scores
from regard.models import Model
from regard.objectives.exposure import expose
from regard.tasks.reading import predicting
from regard.tasks.task import Judgement, Lesson, Sample, Shape, Usage
from regard.tasks.translation import Translation, written
from regard.tasks.writer import Writer
from regard.text.specials import BOS, PAD

SHOWN = 3
"""Continuations of each validation: one is seen, and the card shows a few."""
GIVEN = 6
"""Words that a continuation begins with."""


class LanguageModel(Translation):
    """−log P(text), word by word; perplexity through a sliding window is the judgement."""

    title = "A language model"
    unit = "token"
    loss_name = "nats per token"
    answers = False

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """No source B×0, inputs B×T and outputs B×T; where a document begins anew, nothing is asked for."""
        inputs, outputs = batch.inputs, batch.outputs.masked_fill(batch.outputs == BOS, PAD)
        if learning:
            exposure, size = self.config.training.exposure, self.form.target.size
            inputs, outputs = expose(inputs, outputs, exposure, vocabulary=size, generator=random)
        return written(batch.source, inputs, outputs)

    def judge(self, model: Model, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Continue a few documents from their first words, greedily; there is no score but perplexity."""
        writer = Writer(model, self.config, self.form.target)
        texts = [pair.source.split() for pair in pairs[:SHOWN]]
        begun = [" ".join(text[:GIVEN]) for text in texts]
        samples = [
            Sample(source=start, reference=" ".join(text[GIVEN:]), output=best[0].text if best else "")
            for start, text, best in zip(begun, texts, writer.hypotheses(begun, beam=1), strict=True)
        ]
        return Judgement(scores=Scores(values={}, sentences=len(samples)), samples=samples)

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Refused: what goes on from a text has no right answer."""
        return Shape.grade(self, lines, pairs)

    def usage(self, place: str, example: Pair) -> Usage:
        """Write on from the example's first words."""
        start = " ".join(example.source.split()[:GIVEN])
        return Usage(
            shell=f"regard generate {shlex.quote(place)} --prompt {shlex.quote(start)} --sample",
            python=predicting(place, start),
        )

    def next_command(self, place: str) -> str:
        """Write something."""
        return f'regard generate {place} --prompt "…" --sample'
