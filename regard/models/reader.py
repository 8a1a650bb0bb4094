"""The end that reads: token vectors and an encoder, for models that write nothing.

Axes: B batch, S source positions, E embedding width, D width.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import settled, width_of
from regard.models.encoders import make_encoder
from regard.models.memory import Memory
from regard.nn.embeddings import TokenEmbedding
from regard.text.specials import PAD


class Reader(nn.Module):
    """source → `Memory`, with any encoder of the grid."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__()
        self.cell = cell
        self.width = width_of(cell.encoder)
        self.source_embedding = TokenEmbedding(vocabulary, settled(cell.embeddings.width))
        self.encoder = make_encoder(cell)

    def encode(self, source: Tensor) -> Memory:
        """Read source tokens B×S."""
        memory: Memory = self.encoder(self.source_embedding(source), source != PAD)
        return memory
