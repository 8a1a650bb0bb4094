"""Mapping of BERT's encoder (Devlin et al., 2019) to ours: configuration and tensor names.

Axes: V vocabulary, D width.
"""

import math
from typing import Literal

import torch
from pydantic import ValidationError
from torch import Tensor

from regard.config.cell import resolve
from regard.config.model import Attention, Embeddings, Model, Positions, TransformerEncoder
from regard.formats.checkpoint import Checkpoint
from regard.formats.hub_settings import HubSettings
from regard.foundation.errors import RegardError, UsageError

ACTIVATIONS: dict[str, Literal["relu", "gelu", "silu"]] = {
    "relu": "relu",
    "gelu": "gelu",
    "swish": "silu",
    "silu": "silu",
}
"""Our activations by Hugging Face's names; approximations of GELU are not supported."""

LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
HEAD = {"transform": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"}
"""The head that predicts masked words."""

TOKENS = "embeddings.word_embeddings.weight"
BIASES = ("cls.predictions.bias", "cls.predictions.decoder.bias")
OUTPUT = "cls.predictions.decoder.weight"


def cell_of(config: HubSettings) -> Model:
    """Return the model of a BERT configuration; raises, with the setting, if there is no equivalent."""
    place = config.place
    name = config.word("hidden_act", "gelu")
    activation = ACTIVATIONS.get(name)
    if activation is None:
        raise RegardError(f"{place} has the activation `{name}`, but Regard supports only {', '.join(ACTIVATIONS)}.")
    positions = config.word("position_embedding_type", "absolute")
    if positions != "absolute":
        raise RegardError(f"{place} has positions of type `{positions}`, but only `absolute` ones can be imported.")
    if config.flag("is_decoder", False) or config.flag("add_cross_attention", False):
        raise RegardError(f"{place} uses BERT as a decoder, but only its encoder can be imported.")
    below_one = math.nextafter(1.0, 0.0)
    try:
        cell = Model(
            width=config.integer("hidden_size", least=1),
            dropout=config.number("hidden_dropout_prob", 0.1, least=0.0, most=below_one),
            norm_epsilon=config.number("layer_norm_eps", 1e-12, least=1e-30, most=0.1),
            encoder=TransformerEncoder(
                layers=config.integer("num_hidden_layers", least=1),
                feed_forward=config.integer("intermediate_size", least=1),
                activation=activation,
                norm_place="post",
            ),
            attention=Attention(
                heads=config.integer("num_attention_heads", least=1),
                dropout=config.number("attention_probs_dropout_prob", 0.0, least=0.0, most=below_one),
            ),
            positions=Positions(kind="learned", max_length=config.integer("max_position_embeddings", least=1)),
            embeddings=Embeddings(norm=True),
        )
        return resolve(cell, shared_vocabulary=True, decoder_wanted=False)
    except ValidationError as error:
        first = error.errors()[0]
        raise RegardError(
            f"{place} describes a model without an equivalent in Regard: {first['loc'][-1]} is "
            f"{str(first['input'])[:40]}."
        ) from error
    except UsageError as error:
        raise RegardError(f"{place} describes a model without an equivalent in Regard: {error}") from error


def encoder_weights(cell: Model, checkpoint: Checkpoint, rows: Tensor, size: int) -> dict[str, Tensor]:
    """Return token vectors and encoder under our names; `rows` V are the old ids of our tokens, `size` their number.

    Every token has the first token type, as in single texts; its vector is added to the position vectors. Token vectors
    are multiplied by √D in our model, so the position vectors are too; the norm after them cancels the factor.
    """
    encoder, positions = cell.encoder, cell.positions
    assert isinstance(encoder, TransformerEncoder)
    assert positions is not None
    width, inner = cell.width, encoder.feed_forward or 0
    prefix = "bert." if f"bert.{TOKENS}" in checkpoint else ""
    checkpoint.refuse_layers(f"{prefix}encoder.layer.", encoder.layers, "num_hidden_layers")
    where = f"{prefix}embeddings."
    tokens = checkpoint.get(f"{prefix}{TOKENS}", shape=(size, width))
    types = checkpoint.any_height(f"{where}token_type_embeddings.weight", width)
    places = checkpoint.get(f"{where}position_embeddings.weight", shape=(positions.max_length, width))
    weights = {
        "source_embedding.weight": tokens[rows],  # V×D
        "encoder.entrance.places.weight": (places + types[0]) * width**0.5,
        **_norm(checkpoint, "encoder.entrance.norm", f"{where}LayerNorm", width),
    }
    shapes = {"feed_forward.inner": (inner, width), "feed_forward.outer": (width, inner)}
    for depth in range(encoder.layers):
        ours, theirs = f"encoder.layers.{depth}", f"{prefix}encoder.layer.{depth}"
        for part, other in LAYER.items():
            if part.endswith("norm"):
                weights |= _norm(checkpoint, f"{ours}.{part}", f"{theirs}.{other}", width)
            else:
                shape = shapes.get(part, (width, width))
                weights[f"{ours}.{part}.weight"] = checkpoint.get(f"{theirs}.{other}.weight", shape=shape)
                weights[f"{ours}.{part}.bias"] = checkpoint.get(f"{theirs}.{other}.bias", shape=shape[:1])
    return weights


def head_weights(cell: Model, checkpoint: Checkpoint, rows: Tensor, size: int) -> dict[str, Tensor] | None:
    """Return the head for masked words under our names; `None` if the checkpoint has none, or a different one."""
    dense, width = HEAD["transform"], cell.width
    if f"{dense}.weight" not in checkpoint or getattr(cell.encoder, "activation", None) != "gelu":
        return None
    prefix = "bert." if f"bert.{TOKENS}" in checkpoint else ""
    if OUTPUT in checkpoint:
        tied = checkpoint.get(f"{prefix}{TOKENS}", shape=(size, width))
        if not torch.equal(checkpoint.get(OUTPUT, shape=(size, width)), tied):
            return None
    return {
        "transform.weight": checkpoint.get(f"{dense}.weight", shape=(width, width)),
        "transform.bias": checkpoint.get(f"{dense}.bias", shape=(width,)),
        **_norm(checkpoint, "norm", HEAD["norm"], width),
        "output_bias": checkpoint.get(*BIASES, shape=(size,))[rows],
    }


def _norm(checkpoint: Checkpoint, ours: str, theirs: str, width: int) -> dict[str, Tensor]:
    """Return a norm's weight and bias, which older files call gamma and beta."""
    old = {"weight": "gamma", "bias": "beta"}
    return {
        f"{ours}.{name}": checkpoint.get(f"{theirs}.{name}", f"{theirs}.{other}", shape=(width,))
        for name, other in old.items()
    }
