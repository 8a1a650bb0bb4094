"""Corpora made on the spot: rows of symbols to copy, reverse or sort; dates and scenes have files of their own."""

import random
from collections.abc import Iterator
from itertools import product
from string import ascii_lowercase

from regard.config.data import Generated
from regard.foundation.errors import RegardError

_RANGE = 1 << 62
"""Rows are drawn as numbers below this; what a longer row has beyond is free."""


def generate(corpus: Generated) -> Iterator[tuple[str, str]]:
    """Distinct pairs of a generated corpus, always the same for the same settings."""
    if corpus.generate == "dates":
        from regard.data.dates import dates

        yield from dates(corpus)
        return
    if corpus.generate == "questions":
        from regard.data.scenes import asked

        yield from asked(corpus.size, corpus.seed, corpus.questions)
        return
    if corpus.generate == "shapes":
        from regard.data.scenes import described

        yield from described(corpus.size, corpus.seed, corpus.captions)
        return
    names = symbols(corpus.symbols)
    for row in _rows(corpus):
        result = {"copy": row, "reverse": row[::-1], "sort": sorted(row)}[corpus.generate]
        yield " ".join(names[symbol] for symbol in row), " ".join(names[symbol] for symbol in result)


def symbols(count: int) -> list[str]:
    """Names of symbols in alphabetical order: letters, or pairs of letters if there are too few."""
    if count <= len(ascii_lowercase):
        return list(ascii_lowercase[:count])
    return ["".join(pair) for pair in product(ascii_lowercase, repeat=2)][:count]


def _rows(corpus: Generated) -> Iterator[list[int]]:
    """Distinct rows of symbol numbers, every length as often as any other as far as there are enough rows of it."""
    generator = random.Random(f"{corpus.generate} {corpus.seed}")
    drawn: list[tuple[int, int]] = []
    for length, share in _shares(corpus).items():
        space = min(corpus.symbols**length, _RANGE)
        drawn += [(length, number) for number in generator.sample(range(space), share)]
    generator.shuffle(drawn)
    for length, number in drawn:
        yield _digits(number, length, corpus.symbols)


def _digits(number: int, length: int, base: int) -> list[int]:
    """A number as so many digits."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits


def _shares(corpus: Generated) -> dict[int, int]:
    """How many rows of each length."""
    lengths = range(corpus.min_length, corpus.max_length + 1)
    there = sum(min(corpus.symbols**length, _RANGE) for length in lengths)
    if there < corpus.size:
        raise RegardError(
            f"only {there:,} different rows of {corpus.min_length} to {corpus.max_length} of {corpus.symbols} symbols "
            f"exist, but size is {corpus.size:,}: make size smaller, or symbols or max_length larger."
        )
    shares, left = {}, corpus.size
    for place, length in enumerate(lengths):  # the shortest, of which there are fewest, first
        shares[length] = min(-(-left // (len(lengths) - place)), corpus.symbols**length, _RANGE)
        left -= shares[length]
    return shares
