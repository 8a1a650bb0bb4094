"""Restore pruned heads with zero weights, for formats that need the same number of heads in every attention.

A head with zero values and outputs adds nothing, so the results are the same.
"""

from collections.abc import Mapping

from torch import Tensor

from regard.config.cell import resolved
from regard.config.model import Model


def whole_heads(cell: Model, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a model with pruned heads restored as zeros."""
    whole = dict(weights)
    heads = resolved(cell.attention.heads)
    for name, kept in (cell.pruned or {}).items():
        width = len(whole[f"{name}.out.bias"]) // heads
        inner = [head * width + column for head in kept for column in range(width)]
        for part in ("query", "key", "value"):
            for kind in ("weight", "bias"):
                old = whole[f"{name}.{part}.{kind}"]
                new = old.new_zeros(heads * width, *old.shape[1:])
                new[inner] = old
                whole[f"{name}.{part}.{kind}"] = new
        old = whole[f"{name}.out.weight"]
        new = old.new_zeros(old.shape[0], heads * width)
        new[:, inner] = old
        whole[f"{name}.out.weight"] = new
    return whole
