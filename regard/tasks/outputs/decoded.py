"""Base class of outputs that a decoder generates, with or without a source.

Axes: B batch, S source positions, T target positions, E output width.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.data.batches import TARGET_FRAME, Batch
from regard.models import Model, build
from regard.models.memory import Memory
from regard.objectives.exposure import expose, make_mix, share_of_truth
from regard.objectives.objective import Loss, batch_loss, coverage_loss, row_losses
from regard.search import Hypothesis
from regard.tasks.generation import TextGenerator
from regard.tasks.outputs.output import Output
from regard.tasks.results import Nothing, Result, Text
from regard.tasks.trace import Side, Trace, trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.specials import BOS, EOS, PAD
from regard.text.tokenizer import Tokenizer


class DecodedOutput(Output[Model]):
    """Loss −log P(target | source), token by token, and search for the best texts."""

    target_frame = TARGET_FRAME
    unit = "target token"
    loss_name = "nats per target token"
    judged_on_sample = True

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of generated texts."""
        assert self.vocabularies.target is not None
        return self.vocabularies.target

    @property
    def id_limit(self) -> int:
        """The size of the vocabulary."""
        return self.tokenizer.size

    def describe(self) -> str:
        """Return a short description of the vocabulary; the input describes a shared one."""
        return f"{self.tokenizer.size:,} tokens, {self.tokenizer.kind}"

    # Training

    def build(self) -> Model:
        """Build the configured model."""
        source = self.input.optional_tokenizer
        return build(self.config.model, source.size if source else self.tokenizer.size, self.tokenizer.size)

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return decoder inputs B×T and outputs B×T, in training with the configured noise."""
        return self.decoder_batch(inputs, batch.inputs, batch.outputs, random, training=training)

    def decoder_batch(
        self, source: dict[str, Tensor], inputs: Tensor, outputs: Tensor, random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return the training batch of a decoder; every output that is not padding counts in the loss."""
        if training:
            exposure = self.config.training.exposure
            inputs, outputs = expose(inputs, outputs, exposure, vocabulary=self.tokenizer.size, generator=random)
        return TrainingBatch({**source, "inputs": inputs, "outputs": outputs}, int((outputs != PAD).sum()))

    def loss(
        self, model: Model, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Return the cross-entropy of the target, label-smoothed in training."""
        return self.loss_given(model, model.encode(batch["source"]), batch, scale=scale, point=point)

    def loss_given(
        self, model: Model, memory: Memory, batch: TrainingBatch, *, scale: float, point: TrainingPoint | None
    ) -> Loss:
        """Return the same loss for encoded sources."""
        training, smoothing, mix = self.config.training, 0.0, None
        if point is not None:
            smoothing = training.label_smoothing
            share = share_of_truth(training.exposure.scheduled_sampling, point.step, point.steps)
            mix = make_mix(share, point.random)
        states = model.decode(memory, batch["inputs"], mix)  # B×T×E
        loss = batch_loss(model, states, batch["outputs"], smoothing=smoothing, scale=scale)
        if point is None or not training.coverage:
            return loss
        repeated = coverage_loss(model, states, batch["outputs"])
        return loss._replace(smoothed=loss.smoothed + training.coverage * scale * repeated)

    def row_losses(self, model: Model, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of target tokens of each pair."""
        states = model.decode(model.encode(batch["source"]), batch["inputs"])  # B×T×E
        return row_losses(model, states, batch["outputs"])

    # Using a model

    def generator(self, model: Model) -> TextGenerator:
        """Return a text generator for a model."""
        return TextGenerator(model, self.config, self.input, self.tokenizer)

    def answer(self, model: Model, sources: Sequence[str]) -> list[Result]:
        """Return the best text for each source."""
        return self.results(sources, self.generator(model).hypotheses(list(sources)))

    def results(self, sources: Sequence[str], found: Sequence[Sequence[Hypothesis]]) -> list[Result]:
        """Convert the hypotheses for each source to results."""
        return [as_result(best) for best in found]

    def trace_tokens(self, model: Model, source: str, tokens: Sequence[int]) -> Trace:
        """Run the model on a source and the tokens of an output."""
        view = self.input.view(model, source)
        sides = Side.of(self.tokenizer, [*tokens, EOS]), Side.of(self.tokenizer, [BOS, *tokens])
        is_text = view.given.picture is None and view.given.content is None
        given = None if is_text else view.given.asking(sides[1].ids)
        return trace(model, view.side, *sides, tokenizer=self.tokenizer, given=given)

    def readable(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return long texts whole, since they are translated in pieces; sources of several texts are truncated."""
        if self.config.data.train.texts > 1 or not self.input.is_text or self.config.task.cuts_long_sources:
            return self.input.shorten(sources)
        most = self.config.data.cleaning.max_characters  # a malformed line must not block training for hours
        return [text[:most] for text in sources], sum(len(text) > most for text in sources)


def as_result(best: Sequence[Hypothesis]) -> Result:
    """Convert the hypotheses for one source, best first, to a result."""
    if not best:
        return Nothing(Text)
    texts = [
        Text(hypothesis.text, hypothesis.score, tuple(hypothesis.log_probs), confidence=hypothesis.confidence)
        for hypothesis in best
    ]
    return replace(texts[0], alternatives=tuple(texts[1:]))
