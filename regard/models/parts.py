"""Blocks shared by encoders and decoders, built from the model's configuration.

Axes: B batch, T positions, E embedding width, D width.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved, width_of
from regard.nn.attention import Attention
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Distances, make_distances, make_places
from regard.nn.taps import Tap


class Entrance(nn.Module):
    """Input block of an encoder or decoder: adds positions, then applies the norm, dropout and a map to its width."""

    def __init__(self, cell: config.Model, width: int | None, *, positions: bool) -> None:
        super().__init__()
        embedding_width = resolved(cell.embeddings.width)
        self.width = width or embedding_width
        self.places = None
        if positions:
            kind, max_length = resolved(cell.positions).kind, resolved(cell.positions).max_length
            self.places = make_places(kind, width=embedding_width, max_length=max_length)
        self.norm = nn.LayerNorm(embedding_width, eps=cell.norm_epsilon) if cell.embeddings.norm else nn.Identity()
        self.dropout = Dropout(cell.dropout)
        self.linear = nn.Identity() if self.width == embedding_width else nn.Linear(embedding_width, self.width)
        self.embedded = Tap(time=1)

    def forward(self, embedded: Tensor, start: int = 0) -> Tensor:
        """Turn token vectors B×T×E at positions start, start+1, … into the first states B×T×D."""
        if self.places is not None:
            embedded = embedded + self.places(start, embedded.shape[1])
        result: Tensor = self.linear(self.dropout(self.norm(self.embedded(embedded))))
        return result


def self_attention(cell: config.Model, width: int, name: str, window: int | None = None) -> Attention:
    """Build the self-attention at path `name`, with the configured score, heads and positions."""
    heads, positions = resolved(cell.attention.heads), resolved(cell.positions)
    distances = make_distances(
        positions.kind,
        heads=heads,
        width=width // heads,
        max_distance=positions.max_distance,
        ntk=positions.ntk,
        kept=kept_heads(cell, name),
    )
    return _attention(cell, width, width, distances, name, window)


def source_attention(cell: config.Model, width: int, name: str) -> Attention | None:
    """Build the decoder's attention to the source at path `name`; `None` if the join is not attention."""
    if cell.encoder is None or cell.join is None or cell.join.kind != "attention":
        return None
    return _attention(cell, width, width_of(cell.encoder), None, name)


def kept_heads(cell: config.Model, name: str) -> list[int] | None:
    """Return the heads that pruning has left of an attention; `None` if it was not pruned."""
    return (cell.pruned or {}).get(name)


def _attention(
    cell: config.Model,
    width: int,
    memory_width: int,
    distances: Distances | None,
    name: str,
    window: int | None = None,
) -> Attention:
    how = cell.attention
    return Attention(
        query_width=width,
        memory_width=memory_width,
        heads=resolved(how.heads),
        score=resolved(how.score),
        project=resolved(how.project),
        shared=how.keys_values == "shared",
        dropout=how.dropout,
        distances=distances,
        kept=kept_heads(cell, name),
        window=window,
    )


def feed_forward(cell: config.Model, part: config.TransformerEncoder | config.TransformerDecoder) -> FeedForward:
    """Build the feed-forward block of a Transformer layer."""
    width, inner = resolved(part.width), resolved(part.feed_forward)
    return FeedForward(width, inner, activation=part.activation, dropout=cell.dropout)
