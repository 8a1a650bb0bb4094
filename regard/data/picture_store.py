"""Decoded pictures in a memory-mapped file, each once, so that learning decodes nothing.

Axes: N pictures, H rows and W columns of pixels.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from regard import durable
from regard.data.pictures import Pixels, read_picture
from regard.data.progress import Progress, reported
from regard.errors import RegardError

_PIXELS, _HEADER = "pixels.uint8", "header.json"


class PictureStore:
    """Pictures by number: a directory with `pixels.uint8`, N×3×H×W, and `header.json` with their size and names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            header = json.loads((directory / _HEADER).read_text(encoding="utf-8"))
            self.size, self.names = int(header["size"]), [str(name) for name in header["names"]]
            shape = (len(self.names), 3, self.size, self.size)
            self.pixels: Pixels = np.memmap(directory / _PIXELS, dtype=np.uint8, mode="r", shape=shape)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RegardError(
                f"{directory} holds no pictures, or is damaged ({error}): put it back as it was, or begin a new run."
            ) from error

    @classmethod
    def build(cls, directory: Path, names: Iterable[str], size: int, progress: Progress | None = None) -> Self:
        """Decode the pictures of these names, each once, into a new store."""
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
        """The pictures of some numbers: B×3×H×W."""
        return self.pixels[list(numbers)]
