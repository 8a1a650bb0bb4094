"""Sounds as input: a source is the name of a sound, in a store its number, in a batch its log-mel features.

Axes: B batch, S frames or positions of the encoder, F bands, T target positions.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config.model import SoundEncoder as SoundSettings
from regard.config.run import RunConfig
from regard.config.task import SoundTask
from regard.data.batches import Batch, Frame
from regard.data.log_mel import FRAMES_PER_SECOND, RANGE, Frames
from regard.data.sound_augmentation import add_noise, change_speed, equalise, hide_stretches
from regard.data.sound_store import SoundStore
from regard.data.sounds import SoundFormat, read_frames
from regard.data.store import InMemoryStore, TokenStore
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.models import Model
from regard.nn.subsampling import FACTOR, pad_frames, subsampled_length
from regard.search.ctc import CtcSteps, is_possible
from regard.search.hypothesis import Hypothesis
from regard.search.steps import AttentiveSteps, ModelSteps, Source, StepModel
from regard.tasks.inputs.input import Input, Rows, SourceView, with_attention
from regard.tasks.inputs.text import length_groups
from regard.tasks.trace import Given, Side
from regard.text.tokenizer import Tokenizer


class SoundInput(Input):
    """A sound by its name (see `regard.data.sounds`)."""

    def __init__(self, config: RunConfig, tokenizer: Tokenizer | None, frame: Frame) -> None:
        super().__init__(config, tokenizer, Frame())  # a number has no special tokens around it
        encoder = config.model.encoder
        assert isinstance(encoder, SoundSettings)
        self.format = SoundFormat(encoder.rate, encoder.bands, encoder.max_seconds)
        self.store: SoundStore | None = None
        self.resampled: set[int] = set()
        """The sample rates of sounds that had to be resampled."""

    # Preparing data

    def gather(self, sources: Iterable[str], directory: Path, progress: Progress | None = None) -> None:
        """Compute the features of every sound once."""
        self.store = SoundStore.build(directory / "sounds", sources, self.format, progress)
        self.resampled.update(self.store.header.resampled)

    def open_data(self, directory: Path) -> None:
        """Open the features of a data directory, if it still has them."""
        kept = directory / "sounds"
        self.store = SoundStore(kept) if kept.is_dir() else None
        if self.store is not None and self.store.header.bands != self.format.bands:
            raise RegardError(
                f"{kept} has sounds of {self.store.header.bands} bands, but the model reads {self.format.bands}. "
                "Restore it, or start a new run."
            )

    def share_data(self, other: Input) -> None:
        """Use the features of another input."""
        assert isinstance(other, SoundInput)
        self.store = other.store

    def remarks(self) -> list[str]:
        """Return a note on resampled sample rates."""
        if not self.resampled:
            return []
        rates = ", ".join(f"{rate:,}" for rate in sorted(self.resampled))
        return [f"Sounds with a sample rate of {rates} Hz were resampled to {self.format.rate:,} Hz."]

    def encode(self, sources: Sequence[str]) -> Rows:
        """Return the number of each sound."""
        assert self.store is not None
        return [[self.store.numbers[source]] for source in sources]

    @property
    def id_limit(self) -> int:
        """The number of sounds."""
        return len(self.store or ())

    def describe(self) -> str:
        """Return a short description of the features."""
        return f"sounds of {self.format.bands} mel bands at {self.format.rate:,} Hz"

    # Training

    def source_lengths(self, store: TokenStore) -> NDArray[np.int32]:
        """Return the number of positions of each sound after subsampling."""
        sounds = self._stored(None if isinstance(store, InMemoryStore) else store.directory.parent)
        numbers = [int(store[row][0][0]) for row in range(len(store))]
        return np.asarray(-(-sounds.lengths[numbers] // FACTOR), dtype=np.int32)

    def tensors(self, batch: Batch, random: torch.Generator, *, training: bool) -> dict[str, Tensor]:
        """Return frames B×S×F+1, in training with augmentation."""
        sounds = self._stored(None)
        rows = [to_levels(sounds[number]) for number in batch.source[:, 0].tolist()]
        return {"source": pad_frames([self.vary(row, random) for row in rows] if training else rows)}

    def vary(self, frames: Tensor, random: torch.Generator) -> Tensor:
        """Augment frames S×F as configured: another speed, noise, an equaliser, and masked stretches."""
        task = self.config.task
        if not isinstance(task, SoundTask):
            return frames
        if task.speed:
            drawn = 2 * float(torch.rand((), generator=random)) - 1
            frames = change_speed(frames, self.format.rate, 1 + task.speed * drawn)
        if task.noise is not None:
            drawn = float(torch.rand((), generator=random))
            frames = add_noise(frames, task.noise + (RANGE - task.noise) * drawn, random)
        if task.equaliser:
            frames = equalise(frames, task.equaliser, random)
        return hide_stretches(frames, task.masks, random)

    def _stored(self, place: Path | None) -> SoundStore:
        if self.store is None:
            raise RegardError(f"{place or 'This run'} has no sounds. Restore its data, or start a new run.")
        return self.store

    # Using a model

    def frames(self, name: str) -> Tensor:
        """Return the features of a sound: S×F, numbers from 0 to 1."""
        stored = self.store.find(name) if self.store else None
        if stored is not None:
            return to_levels(stored)
        frames, _ = read_frames(name, self.format)
        return to_levels(frames)

    def rows(self, sources: Sequence[str]) -> Rows:
        """Return the number of positions of each sound."""
        found = []
        for source in sources:
            if self.store is None or self.store.find(source) is None:
                self.resampled.update(read_frames(source, self.format)[1])
            found.append([subsampled_length(len(self.frames(source)))])
        return found

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Yield the indices of sounds in groups of similar length, longest first."""
        return length_groups([row[0] for row in rows], tokens, framing=0, empty=True)

    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Return frames B×S×F+1."""
        return (pad_frames([self.frames(source) for source in sources]),)

    def view(self, model: nn.Module, source: str) -> SourceView:
        """Return the positions of a sound for a trace, named by the second at which they begin."""
        (frames,) = self.collate([source], [])
        count = subsampled_length(frames.shape[1])
        side = Side.of_labels([f"{number * FACTOR / FRAMES_PER_SECOND:.2f}" for number in range(count)], range(count))
        return SourceView(side, Given(side.ids, [], content=frames[0]))

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the step model and the frames of the sounds."""
        (frames,) = self.collate(sources, rows)
        real = frames[..., -1] > 0  # B×S
        rows_alone = (row[mask] for row, mask in zip(frames, real, strict=True))
        seeds = tuple(hashlib.sha256(row.numpy().tobytes()).hexdigest() for row in rows_alone)
        plain = AttentiveSteps(model) if with_attention else ModelSteps(model)
        weight = self.config.decoding.ctc
        steps: StepModel[Any] = CtcSteps(plain, model, weight) if weight else plain  # not set without a CTC layer
        return steps, Source(frames.to(model.device), real[:, ::FACTOR].to(model.device), seeds)

    def reorder(self, source: str, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses that CTC makes possible; all if it makes none possible."""
        return [hypothesis for hypothesis in hypotheses if is_possible(hypothesis)] or hypotheses

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with the attention of its tokens to the sound (mean of layers and heads): T×S."""
        return with_attention(model, tokenizer, self.view(model, source), hypothesis)


def to_levels(frames: Frames) -> Tensor:
    """Convert bytes S×F to numbers from 0 to 1."""
    return torch.from_numpy(np.array(frames)).float() / 255
