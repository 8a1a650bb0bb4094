"""The states of a model's last layer, one for each token: what an index of training examples holds.

Axes: B batch, S source positions, T target positions, D width, E width of the output layer.
"""

import hashlib
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config.task import LanguageModel
from regard.data.batches import TARGET_FRAME, pad_rows
from regard.foundation.weights import weights_of
from regard.inspection.states import End
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.tasks.loaded import LoadedRun

Rows = Sequence[Sequence[int]]


def ends_of(model: Model | EncoderModel) -> tuple[End, ...]:
    """Return the sides of a model that have a state for each token of a text."""
    if isinstance(model, EncoderModel):
        return ("encoder",)
    return ("decoder",) if model.encoder is None else ("encoder", "decoder")


def unsuited(run: LoadedRun) -> str | None:
    """Return why the states of a run's training examples cannot be indexed, or None."""
    reads = run.config.task.input_kind()
    if not run.input.is_text:
        return (
            f"An index holds the states of the tokens of training texts, and this run reads {reads.reads} "
            f"({run.config.task.arrow})."
        )
    if not isinstance(run.model, Model) and run.config.data.train.texts > 1:
        return (
            "An index holds the states of texts that are read one at a time, and this run compares two texts "
            f"({run.config.task.arrow})."
        )
    return None


@torch.no_grad()
def last_states(model: Model | EncoderModel, source: Tensor, inputs: Tensor | None) -> dict[End, Tensor]:
    """Return the last layer's states by side: of source tokens B×S the memory B×S×D, of inputs B×T the outputs B×T×E.

    A model without a decoder has no inputs. The outputs are what the output layer reads: row t belongs to the token
    that is written after input t.
    """
    memory = model.encode(source)
    found: dict[End, Tensor] = {}
    if "encoder" in ends_of(model):
        found["encoder"] = memory.states
    if isinstance(model, Model) and inputs is not None:
        found["decoder"] = model.decode(memory, inputs)[..., : model.output_weight.shape[1]]
    return found


def longest_target(run: LoadedRun) -> int | None:
    """Return how many tokens of a target have states: of a document those of one window, otherwise all (None)."""
    settings = run.config.task
    return settings.length if isinstance(settings, LanguageModel) else None


def count_states(run: LoadedRun, end: End, lengths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the number of states of examples with so many tokens on a side: special tokens have states too."""
    tokens = np.asarray(lengths, dtype=np.int64)
    if end == "encoder":
        return tokens + len(run.input.frame.before) + len(run.input.frame.after)
    longest = longest_target(run)
    return tokens + 1 if longest is None else np.minimum(tokens + 1, longest)


def read_rows(run: LoadedRun, sources: Rows, targets: Rows) -> dict[End, list[Tensor]]:
    """Return the states of a batch of examples by side, without padding: for each example S×D or T×E, on the CPU.

    Examples are ids without special tokens, as a token store has them; the states are those with special tokens.
    """
    model, frame = run.model, run.input.frame
    inputs, lengths = None, {}
    source = pad_rows([np.asarray(ids, dtype=np.int64) for ids in sources], *frame).to(model.device)
    lengths["encoder"] = [len(frame.before) + len(ids) + len(frame.after) for ids in sources]
    if isinstance(model, Model):
        before = list(TARGET_FRAME.before)
        longest = longest_target(run)
        read = [ids if longest is None else ids[: longest - 1] for ids in targets]
        inputs = pad_rows([np.asarray(ids, dtype=np.int64) for ids in read], before, []).to(model.device)
        lengths["decoder"] = [len(before) + len(ids) for ids in read]
    states = last_states(model, source, inputs)
    return {
        end: [row[:length].float().cpu() for row, length in zip(values, lengths[end], strict=True)]
        for end, values in states.items()
    }


_FINGERPRINTS: "WeakKeyDictionary[nn.Module, str]" = WeakKeyDictionary()


def fingerprint(model: nn.Module) -> str:
    """Return a hash of a model's weights, which says whether states are those of the same model."""
    if model not in _FINGERPRINTS:
        found = hashlib.blake2b(digest_size=16)
        for name, tensor in sorted(weights_of(model).items()):
            found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype};".encode())
            found.update(tensor.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        _FINGERPRINTS[model] = found.hexdigest()
    return _FINGERPRINTS[model]
