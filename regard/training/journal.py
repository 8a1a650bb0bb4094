"""Everything measured in a run, one JSON object a line, in `metrics.jsonl`."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from regard.foundation import durable

Listener = Callable[[str, int, Mapping[str, Any]], None]
"""Called with the kind, the step and the values of every line."""

STEPWISE = ("train", "validation")
"""Kinds of lines that belong to a step; the others belong to the end of the run."""


class Journal:
    """Lines `{"kind": …, "step": …, …}`; only `seconds` and `tokens_per_second` depend on the clock."""

    def __init__(self, path: Path, listen: Listener | None = None) -> None:
        self.path, self._listen = path, listen

    def add(self, kind: str, step: int, **facts: Any) -> None:
        """Append a line."""
        known = {key: _plain(value) for key, value in facts.items() if value is not None}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "step": step, **known}) + "\n")
        if self._listen:
            self._listen(kind, step, known)

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        """The lines of some kinds, or all."""
        return [line for line in self._read() if not kinds or line["kind"] in kinds]

    def rewind(self, step: int) -> None:
        """Forget what was measured after a step, and the end of the run."""
        kept = [line for line in self._read() if line["kind"] in STEPWISE and line["step"] <= step]
        durable.write(self.path, "".join(json.dumps(line) + "\n" for line in kept))

    def flush(self) -> None:
        """Wait until all lines have reached the disk."""
        if self.path.exists():
            with self.path.open("a") as file:
                os.fsync(file.fileno())

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for text in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue  # the half line of a killed process
            if _is_whole(line):
                yield line


def _is_whole(line: Any) -> bool:
    """Whether a line is one that `add` writes: others are left out, as they are for people and change nothing."""
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str) or type(line.get("step")) is not int:
        return False
    return all(value is None or isinstance(value, int | float) for key, value in line.items() if key != "kind")


def _plain(value: Any) -> Any:
    """Six digits are enough, and JSON knows no infinity."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
