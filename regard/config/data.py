"""The section `data`: the corpora of a run, and how they are cleaned."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from regard.config.choices import READERS
from regard.config.media_corpora import ImageFiles, SoundFiles, SpokenWords, SyntheticSpeech
from regard.config.section import Section
from regard.config.text_corpora import (
    BabiFiles,
    ColumnFiles,
    ConlluFiles,
    CorpusSection,
    DatasetDirectories,
    GapSentences,
    JsonLines,
    JsonTexts,
    LabelledLines,
    PairedFiles,
    Paths,
    RecordFiles,
    TableFiles,
    TextFiles,
    TsvFiles,
)

FEW_EXAMPLES = 100
"""With fewer training examples, a warning is shown."""


LANGUAGE_CODE = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"
"""Codes such as `en`, `pt-BR` and `zh-Hans` (BCP 47)."""


class Generated(CorpusSection):
    """A generated corpus; the same settings always give the same pairs."""

    generate: Literal["dates", "copy", "reverse", "sort", "shapes", "questions", "shape-names"]
    """`dates`: free-form dates to ISO 8601; `shapes`: pictures of coloured shapes with sentences that are true of them;
    `questions`: the same pictures with questions and answers; `shape-names`: pictures of one shape with its name, such
    as `red circle`, as label; `copy`, `reverse`, `sort`: rows of symbols."""
    size: int = Field(default=20_000, ge=1, le=100_000_000)
    """How many distinct pairs (of pictures: pictures) to make."""
    captions: int = Field(default=2, ge=1, le=100)
    """`shapes` only: sentences for each picture."""
    questions: int = Field(default=4, ge=1, le=100)
    """`questions` only: questions about each picture."""
    seed: int = 0
    """Different seeds give different corpora."""
    languages: list[str] | None = None
    """`dates` only: locale codes such as `en`, `de`, `ja`; by default a broad selection."""
    symbols: int = Field(default=20, ge=2, le=200)
    """`copy`, `reverse`, `sort`: how many different symbols occur."""
    min_length: int = Field(default=1, ge=1)
    """`copy`, `reverse`, `sort`: shortest row of symbols."""
    max_length: int = Field(default=10, ge=1, le=10_000)
    """`copy`, `reverse`, `sort`: longest row of symbols."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"the generated corpus `{self.generate}`"

    @property
    def listing(self) -> str | None:
        """None: it has no files."""
        return None

    @property
    def pictures(self) -> bool:
        """Whether a source is an image."""
        return self.generate in ("shapes", "questions", "shape-names")

    @property
    def texts(self) -> int:
        """Number of texts of a source; a question counts as one, an image does not."""
        return 2 if self.generate == "questions" else 1

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"has min_length {self.min_length} above max_length {self.max_length}. Swap them.")
        if self.languages is not None and not self.languages:
            raise ValueError("has an empty list of languages. Name at least one, such as `en`, or leave languages out.")
        return self


class ReaderFiles(CorpusSection):
    """Files of a format that an extension reads (see `regard.extensions.corpus_format`)."""

    reader: Annotated[str, READERS]
    """The name of the format."""
    paths: Paths
    """Its file or files."""
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Options that are passed to the reader."""
    source_texts: Annotated[int, Field(ge=1, le=2)] = 1
    """Number of texts of a source, separated by tabs."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return ", ".join(self.paths)

    @property
    def listing(self) -> str | None:
        """The files that the reader reads."""
        return "paths"

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return self.source_texts


class Elsewhere(CorpusSection):
    """A corpus that is not available: that of an imported model (`regard import`)."""

    imported: str
    """Where the model was imported from."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"the corpus of {self.imported}"

    @property
    def listing(self) -> str | None:
        """None: its files are not available."""
        return None


_KEYS = (
    "table",
    "dataset",
    "tsv",
    "jsonl",
    "records",
    "generate",
    "labelled",
    "conllu",
    "columns",
    "text",
    "json_text",
    "gap_sentences",
    "babi",
    "images",
    "sounds",
    "spoken_words",
    "speech",
    "reader",
    "imported",
)


def kind_of_corpus(value: Any) -> str:
    """Return the kind of a corpus, which is the key that names its data."""
    for key in _KEYS:
        if key in value if isinstance(value, Mapping) else hasattr(value, key):
            return key
    return "paired"


Corpus = Annotated[
    Annotated[TableFiles, Tag("table")]
    | Annotated[DatasetDirectories, Tag("dataset")]
    | Annotated[PairedFiles, Tag("paired")]
    | Annotated[TsvFiles, Tag("tsv")]
    | Annotated[JsonLines, Tag("jsonl")]
    | Annotated[RecordFiles, Tag("records")]
    | Annotated[Generated, Tag("generate")]
    | Annotated[LabelledLines, Tag("labelled")]
    | Annotated[ConlluFiles, Tag("conllu")]
    | Annotated[ColumnFiles, Tag("columns")]
    | Annotated[TextFiles, Tag("text")]
    | Annotated[JsonTexts, Tag("json_text")]
    | Annotated[GapSentences, Tag("gap_sentences")]
    | Annotated[BabiFiles, Tag("babi")]
    | Annotated[ImageFiles, Tag("images")]
    | Annotated[SoundFiles, Tag("sounds")]
    | Annotated[SpokenWords, Tag("spoken_words")]
    | Annotated[SyntheticSpeech, Tag("speech")]
    | Annotated[ReaderFiles, Tag("reader")]
    | Annotated[Elsewhere, Tag("imported")],
    Discriminator(kind_of_corpus),
]


class Cleaning(Section):
    """Which pairs are dropped before training; what was dropped and why is always reported."""

    max_length: int = Field(default=256, ge=1)
    """Longest side in tokens; memory grows with its square, and very long pairs are rarely good alignments."""
    max_characters: int = Field(default=10_000, ge=1)
    """Longest side in characters; checked before tokenising, so that a broken line costs no time."""
    max_ratio: float = Field(default=5.0, ge=1.0)
    """Largest ratio of character lengths (ten characters added to each); beyond it, pairs are rarely translations."""
    min_overlap: float = Field(default=0.0, ge=0.0, le=1.0)
    """Summaries: smallest share of the words of a target that occur in its source; what a source does not say cannot be
    learned from it. Held-out pairs are cleaned, too."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Exact repeats of a pair add no information and leak into held-out data."""


class Languages(Section):
    """The languages of a translation run, which `regard serve` offers it for."""

    source: str = Field(pattern=LANGUAGE_CODE)
    """Code of the source language, such as `en` or `pt-BR`."""
    target: str = Field(pattern=LANGUAGE_CODE)
    """Code of the target language."""


class Data(Section):
    """The corpora of a run."""

    corpus: str | None = None
    """A public corpus such as `multi30k/en-de`, which sets `train` and, if it has them, `validation` and `test`."""
    train: Corpus
    """The training data."""
    validation: Corpus | None = None
    """The validation data; without it, `held_out` pairs of `train` are used."""
    test: Corpus | None = None
    """The test data, scored once after training, for the run's card."""
    held_out: int = Field(default=1000, ge=1)
    """Pairs of `train` that are held out for validation if there is no `validation` (at most a tenth)."""
    held_out_test: int = Field(default=0, ge=0)
    """Pairs of `train` that are held out for the test if there is no `test` (at most a tenth)."""
    every: int = Field(default=1, ge=1)
    """Keep every N-th training example (or image): 12 keeps the 1st, the 13th and so on, for a quick trial."""
    joined: float = Field(default=0.0, ge=0.0, le=10.0)
    """Share of additional longer pairs: for every hundred pairs of `train`, `100 * joined` that join two to four."""
    cleaning: Cleaning = Cleaning()
    """Which training pairs are dropped."""
    prepared: Annotated[str, Field(min_length=1)] | None = None
    """Directory of data that `regard prepare` has prepared for this configuration, instead of preparing it again."""
    languages: Languages | None = None
    """The languages of a translation run, for `regard serve`."""

    @property
    def plugins(self) -> list[str]:
        """The extension modules that read the corpora."""
        corpora = [corpus for corpus in (self.train, self.validation, self.test) if isinstance(corpus, ReaderFiles)]
        return sorted({plugin for corpus in corpora if (plugin := READERS.plugin_of(corpus.reader))})
