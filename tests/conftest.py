"""What several tests share: one thread for each test process, and a small trained run."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two test processes on two cores
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def copy_run(tmp_path_factory) -> Path:
    """A run that has learnt to say rows of letters again: an RNN with attention, trained in seconds."""
    from regard.config.loading import from_mapping
    from regard.training.loop import train
    from regard.training.view import View

    settings = {
        "data": {"train": {"generate": "copy", "size": 4000, "symbols": 6, "max_length": 5}, "held_out": 100},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 48, "dropout": 0.0, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
        "training": {
            "steps": 500,
            "batch_tokens": 512,
            "label_smoothing": 0.0,
            "optimizer": {"learning_rate": 0.005},
            "schedule": {"kind": "cosine"},
        },
    }
    directory = tmp_path_factory.mktemp("runs") / "copy"
    train(from_mapping(settings), directory, view=View())
    return directory
