"""A sentence pair as the vectors that enter its model, and what may be asked of what comes out.

Axes: S source tokens, T target tokens, E embedding width, V vocabulary, B rows that are read at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.nn import taps
from regard.nn.taps import Write
from regard.text.specials import UNK
from regard.trace import Side, Trace

ENTRANCES = "encoder.entrance.embedded", "decoder.entrance.embedded"
"""Where token vectors, positions added, enter the two sides of any model."""

TOKENS = 4096
"""Tokens that are read at once: what a graph for gradients may keep."""


@dataclass(frozen=True)
class Question:
    """What is asked of each target token: why it was said, or why it and not another.

        log P(said)   or   log P(said) − log P(other),

    the second being the difference of two logits.
    """

    said: Tensor
    """T: the tokens that were said."""
    others: Tensor | None = None
    """T: a token each that was not."""

    def answers(self, logits: Tensor) -> Tensor:
        """The value of every target token, from logits B×T×V: B×T."""
        return self._value(logits, self.said, self.others)

    def answer(self, logits: Tensor, place: int) -> Tensor:
        """The value of the target token at one place, from its logits B×V: B."""
        return self._value(logits, self.said[place], None if self.others is None else self.others[place])

    @staticmethod
    def _value(logits: Tensor, said: Tensor, others: Tensor | None) -> Tensor:
        def of(tokens: Tensor) -> Tensor:
            index = tokens.to(logits.device).expand(logits.shape[:-1])[..., None]
            return logits.gather(-1, index)[..., 0]

        return of(said) - (logits.logsumexp(-1) if others is None else of(others))


class Vectors:
    """The vectors of a pair, and the blank that takes a token's place.

    The blank is the vector of the unknown word at the same position; the start and the end symbol stay what they are.
    """

    def __init__(self, trace: Trace) -> None:
        self.model = trace.model
        self.source, self.inputs = trace.source, trace.inputs
        device = self.model.output_bias.device
        self.ids = [torch.tensor([side.ids], device=device) for side in (trace.source, trace.inputs)]  # 1×S and 1×T
        self.full = [trace.activations[name].to(device) for name in ENTRANCES]  # S×E and T×E
        tables = [self.model.source_embedding, self.model.decoder.embedding]
        with torch.no_grad():
            self.shifts = [
                _shift(table.weight * table.scale, side)
                for table, side in zip(tables, (trace.source, trace.inputs), strict=True)
            ]

    @property
    def rows(self) -> int:
        """How many rows are read at once."""
        return max(1, TOKENS // (len(self.source) + len(self.inputs)))

    def states(self, source: Tensor, inputs: Tensor) -> Tensor:
        """The decoder's output states B×T×E when these vectors B×S×E and B×T×E are read."""
        writes = {name: _always(value) for name, value in zip(ENTRANCES, (source, inputs), strict=True)}
        with taps.watch(self.model, write=writes):
            memory = self.model.encode(self.ids[0].expand(len(source), -1))
            return self.model.decode(memory, self.ids[1].expand(len(source), -1))

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


def _always(value: Tensor) -> Write:
    return lambda _: value
