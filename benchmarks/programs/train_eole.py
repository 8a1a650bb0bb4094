"""eole's own training, through its configuration."""

import json
import sys
import tempfile
import types
from pathlib import Path

from pace import Pace

for unused in ("fasttext", "spacy", "aiohttp"):  # imported by eole for filters and servers that have no part in this
    sys.modules.setdefault(unused, types.ModuleType(unused))

from eole.config.run import TrainConfig  # noqa: E402
from eole.train_single import main  # noqa: E402
from eole.trainer import Trainer  # noqa: E402

settings = json.loads(sys.argv[1])
place = Path(settings["corpus"])
width, layers = settings["width"], settings["layers"]
shared = {"share_embeddings": True, "share_decoder_embeddings": True}
model = {
    "transformer": {
        "architecture": "transformer",
        "layers": layers,
        "hidden_size": width,
        "transformer_ff": settings["feed_forward"],
        "heads": settings["heads"],
        "embeddings": {"word_vec_size": width, "position_encoding_type": "SinusoidalInterleaved"},
        **shared,
    },
    "gru": {
        "architecture": "custom",  # under "rnn" the encoder would read one way only
        "embeddings": {"word_vec_size": width},
        "input_feed": 1,
        **shared,
        "encoder": {
            "encoder_type": "brnn",
            "layers": 1,
            "hidden_size": width,
            "rnn_type": "GRU",
            "src_word_vec_size": width,
        },
        "decoder": {
            "decoder_type": "rnn",
            "layers": 1,
            "hidden_size": width,
            "rnn_type": "GRU",
            "tgt_word_vec_size": width,
            "global_attention": "general",
            "bidirectional_encoder": True,
        },
    },
}[settings["kind"]]
configuration = TrainConfig(
    seed=1,
    src_vocab=str(place / "vocabulary.txt"),
    tgt_vocab=str(place / "vocabulary.txt"),
    src_vocab_size=settings["vocabulary"],
    tgt_vocab_size=settings["vocabulary"],
    share_vocab=True,
    data={
        "corpus_1": {"path_src": str(place / "train.src"), "path_tgt": str(place / "train.trg"), "transforms": []},
        "valid": {"path_src": str(place / "valid.src"), "path_tgt": str(place / "valid.trg"), "transforms": []},
    },
    transforms=[],
    report_every=1_000_000,
    model=model,
    training={
        "model_path": tempfile.mkdtemp(prefix="bench-eole-"),
        "train_steps": 1_000_000,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "batch_size": settings["tokens"],
        "batch_type": "tokens",
        "normalization": "tokens",
        "bucket_size": 32768,
        "num_workers": 0,
        "accum_count": [1],
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": 0.001,
        "decay_method": "none",
        "max_grad_norm": 1.0,
        "dropout": [settings["dropout"]],
        "attention_dropout": [0.0],
        "label_smoothing": 0.1,
        "compute_dtype": "fp32",
        "world_size": 1,
        "gpu_ranks": [],
    },
)

pace, learnt = Pace(settings["warmup"]), 0
process = Trainer._process_accumulated_batches


def paced(self, batches, *rest):
    global learnt  # noqa: PLW0603
    pace.tick(learnt)
    learnt += sum(int(batch["tgt"][:, 1:].ne(self.train_loss.padding_idx).sum()) for batch in batches)
    return process(self, batches, *rest)


Trainer._process_accumulated_batches = paced
main(configuration, device_id=-1)
