"""Output directories of exports, which are created atomically."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError


@contextmanager
def fresh_directory(directory: Path) -> Iterator[Path]:
    """Yield a temporary directory that is renamed to `directory` at the end; raises if that is not empty."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} exists and is not an empty directory. Choose another.")
    aside = directory.with_name(f".{directory.name}.aside-{os.getpid()}")
    try:
        aside.mkdir(parents=True)
        yield aside
        for file in aside.iterdir():
            file.chmod(0o644)
            durable.flush(file)
        if directory.is_dir():
            directory.rmdir()
        aside.rename(directory)
        durable.flush(directory.parent)
    except OSError as error:
        raise RegardError(f"{directory} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
