"""Where in a picture a model looked while it wrote each word of a caption (after Xu et al., 2015, figure 5).

Axes: H heads, T target tokens, S places of the picture, row by row.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.data.log_mel import FRAMES_PER_SECOND
from regard.data.pictures import shown_picture
from regard.foundation.display import columns
from regard.inspection.analyses.attention.spectrogram import draw_listening, draw_spectrogram
from regard.inspection.drawing import INK, QUIET, new_figure, token_labels
from regard.inspection.page import Panel, pack
from regard.inspection.plain_data import rounded
from regard.inspection.result import Result
from regard.nn.subsampling import FACTOR
from regard.tasks.trace import Picture, Side, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

VEIL = (16, 20, 32)
"""Colour over the positions without weight; the same as in `views/picture.js`."""
ACROSS = 6
"""Pictures side by side in a drawing."""
TILE = 1.3
"""Inches a picture."""

NOTE = (
    "Point at a word, or move with the arrow keys: what lights up is where the model looked just before it wrote that "
    "word, each word on a scale of its own. A click holds the word, Escape lets go."
)
ASKED = (
    "Point at a look, or move with the arrow keys: what lights up is where the model looked, each on a scale of its "
    "own. Beside its number stands the word of the question that was read most just before; the last is the mean of "
    "all looks, and the answer. A click holds it, Escape lets go."
)
HEARD = (
    "The picture is the spectrogram: time runs to the right, low tones are at the bottom. Point at a word, or move "
    "with the arrow keys: what lights up is where the model listened just before it wrote that word, each word on a "
    "scale of its own. A click holds the word, Escape lets go."
)
NOTHING = "This model was given the picture as one vector (its join is fixed): it looked at no place in particular."


@dataclass(frozen=True)
class Look:
    """One picture, a caption of it, and what each attention to the picture saw."""

    name: str
    grid: tuple[int, int]
    """Rows and columns of places."""
    target: Side
    """T: the output tokens, the end symbol last."""
    layers: Sequence[tuple[int, Tensor]]
    """Layer, and the weights H×T×S of its heads; empty where nothing attends to the picture."""
    others: Sequence[tuple[str, float]] = ()
    """Other captions with their scores."""
    dialogue: str | None = None
    """A question and its answer, if there is one: the tokens are then the steps of looking, and the answer."""
    frames: Tensor | None = None
    """The log-mel features of a sound, frames × bands: the picture is its spectrogram, and the grid has one row."""

    @classmethod
    def of(cls, trace: Trace, others: Sequence[tuple[str, float]] = ()) -> "Look":
        """What a trace over a picture saw."""
        assert trace.picture is not None
        if trace.reads_only:
            return cls._of_question(trace, trace.picture)
        seen = [weights for name, weights in trace.activations.items() if name.endswith("source_attention.weights")]
        layers = [(depth, weights) for depth, weights in enumerate(seen) if len(weights)]
        return cls(trace.picture.name, trace.picture.grid, trace.target, layers, others)

    @classmethod
    def of_sound(cls, trace: Trace) -> "Look | None":
        """What a trace over a sound heard; None if the source is no sound, or nothing attends to it."""
        frames = trace.given.content if trace.given else None
        if frames is None or frames.dim() != 2 or trace.reads_only:
            return None
        seen = [weights for name, weights in trace.activations.items() if name.endswith("source_attention.weights")]
        layers = [(depth, weights) for depth, weights in enumerate(seen) if len(weights)]
        return cls("sound", (1, len(trace.source)), trace.target, layers, frames=frames[:, :-1]) if layers else None

    @classmethod
    def _of_question(cls, trace: Trace, picture: Picture) -> "Look":
        """Return the steps of looking that led to an answer, each with the word that it read most, and their mean."""
        read, seen = (
            [weights for name, weights in trace.activations.items() if name.endswith(f"{kind}_attention.weights")]
            for kind in ("question", "picture")
        )
        texts, answer = trace.source.word_texts[1:-1], f"→ {trace.target.tokens[0]}"
        words = [trace.source.summed(weights.mean((0, 1)))[1:-1] for weights in read]
        names = [f"look {number}: {texts[int(weights.argmax())]}" for number, weights in enumerate(words, start=1)]
        looks = torch.cat(seen, 1)  # H×L×S, L looks
        side = Side.of_labels([*names, answer], range(len(names) + 1))
        dialogue = f"{' '.join(texts)} {answer}"
        return cls(
            picture.name,
            picture.grid,
            side,
            [(0, torch.cat([looks, looks.mean(1, keepdim=True)], 1))],
            dialogue=dialogue,
        )

    @cached_property
    def words(self) -> list[str]:
        """The words of the caption, without the end symbol."""
        ends = {word for word, special in zip(self.target.words, self.target.special, strict=True) if special}
        return [text for word, text in enumerate(self.target.word_texts) if word not in ends]

    @property
    def caption(self) -> str:
        """The output, after the question if there is one."""
        return self.dialogue or " ".join(self.words)

    def maps(self, layer: int | None = None, head: int | None = None) -> Tensor | None:
        """Return where each word looked, words × rows × columns: the mean over all layers and heads, or those given."""
        chosen = [weights for number, weights in self.layers if layer in (None, number) or self.dialogue]
        if not chosen:
            return None
        parts = [weights if head is None else weights[head : head + 1] for weights in chosen]
        by_word = self.target.averaged(torch.cat(parts).mean(0))[: len(self.words)]
        return by_word.view(-1, *self.grid)

    @property
    def seconds(self) -> float | None:
        """How long the positions of a sound last together; `None` for a picture."""
        if self.frames is None:
            return None
        return self.grid[1] * FACTOR / FRAMES_PER_SECOND  # the last position may reach beyond the end

    def place_name(self, place: int) -> str:
        """Return row and column of a place, or the second at which a stretch of sound begins."""
        if self.frames is None:
            return ",".join(map(str, divmod(place, self.grid[1])))
        return f"{place * FACTOR / FRAMES_PER_SECOND:.2f}"

    @cached_property
    def image(self) -> "Image":
        """The picture, as people are shown it: of a sound, its spectrogram."""
        if self.frames is None:
            return shown_picture(self.name)
        return draw_spectrogram(self.frames, self.grid[1] * FACTOR)

    def draw(self, layer: int | None = None, head: int | None = None, title: str | None = None) -> "Figure":
        """Draw where each word looked: over all layers and heads, or those given."""
        maps = self.maps(layer, head)
        if self.seconds is None:
            return draw_looks([(self, maps)], title)
        heard = None if maps is None else maps[:, 0]  # words × positions
        return draw_listening(self.image, self.seconds, self.words, heard, title)

    def to_json(self) -> dict[str, Any]:
        """Plain data: the caption, its words, and where each of them looked, row by row of the picture."""
        found = self.maps()
        looked = None if found is None else rounded(found)
        return {
            "picture": self.name,
            "caption": self.caption,
            "words": self.words,
            "grid": list(self.grid),
            "seconds": self.seconds,
            "looked": looked,
            "layers": [{"layer": layer, "weights": rounded(weights)} for layer, weights in self._by_word()],
            **({"others": self._others()} if self.others else {}),
        }

    def _by_word(self) -> list[tuple[int, Tensor]]:
        """Return the weights of every head by the words of the caption, for each layer: H×words×S."""
        return [(layer, self.target.averaged(weights)[:, : len(self.words)]) for layer, weights in self.layers]

    def _others(self) -> list[dict[str, Any]]:
        return [{"text": text, "score": round(score, 6)} for text, score in self.others]

    def for_page(self) -> dict[str, Any]:
        """What the view needs: the picture itself, and the weights of every head."""
        content = io.BytesIO()
        self.image.save(content, "PNG")
        return {
            "picture": self.name,
            "caption": self.caption,
            "image": f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode('ascii')}",
            "words": self.words,
            "grid": list(self.grid),
            "seconds": self.seconds,
            "layers": [{"layer": layer, "weights": pack(weights)} for layer, weights in self._by_word()],
            "others": self._others(),
        }


@dataclass(frozen=True, repr=False)
class Looks(Result):
    """Captions of some pictures, and where the model looked for each word."""

    looks: Sequence[Look]

    @property
    def title(self) -> str:
        """The heading of the page."""
        if any(look.frames is not None for look in self.looks):
            return "Where in the sound it listened"
        return "Where in the picture it looked" if any(look.layers for look in self.looks) else "What it saw"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.looks)} pictures"

    def to_json(self) -> dict[str, Any]:
        """Plain data of every picture."""
        return {"pictures": [look.to_json() for look in self.looks]}

    def __str__(self) -> str:
        """For each word of each caption the place that it looked at most."""
        return "\n\n".join(_listing(look) for look in self.looks)

    def draw(self) -> "Figure":
        """Every picture once as it is, and once for each word with where it looked."""
        if len(self.looks) == 1:
            return self.looks[0].draw()
        return draw_looks([(look, look.maps()) for look in self.looks])

    def panels(self) -> list[Panel]:
        """One view of all pictures."""
        seen = any(look.layers for look in self.looks)
        asked, heard = (any(look.dialogue for look in self.looks), any(look.frames is not None for look in self.looks))
        note = ASKED if asked else HEARD if heard else NOTE
        return [Panel("picture", [look.for_page() for look in self.looks], note=note if seen else NOTHING)]


def overlap(grid: tuple[int, int], box: tuple[float, float, float, float]) -> Tensor:
    """How much of each place lies within a box (left, top, right, bottom, as shares of the picture): rows × columns.

    A map times this, summed, is the weight that falls inside the box; the chance is the box's area.
    """
    rows, columns = grid
    left, top, right, bottom = box
    down = [_shared(row / rows, (row + 1) / rows, top, bottom) for row in range(rows)]
    across = [_shared(column / columns, (column + 1) / columns, left, right) for column in range(columns)]
    return torch.outer(torch.tensor(down), torch.tensor(across))


def _shared(start: float, end: float, low: float, high: float) -> float:
    """Return the share of an interval that lies between two bounds."""
    return max(0.0, min(end, high) - max(start, low)) / (end - start)


def _listing(look: Look) -> str:
    rows = [["word", "looked at row, column" if look.frames is None else "listened at second", ""]]
    maps = look.maps()
    if maps is None:
        return f"{look.name}: {look.caption}\n\n{NOTHING}"
    for word, weights in zip(look.words, maps, strict=True):
        best = weights.flatten().topk(min(3, weights.numel()))
        strongest = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        rows.append([word, *(f"{look.place_name(place)} {weight:.2f}" for place, weight in strongest)])
    return f"{look.name}: {look.caption}\n\n{columns(rows)}"


def draw_looks(looks: Sequence[tuple[Look, Tensor | None]], title: str | None = None) -> "Figure":
    """Each picture, as it is and once for each word, several in a row."""
    counts = [1 + (len(look.words) if maps is not None else 0) for look, maps in looks]
    lines = [-(-count // ACROSS) for count in counts]
    wide, head = min(ACROSS, max(counts)), 0.4 if title else 0.1
    tall = TILE + 0.3
    gaps = 0.35 * len(looks)
    height, width = sum(lines) * tall + gaps + head, wide * (TILE + 0.1) + 0.1
    figure = new_figure(width, height, title)
    above = head
    for (look, maps), count, rows in zip(looks, counts, lines, strict=True):
        above += 0.35
        figure.text(
            0.1 / width, 1 - (above - 0.1) / height, token_labels([look.caption])[0], fontsize=9, color=INK, va="bottom"
        )
        for index in range(count):
            row, column = divmod(index, ACROSS)
            left, top = 0.1 + column * (TILE + 0.1), above + row * tall
            axes = figure.add_axes((left / width, 1 - (top + TILE) / height, TILE / width, TILE / height))
            weights = None if index == 0 or maps is None else maps[index - 1]
            _tile(axes, look, weights, "" if index == 0 else look.words[index - 1])
        above += rows * tall
    return figure


def _tile(axes: "Axes", look: Look, weights: Tensor | None, word: str) -> None:
    """One picture with its weights rows × columns over it."""
    wide, high = look.image.size
    axes.imshow(np.asarray(look.image), extent=(0, wide, high, 0))
    if weights is not None:
        share = (weights / weights.max().clamp(min=1e-9)).numpy()
        veil = np.zeros((*share.shape, 4))
        veil[..., :3] = np.array(VEIL) / 255
        veil[..., 3] = 0.8 * (1 - share)
        axes.imshow(veil, extent=(0, wide, high, 0), interpolation="bilinear")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(token_labels([word])[0], fontsize=9, color=INK, labelpad=2)
    for side in axes.spines.values():
        side.set_color(QUIET)
        side.set_linewidth(0.5)
