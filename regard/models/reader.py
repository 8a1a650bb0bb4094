"""The end that reads: token vectors and an encoder, for models that write nothing.

Axes: B batch, S source positions, T answers, E embedding width, D width, F width of outputs, C classes.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import settled, width_of
from regard.models.components import make_encoder, reads_tokens
from regard.models.memory import Memory
from regard.nn.dropout import Dropout
from regard.nn.embeddings import TokenEmbedding
from regard.text.specials import PAD


class Reader(nn.Module):
    """source → `Memory`, with any encoder of the grid; what is said of it is read off `outputs`."""

    pools: ClassVar[bool] = False
    """Whether states are pooled or compared before dropout, which then stands behind the pooling (see `Encoder`)."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__()
        self.cell = cell
        self.width = width_of(cell.encoder)
        if reads_tokens(cell):
            width = settled(cell.embeddings.width)
            self.source_embedding = TokenEmbedding(vocabulary, width, scaled=cell.embeddings.scale)
        self.encoder = make_encoder(cell, drop_states=not self.pools)

    def encode(self, source: Tensor) -> Memory:
        """Read source tokens B×S, or whatever else the encoder reads."""
        if not self.encoder.reads_tokens:
            memory: Memory = self.encoder(source)
        else:
            memory = self.encoder(self.source_embedding(source), source != PAD)
        return memory

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.parameters()).device

    def texts(self, source: Tensor) -> tuple[Tensor, ...]:
        """Sources B×S as they are encoded: whole, or in texts that are read apart."""
        return (source,)

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """What the answers about sources B×S are read off, one for each place asked for B×T: B×T×F."""
        raise NotImplementedError

    def scores(self, outputs: Tensor) -> Tensor:
        """The answers' scores …×C of outputs …×F."""
        raise NotImplementedError


class Chooser(Reader):
    """A reader whose answer is one of a few, or a number: P = softmax(classifier(outputs) / temperature)."""

    dropout: Dropout
    classifier: nn.Module
    temperature: Tensor
    """Scores are divided by it before they become probabilities; fitted when training is done (Guo et al., 2017)."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__(cell, vocabulary)
        self.register_buffer("temperature", torch.ones(()))

    def learnt_scores(self, outputs: Tensor) -> Tensor:
        """Scores …×C of outputs …×F as they are learnt, before any temperature: what the loss is of."""
        scores: Tensor = self.classifier(self.dropout(outputs))
        return scores

    def tempered(self, scores: Tensor) -> Tensor:
        """Such scores …×C as those whose softmax is told to anybody."""
        return scores / self.temperature.to(scores)

    def scores(self, outputs: Tensor) -> Tensor:
        """Scores …×C of outputs …×F, whose softmax is what the model believes."""
        return self.tempered(self.learnt_scores(outputs))


def at(states: Tensor, places: Tensor) -> Tensor:
    """The states B×S×D at some places B×T: B×T×D."""
    return states.gather(1, places[:, :, None].expand(-1, -1, states.shape[2]))
