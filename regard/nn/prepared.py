"""The blocks of a Transformer layer optimised for single decoding steps.

A step consists of about a hundred small operations, and at small batches most of its time is Python overhead. Here
weights and shapes are looked up once instead of at every step, and states have no time axis. Taps are left out.

Axes: R rows, B source rows, S source positions, N slots, H heads, C capacity in positions, K head width, D width.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.attention import Attention
from regard.nn.embeddings import TokenEmbedding
from regard.nn.feedforward import ACTIVATIONS, FeedForward
from regard.nn.key_value_cache import ROOM, KeyValueCache
from regard.nn.scores import Dot, ScaledDot
from regard.nn.source_rows import SourceRows
from regard.nn.taps import Tap

Function = Callable[[Tensor], Tensor]


def prepared(module: nn.Module | None) -> Function:
    """Return a function that computes what a module computes in evaluation mode; the identity for `None`."""
    match module:
        case None | nn.Identity() | Tap():
            return _unchanged
        case nn.Linear():
            return _linear(module.weight, module.bias)
        case TokenEmbedding():
            vectors, scale = module.weight, module.scale
            return lambda tokens: F.embedding(tokens, vectors) * scale
        case nn.LayerNorm():
            shape, weight, bias, eps = module.normalized_shape, module.weight, module.bias, module.eps
            return lambda states: F.layer_norm(states, shape, weight, bias, eps)
        case FeedForward():
            inner, activate, outer = prepared(module.inner), ACTIVATIONS[module.activation], prepared(module.outer)
            return lambda states: outer(activate(inner(states)))
        case _:
            return module


def _unchanged(states: Tensor) -> Tensor:
    return states


def _linear(weight: Tensor, bias: Tensor) -> Function:
    return lambda states: F.linear(states, weight, bias)


def prepared_source(source: dict[str, Tensor], like: Tensor) -> dict[str, Tensor]:
    """Return the source tensors ("mask", and "….keys" and "….values" under any names) in the form that steps use.

    Keys and values B×H×S×K become contiguous B×H×C×K, padded with zeros to at least `ROOM` positions, since shorter
    ones are slower. For each number of heads H an additive mask of scores "opening.H" B×H×1×C is added: 0 at real
    positions, minus infinity elsewhere.
    """
    mask, never = source["mask"], float("-inf")
    more = max(0, ROOM - mask.shape[1])
    open_places = like.new_zeros(mask.shape).masked_fill_(~mask, never)  # B×S
    open_places = F.pad(open_places, (0, more), value=never)[:, None, None]  # B×1×1×C
    made = dict(source)
    for name, tensor in source.items():
        if name.endswith((".keys", ".values")):
            made[name] = F.pad(tensor, (0, 0, 0, more)) if more else tensor.contiguous()  # B×H×C×K
            heads = tensor.shape[1]
            if f"opening.{heads}" not in made:
                made[f"opening.{heads}"] = open_places.repeat(1, heads, 1, 1)  # B×H×1×C
    return made


class PreparedAttention:
    """Computes the same as `Attention`, for single queries R×D."""

    def __init__(self, attention: Attention) -> None:
        self.heads, self.width = attention.heads, attention.head_width
        self.score, self.scale, self.distances = attention.score, attention.score.scale, attention.distances
        self.plain = isinstance(self.score, Dot | ScaledDot)
        self.query, self.out = prepared(attention.query), prepared(attention.out)
        self.key = prepared(attention.key)
        self.value = None if attention.value is None else prepared(attention.value)

    def to_past(self, states: Tensor, past: KeyValueCache, layer: int, opening: Tensor) -> Tensor:
        """Write the keys and values of states R×D to the last cache position of a layer, and attend to it: R×D."""
        if not self.heads:
            return self.out(states[:, :0])
        shape, start, distances = (len(states), self.heads, self.width), past.length - 1, self.distances
        keys = self.key(states).view(shape)  # R×H×K
        values = keys if self.value is None else self.value(states).view(shape)
        queries = self.query(states).view(-1, 1, self.width)  # R·H×1×K
        if distances is not None:
            keys = distances.rotate(keys[:, :, None], start)[:, :, 0]
            apart = queries.view(*shape, 1).transpose(2, 3)  # R×H×1×K
            shift = distances.shift(apart, start, past.room)
            if shift is not None:
                opening = (opening + shift).expand(*shape[:2], 1, -1).flatten(0, 1)  # R·H×1×C
            queries = distances.rotate(apart, start).flatten(0, 1)
        keys = keys if self.plain else self.score.prepare_keys(keys[:, :, None])[:, :, 0]
        past.write(layer, keys, values)
        found = self._look(queries, *past.by_head(layer), opening)  # R·H×1×K
        return self.out(found.view(len(states), -1))

    def to_source(self, states: Tensor, source: dict[str, Tensor], name: str, rows: SourceRows | None) -> Tensor:
        """Attend from states R×D to the source's keys and values called `name` (see `prepared_source`): R×D."""
        if not self.heads:
            return self.out(states[:, :0])
        queries = self.query(states)
        keys = source[f"{name}.keys"].flatten(0, 1).transpose(1, 2)  # B·H×K×C
        values = source[f"{name}.values"].flatten(0, 1)  # B·H×C×K
        opening = source[f"opening.{self.heads}"].flatten(0, 1)  # B·H×1×C
        if rows is None:
            found = self._look(queries.view(-1, 1, self.width), keys, values, opening)  # R·H×1×K
            return self.out(found.view(len(states), -1))
        grouped = rows.group(queries[:, None])  # B×N×D
        count, slots, _ = grouped.shape
        grouped = grouped.view(count, slots, self.heads, self.width).transpose(1, 2).flatten(0, 1)  # B·H×N×K
        found = self._look(grouped, keys, values, opening)  # B·H×N×K
        found = found.view(count, self.heads, slots, found.shape[2]).transpose(1, 2).flatten(2)  # B×N×D
        return self.out(rows.ungroup(found)[:, 0])

    def _look(self, queries: Tensor, keys: Tensor, values: Tensor, opening: Tensor) -> Tensor:
        """Attend: queries B·H×N×K, keys B·H×K×C, values B·H×C×K, additive mask for scores B·H×N×C: B·H×N×K."""
        if not self.plain:
            queries = self.score.prepare_queries(self._apart(queries)).flatten(0, 1)
        if self.scale is None:
            scores = self.score(self._apart(queries), self._apart(keys.transpose(1, 2))).flatten(0, 1) + opening
        else:
            scores = torch.baddbmm(opening, queries, keys, alpha=self.scale)
        return torch.bmm(scores.softmax(dim=-1), values)

    def _apart(self, vectors: Tensor) -> Tensor:
        """Reshape B·H×N×K to B×H×N×K."""
        return vectors.view(len(vectors) // self.heads, self.heads, *vectors.shape[1:])
