"""The token store: ids of both sides of a corpus in memory-mapped files, so that size costs no memory."""

import json
import os
import shutil
import zlib
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from regard import durable
from regard.errors import RegardError

FORMAT = "regard token store"
VERSION = 1
SIDES = ("source", "target")
_PART = 1 << 24

Tokens = NDArray[np.unsignedinteger[Any]]


class TokenStore:
    """Pairs of id sequences without special tokens; `store[i]` is (source ids, target ids).

    A directory: for each side `SIDE.tokens`, all ids in a row, and `SIDE.offsets`, the n + 1 places where sequences
    begin and end (int64); and `header.json` with the version, the counts, and the size and checksum of each file.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        header = _header(directory)
        self.header = header
        try:
            self._tokens = [_mapped(directory / f"{side}.tokens", np.dtype(header["dtype"])) for side in SIDES]
            self._offsets = [_mapped(directory / f"{side}.offsets", np.dtype(np.int64)) for side in SIDES]
            fits = all(
                len(offsets) == header["pairs"] + 1 and offsets[0] == 0 and offsets[-1] == len(tokens)
                for offsets, tokens in zip(self._offsets, self._tokens, strict=True)
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(directory, str(error)) from error
        if not fits:
            raise _damaged(directory, "its counts do not agree")

    def __len__(self) -> int:
        return int(self.header["pairs"])

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
        """The first id of each source, where none is empty."""
        return np.asarray(self._tokens[0][self._offsets[0][:-1]])

    @property
    def tokens(self) -> tuple[int, int]:
        """Number of tokens of all sources and of all targets."""
        return len(self._tokens[0]), len(self._tokens[1])

    def counts(self, side: str, vocabulary: int) -> NDArray[np.int64]:
        """How often each id occurs among all sources, or among all targets."""
        return _counted(self._tokens[SIDES.index(side)], vocabulary)

    def verify(self) -> None:
        """Read everything and compare with the checksums."""
        for name, expected in self.header["files"].items():
            checksum = 0
            with (self.directory / name).open("rb") as file:
                while block := file.read(1 << 20):
                    checksum = zlib.crc32(block, checksum)
            if checksum != expected["crc32"]:
                raise _damaged(self.directory, f"the checksum of {name} is wrong")


class HeldStore(TokenStore):
    """A store of a few pairs, held in memory."""

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]):
        sides = sources, targets
        self.header = {"pairs": len(sources)}
        self._tokens = [np.fromiter(chain.from_iterable(rows), dtype=np.uint32) for rows in sides]
        self._offsets = [np.cumsum([0, *map(len, rows)], dtype=np.int64) for rows in sides]


class StoreWriter:
    """Writes a token store in chunks: aside first, flushed to the disk, and renamed when it is whole."""

    def __init__(self, directory: Path, vocabulary: int):
        self.directory = directory
        self._aside = directory.with_name(directory.name + ".partial")
        self._dtype = np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)
        self._pairs = 0
        self._ends = [0, 0]
        shutil.rmtree(self._aside, ignore_errors=True)
        self._aside.mkdir(parents=True)
        names = [f"{side}.{part}" for side in SIDES for part in ("tokens", "offsets")]
        self._files: dict[str, BinaryIO] = {name: (self._aside / name).open("wb") for name in names}
        self._sums = dict.fromkeys(names, 0)
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
        self._pairs += len(sources)
        for number, (side, rows) in enumerate(zip(SIDES, (sources, targets), strict=True)):
            lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
            offsets = self._ends[number] + np.cumsum(lengths)
            total = int(lengths.sum())
            self._ends[number] += total
            self._write(f"{side}.tokens", np.fromiter(chain.from_iterable(rows), dtype=self._dtype, count=total))
            self._write(f"{side}.offsets", offsets)

    def _write(self, name: str, values: NDArray[Any]) -> None:
        data = values.tobytes()
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
            "dtype": self._dtype.name,
            "files": files,
        }
        durable.write(self._aside / "header.json", json.dumps(header, indent=2))
        durable.flush(self._aside)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._aside.rename(self.directory)
        durable.flush(self.directory.parent)


def _counted(tokens: Tokens, vocabulary: int) -> NDArray[np.int64]:
    """How often each id occurs, a part of the file at a time."""
    counts = np.zeros(vocabulary, dtype=np.int64)
    for start in range(0, len(tokens), _PART):
        counts += np.bincount(tokens[start : start + _PART], minlength=vocabulary)
    return counts


def _header(directory: Path) -> dict[str, Any]:
    """The header of a store, whose files have the sizes it says."""
    path = directory / "header.json"
    try:
        header: dict[str, Any] = json.loads(path.read_text())
        if header["format"] != FORMAT:
            raise ValueError("it is of another format")
        if header["version"] > VERSION:
            raise RegardError(
                f"{directory} is a token store of version {header['version']}, and this Regard reads up to {VERSION}: "
                "update Regard."
            )
        for name, expected in header["files"].items():
            found = (directory / name).stat().st_size
            if found != expected["bytes"]:
                raise ValueError(f"{name} has {found:,} bytes instead of {expected['bytes']:,}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(directory, str(error)) from error
    return header


def _mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A file as an array that is read when touched."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def _damaged(directory: Path, why: str) -> RegardError:
    return RegardError(
        f"{directory} is no token store, or is damaged ({why}): put it back as it was, or begin a new run."
    )
