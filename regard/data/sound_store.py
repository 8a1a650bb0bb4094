"""Features of sounds in a memory-mapped file, so that training does not compute them again.

Axes: S frames of a sound, F bands.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Self

import numpy as np

from regard.data.log_mel import Frames
from regard.data.sounds import SoundFormat, file_stamp, read_frames
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress, reported
from regard.runs.records import DamagedFile, read_record

_FRAMES, _HEADER = "frames.uint8", "header.json"


@dataclass(frozen=True)
class SoundHeader:
    """The content of `header.json`."""

    bands: int
    names: list[str]
    lengths: list[int]
    """Frames of each sound."""
    stamps: list[str]
    """Size and time of change of the files of each sound."""
    resampled: list[int]
    """The sample rates of sounds that were resampled."""


class SoundStore:
    """Features by number: a directory with `frames.uint8`, the frames of all sounds, and `header.json`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            header = self.header = read_record(directory / _HEADER, SoundHeader)
            counts = {len(header.names), len(set(header.names)), len(header.lengths), len(header.stamps)}
            if len(counts) != 1 or header.bands < 1 or any(length < 1 for length in header.lengths):
                raise ValueError("its header is not that of a sound store")
            expected = sum(header.lengths) * header.bands
            if (found := (directory / _FRAMES).stat().st_size) != expected:
                raise ValueError(f"{_FRAMES} has {found:,} bytes instead of {expected:,}")
            shape = (sum(header.lengths), header.bands)
            self._frames: Frames = np.memmap(directory / _FRAMES, dtype=np.uint8, mode="r", shape=shape)
        except (OSError, ValueError, DamagedFile) as error:
            raise RegardError(
                f"{directory} holds no sounds, or is damaged ({error}). Restore it, or start a new run."
            ) from error
        self.lengths = np.asarray(header.lengths, dtype=np.int64)
        self._starts = [0, *accumulate(header.lengths)]

    @classmethod
    def build(
        cls, directory: Path, names: Iterable[str], wanted: SoundFormat, progress: Progress | None = None
    ) -> Self:
        """Compute the features of each named sound once, into a new store."""
        distinct = list(dict.fromkeys(names))
        directory.mkdir(parents=True, exist_ok=True)
        lengths: list[int] = []
        resampled: set[int] = set()

        def compute(aside: Path) -> None:
            with aside.open("wb") as file:
                for name in reported(distinct, "reading sounds", progress, len(distinct)):
                    frames, rates = read_frames(name, wanted)
                    lengths.append(len(frames))
                    file.write(frames.tobytes())
                    resampled.update(rates)

        durable.build(directory / _FRAMES, compute)
        stamps = [file_stamp(name) or "" for name in distinct]
        header = SoundHeader(wanted.bands, distinct, lengths, stamps, sorted(resampled))
        durable.write(directory / _HEADER, json.dumps(asdict(header), ensure_ascii=False))
        return cls(directory)

    def __len__(self) -> int:
        return len(self.header.names)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name."""
        return {name: number for number, name in enumerate(self.header.names)}

    def __getitem__(self, number: int) -> Frames:
        """Return the features of a sound: S×F."""
        return self._frames[self._starts[number] : self._starts[number + 1]]

    def find(self, name: str) -> Frames | None:
        """Return the features of a sound, or `None` if they are not stored or its files have changed since.

        Missing files count as unchanged: resumed training needs no files, but a replaced file must be read again.
        """
        number = self.numbers.get(name)
        if number is None or file_stamp(name) not in (None, self.header.stamps[number]):
            return None
        return self[number]
