"""What encoders and decoders are both made of, configured by the cell.

Axes: B batch, T positions, E embedding width, D width.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import settled, width_of
from regard.nn.attention import Attention
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Distances, make_distances, make_places
from regard.nn.taps import Tap


class Entrance(nn.Module):
    """Where token vectors enter a side: positions added, a norm where there is one, dropout, a map to another width."""

    def __init__(self, cell: config.Model, width: int | None, *, positions: bool) -> None:
        super().__init__()
        embedding_width = settled(cell.embeddings.width)
        self.width = width or embedding_width
        self.places = None
        if positions:
            kind, max_length = settled(cell.positions).kind, settled(cell.positions).max_length
            self.places = make_places(kind, width=embedding_width, max_length=max_length)
        self.norm = nn.LayerNorm(embedding_width, eps=cell.norm_epsilon) if cell.embeddings.norm else nn.Identity()
        self.dropout = Dropout(cell.dropout)
        self.linear = nn.Identity() if self.width == embedding_width else nn.Linear(embedding_width, self.width)
        self.embedded = Tap(time=1)

    def forward(self, embedded: Tensor, start: int = 0) -> Tensor:
        """Vectors B×T×E standing at positions start, start+1, … as the side's first states B×T×D."""
        if self.places is not None:
            embedded = embedded + self.places(start, embedded.shape[1])
        result: Tensor = self.linear(self.dropout(self.norm(self.embedded(embedded))))
        return result


def self_attention(cell: config.Model, width: int, name: str) -> Attention:
    """The attention of a side to itself that has this name, with the cell's score, heads and positions."""
    heads, positions = settled(cell.attention.heads), settled(cell.positions)
    distances = make_distances(
        positions.kind,
        heads=heads,
        width=width // heads,
        max_distance=positions.max_distance,
        ntk=positions.ntk,
        kept=kept_heads(cell, name),
    )
    return _attention(cell, width, width, distances, name)


def source_attention(cell: config.Model, width: int, name: str) -> Attention | None:
    """The attention of the decoder to the source that has this name; `None` if nothing joins them by attention."""
    if cell.encoder is None or cell.join is None or cell.join.kind != "attention":
        return None
    return _attention(cell, width, width_of(cell.encoder), None, name)


def kept_heads(cell: config.Model, name: str) -> list[int] | None:
    """The heads that pruning has left of an attention; nothing if it was not pruned."""
    return (cell.pruned or {}).get(name)


def _attention(cell: config.Model, width: int, memory_width: int, distances: Distances | None, name: str) -> Attention:
    how = cell.attention
    return Attention(
        query_width=width,
        memory_width=memory_width,
        heads=settled(how.heads),
        score=settled(how.score),
        project=settled(how.project),
        shared=how.keys_values == "shared",
        dropout=how.dropout,
        distances=distances,
        kept=kept_heads(cell, name),
    )


def feed_forward(cell: config.Model, part: config.TransformerEncoder | config.TransformerDecoder) -> FeedForward:
    """The feed-forward block of a Transformer layer."""
    width, inner = settled(part.width), settled(part.feed_forward)
    return FeedForward(width, inner, activation=part.activation, dropout=cell.dropout)
