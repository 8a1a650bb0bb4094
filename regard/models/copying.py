"""Copying from the source: a pointer over source positions, and a gate between copying and generating.

Axes: B batch, R rows that share B sources, T target positions, S source positions, D width, E output width.
"""

import math
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from regard.models.memory import DecodingState, Memory
from regard.nn.copied import NOTHING, Copied
from regard.nn.source_rows import SourceRows
from regard.nn.taps import Tap

MOSTLY_GENERATE = 1.0
"""First value of the gate's bias: at the start of training 73 % of the probability is generated."""


class CopyKeys(NamedTuple):
    """What the pointer needs of the sources; computed once for all steps."""

    keys: Tensor
    """B×S×E."""
    tokens: Tensor
    """B×S."""
    mask: Tensor
    """True at real tokens: B×S."""

    def named(self) -> dict[str, Tensor]:
        """Return the tensors under their names in `DecodingState.source`, beside the mask, which is there already."""
        return {"copying": self.keys, "tokens": self.tokens}

    @classmethod
    def of(cls, state: DecodingState) -> Self:
        """Return those of a decoding state."""
        return cls(state.source["copying"], state.source["tokens"], state.source["mask"])


class Copying(nn.Module):
    """α_t = softmax(q(o_t) · k(h_s) / √E) over source positions, and the gate g_t = σ(w · o_t + b).

    See et al. (2017) take α from the decoder's attention. Here it is an attention of its own, as in Gu et al. (2016),
    over the encoder states h and the decoder's outputs o, so that it works with every decoder, and the attention of the
    decoder stays fused.
    """

    def __init__(self, memory_width: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(memory_width, width, bias=False)
        self.gate = nn.Linear(width, 1)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, MOSTLY_GENERATE)
        self.log_weights, self.gate_logits = Tap(time=1), Tap(time=1)

    def keys(self, memory: Memory) -> CopyKeys:
        """Return the keys of a memory."""
        if memory.tokens is None:
            raise ValueError("This memory has no source tokens to copy.")
        return CopyKeys(self.key(memory.states), memory.tokens, memory.mask)

    def forward(self, states: Tensor, source: CopyKeys) -> Tensor:
        """Return output states B×T×E with what may be copied at each: B×T×E+1+2S."""
        return self._copied(states, source).pack(states)

    def step(self, states: Tensor, source: CopyKeys, rows: SourceRows | None) -> Tensor:
        """Return the same for output states R×E of one step, whose rows may share sources: R×E+1+2S."""
        if rows is None:
            found: Tensor = self(states[:, None], source)[:, 0]
            return found
        copied = self._copied(rows.group(states[:, None]), source)  # of B×N rows
        gate, log_weights = rows.ungroup(copied.gate[..., None])[:, 0, 0], rows.ungroup(copied.log_weights)[:, 0]
        tokens = source.tokens.index_select(0, rows.owners)  # R×S
        return Copied(gate, log_weights, tokens).pack(states)

    def _copied(self, states: Tensor, source: CopyKeys) -> Copied:
        scores = self.query(states) @ source.keys.transpose(1, 2) / math.sqrt(states.shape[-1])  # B×T×S
        scores = scores.float() if scores.dtype != torch.float64 else scores
        log_weights = scores.masked_fill(~source.mask[:, None], NOTHING).log_softmax(-1)
        log_weights = self.log_weights(log_weights.masked_fill(~source.mask[:, None], NOTHING))
        gate = self.gate_logits(self.gate(states))  # B×T×1
        return Copied(gate[..., 0], log_weights, source.tokens[:, None])
