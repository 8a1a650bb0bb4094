"""Strict reading of the JSON settings of a Hugging Face directory."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.formats.checkpoint import read_json
from regard.foundation.errors import RegardError


class HubSettings:
    """The settings of a `config.json` or `generation_config.json`; errors name the file, the setting and its value.

    A setting that is missing or `null` has its default; one without a default is required.
    """

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self.values, self.place = values, place

    @classmethod
    def read(cls, path: Path) -> "HubSettings":
        """Return the settings of a file."""
        return cls(read_json(path), str(path))

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def integer(self, name: str, default: int | None = None, *, least: int = 0, most: int = 2**31 - 1) -> int:
        """Return a whole number between two bounds."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(name, value, f"a whole number from {least} to {most:,}")
        return value

    def number(self, name: str, default: float, *, least: float, most: float) -> float:
        """Return a finite number between two bounds."""
        value = self.values.get(name)
        if value is None:
            return default
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not least <= value <= most:
            raise self._wrong(name, value, f"a number from {least:g} to {most:g}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def word(self, name: str, default: str | None = None) -> str:
        """Return a string."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self._wrong(name, value, "text")
        return value

    def token(self, name: str, default: int | None, size: int) -> int:
        """Return the id of a token of a vocabulary of `size`; if a list is given, as in newer files, the first."""
        value = self.values.get(name)
        value = value[0] if isinstance(value, list) and value else value
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < size:
            raise self._wrong(name, value, f"the number of a token, from 0 to {size - 1:,}")
        return value

    def _wrong(self, name: str, value: Any, wanted: str) -> RegardError:
        found = "is missing" if value is None else f"is {str(value)[:40]!r}" if isinstance(value, str) else None
        found = found or f"is {str(value)[:40]}"
        return RegardError(
            f"{self.place}: `{name}` {found}, but it must be {wanted}. Correct the file or download it again."
        )
