"""METEOR: weighted matches between the words of output and reference, with a penalty for fragmentation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.installation import install_command
from regard.metrics.function_words import FUNCTION_WORDS
from regard.metrics.metric import Metric, References, Statistics

BEAM = 40
"""Number of partial alignments kept, as in METEOR."""
CHOICES = 12
"""Links tried per word and partial alignment, those that continue a chunk and the nearest first; limits the cost."""


@dataclass(frozen=True)
class Settings:
    """Tuned parameters of a language (the ranking task of METEOR 1.5: Denkowski and Lavie, 2014)."""

    alpha: float
    """α: share of recall in the harmonic mean of precision and recall."""
    beta: float
    """β: exponent of the fragmentation penalty."""
    gamma: float
    """γ: largest fragmentation penalty."""
    delta: float = 0.5
    """δ: weight of a content word; a function word has 1 − δ."""
    stem: float = 0.0
    """Weight of a match of stems; an exact match has 1."""
    synonym: float = 0.0
    """Weight of a match of synonyms."""
    stemmer: str = ""
    """Snowball's name of the language."""


LANGUAGES = {
    "en": Settings(0.85, 0.20, 0.60, 0.75, stem=0.6, synonym=0.8, stemmer="english"),
    "de": Settings(0.95, 1.00, 0.55, 0.55, stem=0.8, stemmer="german"),
    "fr": Settings(0.90, 1.40, 0.60, 0.65, stem=0.2, stemmer="french"),
    "es": Settings(0.65, 1.30, 0.50, 0.80, stem=0.8, stemmer="spanish"),
    "ru": Settings(0.75, 1.40, 0.70, 0.50, stem=0.5, stemmer="russian"),
    "other": Settings(0.75, 1.40, 0.70),
}
"""Parameters by language; `other` is METEOR's language-independent set, with exact matches only."""


class Link(NamedTuple):
    """A match: a word of the hypothesis, a word of the reference, and its weight."""

    hypothesis: int
    reference: int
    weight: float


class Meteor(Metric):
    """METEOR = (1 − γ·(chunks/matches)^β) · PR / (αP + (1−α)R) (Banerjee and Lavie, 2005; Denkowski and Lavie, 2014).

    P and R are the weighted shares of matched words, function words discounted by δ. Words match as they are, by stem,
    or by synonym. A chunk is a run of matches in the same order on both sides; a perfect output has none. Paraphrase
    tables are not used. Of several references the best counts; a corpus is scored by the sums of its sentences.
    """

    label = "METEOR"

    def __init__(self, language: str = "other", settings: Settings | None = None) -> None:
        if language not in LANGUAGES:
            raise UsageError(f"METEOR does not support the language `{language}`. Choose from {', '.join(LANGUAGES)}.")
        self.settings = settings or LANGUAGES[language]
        self._function_words = FUNCTION_WORDS.get(language, frozenset())
        self._stem = _stemmer(self.settings.stemmer) if self.settings.stem else None
        self._synonyms = _wordnet() if self.settings.synonym else None
        chosen = self.settings
        self.signature = (
            f"meteor:1.5-regard|lang:{language}|alpha:{chosen.alpha:g}"
            f"|beta:{chosen.beta:g}|gamma:{chosen.gamma:g}|delta:{chosen.delta:g}|exact:1"
            f"|stem:{f'snowball-{chosen.stem:g}' if self._stem else 'no'}"
            f"|syn:{f'wordnet-{chosen.synonym:g}' if self._synonyms else 'no'}|para:no|case:lc|tok:words+marks"
        )

    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return matched and possible weight of both sides, chunks and matches of each sentence: sentences × 6."""
        rows = []
        for hypothesis, several in zip(hypotheses, references, strict=True):
            output = words(hypothesis)
            rows.append(max((self._counts(output, words(reference)) for reference in several), key=self.score))
        return np.stack(rows)

    def score(self, totals: Statistics) -> float:
        """Return the formula, in per cent."""
        matched_output, hypothesis, matched_reference, reference, chunks, matches = totals.tolist()
        if not hypothesis and not reference:
            return 100.0
        if not matches:
            return 0.0
        precision, recall, alpha = matched_output / hypothesis, matched_reference / reference, self.settings.alpha
        mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
        return float(100.0 * (1 - self.settings.gamma * (chunks / matches) ** self.settings.beta) * mean)

    def _counts(self, hypothesis: list[str], reference: list[str]) -> Statistics:
        links = align(hypothesis, reference, self._match)
        chunks = sum(
            not (at and links[at - 1][:2] == (link.hypothesis - 1, link.reference - 1)) for at, link in enumerate(links)
        )
        if len(links) == len(hypothesis) == len(reference) and chunks == 1:
            chunks = 0
        return np.array(
            [
                sum(link.weight * self._weight(hypothesis[link.hypothesis]) for link in links),
                sum(map(self._weight, hypothesis)),
                sum(link.weight * self._weight(reference[link.reference]) for link in links),
                sum(map(self._weight, reference)),
                chunks,
                len(links),
            ]
        )

    def _weight(self, word: str) -> float:
        """Return the weight of a word."""
        return 1 - self.settings.delta if word in self._function_words else self.settings.delta

    def _match(self, one: str, other: str) -> float:
        """Return the weight of a match of two words; 0 if they do not match."""
        if one == other:
            return 1.0
        synonyms = self._synonyms
        by_synonym = self.settings.synonym if synonyms and synonyms(one) & synonyms(other) else 0.0
        by_stem = self.settings.stem if self._stem and self._stem(one) == self._stem(other) else 0.0
        return max(by_stem, by_synonym)


def words(text: str) -> list[str]:
    """Return lower-cased words and single punctuation marks."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


class _Partial(NamedTuple):
    """An alignment of the first words of a hypothesis."""

    links: tuple[Link, ...] = ()
    used: int = 0
    """Bit mask of the aligned reference words."""
    chunks: int = 0
    weight: float = 0.0
    distance: int = 0

    def cost(self) -> tuple[float, ...]:
        """Return the sort key: more matches, then fewer chunks, then larger weight, then smaller distance."""
        return -len(self.links), self.chunks, -self.weight, self.distance

    def follows(self, link: Link) -> bool:
        """Return whether a link continues the last chunk."""
        return bool(self.links) and self.links[-1][:2] == (link.hypothesis - 1, link.reference - 1)

    def nearest(self, links: Sequence[Link]) -> list[Link]:
        """Return the most promising links."""
        order = sorted(links, key=lambda link: (not self.follows(link), abs(link.hypothesis - link.reference)))
        return order[:CHOICES]

    def with_link(self, link: Link) -> "_Partial":
        """Return this alignment with one more link."""
        return _Partial(
            (*self.links, link),
            self.used | 1 << link.reference,
            self.chunks + (not self.follows(link)),
            self.weight + link.weight,
            self.distance + abs(link.hypothesis - link.reference),
        )


def align(hypothesis: Sequence[str], reference: Sequence[str], match: Callable[[str, str], float]) -> tuple[Link, ...]:
    """Return one-to-one links between two sentences: as many as possible, in as few chunks as a beam search finds."""
    choices = [
        [Link(at, index, weight) for index, other in enumerate(reference) if (weight := match(word, other))]
        for at, word in enumerate(hypothesis)
    ]
    demand = [0] * len(reference)
    for links in choices:
        for link in links:
            demand[link.reference] += 1
    beam = [_Partial()]
    for links in choices:
        if not links:
            continue
        grown: dict[tuple[int, int], _Partial] = {}
        contested = all(demand[link.reference] > 1 for link in links)
        for partial in beam:
            free = [link for link in links if not partial.used >> link.reference & 1]
            fitting = [partial.with_link(link) for link in (free if len(free) <= CHOICES else partial.nearest(free))]
            for partial_alignment in [*fitting, *([partial] if contested or not fitting else [])]:
                last = partial_alignment.links[-1] if partial_alignment.links else None
                state = (
                    partial_alignment.used,
                    last.reference if last and last.hypothesis == links[0].hypothesis else -1,
                )
                if state not in grown or partial_alignment.cost() < grown[state].cost():
                    grown[state] = partial_alignment
        beam = sorted(grown.values(), key=_Partial.cost)[:BEAM]
    return beam[0].links


def _stemmer(name: str) -> Callable[[str], str]:
    try:
        import snowballstemmer
    except ImportError:
        raise RegardError(
            f"METEOR needs snowballstemmer to find stems. Install it with `{install_command('meteor')}`, or choose "
            "--language other for exact matches only."
        ) from None
    stem: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return cache(stem)


@cache
def _wordnet() -> Callable[[str], frozenset[str]] | None:
    """Return the synonym sets of an English word, or `None` if nltk or its WordNet is not installed."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError):
        return None
    return cache(lambda word: frozenset(synset.name() for synset in wordnet.synsets(word)))
