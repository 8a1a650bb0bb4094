"""The whole configuration of a run."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field

from regard.config.cell import resolve, resolved
from regard.config.data import Data, kind_of_corpus
from regard.config.decoding import CTC_IN_SEARCH, Decoding
from regard.config.model import ENCODERS, AttentionJoin, ImageEncoder, Model, SoundEncoder, TransformerEncoder
from regard.config.section import Section
from regard.config.task import (
    INPUTS,
    TASKS,
    Captioning,
    ImageClassification,
    SoundTask,
    SpeechRecognition,
    TaskSettings,
    Translation,
)
from regard.config.text import Text
from regard.config.training import Exposure, Training
from regard.foundation.errors import UsageError

LEAST_WITH_BYTES = 263
"""Six special tokens, a token for each byte, and one more: the smallest vocabulary that can spell any text."""


READ = ("sentencepiece", "wordpiece")
"""Kinds of tokenizer that are read from a file instead of trained."""


class RunConfig(Section):
    """The configuration of one run: data, text, task, model, training and decoding."""

    data: Data
    """Corpora and cleaning."""
    task: Annotated[TaskSettings, TASKS] = Translation()
    """The task: its input and output."""
    text: Text = Text()
    """Tokenizers."""
    model: Model = Model()
    """The model."""
    training: Training = Training()
    """Training settings."""
    decoding: Decoding = Decoding()
    """Default search settings."""
    plugins: list[str] = Field(default_factory=list)
    """Extension modules to import first; a run lists those that it needs."""

    def resolved(self) -> Self:
        """Return the configuration with dependent defaults filled in; raises for settings that cannot work."""
        reads = self.task.input_kind()
        model = resolve(
            _with_encoder_for(self.task, self.model),
            shared_vocabulary=self.text.shared,
            encoder_wanted=reads.encoder,
            decoder_wanted=self.task.output_kind().decoder,
            picture_wanted=reads.image and reads.text,
            added_attentions=self.task.attentions,
        )
        _check_corpora(self.task, self.data)
        _check_training(self.task, self.training, self.model.start_from)
        _check_image_settings(self.task, model)
        _check_copying(self.task, model, self.training)
        _check_fields(self.task, model, self.decoding)
        _check_letters(self.task, model, self.text)
        _check_positions(model, self.data.cleaning.max_length)
        _check_sound_positions(self.task, model)
        _check_dropout(self.text, self.task)
        _check_vocabulary(self.text)
        _check_sentencepiece(self.text)
        own = TASKS.plugin_of(self.task.kind)
        needed = [*self.plugins, *([own] if own else []), *model.plugins, *self.data.plugins, *self.training.plugins]
        plugins = list(dict.fromkeys(needed))
        training = _resolve_training(self.training, model.width)
        decoding = _resolve_decoding(self.decoding, self.task)
        updates = {"model": model, "training": training, "decoding": decoding, "plugins": plugins}
        return self.model_copy(update=updates)

    def refuse_unused(self, values: Mapping[str, Any]) -> None:
        """Raise if settings have no effect on this task; a preset may have them, but a user should not write them.

        Empty values are ignored, since the file of a run has them.
        """
        task = self.task
        for path in task.has_no_use_for():
            if _value_at(values, path):
                raise UsageError(f"{path} has no effect on task `{task.kind}` ({task.arrow}). Remove it.")
        kind = _value_at(values, "model.encoder.kind")
        if kind is None or self.model.encoder is None or kind != self.model.encoder.kind:
            return
        wanted = encoders_for(task)
        if kind not in wanted:
            raise UsageError(
                f"model.encoder.kind `{kind}` cannot read {task.input_kind().reads}, which is the input of task "
                f"`{task.kind}` "
                f"({task.arrow}). Use {' or '.join(f'`{kind}`' for kind in wanted)}, or set task.kind."
            )

    def refuse_unused_ctc(self, values: Mapping[str, Any]) -> None:
        """Raise if a user gives CTC a weight in search, but the model has no CTC layer; 0 is accepted anywhere."""
        task = self.task
        if task.has_ctc or not _value_at(values, "decoding.ctc"):
            return
        if isinstance(task, SpeechRecognition):
            raise UsageError(
                "decoding.ctc has no effect: task.ctc is 0, so the model has no CTC layer that search could use. "
                "Remove decoding.ctc, or train a model with task.ctc above 0."
            )
        raise UsageError(
            f"decoding.ctc has no effect on task `{task.kind}` ({task.arrow}): only speech recognition uses CTC in "
            "search. Remove it."
        )

    @property
    def cell(self) -> str:
        """A short description of the model, with its output if that is not text."""
        writes = self.task.output_kind()
        return self.model.cell if writes.decoder else f"{self.model.cell} → {writes.name}"


def _value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path in the content of a file; `None` if there is none."""
    value: Any = values
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _resolve_decoding(decoding: Decoding, task: TaskSettings) -> Decoding:
    """Return the search settings with the weight of CTC filled in; it is not set for models without a CTC layer."""
    weight = (CTC_IN_SEARCH if decoding.ctc is None else decoding.ctc) if task.has_ctc else None
    return decoding.model_copy(update={"ctc": weight})


def _resolve_training(training: Training, width: int) -> Training:
    """Return the training settings with learning rate and warm-up filled in."""
    optimizer, schedule = training.optimizer, training.schedule
    if optimizer.learning_rate is None:
        most = 0.006 if optimizer.kind == "muon" else 0.002
        rate = 0.5 if optimizer.kind == "sgd" else most * min(1.0, (256 / width) ** 0.5)
        optimizer = optimizer.model_copy(update={"learning_rate": rate})
    if schedule.warmup is None:
        schedule = schedule.model_copy(update={"warmup": min(400, training.steps // 5)})
    return training.model_copy(update={"optimizer": optimizer, "schedule": schedule})


_QUESTIONS = {
    True: "one with each. Set question_column (question_field), or generate: questions",
    False: "pictures alone. Set task.kind to visual-questions, or leave the questions out",
}
"""What to do about questions on images, by whether the task reads them."""


def encoders_for(task: TaskSettings) -> tuple[str, ...]:
    """Return the kinds of encoder that can read the input of a task."""
    other = {kind for reads in INPUTS.values() for kind in reads.encoders or ()}
    return task.input_kind().encoders or tuple(kind for kind in ENCODERS if kind not in other)


def _check_corpora(task: TaskSettings, data: Data) -> None:
    reads = task.input_kind()
    corpora = {"train": data.train, "validation": data.validation, "test": data.test}
    for name, corpus in corpora.items():
        if corpus is None:
            continue
        if (kind := kind_of_corpus(corpus)) not in (*task.corpora, "reader"):
            raise UsageError(
                f"data.{name} is a corpus of kind `{kind}`, but task `{task.kind}` ({task.arrow}) is trained on "
                f"{' or '.join(task.corpora)}. Give it one of those, or set task.kind."
            )
        if corpus.pictures != reads.image and kind != "reader":
            has, wanted = ("pictures", "text") if corpus.pictures else ("text", "pictures")
            raise UsageError(
                f"data.{name} has {has} for sources, but task `{task.kind}` ({task.arrow}) reads {wanted}. Give it "
                "another corpus, or set task.kind."
            )
        if reads.image and (corpus.texts > 1) != reads.text:
            raise UsageError(
                f"data.{name} has {'no question' if reads.text else 'questions'} with its pictures, but task "
                f"`{task.kind}` reads {_QUESTIONS[reads.text]}."
            )
        if corpus.texts != data.train.texts:
            raise UsageError(
                f"data.{name} has sources of {_texts(corpus.texts)}, but data.train of {_texts(data.train.texts)}. "
                "Give both the same number."
            )
    if data.joined and data.train.texts > 1:
        raise UsageError(f"data.joined concatenates pairs, but sources are {_texts(data.train.texts)} here. Remove it.")


def _with_encoder_for(task: TaskSettings, model: Model) -> Model:
    """Return the model with an encoder for the input of the task, if the configuration names none."""
    wanted = task.input_kind().encoders
    if wanted is None or (model.encoder is not None and model.encoder.kind in wanted):
        return model
    return model.model_copy(update={"encoder": ENCODERS[wanted[0]].model_validate({})})


def _check_image_settings(task: TaskSettings, model: Model) -> None:
    if isinstance(task, Captioning) and task.doubly_stochastic and not isinstance(model.join, AttentionJoin):
        raise UsageError(
            "task.doubly_stochastic is a penalty on attention, but model.join is a fixed vector. Remove it, or set "
            "model.join.kind=attention."
        )
    size = model.encoder.size if isinstance(model.encoder, ImageEncoder) else None
    if size is not None and isinstance(task, Captioning | ImageClassification) and task.shift >= size:
        raise UsageError(f"task.shift is {task.shift}, but images are only {size} pixels wide. Make it smaller.")


def _check_copying(task: TaskSettings, model: Model, training: Training) -> None:
    reads = task.input_kind()
    if training.coverage and not model.copying:
        raise UsageError(
            "training.coverage concerns the pointer of a model that copies. Set model.copying=true, or remove it."
        )
    if model.copying and training.exposure.scheduled_sampling.kind != "none":
        raise UsageError(
            "training.exposure.scheduled_sampling replaces words that the pointer of model.copying follows. Remove one "
            "of them."
        )
    if model.copying and (not reads.text or reads.image):
        raise UsageError(
            f"model.copying copies words of the source, but task `{task.kind}` ({task.arrow}) reads {reads.reads}. "
            "Remove it."
        )


def _check_fields(task: TaskSettings, model: Model, decoding: Decoding) -> None:
    encoder = model.encoder.body if isinstance(model.encoder, SoundEncoder) else model.encoder
    within = isinstance(encoder, TransformerEncoder) and encoder.within_fields
    for setting, used in (
        ("model.field_positions", model.field_positions),
        ("model.encoder.within_fields", within),
        ("decoding.complete", decoding.complete),
    ):
        if used and not task.input_kind().record:
            raise UsageError(
                f"{setting} concerns the fields of records, but task `{task.kind}` ({task.arrow}) reads "
                f"{task.input_kind().reads}. Remove it."
            )
    if within and isinstance(encoder, TransformerEncoder) and encoder.window is not None:
        raise UsageError("model.encoder.window and within_fields both limit self-attention. Use one of them.")


def _check_letters(task: TaskSettings, model: Model, text: Text) -> None:
    if model.letters is None:
        return
    if task.output != "tags":
        raise UsageError(
            f"model.letters spells the words of a tagger, but task `{task.kind}` ({task.arrow}) is another. Remove it."
        )
    if model.letters.kernel % 2 == 0:
        raise UsageError(f"model.letters.kernel is {model.letters.kernel}, but a pattern is centred. Make it odd.")
    if text.tokenizer.kind == "words" and not model.start_from:
        raise UsageError(
            "model.letters reads the letters of tokens, but with text.tokenizer.kind `words` an unseen word is one "
            "token without letters. Use `bpe`, or remove model.letters."
        )


def _texts(count: int) -> str:
    return "one text" if count == 1 else f"{count} texts"


def _check_training(task: TaskSettings, training: Training, start_from: str | None) -> None:
    if not task.output_kind().decoder and training.exposure != Exposure():
        raise UsageError(
            f"training.exposure changes the words that a decoder reads, but task `{task.kind}` ({task.arrow}) has "
            "no decoder. Remove it."
        )
    if training.tune != "all" and training.frozen:
        raise UsageError("training.tune and training.frozen both freeze weights. Use one of them.")
    if training.tune != "all" and not start_from:
        raise UsageError(f"training.tune `{training.tune}` applies to weights from another run. Set model.start_from.")
    metric = training.early_stopping.metric
    if metric != "loss" and metric not in task.scores:
        raise UsageError(
            f"training.early_stopping.metric `{metric}` cannot be computed for task `{task.kind}` ({task.arrow}). Use "
            "loss, "
            f"{', '.join(task.scores)}."
        )


def _check_positions(model: Model, longest: int) -> None:
    positions = resolved(model.positions)
    if positions.kind == "learned" and positions.max_length <= longest:
        raise UsageError(
            f"model.positions.max_length is {positions.max_length}, but data.cleaning.max_length allows texts of "
            f"{longest} tokens and an end symbol. Make it at least {longest + 1}."
        )


def _check_sound_positions(task: TaskSettings, model: Model) -> None:
    """Raise if there are fewer learned positions than the longest sound needs; a position is 40 ms."""
    positions, encoder = resolved(model.positions), model.encoder
    if positions.kind != "learned" or not isinstance(encoder, SoundEncoder) or not encoder.uses_positions:
        return
    slowest = 1 - (task.speed if isinstance(task, SoundTask) else 0.0)
    needed = int(25 * encoder.max_seconds / slowest) + 2
    if positions.max_length < needed:
        raise UsageError(
            f"model.positions.max_length is {positions.max_length}, but sounds of model.encoder.max_seconds "
            f"{encoder.max_seconds:g} take up to {needed} positions. Make it at least {needed}, or use `sinusoidal`."
        )


def _check_vocabulary(text: Text) -> None:
    for setting, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if (
            tokenizer.kind not in ("words", *READ)
            and tokenizer.vocabulary is not None
            and tokenizer.vocabulary < LEAST_WITH_BYTES
        ):
            raise UsageError(
                f"{setting}.vocabulary is {tokenizer.vocabulary}, but kind `{tokenizer.kind}` needs at least "
                f"{LEAST_WITH_BYTES}, for the special tokens, 256 bytes and a letter."
            )


def _check_sentencepiece(text: Text) -> None:
    for setting, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if tokenizer.kind in READ and tokenizer.model is None:
            raise UsageError(
                f"{setting} of kind `{tokenizer.kind}` needs a trained model. Set {setting}.model to its file."
            )
        if tokenizer.kind not in READ and tokenizer.model is not None:
            raise UsageError(
                f"{setting}.model is a setting of kind `sentencepiece` or `wordpiece`, but this one is "
                f"`{tokenizer.kind}`. Set {setting}.kind to one of these, or remove the setting."
            )
        if tokenizer.kind in READ and tokenizer.vocabulary is not None:
            raise UsageError(
                f"{setting}.vocabulary is {tokenizer.vocabulary}, but a trained model has its own vocabulary. Remove "
                "the setting."
            )


def _check_dropout(text: Text, task: TaskSettings) -> None:
    if text.bpe_dropout and not task.output_kind().resegment:
        raise UsageError(
            f"text.bpe_dropout splits words differently each time, but task `{task.kind}` ({task.arrow}) needs the "
            "same tokens every time. Leave it at 0."
        )
    for setting, tokenizer in (("text.tokenizer", text.tokenizer), ("text.target", text.target or text.tokenizer)):
        if text.bpe_dropout and tokenizer.kind != "bpe":
            raise UsageError(
                f"text.bpe_dropout drops merges, but {setting} of kind `{tokenizer.kind}` has none. "
                "Use kind `bpe`, or leave it at 0."
            )
