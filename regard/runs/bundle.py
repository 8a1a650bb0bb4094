"""Bundles: a run made of runs.

A bundle is a directory with `bundle.json`, which names its kind and its members, and one directory for each member, a
complete run. What else is in it, such as a list of responses, belongs to the kind. `regard.load` opens bundles like
runs.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.runs.containment import check_contained
from regard.runs.records import read_record
from regard.runs.run import Run

FILE = "bundle.json"
FORMAT = 1


@dataclass(frozen=True)
class BundleRecord:
    """The content of `bundle.json`."""

    format: int
    kind: str
    """What the bundle is, such as `reply`."""
    members: list[str]
    """Names of the runs in it, which are names of directories."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Plain values that the kind needs."""


@dataclass(frozen=True)
class Bundle:
    """A directory of runs that are used together."""

    directory: Path
    record: BundleRecord

    @classmethod
    def create(cls, directory: Path, kind: str, members: list[str], settings: Mapping[str, Any]) -> "Bundle":
        """Write `bundle.json`; the members must exist already."""
        bundle = cls(directory, BundleRecord(FORMAT, kind, members, dict(settings)))
        durable.write(directory / FILE, json.dumps(asdict(bundle.record), indent=2, ensure_ascii=False) + "\n")
        return bundle

    @classmethod
    def open(cls, directory: Path | str, kind: str | None = None) -> "Bundle":
        """Open a bundle; `kind` is the kind that is wanted."""
        directory = Path(directory)
        if not is_bundle(directory):
            what = "is not a bundle: it has no bundle.json" if directory.is_dir() else "does not exist"
            raise UsageError(f"{directory} {what}. Name a directory that `regard reply build` has made.")
        check_contained(directory)
        record = read_record(directory / FILE, BundleRecord)
        if record.format > FORMAT:
            raise RegardError(
                f"{directory} was written by a newer version of Regard (bundle format {record.format}). Update Regard."
            )
        if kind is not None and record.kind != kind:
            raise UsageError(f"{directory} is a bundle of the kind {record.kind[:40]}, not {kind}.")
        for name in record.members:
            if not name.isidentifier():
                raise RegardError(f"{directory / FILE} names the member {name[:40]!r}, which is not the name of a run.")
        return cls(directory, record)

    def member(self, name: str) -> Run:
        """Open a member."""
        if name not in self.record.members:
            raise RegardError(f"{self.directory} has no member {name}. Build it again.")
        return Run.open(self.directory / name)

    def set(self, **settings: Any) -> "Bundle":
        """Write changed settings, and return the bundle with them."""
        return self.create(self.directory, self.record.kind, self.record.members, {**self.record.settings, **settings})


def is_bundle(directory: Path | str) -> bool:
    """Return whether a directory is a bundle."""
    try:
        return (Path(directory) / FILE).is_file()
    except (OSError, ValueError):
        return False
