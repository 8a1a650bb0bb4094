"""Reading of images: files, or generated scenes given as text, as small arrays of bytes; oversized files are refused.

The name of an image is the path of a file, a path into a zip file (`photos.zip/a.png`), or the text of a scene of the
generated corpus (`shapes: red circle 0 0, blue star 2 1`).
Axes: H rows and W columns of pixels; three colours come first: 3×H×W.
"""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.archives import archive_of, is_file, list_files, read_content
from regard.data.arrays import as_array, describe_array
from regard.data.manifests import PICTURE_ENDINGS
from regard.data.scenes import SCENE, draw, parse
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
"""3×H×W, from 0 to 255."""

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
"""Formats that are decoded; none of them can run code or fetch other files."""
MOST_PIXELS = 64_000_000
"""Larger images are not decoded; one of this size takes 200 MB of memory."""
MOST_BYTES = 200_000_000
"""Larger files are not read."""
SHOWN = 320
"""Pixels of the longer side of an image on a page."""


MEMORY = "memory:"
"""Prefix of the names of images in memory."""
_KEPT: dict[str, "Image"] = {}
_NUMBERS = count(1)


def read_picture(name: str, size: int) -> Pixels:
    """Return an image, resized to size×size pixels: 3×size×size."""
    image = _image(name, size)
    if image.size != (size, size):
        from PIL import Image

        image = image.resize((size, size), Image.Resampling.BOX if size < min(image.size) else Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


@contextmanager
def in_memory() -> Iterator[Callable[[object], str]]:
    """Give names to images that are PIL images or arrays, H×W×3 or H×W, for as long as the context lasts."""
    names: list[str] = []

    def keep(image: object) -> str:
        from PIL import Image

        if not isinstance(image, Image.Image):
            image = Image.fromarray(_as_bytes(image))
        if 0 in image.size:
            raise RegardError("The image has no pixels. Leave it out.")
        names.append(f"{MEMORY}{next(_NUMBERS)}")
        _KEPT[names[-1]] = image
        return names[-1]

    try:
        yield keep
    finally:
        for name in names:
            del _KEPT[name]


def _as_bytes(image: object) -> Pixels:
    """Return an array as bytes H×W×3 or H×W; an array of floats has values from 0 to 1."""
    values = as_array(image)
    if values is None or (values.dtype.kind not in "bf" and values.dtype != np.uint8) or values.ndim not in (2, 3):
        raise RegardError(
            "An image must be a path, a PIL image, or an array H×W×3 or H×W of bytes or of floats from 0 to 1, not "
            f"{type(image).__name__}{describe_array(values)}."
        )
    shape = "×".join(map(str, values.shape))
    if not values.size:
        raise RegardError(f"An array of {shape} has no pixels. Leave it out.")
    if values.ndim == 3 and values.shape[2] not in (1, 3, 4):
        hint = f" Transpose it: it is {shape}." if values.shape[0] in (1, 3, 4) else ""
        raise RegardError(f"An array of {shape} is not an image. It must be H×W×3 or H×W.{hint}")
    if values.dtype.kind == "f":
        low, high = float(values.min()), float(values.max())
        if not 0 <= low <= high <= 1:
            raise RegardError(
                f"An array of floats has values from {low:g} to {high:g}. They must be from 0 to 1; or give bytes."
            )
    if values.dtype != np.uint8:
        values = np.rint(255 * values.astype(np.float64)).astype(np.uint8)
    return np.ascontiguousarray(values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values)


def shown_picture(name: str) -> "Image":
    """Return an image for display: in its own proportions, at most `SHOWN` pixels wide or high."""
    if name.startswith(SCENE):
        return draw(parse(name), SHOWN)
    image = _image(name, SHOWN)
    image.thumbnail((SHOWN, SHOWN))
    return image


def as_floats(pixels: Pixels | Tensor) -> Tensor:
    """Return bytes …×3×H×W as floats from −1 to 1, which encoders read."""
    return torch.as_tensor(pixels).float() / 127.5 - 1


def check_picture(name: str) -> None:
    """Raise if there is no image of this name, without reading it."""
    if name.startswith(SCENE):
        parse(name)
    elif not name.strip():
        raise RegardError("The name of the picture is empty. Give the path of a picture, such as photo.png.")
    elif archive_of(name) is None and not is_file(name):
        what = "is a directory, not a picture" if Path(name).is_dir() else "does not exist"
        raise RegardError(f"{name[:200]} {what}. Give the path of a picture, such as photo.png.")


def _image(name: str, wanted: int) -> "Image":
    """Return an upright RGB image on a white background; `wanted` is the smallest size that is needed."""
    try:
        from PIL import Image
    except ImportError:
        raise RegardError(f"Images need Pillow. Install it with `{install_command('images')}`.") from None
    if name.startswith(SCENE):
        return draw(parse(name))
    if name in _KEPT:
        return _decode(_KEPT[name], "The image", wanted)
    content = _content(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit raises its own message
            image = Image.open(content, formats=FORMATS)
    except Image.DecompressionBombError:  # above our own limit as well
        raise RegardError(_too_large(name, "has too many pixels")) from None
    except Exception as error:  # a broken file can make a decoder raise anything
        raise RegardError(_unreadable_message(name, error)) from None
    return _decode(image, name, wanted)


def _decode(image: "Image", name: str, wanted: int) -> "Image":
    """Decode an image that has been opened."""
    wide, high = image.size
    if wide * high > MOST_PIXELS:
        raise RegardError(_too_large(name, f"has {wide:,} × {high:,} pixels"))
    try:
        return _to_rgb(image, wanted)
    except Exception as error:  # a broken file can make a decoder raise anything
        raise RegardError(_unreadable_message(name, error)) from None


def _too_large(name: str, how: str) -> str:
    return f"{name} {how}, but an image may have at most {MOST_PIXELS:,}. Make it smaller, or leave it out."


def _to_rgb(image: "Image", wanted: int) -> "Image":
    from PIL import Image, ImageOps

    image.draft("RGB", (2 * wanted, 2 * wanted))  # JPEG can be decoded at a reduced size
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith(("I", "F")):  # greyscale of 16 bits, or converted from 8 bits or from an array of floats
        values = np.asarray(image, dtype=np.float64)
        is_deep, is_share = image.mode.startswith("I;16") or values.max() > 255, image.mode == "F" and values.max() <= 1
        values = values / 257 if is_deep else values * 255 if is_share else values
        image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(ground, image)
    return image.convert("RGB")


def _unreadable_message(name: str, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return (
            f"{name} is not an image in a format that can be read. Convert it to {', '.join(FORMATS[:-1])} or "
            f"{FORMATS[-1]}."
        )
    return f"{name} cannot be read as a picture ({str(error)[:200] or type(error).__name__}). It may be damaged."


def _content(name: str) -> io.BytesIO:
    """Read a file, or a file inside a zip file."""
    if not name.strip():
        raise RegardError("The name of the picture is empty. Give the path of a picture, such as photo.png.")
    return io.BytesIO(read_content(name, limit=MOST_BYTES, noun="picture"))


def list_pictures(place: str) -> list[str]:
    """Return the names, within a folder or a zip file, of all the pictures there."""
    remedy = "Set data.*.images to the folder, or zip file, of the pictures."
    return list_files(place, PICTURE_ENDINGS, remedy=remedy)
