"""Vocabularies of a run, learned from its training data: tokenizers and labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from regard.config.run import RunConfig
from regard.config.start import reads_text, tokenizer_sides
from regard.config.task import DataToText
from regard.data.labels import Labels
from regard.text.joined import Joined
from regard.text.learning import WordCounts, train_both, train_target, train_tokenizer
from regard.text.records import RecordTokenizer, record_form
from regard.text.tokenizer import Tokenizer

BOTH = ("source", "target")


class Vocabulary(Protocol):
    """A tokenizer or a set of labels."""

    @property
    def size(self) -> int:
        """The number of entries."""

    @property
    def fingerprint(self) -> str:
        """Hash of the content."""

    def save(self, path: Path, /) -> None:
        """Write it as JSON."""


@dataclass(frozen=True, kw_only=True)
class Vocabularies:
    """The tokenizers of both sides, one object if they share it, and the labels; `None` if the task has none."""

    source: Tokenizer | None = None
    target: Tokenizer | None = None
    labels: Labels | None = None

    @property
    def by_name(self) -> Mapping[str, Vocabulary]:
        """The existing vocabularies by name; the weights of a run fit only these."""
        named = {"source": self.source, "target": self.target, "labels": self.labels}
        return {name: vocabulary for name, vocabulary in named.items() if vocabulary is not None}

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of each vocabulary by name."""
        return {name: vocabulary.fingerprint for name, vocabulary in self.by_name.items()}

    @classmethod
    def load(cls, config: RunConfig, directory: Path, sides: Iterable[str], *, labels: bool) -> Self:
        """Read what `save` wrote.

        Args:
            config: The configuration of the run.
            directory: The `tokenizers` directory of the run.
            sides: The sides of a pair that are text: `source`, `target` or both.
            labels: Whether the task has labels.
        """
        sides = tuple(sides)
        source, target = load_tokenizers(directory) if sides else (None, None)
        return cls(
            source=with_texts(config, source) if source and "source" in sides else None,
            target=target if "target" in sides else None,
            labels=Labels.load(directory / "labels.json") if labels else None,
        )

    def save(self, directory: Path) -> None:
        """Write each to a file; a tokenizer that both sides share is written once."""
        tokenizers = [tokenizer for tokenizer in (self.target, self.source) if tokenizer is not None]
        directory.mkdir(parents=True, exist_ok=True)
        if len({tokenizer.fingerprint for tokenizer in tokenizers}) == 1:
            tokenizers[0].save(directory / "shared.json")
        else:
            for name, tokenizer in (("source", self.source), ("target", self.target)):
                if tokenizer is not None:
                    tokenizer.save(directory / f"{name}.json")
        if self.labels is not None:
            self.labels.save(directory / "labels.json")


def words_to_count(config: RunConfig, sides: Iterable[str]) -> WordCounts:
    """Return empty counts of the words that tokenizers of these sides are learned from."""
    sides = tuple(sides)
    has_known_source = config.model.start_from is not None and tokenizer_sides(config)[0] is not None
    return WordCounts(sides, shared=len(sides) == len(BOTH) and config.text.shared and not has_known_source)


def learn_tokenizers(
    config: RunConfig, words: WordCounts, sides: Iterable[str]
) -> tuple[Tokenizer | None, Tokenizer | None]:
    """Return source and target tokenizer, learned from words or taken from the run that this run starts from."""
    sides = tuple(sides)
    known = known_tokenizers(config)
    if "source" in sides and "target" in sides:
        source, target = known
        if source is None:
            source, target = train_both(config.text, words)
        return with_texts(config, source), target or train_target(config.text, words)
    if "source" in sides:
        tokenizer = known[0 if reads_text(type(config.task)) else 1] or train_tokenizer(config.text, words, "source")
        return with_texts(config, tokenizer), None
    if "target" in sides:
        return None, known[1] or train_tokenizer(config.text, words, "target")
    return None, None


def known_tokenizers(config: RunConfig) -> tuple[Tokenizer | None, Tokenizer | None]:
    """Return the source and target tokenizer of the run that this run starts from; `None` for each that is new."""
    source, target = tokenizer_sides(config)
    if config.model.start_from is None or (source is None and target is None):
        return None, None
    there = dict(zip(("source", "target"), load_tokenizers(Path(config.model.start_from) / "tokenizers"), strict=True))
    return there[source] if source else None, there[target] if target else None


def with_texts(config: RunConfig, tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer for sources, wrapped if they are records, or several texts with tabs between them."""
    if config.task.input_kind().record:
        delexicalised = isinstance(config.task, DataToText) and config.task.delexicalise
        return RecordTokenizer(tokenizer, record_form(config.data.train), delexicalised=delexicalised)
    several = config.data.train.texts > 1 and not config.task.input_kind().image
    return Joined(tokenizer) if several else tokenizer


def load_tokenizers(directory: Path) -> tuple[Tokenizer, Tokenizer]:
    """Load the source and target tokenizer of a run's `tokenizers` directory; the same object twice if shared."""
    if (directory / "shared.json").exists():
        shared = Tokenizer.load(directory / "shared.json")
        return shared, shared
    return Tokenizer.load(directory / "source.json"), Tokenizer.load(directory / "target.json")
