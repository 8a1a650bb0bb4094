"""Single steps of an LSTM with attention, for one source: what does not depend on the step is computed before.

Axes: A rows of the search, S source positions, D width, E embedding width, V vocabulary.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from regard.models import Model
from regard.models.recurrent_decoder import RnnDecoder
from regard.nn.recurrence import RecurrentLayer
from regard.search.steps import ModelSteps, Source

LARGEST = 16_000_000
"""Numbers in the table of inputs, V·4D: 64 MB."""


@dataclass(frozen=True)
class RecurrentState:
    """The state of each row, and the source that all rows share."""

    hidden: Tensor
    """A×D."""
    cell: Tensor
    """A×D."""
    keys: Tensor
    """Multiplied with a hidden state, it gives the scores of the source positions: D×S."""
    values: Tensor
    """What each source position adds to the output: S×E."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of these rows in this order; rows may repeat."""
        hidden, cell = self.hidden.index_select(0, rows), self.cell.index_select(0, rows)
        return type(self)(hidden, cell, self.keys, self.values)


class RecurrentSteps:
    """Computes the same as `ModelSteps` of an LSTM decoder with one layer and attention after it (Luong et al., 2015).

    The products of the input weights with all embeddings are a table, the map of queries is multiplied into the keys,
    and the map of contexts into the values. No tap sees these steps.
    """

    def __init__(self, model: Model) -> None:
        if not can_prepare(model):
            raise ValueError("the model is no LSTM of one layer with attention after it")
        self.model, decoder = model, model.decoder
        assert isinstance(decoder, RnnDecoder)
        assert decoder.readout is not None
        assert decoder.source_attention is not None
        layer, self.score = decoder.layers[0], decoder.source_attention.score
        assert isinstance(layer, RecurrentLayer)
        self.width = layer.width
        with torch.no_grad():
            tokens = torch.arange(len(model.output_bias), device=model.device)
            inputs = decoder.entrance(decoder.embedding(tokens[:, None]))[:, 0]  # V×E
            bias = layer.input_bias + layer.state_bias
            self.inputs = torch.addmm(bias, inputs, layer.input_weight.t())  # V×4D
            self.recurrent = layer.state_weight.t().contiguous()  # D×4D
            self.readout = decoder.readout.weight[:, : self.width].t().contiguous()  # D×E
            self.of_context = decoder.readout.weight[:, self.width :].t().contiguous()  # C×E
            self.readout_bias = decoder.readout.bias.detach()
            self.output = model.output_weight.t().contiguous()  # E×V
            self.output_bias = model.output_bias.detach()
            self.queries = self.score.prepare_queries(torch.eye(self.width, device=model.device)[None, None])[0, 0]

    def start(self, source: Source) -> RecurrentState:
        """Encode the source, of which there must be one."""
        if len(source) != 1:
            raise ValueError(f"the steps are prepared for one source, not for {len(source)}")
        state = ModelSteps(self.model).start(source)
        keys, values = state.source["keys"][0, 0], state.source["values"][0, 0]  # S×C
        first = state.past["0"]  # 1×2D
        scores = (self.queries @ keys.t()) * (self.score.scale or 1.0)  # D×S
        return RecurrentState(first[:, : self.width], first[:, self.width :], scores, values @ self.of_context)

    def step(self, tokens: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Return the log-probabilities A×V of the next token and the new state."""
        gates = torch.addmm(self.inputs.index_select(0, tokens), state.hidden, self.recurrent)  # A×4D
        enter, keep, new, leave = gates.chunk(4, dim=1)  # A×D each
        cell = torch.sigmoid(keep) * state.cell + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
        weights = (hidden @ state.keys).softmax(dim=1)  # A×S
        output = torch.addmm(self.readout_bias, hidden, self.readout).addmm_(weights, state.values).tanh_()  # A×E
        logits = torch.addmm(self.output_bias, output, self.output)  # A×V
        return torch.log_softmax(logits, dim=1), RecurrentState(hidden, cell, state.keys, state.values)


def can_prepare(model: object) -> bool:
    """Return whether `RecurrentSteps` can compute the steps of a model."""
    if not isinstance(model, Model) or not isinstance(model.decoder, RnnDecoder) or model.copying is not None:
        return False
    decoder, layer = model.decoder, model.decoder.layers[0]
    attention = decoder.source_attention
    return (
        len(decoder.layers) == 1
        and isinstance(layer, RecurrentLayer)
        and layer.cell == "lstm"
        and layer.input_weight.dtype == torch.float32
        and len(model.output_bias) * 4 * layer.width <= LARGEST
        and (decoder.order, decoder.feeding) == ("after", False)
        and decoder.readout is not None
        and attention is not None
        and attention.heads == 1
        and (attention.query, attention.out, attention.distances, attention.window) == (None, None, None, None)
        and attention.score.scale is not None
    )
