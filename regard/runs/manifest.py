"""The manifest: hashes of a run's files. Sizes and small files are checked when a run is opened, others when used.

A file that is about to be replaced has two entries, before and after, so that the run can be opened even if the process
is killed in between. Checkpoints and token stores have their own checksums; journal and card may be edited.
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
"""Files up to this size in bytes are hashed whenever a run is opened."""
UNLISTED_SUFFIXES = (".tokens", ".offsets")
"""Files whose checksums are in the header of a token store."""


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
"""The digest of a file that does not exist yet."""


@dataclass
class Manifest:
    """The files of a run by relative path, each with its valid digests."""

    files: dict[str, list[Digest]] = field(default_factory=dict)
    format: int = 1

    @classmethod
    def load(cls, directory: Path, *, demanded: bool = False) -> "Manifest":
        """Read the manifest of a run; empty for runs of the first format, which have none."""
        path = directory / MANIFEST
        if not path.exists() and not path.is_symlink():
            if demanded:
                raise DamagedFile(f"{path} is missing, so the run is incomplete. Download or copy it again.")
            return cls()
        return read_record(path, cls, sealed=True)

    def save(self, directory: Path) -> None:
        """Write the manifest in one step."""
        durable.write(directory / MANIFEST, json.dumps(seal(asdict(self)), indent=1) + "\n")

    def check(self, directory: Path, names: Iterable[str] | None = None) -> None:
        """Compare files (by default all) with their digests; raises if one was changed."""
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
        """Add the files of a folder that are not listed yet; return whether there were any."""
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
            removed = (
                name.startswith("data/") and not (directory / "data").exists()
            )  # removed by the user to save space
            if ABSENT not in self.files[name] and not removed:
                raise RegardError(
                    f"{path} is missing, so the run is incomplete. Restore it, or download the run again."
                )
        elif path.stat().st_size not in {digest.bytes for digest in self.files[name]}:
            raise _changed(directory, name)


def _changed(directory: Path, name: str) -> RegardError:
    return RegardError(
        f"{directory / name} was changed after the run was saved. Restore the original; if you changed it on "
        f"purpose, accept it with: regard runs {directory} --accept-changes"
    )
