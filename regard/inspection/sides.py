"""The tokens along the rows and the columns of attention maps, for a batch of any task.

One contract for all of them: the name of an attention says which sides it joins (`kind_of`), and the tensors of a
training batch (`regard.tasks.training_batch.TrainingBatch`) hold what is on those sides.

Axes: B rows of a batch, H heads, T tokens (or places) that look, S tokens (or places) that are looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.inspection.attention_kinds import Kind, kind_of
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.nn.taps import Recording
from regard.text.specials import SPECIALS, UNK


@dataclass(frozen=True)
class MapSide:
    """One side of a map."""

    ids: Tensor | None
    """B×n: its tokens; None for the positions of a picture, and for the single state that an answer comes from."""
    real: Tensor
    """B×n: true at tokens that are words or parts of them, and at all places."""

    @classmethod
    def of(cls, ids: Tensor | None, rows: int, count: int) -> "MapSide":
        """Make a side of tokens B×n, or of `count` positions in each of `rows` rows."""
        if ids is None:
            return cls(None, torch.ones(rows, count, dtype=torch.bool))
        known = ids.cpu()
        return cls(known, (known >= len(SPECIALS)) | (known == UNK))


@dataclass(frozen=True)
class BatchAttention:
    """What the heads of one attention did in a batch."""

    weights: Tensor
    """B×H×T×S."""
    rows: MapSide
    columns: MapSide
    causal: bool
    """Whether a row sees only columns up to its own."""

    @property
    def seen(self) -> Tensor:
        """True where a real token may look at a real one: B×T×S."""
        allowed = self.rows.real[:, :, None] & self.columns.real[:, None, :]
        return allowed.tril() if self.causal else allowed


def batch_attention(
    model: Model | EncoderModel, name: str, tensors: Mapping[str, Tensor], seen: Recording
) -> Iterator[BatchAttention]:
    """The weights of an attention that were recorded while a batch was read; text by text, where those are apart."""
    kind = kind_of(name)
    sides = sides_of(model, kind, tensors)
    passes = [seen[f"{name}.weights"]] if len(sides) == 1 else seen.passes(f"{name}.weights")
    for weights, (down, across) in zip(passes, sides, strict=True):
        rows, _, tall, wide = weights.shape
        yield BatchAttention(
            weights.detach().float().cpu(),
            MapSide.of(down, rows, tall),
            MapSide.of(across, rows, wide),
            causal=kind == "decoder",
        )


def sides_of(
    model: Model | EncoderModel, kind: Kind, tensors: Mapping[str, Tensor]
) -> list[tuple[Tensor | None, Tensor | None]]:
    """Return the tokens B×T of the rows and B×S of the columns, once for each pass; None for what has no tokens."""
    source = tensors["source"]
    text = None if source.is_floating_point() else source  # pixels are numbers
    match kind:
        case "encoder":
            return [(text, text) for text in model.texts(source)] if text is not None else [(None, None)]
        case "between":
            first, second = model.texts(source)
            return [(first, second), (second, first)]
        case "picture" | "places":
            return [(None, None)]
        case "decoder":
            return [(tensors["inputs"], tensors["inputs"])]
        case "source":
            return [(tensors.get("outputs"), text)]
