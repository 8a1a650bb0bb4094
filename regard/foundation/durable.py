"""Atomic writes: files are written under a temporary name, flushed to disk, and then renamed."""

import os
import sys
from collections.abc import Callable
from glob import escape
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: it has either the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content
    build(path, lambda aside: aside.write_bytes(data))


def build(
    path: Path, make: Callable[[Path], object], before_rename: Callable[[Path], object] = lambda aside: None
) -> None:
    """Let `make` write a new file, then rename it to `path` atomically; a failure leaves no file.

    The new file has a random name and is created exclusively, so that a prepared symbolic link in the
    directory cannot redirect the write. `before_rename` is called with it when it is complete.
    """
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        make(path)
        return
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}.aside")
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666))
    try:
        make(aside)
        flush(aside)
        before_rename(aside)
        aside.replace(path)
        flush(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of a file that were left by a process that was killed while it wrote them."""
    for leftover in path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * 16}.aside"):
        leftover.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until a file or a directory has reached the disk."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows flushes directories by itself
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
