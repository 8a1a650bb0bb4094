"""The hashes of a run's files: sizes and small files are compared when a run is opened, the rest when it is used.

A file that is about to be replaced has two entries, before and after, so that a kill between the two writes leaves a
run that opens. Checkpoints and token stores carry checksums of their own; journal and card are for people and may be
edited.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.runs.records import DamagedFile, read_record, seal

MANIFEST = "manifest.json"
SMALL = 1 << 24
"""Files up to this size are hashed whenever a run is opened."""
UNLISTED_SUFFIXES = (".tokens", ".offsets")
"""Files that the header of a token store has checksums of."""


@dataclass(frozen=True)
class Digest:
    """Size and hash of a file."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "Digest":
        """Hash a file."""
        with path.open("rb") as file:
            return cls(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


ABSENT = Digest(-1, "")
"""Stands for the file before it is written for the first time."""


@dataclass
class Manifest:
    """The files of a run by their path within it, each with the digests that it may have."""

    files: dict[str, list[Digest]] = field(default_factory=dict)
    format: int = 1

    @classmethod
    def load(cls, directory: Path, *, demanded: bool = False) -> "Manifest":
        """Read the manifest of a run; empty for runs of the first format, which have none."""
        path = directory / MANIFEST
        if not path.exists() and not path.is_symlink():
            if demanded:
                raise DamagedFile(f"{path} is missing: the run is incomplete. Fetch or copy it again.")
            return cls()
        return read_record(path, cls, sealed=True)

    def save(self, directory: Path) -> None:
        """Write the manifest in one step."""
        durable.write(directory / MANIFEST, json.dumps(seal(asdict(self)), indent=1) + "\n")

    def check(self, directory: Path, names: Iterable[str] | None = None) -> None:
        """Compare files with their digests (all by default) and refuse one that was changed."""
        for name in self.files if names is None else names:
            if name in self.files:
                self._check_size(directory, name)
                path = directory / name
                if path.is_file() and Digest.of(path) not in self.files[name]:
                    raise _changed(directory, name)

    def check_quickly(self, directory: Path) -> None:
        """Compare the size of every file, and the hash of the small ones outside `data/`."""
        for name, digests in self.files.items():
            self._check_size(directory, name)
            small = all(digest.bytes <= SMALL for digest in digests)
            if not name.startswith("data/") and name != "model.safetensors" and small:
                self.check(directory, [name])

    def under(self, folder: str) -> Iterator[str]:
        """Yield the names of the files listed in a folder of the run."""
        return (name for name in list(self.files) if name.startswith(f"{folder}/"))

    def add_folder(self, directory: Path, folder: str) -> bool:
        """List the files of a folder that are not listed yet; returns whether there were any."""
        added = False
        for path in sorted((directory / folder).rglob("*")):
            name = path.relative_to(directory).as_posix()
            hidden = any(part.startswith(".") for part in path.relative_to(directory).parts)
            if path.is_file() and not hidden and name not in self.files and path.suffix not in UNLISTED_SUFFIXES:
                self.files[name] = [Digest.of(path)]
                added = True
        return added

    def _check_size(self, directory: Path, name: str) -> None:
        path = directory / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedFile(f"{directory / MANIFEST} is damaged: {name!r} is not a file of the run.")
        if not path.is_file():
            removed = name.startswith("data/") and not (directory / "data").exists()  # to save room
            if ABSENT not in self.files[name] and not removed:
                raise RegardError(f"{path} is missing: the run is incomplete. Copy it back, or fetch the run again.")
        elif path.stat().st_size not in {digest.bytes for digest in self.files[name]}:
            raise _changed(directory, name)


def _changed(directory: Path, name: str) -> RegardError:
    return RegardError(
        f"{directory / name} is not the file that this run was saved with. Put the original back; if you changed it on "
        f"purpose, accept it with: regard runs {directory} --accept-changes"
    )
