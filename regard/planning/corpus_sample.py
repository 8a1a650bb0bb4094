"""What the first examples of a corpus tell about a run: vocabularies, lengths, and what cleaning would remove."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from regard.config.run import RunConfig
from regard.config.text import Tokenizer
from regard.data.cleaning import Fate, large_losses
from regard.data.corpus import Pair, read
from regard.data.survey import survey
from regard.foundation.errors import RegardError
from regard.tasks.vocabularies import known_tokenizers
from regard.text.learning import DEFAULT_VOCABULARY
from regard.text.specials import SPECIALS

USUAL_LENGTH = 25
"""Assumed tokens per sentence if the corpus is not available."""
CHARACTERS_A_TOKEN = 4.0
"""Typical for subword vocabularies in European languages."""
SAMPLE = 1000


@dataclass(frozen=True)
class Lengths:
    """Mean tokens per sentence, including the end symbol."""

    source: float
    target: float
    origin: str
    each: list[tuple[float, float]] = field(default_factory=list, repr=False)
    """Source and target lengths of the sampled pairs."""
    too_long: list[int] = field(default_factory=list, repr=False)
    """Indices of the pairs with more tokens than `data.cleaning.max_length`."""


def first_pairs(config: RunConfig) -> list[Pair]:
    """Return the first pairs of the corpus; empty if it is not available."""
    try:
        return list(islice(read(config.data.train), SAMPLE))
    except RegardError:
        return []


def vocabularies(config: RunConfig, pairs: Sequence[Pair]) -> tuple[int, int]:
    """Return the vocabulary sizes of source and target: as configured, or estimated from the first pairs.

    If the run starts from another, they are the sizes of its tokenizers.
    """
    text, known = config.text, known_tokenizers(config)
    both = (text.tokenizer, text.target or text.tokenizer)
    sides = [[pair.source for pair in pairs], [pair.target for pair in pairs]]
    sides = [sides[0] + sides[1]] * 2 if text.shared else sides
    source, target = (
        taken.size if taken else _vocabulary(tokenizer, side)
        for taken, tokenizer, side in zip(known, both, sides, strict=True)
    )
    return source, target


def _vocabulary(tokenizer: Tokenizer, texts: Sequence[str]) -> int:
    if tokenizer.kind == "wordpiece" and tokenizer.model is not None:
        from regard.text.wordpiece import read_vocabulary

        return len(read_vocabulary(Path(tokenizer.model))) + 1  # `[SEP]` is two of our tokens
    if tokenizer.kind == "sentencepiece" and tokenizer.model is not None:
        from regard.text.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer.of_model(Path(tokenizer.model)).size
    if tokenizer.vocabulary is not None:
        return tokenizer.vocabulary
    if not texts or tokenizer.kind in ("bpe", "unigram"):
        return DEFAULT_VOCABULARY
    units = {unit for text in texts for unit in (text.split() if tokenizer.kind == "words" else text)}
    spelt = len(SPECIALS) + (256 if tokenizer.kind == "characters" else 0)
    return min(spelt + len(units), DEFAULT_VOCABULARY)


def cleaning_warnings(config: RunConfig, pairs: Sequence[Pair], lengths: Lengths) -> list[str]:
    """Return warnings about filters that would drop so many pairs that training stops, judged by the first pairs."""
    if not pairs:
        return []
    fates, report = survey(pairs, config.data.cleaning, held_out=0, seed=0)
    too_long = [number for number in lengths.too_long if fates[number] == Fate.TRAIN]
    if too_long:
        report.drop(Fate.TOO_LONG, too_long[0] + 1, len(too_long))
    return [
        f"{warning} This is an estimate from the first {len(pairs):,} pairs; training stops if it is true of the "
        "whole corpus."
        for warning in large_losses(config.data.cleaning, report, "pairs")
    ]


def lengths_of(config: RunConfig, pairs: Sequence[Pair]) -> Lengths:
    """Return mean lengths in tokens, from the first pairs of the corpus."""
    if not pairs:
        return Lengths(USUAL_LENGTH, USUAL_LENGTH, "assumed: the corpus is not available")
    sides = (config.text.tokenizer, config.text.target or config.text.tokenizer)
    most = config.data.cleaning.max_length
    counts = []
    for number, (taken, settings) in enumerate(zip(known_tokenizers(config), sides, strict=True)):
        texts = [pair[number] for pair in pairs]
        cut = [float(len(ids)) for ids in taken.encode_batch(texts)] if taken else None
        counts.append(cut or [_tokens(text, settings) for text in texts])
    both = list(zip(*counts, strict=True))
    too_long = [number for number, sides in enumerate(both) if max(sides) > most]
    each = [(min(source, most) + 1, min(target, most) + 1) for source, target in both]
    source, target = (sum(pair[side] for pair in each) / len(each) for side in (0, 1))
    return Lengths(source, target, f"estimated from {len(pairs):,} pairs", each, too_long)


def _tokens(text: str, tokenizer: Tokenizer) -> float:
    if tokenizer.kind == "characters":
        return len(text)
    return len(text.split()) if tokenizer.kind == "words" else max(len(text.split()), len(text) / CHARACTERS_A_TOKEN)
