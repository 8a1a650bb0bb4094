"""JoeyNMT's own training, through its configuration file; its batches hold tokens, but are not sorted by length."""

import json
import sys
import tempfile
from pathlib import Path

from joeynmt.training import TrainManager, train
from pace import Pace

settings = json.loads(sys.argv[1])
place = Path(settings["corpus"])
width, layers = settings["width"], settings["layers"]
embeddings = {"embedding_dim": width, "scale": settings["kind"] == "transformer", "dropout": settings["dropout"]}
transformer = {
    "type": "transformer",
    "num_layers": layers,
    "num_heads": settings["heads"],
    "embeddings": embeddings,
    "hidden_size": width,
    "ff_size": settings["feed_forward"],
    "dropout": settings["dropout"],
    "layer_norm": "pre",
}
sides = {
    "transformer": {"encoder": transformer, "decoder": transformer},
    "gru": {
        "encoder": {
            "type": "recurrent",
            "rnn_type": "gru",
            "embeddings": embeddings,
            "hidden_size": width // 2,
            "bidirectional": True,
            "num_layers": 1,
            "dropout": settings["dropout"],
        },
        "decoder": {
            "type": "recurrent",
            "rnn_type": "gru",
            "embeddings": embeddings,
            "hidden_size": width,
            "num_layers": 1,
            "dropout": settings["dropout"],
            "hidden_dropout": 0.0,
            "input_feeding": True,
            "init_hidden": "bridge",
            "attention": "bahdanau",
        },
    },
}[settings["kind"]]
level = {"level": "word", "voc_file": str(place / "vocabulary.txt"), "max_length": 256}
directory = Path(tempfile.mkdtemp(prefix="bench-joeynmt-"))
configuration = {
    "name": "bench",
    "joeynmt_version": "2.3.0",
    "model_dir": str(directory),
    "use_cuda": False,
    "random_seed": 1,
    "data": {
        "train": str(place / "train"),
        "dev": str(place / "valid"),
        "dataset_type": "plain",
        "src": {"lang": "src", **level},
        "trg": {"lang": "trg", **level},
    },
    "testing": {"beam_size": 1},
    "training": {
        "optimizer": "adamw",
        "adam_betas": [0.9, 0.98],
        "learning_rate": 0.001,
        "scheduling": "warmupinversesquareroot",
        "learning_rate_warmup": 400,
        "clip_grad_norm": 1.0,
        "label_smoothing": 0.1,
        "loss": "crossentropy",
        "batch_size": settings["tokens"],
        "batch_type": "token",
        "normalization": "tokens",
        "epochs": 100,
        "validation_freq": 1_000_000,
        "logging_freq": 1_000,
        "shuffle": True,
    },
    "model": {"tied_embeddings": True, "tied_softmax": True, **sides},
}

pace, learnt = Pace(settings["warmup"]), 0
step = TrainManager._train_step


def paced(self, batch):
    global learnt  # noqa: PLW0603
    pace.tick(learnt)
    learnt += int(batch.ntokens)
    return step(self, batch)


TrainManager._train_step = paced
train(rank=0, world_size=None, cfg=configuration, skip_test=True)
