"""Models without a decoder: token embeddings, an encoder, and scores of labels.

Axes: B batch, S source positions, T outputs, E embedding width, D width, F width of outputs, C classes.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved, width_of
from regard.models.components import make_encoder, reads_tokens
from regard.models.memory import Memory
from regard.nn.dropout import Dropout
from regard.nn.embeddings import TokenEmbedding
from regard.text.specials import PAD


class EncoderModel(nn.Module):
    """Encodes the source with any encoder; subclasses compute `outputs` from its states and `scores` from these."""

    pools: ClassVar[bool] = False
    """Whether states are pooled or compared; dropout is then applied after pooling (see `Encoder`)."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__()
        self.cell = cell
        self.width = width_of(cell.encoder)
        if reads_tokens(cell):
            width = resolved(cell.embeddings.width)
            self.source_embedding = TokenEmbedding(vocabulary, width, scaled=cell.embeddings.scale)
        self.encoder = make_encoder(cell, drop_states=not self.pools)

    def encode(self, source: Tensor) -> Memory:
        """Encode source tokens B×S, or the tensor of another input."""
        if not self.encoder.reads_tokens:
            memory: Memory = self.encoder(source)
        else:
            memory = self.encoder(self.vectors(source), source != PAD)
        return memory

    def vectors(self, source: Tensor) -> Tensor:
        """Return the vectors B×S×E of source tokens B×S, which the encoder reads."""
        vectors: Tensor = self.source_embedding(source)
        return vectors

    @property
    def device(self) -> torch.device:
        """The device of the model's parameters."""
        return next(self.parameters()).device

    def texts(self, source: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of sources B×S that are encoded separately; by default a single one, the whole source."""
        return (source,)

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """Return the outputs of sources B×S at the positions `asked` B×T: B×T×F."""
        raise NotImplementedError

    def scores(self, outputs: Tensor) -> Tensor:
        """Return the scores …×C of outputs …×F."""
        raise NotImplementedError


class ChoiceModel(EncoderModel):
    """An encoder model that predicts one label or number: P = softmax(classifier(outputs) / temperature)."""

    dropout: Dropout
    classifier: nn.Module
    temperature: Tensor
    """Divides the logits before the softmax; fitted after training (Guo et al., 2017)."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__(cell, vocabulary)
        self.register_buffer("temperature", torch.ones(()))

    def logits(self, outputs: Tensor) -> Tensor:
        """Return the logits …×C of outputs …×F before the temperature, which the loss is computed from."""
        scores: Tensor = self.classifier(self.dropout(outputs))
        return scores

    def apply_temperature(self, scores: Tensor) -> Tensor:
        """Divide logits …×C by the temperature."""
        return scores / self.temperature.to(scores)

    def scores(self, outputs: Tensor) -> Tensor:
        """Return the calibrated scores …×C of outputs …×F; their softmax gives the reported probabilities."""
        return self.apply_temperature(self.logits(outputs))


def gather_positions(states: Tensor, places: Tensor) -> Tensor:
    """Return the states B×S×D at positions B×T: B×T×D."""
    return states.gather(1, places[:, :, None].expand(-1, -1, states.shape[2]))
