"""The whole configuration of a run."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field

from regard.config.cell import resolve, settled
from regard.config.data import Data, kind_of_corpus
from regard.config.decoding import Decoding
from regard.config.model import AttentionJoin, ImageEncoder, Model
from regard.config.section import Section
from regard.config.shape import Captions, Shape, Translation
from regard.config.text import Text
from regard.config.training import Exposure, Training
from regard.foundation.errors import UsageError

LEAST_WITH_BYTES = 263
"""Six special tokens, a token for each byte, and one more: the smallest vocabulary that can spell everything."""


READ = ("sentencepiece", "wordpiece")
"""Kinds of tokenizer that are read, not learnt."""


class RunConfig(Section):
    """One file describes one run: what it learns from, what it is, how it learns, how it speaks."""

    data: Data
    """Corpora and cleaning."""
    shape: Shape = Translation()
    """What goes in and what comes out."""
    text: Text = Text()
    """Tokenizers."""
    model: Model = Model()
    """The cell of the grid."""
    training: Training = Training()
    """The course of training."""
    decoding: Decoding = Decoding()
    """The default search."""
    plugins: list[str] = Field(default_factory=list)
    """Extension modules to import before anything else is read; a run lists those that it needs."""

    def resolved(self) -> Self:
        """The same configuration with every default that depends on others filled in; refuses what cannot work."""
        model = resolve(
            _with_eyes(self.model) if self.shape.pictures and not self.shape.beside else self.model,
            shared_vocabulary=self.text.shared,
            encoder_wanted=self.shape.encoder,
            decoder_wanted=self.shape.decoder,
            picture_wanted=self.shape.beside,
            beside=self.shape.attentions,
        )
        _check_corpora(self.shape, self.data)
        _check_training(self.shape, self.training, self.model.start_from)
        _check_captions(self.shape, model)
        _check_positions(model, self.data.cleaning.max_length)
        _check_dropout(self.text, self.shape)
        _check_vocabulary(self.text)
        _check_sentencepiece(self.text)
        plugins = list(dict.fromkeys([*self.plugins, *model.plugins, *self.data.plugins]))
        training = _resolved_training(self.training, model.width)
        return self.model_copy(update={"model": model, "training": training, "plugins": plugins})

    def refuse_out_of_place(self, said: Mapping[str, Any]) -> None:
        """Refuse settings that mean nothing in this shape; a preset may bring them, but nobody should write them.

        What is empty or nought says nothing, and a run's own file has it.
        """
        for path in self.shape.out_of_place:
            value: Any = said
            for name in path.split("."):
                value = value.get(name) if isinstance(value, Mapping) else None
            if value:
                raise UsageError(
                    f"{path} has no place in shape `{self.shape.kind}` ({self.shape.arrow}): leave it out."
                )
        model = said.get("model")
        encoder = model.get("encoder") if isinstance(model, Mapping) else None
        kind = encoder.get("kind") if isinstance(encoder, Mapping) else None
        final = self.model.encoder.kind if self.model.encoder and self.shape.encoder else None
        sees = self.shape.pictures and not self.shape.beside
        if kind is not None and kind == final and (kind == "image") != sees:
            reads, wanted = ("pictures", "text") if kind == "image" else ("text", "pictures")
            other = "another kind" if kind == "image" else "kind `image`"
            raise UsageError(
                f"model.encoder.kind `{kind}` reads {reads}, but shape `{self.shape.kind}` ({self.shape.arrow}) reads "
                f"{wanted}: use {other}, or set shape.kind."
            )

    @property
    def cell(self) -> str:
        """What the model is, in a few words: its cell of the grid, and what comes out if that is not text."""
        return self.model.cell if self.shape.decoder else f"{self.model.cell} → {self.shape.head}"


def _resolved_training(training: Training, width: int) -> Training:
    """The course of training with its peak rate and its warm-up."""
    optimizer, schedule = training.optimizer, training.schedule
    if optimizer.learning_rate is None:
        most = 0.006 if optimizer.kind == "muon" else 0.002
        rate = 0.5 if optimizer.kind == "sgd" else most * min(1.0, (256 / width) ** 0.5)
        optimizer = optimizer.model_copy(update={"learning_rate": rate})
    if schedule.warmup is None:
        schedule = schedule.model_copy(update={"warmup": min(400, training.steps // 5)})
    return training.model_copy(update={"optimizer": optimizer, "schedule": schedule})


_BESIDE = {
    True: "one with each: set question_column (question_field), or generate: questions",
    False: "pictures alone: set shape.kind to questions, or leave the questions out",
}
"""What to do about questions beside pictures, by whether they are wanted."""


def _check_corpora(shape: Shape, data: Data) -> None:
    corpora = {"train": data.train, "validation": data.validation, "test": data.test}
    for name, corpus in corpora.items():
        if corpus is None:
            continue
        if (kind := kind_of_corpus(corpus)) not in (*shape.corpora, "reader"):
            raise UsageError(
                f"data.{name} is a corpus of the sort `{kind}`, but shape `{shape.kind}` ({shape.arrow}) learns from "
                f"{' or '.join(shape.corpora)}: give it one of those, or set shape.kind."
            )
        if corpus.pictures != shape.pictures:
            has, reads = ("pictures", "text") if corpus.pictures else ("text", "pictures")
            raise UsageError(
                f"data.{name} has {has} for sources, but shape `{shape.kind}` ({shape.arrow}) reads {reads}: give it "
                "another corpus, or set shape.kind."
            )
        if shape.pictures and (corpus.texts > 1) != shape.beside:
            raise UsageError(
                f"data.{name} has {'no question' if shape.beside else 'questions'} beside its pictures, but shape "
                f"`{shape.kind}` reads {_BESIDE[shape.beside]}."
            )
        if corpus.texts != data.train.texts:
            raise UsageError(
                f"data.{name} has sources of {_texts(corpus.texts)}, but data.train of {_texts(data.train.texts)}: "
                "give both the same."
            )
    if data.joined and data.train.texts > 1:
        raise UsageError(
            f"data.joined puts pairs one behind another, but sources are {_texts(data.train.texts)} here: leave it out."
        )


def _with_eyes(model: Model) -> Model:
    """The same cell with an encoder of pictures, where nobody has said which."""
    seeing = isinstance(model.encoder, ImageEncoder)
    return model if seeing else model.model_copy(update={"encoder": ImageEncoder()})


def _check_captions(shape: Shape, model: Model) -> None:
    if not isinstance(shape, Captions):
        return
    if shape.doubly_stochastic and not isinstance(model.join, AttentionJoin):
        raise UsageError(
            "shape.doubly_stochastic is about where attention looks, and model.join is a fixed vector: leave it out, "
            "or set model.join.kind=attention."
        )
    assert isinstance(model.encoder, ImageEncoder)
    if shape.shift >= model.encoder.size:
        raise UsageError(
            f"shape.shift is {shape.shift}, but pictures are only {model.encoder.size} pixels wide: use a few."
        )


def _texts(count: int) -> str:
    return "one text" if count == 1 else f"{count} texts"


def _check_training(shape: Shape, training: Training, start_from: str | None) -> None:
    if not shape.decoder and training.exposure != Exposure():
        raise UsageError(
            f"training.exposure is about the words that a decoder reads, and shape `{shape.kind}` ({shape.arrow}) has "
            "none: leave it out."
        )
    if training.tune != "all" and training.frozen:
        raise UsageError("training.tune and training.frozen both say what must not change: use one of them.")
    if training.tune != "all" and not start_from:
        raise UsageError(
            f"training.tune `{training.tune}` is about weights taken over from another run: set model.start_from."
        )
    metric = training.early_stopping.metric
    if metric != "loss" and metric not in shape.scores:
        raise UsageError(
            f"training.early_stopping.metric `{metric}` does not judge shape `{shape.kind}` ({shape.arrow}): use loss, "
            f"{', '.join(shape.scores)}."
        )


def _check_positions(model: Model, longest: int) -> None:
    positions = settled(model.positions)
    if positions.kind == "learned" and positions.max_length <= longest:
        raise UsageError(
            f"model.positions.max_length is {positions.max_length}, but data.cleaning.max_length lets in texts of "
            f"{longest} tokens and an end symbol: make it at least {longest + 1}."
        )


def _check_vocabulary(text: Text) -> None:
    for place, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if (
            tokenizer.kind not in ("words", *READ)
            and tokenizer.vocabulary is not None
            and tokenizer.vocabulary < LEAST_WITH_BYTES
        ):
            raise UsageError(
                f"{place}.vocabulary is {tokenizer.vocabulary}, but kind `{tokenizer.kind}` needs at least "
                f"{LEAST_WITH_BYTES}: the special tokens, 256 bytes and a letter."
            )


def _check_sentencepiece(text: Text) -> None:
    for place, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if tokenizer.kind in READ and tokenizer.model is None:
            raise UsageError(
                f"{place} of kind `{tokenizer.kind}` needs a trained model: set {place}.model to its file."
            )
        if tokenizer.kind not in READ and tokenizer.model is not None:
            raise UsageError(
                f"{place}.model is a setting of kind `sentencepiece` or `wordpiece`, and this one is "
                f"`{tokenizer.kind}`: set {place}.kind to one of these, or leave it out."
            )
        if tokenizer.kind in READ and tokenizer.vocabulary is not None:
            raise UsageError(
                f"{place}.vocabulary is {tokenizer.vocabulary}, but that of a trained model is its own: leave it out."
            )


def _check_dropout(text: Text, shape: Shape) -> None:
    if text.bpe_dropout and not shape.cut_anew:
        raise UsageError(
            f"text.bpe_dropout cuts words anew each time, and shape `{shape.kind}` ({shape.arrow}) keeps its tokens in "
            "place: leave it at 0."
        )
    for place, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if text.bpe_dropout and tokenizer.kind != "bpe":
            raise UsageError(
                f"text.bpe_dropout drops merges, and {place} of kind `{tokenizer.kind}` has none: "
                "use kind `bpe`, or leave it at 0."
            )
