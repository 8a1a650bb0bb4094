"""Text as an output: a decoder writes it token by token.

Axes: B batch, S source positions, T target positions, E output width.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.data.batches import SOURCE_FRAME, TARGET_FRAME, Batch
from regard.data.corpus import Pair
from regard.foundation.errors import UsageError
from regard.metrics.scoring import headline_metrics, score_text
from regard.models import Model, build
from regard.models.memory import Memory
from regard.objectives.exposure import expose, mixing, share_of_truth
from regard.objectives.objective import Loss, batch_loss, row_losses
from regard.search import Hypothesis
from regard.tasks.generation import TextGenerator
from regard.tasks.judgement import Judgement, Sample, Usage
from regard.tasks.outputs.output import Output, Rows
from regard.tasks.results import Nothing, Result, Text
from regard.tasks.trace import Side, Trace, check_cost, trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.specials import BOS, EOS, PAD, UNK
from regard.text.tokenizer import Tokenizer

ANSWER_METRICS = ("exact", "f1")
"""Scores of the answer to a question about a text."""


class TextOutput(Output[Model]):
    """−log P(target | source), token by token; judged by what the model writes for a sample of sources."""

    writes_text = True
    source_frame, target_frame = SOURCE_FRAME, TARGET_FRAME
    unit = "target token"
    loss_name = "nats per target token"
    judged_on_sample = True

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of what is written."""
        assert self.vocabularies.target is not None
        return self.vocabularies.target

    # Preparing data

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """Where a source is several texts, its length says nothing about that of the target."""
        given = config.data.cleaning
        return given.model_copy(update={"max_ratio": math.inf}) if config.data.train.texts > 1 else given

    def targets(self, pairs: Sequence[Pair]) -> Rows:
        """The tokens of the targets."""
        return self.tokenizer.encode_batch([pair.target for pair in pairs])

    @property
    def id_limit(self) -> int:
        """The size of the vocabulary."""
        return self.tokenizer.size

    def describe(self) -> str:
        """The vocabulary; the input describes one that both share."""
        return f"{self.tokenizer.size:,} tokens, {self.tokenizer.kind}"

    # Training

    def build(self) -> Model:
        """A model of the configured cell."""
        source = self.input.optional_tokenizer
        return build(self.config.model, source.size if source else self.tokenizer.size, self.tokenizer.size)

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Decoder inputs B×T and outputs B×T, in training with exposure as configured."""
        return self.written(inputs, batch.inputs, batch.outputs, random, training=training)

    def written(
        self, source: dict[str, Tensor], inputs: Tensor, outputs: Tensor, random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """The batch of texts to be written: every output that is not padding is asked for."""
        if training:
            exposure = self.config.training.exposure
            inputs, outputs = expose(inputs, outputs, exposure, vocabulary=self.tokenizer.size, generator=random)
        return TrainingBatch({**source, "inputs": inputs, "outputs": outputs}, int((outputs != PAD).sum()))

    def loss(
        self, model: Model, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Cross-entropy of the target, label-smoothed in training."""
        return self.loss_given(model, model.encode(batch["source"]), batch, scale=scale, point=point)

    def loss_given(
        self, model: Model, memory: Memory, batch: TrainingBatch, *, scale: float, point: TrainingPoint | None
    ) -> Loss:
        """The same for sources that have been encoded."""
        training, smoothing, mix = self.config.training, 0.0, None
        if point is not None:
            smoothing = training.label_smoothing
            share = share_of_truth(training.exposure.scheduled_sampling, point.step, point.steps)
            mix = mixing(share, point.random)
        states = model.decode(memory, batch["inputs"], mix)  # B×T×E
        return batch_loss(model, states, batch["outputs"], smoothing=smoothing, scale=scale)

    def row_losses(self, model: Model, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of target tokens of each pair."""
        states = model.decode(model.encode(batch["source"]), batch["inputs"])  # B×T×E
        return row_losses(model, states, batch["outputs"])

    # Using a model

    def generator(self, model: Model) -> TextGenerator:
        """What searches for texts with a model."""
        return TextGenerator(model, self.config, self.input, self.tokenizer)

    def answer(self, model: Model, sources: Sequence[str]) -> list[Result]:
        """The best text for each source."""
        return self.results(sources, self.generator(model).hypotheses(list(sources)))

    def results(self, sources: Sequence[str], found: Sequence[Sequence[Hypothesis]]) -> list[Result]:
        """The hypotheses for each source as an answer."""
        return [as_result(best) for best in found]

    def trace(self, model: Model, source: str, target: str | None = None) -> Trace:
        """Run the model on a source and its own output, or another one."""
        view = self.input.view(model, source)
        check_cost(model, len(view.side))
        if target is None:
            best = self.generator(model).hypotheses([source])[0]
            tokens = list(best[0].tokens) if best else []
        else:
            tokens = self.tokenizer.encode_batch([target])[0]
            self.check_target(target, tokens)
        return self.trace_tokens(model, source, tokens)

    def trace_tokens(self, model: Model, source: str, tokens: Sequence[int]) -> Trace:
        """Run the model on a source and the tokens of an output."""
        view = self.input.view(model, source)
        sides = Side.of(self.tokenizer, [*tokens, EOS]), Side.of(self.tokenizer, [BOS, *tokens])
        is_text = view.given.picture is None and view.given.content is None
        given = None if is_text else view.given.asking(sides[1].ids)
        return trace(model, view.side, *sides, tokenizer=self.tokenizer, given=given)

    def check_target(self, target: str, tokens: Sequence[int]) -> None:
        """Refuse a target with an unknown word, or one that needs more positions than the model has learned."""
        if UNK in tokens:
            word = Side.of(self.tokenizer, list(tokens)).words[list(tokens).index(UNK)] + 1
            raise UsageError(
                f'The target "{target[:80]}" has a word that this model cannot say (word {word}): use words of its '
                "vocabulary."
            )
        positions = self.config.model.learned_positions
        if positions is not None and len(tokens) >= positions:
            raise UsageError(
                f"The target has {len(tokens):,} tokens, but this model has learned {positions} positions: shorten it."
            )

    # Judging

    def readable(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return long texts whole, as they are translated piece by piece; of several texts, as much as fits."""
        if self.config.data.train.texts > 1 or not self.input.is_text:
            return self.input.shorten(sources)
        most = self.config.data.cleaning.max_characters  # a broken line must not stop training for hours
        return [text[:most] for text in sources], sum(len(text) > most for text in sources)

    def lines(self, model: Model, sources: Sequence[str], *, thorough: bool = True) -> list[str]:
        """The best texts, by the configured beam or greedily."""
        return self.generator(model).translate(list(sources), beam=None if thorough else 1)

    def metrics(self, references: Sequence[str]) -> tuple[str, ...]:
        """Return the scores that suit the references; the metric of early stopping is always among them."""
        suited = ANSWER_METRICS if self.config.data.train.texts > 1 else headline_metrics(references)
        metric = self.config.training.early_stopping.metric
        return suited if metric in (*suited, "loss") else (*suited, metric)

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare texts with the references."""
        samples = [
            Sample(source=pair.source, reference=pair.target, output=output)
            for pair, output in zip(pairs, lines, strict=True)
        ]
        references = [pair.target for pair in pairs]
        scores = score_text(lines, references, self.metrics(references))
        return Judgement(scores=scores, samples=samples)

    def usage(self, run: str, example: Pair) -> Usage:
        """Translate the example."""
        return Usage(
            shell=f"echo {shlex.quote(example.source)} | regard translate {shlex.quote(run)}",
            python=f"import regard\n\nmodel = regard.load({run!r})\nmodel.translate({example.source!r})",
        )

    def next_command(self, run: str) -> str:
        """Translate a file."""
        return f"regard translate {run} < in.txt > out.txt"


def as_result(best: Sequence[Hypothesis]) -> Result:
    """Hypotheses for one source, best first, as an answer."""
    if not best:
        return Nothing(Text)
    texts = [Text(one.text, one.score, tuple(one.log_probs)) for one in best]
    return replace(texts[0], alternatives=tuple(texts[1:]))
