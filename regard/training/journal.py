"""The measurements of a run in `metrics.jsonl`, one JSON object per line."""

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
        """Return the lines of these kinds, or all."""
        return [line for line in self._read() if not kinds or line["kind"] in kinds]

    def rewind(self, step: int) -> None:
        """Delete the measurements after a step, and those of the end of the run."""
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
                continue  # an incomplete line of a killed process
            if _is_whole(line):
                yield line


def _is_whole(line: Any) -> bool:
    """Return whether a line has the form that `add` writes; other lines are skipped."""
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str) or type(line.get("step")) is not int:
        return False
    return all(value is None or isinstance(value, int | float) for key, value in line.items() if key != "kind")


def _plain(value: Any) -> Any:
    """Round to six digits, and replace infinity, which JSON does not have, by `None`."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
