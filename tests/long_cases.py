"""Cases of a law of which a few are tried by `make test`, and the others by `make test-long`."""

from collections.abc import Iterable
from typing import Any

import pytest


def few(values: Iterable[Any], count: int) -> list[Any]:
    """Return values for `parametrize`: those after the first `count` are marked as long."""
    return [pytest.param(value, marks=[pytest.mark.long] if n >= count else []) for n, value in enumerate(values)]
