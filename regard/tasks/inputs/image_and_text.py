"""An image and a text about it as an input: the name of the image, a tab, and the text.

Axes: B batch, S text positions, H rows and W columns of pixels.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches, Frame, Places, cut
from regard.data.pictures import as_floats
from regard.data.store import TokenStore
from regard.foundation.errors import RegardError
from regard.tasks.inputs.image import ImageBatches, ImageInput
from regard.tasks.inputs.input import Dropout, Input, Rows, SourceView
from regard.tasks.inputs.text import TextInput
from regard.tasks.trace import Given, Picture
from regard.text.joined import TAB
from regard.text.specials import EOS
from regard.text.tokenizer import Tokenizer

STORED = Frame((), (EOS,))
"""Around a source in a store, which begins with the number of its image and the start symbol."""


class SharedImageBatches(ImageBatches):
    """Batches in which questions about one image are adjacent, so that the image is encoded once for all of them.

    Each epoch shuffles the images and the questions of each; batches are not sorted by length, since questions differ
    little in length.
    """

    def _plan(self, epoch: int) -> tuple[Places, Places]:
        if self._latest is None or self._latest[0] != epoch:
            numbers, random = self.store.openings, self._random(epoch, 0)
            turns = random.permutation(len(self.pictures))
            order = np.lexsort((random.random(len(numbers)), turns[numbers]))
            longest = self.store.lengths[0][order]  # with the end symbol, without the image
            self._latest = epoch, (order, cut(longest, self.tokens))
        return self._latest[1]


class ImageAndTextInput(Input):
    """An image and a question about it, each with its own encoder."""

    is_text: ClassVar[bool] = True

    def __init__(self, config: RunConfig, tokenizer: Tokenizer | None, frame: Frame) -> None:
        super().__init__(config, tokenizer, frame)
        self.image = ImageInput(config, None, Frame())
        self.text = TextInput(config, tokenizer, frame)

    @classmethod
    def problem(cls, source: str) -> str | None:
        """Return what is wrong with a source: it has no question."""
        return None if cls.text_of(source).strip() else "has no question. Write one, or leave the line out."

    @classmethod
    def group(cls, source: str) -> str:
        """Return the name of the image, so that all its questions are held out together."""
        return source.split(TAB, maxsplit=1)[0]

    @classmethod
    def text_of(cls, source: str) -> str:
        """Return the question."""
        return source.partition(TAB)[2]

    check_corpora = ImageInput.check_corpora

    def gather(self, *arguments: object, **options: object) -> None:
        """Decode every image once."""
        self.image.gather(*arguments, **options)  # type: ignore[arg-type]

    def open_data(self, *arguments: object) -> None:
        """Open the decoded images."""
        self.image.open_data(*arguments)  # type: ignore[arg-type]

    def share_data(self, other: Input) -> None:
        """Use the images of another input."""
        assert isinstance(other, ImageAndTextInput)
        self.image.share_data(other.image)

    def encode(self, sources: Sequence[str]) -> Rows:
        """Return the number of the image, the start symbol, and the tokens of the question."""
        questions = self.tokenizer.encode_batch([self.text_of(source) for source in sources])
        images = self.image.encode(sources)
        return [[*image, *self.frame.before, *ids] for image, ids in zip(images, questions, strict=True)]

    @property
    def id_limit(self) -> int:
        """The number of images or of tokens, whichever is larger."""
        return max(self.image.id_limit, self.text.id_limit)

    def describe(self) -> str:
        """Return the vocabulary, and the size of the images."""
        return f"{self.text.describe()}; {self.image.describe()}"

    def batches(
        self, store: TokenStore, *, rank: int, world_size: int, dropout: Dropout, frames: tuple[Frame, Frame]
    ) -> Batches:
        """Return batches with pixels, in which questions about one image are adjacent."""
        training, pictures = self.config.training, self.image.images.stored(store)
        return SharedImageBatches(
            store,
            training.batch_tokens,
            training.seed,
            rank,
            world_size,
            dropout,
            (STORED, frames[1]),
            pictures=pictures,
        )

    def tensors(self, batch: Batch, random: torch.Generator, *, training: bool) -> dict[str, Tensor]:
        """Questions B×S and pixels B×3×H×W."""
        assert batch.pictures is not None
        return {"source": batch.source, "pixels": as_floats(batch.pictures)}

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """Count each token of the questions in a store."""
        counts = np.zeros(self.tokenizer.size, dtype=np.int64)
        for index in range(len(store)):
            np.add.at(counts, store[index][0][1:], 1)
        return counts

    def shorten(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return sources with questions cut to what the model can read at once, and how many were cut."""
        names, questions = self._parts(sources)
        found, cut_short = self.text.shorten(questions)
        return [f"{name}{TAB}{question}" for name, question in zip(names, found, strict=True)], cut_short

    def rows(self, sources: Sequence[str]) -> Rows:
        """Return the tokens of the questions."""
        return self.text.rows(self._parts(sources)[1])

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Yield groups of adjacent sources, so that questions about one image stay together."""
        grid = self.image.grid
        cost = max(map(len, rows), default=0) + 2 + grid[0] * grid[1]
        most = max(1, tokens // (cost + 1))
        for start in range(0, len(rows), most):
            yield list(range(start, min(start + most, len(rows))))

    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Questions B×S and pixels B×3×H×W."""
        names, _ = self._parts(sources)
        return (*self.text.collate(sources, rows), *self.image.collate(names, rows))

    def view(self, model: nn.Module, source: str) -> SourceView:
        """Return the tokens of the question; the image is given with them."""
        (name,), (question,) = self._parts([source])
        text = self.text.view_of(self.text.rows([question])[0])
        picture = Picture(name, self.image.images.pixels([name])[0], self.image.grid)
        return SourceView(text.side, Given(text.given.source, [], picture, with_text=True))

    def breakdown(self, source: str) -> str | None:
        """Return the first two words of the question."""
        return " ".join(self.text_of(source).split()[:2])

    def _parts(self, sources: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the names of images and questions."""
        names, questions = [], []
        for source in sources:
            name, tab, question = source.partition(TAB)
            if not tab:
                raise RegardError("The source has no tab. Give an image and a question with a tab between them.")
            if not question.strip():
                raise RegardError("The question after the image is empty. Write a question.")
            names.append(name)
            questions.append(question)
        return names, questions
