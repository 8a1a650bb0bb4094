"""Forms of examples whose text is only read: a text with a label, or with a number."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from regard.config.run import RunConfig
from regard.data.batches import Frame
from regard.data.corpus import Pair
from regard.data.form import Form, Pairs, Rows, Vocabulary, learn_tokenizer, parted
from regard.data.labels import Labels
from regard.text.specials import BOS, EOS, PAD, UNK
from regard.text.tokenizer import Tokenizer

WHOLE = Frame((BOS,), (EOS,))
"""Around a text that is only read: its first token stands for no word, and can stand for all."""

LARGEST = float(np.finfo(np.float32).max)

MOST_NAMED = 5
"""Labels that a message names."""


class Read(Form):
    """A text that is read; of this form itself, nothing is to be said of it."""

    frames = (WHOLE, Frame())
    frame = WHOLE

    def __init__(self, source: Tokenizer) -> None:
        super().__init__(source, source)

    @classmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote."""
        return cls(parted(config, Tokenizer.load(directory / "shared.json")))

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizer of the text that is read."""
        return cls(parted(config, learn_tokenizer(config, pairs, count)))

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The tokenizer."""
        return {"source": self.source}

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The tokens of the text; nothing is to be said of it."""
        return self.source.encode_batch([pair.source for pair in pairs]), [[] for _ in pairs]

    def fact(self) -> str:
        """The vocabularies in a few words."""
        return f"{self.source.size:,} tokens, {self.source.kind}"


class Labelled(Read):
    """A text and its label."""

    def __init__(self, source: Tokenizer, labels: Labels) -> None:
        super().__init__(source)
        self.labels = labels

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizer of the texts and the labels that there are."""
        labels = Labels.learn(pair.target.strip() for pair in pairs())
        return cls(Read.learn(config, pairs, count).source, labels)

    @classmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote."""
        return cls(Read.load(config, directory).source, Labels.load(directory / "labels.json"))

    def save(self, directory: Path) -> None:
        """Write the tokenizer and the labels."""
        super().save(directory)
        self.labels.save(directory / "labels.json")

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The tokenizer and the labels."""
        return {"source": self.source, "labels": self.labels}

    @property
    def limits(self) -> tuple[int, int]:
        """The sizes of the vocabulary and of the set of labels."""
        return self.source.size, self.labels.size

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """A text without a label is refused, and a label that no line could hold."""
        if any(mark in pair.target.strip() for mark in "\t\r\n"):
            return "has a label with a tab or a line break in it: give it another name."
        return None if pair.target.strip() else "has no label: give it one, or leave the line out."

    def check(self, pair: Pair, place: str) -> None:
        """Refuse a label that training never shows."""
        for label in self.given(pair):
            self.labels.number(label, place)

    def given(self, pair: Pair) -> list[str]:
        """The labels of an example."""
        return [pair.target.strip()]

    def missing(self, pairs: Sequence[Pair]) -> str | None:
        """Labels that training shows and these examples do not: nothing is measured of them."""
        there = {label for pair in pairs for label in self.given(pair)}
        names = [name for name in self.labels.names if name not in there]
        if not names:
            return None
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        told = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
        return f"never shows {told}{more}, which the training data has: of them nothing is measured."

    def remarks(self) -> list[str]:
        """Labels that occur once: they can hardly be learnt, and are often mistakes."""
        once = [name for name, count in zip(self.labels.names, self.labels.counts, strict=True) if count == 1]
        if not once:
            return []
        more = f" and {len(once) - MOST_NAMED:,} more" if len(once) > MOST_NAMED else ""
        named = ", ".join(f"`{name[:40]}`" for name in once[:MOST_NAMED])
        return [f"The training data shows {named}{more} only once: check that this is no mistake in the data."]

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The tokens of the text; the number of its label."""
        return (
            self.source.encode_batch([pair.source for pair in pairs]),
            [[self.labels.number(pair.target.strip())] for pair in pairs],
        )

    def fact(self) -> str:
        """The vocabularies in a few words."""
        return f"{super().fact()}; {self.labels.size} labels"


class Tagged(Labelled):
    """A sentence and a tag for each of its words: those between white space.

    In a store the tag stands at the first token of its word, as its number and one; at the others stands nothing, 0.
    """

    noun = "sentences"
    frames = (WHOLE, Frame((PAD,), (PAD,)))

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizer of the words and the tags that there are."""
        labels = Labels.learn(tag for pair in pairs() for tag in pair.target.split())
        return cls(Read.learn(config, pairs, count).source, labels)

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """As many tags as words are wanted."""
        words, tags = pair.source.split(), pair.target.split()
        if len(words) == len(tags):
            return None
        return f"has {len(words)} words and {len(tags)} tags: mend it (it begins `{' '.join(words[:5])}`)."

    @property
    def limits(self) -> tuple[int, int]:
        """The size of the vocabulary; tags are counted from 1."""
        return self.source.size, self.labels.size + 1

    def given(self, pair: Pair) -> list[str]:
        """The tags of a sentence."""
        return pair.target.split()

    def tokens(self, words: Sequence[str]) -> list[list[int]]:
        """The tokens of each word, at least one."""
        return [ids or [UNK] for ids in self.source.encode_batch(words)]

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The tokens of all words; the tag of each word at its first token."""
        sources, targets = [], []
        for pair in pairs:
            words = self.tokens(pair.source.split())
            tags = [self.labels.number(tag) for tag in pair.target.split()]
            sources.append([token for word in words for token in word])
            targets.append(
                [number for word, tag in zip(words, tags, strict=True) for number in (tag + 1, *[0] * (len(word) - 1))]
            )
        return sources, targets

    def fact(self) -> str:
        """The vocabularies in a few words."""
        return super().fact().replace("labels", "tags")


class Numbered(Read):
    """A text and a number, kept in a store as the two halves of a 32-bit float."""

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """What is no finite number is refused."""
        try:
            finite = abs(float(pair.target)) <= LARGEST
        except ValueError:
            finite = False
        said = pair.target.strip()[:40]
        return None if finite else f"has `{said}` where a number is wanted: mend it, or set shape.output=classes."

    @property
    def limits(self) -> tuple[int, int]:
        """The size of the vocabulary; halves of a number have 16 bits."""
        return self.source.size, 1 << 16

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The tokens of the text; the halves of the number."""
        numbers = np.asarray([float(pair.target) for pair in pairs], dtype="<f4")
        return self.source.encode_batch([pair.source for pair in pairs]), numbers.view("<u2").reshape(-1, 2).tolist()


def numbers_in(halves: Tensor) -> Tensor:
    """The numbers B of which a batch holds the halves B×2."""
    return torch.from_numpy(halves.numpy().astype("<u2").view("<f4").astype(np.float32)[:, 0])
