"""OpenNMT-py's own training, through its command line."""

import json
import sys
import tempfile
import types
from pathlib import Path

from pace import Pace

for unused in ("spacy", "fasttext"):  # imported by OpenNMT-py for filters that have no part in this
    sys.modules.setdefault(unused, types.ModuleType(unused))

from onmt.bin.train import _get_parser, train  # noqa: E402
from onmt.trainer import Trainer  # noqa: E402

settings = json.loads(sys.argv[1])
place = Path(settings["corpus"])
width, layers = settings["width"], settings["layers"]
model = {
    "transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "transformer_ff": settings["feed_forward"],
        "heads": settings["heads"],
    },
    "gru": {"encoder_type": "brnn", "decoder_type": "rnn", "rnn_type": "GRU", "global_attention": "general"},
}[settings["kind"]]
directory = Path(tempfile.mkdtemp(prefix="bench-opennmt-"))
configuration = {
    "seed": 1,
    "src_vocab": str(place / "vocabulary.txt"),
    "tgt_vocab": str(place / "vocabulary.txt"),
    "src_vocab_size": settings["vocabulary"],
    "tgt_vocab_size": settings["vocabulary"],
    "share_vocab": True,
    "data": {
        "corpus_1": {"path_src": str(place / "train.src"), "path_tgt": str(place / "train.trg"), "transforms": []},
        "valid": {"path_src": str(place / "valid.src"), "path_tgt": str(place / "valid.trg"), "transforms": []},
    },
    "save_model": str(directory / "model"),
    "train_steps": 1_000_000,
    "valid_steps": 1_000_000,
    "save_checkpoint_steps": 1_000_000,
    "report_every": 1_000_000,
    "batch_size": settings["tokens"],
    "batch_type": "tokens",
    "normalization": "tokens",
    "bucket_size": 32768,
    "num_workers": 0,
    "accum_count": [1],
    "accum_steps": [0],
    "optim": "adam",
    "adam_beta2": 0.98,
    "learning_rate": 0.001,
    "decay_method": "none",
    "max_grad_norm": 1.0,
    "dropout": [settings["dropout"]],
    "attention_dropout": [0.0],
    "dropout_steps": [0],
    "label_smoothing": 0.1,
    "param_init_glorot": True,
    "param_init": 0.0,
    "model_dtype": "fp32",
    "layers": layers,
    "hidden_size": width,
    "word_vec_size": width,
    "share_embeddings": True,
    "share_decoder_embeddings": True,
    **model,
}
(directory / "config.yaml").write_text(json.dumps(configuration))  # JSON is YAML

pace, learnt = Pace(settings["warmup"]), 0
accumulate = Trainer._gradient_accumulation


def paced(self, batches, *rest):
    global learnt  # noqa: PLW0603
    pace.tick(learnt)
    learnt += sum(int(batch["tgt"][:, 1:, 0].ne(self.train_loss.padding_idx).sum()) for batch in batches)
    return accumulate(self, batches, *rest)


Trainer._gradient_accumulation = paced
options, _ = _get_parser().parse_known_args(["-config", str(directory / "config.yaml")])
train(options)
