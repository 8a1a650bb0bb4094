"""Pictures in: files of any size, or scenes written out, as small arrays of bytes; nothing absurd is ever decoded.

A picture has a name: the path of a file, a path that leads into a zip file (`photos.zip/a.png`), or a scene of the
generated corpus written out (`shapes: red circle 0 0, blue star 2 1`).
Axes: H rows and W columns of pixels; three colours come first: 3×H×W.
"""

import io
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.scenes import SCENE, draw, parse
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
"""3×H×W, from 0 to 255."""

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
"""What is decoded: formats that run nothing, and fetch nothing."""
ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")
MOST_PIXELS = 64_000_000
"""Larger pictures are not decoded: these take 200 MB of memory already."""
MOST_BYTES = 200_000_000
"""Larger files are not read."""
SHOWN = 320
"""Pixels of the longer side of a picture on a page."""


MEMORY = "memory:"
"""How the name of an image begins that is an object."""
_KEPT: dict[str, "Image"] = {}
_NUMBERS = count(1)


def read_picture(name: str, size: int) -> Pixels:
    """The picture of a name, whole, brought to size×size pixels: 3×size×size."""
    image = _image(name, size)
    if image.size != (size, size):
        from PIL import Image

        image = image.resize((size, size), Image.Resampling.BOX if size < min(image.size) else Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


@contextmanager
def in_memory() -> Iterator[Callable[[object], str]]:
    """Give names to images that are objects (PIL images, arrays H×W×3 or H×W) for as long as the context lasts."""
    names: list[str] = []

    def keep(image: object) -> str:
        from PIL import Image

        if not isinstance(image, Image.Image):
            values = np.asarray(image)
            if values.dtype != np.uint8 or values.ndim not in (2, 3) or values.size == 0:
                raise RegardError(
                    f"An image must be a path, a PIL image or an array of bytes H×W×3, not {type(image).__name__} "
                    f"of {values.dtype} {'×'.join(map(str, values.shape))}."
                )
            try:
                image = Image.fromarray(values)
            except (TypeError, ValueError):
                raise RegardError(
                    f"An array of {'×'.join(map(str, values.shape))} is not an image: it must be H×W×3 or H×W."
                ) from None
        names.append(f"{MEMORY}{next(_NUMBERS)}")
        _KEPT[names[-1]] = image
        return names[-1]

    try:
        yield keep
    finally:
        for name in names:
            del _KEPT[name]


def shown_picture(name: str) -> "Image":
    """The picture of a name as people are shown it: in its own proportions, not too large."""
    if name.startswith(SCENE):
        return draw(parse(name), SHOWN)
    image = _image(name, SHOWN)
    image.thumbnail((SHOWN, SHOWN))
    return image


def as_floats(pixels: Pixels | Tensor) -> Tensor:
    """Bytes …×3×H×W as numbers from −1 to 1: what encoders read."""
    return torch.as_tensor(pixels).float() / 127.5 - 1


def check_picture(name: str) -> None:
    """Refuse a name that no picture has, before any work is done."""
    if name.startswith(SCENE):
        parse(name)
    elif not name.strip():
        raise RegardError("The name of the picture is empty. Give the path of a picture, such as photo.png.")
    elif _archive_of(name) is None and not Path(name).is_file():
        what = "is a directory, not a picture" if Path(name).is_dir() else "does not exist"
        raise RegardError(f"{name[:200]} {what}: this needs the name of a picture, such as photo.png.")


def _image(name: str, wanted: int) -> "Image":
    """A picture in colour on a white ground, upright; `wanted` is the least size that will do."""
    try:
        from PIL import Image
    except ImportError:
        raise RegardError(f"Images need Pillow. Install it with `{install_command('images')}`.") from None
    if name.startswith(SCENE):
        return draw(parse(name))
    if name in _KEPT:
        return _decoded(_KEPT[name], "The image", wanted)
    content = _content(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is told in words
            image = Image.open(content, formats=FORMATS)
    except Image.DecompressionBombError:  # told by our own limit, the lower one
        raise RegardError(_too_large(name, "has too many pixels")) from None
    except Exception as error:  # whatever a broken file makes a decoder raise
        raise RegardError(_unreadable(name, error)) from None
    return _decoded(image, name, wanted)


def _decoded(image: "Image", name: str, wanted: int) -> "Image":
    """The pixels of an image that has been opened; it is decoded only now."""
    wide, high = image.size
    if wide * high > MOST_PIXELS:
        raise RegardError(_too_large(name, f"has {wide:,} × {high:,} pixels"))
    try:
        return _in_colour(image, wanted)
    except Exception as error:  # whatever a broken file makes a decoder raise
        raise RegardError(_unreadable(name, error)) from None


def _too_large(name: str, how: str) -> str:
    return f"{name} {how}, and nothing beyond {MOST_PIXELS:,} in all is decoded: make it smaller, or leave it out."


def _in_colour(image: "Image", wanted: int) -> "Image":
    from PIL import Image, ImageOps

    image.draft("RGB", (2 * wanted, 2 * wanted))  # a JPEG need not be decoded larger than that
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith(("I", "F")):  # sixteen bits of grey
        values = np.asarray(image, dtype=np.float64)
        image = Image.fromarray(np.clip(values / 257, 0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(ground, image)
    return image.convert("RGB")


def _unreadable(name: str, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return f"{name} is no picture that can be read: {', '.join(FORMATS)} can."
    return f"{name} cannot be read as a picture ({str(error)[:200] or type(error).__name__}): it may be damaged."


def _content(name: str) -> io.BytesIO:
    """The bytes of a file, or of a file inside a zip file."""
    if not name.strip():
        raise RegardError("The name of the picture is empty. Give the path of a picture, such as photo.png.")
    try:
        if archive := _archive_of(name):
            inside = str(PurePosixPath(name).relative_to(PurePosixPath(archive)))
            files = _opened(archive, Path(archive).stat().st_mtime_ns)
            _check_bytes(name, files.getinfo(inside).file_size)
            return io.BytesIO(files.read(inside))
        _check_bytes(name, Path(name).stat().st_size)
        return io.BytesIO(Path(name).read_bytes())
    except KeyError:
        raise RegardError(f"{name} does not exist: the zip file has no such picture.") from None
    except (zipfile.BadZipFile, zlib.error) as error:
        raise RegardError(f"{name} cannot be read: its zip file is damaged ({error}).") from None
    except FileNotFoundError:
        raise RegardError(f"{name} does not exist: this needs the name of a picture, such as photo.png.") from None
    except (OSError, ValueError, RuntimeError, NotImplementedError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RegardError(f"{name[:200]} cannot be read: {reason}.") from None


@lru_cache(maxsize=4)
def _opened(archive: str, changed: int) -> zipfile.ZipFile:
    """A zip file, whose contents are read once as long as it has not changed."""
    return zipfile.ZipFile(archive)


def _check_bytes(name: str, count: int) -> None:
    if count > MOST_BYTES:
        raise RegardError(f"{name} has {count:,} bytes, and no picture beyond {MOST_BYTES:,} is read: leave it out.")


def _archive_of(name: str) -> str | None:
    """The zip file that a path leads into, if it does."""
    lowered = name.lower()
    place = lowered.find(".zip/")
    while place >= 0:
        if Path(name[: place + 4]).is_file():
            return name[: place + 4]
        place = lowered.find(".zip/", place + 1)
    return None


def pictures_in(place: str) -> list[str]:
    """The names, within a folder or a zip file, of all the pictures there."""
    path = Path(place)
    try:
        if path.is_dir():
            found: Sequence[Any] = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as files:
                found = [info.filename for info in files.infolist() if not info.is_dir()]
        else:
            what = "is neither a folder nor a zip file" if path.exists() else "does not exist"
            raise RegardError(f"{place} {what}: data.*.images names the folder, or zip file, of the pictures.")
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise RegardError(f"{place} cannot be read ({error}).") from None
    seen = (name for name in found if not any(part.startswith((".", "__MACOSX")) for part in name.split("/")))
    return sorted(name for name in seen if name.lower().endswith(ENDINGS))
