"""Attention: a soft look-up of values by how well their keys match a query.

Axes: B batch, H heads, T queries, S keys, D width, K head width.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.dropout import Dropout
from regard.nn.positions import DistanceBias, Distances
from regard.nn.scores import ScaledDot, Score, make_score
from regard.nn.source_rows import SourceRows
from regard.nn.taps import Tap


def lookup(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    score: Score | None = None,
) -> tuple[Tensor, Tensor]:
    """Return for each query the mean of all values, weighted by how well their keys match it.

        weights = softmax(score(query, keys)),   result = weights · values

    Where a Python `dict` returns the one value whose key equals the query, this returns a mixture; as the best score
    pulls away from the rest, the mixture becomes that one value.

    Args:
        queries: …×T×K
        keys: …×S×K
        values: …×S×any width
        mask: true where a query may attend, broadcasting to …×T×S; by default everywhere
        score: how well a query matches a key; by default the inner product over √K

    Returns:
        The values found (…×T×width) and the weights (…×T×S), whose rows sum to one.
    """
    score = score or ScaledDot(keys.shape[-1])
    weights = attention_weights(score(score.prepare_queries(queries), score.prepare_keys(keys)), mask)
    return weights @ values, weights


def attention_weights(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax of scores …×T×S over the keys that the mask allows."""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


@dataclass(frozen=True)
class KeyValues:
    """Precomputed keys and values of a memory, which decoding steps attend to instead of its states."""

    keys: Tensor
    """Prepared for the score: B×H×S×K."""
    values: Tensor
    """B×H×S×K."""
    query_position: int = 0
    """The position of the first query."""
    rows: SourceRows | None = None
    """Maps rows of single queries to the rows of keys and values that they share; `None` if none is shared."""


class Attention(nn.Module):
    """A_h = softmax(score(X W_Q, M W_K)) M W_V, with all heads concatenated and mapped by W_O (Vaswani et al., 2017).

    With `project` off there are no W: queries, keys and values are the states themselves, split into heads, as in
    Bahdanau et al. (2015) and Luong et al. (2015). With `shared` keys and values W_K = W_V. After pruning only the
    heads in `kept` have weights; without any head the output is the bias of W_O. With a `window`, a query attends to at
    most that many keys before and after its own position (Beltagy et al., 2020).

    Attention with an inner-product score uses a fused kernel unless one of its taps is watched. Single queries never
    use the kernel, which is slower for them.
    """

    def __init__(
        self,
        *,
        query_width: int,
        memory_width: int,
        heads: int,
        score: str,
        project: bool = True,
        shared: bool = False,
        dropout: float = 0.0,
        distances: Distances | None = None,
        kept: Sequence[int] | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.window = window
        self.heads = heads if kept is None else len(kept)
        self.head_width = query_width // heads
        self.dropout = Dropout(dropout)
        self.distances = distances
        self.query: nn.Linear | None = None
        self.key: nn.Linear | None = None
        self.value: nn.Linear | None = None
        self.out: nn.Linear | None = None
        self.out_width = query_width if project else memory_width
        if project:
            inner = self.heads * self.head_width
            self.query = _projection(query_width, inner)
            self.key = _projection(memory_width, inner)
            self.value = None if shared else _projection(memory_width, inner)
            self.out = _projection(inner, query_width)
        key_width = (query_width if project else memory_width) // heads
        self.score = make_score(score, heads=self.heads, query_width=self.head_width, key_width=key_width)
        self.queries, self.keys, self.values = Tap(time=2), Tap(time=2), Tap(time=2)
        self.scores, self.weights, self.head_outputs = Tap(time=2), Tap(time=2), Tap(time=2)
        self.output = Tap(time=1)

    def key_values(self, memory: Tensor, start: int = 0) -> KeyValues:
        """Compute the keys and values of states B×S×D at positions start, start+1, …"""
        keys = self._split(memory if self.key is None else self.key(memory))  # B×H×S×K
        values = keys if self.value is None else self._split(self.value(memory))  # B×H×S×K
        if self.distances is not None:
            keys = self.distances.rotate(keys, start)
        return KeyValues(self.score.prepare_keys(self.keys(keys)), self.values(values))

    def forward(
        self, queries: Tensor, memory: Tensor | KeyValues, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Attend from queries B×T×D to a memory B×S×D, or to its precomputed keys and values: B×T×D.

        `mask` is true where a query may attend and broadcasts to B×H×T×S. `causal` masks the keys after each query; it
        needs as many queries as keys.
        """
        found = memory if isinstance(memory, KeyValues) else self.key_values(memory)
        seen = self.scores.watched or self.weights.watched or self.head_outputs.watched
        if found.rows is not None and (self.queries.watched or seen):
            found, mask = _row_by_row(found, found.rows, mask)
        rows = found.rows
        q = queries if self.query is None else self.query(queries)  # B×T×D
        q = self._split(q if rows is None else rows.group(q))  # B×H×T×K
        q = self.queries(q)
        shift = None
        if self.distances is not None:
            shift = self.distances.shift(q, found.query_position, found.keys.shape[2])
            q = self.distances.rotate(q, found.query_position)
        q = self.score.prepare_queries(q)
        explicit = seen or self.dropout.active or queries.shape[1] == 1
        is_local = self.window is not None and self.window < found.keys.shape[2] - 1
        if self.score.scale is None or not self.heads or explicit or (is_local and shift is not None):
            mask = _in_window(q.shape[2], self.window, mask, q.device) if is_local and self.window else mask
            outputs = self._open(q, found, mask, shift, causal)
        elif is_local and self.window is not None:
            outputs = local_attention(q, found.keys, found.values, mask, window=self.window, scale=self.score.scale)
        else:
            outputs = self._fused(q, found, mask, shift, causal, self.score.scale)
        joined = outputs.transpose(1, 2).flatten(2)  # B×T×D
        joined = joined if rows is None else rows.ungroup(joined)
        result: Tensor = self.output(joined if self.out is None else self.out(joined))
        return result

    def _open(self, q: Tensor, memory: KeyValues, mask: Tensor | None, shift: Tensor | None, causal: bool) -> Tensor:
        """Compute attention step by step, so that the weights pass their tap. B×H×T×K."""
        scores = self.score(q, memory.keys)  # B×H×T×S
        if shift is not None:
            scores = scores + shift
        scores = self.scores(scores)
        mask = causal_mask(scores.shape[-1], scores.device) if causal else mask
        weights = self.weights(attention_weights(scores, mask))  # B×H×T×S
        weights = self.dropout(weights)
        found: Tensor = self.head_outputs(weights @ memory.values)  # B×H×T×K
        return found

    def _fused(
        self, q: Tensor, memory: KeyValues, mask: Tensor | None, shift: Tensor | None, causal: bool, scale: float
    ) -> Tensor:
        """Compute the same in one fused kernel, which never stores the weights. B×H×T×K."""
        if shift is not None:
            mask = causal_mask(memory.keys.shape[2], q.device) if causal else mask
            mask = shift if mask is None else shift.masked_fill(~mask, float("-inf"))
            causal = False
        return F.scaled_dot_product_attention(
            q, memory.keys, memory.values, None if causal else mask, is_causal=causal, scale=scale
        )

    def _split(self, states: Tensor) -> Tensor:
        """Split states B×T×D into heads: B×H×T×K."""
        rows, length, wide = states.shape
        width = wide // self.heads if self.heads else self.head_width
        return states.view(rows, length, self.heads, width).transpose(1, 2)

    def weights_of_heads(self, heads: Sequence[int]) -> dict[str, Tensor]:
        """Return the parameters by name, reduced to these heads; for attention with projections."""
        chosen, width = list(heads), self.head_width
        inner = [head * width + index for head in chosen for index in range(width)]
        left: dict[str, Tensor] = {}
        for name, tensor in self.state_dict().items():
            part = name.split(".")[0]
            if part in ("query", "key", "value"):
                left[name] = tensor[inner]
            elif name == "out.weight":
                left[name] = tensor[:, inner]
            elif part == "score" or (part == "distances" and isinstance(self.distances, DistanceBias)):
                left[name] = tensor[chosen]
            else:
                left[name] = tensor
        return left


def local_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, window: int, scale: float
) -> Tensor:
    """Attend from queries B×H×S×K to the keys at most `window` positions away, in time and memory linear in S: B×H×S×K.

    Positions are cut into blocks of `window`; the queries of a block see the keys of three blocks. All rows stand in
    one line with an empty block after each, so that three neighbouring blocks are a view of it, without copies. `mask`
    B×1×1×S is true at real keys. Every position attends to itself, so that padding has finite values.
    """
    rows, heads, length, width = queries.shape
    blocks = -(-length // window) + 1  # N, with the empty one
    padding = blocks * window - length
    inner = F.pad(queries.transpose(1, 2), (0, 0, 0, 0, 0, padding)).reshape(-1, window, heads, width)  # BN×W×H×K
    places = torch.arange(3 * window, device=queries.device)
    distance = places[None] - window - places[:window, None]  # W×3W
    real = torch.ones(rows, length, dtype=torch.bool, device=queries.device) if mask is None else mask[:, 0, 0]
    real = F.pad(F.pad(real.expand(rows, length), (0, padding)).flatten(), (window, window))  # (BN+2)W
    real = real.unfold(0, 3 * window, window)  # BN×3W
    allowed = (real[:, None] & (distance.abs() <= window)) | (distance == 0)  # BN×W×3W
    found = F.scaled_dot_product_attention(
        inner.transpose(1, 2),  # BN×H×W×K
        _three_blocks(keys, window, padding),  # BN×H×3W×K
        _three_blocks(values, window, padding),  # BN×H×3W×K
        allowed[:, None],  # BN×1×W×3W
        scale=scale,
    )
    joined = found.view(rows, blocks, heads, window, width).transpose(1, 2).flatten(2, 3)  # B×H×NW×K
    return joined[:, :, :length]


def _three_blocks(states: Tensor, window: int, padding: int) -> Tensor:
    """Return each block of `window` positions of B×H×S×K with the blocks before and after it: BN×H×3W×K."""
    line = F.pad(states.transpose(1, 2), (0, 0, 0, 0, 0, padding)).flatten(0, 1)  # BNW×H×K
    line = F.pad(line, (0, 0, 0, 0, window, window))  # (BN+2)W×H×K
    return line.unfold(0, 3 * window, window).transpose(2, 3)  # BN×H×3W×K


def _in_window(length: int, window: int, mask: Tensor | None, device: torch.device) -> Tensor:
    """Return a mask B×1×S×S, or S×S, that is also false at keys outside the window of a query."""
    places = torch.arange(length, device=device)
    distance = (places[None] - places[:, None]).abs()  # S×S
    near = distance <= window
    return near if mask is None else (near & mask) | (distance == 0)


def _row_by_row(memory: KeyValues, rows: SourceRows, mask: Tensor | None) -> tuple[KeyValues, Tensor | None]:
    """Repeat shared keys and values, and their mask, so that each row of queries has its own."""
    keys, values = (part.index_select(0, rows.owners) for part in (memory.keys, memory.values))
    own = KeyValues(keys, values, memory.query_position)
    return own, None if mask is None else mask.index_select(0, rows.owners)


def causal_mask(length: int, device: torch.device) -> Tensor:
    """Return a mask T×T that is true where the key does not come after the query."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def _projection(width_in: int, width_out: int) -> nn.Linear:
    with warnings.catch_warnings():  # torch warns about empty weights, which a layer without heads has
        warnings.filterwarnings("ignore", "Initializing zero-element tensors")
        linear = nn.Linear(width_in, width_out)
    if linear.weight.numel():
        nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear
