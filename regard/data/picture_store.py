"""Decoded images in a memory-mapped file, so that training does not decode them again.

Axes: N images, H rows and W columns of pixels.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from regard.data.pictures import Pixels, read_picture
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress, reported
from regard.runs.records import DamagedFile, read_record

_PIXELS, _HEADER = "pixels.uint8", "header.json"


@dataclass(frozen=True)
class PictureHeader:
    """The content of `header.json`."""

    size: int
    names: list[str]


class PictureStore:
    """Images by number: a directory with `pixels.uint8`, N×3×H×W, and `header.json` with their size and names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            header = read_record(directory / _HEADER, PictureHeader)
            self.size, self.names = header.size, header.names
            if len(set(self.names)) != len(self.names) or self.size < 1:
                raise ValueError("its header is not that of a picture store")
            expected = len(self.names) * 3 * self.size**2
            if (found := (directory / _PIXELS).stat().st_size) != expected:
                raise ValueError(f"{_PIXELS} has {found:,} bytes instead of {expected:,}")
            shape = (len(self.names), 3, self.size, self.size)
            self.pixels: Pixels = np.memmap(directory / _PIXELS, dtype=np.uint8, mode="r", shape=shape)
        except (OSError, ValueError, DamagedFile) as error:
            raise RegardError(
                f"{directory} holds no pictures, or is damaged ({error}). Restore it, or start a new run."
            ) from error

    @classmethod
    def build(cls, directory: Path, names: Iterable[str], size: int, progress: Progress | None = None) -> Self:
        """Decode each of the named images once, into a new store."""
        known = list(dict.fromkeys(names))
        directory.mkdir(parents=True, exist_ok=True)

        def decode(aside: Path) -> None:
            with aside.open("wb") as file:
                for name in reported(known, "decoding pictures", progress, len(known)):
                    file.write(read_picture(name, size).tobytes())

        durable.build(directory / _PIXELS, decode)
        durable.write(directory / _HEADER, json.dumps({"size": size, "names": known}, ensure_ascii=False))
        return cls(directory)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name."""
        return {name: number for number, name in enumerate(self.names)}

    def __getitem__(self, numbers: Sequence[int]) -> Pixels:
        """Return the images with the given numbers: B×3×H×W."""
        return self.pixels[list(numbers)]
