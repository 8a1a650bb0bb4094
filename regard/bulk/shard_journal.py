"""The journal of a shard: its translated blocks, in any order, appended as they arrive.

Each line is one block as JSON. A line that was not written completely before a crash is cut off when the journal is
opened again, so that every other block is kept.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from regard.bulk.blocks import Rejection, TranslatedBlock
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.runs.file_lock import try_lock

FLUSH_SECONDS = 2.0
"""The longest time for which blocks may not have reached the disk; after a power failure they are translated again."""


@dataclass(frozen=True)
class Entry:
    """A block in the journal."""

    start: int
    """Place of its line in the file."""
    lines: int
    extent: int
    rejected: int
    """Lines that were not translated."""


class ShardJournal:
    """The translated blocks of one shard."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path, self._head = path, head
        self.entries: dict[int, Entry] = {}
        self._file: IO[bytes] | None = None
        self._flushed = time.monotonic()
        self._size = 0
        if path.exists():
            self._read()

    def _read(self) -> None:
        """Read which blocks the journal has; one that belongs to another input is discarded."""
        with self.path.open("rb") as file:
            first = file.readline()
            if _parse(first) != self._head:
                return
            self._size = len(first)
            for line in file:
                fields = _parse(line)
                if fields is None:
                    break
                entry = Entry(self._size, len(fields["outputs"]), fields["extent"], len(fields["rejected"]))
                self.entries[fields["block"]] = entry
                self._size += len(line)

    @property
    def prefix(self) -> tuple[int, int]:
        """The number of blocks from the first on without a gap, and of their lines."""
        blocks = lines = 0
        while blocks in self.entries:
            lines += self.entries[blocks].lines
            blocks += 1
        return blocks, lines

    def add(self, block: TranslatedBlock) -> None:
        """Append a block, if the journal does not have it."""
        if block.number in self.entries:
            return
        file = self._open()
        fields = {
            "block": block.number,
            "checksum": block.checksum,
            "extent": block.extent,
            "tokens": block.tokens,
            "rejected": [[rejection.index, rejection.reason] for rejection in block.rejected],
            "outputs": block.outputs,
        }
        line = json.dumps(fields, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        file.write(line)
        file.flush()
        self.entries[block.number] = Entry(self._size, len(block.outputs), block.extent, len(block.rejected))
        self._size += len(line)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            os.fsync(file.fileno())
            self._flushed = time.monotonic()

    def _open(self) -> IO[bytes]:
        """Open the journal for writing, and lock it."""
        if self._file is not None:
            return self._file
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        file = os.fdopen(handle, "r+b")
        if not try_lock(handle):
            file.close()
            raise RegardError(f"{self.path} is used by another job. Wait for it, or use the same N of --shard I/N.")
        if self._size == 0:
            line = json.dumps(self._head).encode() + b"\n"
            file.truncate(0)
            file.write(line)
            self._size = len(line)
        else:
            file.truncate(self._size)
            file.seek(self._size)
        self._file = file
        return file

    def blocks(self) -> Iterator[TranslatedBlock]:
        """Yield the blocks in the order of their numbers."""
        if not self.entries:
            return
        with self.path.open("rb") as file:
            for number in sorted(self.entries):
                file.seek(self.entries[number].start)
                fields = _parse(file.readline())
                if fields is None or fields["block"] != number:
                    raise RegardError(f"{self.path} is damaged. Delete it to translate this file from the start.")
                rejected = [Rejection(index, reason) for index, reason in fields["rejected"]]
                rest = (fields["checksum"], fields["extent"], fields["tokens"])
                yield TranslatedBlock(0, number, fields["outputs"], rejected, *rest)

    def close(self) -> None:
        """Flush the journal to the disk and close it."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Remove the journal of a finished shard."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.path.unlink(missing_ok=True)
        if self.path.parent.is_dir():
            durable.flush(self.path.parent)


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return the fields of a complete line; `None` for a part of one."""
    if not line.endswith(b"\n"):
        return None
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None
