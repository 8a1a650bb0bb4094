"""Direct logit attribution: the logit difference of two words as a sum over the blocks of a decoder.

Axes: C components, T target tokens, H heads, K head width, D width, E embedding width, V vocabulary.
"""

import torch
from torch import Tensor, nn

from regard.foundation.errors import UsageError
from regard.inspection.analyses.direct.result import DirectAttribution
from regard.models import Model
from regard.models.transformer_decoder import TransformerDecoder
from regard.nn.attention import Attention
from regard.tasks.trace import Trace

REST = "biases"
"""What does not depend on any block: biases of the final norm and of the output layers."""


def direct(trace: Trace, *, heads: bool = False) -> DirectAttribution:
    """Decompose log P(word) − log P(runner-up) at every target position into what each block adds.

    With x = Σ_c x_c the residual stream after the last layer and σ its norm, the difference of two logits is
    Σ_c (γ (x_c − mean x_c) / σ) · d plus a constant, where d is the difference of two rows of the output layer; the
    norm is treated as linear with σ fixed (Elhage et al., 2021). RMSNorm has no mean.
    """
    model = trace.model
    decoder = model.decoder if isinstance(model, Model) else None
    if not isinstance(model, Model) or not isinstance(decoder, TransformerDecoder) or not decoder.layers[0].pre:
        raise UsageError("Direct logit attribution is for pre-norm Transformer decoders.")
    names, parts = _components(trace, decoder, heads=heads)
    stream = torch.stack(parts)  # C×T×D
    words = torch.tensor(trace.target.ids)
    others = trace.log_probabilities.scatter(1, words[:, None], float("-inf")).argmax(1)  # T
    weight, bias = (value.detach().double().cpu() for value in (model.output_weight, model.output_bias))
    direction = weight[words] - weight[others]  # T×E
    constant = bias[words] - bias[others]  # T
    if isinstance(decoder.exit.linear, nn.Linear):
        constant = constant + direction @ decoder.exit.linear.bias.detach().double().cpu()
        direction = direction @ decoder.exit.linear.weight.detach().double().cpu()  # T×D
    scaled, shift = _normalise(decoder.norm, stream)
    values = (scaled * direction).sum(-1)  # C×T
    constant = constant + direction @ shift
    chosen = trace.log_probabilities.gather(1, torch.stack([words, others], 1)).double()
    return DirectAttribution(
        target=trace.target,
        components=[*names, REST],
        values=torch.cat([values, constant[None]]).T.contiguous(),
        differences=chosen[:, 0] - chosen[:, 1],
        others=_texts(trace, others),
    )


def _components(trace: Trace, decoder: TransformerDecoder, *, heads: bool) -> tuple[list[str], list[Tensor]]:
    """Return the names of the blocks and what each wrote to the residual stream: T×D."""
    seen = {name: value.double() for name, value in trace.matching("decoder.*").items()}
    first = "decoder.layers.0"
    names, parts = ["embedding"], [seen[f"{first}.after_attention"] - seen[f"{first}.attention.output"]]
    for number, layer in enumerate(decoder.layers):
        path = f"decoder.layers.{number}"
        before = seen[f"{path}.after_attention"]
        blocks = [("self", f"{path}.attention", layer.attention)]
        if layer.source_attention is not None:
            blocks.append(("source", f"{path}.source_attention", layer.source_attention))
            before = seen[f"{path}.after_source_attention"]
        for block, tap, attention in blocks:
            if heads:
                found = _by_head(attention, seen[f"{tap}.head_outputs"], seen[f"{tap}.output"])
                names += [f"L{number} {block} {part}" for part in found]
                parts += found.values()
            else:
                names.append(f"L{number} {block} attention")
                parts.append(seen[f"{tap}.output"])
        names.append(f"L{number} feed-forward")
        parts.append(seen[f"{path}.states"] - before)
    return names, parts


def _by_head(attention: Attention, outputs: Tensor, whole: Tensor) -> dict[str, Tensor]:
    """Return what each head wrote, T×D, from its output H×T×K; the bias of the projection is a part of its own."""
    found = {}
    for head in range(len(outputs)):
        columns = slice(head * outputs.shape[2], (head + 1) * outputs.shape[2])
        if attention.out is None:
            part = torch.zeros_like(whole)
            part[:, columns] = outputs[head]
        else:
            part = outputs[head] @ attention.out.weight.detach().double().cpu()[:, columns].T
        found[f"head {head}"] = part
    if attention.out is not None:
        found["bias"] = attention.out.bias.detach().double().cpu().expand_as(whole)
    return found


def _normalise(norm: nn.Module, stream: Tensor) -> tuple[Tensor, Tensor]:
    """Return the components C×T×D as the final norm scales them, and its bias D."""
    whole, weight = stream.sum(0), norm.weight.detach().double().cpu()  # type: ignore[operator]
    if isinstance(norm, nn.LayerNorm):
        scale = (whole.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
        return (stream - stream.mean(-1, keepdim=True)) / scale * weight, norm.bias.detach().double().cpu()
    epsilon = norm.eps if isinstance(norm, nn.RMSNorm) and norm.eps is not None else torch.finfo(torch.float32).eps
    scale = (whole.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return stream / scale * weight, torch.zeros_like(weight)


def _texts(trace: Trace, tokens: Tensor) -> list[str]:
    """Return tokens as text."""
    names = trace.tokenizer.vocabulary if trace.tokenizer is not None else None
    return [names[token] if names is not None else str(token) for token in tokens.tolist()]
