"""The picture of a training: its losses, and its scores if there are any."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from regard.training.curves import SCORES, VALIDATION
from tests.conftest import draw_curves

LINES: list[dict[str, Any]] = [
    {"kind": "train", "step": 1, "loss": None},
    {"kind": "train", "step": 2, "loss": 3.0, "nll": 2.5},
    {"kind": "validation", "step": 2, "loss": 2.0, "bleu": 30.0},
    {"kind": "validation", "step": 4, "loss": 1.0, "bleu": 40.0},
]


def drawn(lines: list[dict[str, Any]], path: Path) -> NDArray[np.uint8]:
    draw_curves(lines, path, "a [b] $c$", loss_name="nats per token", best=4)
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def places(picture: NDArray[np.uint8], colour: str) -> NDArray[np.int64]:
    """Columns in which a colour occurs."""
    return np.flatnonzero((picture == [int(colour[at : at + 2], 16) for at in (1, 3, 5)]).all(-1).any(0))


@pytest.mark.parametrize("scored", [False, True])
def test_losses_stand_left_of_scores_or_alone(tmp_path, scored):
    lines = [{key: value for key, value in line.items() if scored or key != "bleu"} for line in LINES]
    picture = drawn(lines, tmp_path / "curves.png")
    losses, scores = places(picture, VALIDATION), places(picture, SCORES["bleu"])
    assert len(losses) and (losses.max() < picture.shape[1] / 2) == scored
    assert bool(len(scores)) == scored and (not scored or scores.min() > losses.max())


@pytest.mark.filterwarnings("ignore:constrained_layout")
def test_a_training_without_a_finite_loss_is_drawn_as_well(tmp_path):
    assert not len(places(drawn(LINES[:1], tmp_path / "curves.png"), VALIDATION))
