"""Images as input: a source is the name of an image, in a store its number, in a batch its pixels.

Axes: B batch, S positions of an image, T target positions, H rows and W columns of pixels.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config.media_corpora import ImageFiles
from regard.config.model import ImageEncoder as ImageSettings
from regard.config.run import RunConfig
from regard.config.task import Captioning, ImageClassification
from regard.data.batches import Batch, Batches, Frame, Places
from regard.data.image_files import check_captions
from regard.data.picture_store import PictureStore
from regard.data.pictures import as_floats, read_picture
from regard.data.store import TokenStore
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.models import Model
from regard.search.hypothesis import Hypothesis
from regard.search.steps import AttentiveSteps, ModelSteps, Source, StepModel
from regard.tasks.inputs.input import Dropout, Input, Rows, SourceView, with_attention
from regard.tasks.trace import Given, Picture
from regard.text.joined import TAB
from regard.text.tokenizer import Tokenizer


class Images:
    """The images that examples name: decoded once into a store, or read on demand."""

    def __init__(self, size: int) -> None:
        self.size = size
        """Pixels per side."""
        self.store: PictureStore | None = None

    def gather(self, names: Iterable[str], directory: Path, progress: Progress | None) -> None:
        """Decode every image into a data directory."""
        self.store = PictureStore.build(directory / "pictures", names, self.size, progress)

    def open(self, directory: Path) -> None:
        """Open the images of a data directory, if it still has them."""
        kept = directory / "pictures"
        self.store = PictureStore(kept) if kept.is_dir() else None

    def __len__(self) -> int:
        return len(self.store or ())

    def number(self, name: str) -> int:
        """Return the number of a stored image."""
        assert self.store is not None
        return self.store.numbers[name]

    def stored(self, tokens: TokenStore) -> PictureStore:
        """Return the store of images that belongs to a store of tokens."""
        if self.store is None:
            raise RegardError(f"{tokens.directory.parent} has no pictures. Restore them, or start a new run.")
        return self.store

    def pixels(self, names: Sequence[str]) -> Tensor:
        """Return the pixels of the named images: B×3×H×W, numbers from −1 to 1."""
        known = self.store.numbers if self.store else {}
        rows: list[NDArray[np.uint8]] = [
            self.store[[known[name]]][0] if self.store and name in known else read_picture(name, self.size)
            for name in names
        ]
        return as_floats(torch.from_numpy(np.stack(rows)))


class ImageBatches(Batches):
    """Batches whose sources begin with the number of an image, which is replaced by its pixels."""

    def __init__(self, *arguments: Any, pictures: PictureStore, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.pictures = pictures

    def _batch(self, rows: Places, epoch: int) -> Batch:
        batch = super()._batch(rows, epoch)
        numbers = batch.source[:, 0].tolist()
        return replace(batch, source=batch.source[:, 1:], pictures=torch.from_numpy(self.pictures[numbers]))


class ImageInput(Input):
    """An image by its name (see `regard.data.pictures`)."""

    def __init__(self, config: RunConfig, tokenizer: Tokenizer | None, frame: Frame) -> None:
        super().__init__(config, tokenizer, Frame())  # a number has no special tokens around it
        settings = image_settings(config)
        self.images = Images(settings.size)
        self.grid = settings.grid
        """Rows and columns of the grid."""

    @classmethod
    def check_corpora(cls, config: RunConfig) -> None:
        """Raise an error for folders with images that no example names."""
        corpora = (config.data.train, config.data.validation, config.data.test)
        check_captions(corpus for corpus in corpora if isinstance(corpus, ImageFiles))

    def gather(self, sources: Iterable[str], directory: Path, progress: Progress | None = None) -> None:
        """Decode every image once."""
        self.images.gather((source.split(TAB)[0] for source in sources), directory, progress)

    def open_data(self, directory: Path) -> None:
        """Open the decoded images."""
        self.images.open(directory)

    def share_data(self, other: Input) -> None:
        """Use the images of another input."""
        assert isinstance(other, ImageInput)
        self.images = other.images

    def encode(self, sources: Sequence[str]) -> Rows:
        """Return the number of each image."""
        return [[self.images.number(source.split(TAB)[0])] for source in sources]

    @property
    def id_limit(self) -> int:
        """The number of images."""
        return len(self.images)

    def describe(self) -> str:
        """Return the size of the images."""
        return f"pictures of {self.images.size} × {self.images.size} pixels"

    def batches(
        self, store: TokenStore, *, rank: int, world_size: int, dropout: Dropout, frames: tuple[Frame, Frame]
    ) -> Batches:
        """Batches with pixels."""
        training, pictures = self.config.training, self.images.stored(store)
        return ImageBatches(
            store,
            training.batch_tokens,
            training.seed,
            rank,
            world_size,
            dropout,
            frames,
            pictures=pictures,
            source_lengths=self.source_lengths(store),
        )

    def source_lengths(self, store: TokenStore) -> NDArray[np.int32] | None:
        """Return the positions of each image; `None` for captions, whose batches are made by the length of the text."""
        if self.config.task.output_kind().decoder:
            return None
        return np.full(len(store), self.grid[0] * self.grid[1], dtype=np.int32)

    def tensors(self, batch: Batch, random: torch.Generator, *, training: bool) -> dict[str, Tensor]:
        """Pixels B×3×H×W."""
        assert batch.pictures is not None
        pixels, task = as_floats(batch.pictures), self.config.task
        if training and isinstance(task, Captioning | ImageClassification):
            pixels = moved(pixels, task.shift, random)
            pixels = mirrored(pixels, random) if task.flip else pixels
        return {"source": pixels}

    def rows(self, sources: Sequence[str]) -> Rows:
        """Return a number for each image; pixels are read when images are collated."""
        return [[number] for number in range(1, len(sources) + 1)]

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Yield the indices of images in groups within a budget of positions."""
        most = max(1, tokens // (self.grid[0] * self.grid[1]))
        for start in range(0, len(rows), most):
            yield list(range(start, min(start + most, len(rows))))

    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Pixels B×3×H×W."""
        return (self.images.pixels(sources),)

    def view(self, model: nn.Module, source: str) -> SourceView:
        """Return the positions of an image for a trace."""
        picture = Picture(source, self.images.pixels([source])[0], self.grid)
        return SourceView(picture.side, Given(picture.side.ids, [], picture))

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the step model and the pixels of the images, all positions of which are real."""
        (pixels,) = self.collate(sources, rows)
        seeds = tuple(hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in pixels)
        pixels = pixels.to(model.device)
        mask = torch.ones(len(sources), self.grid[0] * self.grid[1], dtype=torch.bool, device=model.device)  # B×S
        steps = AttentiveSteps(model) if with_attention else ModelSteps(model)
        return steps, Source(pixels, mask, seeds)

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with the attention of its tokens to the image (mean of layers and heads): T×S."""
        return with_attention(model, tokenizer, self.view(model, source), hypothesis)


def image_settings(config: RunConfig) -> ImageSettings:
    """Return the section of the image encoder."""
    encoder = config.model.picture or config.model.encoder
    assert isinstance(encoder, ImageSettings)
    return encoder


def moved(pixels: Tensor, most: int, random: torch.Generator) -> Tensor:
    """Shift each image of B×3×H×W by up to `most` pixels in each direction; edges are replicated."""
    if not most:
        return pixels
    _, _, high, wide = pixels.shape
    padded = F.pad(pixels, (most,) * 4, mode="replicate")
    corners = torch.randint(0, 2 * most + 1, (len(pixels), 2), generator=random).tolist()
    return torch.stack(
        [image[:, y : y + high, x : x + wide] for image, (y, x) in zip(padded, corners, strict=True)]
    )  # B×3×H×W


def mirrored(pixels: Tensor, random: torch.Generator) -> Tensor:
    """Flip half of the images B×3×H×W horizontally."""
    chosen = torch.rand(len(pixels), generator=random) < 0.5
    return torch.where(chosen[:, None, None, None], pixels.flip(3), pixels)
