"""Export of a run as a CTranslate2 model.

Axes: V vocabulary, E embedding width, T positions, K head width.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config.cell import resolved
from regard.config.model import Model, TransformerDecoder, TransformerEncoder
from regard.formats.ctranslate2_library import check_type, library, supports, unique_names
from regard.formats.heads import whole_heads
from regard.formats.marian import check_attention, refuse_task
from regard.formats.place import fresh_directory
from regard.foundation.errors import RegardError
from regard.nn.positions import sinusoids
from regard.runs.run import Run
from regard.tasks.vocabularies import load_tokenizers
from regard.text.specials import BOS, EOS, MASK, PAD, SEP, SPECIALS, UNK

POSITIONS = 1024
"""Smallest number of sinusoidal positions in the table that CTranslate2 needs."""
NEVER = -1e9
"""Bias of the tokens that search never generates: padding, `<s>`, `<sep>` and `<mask>`."""
RMS_EPSILON = 1e-6
"""Epsilon of RMSNorm, the same in both."""

Weights = Mapping[str, Tensor]


def export_ctranslate2(run: Run, directory: Path, quantize: str | None = None) -> list[str]:
    """Write the run's model for CTranslate2; return remarks as whole sentences."""
    check_type(quantize or "float32")
    library()
    with fresh_directory(directory) as place:
        write_ctranslate2(run, place, quantize or "float32")
    notes = [f'{directory}: {quantize or "float32"}, as ctranslate2.Translator("{directory}") loads it.']
    if quantize is not None and not supports(quantize):
        notes.append(f"This processor does not support {quantize}; another type will be used on it.")
    return notes


def write_ctranslate2(run: Run, place: Path, quantize: str) -> None:
    """Fill an empty directory with the run's model."""
    config = run.config
    refuse_task(config.task, "CTranslate2")
    source, target = load_tokenizers(run.tokenizers)
    check_cell(config.model)
    weights = run.read_weights({"source": source.fingerprint, "target": target.fingerprint})
    longest = max(POSITIONS, config.data.cleaning.max_length + 2, config.decoding.max_length + 2)
    spec = _spec(config.model, whole_heads(config.model, weights), longest)
    spec.register_source_vocabulary(unique_names(source.vocabulary))
    spec.register_target_vocabulary(unique_names(target.vocabulary))
    spec.config.bos_token, spec.config.eos_token = SPECIALS[BOS], SPECIALS[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = SPECIALS[UNK], SPECIALS[BOS]
    spec.config.add_source_eos = True
    norm = _side(config.model.encoder).norm
    spec.config.layer_norm_epsilon = config.model.norm_epsilon if norm == "layer" else RMS_EPSILON
    spec.validate()
    spec.optimize(quantization=quantize)
    spec.save(str(place))


def check_cell(cell: Model) -> None:
    """Raise, with the setting, if CTranslate2 does not support a model."""
    for name, side in (("encoder", cell.encoder), ("decoder", cell.decoder)):
        if not isinstance(side, TransformerEncoder | TransformerDecoder):
            raise _unsupported(f"model.{name}.kind `{side.kind if side else None}`")
        if side.width != cell.embeddings.width:
            raise _unsupported(f"model.{name}.width {side.width} with embeddings {cell.embeddings.width} wide")
    if _side(cell.encoder).norm != _side(cell.decoder).norm:
        raise _unsupported("different norms on the two sides")
    check_attention(cell, "CTranslate2's Transformer")
    kind = resolved(cell.positions).kind
    if kind not in ("sinusoidal", "learned", "none", "rotary"):
        raise _unsupported(f"model.positions.kind `{kind}`")


def _unsupported(part: str) -> RegardError:
    return RegardError(f"CTranslate2 does not support this model: it has no {part}.")


def _side(side: Any) -> TransformerEncoder | TransformerDecoder:
    assert isinstance(side, TransformerEncoder | TransformerDecoder)
    return side


def _spec(cell: Model, weights: Weights, longest: int) -> Any:
    from ctranslate2.specs import common_spec, transformer_spec

    activations = {
        "relu": common_spec.Activation.RELU,
        "gelu": common_spec.Activation.GELU,
        "silu": common_spec.Activation.SWISH,
        "swiglu": common_spec.Activation.SWISH,
    }
    heads, positions = resolved(cell.attention.heads), resolved(cell.positions)
    rotary: dict[str, Any] = {}
    if positions.kind == "rotary":
        width = resolved(_side(cell.decoder).width) // heads
        base = 10_000.0 * (positions.ntk ** (width / (width - 2)) if width > 2 else 1.0)
        rotary = {"rotary_dim": width, "rotary_interleave": False, "rotary_base": base}

    def how(side: TransformerEncoder | TransformerDecoder) -> dict[str, Any]:
        return {
            "num_layers": side.layers,
            "num_heads": heads,
            "pre_norm": side.norm_place == "pre",
            "activation": activations[side.activation],
            "ffn_glu": side.activation == "swiglu",
            "rms_norm": side.norm == "rms",
            **rotary,
        }

    encoder = transformer_spec.TransformerEncoderSpec(**how(_side(cell.encoder)))
    decoder = transformer_spec.TransformerDecoderSpec(**how(_side(cell.decoder)))
    embedding = weights["decoder.embedding.weight"]  # V×E
    encoder.embeddings[0].weight = weights.get("_source_embedding.weight", embedding)
    decoder.embeddings.weight = embedding
    decoder.projection.weight = weights.get("_output", embedding)
    bias = weights["output_bias"].clone()
    bias[[PAD, BOS, SEP, MASK]] = NEVER
    decoder.projection.bias = bias
    for name, side, spec in (("encoder", cell.encoder, encoder), ("decoder", cell.decoder, decoder)):
        width = resolved(_side(side).width)
        spec.scale_embeddings = width**0.5 if cell.embeddings.scale else 1.0
        if positions.kind != "rotary":
            spec.position_encodings.encodings = _table(positions.kind, weights, name, longest, width)
        if _side(side).norm_place == "pre":
            _norm(spec.layer_norm, weights, f"{name}.norm")
        for depth, layer in enumerate(spec.layer):
            _layer(layer, weights, f"{name}.layers.{depth}", _side(side))
    return transformer_spec.TransformerSpec(encoder, decoder)


def _table(kind: str, weights: Weights, side: str, longest: int, width: int) -> Tensor:
    """Return position vectors T×E."""
    if kind == "learned":
        return weights[f"{side}.entrance.places.weight"]
    return sinusoids(longest, width) if kind == "sinusoidal" else torch.zeros(longest, width)


def _layer(spec: Any, weights: Weights, name: str, side: TransformerEncoder | TransformerDecoder) -> None:
    attention = f"{name}.attention"
    _fuse(spec.self_attention.linear[0], weights, *(f"{attention}.{part}" for part in ("query", "key", "value")))
    _fuse(spec.self_attention.linear[1], weights, f"{attention}.out")
    _norm(spec.self_attention.layer_norm, weights, f"{name}.attention_norm")
    if isinstance(side, TransformerDecoder):
        attention = f"{name}.source_attention"
        _fuse(spec.attention.linear[0], weights, f"{attention}.query")
        _fuse(spec.attention.linear[1], weights, f"{attention}.key", f"{attention}.value")
        _fuse(spec.attention.linear[2], weights, f"{attention}.out")
        _norm(spec.attention.layer_norm, weights, f"{name}.source_norm")
    inner = f"{name}.feed_forward.inner"
    if side.activation == "swiglu":
        halves = [weights[f"{inner}.{kind}"].chunk(2) for kind in ("weight", "bias")]
        for part, linear in enumerate((spec.ffn.linear_0, spec.ffn.linear_0_noact)):
            linear.weight, linear.bias = (half[part].contiguous() for half in halves)
    else:
        _fuse(spec.ffn.linear_0, weights, inner)
    _fuse(spec.ffn.linear_1, weights, f"{name}.feed_forward.outer")
    _norm(spec.ffn.layer_norm, weights, f"{name}.feed_forward_norm")


def _fuse(spec: Any, weights: Weights, *names: str) -> None:
    """Concatenate several linear layers into one."""
    spec.weight = torch.cat([weights[f"{name}.weight"] for name in names])
    spec.bias = torch.cat([weights[f"{name}.bias"] for name in names])


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.beta = weights[f"{name}.bias"]
