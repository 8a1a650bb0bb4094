"""Copying from the source: a pointer over source positions, and a gate between copying and generating.

Axes: B batch, R rows that share B sources, T target positions, S source positions, D width, E output width.
"""

import math
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.memory import DecodingState, Memory
from regard.nn.copied import NOTHING, Copied
from regard.nn.source_rows import SourceRows
from regard.nn.taps import Tap

MOSTLY_GENERATE = 1.0
"""First value of the gate's bias: at the start of training 73 % of the probability is generated."""
NO_TOKEN = -1
"""Stands before the first token of a source or an output."""


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
    """α_t = softmax over s of q(o_t)·k(h_s)/√E + u_t·[x_{s−1} = y_{t−1}] + v_t·[x_{s−2} x_{s−1} = y_{t−2} y_{t−1}].

    The gate is g_t = σ(w·o_t + b); x are source tokens and h their states, y are written tokens and o the decoder's
    outputs, and u_t and v_t are linear in o_t. The last two terms follow what has just been written, so that a name of
    several pieces can be copied to its end even if training never had it; they take the place of the selective read of
    Gu et al. (2016). See et al. (2017) take α from the decoder's attention. Here it is an attention of its own, so that
    it works with every decoder, and the attention of the decoder stays fused.
    """

    def __init__(self, memory_width: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(memory_width, width, bias=False)
        self.follow = nn.Linear(width, 2)
        self.gate = nn.Linear(width, 1)
        nn.init.zeros_(self.follow.weight)
        nn.init.ones_(self.follow.bias)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, MOSTLY_GENERATE)
        self.log_weights, self.gate_logits = Tap(time=1), Tap(time=1)

    def keys(self, memory: Memory) -> CopyKeys:
        """Return the keys of a memory."""
        if memory.tokens is None:
            raise ValueError("This memory has no source tokens to copy.")
        return CopyKeys(self.key(memory.states), memory.tokens, memory.mask)

    def forward(self, states: Tensor, inputs: Tensor, source: CopyKeys) -> Tensor:
        """Return the output states B×T×E after inputs B×T with what may be copied at each: B×T×E+1+2S."""
        scores = self._points(states, source.keys)  # B×T×S
        before = F.pad(inputs[:, :-1], (1, 0), value=NO_TOKEN)  # B×T
        return self._copied(states, scores, (before, inputs), source).pack(states)

    def step(self, states: Tensor, written: tuple[Tensor, Tensor], source: CopyKeys, rows: SourceRows | None) -> Tensor:
        """Return the same for output states R×E of one step, whose rows may share sources: R×E+1+2S.

        `written` are the last token but one and the last token of each row: R and R.
        """
        one = states[:, None]  # R×1×E
        before, last = (tokens[:, None] for tokens in written)
        if rows is None:
            scores = self._points(one, source.keys)  # R×1×S
        else:
            scores = rows.ungroup(self._points(rows.group(one), source.keys))  # R×1×S
            source = CopyKeys(source.keys, *(part.index_select(0, rows.owners) for part in source[1:]))
        return self._copied(one, scores, (before, last), source).pack(one)[:, 0]

    def _points(self, states: Tensor, keys: Tensor) -> Tensor:
        """Compare states B×T×E with the keys B×S×E: B×T×S."""
        scores: Tensor = self.query(states) @ keys.transpose(1, 2)
        return scores / math.sqrt(states.shape[-1])

    def _copied(self, states: Tensor, scores: Tensor, written: tuple[Tensor, Tensor], source: CopyKeys) -> Copied:
        """Return what may be copied at states B×T×E after the last two tokens B×T, from scores B×T×S."""
        before, last = written
        first, second = (F.pad(source.tokens, (by, 0), value=NO_TOKEN)[:, None, :-by] for by in (2, 1))  # B×1×S
        follows = second == last[..., None]  # B×T×S
        both = follows & (first == before[..., None])  # B×T×S
        weights = self.follow(states)  # B×T×2
        scores = scores + weights[..., :1] * follows + weights[..., 1:] * both
        scores = scores.float() if scores.dtype != torch.float64 else scores
        log_weights = scores.masked_fill(~source.mask[:, None], NOTHING).log_softmax(-1)
        log_weights = self.log_weights(log_weights.masked_fill(~source.mask[:, None], NOTHING))
        gate = self.gate_logits(self.gate(states))  # B×T×1
        return Copied(gate[..., 0], log_weights, source.tokens[:, None])
