"""Sound encoder: convolutions that join every four frames, followed by any text encoder.

Axes: B batch, S frames or positions, F bands, D width.
"""

from collections.abc import Callable

from torch import Tensor

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.encoders import Encoder
from regard.models.memory import Memory
from regard.nn.subsampling import Subsampling, even_loudness, standardise_bands
from regard.nn.taps import Tap


class SoundEncoder(Encoder):
    """Encodes frames B×S×F+1, whose last number is 1 where a frame is not padding, with `body` after subsampling."""

    reads_tokens = False

    def __init__(
        self,
        cell: config.Model,
        part: config.SoundEncoder,
        make_body: Callable[..., Encoder],
        *,
        name: str = "encoder",
        drop_states: bool = True,
    ) -> None:
        super().__init__()
        width = resolved(cell.embeddings.width)
        self.subsampling = Subsampling(part.bands, part.channels, width, pool_bands=part.pool_bands)
        self.even_loudness = part.even_loudness
        self.normalise = part.normalise
        self.subsampled = Tap(time=1)
        self.body = make_body(cell, part.body, name=f"{name}.body", drop_states=drop_states)

    def forward(self, frames: Tensor) -> Memory:  # type: ignore[override]
        """Encode frames B×S×F+1; each position of the result covers 40 ms."""
        levels, mask = frames[..., :-1], frames[..., -1] > 0  # B×S×F, B×S
        if self.even_loudness:
            levels = even_loudness(levels)
        if self.normalise:
            levels = standardise_bands(levels, mask)
        vectors, mask = self.subsampling(levels, mask)  # B×S×E, B×S
        memory: Memory = self.body(self.subsampled(vectors), mask)
        return Memory(memory.states, memory.mask, self.summary(memory.summary))
