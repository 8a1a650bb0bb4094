"""The mixture of generating and copying, as it is packed into output states.

Axes: B batch, T target positions, S source positions, E output width, V vocabulary.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

NOTHING = -1e4
"""Log-probability of what cannot be copied: e to this power is zero, and gradients stay finite."""
LEAST = 1e-30
"""Smallest copied probability whose logarithm is taken; below it a token is not in the source."""


class Copied(NamedTuple):
    """What a step may copy: P(y) = g · P_generate(y) + (1 − g) · Σ over s with x_s = y of α_s (See et al., 2017)."""

    gate: Tensor
    """The logit of g: …"""
    log_weights: Tensor
    """log α, the log-probability of copying each source position: …×S."""
    tokens: Tensor
    """The source token x_s at each position: …×S."""

    def pack(self, generated: Tensor) -> Tensor:
        """Append this to output states …×E: …×E+1+2S, in single precision or better, which holds any token exactly."""
        wide = torch.promote_types(generated.dtype, torch.float32)
        parts = (generated, self.gate[..., None], self.log_weights, self.tokens.expand(self.log_weights.shape))
        return torch.cat([part.to(wide) for part in parts], dim=-1)

    def log_probability(self, targets: Tensor) -> Tensor:
        """Return the log-probability of copying each of targets …: …"""
        matching = self.tokens == targets[..., None]  # …×S
        return self.log_weights.masked_fill(~matching, NOTHING).logsumexp(-1)

    def mix(self, logits: Tensor) -> Tensor:
        """Return the log-probabilities …×V of the mixture with generation by logits …×V."""
        shares = torch.zeros_like(logits).scatter_add(-1, self.tokens, self.log_weights.exp().to(logits.dtype))  # …×V
        generated = F.logsigmoid(self.gate)[..., None] + logits.log_softmax(-1)
        copied = F.logsigmoid(-self.gate)[..., None] + shares.clamp_min(LEAST).log()
        return torch.logaddexp(generated, copied)


def split_states(states: Tensor, width: int) -> tuple[Tensor, Copied]:
    """Undo `Copied.pack`: return the output states …×E of generation, and what may be copied."""
    positions = (states.shape[-1] - width - 1) // 2
    generated, gate, log_weights, tokens = torch.split(states, [width, 1, positions, positions], dim=-1)
    return generated, Copied(gate[..., 0], log_weights, tokens.detach().round().long())
