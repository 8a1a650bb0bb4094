"""The states of every layer over a whole corpus, from one batched pass, padding left out.

Axes: B batch, S positions, D width, L layers (the embedding first), N words or tokens of the corpus.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import SOURCE_FRAME, TARGET_FRAME, Frame, cut, pad_rows
from regard.foundation.progress import Progress
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.nn import taps
from regard.text.specials import BOS

DECODER_LAYERS = re.compile(r"decoder\.(layers\.\d+\.states|states\.\d+)")
"""The taps after each layer of a decoder of any kind."""


def layer_name(tap: str) -> str:
    """Return what the layer of a tap is called in tables and on maps, such as `layer 0` or `layer 0, attention`."""
    if tap.endswith("embedded"):
        return "embedding"
    layer = f"layer {next((part for part in tap.split('.') if part.isdigit()), 0)}"
    inside = {"after_attention": ", attention", "after_source_attention": ", source attention"}
    return layer + inside.get(tap.rpartition(".")[2], "")


End = Literal["encoder", "decoder"]
Pool = Literal["mean", "last"]
"""How a word of several tokens is represented: by the mean of their states, or by the state of the last."""

LONGEST = 256
"""Longer sentences are left out of a corpus analysis."""

BATCH = 4096
"""Padded tokens read at a time."""


@dataclass(frozen=True)
class Reading:
    """One sentence as it is read, and the words in it that are wanted."""

    source: list[int]
    """Without special tokens."""
    target: list[int] | None
    """What the decoder reads, without special tokens; None if only the encoder is read."""
    words: list[list[int]]
    """The places of each word's tokens: in the source, or in the target if there is one."""


def end_of_text(model: Model | EncoderModel) -> End | None:
    """Return the side of a model that reads text alone, encoder or decoder; None if there is none."""
    if model.encoder is None:
        return "decoder"
    return "encoder" if model.encoder.reads_tokens else None


def read_text(model: Model | EncoderModel, ids: Tensor) -> None:
    """Run a model on texts B×S alone, special tokens included; hooks see the activations."""
    if isinstance(model, EncoderModel) or model.encoder is not None:
        for text in model.texts(ids):
            model.encode(text)
    else:
        model.decode(model.encode(ids[:, :0]), ids)


def layer_taps(model: nn.Module, end: End = "encoder") -> list[str]:
    """The taps of a side's layers from the embedding (layer 0) upwards."""
    shapes = (f"{end}.layers.*.states", f"{end}.states.*", f"{end}.states")
    inner = [name for name in taps.names(model) if any(fnmatchcase(name, shape) for shape in shapes)]
    return [f"{end}.entrance.embedded", *inner]


def layer_names(count: int) -> list[str]:
    """Return names of layers: the embedding, then as in the names of the model, from 0."""
    return ["embedding", *(str(depth) for depth in range(count - 1))]


def longest_sentence(config: RunConfig) -> int:
    """How many tokens a sentence of a corpus analysis may have: `LONGEST`, or where learned positions end."""
    positions = config.model.positions
    learned = positions.max_length - 2 if positions is not None and positions.kind == "learned" else LONGEST
    return min(LONGEST, learned)


def batches(lengths: Sequence[int], tokens: int = BATCH) -> Iterator[list[int]]:
    """Places of sentences in batches of similar length, the longest first so that memory is known at once."""
    order = np.argsort(np.asarray(lengths, dtype=np.int32), kind="stable")[::-1]
    longest = np.asarray(lengths, dtype=np.int32)[order]
    for start, end in cut(longest, tokens) if len(order) else ():
        yield [int(index) for index in order[start:end]]


@torch.no_grad()
def word_states(
    model: Model | EncoderModel,
    readings: Sequence[Reading],
    *,
    pool: Pool = "mean",
    frame: Frame = SOURCE_FRAME,
    task: str,
    progress: Progress | None = None,
) -> Tensor:
    """The state of every word in every layer: L×N×D; a narrower layer is filled up with zeros."""
    end: End = "decoder" if any(reading.target is not None for reading in readings) else "encoder"
    names = layer_taps(model, end)
    shift = len((TARGET_FRAME if end == "decoder" else frame).before)  # what stands before the first token
    starts = np.cumsum([0, *(len(reading.words) for reading in readings)])  # where each sentence's words begin
    lengths = [max(len(reading.source), len(reading.target or [])) + 1 for reading in readings]
    states: Tensor | None = None
    done = 0
    for places in batches(lengths):
        chosen = [readings[position] for position in places]
        seen = _read(model, chosen, names, frame)  # L of B×S×D
        if states is None:
            states = torch.zeros(len(names), int(starts[-1]), max(activation.shape[2] for activation in seen))  # L×N×D
        rows, tokens, words, shares = _pooling([reading.words for reading in chosen], pool, shift=shift)
        into = torch.cat([torch.arange(int(starts[position]), int(starts[position + 1])) for position in places])
        for layer, value in enumerate(seen):
            merged = value.new_zeros(len(into), value.shape[2])
            merged.index_add_(0, words, value[rows, tokens] * shares[:, None])
            states[layer, into, : value.shape[2]] = merged
        done += len(places)
        if progress:
            progress(task, done, len(readings))
    return torch.zeros(len(names), 0, 1) if states is None else states


def _read(model: Model | EncoderModel, readings: Sequence[Reading], names: Sequence[str], frame: Frame) -> list[Tensor]:
    """The watched states of a batch, layer by layer: L of B×S×D."""
    device = model.device
    source = pad_rows([np.asarray(reading.source, dtype=np.uint32) for reading in readings], *frame).to(device)  # B×S
    with taps.watch(model, *names) as recording:
        memory = model.encode(source)
        if readings[0].target is not None and isinstance(model, Model):
            rows = [np.asarray(reading.target, dtype=np.uint32) for reading in readings]
            model.decode(memory, pad_rows(rows, [BOS], []).to(device))
    return [recording[name].float().cpu() for name in names]


def _pooling(words: Sequence[Sequence[Sequence[int]]], pool: Pool, *, shift: int) -> tuple[Tensor, ...]:
    """Return row, token, word (counted through the batch) and share of every token that represents a word."""
    rows: list[int] = []
    tokens: list[int] = []
    numbers: list[int] = []
    shares: list[float] = []
    number = 0
    for row, sentence in enumerate(words):
        for places in sentence:
            used = places if pool == "mean" else places[-1:]
            rows += [row] * len(used)
            tokens += [index + shift for index in used]
            numbers += [number] * len(used)
            shares += [1 / len(used)] * len(used)
            number += 1
    return torch.tensor(rows), torch.tensor(tokens), torch.tensor(numbers), torch.tensor(shares)
