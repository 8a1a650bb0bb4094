"""Corpora of a run, and how they are cleaned."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from regard.config.choices import READERS
from regard.config.section import Section

FEW_EXAMPLES = 100
"""With fewer training examples, a warning is shown."""


def _as_list(value: Any) -> Any:
    """Return a single path as a list of one path."""
    return [value] if isinstance(value, str) else value


def _expand_home(path: str) -> str:
    """Replace `~` by the home directory, if there is one."""
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        return path


File = Annotated[str, Field(min_length=1), AfterValidator(_expand_home)]
Paths = Annotated[list[File], BeforeValidator(_as_list), Field(min_length=1)]
"""Files, relative to the current directory."""


class _Corpus(Section):
    """Base of all corpora."""

    @property
    def name(self) -> str:
        """A short description for messages: its files."""
        return ", ".join(getattr(self, next(iter(type(self).model_fields))))

    @property
    def files(self) -> list[str]:
        """All its files."""
        lists = [
            getattr(self, name) for name, field in type(self).model_fields.items() if field.annotation == list[File]
        ]
        return [file for files in lists for file in files]

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return 1

    @property
    def pictures(self) -> bool:
        """Whether a source is an image."""
        return False

    @property
    def listing(self) -> str | None:
        """The field that names the files of examples; `None` if they cannot be replaced by other files."""
        return next(iter(type(self).model_fields))


class PairedFiles(_Corpus):
    """Two aligned text files (or two lists of them): line n of one is the translation of line n of the other."""

    source: Paths
    """Source file or files, plain or gzip, UTF-8, one sentence per line."""
    target: Paths
    """Target file or files, in the same order."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"{', '.join(self.source)} with {', '.join(self.target)}"

    @property
    def listing(self) -> str | None:
        """None: there are two such fields."""
        return None

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"has {len(self.source)} source and {len(self.target)} target files. Each needs its counterpart."
            )
        return self


def _as_name(value: Any) -> Any:
    """Return the number of a column as a string."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Column = Annotated[str, BeforeValidator(_as_name), Field(min_length=1)]
"""The name of a column in the header, or its number, counted from 1."""


class TableFiles(_Corpus):
    """Tables with named columns: CSV, TSV, XLSX or Parquet, according to the ending of the file name."""

    table: Paths
    """File or files that end in .csv, .tsv (plain or gzip, UTF-8), .xlsx (its first sheet) or .parquet."""
    source: Column = "source"
    """Name of the source column, or its number, counted from 1."""
    second: Column | None = None
    """Name of the column of a second text that belongs to the source: the other sentence of a pair, a question."""
    target: Column = "target"
    """Name of the target column: the target sentence, or the label."""
    header: bool | None = None
    """Whether the first row names the columns; needed only if `source` and `target` are numbers."""

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return 1 if self.second is None else 2


class TsvFiles(_Corpus):
    """Tab-separated files with a source and a target column."""

    tsv: Paths
    """File or files, plain or gzip, UTF-8, one pair per line."""
    header: bool | None = None
    """Whether the first line of each file names the columns and is skipped; set it if the first line looks like it."""
    source_column: int = Field(default=1, ge=1)
    """Column of the source sentence, counted from 1."""
    second_column: int | None = Field(default=None, ge=1)
    """Column of a second text that belongs to the source: the other sentence of a pair, a question."""
    target_column: int = Field(default=2, ge=1)
    """Column of the target sentence, or of the label, counted from 1."""

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return 1 if self.second_column is None else 2


class JsonLines(_Corpus):
    """Files with one JSON object per line."""

    jsonl: Paths
    """File or files, plain or gzip, UTF-8."""
    source_field: str = "source"
    """Name of the field that holds the source sentence."""
    second_field: str | None = None
    """Name of the field of a second text that belongs to the source: the other sentence of a pair, a question."""
    target_field: str = "target"
    """Name of the field that holds the target sentence, or the label."""

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return 1 if self.second_field is None else 2


class LabelledLines(_Corpus):
    """Files with a label and a text on each line."""

    labelled: Paths
    """File or files, plain or gzip, UTF-8: the first word of a line is its label, the rest the text."""


class ConlluFiles(_Corpus):
    """Files in CoNLL-U, the format of Universal Dependencies: ten columns, one word per line."""

    conllu: Paths
    """File or files, plain or gzip, UTF-8."""
    tag: Literal["upos", "xpos"] = "upos"
    """Which tag: the universal part of speech (column 4), or the language's own (column 5)."""


class ColumnFiles(_Corpus):
    """Files with a word and its tag on each line, and an empty line after each sentence."""

    columns: Paths
    """File or files, plain or gzip, UTF-8: tabs between the columns, or white space where a line has no tab."""
    word_column: int | None = Field(default=None, ge=1)
    """Column of the word, counted from 1; needed if there are more than two, as in CoNLL-2003."""
    tag_column: int | None = Field(default=None, ge=1)
    """Column of the tag, counted from 1; needed if there are more than two."""


class TextFiles(_Corpus):
    """Plain text."""

    text: Paths
    """File or files, plain or gzip, UTF-8."""
    documents: Literal["lines", "paragraphs"] = "lines"
    """What a document is: a line, or all lines up to the next empty one."""


class JsonTexts(_Corpus):
    """Files with one JSON object per line, one field of which is text."""

    json_text: Paths
    """File or files, plain or gzip, UTF-8."""
    field: str = "text"
    """Name of the field: a string, or a list of strings, such as the turns of a dialogue."""


class BabiFiles(_Corpus):
    """Stories with questions in the format of the bAbI tasks (Weston et al., 2015)."""

    babi: Paths
    """File or files, plain or gzip, UTF-8: numbered lines; tabs separate a question, its answer and its evidence."""

    @property
    def texts(self) -> int:
        """Two: the story so far, and the question."""
        return 2


class ImageFiles(_Corpus):
    """Images in a folder, and files with their captions; an image may have several."""

    images: File
    """Folder, or zip file, of pictures: PNG, JPEG, GIF, BMP or WebP."""
    captions: Paths
    """File or files, plain or gzip, UTF-8: a picture's name and a caption per line, by tabs or (`.jsonl`) as JSON."""
    header: bool = False
    """Tabs: whether the first line of each file names the columns and is skipped."""
    image_column: int = Field(default=1, ge=1)
    """Tabs: column of the picture's name, counted from 1."""
    caption_column: int = Field(default=2, ge=1)
    """Tabs: column of the caption, or of the answer, counted from 1."""
    question_column: int | None = Field(default=None, ge=1)
    """Tabs: column of a question about the picture, counted from 1; the caption is then its answer."""
    split_column: int | None = Field(default=None, ge=1)
    """Tabs: column with the part of the corpus that a line belongs to; see `split`."""
    image_field: str = "image"
    """JSON: field of the picture's name."""
    caption_field: str = "caption"
    """JSON: field of the caption: a string, or a list of several; or of the answer."""
    question_field: str | None = None
    """JSON: field of a question about the picture; the caption is then its answer."""
    split_field: str | None = None
    """JSON: field with the part of the corpus that a line belongs to; see `split`."""
    split: str | None = None
    """Which part to take, such as `train`; by default all lines."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        part = f" ({self.split})" if self.split else ""
        return f"{', '.join(self.captions)}{part} with the pictures of {self.images}"

    @property
    def listing(self) -> str | None:
        """The files of captions."""
        return "captions"

    @property
    def texts(self) -> int:
        """Number of texts of a source; a question counts as one, an image does not."""
        return 1 if self.question_column is None and self.question_field is None else 2

    @property
    def pictures(self) -> bool:
        """Whether a source is an image."""
        return True

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if (self.split is None) != (self.split_column is None and self.split_field is None):
            raise ValueError(
                "needs both split, the part of the corpus to use, and split_column (split_field), which names the "
                "part of each line. Set both, or neither."
            )
        return self


class SoundFiles(_Corpus):
    """Sounds in a folder, and files that give the text or the label of each."""

    sounds: File
    """Folder, or zip file, of sounds: WAV, FLAC or OGG."""
    manifest: Paths
    """File or files, plain or gzip, UTF-8: a sound's name and its text per line, by tabs or (`.jsonl`) as JSON."""
    header: bool = False
    """Tabs: whether the first line of each file names the columns and is skipped."""
    sound_column: int = Field(default=1, ge=1)
    """Tabs: column of the name of the sound, counted from 1."""
    text_column: int = Field(default=2, ge=1)
    """Tabs: column of the text or the label, counted from 1."""
    sound_field: str = "sound"
    """JSON: field of the name of the sound."""
    text_field: str = "text"
    """JSON: field of the text or the label."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"{', '.join(self.manifest)} with the sounds of {self.sounds}"

    @property
    def listing(self) -> str | None:
        """The manifest."""
        return "manifest"


class SpokenWords(_Corpus):
    """Recordings of single words, named `WORD_SPEAKER_NUMBER.wav`: alone, or several of one speaker with pauses."""

    spoken_words: File
    """Folder, or zip file, of the recordings."""
    speakers: list[str] | None = None
    """Whose recordings to use; by default those of all speakers."""
    without_speakers: list[str] = Field(default_factory=list)
    """Whose recordings to leave out, such as the speaker to test with."""
    min_words: int = Field(default=1, ge=1, le=100)
    """Fewest words of a sequence."""
    max_words: int = Field(default=1, ge=1, le=100)
    """Most words of a sequence; 1: every recording once, by itself."""
    size: int = Field(default=5000, ge=1, le=10_000_000)
    """How many sequences to make, if `max_words` is more than 1."""
    seed: int = 0
    """Different seeds make different sequences."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"the recordings of {self.spoken_words}"

    @property
    def listing(self) -> str | None:
        """None: the names of the recordings are the examples."""
        return None

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"has min_words {self.min_words} above max_words {self.max_words}. Swap them.")
        return self


class Generated(_Corpus):
    """A generated corpus; the same settings always give the same pairs."""

    generate: Literal["dates", "copy", "reverse", "sort", "shapes", "questions"]
    """`dates`: free-form dates to ISO 8601; `shapes`: pictures of coloured shapes with sentences that are true of them;
    `questions`: the same pictures with questions and answers; `copy`, `reverse`, `sort`: rows of symbols."""
    size: int = Field(default=20_000, ge=1, le=100_000_000)
    """How many distinct pairs (`shapes`, `questions`: pictures) to make."""
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
        return self.generate in ("shapes", "questions")

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


class ReaderFiles(_Corpus):
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


class Elsewhere(_Corpus):
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
    "tsv",
    "jsonl",
    "generate",
    "labelled",
    "conllu",
    "columns",
    "text",
    "json_text",
    "babi",
    "images",
    "sounds",
    "spoken_words",
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
    | Annotated[PairedFiles, Tag("paired")]
    | Annotated[TsvFiles, Tag("tsv")]
    | Annotated[JsonLines, Tag("jsonl")]
    | Annotated[Generated, Tag("generate")]
    | Annotated[LabelledLines, Tag("labelled")]
    | Annotated[ConlluFiles, Tag("conllu")]
    | Annotated[ColumnFiles, Tag("columns")]
    | Annotated[TextFiles, Tag("text")]
    | Annotated[JsonTexts, Tag("json_text")]
    | Annotated[BabiFiles, Tag("babi")]
    | Annotated[ImageFiles, Tag("images")]
    | Annotated[SoundFiles, Tag("sounds")]
    | Annotated[SpokenWords, Tag("spoken_words")]
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
    duplicates: Literal["drop", "keep"] = "drop"
    """Exact repeats of a pair add no information and leak into held-out data."""


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

    @property
    def plugins(self) -> list[str]:
        """The extension modules that read the corpora."""
        corpora = [one for one in (self.train, self.validation, self.test) if isinstance(one, ReaderFiles)]
        return sorted({plugin for one in corpora if (plugin := READERS.plugin_of(one.reader))})
