"""Files that survive a crash: written aside, flushed to the disk, and only then put in place."""

import os
import sys
from collections.abc import Callable
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Replace a file in one act: afterwards it holds either the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content
    build(path, lambda aside: aside.write_bytes(data))


def build(path: Path, make: Callable[[Path], object]) -> None:
    """Let `make` write a file aside, then put it in place in one act; a failure leaves nothing behind."""
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        make(path)
        return
    aside = path.with_name(f".{path.name}.aside")
    try:
        make(aside)
        flush(aside)
        aside.replace(path)
        flush(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Wait until a file or a directory has reached the disk."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows flushes directories by itself
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
