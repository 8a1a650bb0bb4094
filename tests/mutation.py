"""One way to break the code on purpose."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


@cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in sorted((ROOT / "regard").rglob("*.py"))}


class Mutation(NamedTuple):
    """One change of the code."""

    what: str
    """What is broken, in a few words; names the mutation in the record."""
    old: str
    new: str
    tests: str
    """Test files that should notice it, without `test_` and suffix; run before all others that use the package."""

    def place(self) -> Path:
        """Return the one file that contains the text; raises `ValueError` for none, or for several places."""
        found = [path for path, text in _sources().items() if self.old in text]
        count = sum(_sources()[path].count(self.old) for path in found)
        if count != 1:
            raise ValueError(
                f"Mutation “{self.what}”: its text occurs {count} times in regard/ instead of once. The code has "
                f"changed: adapt the mutation in tests/mutations.py to it. The text is: {self.old!r}"
            )
        return found[0]
