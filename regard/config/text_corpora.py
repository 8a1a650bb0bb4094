"""Corpora of text: paired files, tables, JSON lines, labelled and tagged text, and documents."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from regard.config.section import Section


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


class CorpusSection(Section):
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


class PairedFiles(CorpusSection):
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


class TableFiles(CorpusSection):
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


class DatasetDirectories(CorpusSection):
    """Datasets of Hugging Face: directories of `save_to_disk`, or of the Parquet files of a repository on the hub."""

    dataset: Paths
    """Directory or directories, each of one dataset."""
    split: str = "train"
    """The split that is read, such as `train` or `validation`; a dataset without splits is read as a whole."""
    source: Column = "source"
    """Name of the source column; `translation.en`, or `en` for short, is a language of a column of translations."""
    second: Column | None = None
    """Name of the column of a second text that belongs to the source: the other sentence of a pair, a question."""
    target: Column = "target"
    """Name of the target column: the target sentence, or the label."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"{', '.join(self.dataset)} ({self.split})"

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return 1 if self.second is None else 2


class TsvFiles(CorpusSection):
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


class JsonLines(CorpusSection):
    """Files with one JSON object per line."""

    jsonl: Paths
    """File or files, plain or gzip, UTF-8."""
    source_field: str = "source"
    """Name of the field that holds the source sentence."""
    second_field: str | None = None
    """Name of the field of a second text that belongs to the source: the other sentence of a pair, a question."""
    target_field: str = "target"
    """Name of the field that holds the target sentence, or the label; a list of texts has several references, each of
    which is an example."""

    @property
    def texts(self) -> int:
        """Number of texts of a source."""
        return 1 if self.second_field is None else 2


class RecordFiles(CorpusSection):
    """Records with the texts that describe them: JSON lines, or tables whose other columns are the record."""

    records: Paths
    """File or files: one JSON object per line (plain or gzip, UTF-8), or a table (.csv, .tsv, .xlsx, .parquet)."""
    record_field: str | None = None
    """JSON lines: name of the field that holds the record, an object or a list of triples; by default the record is
    the whole object without the text."""
    text_field: str = "text"
    """Name of the field, or of the column, that holds the text; in JSON lines a list of texts has several references,
    each of which is a training example."""


class LabelledLines(CorpusSection):
    """Files with a label and a text on each line."""

    labelled: Paths
    """File or files, plain or gzip, UTF-8: the first word of a line is its label, the rest the text."""


class ConlluFiles(CorpusSection):
    """Files in CoNLL-U, the format of Universal Dependencies: ten columns, one word per line."""

    conllu: Paths
    """File or files, plain or gzip, UTF-8."""
    tag: Literal["upos", "xpos", "lemma", "feats", "head", "deprel", "deps", "misc"] = "upos"
    """Which column: the universal part of speech, the language's own, morphology (`feats`), relation (`deprel`) …"""


class ColumnFiles(CorpusSection):
    """Files with a word and its tag on each line, and an empty line after each sentence."""

    columns: Paths
    """File or files, plain or gzip, UTF-8: tabs between the columns, or white space where a line has no tab."""
    word_column: int | None = Field(default=None, ge=1)
    """Column of the word, counted from 1; needed if there are more than two, as in CoNLL-2003."""
    tag_column: int | None = Field(default=None, ge=1)
    """Column of the tag, counted from 1; needed if there are more than two."""


class TextFiles(CorpusSection):
    """Plain text."""

    text: Paths
    """File or files, plain or gzip, UTF-8."""
    documents: Literal["lines", "paragraphs"] = "lines"
    """What a document is: a line, or all lines up to the next empty one."""


class JsonTexts(CorpusSection):
    """Files with one JSON object per line, one field of which is text."""

    json_text: Paths
    """File or files, plain or gzip, UTF-8."""
    field: str = "text"
    """Name of the field: a string, or a list of strings, such as the turns of a dialogue."""


class GapSentences(CorpusSection):
    """Documents without one of their most important sentences, and this sentence as target (PEGASUS).

    Pretraining for summaries (Zhang et al., 2020). A sentence is important if it shares many words with the others.
    """

    gap_sentences: Paths
    """File or files, plain or gzip, UTF-8: one JSON object per line if the name ends in .jsonl or .json (or .gz after
    it), otherwise one document per line."""
    field: str = "text"
    """JSON lines: name of the field that holds the document."""
    share: float = Field(default=0.3, gt=0.0, le=1.0)
    """Share of the sentences of a document that are targets, each of another example; at least one."""
    kept: float = Field(default=0.2, ge=0.0, le=1.0)
    """Share of examples whose source still has the sentence, so that the model also learns to copy what matters."""
    min_words: int = Field(default=3, ge=1)
    """Fewest words of a target."""
    max_words: int = Field(default=25, ge=1)
    """Most words of a target; long ones cost time and are rarely like a summary."""


class BabiFiles(CorpusSection):
    """Stories with questions in the format of the bAbI tasks (Weston et al., 2015)."""

    babi: Paths
    """File or files, plain or gzip, UTF-8: numbered lines; tabs separate a question, its answer and its evidence."""

    @property
    def texts(self) -> int:
        """Two: the story so far, and the question."""
        return 2
