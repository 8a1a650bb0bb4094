"""Where sentence pairs come from and which of them are kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from regard.config.choices import READERS
from regard.config.section import Section

FEW_EXAMPLES = 100
"""Training examples below which a user is told that they are few."""


def _as_list(value: Any) -> Any:
    """One path stands for a list of one path."""
    return [value] if isinstance(value, str) else value


def _expanded(path: str) -> str:
    """`~` stands for the home directory, where there is one."""
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        return path


File = Annotated[str, Field(min_length=1), AfterValidator(_expanded)]
Paths = Annotated[list[File], BeforeValidator(_as_list), Field(min_length=1)]
"""Files, relative to the current directory."""


class _Corpus(Section):
    """What every corpus says of itself."""

    @property
    def name(self) -> str:
        """The corpus in a few words, for messages: its files."""
        return ", ".join(getattr(self, next(iter(type(self).model_fields))))

    @property
    def files(self) -> list[str]:
        """Every file of it."""
        lists = [
            getattr(self, name) for name, field in type(self).model_fields.items() if field.annotation == list[File]
        ]
        return [file for files in lists for file in files]

    @property
    def texts(self) -> int:
        """How many texts a source has."""
        return 1

    @property
    def pictures(self) -> bool:
        """Whether a source is a picture."""
        return False

    @property
    def listing(self) -> str | None:
        """The field that names the files with examples; `None` where other files cannot take their place."""
        return next(iter(type(self).model_fields))


class PairedFiles(_Corpus):
    """Two aligned text files (or two lists of them): line n of one is the translation of line n of the other."""

    source: Paths
    """Source file or files, plain or gzip, UTF-8, one sentence a line."""
    target: Paths
    """Target file or files, in the same order."""

    @property
    def name(self) -> str:
        """The corpus in a few words, for messages."""
        return f"{', '.join(self.source)} with {', '.join(self.target)}"

    @property
    def listing(self) -> str | None:
        """There are two."""
        return None

    @model_validator(mode="after")
    def _in_step(self) -> Self:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"has {len(self.source)} source and {len(self.target)} target files: each needs its counterpart."
            )
        return self


def _as_name(value: Any) -> Any:
    """The number of a column stands for a name."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Column = Annotated[str, BeforeValidator(_as_name), Field(min_length=1)]
"""The name of a column in the header, or its number, counted from 1."""


class TableFiles(_Corpus):
    """Tables with named columns: CSV, TSV, XLSX or Parquet, as the ending of the file says."""

    table: Paths
    """File or files that end in .csv, .tsv (plain or gzip, UTF-8), .xlsx (its first sheet) or .parquet."""
    source: Column = "source"
    """Name of the column that is read; or its number, counted from 1."""
    second: Column | None = None
    """Name of the column of a second text that belongs to the source: the other sentence of a pair, a question."""
    target: Column = "target"
    """Name of the column that is written: the target sentence, or the label."""
    header: bool | None = None
    """Whether the first row names the columns: known where `source` and `target` are names of it."""

    @property
    def texts(self) -> int:
        """How many texts a source has."""
        return 1 if self.second is None else 2


class TsvFiles(_Corpus):
    """Tab-separated files with a source and a target column."""

    tsv: Paths
    """File or files, plain or gzip, UTF-8, one pair a line."""
    header: bool | None = None
    """Whether the first line of each file names the columns, and is passed over; one that looks so must be declared."""
    source_column: int = Field(default=1, ge=1)
    """Column of the source sentence, counted from 1."""
    second_column: int | None = Field(default=None, ge=1)
    """Column of a second text that belongs to the source: the other sentence of a pair, a question."""
    target_column: int = Field(default=2, ge=1)
    """Column of the target sentence, or of the label, counted from 1."""

    @property
    def texts(self) -> int:
        """How many texts a source has."""
        return 1 if self.second_column is None else 2


class JsonLines(_Corpus):
    """Files with one JSON object a line."""

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
        """How many texts a source has."""
        return 1 if self.second_field is None else 2


class LabelledLines(_Corpus):
    """Files with a label and a text on each line."""

    labelled: Paths
    """File or files, plain or gzip, UTF-8: the first word of a line is its label, the rest the text."""


class ConlluFiles(_Corpus):
    """Files in CoNLL-U, the format of Universal Dependencies: ten columns, a word a line."""

    conllu: Paths
    """File or files, plain or gzip, UTF-8."""
    tag: Literal["upos", "xpos"] = "upos"
    """Which tag: the universal part of speech (column 4), or the language's own (column 5)."""


class ColumnFiles(_Corpus):
    """Files with a word and its tag on each line, and an empty line behind each sentence."""

    columns: Paths
    """File or files, plain or gzip, UTF-8: tabs between the columns, or white space where a line has no tab."""
    word_column: int | None = Field(default=None, ge=1)
    """Column of the word, counted from 1: needed where there are more than two, such as in CoNLL-2003."""
    tag_column: int | None = Field(default=None, ge=1)
    """Column of the tag, counted from 1: needed where there are more than two."""


class TextFiles(_Corpus):
    """Plain text."""

    text: Paths
    """File or files, plain or gzip, UTF-8."""
    documents: Literal["lines", "paragraphs"] = "lines"
    """What a document is: a line, or lines up to the next empty one."""


class JsonTexts(_Corpus):
    """Files with one JSON object a line, one field of which is text."""

    json_text: Paths
    """File or files, plain or gzip, UTF-8."""
    field: str = "text"
    """Name of the field: a string, or a list of strings, such as the turns of a dialogue."""


class BabiFiles(_Corpus):
    """Stories with questions in the format of the bAbI tasks (Weston et al., 2015)."""

    babi: Paths
    """File or files, plain or gzip, UTF-8: numbered lines; a question has its answer and its evidence behind tabs."""

    @property
    def texts(self) -> int:
        """The story so far, and the question."""
        return 2


class ImageFiles(_Corpus):
    """Pictures in a folder, and files that say what is to be seen in each; a picture may have several captions."""

    images: File
    """Folder, or zip file, of pictures: PNG, JPEG, GIF, BMP or WebP."""
    captions: Paths
    """File or files, plain or gzip, UTF-8: a picture's name and a caption a line, by tabs or (`.jsonl`) as JSON."""
    header: bool = False
    """Tabs: whether the first line of each file names the columns, and is passed over."""
    image_column: int = Field(default=1, ge=1)
    """Tabs: column of the picture's name, counted from 1."""
    caption_column: int = Field(default=2, ge=1)
    """Tabs: column of the caption, or of the answer, counted from 1."""
    question_column: int | None = Field(default=None, ge=1)
    """Tabs: column of a question about the picture, counted from 1; the caption is then its answer."""
    split_column: int | None = Field(default=None, ge=1)
    """Tabs: column that says which part of the corpus a line belongs to; see `split`."""
    image_field: str = "image"
    """JSON: field of the picture's name."""
    caption_field: str = "caption"
    """JSON: field of the caption: a string, or a list of several; or of the answer."""
    question_field: str | None = None
    """JSON: field of a question about the picture; the caption is then its answer."""
    split_field: str | None = None
    """JSON: field that says which part of the corpus a line belongs to; see `split`."""
    split: str | None = None
    """Which part to take, such as `train`; by default all lines."""

    @property
    def name(self) -> str:
        """The corpus in a few words, for messages."""
        part = f" ({self.split})" if self.split else ""
        return f"{', '.join(self.captions)}{part} with the pictures of {self.images}"

    @property
    def listing(self) -> str | None:
        """The files with the captions."""
        return "captions"

    @property
    def texts(self) -> int:
        """A question stands beside its picture."""
        return 1 if self.question_column is None and self.question_field is None else 2

    @property
    def pictures(self) -> bool:
        """Whether a source is a picture."""
        return True

    @model_validator(mode="after")
    def _said_where(self) -> Self:
        if (self.split is None) != (self.split_column is None and self.split_field is None):
            raise ValueError(
                "needs both: split, the part of the corpus to take, and split_column (split_field), where that is said."
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
        """The corpus in a few words, for messages."""
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
        """The corpus in a few words, for messages."""
        return f"the recordings of {self.spoken_words}"

    @property
    def listing(self) -> str | None:
        """The names of the recordings are the examples."""
        return None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"has min_words {self.min_words} above max_words {self.max_words}: swap them.")
        return self


class Generated(_Corpus):
    """A built-in corpus, made on the spot: the same settings always give the same pairs."""

    generate: Literal["dates", "copy", "reverse", "sort", "shapes", "questions"]
    """`dates`: free-form dates to ISO 8601; `shapes`: pictures of coloured shapes with sentences that are true of them;
    `questions`: the same pictures with questions and answers; the others do to a row of symbols what they say."""
    size: int = Field(default=20_000, ge=1, le=100_000_000)
    """How many distinct pairs (`shapes`, `questions`: pictures) to make."""
    captions: int = Field(default=2, ge=1, le=100)
    """`shapes` only: sentences for each picture."""
    questions: int = Field(default=4, ge=1, le=100)
    """`questions` only: questions about each picture."""
    seed: int = 0
    """Two different seeds give two different corpora."""
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
        """The corpus in a few words, for messages."""
        return f"the generated corpus `{self.generate}`"

    @property
    def listing(self) -> str | None:
        """It has no files."""
        return None

    @property
    def pictures(self) -> bool:
        """Whether a source is a picture."""
        return self.generate in ("shapes", "questions")

    @property
    def texts(self) -> int:
        """A question stands beside its picture."""
        return 2 if self.generate == "questions" else 1

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"has min_length {self.min_length} above max_length {self.max_length}: swap them.")
        if self.languages is not None and not self.languages:
            raise ValueError("has an empty list of languages: name at least one, such as `en`, or leave languages out.")
        return self


class ReaderFiles(_Corpus):
    """Files of a format that an extension reads (see `regard.extensions.corpus_format`)."""

    reader: Annotated[str, READERS]
    """The name of the format."""
    paths: Paths
    """Its file or files."""
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """What the reader is told besides."""
    source_texts: Annotated[int, Field(ge=1, le=2)] = 1
    """How many texts a source is, with a tab between them."""

    @property
    def name(self) -> str:
        """The corpus in a few words, for messages."""
        return ", ".join(self.paths)

    @property
    def listing(self) -> str | None:
        """The files that the reader reads."""
        return "paths"

    @property
    def texts(self) -> int:
        """How many texts a source has."""
        return self.source_texts


class Elsewhere(_Corpus):
    """A corpus that is not here: that of a model which others have trained (`regard import`)."""

    imported: str
    """Where the model was imported from."""

    @property
    def name(self) -> str:
        """The corpus in a few words, for messages."""
        return f"the corpus of {self.imported}"

    @property
    def listing(self) -> str | None:
        """Its files are not here."""
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
    """A corpus is told apart by the key that names its data."""
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
    """Longest side in tokens; long pairs cost memory by the square and are rarely good alignments."""
    max_characters: int = Field(default=10_000, ge=1)
    """Longest side in characters: a guard before tokenising, so that a broken line costs nothing."""
    max_ratio: float = Field(default=5.0, ge=1.0)
    """Largest ratio of character lengths (ten characters of grace each); beyond it a pair is rarely a translation."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Exact repeats of a pair teach nothing new and leak into held-out data."""


class Data(Section):
    """The corpora of a run."""

    corpus: str | None = None
    """A public corpus such as `multi30k/en-de`, which sets `train` and, where it has them, `validation` and `test`."""
    train: Corpus
    """What the model learns from."""
    validation: Corpus | None = None
    """What it is judged by while it learns; without one, `held_out` pairs are set aside from `train`."""
    test: Corpus | None = None
    """Scored once, at the end, for the run's card."""
    held_out: int = Field(default=1000, ge=1)
    """Pairs set aside from `train` when there is no `validation` (never more than a tenth of them)."""
    held_out_test: int = Field(default=0, ge=0)
    """Pairs set aside from `train` when there is no `test`, likewise; they are scored at the end and choose nothing."""
    every: int = Field(default=1, ge=1)
    """Of `train` only every so many-th example, or picture: 12 takes the 1st, the 13th and so on, for a quick look."""
    joined: float = Field(default=0.0, ge=0.0, le=10.0)
    """Longer pairs made of short ones: for every hundred pairs of `train`, `100 * joined` more of two to four each."""
    cleaning: Cleaning = Cleaning()
    """Which training pairs are dropped."""

    @property
    def plugins(self) -> list[str]:
        """The extension modules that read the corpora."""
        corpora = [one for one in (self.train, self.validation, self.test) if isinstance(one, ReaderFiles)]
        return sorted({plugin for one in corpora if (plugin := READERS.plugin_of(one.reader))})
