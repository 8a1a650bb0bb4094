"""Presets: layers of settings that a file, and then the command line, can override.

Every preset sets its whole model, so that it replaces any other. Where a paper's sizes were chosen for many millions of
pairs and several GPUs, ours are chosen for a small corpus and a CPU; the description states this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]


@dataclass(frozen=True)
class Preset:
    """A layer of settings with its description and paper."""

    description: str
    paper: str
    settings: Settings

    def explicit(self) -> Settings:
        """Return the settings without those that only reset a value to its default."""
        return _without_empty(self.settings)


def _without_empty(settings: Mapping[str, Any]) -> Settings:
    kept = {k: _without_empty(v) if isinstance(v, Mapping) else v for k, v in settings.items()}
    return {k: v for k, v in kept.items() if v is not None and v != {}}


def _model(
    *,
    width: int,
    dropout: float,
    encoder: Settings,
    decoder: Settings,
    join: Settings,
    attention: Settings | None = None,
    positions: str | None = None,
) -> Settings:
    """Return the settings of a whole model; those that are not given are reset to their defaults."""
    if join["kind"] == "attention":
        join = {"kind": "attention", "order": None, "input_feeding": None} | join
    return {
        "width": width,
        "dropout": dropout,
        "encoder": {**encoder, "width": None},
        "decoder": {**decoder, "width": None},
        "join": join,
        "attention": {"score": None, "heads": None, "project": None, "keys_values": "split", **(attention or {})},
        "positions": {"kind": positions} if positions else None,
        "embeddings": {"width": None, "tie": None},
    }


def _transformer(
    *,
    layers: int,
    width: int,
    feed_forward: int,
    heads: int,
    dropout: float,
    activation: str = "relu",
    norm: str = "layer",
    norm_place: str = "pre",
    positions: str = "sinusoidal",
) -> Settings:
    side = {
        "kind": "transformer",
        "layers": layers,
        "feed_forward": feed_forward,
        "activation": activation,
        "norm": norm,
        "norm_place": norm_place,
    }
    return _model(
        width=width,
        dropout=dropout,
        encoder=side,
        decoder=dict(side),
        join={"kind": "attention"},
        attention={"score": "scaled-dot", "heads": heads},
        positions=positions,
    )


def _paper_training(*, steps: int, learning_rate: float, average: int) -> Settings:
    """Return the training settings of Vaswani et al. (2017), which need several GPUs or a long time."""
    return {
        "steps": steps,
        "batch_tokens": 25_000,
        "optimizer": {"kind": "adam", "learning_rate": learning_rate, "beta1": 0.9, "beta2": 0.98},
        "schedule": {"kind": "inverse-sqrt", "warmup": 4000},
        "label_smoothing": 0.1,
        "average": average,
    }


PRESETS: dict[str, Preset] = {
    "transformer-tiny": Preset(
        "For corpora of ten to a hundred thousand pairs, such as Multi30k; short training.",
        "Wu et al., 2021; Jordan et al., 2024",
        {
            "model": _transformer(layers=4, width=128, feed_forward=256, heads=4, dropout=0.1),
            "training": {
                "steps": 3000,
                "batch_tokens": 1024,
                "optimizer": {"kind": "muon"},
                "schedule": {"kind": "cosine"},
            },
        },
    ),
    "transformer-small": Preset(
        "Half the depth and width of the base model: a hundred thousand to a million pairs.",
        "after Vaswani et al., 2017",
        {"model": _transformer(layers=3, width=256, feed_forward=1024, heads=4, dropout=0.1)},
    ),
    "transformer-base": Preset(
        "The paper's base model and training: post-norm, large batches, long warm-up; needs a GPU.",
        "Vaswani et al., 2017",
        {
            "model": _transformer(layers=6, width=512, feed_forward=2048, heads=8, dropout=0.1, norm_place="post"),
            "training": _paper_training(steps=100_000, learning_rate=0.0007, average=5),
            "decoding": {"beam": 4, "length_penalty": 0.6},
        },
    ),
    "transformer-big": Preset(
        "The paper's big model: twice the width, three times the steps and the dropout of base; needs several GPUs.",
        "Vaswani et al., 2017",
        {
            "model": _transformer(layers=6, width=1024, feed_forward=4096, heads=16, dropout=0.3, norm_place="post"),
            "training": _paper_training(steps=300_000, learning_rate=0.0005, average=20),
            "decoding": {"beam": 4, "length_penalty": 0.6},
        },
    ),
    "modern": Preset(
        "A modern Transformer: pre-layer RMSNorm, SwiGLU, rotary positions, cosine schedule.",
        "Zhang and Sennrich, 2019; Shazeer, 2020; Su et al., 2021",
        {
            # SwiGLU has three matrices instead of two, so two thirds of the usual inner width cost the same.
            "model": _transformer(
                layers=4,
                width=256,
                feed_forward=688,
                heads=4,
                dropout=0.1,
                activation="swiglu",
                norm="rms",
                positions="rotary",
            ),
            "training": {"optimizer": {"kind": "adamw", "weight_decay": 0.01}, "schedule": {"kind": "cosine"}},
        },
    ),
    "bahdanau": Preset(
        "The first attention: a GRU both ways, additive scores before each step; 256 wide where the paper has 1,000.",
        "Bahdanau et al., 2015",
        {
            "model": _model(
                width=256,
                dropout=0.2,
                encoder={"kind": "rnn", "cell": "gru", "layers": 1, "direction": "both"},
                decoder={"kind": "rnn", "cell": "gru", "layers": 1},
                join={"kind": "attention", "order": "before"},
                attention={"score": "additive", "heads": 1},
            ),
            "training": {"label_smoothing": 0.0},
        },
    ),
    "luong": Preset(
        "Attention after each step, fed into the next: LSTMs, source reversed; 2 × 256 where the paper has 4 × 1,000.",
        "Luong et al., 2015",
        {
            "model": _model(
                width=256,
                dropout=0.2,
                encoder={"kind": "rnn", "cell": "lstm", "layers": 2, "direction": "backward"},
                decoder={"kind": "rnn", "cell": "lstm", "layers": 2},
                join={"kind": "attention", "order": "after", "input_feeding": True},
                attention={"score": "bilinear", "heads": 1},
            ),
            "training": {"label_smoothing": 0.0, "clip": 5.0},
        },
    ),
    "sutskever": Preset(
        "The whole source in one state: four LSTM layers over the reversed source; 256 wide where the paper has 1,000.",
        "Sutskever et al., 2014",
        {
            "model": _model(
                width=256,
                dropout=0.0,
                encoder={"kind": "rnn", "cell": "lstm", "layers": 4, "direction": "backward"},
                decoder={"kind": "rnn", "cell": "lstm", "layers": 4},
                join={"kind": "fixed", "form": "initial"},
            ),
            "training": {"label_smoothing": 0.0, "clip": 5.0},
        },
    ),
    "cho": Preset(
        "The first GRU: one vector for the source, read at every step; 256 wide where the paper has 1,000.",
        "Cho et al., 2014",
        {
            "model": _model(
                width=256,
                dropout=0.0,
                encoder={"kind": "rnn", "cell": "gru", "layers": 1, "direction": "forward"},
                decoder={"kind": "rnn", "cell": "gru", "layers": 1},
                join={"kind": "fixed", "form": "every-step"},
            ),
            "training": {"label_smoothing": 0.0},
        },
    ),
    "convs2s": Preset(
        "Gated convolutions, learned positions, dot attention on each layer; 4 × 256 where the paper has 15 × 512.",
        "Gehring et al., 2017",
        {
            "model": _model(
                width=256,
                dropout=0.2,
                encoder={"kind": "conv", "layers": 4, "kernel": 3},
                decoder={"kind": "conv", "layers": 4, "kernel": 3},
                join={"kind": "attention"},
                attention={"score": "dot", "heads": 1, "project": True},
                positions="learned",
            ),
            "training": {"label_smoothing": 0.0, "clip": 0.1},
        },
    ),
    "bag": Preset(
        "A baseline without word order: the mean of the source embeddings starts a GRU.",
        "after Iyyer et al., 2015",
        {
            "model": _model(
                width=256,
                dropout=0.1,
                encoder={"kind": "bag", "pool": "mean"},
                decoder={"kind": "rnn", "cell": "gru", "layers": 1},
                join={"kind": "fixed", "form": "transformed"},
            ),
            "training": {"label_smoothing": 0.0},
        },
    ),
}
"""Every preset by its name."""
