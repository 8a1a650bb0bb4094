"""Activations of one pass copied into another: what the answers are then, many copies at a time.

Axes: B batch (one row for each patch), S source tokens, T target tokens, D width, H heads, K head width, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.foundation.progress import Progress
from regard.models import Model
from regard.nn import taps
from regard.nn.taps import Write
from regard.tasks.trace import Trace

TOKENS = 4096
"""Padded tokens of a batch of patched passes."""

Answer = Callable[[int, bool], Tensor]
"""Logits B×V of a number of rows of the pass that is copied into; and whether the encoder has to be run again."""


@dataclass(frozen=True)
class Spot:
    """Where a value is copied: a tap, at one position or all, of one head or all."""

    tap: str
    position: int | None = None
    head: int | None = None


def differences(
    into: Trace,
    values: Mapping[str, Tensor],
    patches: Sequence[Sequence[Spot]],
    answers: tuple[int, int],
    position: int,
    *,
    progress: Progress | None = None,
) -> Tensor:
    """Logit differences of two answers at a target position, one for each set of spots that values are copied to."""
    most = max(1, TOKENS // max(len(into.source), min(len(into.inputs), position + 1)))
    found = torch.zeros(len(patches))
    done = 0
    with torch.no_grad():
        answer = (
            _output_answer(into, into.model, position)
            if isinstance(into.model, Model)
            else _input_answer(into, position)
        )
        for in_encoder, rows in _batches(patches, most):
            some = [patches[row] for row in rows]
            write = {tap: _copying(values[tap], some, tap) for tap in {spot.tap for spots in some for spot in spots}}
            with taps.watch(into.model, write=write):
                logits = answer(len(rows), in_encoder)  # B×V
            found[rows] = (logits[:, answers[0]] - logits[:, answers[1]]).cpu()
            done += len(rows)
            if progress:
                progress("patching", done, len(patches))
    return found


def _output_answer(into: Trace, model: Model, position: int) -> Answer:
    """Return a function that predicts the word after a prefix; encoder states are reused if no copy changes them."""
    source = torch.tensor([into.source.ids], device=model.device)  # 1×S
    inputs = torch.tensor([into.inputs.ids[: position + 1]], device=model.device)  # 1×T
    memory = model.encode(source)

    def answer(rows: int, in_encoder: bool) -> Tensor:
        here = torch.zeros(rows, dtype=torch.long, device=model.device)
        read = model.encode(source.expand(rows, -1)) if in_encoder else memory.select(here)
        return model.scores(model.decode(read, inputs.expand(rows, -1))[:, -1])

    return answer


def _input_answer(into: Trace, position: int) -> Answer:
    """The answer at a place of a model that only reads, whose answers come all at once."""

    def answer(rows: int, in_encoder: bool) -> Tensor:
        return into.model.scores(into.model.outputs(*into.tensors(rows)))[:, position]

    return answer


def _batches(patches: Sequence[Sequence[Spot]], most: int) -> Iterator[tuple[bool, list[int]]]:
    """Patches that can go through the model together, and whether they begin in the encoder; heads on their own.

    Where the encoder is left alone it need not run again, and where no head is written to, attention runs fused.
    """
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for row, spots in enumerate(patches):
        begins = any(spot.tap.startswith("encoder") for spot in spots)
        kinds.setdefault((begins, any(spot.head is not None for spot in spots)), []).append(row)
    for (begins, _), rows in kinds.items():
        for start in range(0, len(rows), most):
            yield begins, rows[start : start + most]


def _copying(value: Tensor, patches: Sequence[Sequence[Spot]], tap: str) -> Write:
    """Put a value (T×D, H×T×K or D) into the rows whose spots are at this tap, where these spots say."""
    mask = torch.zeros(len(patches), *value.shape[:-1], 1, dtype=torch.bool)  # B×T×1, B×H×T×1 or B×1
    for row, spots in enumerate(patches):
        for spot in spots:
            if spot.tap == tap:
                heads = slice(None) if spot.head is None else spot.head
                positions = slice(None) if spot.position is None else spot.position
                where = (heads, positions) if value.dim() == 3 else (positions,) if value.dim() == 2 else ()
                mask[(row, *where)] = True
    done = 0

    def write(was: Tensor) -> Tensor:
        nonlocal done
        if value.dim() == 1:
            return torch.where(mask.to(was.device), value.to(was), was)
        start, done = done, done + was.shape[-2]  # inside a recurrence positions come one at a time
        here = mask[..., start:done, :].to(was.device)
        return torch.where(here, value[..., start:done, :].to(was), was)

    return write
