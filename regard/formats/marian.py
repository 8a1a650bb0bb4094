"""Mapping between Marian's Transformer and ours: configurations and tensor names.

Two encoder-decoders of Hugging Face are numerically equal to ours: `marian` (Junczys-Dowmunt et al., 2018), with norms
after each block, and `pegasus` (Zhang et al., 2020), with norms before it.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from regard.config.cell import resolve, resolved
from regard.config.model import Attention, Embeddings, Model, Positions, TransformerDecoder, TransformerEncoder
from regard.config.task import TaskSettings
from regard.formats.hub_settings import HubSettings
from regard.foundation.errors import RegardError, UsageError
from regard.text.specials import BOS, EOS, MASK, PAD, SEP

ACTIVATIONS: dict[str, Literal["relu", "gelu", "silu"]] = {
    "relu": "relu",
    "gelu": "gelu",
    "swish": "silu",
    "silu": "silu",
}
"""Our activations by Hugging Face's names."""

UNLIKE = ("normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits")
"""Settings of related models, which must be off."""

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
LAYER = {
    "attention_norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}


def cell_of(config: HubSettings) -> Model:
    """Return the model of a Marian configuration; raises, with the setting, if there is no equivalent."""
    place = config.place
    kind = config.word("model_type", "unknown")
    if kind != "marian":
        raise RegardError(
            f"{place} describes a model of type `{kind}`, but regard import reads only `marian` and `bert`."
        )
    heads = config.integer("encoder_attention_heads", least=1)
    if heads != config.integer("decoder_attention_heads", least=1):
        raise RegardError(
            f"{place} has encoder and decoder with different numbers of heads, which Regard does not support."
        )
    for name in UNLIKE:
        if config.flag(name, False):
            raise RegardError(
                f"{place} has `{name}`, which is not a setting of Marian, so the model cannot be imported."
            )
    activation = _activation(config)
    sides: dict[str, dict[str, Any]] = {
        side: {
            "layers": config.integer(f"{side}_layers", least=1),
            "feed_forward": config.integer(f"{side}_ffn_dim", least=1),
            "activation": activation,
            "norm_place": "post",
        }
        for side in ("encoder", "decoder")
    }
    shared = config.flag("share_encoder_decoder_embeddings", True)
    tied = config.flag("tie_word_embeddings", True)
    if shared and not tied:
        raise RegardError(
            f"{place} shares its embeddings, but not with its output layer, which Regard does not support."
        )
    below_one = math.nextafter(1.0, 0.0)
    try:
        cell = Model(
            width=config.integer("d_model", least=1),
            dropout=config.number("dropout", 0.1, least=0.0, most=below_one),
            encoder=TransformerEncoder(**sides["encoder"]),
            decoder=TransformerDecoder(**sides["decoder"]),
            attention=Attention(
                heads=heads, dropout=config.number("attention_dropout", 0.0, least=0.0, most=below_one)
            ),
            positions=Positions(kind="sinusoidal"),
            embeddings=Embeddings(
                tie="all" if shared else "target" if tied else "none", scale=config.flag("scale_embedding", False)
            ),
        )
        return resolve(cell, shared_vocabulary=shared)
    except ValidationError as error:
        first = error.errors()[0]
        raise RegardError(
            f"{place} describes a model without an equivalent in Regard: {first['loc'][-1]} is "
            f"{str(first['input'])[:40]}."
        ) from error
    except UsageError as error:
        raise RegardError(f"{place} describes a model without an equivalent in Regard: {error}") from error


def _activation(config: HubSettings) -> Literal["relu", "gelu", "silu"]:
    """Return the activation of both sides; raises if they differ."""
    name = config.word("activation_function", "gelu")
    for other in ("encoder_activation_function", "decoder_activation_function"):
        if config.word(other, name) != name:
            raise RegardError(
                f"{config.place} has the {other.replace('_', ' ')} `{config.word(other)}` and the activation function "
                f"`{name}`, but Marian has one activation for both sides. Correct the wrong one."
            )
    activation = ACTIVATIONS.get(name)
    if activation is None:
        raise RegardError(
            f"{config.place} has the activation `{name}`, but Regard supports only {', '.join(ACTIVATIONS)}."
        )
    return activation


def config_of(cell: Model, source_size: int, target_size: int, max_length: int) -> dict[str, Any]:
    """Return the Hugging Face configuration of a model; raises, with the setting, if there is no equivalent."""
    encoder, decoder = cell.encoder, cell.decoder
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        if not isinstance(side, TransformerEncoder | TransformerDecoder):
            raise _no_equivalent(f"model.{name}.kind `{side.kind if side else None}`", "a Transformer")
        if side.norm != "layer":
            raise _no_equivalent(f"model.{name}.norm `{side.norm}`", "LayerNorm")
        if side.activation not in ACTIVATIONS.values():
            raise _no_equivalent(f"model.{name}.activation `{side.activation}`", "relu, gelu or silu")
        if side.width != cell.embeddings.width:
            raise _no_equivalent(
                f"model.{name}.width {side.width} with embeddings {cell.embeddings.width} wide", "one width"
            )
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    if encoder.norm_place != decoder.norm_place:
        raise _no_equivalent("pre-norm on one side and post-norm on the other", "the same on both sides")
    if encoder.activation != decoder.activation:
        raise _no_equivalent("different activations on the two sides", "one activation")
    check_attention(cell, "Hugging Face's Marian")
    if cell.norm_epsilon != 1e-5:
        raise _no_equivalent(f"model.norm_epsilon {cell.norm_epsilon:g}", "1e-05")
    positions = resolved(cell.positions)
    if positions.kind != "sinusoidal":
        raise _no_equivalent(f"model.positions.kind `{positions.kind}`", "sinusoidal positions")
    tie = resolved(cell.embeddings.tie)
    pre = encoder.norm_place == "pre"
    if pre and tie != "all":
        raise _no_equivalent(f"model.embeddings.tie `{tie}` with pre-norm", "all embeddings tied")
    kind, architecture = ("pegasus", "PegasusForConditionalGeneration") if pre else ("marian", "MarianMTModel")
    config: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": kind,
        "is_encoder_decoder": True,
        "d_model": cell.width if encoder.width is None else encoder.width,
        "vocab_size": source_size,
        "max_position_embeddings": max_length,
        "activation_function": encoder.activation,
        "dropout": cell.dropout,
        "activation_dropout": cell.dropout,
        "attention_dropout": cell.attention.dropout,
        "scale_embedding": cell.embeddings.scale,
        "tie_word_embeddings": tie != "none",
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        config[f"{name}_layers"] = side.layers
        config[f"{name}_ffn_dim"] = side.feed_forward
        config[f"{name}_attention_heads"] = cell.attention.heads
    if not pre:
        config |= {"decoder_vocab_size": target_size, "share_encoder_decoder_embeddings": tie == "all"}
    return config


def generation_of(beam: int, length_penalty: float, max_length: int) -> dict[str, Any]:
    """Return the generation settings of Hugging Face that are equal to the run's search."""
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "bad_words_ids": [[token] for token in (PAD, BOS, SEP, MASK)],
        "num_beams": beam,
        "length_penalty": length_penalty,
        "max_length": max_length,
    }


def refuse_task(task: TaskSettings, name: str) -> None:
    """Raise for a run that is not from text to text; other toolkits have no tokenizer for records either."""
    if task.input_kind().record:
        raise RegardError(f"{name} has no tokenizer for the records that this run reads. Use the run itself.")
    if (task.input, task.output) != ("text", "text"):
        raise RegardError(
            f"regard export is for models from text to text, and this run does something else ({task.kind}: "
            f"{task.arrow}). Use the run itself."
        )


def check_attention(cell: Model, name: str) -> None:
    """Raise, with the setting, if the attention has no equivalent in other toolkits."""
    attention, join, encoder = cell.attention, cell.join, cell.encoder
    if cell.copying:
        raise _no_equivalent("model.copying", "no copying of source words", name)
    if cell.field_positions:
        raise _no_equivalent("model.field_positions", "no positions of fields", name)
    if isinstance(encoder, TransformerEncoder) and (encoder.window is not None or encoder.within_fields):
        raise _no_equivalent("local attention in the encoder", "attention to all positions", name)
    if cell.embeddings.norm:
        raise _no_equivalent("model.embeddings.norm", "no norm before the first layer", name)
    if join is None or join.kind != "attention":
        raise _no_equivalent(f"model.join.kind `{join.kind if join else None}`", "attention to the source", name)
    if attention.score != "scaled-dot":
        raise _no_equivalent(f"model.attention.score `{attention.score}`", "scaled-dot", name)
    if not attention.project:
        raise _no_equivalent("model.attention.project off", "projections", name)
    if attention.keys_values != "split":
        raise _no_equivalent("model.attention.keys_values `shared`", "separate keys and values", name)


def tensor_names(cell: Model) -> dict[str, str]:
    """Return the names of all tensors of a Transformer in a Marian (or Pegasus) checkpoint, by our names.

    The embeddings and the output layer come last; `output_bias` V is `final_logits_bias` 1×V there.
    """
    names: dict[str, str] = {}
    encoder, decoder = cell.encoder, cell.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        for depth in range(side.layers):
            ours, theirs = f"{name}.layers.{depth}", f"model.{name}.layers.{depth}"
            parts = {f"{ours}.{part}": f"{theirs}.{other}" for part, other in LAYER.items()}
            parts |= {f"{ours}.attention.{part}": f"{theirs}.self_attn.{other}" for part, other in ATTENTION.items()}
            if name == "decoder":
                parts[f"{ours}.source_norm"] = f"{theirs}.encoder_attn_layer_norm"
                parts |= {
                    f"{ours}.source_attention.{part}": f"{theirs}.encoder_attn.{other}"
                    for part, other in ATTENTION.items()
                }
            names |= _weights_and_biases(parts)
        if side.norm_place == "pre":
            names |= _weights_and_biases({f"{name}.norm": f"model.{name}.layer_norm"})
    shared = cell.embeddings.tie == "all"
    names["decoder.embedding.weight"] = "model.shared.weight" if shared else "model.decoder.embed_tokens.weight"
    if not shared:
        names["_source_embedding.weight"] = "model.encoder.embed_tokens.weight"
    if cell.embeddings.tie == "none":
        names["_output"] = "lm_head.weight"
    return names | {"output_bias": "final_logits_bias"}


def _weights_and_biases(parts: Mapping[str, str]) -> dict[str, str]:
    return {f"{part}.{kind}": f"{other}.{kind}" for part, other in parts.items() for kind in ("weight", "bias")}


def _no_equivalent(part: str, there: str, name: str = "Hugging Face's Marian") -> RegardError:
    return RegardError(f"This model has no equivalent: it has {part}, but {name} has {there}.")
