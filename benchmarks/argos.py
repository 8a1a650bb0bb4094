"""A run as a package of Argos Translate, which LibreTranslate serves: its model, SentencePiece model and metadata."""

import json
import shutil
from pathlib import Path
from typing import Any


def write_package(exported: Path, tokenizer: Path, place: Path, *, source: str, target: str) -> None:
    """Write the directory of an installed package, from a CTranslate2 model and a BPE of Hugging Face `tokenizers`.

    Sentences are split by the rules of an empty spaCy pipeline, because the models of the default splitter would have
    to be downloaded.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copytree(exported, place / "model")
    (place / "sentencepiece.model").write_bytes(sentencepiece_model(json.loads(tokenizer.read_text(encoding="utf-8"))))
    metadata = {"package_version": "1.0", "argos_version": "1.9", "from_code": source, "to_code": target}
    metadata |= {"from_name": source, "to_name": target}
    (place / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


def sentencepiece_model(content: dict[str, Any]) -> bytes:
    """Return the SentencePiece model that splits like a BPE with byte fallback, given its parsed `tokenizer.json`.

    The score of a piece is the negative rank of the merge that makes it, so that SentencePiece merges in the same
    order. Single characters and pieces without a merge come last.
    """
    from sentencepiece import sentencepiece_model_pb2 as format

    kinds = format.ModelProto.SentencePiece
    ranks = {"".join(merge): rank for rank, merge in reversed(list(enumerate(content["model"]["merges"])))}
    vocabulary = sorted(content["model"]["vocab"].items(), key=lambda item: item[1])
    special = {token["content"] for token in content["added_tokens"]}
    model = format.ModelProto()
    model.trainer_spec.model_type = format.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = len(vocabulary)
    model.trainer_spec.pad_id, model.trainer_spec.pad_piece = 0, "<pad>"
    model.trainer_spec.bos_id, model.trainer_spec.eos_id, model.trainer_spec.unk_id = 1, 2, 3
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = True
    for piece, _ in vocabulary:
        added = model.pieces.add()
        added.piece, added.score = piece, -float(ranks.get(piece, len(ranks)))
        if piece == "<unk>":
            added.type = kinds.UNKNOWN
        elif piece in special:
            added.type = kinds.CONTROL
        elif len(piece) == 6 and piece.startswith("<0x"):
            added.type = kinds.BYTE
    found: bytes = model.SerializeToString()
    return found
