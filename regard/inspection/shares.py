"""Source against prefix: how much of each word that was said came from either.

Axes: S source tokens, T target tokens.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.data.progress import Progress
from regard.errors import UsageError
from regard.inspection.flow import decomposed, flows, lacking
from regard.inspection.influence import Influence, draw_influences, listing, pane
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.models.encoders import BagEncoder, TransformerEncoder
from regard.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.translator import Translator

QUANTILE = 0.05
"""A word is flagged when so few of its like have a smaller source share in the model's own held-out pairs."""

ENOUGH = 40
"""Tokens that a quantile is taken of, at least."""

PAIRS = 100
"""Held-out pairs that are read for it."""


@dataclass(frozen=True)
class Usual:
    """The source shares that are usual in a model: those of held-out pairs, by what they depend on most.

    Shares fall along a sentence and within a word, whatever is said. A token is therefore compared with tokens of its
    like: beginning a word or not, and within the same octave of places (0, 1, 2–3, 4–7, …).
    """

    shares: dict[tuple[bool, int], Tensor]
    pairs: int

    def low(self, trace: Trace) -> list[float | None]:
        """The share below which each target token is flagged; none for special tokens and where too few are like it."""
        lines = {
            like: shares.quantile(QUANTILE).item() for like, shares in self.shares.items() if len(shares) >= ENOUGH
        }
        return [
            None if special else lines.get(like)
            for like, special in zip(_likes(trace), trace.target.special, strict=True)
        ]


@dataclass(frozen=True)
class Contributions(Result):
    """What each target token got from each token of source and prefix; every row sums to one."""

    trace: Trace
    influences: list[Influence]
    """Contributions first; rollout and attention to compare them with."""
    usual: Usual | None = None

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
    def low(self) -> list[float | None]:
        """The share below which each target token is flagged."""
        return [None] * len(self.trace.target) if self.usual is None else self.usual.low(self.trace)

    @property
    def flagged(self) -> list[bool]:
        """Which target tokens have less of the source than is usual."""
        pairs = zip(self.source_share.tolist(), self.low, strict=True)
        return [line is not None and share < line for share, line in pairs]

    def to_json(self) -> dict[str, Any]:
        """Plain data: tokens, words, the shares of each method, and the source share of each target token."""
        target, low = self.trace.target, self.low
        lines = torch.tensor([[float("nan") if one is None else one] for one in low])
        words = [None if math.isnan(one) else round(one, 4) for one in target.averaged(lines)[:, 0].tolist()]
        return pane(
            self.trace,
            [("how it came about", self.influences)],
            sourceShare=[round(share, 4) for share in self.source_share.tolist()],
            flagged=self.flagged,
            low=[None if one is None else round(one, 4) for one in low],
            lowWords=words,
            lowOf=self.influences[0].name,
            heldOutPairs=0 if self.usual is None else self.usual.pairs,
        )

    def __str__(self) -> str:
        """For each target token its source share, and what it got most from on both sides."""
        cells = [
            [f"{share:.0%}" + ("▾" if low else " ")]
            for share, low in zip(self.source_share.tolist(), self.flagged, strict=True)
        ]
        return f"{listing(self.trace, self.influences[0], ['source '], cells)}\n\n{self._told()}"

    def _told(self) -> str:
        if self.usual is None:
            return "The run has no held-out pairs to compare with, so no word is flagged."
        told = f"▾ less of the source than {1 - QUANTILE:.0%} of like tokens in {self.usual.pairs} held-out pairs"
        return f"{told}: a weak sign of invention." if any(self.flagged) else f"No token has {told[2:]}."

    def draw(self) -> "Figure":
        """Contributions with the source to the left, the prefix to the right, and the source share as a bar."""
        return draw_influences(self.trace, self.influences[:1], self.source_share, self.flagged)

    def panels(self) -> list[Panel]:
        """The sentence pair, with contributions, rollout and attention over it."""
        note = (
            "Pick a word that was said: the darker a token, the more the word got from it. The bar below each word is "
            "the source's share in it; the rest came from the words before."
        )
        encoder = self.trace.writer.encoder
        if not isinstance(encoder, TransformerEncoder | BagEncoder):
            note += (
                " A source token here is the encoder's state at its place: what that state holds of the tokens around "
                "it is not told apart."
            )
        if self.usual is not None:
            note += (
                f" Red bars are shorter than those of {1 - QUANTILE:.0%} of like tokens in {self.usual.pairs} held-out "
                "pairs."
            )
        return [Panel("influence", self.to_json(), note=note)]


def contributions(trace: Trace, usual: Usual | None = None) -> Contributions:
    """Contributions by ALTI+ (Ferrando et al., 2022), with rollout and attention beside them; for Transformer decoders.

    With the shares that are usual in the model (`usual_shares`), words that have less of the source are flagged.
    """
    why = lacking(trace)
    if why:
        raise UsageError(why)
    return Contributions(trace, flows(trace), usual)


def usual_shares(
    translator: "Translator", pairs: Iterable[tuple[str, str]], progress: Progress | None = None
) -> Usual | None:
    """The source shares in pairs of source and target; pairs that the model cannot say are left out."""
    found: dict[tuple[bool, int], list[float]] = {}
    given, read = list(pairs), 0
    for number, (source, target) in enumerate(given, start=1):
        if progress:
            progress("usual shares", number, len(given))
        try:
            trace = translator.trace(source, target)
        except UsageError:
            continue
        read += 1
        shares = decomposed(trace).roll()[0].sum(-1).tolist()
        for like, share, special in zip(_likes(trace), shares, trace.target.special, strict=True):
            if not special:
                found.setdefault(like, []).append(share)
    return Usual({like: torch.tensor(shares) for like, shares in found.items()}, read) if read else None


def _likes(trace: Trace) -> list[tuple[bool, int]]:
    """What each target token is compared by: whether it begins a word, and the octave of its place."""
    words = trace.target.words
    return [(place == 0 or word != words[place - 1], place.bit_length()) for place, word in enumerate(words)]
