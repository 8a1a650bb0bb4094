"""The table of tasks: the input and output of each.

A task names an input and an output; their implementations are `regard.tasks.inputs` and `regard.tasks.outputs`, under
the same names. What a task requires of the rest of a configuration follows from the two.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from regard.config.kinds import Kinds
from regard.config.section import Section


@dataclass(frozen=True, kw_only=True)
class InputKind:
    """Properties of a kind of input that a configuration depends on."""

    arrow: str
    """Size of the input, such as `n` tokens."""
    encoder: bool = True
    """Whether an encoder reads it."""
    text: bool = False
    """Whether it is, or contains, a text."""
    image: bool = False
    """Whether it is, or contains, an image."""
    sound: bool = False
    """Whether it is a sound."""
    record: bool = False
    """Whether it is a record, written as JSON text."""
    reads: str = "text"
    """A noun for it."""
    encoders: tuple[str, ...] | None = None
    """The kinds of encoder that can read it, the default first; `None`: those that read text."""


@dataclass(frozen=True, kw_only=True)
class OutputKind:
    """Properties of a kind of output that a configuration depends on."""

    arrow: str
    """Size of the output."""
    name: str
    """A noun for it."""
    verb: str = "predict"
    """The command that uses its runs."""
    decoder: bool = False
    """Whether a decoder generates it."""
    tokens: bool = False
    """Whether it consists of tokens of the vocabulary, not of labels or numbers."""
    scores: tuple[str, ...] = ()
    """Its metrics, in addition to the loss."""
    resegment: bool = True
    """Whether words may be split differently each time they are read (`text.bpe_dropout`)."""


INPUTS: dict[str, InputKind] = {
    "text": InputKind(arrow="n", text=True),
    "record": InputKind(arrow="record", text=True, record=True, reads="records"),
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
    "tags": OutputKind(arrow="n", name="tags", scores=("accuracy", "macro_f1", "span_f1"), resegment=False),
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
    """Name of its models, for the start of a sentence."""
    examples: ClassVar[str]
    """Name of its examples, in the plural."""
    corpora: ClassVar[tuple[str, ...]]
    """The kinds of corpus that it can be trained on."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """The metrics of its texts; by default those that suit the references."""
    several_references: ClassVar[bool] = False
    """Whether scored examples with the same source are one example with several references."""
    similar_lengths: ClassVar[bool] = True
    """Whether source and target have similar lengths and the same order, as translations have."""
    cuts_long_sources: ClassVar[bool] = False
    """Whether the end of a source that is too long is left out, instead of the example."""

    kind: str

    @classmethod
    def input_kind(cls) -> InputKind:
        """Return the kind of its input."""
        return INPUTS[cls.input]

    @classmethod
    def output_kind(cls) -> OutputKind:
        """Return the kind of its output."""
        return OUTPUTS[cls.output]

    @property
    def arrow(self) -> str:
        """Sizes of input and output, such as `n → m`."""
        return f"{self.input_kind().arrow} → {self.output_kind().arrow}"

    @property
    def verb(self) -> str:
        """The command that uses its runs."""
        return self.output_kind().verb

    @property
    def scores(self) -> tuple[str, ...]:
        """Its metrics, in addition to the loss."""
        return tuple(dict.fromkeys((*self.metrics, *self.output_kind().scores)))

    @property
    def attentions(self) -> tuple[str, ...]:
        """Names of further attentions with heads that can be pruned, in addition to encoder and decoder."""
        return ()

    @property
    def has_ctc(self) -> bool:
        """Whether its models have a CTC layer, which search can use (`decoding.ctc`)."""
        return False

    @classmethod
    def has_no_use_for(cls) -> tuple[str, ...]:
        """Return settings that have no effect on this task."""
        reads, writes = cls.input_kind(), cls.output_kind()
        parallel = reads.text and writes.decoder
        unused = {
            "model.encoder": not reads.encoder,
            "model.decoder": not writes.decoder,
            "model.join": not (reads.encoder and writes.decoder),
            "model.picture": not (reads.text and reads.image),
            "text.target": not parallel,
            "data.joined": not parallel or not cls.similar_lengths,
        }
        return tuple(path for path, useless in unused.items() if useless)


class Translation(TaskSettings):
    """Text to text; the source may be two texts, such as a context and a question."""

    input, output = "text", "text"
    title = "A sequence-to-sequence model"
    examples = "pairs"
    corpora = ("paired", "table", "dataset", "tsv", "jsonl", "babi", "generate", "imported")

    kind: Literal["translation"] = "translation"


class DataToText(TaskSettings):
    """Describes a record: an object with fields, a row of a table, or triples."""

    input, output = "record", "text"
    title = "A model that describes records"
    examples = "descriptions"
    corpora = ("records",)
    metrics = ("bleu", "chrf", "meteor")
    several_references = True
    similar_lengths = False

    kind: Literal["data-to-text"] = "data-to-text"
    delexicalise: bool = False
    """Replace values by placeholders in records and texts before training, and back in outputs (Wen et al., 2015)."""


class Summarising(TaskSettings):
    """Writes a short text about a long one: a summary, a headline, a subject line."""

    input, output = "text", "text"
    title = "A model that summarises"
    examples = "documents"
    corpora = ("jsonl", "paired", "table", "dataset", "tsv", "gap_sentences")
    metrics = ("rouge1", "rouge2", "rougeL")
    several_references = True
    similar_lengths = False
    cuts_long_sources = True

    kind: Literal["summarising"] = "summarising"


class PooledTask(TaskSettings):
    """Base of tasks with one output for the whole input."""

    input = "text"
    examples = "texts"
    corpora = ("labelled", "table", "dataset", "tsv", "jsonl")

    pool: Literal["first", "last", "mean", "max", "attention"] | None = None
    """How states are pooled into one vector; by default the last states of an rnn, otherwise the mean."""
    pairs: Literal["joined", "apart", "attended"] = "joined"
    """Two texts: joined by a separator; encoded separately; or separately, with attention between them."""


class Classification(PooledTask):
    """Assigns one of several labels to a text or a pair of texts."""

    output = "label"
    title = "A classifier of texts"

    kind: Literal["classification"] = "classification"
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same weight, however rare it is."""


class Regression(PooledTask):
    """Predicts a number for a text or a pair of texts, such as the similarity of two sentences."""

    output = "number"
    title = "An estimator of texts"

    kind: Literal["regression"] = "regression"


class ImageClassification(TaskSettings):
    """Assigns one of several labels to an image."""

    input, output = "image", "label"
    title = "A classifier of images"
    examples = "images"
    corpora = ("images", "generate")

    kind: Literal["image-classification"] = "image-classification"
    shift: int = Field(default=0, ge=0, le=512)
    """Augmentation: training images are shifted by up to this many pixels in each direction."""
    flip: bool = False
    """Augmentation: half of all training images are mirrored."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same weight, however rare it is."""


class SoundTask(TaskSettings):
    """Base of tasks that read sounds: augmentation of training sounds."""

    input = "sound"
    examples = "sounds"
    corpora = ("sounds", "spoken_words", "speech")

    masks: int = Field(default=2, ge=0, le=20)
    """Augmentation: number of time masks, and of frequency masks (SpecAugment: Park et al., 2019)."""
    speed: float = Field(default=0.1, ge=0.0, le=0.5)
    """Augmentation: speed and pitch of training sounds are changed by up to this share."""
    noise: float | None = Field(default=None, ge=0.0, lt=60.0)
    """Augmentation: the loudest added noise, in decibels below the loudest moment of a sound, such as 30."""
    equaliser: float = Field(default=0.0, ge=0.0, le=40.0)
    """Augmentation: standard deviation of the gains of a random equaliser in decibels, such as 12, which stands for
    other microphones and voices. Recommended if speakers of the training data are few; 0 is off."""


class SoundClassification(SoundTask):
    """Assigns one of several labels to a sound."""

    output = "label"
    title = "A classifier of sounds"

    kind: Literal["sound-classification"] = "sound-classification"
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same weight, however rare it is."""


class SpeechRecognition(SoundTask):
    """Transcribes a sound."""

    output = "transcript"
    title = "A speech recogniser"

    kind: Literal["speech-recognition"] = "speech-recognition"
    ctc: float = Field(default=0.3, ge=0.0, lt=1.0)
    """Share of connectionist temporal classification in the training loss (Graves et al., 2006). It trains the
    encoder to locate words, so that attention learns to follow them sooner (Watanabe et al., 2017)."""

    @property
    def has_ctc(self) -> bool:
        """With a share of CTC in the training loss."""
        return self.ctc > 0


class Tagging(TaskSettings):
    """Assigns a tag to every word."""

    input, output = "text", "tags"
    title = "A tagger of words"
    examples = "sentences"
    corpora = ("conllu", "columns", "paired", "table", "tsv")

    kind: Literal["tagging"] = "tagging"


class LanguageModel(TaskSettings):
    """Generates text from nothing, or continues a beginning."""

    input, output = "nothing", "document"
    title = "A language model"
    examples = "documents"
    corpora = ("text", "json_text")

    kind: Literal["language-model"] = "language-model"
    length: int = Field(default=128, ge=2, le=100_000)
    """Documents are concatenated and cut into windows of this many tokens, which is the longest context."""
    stride: int | None = Field(default=None, ge=1)
    """Perplexity: stride of the window in tokens, by default half of `length`; fewer give more context."""

    @property
    def window(self) -> tuple[int, int]:
        """Length and stride of the window."""
        return self.length, min(self.stride or max(1, self.length // 2), self.length)


class Captioning(TaskSettings):
    """Writes a caption for an image."""

    input, output = "image", "caption"
    title = "A model that captions pictures"
    examples = "captions"
    corpora = ("images", "generate")

    kind: Literal["captioning"] = "captioning"
    doubly_stochastic: float = Field(default=0.0, ge=0.0)
    """With attention: penalty for uneven total attention over a caption (Xu et al., 2015)."""
    shift: int = Field(default=0, ge=0, le=512)
    """Augmentation: training images are shifted by up to this many pixels in each direction."""
    flip: bool = False
    """Augmentation: half of all training images are mirrored; unsuitable if captions say left or right."""


class VisualQuestions(TaskSettings):
    """Answers a question about an image with one of several answers."""

    input, output = "image-and-text", "label"
    title = "A model that answers questions about pictures"
    examples = "questions"
    corpora = ("images", "generate")

    kind: Literal["visual-questions"] = "visual-questions"
    looks: int = Field(default=2, ge=1, le=32)
    """Number of rounds in which the model attends to the question and the image, each using the last one's result."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every answer the same weight, however rare it is."""

    @property
    def attentions(self) -> tuple[str, ...]:
        """Of each round: to the question, and to the image."""
        return tuple(
            f"looks.{number}.{part}"
            for number in range(self.looks)
            for part in ("question_attention", "picture_attention")
        )


class MaskedWords(TaskSettings):
    """Predicts masked words from their context, which pretrains an encoder on plain text."""

    input, output = "text", "masked-words"
    title = "A masked language model"
    examples = "documents"
    corpora = ("text", "json_text", "imported")

    kind: Literal["masked-words"] = "masked-words"
    share: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Share of tokens to predict: of these 80 % are masked, 10 % replaced, 10 % left (Devlin et al., 2019)."""
    whole_words: bool = False
    """Whether all tokens of a word are masked together."""


TASKS: Kinds[TaskSettings] = Kinds(
    Translation,
    DataToText,
    Summarising,
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
