"""Check that a run contains only plain files and directories, and no links out of it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from regard.foundation.errors import RegardError


def check_contained(directory: Path) -> None:
    """Raise if a run contains a symbolic link to the outside, or a pipe, socket or device."""
    inside = directory.resolve()
    for entry in _entries(directory):
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            if not target.is_relative_to(inside):
                raise RegardError(
                    f"{entry.path} is a symbolic link that leads out of the run, to {target}. "
                    f"A run must be self-contained. Copy it with its links followed (cp -rL {directory} COPY)."
                )
            mode = target.stat().st_mode if target.exists() else stat.S_IFREG
        else:
            mode = entry.stat(follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise RegardError(f"{entry.path} is neither a file nor a directory. Remove it, or download the run again.")


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            entries = list(found)
    except OSError as error:
        raise RegardError(f"{directory} cannot be read: {error.strerror or error}.") from None
    for entry in entries:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path))
