"""The token store: ids of both sides of a corpus in memory-mapped files, so that large corpora need little memory."""

import json
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import NDArray

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.runs.records import DamagedFile, read_record
from regard.text.packed_rows import PackedRows

FORMAT = "regard token store"
VERSION = 1
SIDES = ("source", "target")
_FILES = tuple(f"{side}.{part}" for side in SIDES for part in ("tokens", "offsets"))
_PART = 1 << 24

Tokens = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, kw_only=True)
class StoreFile:
    """Size and checksum of one file of a store."""

    bytes: int
    crc32: int


@dataclass(frozen=True, kw_only=True)
class StoreHeader:
    """The content of `header.json`."""

    format: str
    version: int
    pairs: int
    dtype: Literal["uint16", "uint32"]
    files: dict[str, StoreFile]


class TokenStore:
    """Pairs of id sequences without special tokens; `store[i]` is (source ids, target ids).

    A directory: for each side `SIDE.tokens`, all ids concatenated, and `SIDE.offsets`, the n + 1 positions at which
    sequences begin and end (int64); and `header.json` with version, counts, and the size and checksum of each file.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        header = self._header = _read_header(directory)
        self.pairs = header.pairs
        try:
            self._tokens = [_map_file(directory / f"{side}.tokens", np.dtype(header.dtype)) for side in SIDES]
            self._offsets = [_map_file(directory / f"{side}.offsets", np.dtype(np.int64)) for side in SIDES]
            fits = all(
                len(offsets) == header.pairs + 1 and offsets[0] == 0 and offsets[-1] == len(tokens)
                for offsets, tokens in zip(self._offsets, self._tokens, strict=True)
            )
        except (OSError, ValueError) as error:
            raise _damaged(directory, str(error)) from error
        if not fits:
            raise _damaged(directory, "its counts do not agree")

    def __len__(self) -> int:
        return self.pairs

    def __getitem__(self, index: int) -> tuple[Tokens, Tokens]:
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        source, target = (
            tokens[offsets[index] : offsets[index + 1]]
            for tokens, offsets in zip(self._tokens, self._offsets, strict=True)
        )
        return source, target

    @cached_property
    def lengths(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Number of tokens of each source and each target."""
        source, target = (
            np.asarray(np.subtract(offsets[1:], offsets[:-1], dtype=np.int32)) for offsets in self._offsets
        )
        return source, target

    @cached_property
    def openings(self) -> Tokens:
        """The first id of each source; no source may be empty."""
        return np.asarray(self._tokens[0][self._offsets[0][:-1]])

    @property
    def tokens(self) -> tuple[int, int]:
        """Number of tokens of all sources and of all targets."""
        return len(self._tokens[0]), len(self._tokens[1])

    def counts(self, side: str, vocabulary: int) -> NDArray[np.int64]:
        """Return the number of occurrences of each id in all sources, or in all targets."""
        return _count_ids(self._tokens[SIDES.index(side)], vocabulary)

    def verify(self, limits: tuple[int, int] | None = None) -> None:
        """Check all files against their checksums and, given limits, that all source and target ids are below them.

        A limit is the size of a vocabulary. An id outside it would make torch fail during training.
        """
        for name, expected in self._header.files.items():
            checksum = 0
            with (self.directory / name).open("rb") as file:
                while block := file.read(1 << 20):
                    checksum = zlib.crc32(block, checksum)
            if checksum != expected.crc32:
                raise _damaged(self.directory, f"the checksum of {name} is wrong")
        for side, tokens, offsets, limit in zip(
            SIDES, self._tokens, self._offsets, limits or (None, None), strict=True
        ):
            if (np.diff(offsets) < 0).any():
                raise _damaged(self.directory, f"the offsets of {side} are not in order")
            largest = max((int(part.max()) for part in _parts(tokens)), default=0)
            if limit is not None and largest >= limit:
                raise _damaged(self.directory, f"{side} has the id {largest}, and the vocabulary has {limit:,} tokens")


class InMemoryStore(TokenStore):
    """A store of a few pairs in memory."""

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]):
        sides = sources, targets
        self.pairs = len(sources)
        self._tokens = [np.fromiter(chain.from_iterable(rows), dtype=np.uint32) for rows in sides]
        self._offsets = [np.cumsum([0, *map(len, rows)], dtype=np.int64) for rows in sides]


class StoreWriter:
    """Writes a token store in chunks: to a temporary directory, flushed to disk, and renamed when complete."""

    def __init__(self, directory: Path, vocabulary: int):
        self.directory = directory
        self._aside = directory.with_name(directory.name + ".partial")
        self.dtype = dtype_for(vocabulary)
        self._pairs = 0
        self._ends = [0, 0]
        shutil.rmtree(self._aside, ignore_errors=True)
        self._aside.mkdir(parents=True)
        self._files: dict[str, BinaryIO] = {name: (self._aside / name).open("wb") for name in _FILES}
        self._sums = dict.fromkeys(_FILES, 0)
        for side in SIDES:
            self._write(f"{side}.offsets", np.zeros(1, dtype=np.int64))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._finish()
            return
        for file in self._files.values():
            file.close()
        shutil.rmtree(self._aside, ignore_errors=True)

    def write(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        """Add a chunk of pairs."""
        self.write_packed(PackedRows.of(sources), PackedRows.of(targets))

    def write_packed(self, sources: PackedRows, targets: PackedRows) -> None:
        """Add a chunk of packed pairs."""
        self._pairs += len(sources)
        for number, (side, rows) in enumerate(zip(SIDES, (sources, targets), strict=True)):
            self._write(f"{side}.tokens", rows.astype(self.dtype).ids)
            self._write(f"{side}.offsets", self._ends[number] + np.cumsum(rows.lengths))
            self._ends[number] += len(rows.ids)

    def _write(self, name: str, values: NDArray[Any]) -> None:
        data = np.ascontiguousarray(values).view(np.uint8).data
        self._sums[name] = zlib.crc32(data, self._sums[name])
        self._files[name].write(data)

    def _finish(self) -> None:
        files = {}
        for name, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            files[name] = {"bytes": file.tell(), "crc32": self._sums[name]}
            file.close()
        header = {
            "format": FORMAT,
            "version": VERSION,
            "pairs": self._pairs,
            "dtype": self.dtype.name,
            "files": files,
        }
        durable.write(self._aside / "header.json", json.dumps(header, indent=2))
        durable.flush(self._aside)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._aside.rename(self.directory)
        durable.flush(self.directory.parent)


def dtype_for(vocabulary: int) -> np.dtype[Any]:
    """Return the smallest type that holds the ids of a vocabulary."""
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def _count_ids(tokens: Tokens, vocabulary: int) -> NDArray[np.int64]:
    """Return the number of occurrences of each id, reading the file in chunks."""
    counts = np.zeros(vocabulary, dtype=np.int64)
    for part in _parts(tokens):
        counts += np.bincount(part, minlength=vocabulary)
    return counts


def _parts(tokens: Tokens) -> Iterator[Tokens]:
    """Yield a file of tokens in chunks."""
    return (tokens[start : start + _PART] for start in range(0, len(tokens), _PART))


def _read_header(directory: Path) -> StoreHeader:
    """Read the header of a store, and check the sizes of its files."""
    path = directory / "header.json"
    try:
        header = read_record(path, StoreHeader)
    except DamagedFile as error:
        raise _damaged(directory, str(error)) from error
    if header.format != FORMAT:
        raise _damaged(directory, "it is of another format")
    if header.version > VERSION:
        raise RegardError(
            f"{directory} is a token store of version {header.version}, and this Regard reads up to {VERSION}: "
            "update Regard."
        )
    for name in _FILES:
        if name not in header.files:
            raise _damaged(directory, f"the header does not list {name}")
        found = (directory / name).stat().st_size if (directory / name).is_file() else 0
        if found != header.files[name].bytes:
            raise _damaged(directory, f"{name} has {found:,} bytes instead of {header.files[name].bytes:,}")
    if set(header.files) != set(_FILES):
        raise _damaged(directory, "the header lists files that do not belong to a token store")
    return header


def _map_file(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a file as a memory-mapped array."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def _damaged(directory: Path, why: str) -> RegardError:
    return RegardError(f"{directory} is not a token store, or is damaged ({why}). Restore it, or start a new run.")
