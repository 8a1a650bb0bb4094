"""A training example as raw text."""

from typing import NamedTuple


class Pair(NamedTuple):
    """A source and its target as raw text; several source texts are separated by tabs, an image is its name."""

    source: str
    target: str
