"""The whole configuration of a run."""

from typing import Self

from regard.config.cell import resolve, settled
from regard.config.data import Data
from regard.config.decoding import Decoding
from regard.config.model import Model
from regard.config.section import Section
from regard.config.shape import Shape, Translation
from regard.config.text import Text
from regard.config.training import Training
from regard.errors import UsageError

LEAST_WITH_BYTES = 263
"""Six special tokens, a token for each byte, and one more: the smallest vocabulary that can spell everything."""


class RunConfig(Section):
    """One file describes one run: what it learns from, what it is, how it learns, how it speaks."""

    shape: Shape = Translation()
    """What goes in and what comes out."""
    data: Data
    """Corpora and cleaning."""
    text: Text = Text()
    """Tokenizers."""
    model: Model = Model()
    """The cell of the grid."""
    training: Training = Training()
    """The course of training."""
    decoding: Decoding = Decoding()
    """The default search."""

    def resolved(self) -> Self:
        """The same configuration with every default that depends on others filled in; refuses what cannot work."""
        model = resolve(
            self.model,
            shared_vocabulary=self.text.shared,
            encoder_wanted=self.shape.encoder,
            decoder_wanted=self.shape.decoder,
        )
        _check_positions(model, self.data.cleaning.max_length)
        _check_dropout(self.text)
        _check_vocabulary(self.text)
        return self.model_copy(update={"model": model, "training": _resolved_training(self.training, model.width)})

    @property
    def cell(self) -> str:
        """What the model is, in a few words: its cell of the grid, and what comes out if that is not text."""
        return self.model.cell if self.shape.decoder else f"{self.model.cell} → {self.shape.head}"


def _resolved_training(training: Training, width: int) -> Training:
    """The course of training with its peak rate and its warm-up."""
    optimizer, schedule = training.optimizer, training.schedule
    if optimizer.learning_rate is None:
        rate = 0.5 if optimizer.kind == "sgd" else min(0.002, 0.002 * (256 / width) ** 0.5)
        optimizer = optimizer.model_copy(update={"learning_rate": rate})
    if schedule.warmup is None:
        schedule = schedule.model_copy(update={"warmup": min(400, training.steps // 5)})
    return training.model_copy(update={"optimizer": optimizer, "schedule": schedule})


def _check_positions(model: Model, longest: int) -> None:
    positions = settled(model.positions)
    if positions.kind == "learned" and positions.max_length <= longest:
        raise UsageError(
            f"model.positions.max_length is {positions.max_length}, but data.cleaning.max_length lets in texts of "
            f"{longest} tokens and an end symbol: make it at least {longest + 1}."
        )


def _check_vocabulary(text: Text) -> None:
    for place, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if tokenizer.kind != "words" and tokenizer.vocabulary is not None and tokenizer.vocabulary < LEAST_WITH_BYTES:
            raise UsageError(
                f"{place}.vocabulary is {tokenizer.vocabulary}, but kind `{tokenizer.kind}` needs at least "
                f"{LEAST_WITH_BYTES}: the special tokens, 256 bytes and a letter."
            )


def _check_dropout(text: Text) -> None:
    for place, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if text.bpe_dropout and tokenizer.kind != "bpe":
            raise UsageError(
                f"text.bpe_dropout drops merges, and {place} of kind `{tokenizer.kind}` has none: "
                "use kind `bpe`, or leave it at 0."
            )
