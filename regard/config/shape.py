"""What goes into a model and what comes out: the shapes of sequence model, one section each.

A shape is the grid's blocks with one end left off or replaced. What it needs of the rest of a configuration is said
here too: which ends of the cell it has, what it can learn from, which scores it is judged by.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.section import Section

READS_ONLY = ("model.decoder", "model.join", "model.picture", "text.target", "data.joined")
WRITES_ONLY = ("model.encoder", "model.join", "model.picture", "text.target", "data.joined")


class _Shape(Section):
    """What every shape says of itself."""

    arrow: ClassVar[str]
    """From how much to how much."""
    verb: ClassVar[str] = "predict"
    """The command that uses its runs."""
    pictures: ClassVar[bool] = False
    """Whether what it reads is a picture, or has one."""
    beside: ClassVar[bool] = False
    """Whether it reads a text beside the picture."""
    encoder: ClassVar[bool] = True
    """Whether it has an end that reads."""
    decoder: ClassVar[bool] = False
    """Whether it has an end that writes."""
    corpora: ClassVar[tuple[str, ...]]
    """The sorts of corpora that it can learn from."""
    out_of_place: ClassVar[tuple[str, ...]] = READS_ONLY
    """Settings that mean nothing here."""
    cut_anew: ClassVar[bool] = True
    """Whether words may be cut into other tokens each time they are seen (`text.bpe_dropout`)."""

    @property
    def head(self) -> str:
        """What comes out, in a word."""
        return "text"

    @property
    def attentions(self) -> tuple[str, ...]:
        """The names of attentions with heads that can be pruned, beside those of its ends."""
        return ()

    @property
    def scores(self) -> tuple[str, ...]:
        """The scores that it is judged by, beside its loss."""
        return ()


class Translation(_Shape):
    """n → m: a text is read, another is written; the source may be two texts, such as a context and a question."""

    arrow = "n → m"
    verb = "translate"
    decoder = True
    corpora = ("paired", "tsv", "jsonl", "babi", "generate", "imported")
    out_of_place = ("model.picture",)

    kind: Literal["translation"] = "translation"

    @property
    def scores(self) -> tuple[str, ...]:
        """What is said of texts that were written."""
        return "bleu", "chrf", "exact", "f1"


class Acceptor(_Shape):
    """n → 1: a text, or a pair of texts, is read and answered with a class or a number."""

    arrow = "n → 1"
    corpora = ("labelled", "tsv", "jsonl")

    kind: Literal["acceptor"] = "acceptor"
    output: Literal["classes", "number"] = "classes"
    """`classes`: the label is one of a few words. `number`: it is a number, such as how alike two sentences are."""
    pool: Literal["first", "last", "mean", "max", "attention"] | None = None
    """How states become one vector; by default the encoder's own way: last states of an rnn, otherwise the mean."""
    pairs: Literal["joined", "apart", "attended"] = "joined"
    """Two texts: joined by a separator and read as one; read apart; or apart, with attention between them."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every class the same say, however rare it is."""

    @property
    def head(self) -> str:
        """What comes out, in a word."""
        return self.output

    @property
    def scores(self) -> tuple[str, ...]:
        """What is said of classes, or of numbers."""
        return ("accuracy", "macro_f1") if self.output == "classes" else ("pearson", "spearman", "squared_error")


class Transducer(_Shape):
    """n → n: every word is answered with a tag."""

    arrow = "n → n"
    corpora = ("conllu", "columns", "paired", "tsv")
    cut_anew = False  # tags stand at tokens

    kind: Literal["transducer"] = "transducer"

    @property
    def head(self) -> str:
        """What comes out, in a word."""
        return "tags"

    @property
    def scores(self) -> tuple[str, ...]:
        """What is said of tags."""
        return "accuracy", "macro_f1"


class LanguageModel(_Shape):
    """0 → m: text is written from nothing, or from its beginning."""

    arrow = "0 → m"
    verb = "generate"
    encoder = False
    decoder = True
    corpora = ("text", "json_text")
    out_of_place = WRITES_ONLY
    cut_anew = False  # documents are packed to a length

    kind: Literal["language-model"] = "language-model"
    length: int = Field(default=128, ge=2, le=100_000)
    """Documents are put one behind the other and cut into pieces of this many tokens: the furthest it looks back."""
    stride: int | None = Field(default=None, ge=1)
    """Perplexity: tokens that the window moves on at a time, by default half of `length`; fewer give more context."""


class Captions(_Shape):
    """image → m: a picture is looked at, and a text is written about it."""

    arrow = "image → m"
    verb = "caption"
    pictures = True
    decoder = True
    corpora = ("images", "generate")
    out_of_place = ("text.target", "model.picture", "data.joined")

    kind: Literal["captions"] = "captions"
    doubly_stochastic: float = Field(default=0.0, ge=0.0)
    """With attention: how much it costs not to look at every place alike over a whole caption (Xu et al., 2015)."""
    shift: int = Field(default=0, ge=0, le=512)
    """Augmentation: in learning, pictures are moved by up to so many pixels each way."""
    flip: bool = False
    """Augmentation: in learning, half of all pictures are mirrored; only where no caption says left or right."""

    @property
    def scores(self) -> tuple[str, ...]:
        """What is said of texts that were written; `true` of generated scenes, where truth is known."""
        return "bleu", "meteor", "cider", "exact", "true"


class Questions(_Shape):
    """image + n → 1: a question about a picture is answered with one of a few answers."""

    arrow = "image + n → 1"
    pictures = True
    beside = True
    corpora = ("images", "generate")
    out_of_place = ("model.decoder", "model.join", "text.target", "data.joined")

    kind: Literal["questions"] = "questions"
    looks: int = Field(default=2, ge=1, le=32)
    """How often the question is read and the picture looked at, each time knowing what was seen before."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced` gives every answer the same say, however rare it is."""

    @property
    def attentions(self) -> tuple[str, ...]:
        """Of each look: at the question, and at the picture."""
        return tuple(
            f"looks.{n}.{one}" for n in range(self.looks) for one in ("question_attention", "picture_attention")
        )

    @property
    def head(self) -> str:
        """What comes out, in a word."""
        return "answers"

    @property
    def scores(self) -> tuple[str, ...]:
        """What is said of answers."""
        return "accuracy", "macro_f1"


class Masked(_Shape):
    """n → n, masked: hidden words are guessed from those around them, so that an encoder learns a language."""

    arrow = "n → n, masked"
    corpora = ("text", "json_text", "imported")

    kind: Literal["masked"] = "masked"
    share: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Share of tokens that are asked for: of these 80 % are hidden, 10 % exchanged, 10 % left (Devlin et al., 2019)."""
    whole_words: bool = False
    """Whether all tokens of a word are asked for together."""

    @property
    def head(self) -> str:
        """What comes out, in a word."""
        return "hidden words"

    @property
    def scores(self) -> tuple[str, ...]:
        """What is said of guesses."""
        return ("accuracy",)


Shape = Annotated[
    Translation | Acceptor | Transducer | LanguageModel | Captions | Questions | Masked,
    Field(discriminator="kind"),
]
"""Every shape there is, told apart by its `kind`."""
