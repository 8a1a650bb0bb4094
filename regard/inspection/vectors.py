"""A sentence pair as the embedding vectors that enter the model, and questions about the output.

Axes: S source tokens, T target tokens, E embedding width, V vocabulary, B rows that are read at once. A model that only
reads has no vectors on the second side, a language model none on the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.nn import taps
from regard.nn.taps import Write
from regard.tasks.trace import Side, Trace
from regard.text.specials import UNK

ENTRANCES = "encoder.entrance.embedded", "decoder.entrance.embedded"
"""Where token vectors, positions added, enter the two sides of any model."""

TOKENS = 4096
"""Tokens that are read at once: what a graph for gradients may keep."""


@dataclass(frozen=True)
class Question:
    """A question about each target token: why it was written, or why it and not another.

        log P(target)   or   log P(target) − log P(other),

    the second being the difference of two logits.
    """

    targets: Tensor
    """T: the output tokens."""
    others: Tensor | None = None
    """T: a token each that was not."""
    number: bool = False
    """Whether the only logit is the answer itself, a number."""

    def answers(self, logits: Tensor) -> Tensor:
        """The value of every target token, from logits B×T×V: B×T."""
        if self.number:
            return logits[..., 0]
        return self._value(logits, self.targets, self.others)

    def answer(self, logits: Tensor, position: int) -> Tensor:
        """The value of the target token at one position, from its logits B×V: B."""
        if self.number:
            return logits[..., 0]
        return self._value(logits, self.targets[position], None if self.others is None else self.others[position])

    @staticmethod
    def _value(logits: Tensor, targets: Tensor, others: Tensor | None) -> Tensor:
        def of(tokens: Tensor) -> Tensor:
            index = tokens.to(logits.device).expand(logits.shape[:-1])[..., None]
            return logits.gather(-1, index)[..., 0]

        return of(targets) - (logits.logsumexp(-1) if others is None else of(others))


class Vectors:
    """The vectors of a pair, and the blank that takes a token's place.

    The blank is the vector of the unknown word at the same position; the start and the end symbol stay what they are.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, self.model = trace, trace.model
        self.source, self.inputs = trace.source, trace.inputs
        self.answers = len(trace.target)
        device = self.model.device
        nothing = torch.zeros(0, 1)
        self.full = [trace.activations.get(name, nothing).to(device) for name in ENTRANCES]  # S×E and T×E
        self.shifts = [torch.zeros_like(full) for full in self.full]
        with torch.no_grad():
            for index, side in enumerate((trace.source, trace.inputs)):
                if len(side):
                    table = trace.writer.decoder.embedding if index else self.model.source_embedding
                    self.shifts[index] = _shift(table.weight * table.scale, side)

    @property
    def rows(self) -> int:
        """How many rows are read at once."""
        return max(1, TOKENS // (len(self.source) + len(self.inputs)))

    def states(self, source: Tensor, inputs: Tensor) -> Tensor:
        """The output states B×T×E when these vectors B×S×E and B×T×E are read."""
        both = zip(ENTRANCES, (source, inputs), strict=True)
        with taps.watch(self.model, write={name: _in_turn(value) for name, value in both if value.shape[1]}):
            return self.model.outputs(*self.trace.tensors(len(source)))

    def at(self, kept: Tensor) -> list[Tensor]:
        """The vectors B×S×E and B×T×E on the way from all blank (0) to the real ones (1), at each share B kept."""
        return [
            full - (1 - kept.to(full))[:, None, None] * shift
            for full, shift in zip(self.full, self.shifts, strict=True)
        ]

    def without(self, gone: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Tensor]:
        """The vectors B×S×E and B×T×E where, in each row, the tokens at some places of each side are blank."""
        both = []
        for side, (full, shift) in enumerate(zip(self.full, self.shifts, strict=True)):
            vectors = full.repeat(len(gone), 1, 1)
            for row, places in enumerate(gone):
                vectors[row, list(places[side])] -= shift[list(places[side])]
            both.append(vectors)
        return both


def _shift(table: Tensor, side: Side) -> Tensor:
    """What turns the blank into each token: S×E, nothing at special tokens."""
    ids = torch.tensor(side.ids, device=table.device)
    special = torch.tensor(side.special, device=table.device)
    return table[ids] - table[torch.where(special, ids, torch.full_like(ids, UNK))]


def _in_turn(value: Tensor) -> Write:
    """Vectors B×S×E in place of those that enter: all at once, or of texts that are read apart, one after the other."""
    done = 0

    def write(was: Tensor) -> Tensor:
        nonlocal done
        start, done = done, done + was.shape[1]
        return value[:, start:done]

    return write
