"""Where the decoder looked while it wrote: the alignment picture of Bahdanau et al. (2015).

Axes: S source tokens, T target tokens, H heads.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.inspection.trace import SOURCE_ATTENTION, Trace


@dataclass(frozen=True)
class AttentionMap:
    """The weight that each target token gave to each source token: rows sum to one."""

    source: list[str]
    target: list[str]
    weights: Tensor
    """T×S."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"source": self.source, "target": self.target, "weights": self.weights.tolist()}

    def save(self, path: Path | str) -> None:
        """Draw the map into a picture; the ending chooses the format (png, svg, pdf)."""
        from regard.inspection.drawing import draw_maps

        draw_maps([self], path)


def attention(trace: Trace) -> AttentionMap:
    """Attention to the source, averaged over layers and heads."""
    found = list(trace.matching(SOURCE_ATTENTION).values())  # each 1×H×T×S
    if not found:
        raise RegardError("This model has no attention to its source: its join is a fixed vector.")
    weights = torch.cat([one[0] for one in found]).mean(0)  # T×S
    return AttentionMap(trace.source, trace.target, weights)
