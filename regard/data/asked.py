"""The form of examples that are a picture, a question about it, and the answer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.config.run import RunConfig
from regard.data.batches import Frame, Places, cut
from regard.data.corpus import Pair
from regard.data.form import Pairs, Rows, Vocabulary, learn_tokenizer
from regard.data.labels import Labels
from regard.data.picture_store import PictureStore
from regard.data.pictured import Pictured, PicturedBatches, pixels_a_side
from regard.data.reading import Labelled
from regard.data.store import TokenStore
from regard.text.joined import TAB
from regard.text.specials import BOS, EOS
from regard.text.tokenizer import Tokenizer


class AskedBatches(PicturedBatches):
    """Batches in which the questions about a picture stand side by side, so that it is looked at once for all of them.

    Each epoch has its pictures in another order, and so the questions of each; lengths are left to chance, since
    questions differ little in them.
    """

    def _plan(self, epoch: int) -> tuple[Places, Places]:
        if self._latest is None or self._latest[0] != epoch:
            numbers, random = self.store.openings, self._random(epoch, 0)
            turns = random.permutation(len(self.pictures))
            order = np.lexsort((random.random(len(numbers)), turns[numbers]))
            longest = self.store.lengths[0][order]  # with the end symbol, without the picture
            self._latest = epoch, (order, cut(longest, self.tokens, self.world_size))
        return self._latest[1]


class Asked(Pictured, Labelled):
    """A picture by its name, a question behind a tab, and its answer: one of a few."""

    noun = "questions"
    batched = AskedBatches
    frames = (Frame((), (EOS,)), Frame())

    def __init__(self, source: Tokenizer, labels: Labels, size: int, pictures: PictureStore | None = None) -> None:
        Labelled.__init__(self, source, labels)
        self.size, self.pictures = size, pictures

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizer of the questions and the answers that there are."""
        cls.whole(config)
        labels = Labels.learn(pair.target.strip() for pair in pairs())
        questions = learn_tokenizer(config, lambda: (Pair(asked(pair), pair.target) for pair in pairs()), count)
        return cls(questions, labels, pixels_a_side(config))

    @classmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote, and the pictures, where the run still has them."""
        labels, tokenizer = Labels.load(directory / "labels.json"), Tokenizer.load(directory / "shared.json")
        return cls(tokenizer, labels, pixels_a_side(config), cls.kept(directory))

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """An example without a question, or without an answer, is refused."""
        return super().problem(pair) if asked(pair).strip() else "has no question: write one, or leave the line out."

    @classmethod
    def together(cls, pair: Pair) -> str:
        """All questions about a picture share its fate."""
        return pair.source.split(TAB)[0]

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The tokenizer of the questions, and the answers."""
        return {"source": self.source, "labels": self.labels}

    @property
    def limits(self) -> tuple[int, int]:
        """The number of pictures or tokens, whichever is larger, and of answers."""
        return self.ids, self.labels.size

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The number of the picture and the tokens of the question, a start symbol before them; the answer's number."""
        assert self.pictures is not None  # gathered before
        numbers = self.pictures.numbers
        questions = self.source.encode_batch([asked(pair) for pair in pairs])
        return (
            [[numbers[self.together(pair)], BOS, *ids] for pair, ids in zip(pairs, questions, strict=True)],
            [[self.labels.number(pair.target.strip())] for pair in pairs],
        )

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """How often each token occurs in the questions of a store, whose sources begin with a picture's number."""
        counts = np.zeros(self.source.size, dtype=np.int64)
        for place in range(len(store)):
            np.add.at(counts, store[place][0][1:], 1)
        return counts

    def fact(self) -> str:
        """The vocabularies in a few words."""
        return f"{Labelled.fact(self)}; pictures of {self.size} × {self.size} pixels".replace("labels", "answers")


def asked(pair: Pair) -> str:
    """The question of an example."""
    return pair.source.partition(TAB)[2]
