"""The table of tasks: what goes into a model, and what comes out.

A task names an input and an output; their implementations are `regard.tasks.inputs` and `regard.tasks.outputs`, under
the same names. What a task needs of the rest of a configuration follows from the two.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from regard.config.kinds import Kinds
from regard.config.section import Section


@dataclass(frozen=True, kw_only=True)
class InputKind:
    """What a configuration has to know of a kind of input."""

    arrow: str
    """How much goes in, such as `n` tokens."""
    encoder: bool = True
    """Whether an encoder reads it."""
    text: bool = False
    """Whether it is text, or has a text as one of its parts."""
    image: bool = False
    """Whether it is an image, or has one as one of its parts."""
    sound: bool = False
    """Whether it is a sound."""
    reads: str = "text"
    """What it is, in a word."""
    encoders: tuple[str, ...] | None = None
    """The kinds of encoder that can read it, the default first; `None`: those that read text."""


@dataclass(frozen=True, kw_only=True)
class OutputKind:
    """What a configuration has to know of a kind of output."""

    arrow: str
    """How much comes out."""
    name: str
    """What comes out, in a word."""
    verb: str = "predict"
    """The command that uses its runs."""
    decoder: bool = False
    """Whether a decoder writes it."""
    tokens: bool = False
    """Whether it consists of tokens of the vocabulary, and not of labels or numbers of a run's own."""
    scores: tuple[str, ...] = ()
    """The scores that it is judged by, besides its loss."""
    resegment: bool = True
    """Whether words may be split into other tokens each time they are seen (`text.bpe_dropout`)."""


INPUTS: dict[str, InputKind] = {
    "text": InputKind(arrow="n", text=True),
    "image": InputKind(arrow="image", image=True, reads="pictures", encoders=("image",)),
    "image-and-text": InputKind(arrow="image + n", text=True, image=True),
    "sound": InputKind(arrow="sound", sound=True, reads="sounds", encoders=("sound",)),
    "nothing": InputKind(arrow="0", encoder=False),
}
"""Every kind of input by its name."""

OUTPUTS: dict[str, OutputKind] = {
    "text": OutputKind(
        arrow="m", name="text", verb="translate", decoder=True, tokens=True, scores=("bleu", "chrf", "exact", "f1")
    ),
    "caption": OutputKind(
        arrow="m",
        name="text",
        verb="caption",
        decoder=True,
        tokens=True,
        scores=("bleu", "meteor", "cider", "exact", "true"),
    ),
    "transcript": OutputKind(
        arrow="m", name="text", verb="transcribe", decoder=True, tokens=True, scores=("wer", "cer", "exact")
    ),
    "document": OutputKind(arrow="m", name="text", verb="generate", decoder=True, tokens=True, resegment=False),
    "label": OutputKind(arrow="1", name="classes", scores=("accuracy", "macro_f1")),
    "number": OutputKind(arrow="1", name="number", scores=("pearson", "spearman", "squared_error")),
    "tags": OutputKind(arrow="n", name="tags", scores=("accuracy", "macro_f1"), resegment=False),
    "masked-words": OutputKind(arrow="n, masked", name="hidden words", tokens=True, scores=("accuracy",)),
}
"""Every kind of output by its name."""


class TaskSettings(Section):
    """One task: an entry of the table, and its own settings."""

    input: ClassVar[str]
    """The name of its kind of input."""
    output: ClassVar[str]
    """The name of its kind of output."""
    title: ClassVar[str]
    """What its models are called, at the start of a sentence."""
    examples: ClassVar[str]
    """What its examples are called, in the plural."""
    corpora: ClassVar[tuple[str, ...]]
    """The kinds of corpus that it can learn from."""

    kind: str

    @classmethod
    def input_kind(cls) -> InputKind:
        """What goes in."""
        return INPUTS[cls.input]

    @classmethod
    def output_kind(cls) -> OutputKind:
        """What comes out."""
        return OUTPUTS[cls.output]

    @property
    def arrow(self) -> str:
        """From how much to how much."""
        return f"{self.input_kind().arrow} → {self.output_kind().arrow}"

    @property
    def verb(self) -> str:
        """The command that uses its runs."""
        return self.output_kind().verb

    @property
    def scores(self) -> tuple[str, ...]:
        """The scores that it is judged by, besides its loss."""
        return self.output_kind().scores

    @property
    def attentions(self) -> tuple[str, ...]:
        """The names of attentions with heads that can be pruned, besides those of encoder and decoder."""
        return ()

    @classmethod
    def has_no_use_for(cls) -> tuple[str, ...]:
        """Settings that have no effect on this task."""
        reads, writes = cls.input_kind(), cls.output_kind()
        parallel = reads.text and writes.decoder
        unused = {
            "model.encoder": not reads.encoder,
            "model.decoder": not writes.decoder,
            "model.join": not (reads.encoder and writes.decoder),
            "model.picture": not (reads.text and reads.image),
            "text.target": not parallel,
            "data.joined": not parallel,
        }
        return tuple(path for path, useless in unused.items() if useless)


class Translation(TaskSettings):
    """A text is read, another is written; the source may be two texts, such as a context and a question."""

    input, output = "text", "text"
    title = "A sequence-to-sequence model"
    examples = "pairs"
    corpora = ("paired", "table", "tsv", "jsonl", "babi", "generate", "imported")

    kind: Literal["translation"] = "translation"


class PooledTask(TaskSettings):
    """What tasks have in common whose answer is about the whole input."""

    input = "text"
    examples = "texts"
    corpora = ("labelled", "table", "tsv", "jsonl")

    pool: Literal["first", "last", "mean", "max", "attention"] | None = None
    """How states become one vector; by default the encoder's own way: last states of an rnn, otherwise the mean."""
    pairs: Literal["joined", "apart", "attended"] = "joined"
    """Two texts: joined by a separator and read as one; read apart; or apart, with attention between them."""


class Classification(PooledTask):
    """A text, or a pair of texts, is read and answered with one of a few labels."""

    output = "label"
    title = "A classifier of texts"

    kind: Literal["classification"] = "classification"
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same weight, however rare it is."""


class Regression(PooledTask):
    """A text, or a pair of texts, is read and answered with a number, such as how similar two sentences are."""

    output = "number"
    title = "An estimator of texts"

    kind: Literal["regression"] = "regression"


class ImageClassification(TaskSettings):
    """An image is answered with one of a few labels."""

    input, output = "image", "label"
    title = "A classifier of images"
    examples = "images"
    corpora = ("images",)

    kind: Literal["image-classification"] = "image-classification"
    shift: int = Field(default=0, ge=0, le=512)
    """Augmentation: training images are moved by up to this many pixels each way."""
    flip: bool = False
    """Augmentation: half of all training images are mirrored."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same weight, however rare it is."""


class SoundTask(TaskSettings):
    """What tasks that read sounds have in common: how training sounds are varied."""

    input = "sound"
    examples = "sounds"
    corpora = ("sounds", "spoken_words")

    masks: int = Field(default=2, ge=0, le=20)
    """Augmentation: how many stretches of time, and of frequency, are hidden (SpecAugment: Park et al., 2019)."""
    speed: float = Field(default=0.1, ge=0.0, le=0.5)
    """Augmentation: training sounds are played faster or slower, and so higher or lower, by up to this share."""
    noise: float | None = Field(default=None, ge=0.0, lt=60.0)
    """Augmentation: the loudest noise that is added, in decibels below the loudest moment of a sound, such as 30."""


class SoundClassification(SoundTask):
    """A sound is answered with one of a few labels."""

    output = "label"
    title = "A classifier of sounds"

    kind: Literal["sound-classification"] = "sound-classification"
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same weight, however rare it is."""


class SpeechRecognition(SoundTask):
    """A sound is read, and what is said in it is written."""

    output = "transcript"
    title = "A speech recogniser"

    kind: Literal["speech-recognition"] = "speech-recognition"
    ctc: float = Field(default=0.3, ge=0.0, lt=1.0)
    """Share of connectionist temporal classification in the training loss (Graves et al., 2006): it teaches the encoder
    where words are said, so that attention learns to follow them sooner (Watanabe et al., 2017)."""


class Tagging(TaskSettings):
    """Every word is answered with a tag."""

    input, output = "text", "tags"
    title = "A tagger of words"
    examples = "sentences"
    corpora = ("conllu", "columns", "paired", "table", "tsv")

    kind: Literal["tagging"] = "tagging"


class LanguageModel(TaskSettings):
    """Text is written from nothing, or from its beginning."""

    input, output = "nothing", "document"
    title = "A language model"
    examples = "documents"
    corpora = ("text", "json_text")

    kind: Literal["language-model"] = "language-model"
    length: int = Field(default=128, ge=2, le=100_000)
    """Documents are concatenated and cut into windows of this many tokens: the furthest that the model looks back."""
    stride: int | None = Field(default=None, ge=1)
    """Perplexity: tokens that the window moves at a time, by default half of `length`; fewer give more context."""

    @property
    def window(self) -> tuple[int, int]:
        """How far the model looks back, and how far the window moves."""
        return self.length, min(self.stride or max(1, self.length // 2), self.length)


class Captioning(TaskSettings):
    """An image is read, and a text is written about it."""

    input, output = "image", "caption"
    title = "A model that captions pictures"
    examples = "captions"
    corpora = ("images", "generate")

    kind: Literal["captioning"] = "captioning"
    doubly_stochastic: float = Field(default=0.0, ge=0.0)
    """With attention: penalty for looking at some places more than at others over a whole caption (Xu et al., 2015)."""
    shift: int = Field(default=0, ge=0, le=512)
    """Augmentation: training images are moved by up to this many pixels each way."""
    flip: bool = False
    """Augmentation: half of all training images are mirrored; only where no caption says left or right."""


class VisualQuestions(TaskSettings):
    """A question about an image is answered with one of a few answers."""

    input, output = "image-and-text", "label"
    title = "A model that answers questions about pictures"
    examples = "questions"
    corpora = ("images", "generate")

    kind: Literal["visual-questions"] = "visual-questions"
    looks: int = Field(default=2, ge=1, le=32)
    """How often the model reads the question and looks at the image, each time with what it has found before."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every answer the same weight, however rare it is."""

    @property
    def attentions(self) -> tuple[str, ...]:
        """Of each look: to the question, and to the image."""
        return tuple(
            f"looks.{number}.{part}"
            for number in range(self.looks)
            for part in ("question_attention", "picture_attention")
        )


class MaskedWords(TaskSettings):
    """Hidden words are predicted from those around them, so that an encoder learns a language from plain text."""

    input, output = "text", "masked-words"
    title = "A masked language model"
    examples = "documents"
    corpora = ("text", "json_text", "imported")

    kind: Literal["masked-words"] = "masked-words"
    share: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Share of tokens to predict: of these 80 % are hidden, 10 % replaced, 10 % left (Devlin et al., 2019)."""
    whole_words: bool = False
    """Whether all tokens of a word are hidden together."""


TASKS: Kinds[TaskSettings] = Kinds(
    Translation,
    Classification,
    Regression,
    ImageClassification,
    SoundClassification,
    SpeechRecognition,
    Tagging,
    LanguageModel,
    Captioning,
    VisualQuestions,
    MaskedWords,
)
"""Every task by its kind."""
