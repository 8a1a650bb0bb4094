"""Corrupts sources by itself: one word of each is replaced by another word of the same corpus."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.inspection.examples import AnnotatedText, Example
from regard.inspection.word_groups import FREQUENT, Span, split_words
from regard.text.tokenizer import Tokenizer

CONTENT = ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM")
"""Parts of speech of content words."""

Kind = tuple[str | None, bool, bool]
"""The part of speech of a word, and whether it begins with a capital or with a digit."""

TRIES = 40
"""Replacements that are encoded before a source is given up."""


@dataclass(frozen=True)
class Corruption:
    """A source with one word replaced."""

    text: str
    word: str
    instead: str
    tag: str | None
    """The part of speech of the word, if the corpus has tags."""


class Replacements:
    """The words of a corpus that can replace each other: content words of one part of speech and capitalisation.

    Without parts of speech, content words are the words and numbers that are not among the most frequent ones of the
    corpus (together half of it), and numbers replace numbers.
    """

    def __init__(self, sources: Sequence[AnnotatedText]) -> None:
        words = [(text, span) for text in sources for span in split_words(text.text)]
        counts = Counter(text.text[start:end] for text, (start, end) in words)
        self._frequent = _most_frequent(counts)
        pools: dict[Kind, set[str]] = defaultdict(set)
        for text, (start, end) in words:
            if self._is_content(text, (start, end)):
                word = text.text[start:end]
                pools[_kind(text, (start, end))].add(word)
        self._pools = {kind: sorted(pool) for kind, pool in pools.items()}

    def _is_content(self, text: AnnotatedText, span: Span) -> bool:
        if text.tags is not None:
            return text.tag_of(*span) in CONTENT
        word = text.text[slice(*span)]
        return word[0].isalnum() and word not in self._frequent

    def corrupt(self, example: Example, tokenizer: Tokenizer, seed: int) -> Iterator[Corruption]:
        """Yield sources with one content word replaced by another of as many tokens, in random order, each once."""
        text, random = example.source, np.random.default_rng([seed, example.number])
        spans = [span for span in split_words(text.text) if self._is_content(text, span)]
        length = len(tokenizer.encode(text.text).ids)
        options = []
        for start, end in spans:
            word, tag = text.text[start:end], text.tag_of(start, end)
            pool = self._pools[_kind(text, (start, end))]
            drawn = random.permutation(len(pool))[:TRIES]
            options += [(start, end, tag, pool[index]) for index in drawn.tolist() if pool[index] != word]
        for index in random.permutation(len(options))[:TRIES].tolist():
            start, end, tag, word = options[index]
            corrupted = text.text[:start] + word + text.text[end:]
            if len(tokenizer.encode(corrupted).ids) == length:
                yield Corruption(corrupted, text.text[start:end], word, tag)


def _kind(text: AnnotatedText, span: Span) -> Kind:
    """Return what a word and its replacement have in common."""
    first = text.text[span[0]]
    return text.tag_of(*span), first.isupper(), first.isdigit()


def _most_frequent(counts: Counter[str]) -> set[str]:
    """Return the most frequent words that together are half of all."""
    found: set[str] = set()
    before = 0
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if before >= FREQUENT * counts.total():
            break
        found.add(word)
        before += count
    return found
