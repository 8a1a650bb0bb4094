"""Training of tokenizers on a corpus, streaming and deterministic."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from regard.config.text import Text
from regard.config.text import Tokenizer as Settings
from regard.foundation.errors import RegardError, TooFew
from regard.text import unigram
from regard.text.normalising import WORD_START, normaliser, without_surrogates
from regard.text.specials import SPECIALS, UNK
from regard.text.tokenizer import BYTES, Tokenizer, splitter

DEFAULT_VOCABULARY = 8000
MOST_LINES = 1_000_000
"""Largest number of sentences that are used, which bounds time and memory."""
LONGEST_LINE = 10_000
"""In characters; longer lines are not sentences and are ignored."""

_UNIT_END = "\n"
"""Not part of any unit, since normalisation replaces white space."""
_GROUP = 1000
_MOST = 1 << 31
"""Largest count, since the library cannot represent much larger ones."""


class SentencePair(Protocol):
    """A source and a target sentence."""

    @property
    def source(self) -> str:
        """Raw source sentence."""

    @property
    def target(self) -> str:
        """Raw target sentence."""


Pairs = Callable[[], Iterable[SentencePair]]


class WordCounts:
    """How often each word occurs in the training texts of each tokenizer, from which tokenizers are trained."""

    def __init__(self, sides: Sequence[str], *, shared: bool = False) -> None:
        self.sides = tuple(sides)
        self.shared = shared
        """Whether the sides are counted together, for one tokenizer."""
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in (["shared"] if shared else self.sides)}

    def step(self, count: int) -> int:
        """Return N for an even sample: of `count` pairs, every N-th is counted."""
        return 1 + count * (len(self.sides) if self.shared else 1) // MOST_LINES

    def add(self, pairs: Iterable[SentencePair]) -> None:
        """Count the words of pairs."""
        counted = [(side, self._counts["shared" if self.shared else side]) for side in self.sides]
        for pair in pairs:
            for side, counts in counted:
                line: str = getattr(pair, side)
                if len(line) <= LONGEST_LINE:
                    counts.update(without_surrogates(line).split())

    def merge(self, other: "WordCounts") -> None:
        """Add what was counted in another part of the corpus."""
        for name, counts in other._counts.items():
            self._counts[name].update(counts)

    def of(self, side: str) -> Counter[str]:
        """Return the counts for the tokenizer of a side."""
        return self._counts["shared" if self.shared else side]


def train_tokenizers(config: Text, pairs: Pairs, count: int | None = None) -> tuple[Tokenizer, Tokenizer]:
    """Train the tokenizers of source and target on pairs; the same object twice if they share a vocabulary.

    `pairs` is read twice, or once if its `count` is given.
    """
    words = WordCounts(("source", "target"), shared=config.shared)
    step = words.step(sum(1 for _ in pairs()) if count is None else count)
    words.add(islice(pairs(), 0, None, step))
    return train_both(config, words)


def train_both(config: Text, words: WordCounts) -> tuple[Tokenizer, Tokenizer]:
    """Train the tokenizers of source and target; the same object twice if they share a vocabulary."""
    source = train_tokenizer(config, words, "source")
    return source, source if config.shared else train_target(config, words)


def train_target(config: Text, words: WordCounts) -> Tokenizer:
    """Train the separate tokenizer of the target."""
    name = "text.target" if config.target else "text.tokenizer"
    return train_from_words(config.target or config.tokenizer, words.of("target"), name)


def train_tokenizer(config: Text, words: WordCounts, side: str) -> Tokenizer:
    """Train the tokenizer of a side, or of both."""
    return train_from_words(config.tokenizer, words.of(side), "text.tokenizer")


def train(settings: Settings, lines: Callable[[], Iterable[str]], name: str) -> Tokenizer:
    """Train a tokenizer on lines, or read one that is already trained; `name` is the path of its settings."""
    words: Counter[str] = Counter()
    for line in lines():
        words.update(without_surrogates(line).split())
    return train_from_words(settings, words, name)


def train_from_words(settings: Settings, words: Counter[str], name: str) -> Tokenizer:
    """Train a tokenizer on words, or read one that is already trained; `name` is the path of its settings."""
    if settings.kind == "sentencepiece" and settings.model is not None:
        from regard.text.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer.of_model(Path(settings.model))
    if settings.kind == "wordpiece" and settings.model is not None:
        from regard.text.wordpiece import WordPieceTokenizer

        return WordPieceTokenizer.of_model(Path(settings.model), lower=settings.lower)
    settings = settings.model_copy(update={"min_frequency": min(settings.min_frequency, _MOST)})
    units = _units(settings, words)
    if not units:
        raise RegardError(f"{name} cannot be trained: every line of the corpus is empty.")
    if settings.kind == "words":
        return Tokenizer.of(settings, _words(settings, units, name))
    alphabet = _alphabet(settings, units, name)
    if settings.kind == "characters":
        tokens = [*SPECIALS, *BYTES, *alphabet]
        _check_size(settings, len(tokens), name)
        return Tokenizer.of(settings, _bpe_model(tokens, []))
    if settings.kind == "bpe":
        return Tokenizer.of(settings, _bpe(settings, units, alphabet, name))
    return Tokenizer.of(settings, _unigram(settings, units, alphabet, name))


def _units(settings: Settings, words: Counter[str]) -> Counter[str]:
    """Return the units that tokens do not cross (words, punctuation marks, digits), with their counts."""
    normal, split = normaliser(settings), splitter(settings.kind)
    units: Counter[str] = Counter()
    for word, count in words.items():
        for unit, _ in split.pre_tokenize_str(normal.normalize_str(word)):
            units[unit] += count
    return units


def _by_frequency(counts: Counter[str], least: int) -> list[str]:
    """Return the keys with at least `least` occurrences, most frequent first, ties in alphabetical order."""
    return sorted((key for key, count in counts.items() if count >= least), key=lambda key: (-counts[key], key))


def _alphabet(settings: Settings, units: Counter[str], name: str) -> list[str]:
    """Return the characters that have their own token; all others are spelt in bytes.

    These are the characters with at least `min_frequency` occurrences, most frequent first. The special tokens and the
    bytes come first in a vocabulary, and the alphabet takes at most half of the rest (all, for kind `characters`).
    """
    characters: Counter[str] = Counter()
    for unit, count in units.items():
        for character in unit:
            characters[character] += count
    room = (settings.vocabulary or DEFAULT_VOCABULARY) - len(SPECIALS) - len(BYTES)
    if room < 1:
        least = len(SPECIALS) + len(BYTES) + 1
        raise RegardError(
            f"{name}.vocabulary is {settings.vocabulary}, but {settings.kind} needs at least {least}, for "
            f"{len(SPECIALS)} special tokens, {len(BYTES)} bytes and one character."
        )
    frequent = _by_frequency(characters, settings.min_frequency)
    kept = frequent[: room if settings.kind == "characters" else max(room // 2, 1)]
    return kept if WORD_START in kept else [WORD_START, *kept[: max(room - 1, 0)]]


def _check_size(settings: Settings, size: int, name: str) -> None:
    """Raise if the corpus does not support the configured vocabulary size."""
    if settings.vocabulary and size < settings.vocabulary:
        raise RegardError(
            f"{name}.vocabulary is {settings.vocabulary}, but the corpus supports only {size} tokens of kind "
            f"{settings.kind} (with min_frequency {settings.min_frequency}). Set {name}.vocabulary={size}, or remove "
            "it "
            "to use all of them."
        )


def _words(settings: Settings, units: Counter[str], name: str) -> models.Model:
    frequent = _by_frequency(units, settings.min_frequency)
    if not frequent:
        raise TooFew(f"No word occurs {settings.min_frequency:,} times ({name}.min_frequency). Make it smaller.")
    _check_size(settings, len(SPECIALS) + len(frequent), name)
    room = (settings.vocabulary or DEFAULT_VOCABULARY) - len(SPECIALS)
    tokens = [*SPECIALS, *frequent[:room]]
    return models.WordLevel(vocab=_numbered(tokens), unk_token=SPECIALS[UNK])


def _bpe(settings: Settings, units: Counter[str], alphabet: list[str], name: str) -> models.Model:
    """Train byte-pair encoding (Sennrich et al., 2016).

    The library counts units itself. It receives each unit as often as it occurs, ready to be counted, which takes a
    quarter of the time of normalising and splitting every sentence again.
    """
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(_UNIT_END)
    first = [*SPECIALS, *BYTES]
    possible = len(alphabet) + sum(
        map(len, units)
    )  # a merge joins two positions of a unit; memory is reserved for all at once
    trainer = trainers.BpeTrainer(
        vocab_size=min((settings.vocabulary or DEFAULT_VOCABULARY) - len(first), possible),
        min_frequency=settings.min_frequency,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    inner.train_from_iterator(_repeat_units(units), trainer)
    trained = json.loads(inner.to_str())["model"]
    tokens = [*first, *sorted(trained["vocab"], key=trained["vocab"].__getitem__)]
    _check_size(settings, len(tokens), name)
    return _bpe_model(tokens, [(left, right) for left, right in trained["merges"]])


def _repeat_units(units: Counter[str]) -> Iterator[str]:
    """Yield every unit as often as it occurs, about a thousand at a time."""
    group: list[str] = []
    for unit, count in units.items():
        group += [unit] * (count % _GROUP)
        for _ in range(count // _GROUP):
            yield _UNIT_END.join([unit] * _GROUP)
        if len(group) >= _GROUP:
            yield _UNIT_END.join(group)
            group = []
    yield _UNIT_END.join(group)


def _bpe_model(tokens: list[str], merges: list[tuple[str, str]]) -> models.Model:
    return models.BPE(vocab=_numbered(tokens), merges=merges, unk_token=SPECIALS[UNK], byte_fallback=True)


def _unigram(settings: Settings, units: Counter[str], alphabet: list[str], name: str) -> models.Model:
    """Train a unigram language model (Kudo, 2018)."""
    first = [*SPECIALS, *BYTES]
    room = (settings.vocabulary or DEFAULT_VOCABULARY) - len(first)
    pieces = unigram.learn(units, alphabet, room, settings.min_frequency)
    _check_size(settings, len(first) + len(pieces), name)
    least = pieces[-1][1]
    return models.Unigram([*((token, least) for token in first), *pieces], unk_id=UNK, byte_fallback=True)


def _numbered(tokens: list[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}
