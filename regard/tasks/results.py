"""Results of trained models, one type for each kind of output.

Every result prints as one line (`line`, as the command line writes it), is plain data for JSON (`facts`), and has a
notebook representation.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.pages import notebook


class Result(ABC):
    """One result of a model."""

    fields: ClassVar[tuple[str, ...]] = ()
    """The names that `facts` always has."""

    @property
    @abstractmethod
    def line(self) -> str:
        """The result on one line, as the command line prints it."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The result as plain data for JSON."""

    def __str__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        return notebook.show_line(self.line)


@dataclass(frozen=True)
class Text(Result):
    """A generated text: a translation, a caption, an answer, a continuation."""

    fields = ("text", "score", "log_probs", "confidence")
    text: str
    """The generated text."""
    score: float
    """Log-probability, divided by the length penalty of the search."""
    log_probs: tuple[float, ...] = ()
    """Log-probability of each token, the end symbol included."""
    alternatives: tuple["Text", ...] = ()
    """The other outputs of an n-best search, best first."""
    confidence: float = 0.0
    """The geometric mean of the probabilities of its tokens, from 0 to 1. It is not calibrated."""

    @property
    def line(self) -> str:
        """The text."""
        return self.text

    @property
    def facts(self) -> dict[str, Any]:
        """Text, score, confidence and alternatives."""
        found: dict[str, Any] = {
            "text": self.text,
            "score": self.score,
            "log_probs": list(self.log_probs),
            "confidence": self.confidence,
        }
        return found | (
            {"alternatives": [alternative.facts for alternative in self.alternatives]} if self.alternatives else {}
        )

    def __repr__(self) -> str:
        more = f", {len(self.alternatives)} alternatives" if self.alternatives else ""
        return f"Text({self.text!r}, score={self.score:.3f}{more})"


@dataclass(frozen=True)
class Label(Result):
    """A class, and the probability of every class."""

    fields = ("label", "probabilities")
    label: str
    """The most probable class."""
    probabilities: Mapping[str, float]
    """The probability of every class, by name."""

    @property
    def probability(self) -> float:
        """The probability of the label."""
        return self.probabilities[self.label]

    @property
    def line(self) -> str:
        """Label and probability, with a tab between them."""
        return f"{self.label}\t{self.probability:.4f}"

    @property
    def facts(self) -> dict[str, Any]:
        """The label and the probability of every label."""
        return {"label": self.label, "probabilities": dict(self.probabilities)}

    def __repr__(self) -> str:
        return f"Label({self.label!r}, probability={self.probability:.3f})"

    def _repr_html_(self) -> str:
        return notebook.show_probabilities(self.probabilities)


@dataclass(frozen=True)
class Number(Result):
    """An estimate."""

    fields = ("number",)
    value: float
    """The estimated number."""

    @property
    def line(self) -> str:
        """The number, to six digits."""
        return f"{self.value:.6g}"

    @property
    def facts(self) -> dict[str, Any]:
        """The number."""
        return {"number": self.value}

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"Number({self.value:.4g})"


@dataclass(frozen=True)
class Tags(Result):
    """A tag for each word; iterating gives (word, tag) pairs."""

    fields = ("words", "tags", "probabilities")
    words: Sequence[str]
    """The words of the text."""
    tags: Sequence[str]
    """The tag of each word."""
    probabilities: Sequence[float] = ()
    """The probability of each tag."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(zip(self.words, self.tags, strict=True))

    @property
    def line(self) -> str:
        """word/tag word/tag …"""
        return " ".join(f"{word}/{tag}" for word, tag in self)

    @property
    def facts(self) -> dict[str, Any]:
        """Words, tags and their probabilities."""
        return {"words": list(self.words), "tags": list(self.tags), "probabilities": list(self.probabilities)}

    def __repr__(self) -> str:
        return f"Tags({self.line!r})"


@dataclass(frozen=True)
class FilledText(Result):
    """A text whose blanks `___` a masked model has filled."""

    fields = ("filled", "blanks")
    text: str
    """The text with the most likely word in every blank."""
    blanks: Sequence[Sequence[str]]
    """The most likely words for each blank, best first."""

    @property
    def line(self) -> str:
        """The filled text."""
        return self.text

    @property
    def facts(self) -> dict[str, Any]:
        """The filled text and the most likely words for each blank."""
        return {"filled": self.text, "blanks": [list(guesses) for guesses in self.blanks]}


@dataclass(frozen=True)
class Nothing(Result):
    """The result for an empty input."""

    of: type[Result] | None = None
    """The type of the results for other inputs."""

    @property
    def line(self) -> str:
        """An empty line."""
        return ""

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of other results, each `None`."""
        return dict.fromkeys(self.of.fields if self.of else ())
