"""Where sentence pairs come from and which of them are kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from regard.config.section import Section


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


class PairedFiles(Section):
    """Two aligned text files (or two lists of them): line n of one is the translation of line n of the other."""

    source: Paths
    """Source file or files, plain or gzip, UTF-8, one sentence a line."""
    target: Paths
    """Target file or files, in the same order."""

    @model_validator(mode="after")
    def _in_step(self) -> Self:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"has {len(self.source)} source and {len(self.target)} target files: each needs its counterpart."
            )
        return self


class TsvFiles(Section):
    """Tab-separated files with a source and a target column."""

    tsv: Paths
    """File or files, plain or gzip, UTF-8, one pair a line, no header."""
    source_column: int = Field(default=1, ge=1)
    """Column of the source sentence, counted from 1."""
    target_column: int = Field(default=2, ge=1)
    """Column of the target sentence, counted from 1."""


class JsonLines(Section):
    """Files with one JSON object a line."""

    jsonl: Paths
    """File or files, plain or gzip, UTF-8."""
    source_field: str = "source"
    """Name of the field that holds the source sentence."""
    target_field: str = "target"
    """Name of the field that holds the target sentence."""


class Generated(Section):
    """A built-in corpus, made on the spot: the same settings always give the same pairs."""

    generate: Literal["dates", "copy", "reverse", "sort"]
    """`dates`: free-form dates in many languages to ISO 8601; the others do to a row of symbols what they say."""
    size: int = Field(default=20_000, ge=1, le=100_000_000)
    """How many distinct pairs to make."""
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

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"has min_length {self.min_length} above max_length {self.max_length}: swap them.")
        if self.languages is not None and not self.languages:
            raise ValueError("has an empty list of languages: name at least one, such as `en`, or leave languages out.")
        return self


class Elsewhere(Section):
    """A corpus that is not here: that of a model which others have trained (`regard import`)."""

    imported: str
    """Where the model was imported from."""


_KEY_OF_KIND = {"tsv": "tsv", "jsonl": "jsonl", "generate": "generate", "imported": "imported"}


def _kind_of_corpus(value: Any) -> str:
    """A corpus is told apart by the key that names its data."""
    for key, kind in _KEY_OF_KIND.items():
        if key in value if isinstance(value, Mapping) else hasattr(value, key):
            return kind
    return "paired"


Corpus = Annotated[
    Annotated[PairedFiles, Tag("paired")]
    | Annotated[TsvFiles, Tag("tsv")]
    | Annotated[JsonLines, Tag("jsonl")]
    | Annotated[Generated, Tag("generate")]
    | Annotated[Elsewhere, Tag("imported")],
    Discriminator(_kind_of_corpus),
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

    train: Corpus
    """What the model learns from."""
    validation: Corpus | None = None
    """What it is judged by while it learns; without one, `held_out` pairs are set aside from `train`."""
    test: Corpus | None = None
    """Scored once, at the end, for the run's card."""
    held_out: int = Field(default=1000, ge=1)
    """Pairs set aside from `train` when there is no `validation` (never more than a tenth of them)."""
    cleaning: Cleaning = Cleaning()
    """Which training pairs are dropped."""
