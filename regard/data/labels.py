"""The labels of a corpus: the classes of a classifier or the tags of a tagger."""

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
    """The labels of the training data in alphabetical order, with their counts."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.names = tuple(sorted(counts))
        self.counts = tuple(counts[name] for name in self.names)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def learn(cls, labels: Iterable[str]) -> Self:
        """Count labels; raises `TooFew` if there are fewer than two different ones."""
        counts = Counter(labels)
        if len(counts) < 2:
            only = f", `{next(iter(counts))}`" if counts else ""
            raise TooFew(
                f"The training data has {len(counts)} label{only}, but at least two different ones are needed. Add "
                "examples with another label."
            )
        return cls(dict(counts))

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.names)

    @property
    def fingerprint(self) -> str:
        """Hash of the names."""
        return hashlib.sha256(json.dumps(self.names).encode()).hexdigest()

    def number(self, name: str, place: str = "") -> int:
        """Return the number of a label; raises, with its location, if it does not occur in the training data."""
        if name not in self._numbers:
            near = difflib.get_close_matches(name, self.names, n=1) or self.names[:5]
            raise RegardError(
                f"{place or 'The data'} has the label `{name}`, which does not occur in the training data (it has "
                f"{', '.join(near)}{'' if len(near) == self.size else ', …'}). Correct the label, or train on data "
                "that has it."
            )
        return self._numbers[name]

    def save(self, path: Path) -> None:
        """Write the labels and their counts as JSON."""
        durable.write(path, json.dumps(dict(zip(self.names, self.counts, strict=True)), indent=2, ensure_ascii=False))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load labels that `save` wrote."""
        counts = read_json(path)
        if not isinstance(counts, dict) or len(counts) < 2:
            raise DamagedFile(f"{path} is damaged: it must be a JSON object with at least two labels.")
        for name, count in counts.items():
            if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 2**63:
                raise DamagedFile(f"{path} is damaged: the count of the label {name[:40]!r} must be a whole number.")
        return cls(counts)
