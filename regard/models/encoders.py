"""Text encoders: bag of words, recurrent, convolutional, Transformer.

Axes: B batch, S source positions, E embedding width, D width.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.memory import Memory
from regard.models.parts import Entrance, feed_forward, self_attention
from regard.nn.convolution import GatedConvolution
from regard.nn.dropout import Dropout
from regard.nn.normalisation import make_norm
from regard.nn.recurrence import backwards, make_recurrence
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class Encoder(nn.Module):
    """Maps source vectors B×S×E and their mask B×S to `Memory`. Padding never changes the result.

    An encoder that does not read tokens takes the tensor of its input instead, such as pixels.

    `drop_states=False` leaves out the dropout of the last states, for models that pool or compare them: a maximum, a
    product or a distance of states is larger with dropout than without, so training and inference would see different
    distributions. Such models apply dropout after pooling.
    """

    reads_tokens: ClassVar[bool] = True
    """Whether the encoder takes token vectors and their mask."""

    def __init__(self) -> None:
        super().__init__()
        self.summary = Tap(time=1)

    def forward(self, *source: Tensor) -> Memory:
        """Encode the source."""
        raise NotImplementedError


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over real positions of states B×S×D: B×D."""
    kept = states * mask[:, :, None]
    return kept.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class BagEncoder(Encoder):
    """Bag of words, which ignores word order: the states are the embeddings, the summary their mean or sum."""

    def __init__(
        self, cell: config.Model, part: config.BagEncoder, *, name: str = "encoder", drop_states: bool = True
    ) -> None:
        super().__init__()
        self.entrance = Entrance(cell, part.width, positions=False)
        if not drop_states:  # its states are the embeddings themselves
            self.entrance.dropout.probability = 0.0
        self.pool = part.pool
        self.states = Tap(time=1)

    def forward(self, embedded: Tensor, mask: Tensor) -> Memory:  # type: ignore[override]
        """Encode the source."""
        states = self.states(self.entrance(embedded))  # B×S×D
        summary = mean_state(states, mask) if self.pool == "mean" else (states * mask[:, :, None]).sum(1)  # B×D
        return Memory(states, mask, self.summary(summary))


class RnnEncoder(Encoder):
    """A stack of recurrent layers; the summary is the last state of the top layer, of both directions if it has two.

    Dropout is applied between layers, never inside the recurrence (Zaremba et al., 2014).
    """

    def __init__(
        self, cell: config.Model, part: config.RnnEncoder, *, name: str = "encoder", drop_states: bool = True
    ) -> None:
        super().__init__()
        self.entrance = Entrance(cell, None, positions=False)
        self.directions = ("forward", "backward") if part.direction == "both" else (part.direction,)
        width = resolved(part.width) // len(self.directions)
        widths_in = [self.entrance.width] + [resolved(part.width)] * (part.layers - 1)
        self.layers = Stack(
            Stack(make_recurrence(part.cell, wide, width) for _ in self.directions) for wide in widths_in
        )
        self.states = Stack(Tap(time=1) for _ in widths_in)
        self.dropout = Dropout(cell.dropout)
        self.state_dropout = Dropout(cell.dropout if drop_states else 0.0)

    def forward(self, embedded: Tensor, mask: Tensor) -> Memory:  # type: ignore[override]
        """Encode the source, each direction within the row's own length."""
        states = self.entrance(embedded)  # B×S×E
        lengths = mask.sum(1)  # B
        last = (lengths - 1)[:, None, None]  # B×1×1
        summary = states
        for depth, (layer, tap) in enumerate(zip(self.layers, self.states, strict=True)):
            states = self.dropout(states) if depth else states
            outputs, ends = [], []
            for name, run in zip(self.directions, layer, strict=True):
                read = states if name == "forward" else backwards(states, lengths)
                output = run(read, run.blank(read))  # B×S×D
                ends.append(output.gather(1, last.expand(-1, 1, output.shape[2])).squeeze(1))  # B×D
                outputs.append(output if name == "forward" else backwards(output, lengths))
            states = tap(torch.cat(outputs, dim=2))  # B×S×D
            summary = torch.cat(ends, dim=1)  # B×D
        return Memory(self.state_dropout(states), mask, self.state_dropout(self.summary(summary)))


class ConvEncoder(Encoder):
    """Stacked gated convolutions (Gehring et al., 2017); the summary is the mean state."""

    def __init__(
        self, cell: config.Model, part: config.ConvEncoder, *, name: str = "encoder", drop_states: bool = True
    ) -> None:
        super().__init__()
        width = resolved(part.width)
        self.entrance = Entrance(cell, width, positions=True)
        self.layers = Stack(
            GatedConvolution(width, part.kernel, causal=False, dropout=cell.dropout) for _ in range(part.layers)
        )
        self.states = Stack(Tap(time=1) for _ in range(part.layers))

    def forward(self, embedded: Tensor, mask: Tensor) -> Memory:  # type: ignore[override]
        """Encode the source; padding is set to zero before every layer, like positions beyond the ends."""
        states = self.entrance(embedded)  # B×S×D
        real = mask[:, :, None]  # B×S×1
        for layer, tap in zip(self.layers, self.states, strict=True):
            states = tap(layer(states * real))
        return Memory(states, mask, self.summary(mean_state(states, mask)))


class TransformerEncoderLayer(nn.Module):
    """x + SelfAttention(norm x), then x + FeedForward(norm x); post-norm: norm(x + f(x)) (Vaswani et al., 2017)."""

    def __init__(self, cell: config.Model, part: config.TransformerEncoder, name: str = "encoder.layers.0") -> None:
        super().__init__()
        width = resolved(part.width)
        self.pre = part.norm_place == "pre"
        self.attention = self_attention(cell, width, f"{name}.attention", part.window)
        self.attention_norm = make_norm(part.norm, width, cell.norm_epsilon)
        self.feed_forward = feed_forward(cell, part)
        self.feed_forward_norm = make_norm(part.norm, width, cell.norm_epsilon)
        self.dropout = Dropout(cell.dropout)
        self.after_attention = Tap(time=1)
        self.states = Tap(time=1)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Run the layer on states B×S×D, which attend where mask B×1×1×S or B×1×S×S is true; by default everywhere."""
        normed = self.attention_norm(states) if self.pre else states
        states = states + self.dropout(self.attention(normed, normed, mask))
        states = self.after_attention(states if self.pre else self.attention_norm(states))
        normed = self.feed_forward_norm(states) if self.pre else states
        states = states + self.dropout(self.feed_forward(normed))
        result: Tensor = self.states(states if self.pre else self.feed_forward_norm(states))
        return result


class TransformerEncoder(Encoder):
    """A stack of Transformer layers; the summary is the mean state."""

    def __init__(
        self, cell: config.Model, part: config.TransformerEncoder, *, name: str = "encoder", drop_states: bool = True
    ) -> None:
        super().__init__()
        width = resolved(part.width)
        self.entrance = Entrance(cell, width, positions=True)
        self.layers = Stack(
            TransformerEncoderLayer(cell, part, f"{name}.layers.{depth}") for depth in range(part.layers)
        )
        self.norm = make_norm(part.norm, width, cell.norm_epsilon) if part.norm_place == "pre" else nn.Identity()

    def forward(self, embedded: Tensor, mask: Tensor, near: Tensor | None = None) -> Memory:  # type: ignore[override]
        """Encode the source; a position attends to all others, or to those where `near` B×S×S is true."""
        states = self.entrance(embedded)  # B×S×D
        open_places = mask[:, None, None, :] if near is None else (near & mask[:, None])[:, None]  # B×1×1×S or B×1×S×S
        for layer in self.layers:
            states = layer(states, open_places)
        states = self.norm(states)
        return Memory(states, mask, self.summary(mean_state(states, mask)))
