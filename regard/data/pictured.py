"""The form of examples whose source is a picture: in a store it is a number, in a batch its pixels.

Axes: B batch, H rows and W columns of pixels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config.data import ImageFiles
from regard.config.model import ImageEncoder
from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches, Places
from regard.data.corpus import Pair
from regard.data.form import Form, Pairs, Rows, Vocabulary, known_tokenizers
from regard.data.image_files import check_captions
from regard.data.picture_store import PictureStore
from regard.data.pictures import read_picture
from regard.data.store import TokenStore
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.text.joined import TAB
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer


class Pictured(Form):
    """A form whose sources begin with the name of a picture."""

    size: int
    """Pixels a side."""
    pictures: PictureStore | None
    batched: ClassVar[type["PicturedBatches"]]

    @classmethod
    def whole(cls, config: RunConfig) -> None:
        """Refuse folders with pictures that nothing is said about."""
        corpora = (config.data.train, config.data.validation, config.data.test)
        check_captions(corpus for corpus in corpora if isinstance(corpus, ImageFiles))

    @classmethod
    def kept(cls, directory: Path) -> PictureStore | None:
        """The pictures of a run with these tokenizers, where it still has them."""
        kept = directory.parent / "data" / "pictures"
        return PictureStore(kept) if kept.is_dir() else None

    @property
    def ids(self) -> int:
        """As many as there are tokens, or pictures."""
        return max(super().ids, len(self.pictures or ()))

    def gather(self, pairs: Iterable[Pair], directory: Path, progress: Progress | None = None) -> None:
        """Decode every picture once."""
        names = (pair.source.split(TAB)[0] for pair in pairs)
        self.pictures = PictureStore.build(directory / "pictures", names, self.size, progress)

    def pixels(self, names: Sequence[str]) -> Tensor:
        """The pictures of some names, decoded before or now: bytes B×3×H×W."""
        known = self.pictures.numbers if self.pictures else {}
        rows = [
            self.pictures[[known[name]]][0] if self.pictures and name in known else read_picture(name, self.size)
            for name in names
        ]
        return torch.from_numpy(np.stack(rows))

    def batches(
        self, config: RunConfig, store: TokenStore, *, rank: int = 0, world_size: int = 1, learning: bool = False
    ) -> Batches:
        """Batches with the pixels of their pictures."""
        if self.pictures is None:
            raise RegardError(f"{store.directory.parent} has no pictures: put it back as it was, or begin a new run.")
        training, share = config.training, config.text.bpe_dropout if learning else 0.0
        dropout = self._dropout(share) if share else (None, None)
        return self.batched(
            store,
            training.batch_tokens,
            training.seed,
            rank,
            world_size,
            dropout,
            self.frames,
            pictures=self.pictures,
        )


class PicturedBatches(Batches):
    """Batches whose sources begin with the number of a picture: its pixels take its place."""

    def __init__(self, *arguments: object, pictures: PictureStore) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.pictures = pictures

    def _batch(self, rows: Places, epoch: int) -> Batch:
        batch = super()._batch(rows, epoch)
        numbers = batch.source[:, 0].tolist()
        return replace(batch, source=batch.source[:, 1:], pictures=torch.from_numpy(self.pictures[numbers]))


class Captioned(Pictured):
    """A picture, by its name, and a text about it."""

    texts = ("target",)
    noun = "captions"
    batched = PicturedBatches

    def __init__(self, tokenizer: Tokenizer, size: int, pictures: PictureStore | None = None) -> None:
        super().__init__(tokenizer, tokenizer)
        self.size, self.pictures = size, pictures

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizer of the captions, once it is known that no picture lacks one."""
        cls.whole(config)
        tokenizer = known_tokenizers(config)[1] or train_tokenizer(config.text, pairs, count, "target")
        return cls(tokenizer, pixels_a_side(config))

    @classmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote, and the pictures, where the run still has them."""
        return cls(Tokenizer.load(directory / "shared.json"), pixels_a_side(config), cls.kept(directory))

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The tokenizer of the captions."""
        return {"target": self.target}

    @property
    def limits(self) -> tuple[int, int]:
        """The number of pictures and of tokens."""
        return len(self.pictures or ()), self.target.size

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The number of the picture; the tokens of the text."""
        assert self.pictures is not None  # gathered before
        numbers = self.pictures.numbers
        return (
            [[numbers[pair.source.split(TAB)[0]]] for pair in pairs],
            self.target.encode_batch([pair.target for pair in pairs]),
        )

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """How often each token occurs in the captions of a store."""
        return store.counts("target", self.target.size)

    def fact(self) -> str:
        """The tokenizer in a few words."""
        return f"{self.target.size:,} tokens, {self.target.kind}; pictures of {self.size} × {self.size} pixels"


def pixels_a_side(config: RunConfig) -> int:
    """How large pictures are when a model reads them."""
    encoder = config.model.picture or config.model.encoder
    assert isinstance(encoder, ImageEncoder)
    return encoder.size
