"""Documents: text without a source, for language models.

Axes: B batch, T target positions.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.config.task import LanguageModel
from regard.data.batches import Batch, Batches, Frame
from regard.data.corpus import Pair
from regard.data.packing import PackedBatches
from regard.data.store import TokenStore
from regard.foundation.errors import UsageError
from regard.metrics.scoring import Scores
from regard.models import Model
from regard.search import Hypothesis
from regard.tasks.judgement import Judgement, Sample, Usage
from regard.tasks.outputs.decoded import DecodedOutput, as_result
from regard.tasks.outputs.output import Rows, python_call
from regard.tasks.results import Result
from regard.tasks.trace import Side, Trace, trace
from regard.tasks.training_batch import TrainingBatch
from regard.text.specials import BOS, EOS, PAD
from regard.text.tokenizer import Tokenizer

ANY_LENGTH = 1 << 40
SHOWN = 3
"""Number of continuations in each validation: one is printed, and the card shows a few."""
GIVEN = 6
"""Number of words of the document that a continuation begins with."""


class DocumentOutput(DecodedOutput):
    """Loss −log P(text), token by token; evaluated by perplexity with a sliding window.

    The text of an example is its source; a store keeps a document as the target, without a source.
    """

    source_frame = Frame((BOS,), ())
    any_text = True
    unit = "token"
    loss_name = "nats per token"
    gives_answers = False

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of documents."""
        return self.input.tokenizer

    @property
    def settings(self) -> LanguageModel:
        """The section of this task."""
        assert isinstance(self.config.task, LanguageModel)
        return self.config.task

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """Return the cleaning settings without limits on length."""
        return config.data.cleaning.model_copy(update={"max_characters": ANY_LENGTH, "max_length": ANY_LENGTH})

    def targets(self, pairs: Sequence[Pair]) -> Rows:
        """Return the tokens of the documents."""
        return self.tokenizer.encode_batch([pair.source for pair in pairs])

    def batches(self, store: TokenStore, *, rank: int, world_size: int) -> Batches:
        """Windows of documents."""
        training, (length, stride) = self.config.training, self.settings.window
        return PackedBatches(
            store, training.batch_tokens, training.seed, rank, world_size, length=length, stride=stride
        )

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return inputs B×T and outputs B×T; the start symbol of the next document is not predicted."""
        outputs = batch.outputs.masked_fill(batch.outputs == BOS, PAD)
        return self.decoder_batch(inputs, batch.inputs, outputs, random, training=training)

    def whole(self, prompt: str, hypothesis: Hypothesis) -> str:
        """Return a prompt and its continuation as one text."""
        given = self.tokenizer.encode_batch([prompt])[0]
        return self.tokenizer.decode([*given, *hypothesis.tokens])

    def results(self, sources: Sequence[str], found: Sequence[Sequence[Hypothesis]]) -> list[Result]:
        """Return whole texts that begin with the prompts."""
        return [
            as_result([replace(hypothesis, text=self.whole(prompt, hypothesis)) for hypothesis in best])
            for prompt, best in zip(sources, found, strict=True)
        ]

    def trace(self, model: Model, source: str, target: str | None = None) -> Trace:
        """Trace the model on a text, all of whose tokens it predicts."""
        if target is not None:
            raise UsageError("A language model has no source apart from its text. Give one text and no target.")
        if not source.strip():
            raise UsageError("The text is empty. Give a text to analyse.")
        tokenizer = self.tokenizer
        ids = tokenizer.encode_batch([source])[0]
        positions = self.config.model.learned_positions
        if positions is not None and len(ids) >= positions:
            raise UsageError(
                f"The text has {len(ids):,} tokens, but this model has learned {positions} positions. Shorten it."
            )
        nothing, outputs, inputs = (Side.of(tokenizer, side) for side in ([], [*ids, EOS], [BOS, *ids]))
        return trace(model, nothing, outputs, inputs, tokenizer=tokenizer)

    def judge(self, model: Model, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Continue a few documents from their first words by greedy search; perplexity is the only score."""
        texts = [pair.source.split() for pair in pairs[:SHOWN]]
        begun = [" ".join(text[:GIVEN]) for text in texts]
        found = self.generator(model).hypotheses(begun, beam=1)
        samples = [
            Sample(source=start, reference=" ".join(text[GIVEN:]), output=best[0].text if best else "")
            for start, text, best in zip(begun, texts, found, strict=True)
        ]
        return Judgement(scores=Scores(values={}, sentences=len(samples)), samples=samples)

    def usage(self, run: str, example: Pair) -> Usage:
        """Continue the example's first words."""
        start = " ".join(example.source.split()[:GIVEN])
        return Usage(
            shell=f"regard generate {shlex.quote(run)} --prompt {shlex.quote(start)} --sample",
            python=python_call(run, start),
        )

    def next_command(self, run: str) -> str:
        """Generate something."""
        return f'regard generate {run} --prompt "…" --sample'
