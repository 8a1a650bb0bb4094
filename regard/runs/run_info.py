"""The file `run.json`: what a run records about itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.runs.records import DamagedFile, parse, read_json, seal, unseal

FORMAT = 2
"""Version of the run directory's layout: 2 adds a manifest and a checksum of `run.json`. Newer ones are rejected."""


@dataclass(frozen=True, kw_only=True)
class TokenizerInfo:
    """What is recorded of a tokenizer."""

    fingerprint: str
    vocabulary: int = 0


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best validation score of a run."""

    metric: str
    value: float
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """The scores of a finished run."""

    choice: str = ""
    validation: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] | None = None
    note: str = ""
    """Why final scores differ from those of the last validation."""
    next: str = ""


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The required content of `run.json`, which may have more keys."""

    format: int
    regard: str = "unknown"
    created: str
    cell: str
    status: Literal["running", "stopped", "finished"]
    step: int = 0
    steps: int = 0
    parameters: int | None = None
    tokenizers: dict[str, TokenizerInfo] = field(default_factory=dict)
    best: Best | None = None
    result: Result | None = None
    taken: list[str] = field(default_factory=list)


def read_info(directory: Path) -> dict[str, Any]:
    """Return the content of `run.json` with checked types; raises if it is damaged or of a newer format."""
    path = directory / "run.json"
    content = read_json(path)
    version = content.get("format") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DamagedFile(f"{path} is damaged: format must be a whole number from 1.")
    if version > FORMAT:
        raise RegardError(
            f"{directory} comes from a newer Regard ({content.get('regard', 'unknown')}; run format "
            f"{version}, this one reads up to {FORMAT}). Upgrade Regard."
        )
    content = unseal(content, path, demanded=version > 1)
    parse(RunInfo, content, path)
    return content


def write_info(directory: Path, info: Mapping[str, Any]) -> None:
    """Write `run.json` with a checksum."""
    content = seal(info)
    durable.write(directory / "run.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
