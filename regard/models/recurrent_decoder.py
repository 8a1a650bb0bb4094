"""The recurrent decoder, with every way to condition it on the source.

Axes: B batch, T target positions, E embedding width, D width, C context width.
"""

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved, width_of
from regard.models.decoder import Choose, Decoder
from regard.models.memory import DecodingState, Memory
from regard.models.parts import Entrance, source_attention
from regard.nn.attention import Attention, KeyValues
from regard.nn.dropout import Dropout
from regard.nn.embeddings import TokenEmbedding
from regard.nn.recurrence import make_recurrence
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class RnnDecoder(Decoder):
    """A stack of recurrent layers over the target, conditioned on the source by its join.

    Fixed vector v: h₀ = v (`initial`), h₀ = tanh(W v) (`transformed`), or v concatenated to every input (`every-step`).
    Attention before the recurrence (Bahdanau et al., 2015): h_{t-1} is the query for the context c_t, which is
    concatenated to the input.
    Attention after it (Luong et al., 2015): h_t is the query for c_t; with input feeding, the output is concatenated to
    the next input. With attention, h₀ = tanh(W v) too, and the output is tanh(W [h_t; c_t]). Without a join, h₀ = 0.
    """

    def __init__(self, cell: config.Model, part: config.RnnDecoder, vocabulary: int) -> None:
        super().__init__()
        width, out = resolved(part.width), resolved(cell.embeddings.width)
        source_width = width_of(cell.encoder) if cell.encoder else 0
        join = cell.join
        self.form = join.form if isinstance(join, config.FixedJoin) else "transformed" if join else None
        self.order = join.order if isinstance(join, config.AttentionJoin) else None
        self.feeding = isinstance(join, config.AttentionJoin) and bool(join.input_feeding)
        self.embedding = TokenEmbedding(vocabulary, out, scaled=cell.embeddings.scale)
        self.entrance = Entrance(cell, None, positions=False)
        self.source_attention = source_attention(cell, width, "decoder.source_attention")
        context = self.source_attention.out_width if self.source_attention is not None else 0
        extra = {"before": context, "after": out if self.feeding else 0, None: 0}[self.order]
        extra += source_width if self.form == "every-step" else 0
        self.layers = Stack(
            make_recurrence(part.cell, width if depth else out + extra, width) for depth in range(part.layers)
        )
        self.first = nn.Linear(source_width, sum(self._state_widths)) if self.form == "transformed" else None
        self.states = Stack(Tap(time=1) for _ in range(part.layers))
        self.readout = nn.Linear(width + context, out) if self.source_attention is not None or width != out else None
        self.dropout = Dropout(cell.dropout)
        self.output = Tap(time=1)

    @property
    def _state_widths(self) -> list[int]:
        return [layer.state_width for layer in self.layers]

    def _first_states(self, vector: Tensor) -> list[Tensor]:
        """Return the initial state of each layer, computed from the summary of the source B×D."""
        if self.first is not None:
            return list(torch.split(torch.tanh(self.first(vector)), self._state_widths, dim=1))
        if self.form == "initial":  # an LSTM's cell state starts from the same vector as its hidden state
            return [vector.repeat(1, wide // vector.shape[1]) for wide in self._state_widths]
        return [vector.new_zeros(len(vector), wide) for wide in self._state_widths]

    def start(self, memory: Memory) -> DecodingState:
        """Return the decoding state with the initial recurrent states and the source's keys and values."""
        source = {"mask": memory.mask}
        past = {f"{depth}": state for depth, state in enumerate(self._first_states(memory.summary))}
        if self.form == "every-step":
            source["summary"] = memory.summary
        if self.source_attention is not None:
            found = self.source_attention.key_values(memory.states)
            source |= {"keys": found.keys.contiguous(), "values": found.values.contiguous()}
        if self.feeding:
            past["fed"] = memory.summary.new_zeros(len(memory.summary), self.embedding.weight.shape[1])
        return DecodingState(0, source, past)

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B; return its output state B×E and the new decoding state."""
        entered = self.entrance(self.embedding(tokens[:, None]), state.position)[:, 0]  # B×E
        return self._step(entered, state)

    def _step(self, entered: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Run one step of the recurrence on an input vector B×E."""
        past: dict[str, Tensor] = {}
        extra, context = self._extra_inputs(state), None
        if self.source_attention is not None and self.order == "before":
            top = state.past[f"{len(self.layers) - 1}"][:, : self.layers[-1].width]
            context = self._attend(self.source_attention, top[:, None], state)[:, 0]  # B×C
            extra.append(context)
        hidden = torch.cat([entered, *extra], dim=1)
        for depth, (layer, tap) in enumerate(zip(self.layers, self.states, strict=True)):
            hidden = self.dropout(hidden) if depth else hidden
            past[f"{depth}"] = layer.step(hidden, state.past[f"{depth}"])
            hidden = tap(past[f"{depth}"][:, None, : layer.width])[:, 0]
        if self.source_attention is not None and self.order == "after":
            context = self._attend(self.source_attention, hidden[:, None], state)[:, 0]  # B×C
        output = self._read_out(hidden[:, None], None if context is None else context[:, None])[:, 0]  # B×E
        if self.feeding:
            past["fed"] = output
        return output, state.advance(past)

    def forward(self, memory: Memory, inputs: Tensor, choose: Choose | None = None) -> Tensor:
        """Return the output states B×T×E; layer by layer unless a step needs the previous step's output."""
        state = self.start(memory)
        if choose is None and self.order != "before" and not self.feeding:
            return self._sweep(inputs, state)
        entered = self.entrance(self.embedding(inputs))  # B×T×E
        output, state = self._step(entered[:, 0], state)
        outputs = [output]
        for t in range(1, inputs.shape[1]):
            if choose is None:
                output, state = self._step(entered[:, t], state)
            else:
                output, state = self.step(choose(output.detach(), inputs[:, t]), state)
            outputs.append(output)
        return torch.stack(outputs, dim=1)  # B×T×E

    def _sweep(self, inputs: Tensor, state: DecodingState) -> Tensor:
        """Run each layer over all positions: B×T×E."""
        hidden = self.entrance(self.embedding(inputs))  # B×T×E
        extra = [vector[:, None].expand(-1, inputs.shape[1], -1) for vector in self._extra_inputs(state)]
        hidden = torch.cat([hidden, *extra], dim=2)
        for depth, (layer, tap) in enumerate(zip(self.layers, self.states, strict=True)):
            hidden = tap(layer(self.dropout(hidden) if depth else hidden, state.past[f"{depth}"]))  # B×T×D
        context = None if self.source_attention is None else self._attend(self.source_attention, hidden, state)
        return self._read_out(hidden, context)

    def _extra_inputs(self, state: DecodingState) -> list[Tensor]:
        """Return the vectors concatenated to the input, except the context: the source vector, the last output."""
        fed = state.past.get("fed")
        vectors = [state.of_source("summary")] if "summary" in state.source else []
        return vectors if fed is None else [*vectors, fed]

    def _attend(self, attention: Attention, queries: Tensor, state: DecodingState) -> Tensor:
        """Attend to the source with queries B×T×D: B×T×C."""
        source = state.source
        mask = source["mask"][:, None, None, :]  # B×1×1×S
        known = KeyValues(source["keys"], source["values"], rows=state.source_rows)
        found: Tensor = attention(queries, known, mask)
        return found

    def _read_out(self, hidden: Tensor, context: Tensor | None) -> Tensor:
        """Compute the output states B×T×E from recurrent states B×T×D and the context B×T×C."""
        if self.readout is not None:
            joined = hidden if context is None else torch.cat([hidden, context], dim=2)
            hidden = torch.tanh(self.readout(joined))
        result: Tensor = self.dropout(self.output(hidden))
        return result
