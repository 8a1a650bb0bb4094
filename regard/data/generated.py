"""Generated corpora: sequences of symbols to copy, reverse or sort; dates and scenes are in their own modules."""

import random
from collections.abc import Iterator
from itertools import product
from string import ascii_lowercase

from regard.config.data import Generated
from regard.foundation.errors import RegardError

_RANGE = 1 << 62
"""Sequences are drawn as numbers below this; the remaining symbols of longer ones are drawn freely."""


def generate(corpus: Generated) -> Iterator[tuple[str, str]]:
    """Yield the distinct pairs of a generated corpus; the same settings always give the same pairs."""
    if corpus.generate == "dates":
        from regard.data.dates import dates

        yield from dates(corpus)
        return
    if corpus.generate == "questions":
        from regard.data.scenes import question_pairs

        yield from question_pairs(corpus.size, corpus.seed, corpus.questions)
        return
    if corpus.generate == "shapes":
        from regard.data.scenes import caption_pairs

        yield from caption_pairs(corpus.size, corpus.seed, corpus.captions)
        return
    if corpus.generate == "shape-names":
        from regard.data.scenes import name_pairs

        yield from name_pairs(corpus.size, corpus.seed)
        return
    names = symbols(corpus.symbols)
    for row in _rows(corpus):
        result = {"copy": row, "reverse": row[::-1], "sort": sorted(row)}[corpus.generate]
        yield " ".join(names[symbol] for symbol in row), " ".join(names[symbol] for symbol in result)


def symbols(count: int) -> list[str]:
    """Return the names of symbols in alphabetical order: letters, or pairs of letters if there are too few."""
    if count <= len(ascii_lowercase):
        return list(ascii_lowercase[:count])
    return ["".join(pair) for pair in product(ascii_lowercase, repeat=2)][:count]


def _rows(corpus: Generated) -> Iterator[list[int]]:
    """Yield distinct sequences of symbol numbers, with equally many of each length as far as possible."""
    generator = random.Random(f"{corpus.generate} {corpus.seed}")
    drawn: list[tuple[int, int]] = []
    for length, share in _shares(corpus).items():
        space = min(corpus.symbols**length, _RANGE)
        drawn += [(length, number) for number in generator.sample(range(space), share)]
    generator.shuffle(drawn)
    for length, number in drawn:
        yield _digits(number, length, corpus.symbols)


def _digits(number: int, length: int, base: int) -> list[int]:
    """Return the digits of a number in a base, `length` of them."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits


def _shares(corpus: Generated) -> dict[int, int]:
    """Return the number of sequences of each length."""
    lengths = range(corpus.min_length, corpus.max_length + 1)
    there = sum(min(corpus.symbols**length, _RANGE) for length in lengths)
    if there < corpus.size:
        raise RegardError(
            f"Only {there:,} different rows of {corpus.min_length} to {corpus.max_length} of {corpus.symbols} symbols "
            f"exist, but size is {corpus.size:,}. Make size smaller, or symbols or max_length larger."
        )
    shares, left = {}, corpus.size
    for index, length in enumerate(lengths):  # shortest first: there are fewest of them
        shares[length] = min(-(-left // (len(lengths) - index)), corpus.symbols**length, _RANGE)
        left -= shares[length]
    return shares
