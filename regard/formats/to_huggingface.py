"""Export of a run as a Hugging Face directory with the same logits and our token ids."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from regard.config.data import Elsewhere
from regard.config.run import RunConfig
from regard.formats.heads import whole_heads
from regard.formats.marian import config_of, generation_of, refuse_task, tensor_names
from regard.formats.place import fresh_directory
from regard.formats.special_names import unique_names
from regard.foundation.errors import RegardError
from regard.runs.run import Run
from regard.tasks.vocabularies import load_tokenizers
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.specials import BOS, EOS, MASK, PAD, SEP, SPECIALS, UNK
from regard.text.tokenizer import Tokenizer

LEAST_POSITIONS = 512
"""Smallest number of sinusoidal positions in the table of the export."""


def export_huggingface(run: Run, directory: Path) -> list[str]:
    """Write the run's model as a Marian (or Pegasus) directory; return remarks as whole sentences."""
    config = run.config
    refuse_task(config.task, "Hugging Face")
    source, target = load_tokenizers(run.tokenizers)
    longest = max(config.data.cleaning.max_length + 1, config.decoding.max_length)
    if not isinstance(config.data.train, Elsewhere):  # an imported model keeps its limit
        longest = max(LEAST_POSITIONS, longest + 1)
    settings = config_of(config.model, source.size, target.size, longest)
    weights = run.read_weights({"source": source.fingerprint, "target": target.fingerprint})
    names = tensor_names(config.model)
    tensors = {names[ours]: tensor for ours, tensor in whole_heads(config.model, weights).items()}
    tensors["final_logits_bias"] = tensors["final_logits_bias"][None]  # 1×V
    with fresh_directory(directory) as place:
        _write(place / "config.json", settings)
        _write(place / "generation_config.json", _generation(config))
        save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
        note = _tokenizers(place, source, target)
    return [f"{directory}: {settings['architectures'][0]}, as transformers.AutoModelForSeq2SeqLM loads it.", note]


def _generation(config: RunConfig) -> dict[str, Any]:
    decoding = config.decoding
    return generation_of(decoding.beam, decoding.length_penalty, decoding.max_length)


def _tokenizers(place: Path, source: Tokenizer, target: Tokenizer) -> str:
    """Write the tokenizers in a format that `transformers` loads, if there is one; return a remark."""
    if isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer):
        (place / "source.spm").write_bytes(source.model)
        (place / "target.spm").write_bytes(target.model)
        joint = source.vocabulary == target.vocabulary
        _write(place / "vocab.json", _numbers(source))
        if not joint:
            _write(place / "target_vocab.json", _numbers(target))
        settings: dict[str, Any] = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": not joint}
        if SPECIALS[BOS] in target.vocabulary[len(SPECIALS) :]:
            settings["bos_token"] = list(_numbers(target))[BOS]  # a name that decoding does not skip by default
        _write(place / "tokenizer_config.json", settings)
        return "The tokenizer is a MarianTokenizer; AutoTokenizer loads it."
    if isinstance(source, SentencePieceTokenizer) or isinstance(target, SentencePieceTokenizer):
        raise RegardError("Only one side has a SentencePiece tokenizer, which transformers does not support.")
    _fast(place / "tokenizer.json", source)
    special = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK, "sep": SEP, "mask": MASK}
    _write(
        place / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "split_special_tokens": True,  # "</s>" in raw text is four characters, not the end of the sentence
            **{f"{name}_token": SPECIALS[number] for name, number in special.items()},
        },
    )
    if source.fingerprint == target.fingerprint:
        return "The tokenizer is the same for both sides; AutoTokenizer loads it."
    _fast(place / "target_tokenizer.json", target)
    return "AutoTokenizer loads the source tokenizer; the target's is target_tokenizer.json."


def _fast(path: Path, tokenizer: Tokenizer) -> None:
    """Write a `tokenizer.json` that adds the end symbol."""
    tokenizer.save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    end = {"SpecialToken": {"id": SPECIALS[EOS], "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, end],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, end, {"Sequence": {"id": "B", "type_id": 0}}, end],
        "special_tokens": {SPECIALS[EOS]: {"id": SPECIALS[EOS], "ids": [EOS], "tokens": [SPECIALS[EOS]]}},
    }
    _write(path, content)


def _numbers(tokenizer: Tokenizer) -> dict[str, int]:
    return {name: number for number, name in enumerate(unique_names(tokenizer.vocabulary))}


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
