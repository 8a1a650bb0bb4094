"""The result of `lens`: what each layer would have predicted.

Axes: L layers, B batch (one row for each layer), T target tokens, D width, V vocabulary.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.foundation.display import columns
from regard.inspection.drawing import INK, KEY, QUIET, draw_key, draw_map, new_figure, token_labels
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.tasks.trace import Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Lens(Result):
    """For every layer and target position: the rank and probability of the output word, and the likeliest words.

        P_l = softmax(W · readout(h_l) + b)

    where `readout` is everything between the last layer and the output layer (final norm, projection; for a
    recurrent decoder also what it found in the source); of the last layer, P_L is the model's own distribution.
    """

    source: Side
    target: Side
    ranks: Tensor
    """L×T: rank of the output word, from 1."""
    probabilities: Tensor
    """L×T: probability of the output word."""
    top: list[list[list[tuple[str, float]]]]
    """For each layer and position its own likeliest words with their probabilities, best first."""
    names: list[str]
    """What each of the L layers is called."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What each layer would have predicted"

    @property
    def decided(self) -> list[int | None]:
        """For each position the first layer (from 0) from which on the output word stays first; or None."""
        first = (self.ranks == 1).tolist()
        found: list[int | None] = []
        for index in range(len(self.target)):
            layer = len(first)
            while layer > 0 and first[layer - 1][index]:
                layer -= 1
            found.append(None if layer == len(first) else layer)
        return found

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.ranks)} layers × {len(self.target)} target tokens"

    def to_json(self) -> dict[str, Any]:
        """Plain data: everything by layer, then by position."""
        return {
            "source": self.source.tokens,
            "target": self.target.tokens,
            "special": self.target.special,
            "decided": self.decided,
            "names": self.names,
            "layers": [
                {
                    "ranks": ranks,
                    "probabilities": [round(probability, 6) for probability in probabilities],
                    "top": [[[word, round(share, 6)] for word, share in words] for words in top],
                }
                for ranks, probabilities, top in zip(
                    self.ranks.tolist(), self.probabilities.tolist(), self.top, strict=True
                )
            ],
        }

    def __str__(self) -> str:
        """A row for each output word: each layer's first word, and the rank of the output word if that is another."""
        rows = [["word", *self.names, "first from"]]
        for index, (token, decided) in enumerate(zip(self.target.tokens, self.decided, strict=True)):
            cells = []
            for layer, words in enumerate(self.top):
                rank, share = int(self.ranks[layer, index]), float(self.probabilities[layer, index])
                cells.append(f"{words[index][0][0]} {share:.2f}" if rank == 1 else f"{words[index][0][0]} (#{rank:,})")
            rows.append([token, *cells, "–" if decided is None else self.names[decided]])
        return columns(rows)

    def draw(self) -> "Figure":
        """Target tokens down, layers across; dark where the output word is likely, with each layer's first word."""
        layers, length = self.ranks.shape
        wide, tall = 1.15 * layers, 0.27 * length
        width, height = wide + 1.6, tall + 0.8 + KEY
        figure = new_figure(width, height, self.title)
        axes = figure.add_axes((1.3 / width, KEY / height, wide / width, tall / height))
        draw_map(axes, self.probabilities.T, self.target.tokens, self.names)
        axes.tick_params(axis="x", labelrotation=0)
        for label in axes.get_xticklabels():
            label.set(ha="center", rotation_mode="default")
        for layer, words in enumerate(self.top):
            for index in range(length):
                probability = float(self.probabilities[layer, index])
                ink = INK if int(self.ranks[layer, index]) == 1 else QUIET
                word = token_labels([words[index][0][0]])[0]
                word = word if len(word) <= 13 else f"{word[:12]}…"
                axes.text(
                    layer,
                    index,
                    word,
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if probability > 0.55 else ink,
                )
        draw_key(figure, 1.3, "0", "1: the layer's probability of the output word")
        return figure

    def panels(self) -> list[Panel]:
        """A table of words by layers; a click opens one of them."""
        note = (
            "Each row is a token, or a label, of the output, each column a layer. A cell holds the layer's own first "
            "word, had the output layer read it right there; it is filled where the output word is likely, and "
            "# is that word's rank where another is first. The last layer is the model itself."
        )
        return [Panel("lens", self.to_json(), note=note)]
