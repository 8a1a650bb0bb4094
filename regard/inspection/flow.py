"""From the mixing inside each layer to what the whole model passes from its inputs to each output.

Axes: S source tokens, T target tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.foundation.errors import UsageError
from regard.inspection.decomposition import Block, nearness
from regard.inspection.influence import Influence
from regard.models import Model
from regard.models.encoders import BagEncoder, RnnEncoder, TransformerEncoder
from regard.models.transformer_decoder import TransformerDecoder
from regard.tasks.trace import NO_DECODER, SOURCE_ATTENTION, Trace

Measure = Callable[[Block, Tensor], Tensor]
"""(a block, what its attention found T×D) → shares T×N, a last column for the residual of blocks that read others."""


@dataclass(frozen=True)
class Mixing:
    """What a decoder layer makes of the positions below it; rows of `past`, and of `source` and `kept`, sum to one."""

    past: Tensor
    """T×T: the positions before it, and its own."""
    source: Tensor | None
    """T×S: the encoder's positions; None if the layer does not attend to them."""
    kept: Tensor
    """T: what is left of the target's own when the source has been read."""


@dataclass(frozen=True)
class Layers:
    """How every layer of a model mixes positions, by one measure."""

    encoder: list[Tensor]
    """S×S each, from the bottom."""
    entered: tuple[Tensor, Tensor]
    """T×S and T×T: what enters the decoder at the bottom: the source too, if the join is a fixed vector."""
    decoder: list[Mixing]

    def roll(self) -> tuple[Tensor, Tensor]:
        """The whole way: what each output got from the source T×S and from the prefix T×T; rows sum to one.

            E = C_L ⋯ C_1,   s ← k ⊙ (P s) + X E,   p ← k ⊙ (P p)

        (ALTI+; Ferrando et al., 2022: X the shares of the source, P of the past, k of the target's own state.)
        """
        source, prefix = self.entered
        read = torch.eye(source.shape[1]).to(source)  # S×S
        for mixing in self.encoder:
            read = mixing @ read
        source = source @ read
        for layer in self.decoder:
            source, prefix = (layer.kept[:, None] * (layer.past @ reached) for reached in (source, prefix))
            source = source if layer.source is None else source + layer.source @ read
        return source.cpu(), prefix.cpu()


def decompose(trace: Trace) -> Layers:
    """Every attention block decomposed with its residual (ALTI); feed-forward layers mix no positions."""
    return layers(trace, Block.contributions, half=None)


def roll_out(trace: Trace) -> Layers:
    """Mean attention of each layer, half of every position being its own (Abnar and Zuidema, 2020)."""
    return layers(trace, _half_residual, half=0.5)


def attention_flows(trace: Trace) -> list[Influence]:
    """Contributions, rollout and the attention itself; for models without decomposition the attention alone, if any."""
    found = []
    if not why_not_applicable(trace):
        source, prefix = decompose(trace).roll()
        found.append(Influence("contributions (ALTI+)", source, prefix, signed=False, note=CONTRIBUTIONS))
        source, prefix = roll_out(trace).roll()
        found.append(Influence("attention rollout", source, prefix, signed=False, note=ROLLOUT, splits=False))
    to_source = [weights for weights in trace.matching(SOURCE_ATTENTION).values() if len(weights)]
    if to_source:
        past = [weights for weights in trace.matching("decoder.layers.*.attention.weights").values() if len(weights)]
        mean = torch.cat(to_source).mean(0)  # T×S
        inside = torch.cat(past).mean(0) if past else torch.zeros(len(trace.target), len(trace.target))  # T×T
        share = 0.5 if past else 1.0
        raw = Influence("attention", mean * share, inside * share, signed=False, note=ATTENTION, splits=False)
        found.append(raw)
    return found


CONTRIBUTIONS = (
    "How much nearer each token brings the states that led to the output, block by block with the residual; "
    "feed-forward layers, which mix no positions, are left out. A row sums to one."
)
ROLLOUT = (
    "Mean attention of each layer, half of every position being its own, multiplied through all layers. Its source "
    "share is the same for every word, 1 − ½ᴸ in L decoder layers, and is not informative."
)
ATTENTION = (
    "Mean of all heads and layers. Attention to the source and inside the target are two things that each sum to one: "
    "they are shown at half their size, and say nothing about source against prefix."
)


def why_not_applicable(trace: Trace) -> str | None:
    """Return why the contributions of a model cannot be computed, in a sentence; None if they can."""
    if not isinstance(trace.model, Model):
        return NO_DECODER
    if not len(trace.source):
        return f"A language model has no source that its words could come from: {INSTEAD}"
    return why_not_decomposable(trace.model)


INSTEAD = "`regard inspect attribute` answers the same question for every model."


def why_not_decomposable(model: Model) -> str | None:
    """Return why the blocks of a model that has a source cannot be decomposed, in a sentence; None if they can."""
    if not isinstance(model.decoder, TransformerDecoder):
        return f"Contributions are read from the blocks of a Transformer decoder, which this model lacks: {INSTEAD}"
    if model.decoder.fixed is not None and isinstance(model.encoder, RnnEncoder):
        return (
            "The single vector of a recurrent encoder is not a sum over source tokens, so their contributions to it "
            f"cannot be separated: {INSTEAD}"
        )
    return None


def layers(trace: Trace, measure: Measure, half: float | None = None) -> Layers:
    """How every layer mixes, each block by a measure; `half` is the share of a fixed vector, if not measured too."""
    why = why_not_applicable(trace)
    if why:
        raise UsageError(why)
    with torch.no_grad():
        return Layers(_encoder(trace, measure), _entered(trace, half), _decoder(trace, measure))


def _half_residual(block: Block, found: Tensor) -> Tensor:
    """Mean weights and the residual, half each: T×N, or T×(N+1); the residual alone, where no head is left."""
    mean = block.weights.sum(0) / (2 * max(1, len(block.weights)))  # T×N
    rest = 1 - mean.sum(-1)  # T
    return mean + torch.diag(rest) if block.own else torch.cat([mean, rest[:, None]], dim=1)


def _encoder(trace: Trace, measure: Measure) -> list[Tensor]:
    """How the encoder mixes: S×S each; nothing, where its layers are no attention blocks."""
    encoder = trace.writer.encoder
    if not isinstance(encoder, TransformerEncoder):
        return []
    found = []
    states = encoder.entrance.linear(_activation(trace, "encoder.entrance.embedded"))
    for depth, layer in enumerate(encoder.layers):
        name = f"encoder.layers.{depth}"
        weights, output = (
            _activation(trace, f"{name}.attention.weights"),
            _activation(trace, f"{name}.attention.output"),
        )
        block = Block.of_self(layer.attention, weights, states, layer.attention_norm, pre=layer.pre)
        found.append(measure(block, output))
        states = _activation(trace, f"{name}.states")
    return found


def _decoder(trace: Trace, measure: Measure) -> list[Mixing]:
    """How each layer of the decoder mixes."""
    memory, (_, states) = _memory(trace), _bottom(trace)
    found = []
    for depth, layer in enumerate(_transformer(trace).layers):
        name = f"decoder.layers.{depth}"
        weights, output = (
            _activation(trace, f"{name}.attention.weights"),
            _activation(trace, f"{name}.attention.output"),
        )
        block = Block.of_self(layer.attention, weights, states, layer.attention_norm, pre=layer.pre)
        past = measure(block, output)
        kept, source = past.new_ones(len(past)), None
        if layer.source_attention is not None and layer.source_norm is not None:
            middle, norm = block.output(output), layer.source_norm
            weights, output = (_activation(trace, f"{name}.source_attention.{tap}") for tap in ("weights", "output"))
            across = Block.of_source(layer.source_attention, weights, memory, middle, norm, pre=layer.pre)
            shares = measure(across, output)  # T×(S+1)
            source, kept = shares[:, :-1], shares[:, -1]
        found.append(Mixing(past, source, kept))
        states = _activation(trace, f"{name}.states")
    return found


def _entered(trace: Trace, half: float | None) -> tuple[Tensor, Tensor]:
    """What is at the bottom of the decoder, as shares T×S of the source and T×T of the prefix."""
    parts, whole = _bottom(trace)
    source, own = whole.new_zeros(len(trace.target), len(trace.source)), torch.eye(len(trace.target)).to(whole)
    fixed = _transformer(trace).fixed
    if fixed is not None:
        reached = len(whole) if fixed.everywhere else 1
        shares = nearness(parts, whole)[:reached]  # …×(S+1)
        if half is not None:  # the vector and the token, half each
            shares = torch.full_like(shares, half / len(trace.source))
            shares[:, -1] = 1 - half
        source[:reached], own[:reached] = shares[:, :-1], own[:reached] * shares[:, -1:]
    return source, own


def _bottom(trace: Trace) -> tuple[Tensor, Tensor]:
    """What a fixed vector's source tokens and the own token bring, T×(S+1)×D, and the first states T×D."""
    decoder, encoder, memory = _transformer(trace), trace.writer.encoder, _memory(trace)
    tokens = decoder.entrance.linear(_activation(trace, "decoder.entrance.embedded"))  # T×D
    if decoder.fixed is None:
        return tokens[:, None], tokens
    pooled = memory if isinstance(encoder, BagEncoder) and encoder.pool == "sum" else memory / len(memory)  # S×D
    linear = decoder.fixed.linear
    brought = pooled @ linear.weight.T if isinstance(linear, nn.Linear) else pooled  # S×D
    parts = torch.cat([brought.expand(len(tokens), -1, -1), tokens[:, None]], dim=1)  # T×(S+1)×D
    return parts, decoder.fixed(tokens[None], pooled.sum(0)[None], 0)[0]


def _memory(trace: Trace) -> Tensor:
    """What the encoder left: S×D."""
    encoder = trace.writer.encoder
    if isinstance(encoder, TransformerEncoder):
        states: Tensor = encoder.norm(_activation(trace, f"encoder.layers.{len(encoder.layers) - 1}.states"))
        return states
    *_, last = trace.matching("encoder.states*")
    return _activation(trace, last)


def _transformer(trace: Trace) -> TransformerDecoder:
    decoder = trace.writer.decoder
    assert isinstance(decoder, TransformerDecoder)  # see `lacking`
    return decoder


def _activation(trace: Trace, name: str) -> Tensor:
    """An activation where the model is."""
    return trace.activations[name].to(trace.model.device)
