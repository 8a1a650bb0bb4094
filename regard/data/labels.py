"""The labels of a corpus: what an acceptor tells apart, what a transducer gives to each word."""

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from regard.foundation import durable
from regard.foundation.errors import RegardError, TooFew
from regard.runs.records import DamagedFile, read_json


class Labels:
    """The labels that occur in the training data, in alphabetical order, and how often each does."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.names = tuple(sorted(counts))
        self.counts = tuple(counts[name] for name in self.names)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def learn(cls, labels: Iterable[str]) -> Self:
        """Count labels; a single one is refused, as there would be nothing to tell apart."""
        counts = Counter(labels)
        if len(counts) < 2:
            only = f", `{next(iter(counts))}`" if counts else ""
            raise TooFew(
                f"the training data has {len(counts)} label{only}: at least two are needed, or there is nothing to "
                "tell apart."
            )
        return cls(dict(counts))

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.names)

    @property
    def fingerprint(self) -> str:
        """Hash of the names."""
        return hashlib.sha256(json.dumps(self.names).encode()).hexdigest()

    def number(self, name: str, place: str = "") -> int:
        """The number of a label; one that training never showed is refused, with the place where it stands."""
        if name not in self._numbers:
            near = difflib.get_close_matches(name, self.names, n=1) or self.names[:5]
            raise RegardError(
                f"{place or 'the data'} has the label `{name}`, which the training data never shows (it has "
                f"{', '.join(near)}{'' if len(near) == self.size else ', …'}): mend the label, or train on it."
            )
        return self._numbers[name]

    def save(self, path: Path) -> None:
        """Write them as JSON."""
        durable.write(path, json.dumps(dict(zip(self.names, self.counts, strict=True)), indent=2, ensure_ascii=False))

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `save` wrote."""
        counts = read_json(path)
        if not isinstance(counts, dict) or len(counts) < 2:
            raise DamagedFile(f"{path} is damaged: it must be a JSON object with at least two labels.")
        for name, count in counts.items():
            if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 2**63:
                raise DamagedFile(f"{path} is damaged: the count of the label {name[:40]!r} must be a whole number.")
        return cls(counts)
