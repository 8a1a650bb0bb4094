"""The result of `contributions`: how much of each output word came from the source, and how much from the prefix.

Axes: S source tokens, T target tokens.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.inspection.gain import NOTE, Gain
from regard.inspection.influence import Influence, draw_influences, influence_data, influence_table
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded
from regard.inspection.result import Result
from regard.models.encoders import BagEncoder, TransformerEncoder
from regard.tasks.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Contributions(Result):
    """What each target token got from each token of source and prefix; every row sums to one."""

    trace: Trace
    influences: list[Influence]
    """Contributions first; rollout and attention to compare them with."""
    gain: Gain
    """What the source did for each word, by which words are flagged."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Source against prefix"

    @property
    def source(self) -> Tensor:
        """T×S."""
        return self.influences[0].source

    @property
    def prefix(self) -> Tensor:
        """T×T."""
        return self.influences[0].prefix

    @property
    def source_share(self) -> Tensor:
        """What the source has of each target token: T."""
        return self.source.sum(-1)

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.trace.target)} target × {len(self.trace.source)} source tokens"

    def to_json(self) -> dict[str, Any]:
        """Plain data: tokens, words, the shares of each method, and the source share and gain of each target token."""
        shares = rounded(self.source_share)
        return influence_data(self.trace, self.gain, [("how it came about", self.influences)], sourceShare=shares)

    def __str__(self) -> str:
        """For each target token its gain and source share, and what it got most from on both sides."""
        cells = [[f"{share:.0%}"] for share in self.source_share.tolist()]
        return influence_table(self.trace, self.gain, self.influences[0], ["share"], cells)

    def draw(self) -> "Figure":
        """Contributions with the source to the left, the prefix to the right, and the source share as a bar."""
        return draw_influences(self.trace, self.gain, self.influences[:1], self.source_share)

    def panels(self) -> list[Panel]:
        """The sentence pair, with contributions, rollout and attention over it."""
        note = (
            "Pick a word of the output: the stronger the colour of a token, the more the word got from it. The bar "
            f"below each word is the source's share in it; the rest came from the words before. {NOTE}"
        )
        encoder = self.trace.writer.encoder
        if not isinstance(encoder, TransformerEncoder | BagEncoder):
            note += (
                " A source token here is the encoder's state at its place: what that state holds of the tokens around "
                "it cannot be separated."
            )
        return [Panel("influence", self.to_json(), note=note)]
