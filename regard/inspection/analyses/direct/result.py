"""The result of `direct`: a map of target tokens by blocks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.foundation.display import columns
from regard.inspection.drawing import KEY, draw_key, draw_map, new_figure
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded
from regard.inspection.result import Result
from regard.tasks.trace import Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 3
"""Blocks that a row of the table names."""


@dataclass(frozen=True, repr=False)
class DirectAttribution(Result):
    """What each block adds to the logit of an output word over that of the runner-up."""

    target: Side
    components: list[str]
    """Names of the C blocks, the embedding first and the biases last."""
    values: Tensor
    """T×C."""
    differences: Tensor
    """T: log P(word) − log P(runner-up), the sum of a row."""
    others: list[str]
    """The runner-up at each position."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Which block wrote each word"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.target)} target tokens × {len(self.components)} components"

    def to_json(self) -> dict[str, Any]:
        """Return every value, by token, then by component."""
        return {
            "target": self.target.tokens,
            "others": self.others,
            "components": self.components,
            "values": rounded(self.values),
            "differences": rounded(self.differences),
            "top": float(f"{float(self.values.abs().max()):.5g}"),
        }

    def __str__(self) -> str:
        """A row for each output word: the difference, and the blocks that add most for and against it."""
        rows = [["word", "over", "by", "most from", "most against"]]
        for position, token in enumerate(self.target.tokens):
            order = self.values[position].argsort(descending=True).tolist()
            most = [
                self._format_component(position, component)
                for component in order[:SHOWN]
                if self.values[position, component] > 0
            ]
            least = [
                self._format_component(position, component)
                for component in order[: -SHOWN - 1 : -1]
                if self.values[position, component] < 0
            ]
            difference = f"{float(self.differences[position]):+.2f}"
            rows.append([token, self.others[position], difference, ", ".join(most) or "–", ", ".join(least) or "–"])
        return columns(rows, right=[2])

    def _format_component(self, position: int, component: int) -> str:
        return f"{self.components[component]} {float(self.values[position, component]):+.2f}"

    def draw(self) -> "Figure":
        """Target tokens down, blocks across; blue for the word, red for the runner-up."""
        length, count = self.values.shape
        wide, tall, names = 0.3 * count, 0.27 * length, 0.062 * max(map(len, self.components))
        width, height = wide + 1.6 + names, tall + 0.6 + names + KEY
        figure = new_figure(width, height, self.title)
        axes = figure.add_axes((1.3 / width, KEY / height, wide / width, tall / height))
        top = float(self.values.abs().max())
        draw_map(axes, self.values.float(), self.target.tokens, self.components, top=top, signed=True)
        draw_key(figure, 1.3, f"−{top:.1f}: for the runner-up", f"{top:.1f} nats: for the word", signed=True)
        return figure

    def panels(self) -> list[Panel]:
        """A map of blocks; a click names a cell."""
        note = (
            "Each row is an output token, each column a block of the decoder. A cell is what the block adds to the "
            "log-odds of the token against the runner-up, in nats; a row sums to the difference of the two "
            "log-probabilities. L0 is the first layer. A later block that reads what an earlier one wrote is credited "
            "itself."
        )
        return [Panel("direct", self.to_json(), note=note)]
