"""The cells of the grid that the laws are tried on."""

import itertools
import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from regard.config.cell import resolve
from regard.config.model import Model as Cell
from regard.foundation.errors import UsageError
from regard.models import Model, build

VOCABULARY = 23

ENCODERS: dict[str, dict[str, Any]] = {
    "bag": {"kind": "bag"},
    "elman": {"kind": "rnn", "cell": "elman", "direction": "forward"},
    "gru-both": {"kind": "rnn", "cell": "gru", "layers": 2},
    "lstm-backward": {"kind": "rnn", "cell": "lstm", "direction": "backward"},
    "conv": {"kind": "conv", "layers": 2},
    "transformer": {"kind": "transformer", "layers": 2},
    "transformer-post": {
        "kind": "transformer",
        "layers": 1,
        "norm": "rms",
        "norm_place": "post",
        "activation": "swiglu",
    },
}
DECODERS: dict[str, dict[str, Any]] = {
    "elman": {"kind": "rnn", "cell": "elman"},
    "gru": {"kind": "rnn", "cell": "gru", "layers": 2},
    "lstm": {"kind": "rnn", "cell": "lstm", "layers": 2},
    "conv": {"kind": "conv", "layers": 2},
    "transformer": {"kind": "transformer", "layers": 2},
    "transformer-post": {
        "kind": "transformer",
        "layers": 1,
        "norm": "rms",
        "norm_place": "post",
        "activation": "gelu",
    },
}
JOINS: dict[str, dict[str, Any]] = {
    "initial": {"kind": "fixed", "form": "initial"},
    "transformed": {"kind": "fixed", "form": "transformed"},
    "every-step": {"kind": "fixed", "form": "every-step"},
    "attention": {"kind": "attention"},
    "before": {"kind": "attention", "order": "before"},
    "feeding": {"kind": "attention", "order": "after", "input_feeding": True},
}
ATTENTIONS: dict[str, dict[str, Any]] = {
    **{
        f"{score}-{heads}": {"score": score, "heads": heads}
        for score, heads in itertools.product(("additive", "dot", "scaled-dot", "bilinear"), (1, 2))
    },
    "shared": {"heads": 2, "keys_values": "shared", "project": True},
    "projected": {"heads": 1, "score": "dot", "project": True},
}
POSITIONS: dict[str, dict[str, Any]] = {
    **{kind: {"kind": kind} for kind in ("none", "sinusoidal", "learned", "relative", "bias", "rotary", "alibi")},
    "near": {"kind": "relative", "max_distance": 1},
    "ntk": {"kind": "rotary", "ntk": 4.0},
}


def cell(**settings: Any) -> Cell:
    """A small resolved cell."""
    return resolve(Cell.model_validate({"width": 16, **settings}), shared_vocabulary=True)


def sensible_cells() -> dict[str, Cell]:
    """Each encoder with each decoder and join; each attention and position kind on a few of them; all that resolve."""
    wanted = {
        f"{e}>{d}/{j}": {"encoder": ENCODERS[e], "decoder": DECODERS[d], "join": JOINS[j]}
        for e, d, j in itertools.product(ENCODERS, DECODERS, JOINS)
    }
    for (name, attention), (join, kinds) in itertools.product(
        ATTENTIONS.items(),
        (
            ("before", ("gru-both", "gru")),
            ("attention", ("transformer", "transformer")),
            ("attention", ("gru-both", "lstm")),
        ),
    ):
        sides = {"encoder": ENCODERS[kinds[0]], "decoder": DECODERS[kinds[1]], "join": JOINS[join]}
        wanted[f"{kinds[0]}>{kinds[1]}/{join}/{name}"] = {**sides, "attention": attention}
    for name, positions in POSITIONS.items():
        for e, d in (("transformer", "transformer"), ("conv", "conv"), ("conv", "transformer"), ("transformer", "gru")):
            sides = {"encoder": ENCODERS[e], "decoder": DECODERS[d]}
            wanted[f"{e}>{d}/{name}"] = {**sides, "positions": positions}
    wanted["narrow"] = {
        "encoder": {"kind": "rnn", "width": 12},
        "decoder": {"kind": "transformer", "width": 20},
        "embeddings": {"width": 10},
    }
    wanted["wide"] = {
        "encoder": {"kind": "transformer", "width": 24},
        "decoder": {"kind": "rnn", "width": 12},
        "embeddings": {"width": 10},
    }
    cells = {}
    for name, settings in wanted.items():
        try:
            cells[name] = cell(**settings)
        except UsageError:
            continue
    return cells


CELLS = sensible_cells()


def covering(names: Iterable[str]) -> list[str]:
    """A few of the cells among which every encoder, decoder, join, attention and kind of position of all occurs."""
    parts = {name: set(enumerate(re.split("[>/]", name))) for name in names}
    missing = set().union(*parts.values())
    chosen = []
    while missing:
        best = max(parts, key=lambda name: len(parts[name] & missing))
        chosen.append(best)
        missing -= parts[best]
    return chosen


KINDS = covering(CELLS)
"""What laws that are not about the grid itself are tried on."""


EYES: dict[str, dict[str, Any]] = {
    "image-conv": {"kind": "image", "form": "conv", "size": 8, "patch": 4, "layers": 1},
    "image-patches": {"kind": "image", "form": "patches", "size": 8, "patch": 2, "layers": 1},
}
SEEING = {
    f"{e}>{d}/{j}": cell(encoder=EYES[e], decoder=DECODERS[d], join=JOINS[j])
    for e, d, j in (
        *itertools.product(EYES, ("gru", "lstm"), ("initial", "transformed", "every-step", "before", "feeding")),
        *itertools.product(EYES, ("transformer", "conv"), ("every-step", "attention")),
    )
}
"""Cells that look at pictures."""


def model_of(name: str) -> Model:
    """A small random model of a cell, in use (no dropout)."""
    torch.manual_seed(0)
    model = build({**CELLS, **SEEING}[name], VOCABULARY, VOCABULARY).eval()
    with torch.no_grad():  # make sure that parameters which start at zero take part
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


def sentences(rows: int, longest: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random padded sources (ending in EOS) and target inputs (starting with BOS): B×S and B×T."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (rows, 2), generator=generator)
    source = torch.zeros(rows, longest + 1, dtype=torch.long)
    inputs = torch.zeros(rows, longest + 1, dtype=torch.long)
    for row, (s, t) in enumerate(lengths.tolist()):
        source[row, :s] = torch.randint(6, VOCABULARY, (s,), generator=generator)
        source[row, s] = 2
        inputs[row, 0] = 1
        inputs[row, 1 : t + 1] = torch.randint(6, VOCABULARY, (t,), generator=generator)
    return source[:, : int(lengths[:, 0].max()) + 1], inputs[:, : int(lengths[:, 1].max()) + 1]


def examples(name: str, rows: int, longest: int, seed: int) -> tuple[Tensor, Tensor]:
    """What a cell reads, padded sources B×S or pixels B×3×H×W, and target inputs B×T."""
    source, inputs = sentences(rows, longest, seed)
    if name in SEEING:
        source = 2 * torch.rand(rows, 3, 8, 8, generator=torch.Generator().manual_seed(seed)) - 1
    return source, inputs
