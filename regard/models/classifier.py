"""Classifiers: predict a class or a number for a text, a pair of texts, an image or a sound.

Axes: B batch, S and R source positions (of the first and the second text), D width, C outputs.
"""

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.config.task import PooledTask, TaskSettings
from regard.models.encoder_model import ChoiceModel
from regard.models.encoders import mean_state
from regard.models.memory import Memory
from regard.models.pooling import largest_state, make_pool
from regard.nn.attention import Attention
from regard.nn.dropout import Dropout
from regard.text.specials import BOS, EOS, PAD, SEP


class Classifier(ChoiceModel):
    """scores = classifier(dropout(pool(encoder(source)))), for one text or for two joined by a separator."""

    pools = True

    def __init__(self, cell: config.Model, how: TaskSettings, vocabulary: int, outputs: int) -> None:
        super().__init__(cell, vocabulary)
        self.pool = make_pool(how.pool if isinstance(how, PooledTask) else None, self.width)
        self.dropout = Dropout(cell.dropout)
        self.classifier = self._classifier(outputs)

    def _classifier(self, outputs: int) -> nn.Module:
        return nn.Linear(self.width, outputs)

    def features(self, source: Tensor) -> Tensor:
        """Encode sources B×S as one vector each: B×F."""
        vector: Tensor = self.pool(self.encode(source))
        return vector

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """Return the vector of each source B×S as its only output: B×1×F."""
        return self.features(source)[:, None]

    def forward(self, source: Tensor) -> Tensor:
        """Return the logits B×C of sources B×S, before temperature."""
        return self.logits(self.features(source))


class PairCompareClassifier(Classifier):
    """Encodes two texts separately as u and v, and compares them as [u; v; |u − v|; u ∘ v] (Conneau et al., 2017)."""

    def _classifier(self, outputs: int) -> nn.Module:
        return _hidden(4 * self.width, self.width, outputs, self.cell.dropout)

    def texts(self, source: Tensor) -> tuple[Tensor, ...]:
        """Return the two texts."""
        return split_pair(source)

    def features(self, source: Tensor) -> Tensor:
        """Return both vectors, their absolute difference and their product: B×4D."""
        one, other = (self.pool(self.encode(text)) for text in split_pair(source))
        return torch.cat([one, other, (one - other).abs(), one * other], dim=1)


class PairAttendClassifier(Classifier):
    """Encodes two texts separately, and compares each word with what it attends to in the other (Parikh et al., 2016).

    b̂_i = attention(a_i, b),  c_i = relu(W [a_i; b̂_i; a_i − b̂_i; a_i ∘ b̂_i]), and the same from b to a; mean and
    maximum of all c go to the classifier. This attention never has projections: the difference of two vectors is
    meaningful only in one space, where equal words match before any training.
    """

    def __init__(self, cell: config.Model, how: TaskSettings, vocabulary: int, outputs: int) -> None:
        super().__init__(cell, how, vocabulary, outputs)
        self.between = Attention(
            query_width=self.width,
            memory_width=self.width,
            heads=resolved(cell.attention.heads),
            score=resolved(cell.attention.score),
            project=False,
            dropout=cell.attention.dropout,
        )
        self.compare = nn.Linear(4 * self.width, self.width)

    def _classifier(self, outputs: int) -> nn.Module:
        return _hidden(4 * self.width, self.width, outputs, self.cell.dropout)

    def texts(self, source: Tensor) -> tuple[Tensor, ...]:
        """Return the two texts."""
        return split_pair(source)

    def features(self, source: Tensor) -> Tensor:
        """Compare every word with the other text, and pool both directions: B×4D."""
        one, other = (self.encode(text) for text in split_pair(source))
        return torch.cat([self._compared(one, other), self._compared(other, one)], dim=1)

    def _compared(self, one: Memory, other: Memory) -> Tensor:
        """Compare one text B×S×D with the other B×R×D: B×2D."""
        found = self.between(one.states, other.states, other.mask[:, None, None, :])  # B×S×D
        both = torch.cat([one.states, found, one.states - found, one.states * found], dim=2)  # B×S×4D
        compared = torch.relu(self.compare(both))  # B×S×D
        return torch.cat([mean_state(compared, one.mask), largest_state(compared, one.mask)], dim=1)


def split_pair(source: Tensor) -> tuple[Tensor, Tensor]:
    """Split sources B×S at the separator into two texts, each from BOS to EOS: B×S and B×R.

    The second text of a source without a separator is empty.
    """
    rows, length = source.shape
    places = torch.arange(length, device=source.device).expand(rows, -1)  # B×S
    ends = (source != PAD).sum(1, keepdim=True) - 1  # B×1: position of EOS
    divides = source == SEP
    cut = torch.where(divides.any(1, keepdim=True), divides.int().argmax(1, keepdim=True), ends)  # B×1
    first = source.masked_fill(places >= cut, PAD).masked_fill(places == cut, EOS)
    there = places + cut  # B×S: position of each token of the second text
    second = source.gather(1, there.clamp(max=length - 1)).masked_fill(there > ends, PAD)
    second = torch.where(there == cut, BOS, second)
    second = torch.where((cut == ends) & (places == 1), EOS, second)
    return first[:, : int(cut.max()) + 1], second[:, : max(2, int((ends - cut).max()) + 1)]


def _hidden(width_in: int, width: int, outputs: int, dropout: float) -> nn.Module:
    return nn.Sequential(nn.Linear(width_in, width), nn.ReLU(), Dropout(dropout), nn.Linear(width, outputs))


def build_classifier(cell: config.Model, how: TaskSettings, vocabulary: int, outputs: int, *, texts: int) -> Classifier:
    """Build the classifier of a resolved configuration, initialised from torch's global generator."""
    kinds: dict[str, type[Classifier]] = {
        "joined": Classifier,
        "apart": PairCompareClassifier,
        "attended": PairAttendClassifier,
    }
    several = texts > 1 and isinstance(how, PooledTask)
    return (kinds[how.pairs] if several else Classifier)(cell, how, vocabulary, outputs)  # type: ignore[attr-defined]
