"""The structure of a record, as it can be read from the markers among its tokens.

`<s>` begins every field, and `<sep>` stands between its parts. Axes: B batch, S source positions, E embedding width.
"""

import torch
from torch import Tensor, nn

from regard.text.specials import BOS, EOS, SEP

MOST_FIELDS, MOST_PARTS, MOST_POSITIONS = 64, 4, 64
"""Numbers of learned vectors; fields, parts and positions beyond them share the last."""


class FieldPositions(nn.Module):
    """f[field] + p[part] + q[position in the part] for every token, all zero before training."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.field = nn.Parameter(torch.zeros(MOST_FIELDS, width))
        self.part = nn.Parameter(torch.zeros(MOST_PARTS, width))
        self.position = nn.Parameter(torch.zeros(MOST_POSITIONS, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors B×S×E of tokens B×S."""
        tables = (self.field, self.part, self.position)
        vectors: Tensor = torch.zeros((), device=tokens.device)
        for table, numbers in zip(tables, number_fields(tokens), strict=True):
            vectors = vectors + nn.functional.embedding(numbers.clamp(max=len(table) - 1), table)
        return vectors


def number_fields(tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the field of each token, its part in the field and its position in the part, counted from 0: B×S each."""
    starts, separators = tokens == BOS, tokens == SEP
    places = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
    fields = starts.cumsum(1)
    parts = separators.cumsum(1)
    before = (parts * starts).cummax(1).values  # the separators before the field
    marker = (places * (starts | separators)).cummax(1).values
    return (fields - 1).clamp(min=0), parts - before, places - marker


def own_field(tokens: Tensor) -> Tensor:
    """Return where tokens B×S may attend: to their own field and to markers; markers to everything: B×S×S."""
    field, _, _ = number_fields(tokens)
    marker = (tokens == BOS) | (tokens == EOS)
    return (field[:, :, None] == field[:, None]) | marker[:, :, None] | marker[:, None]
