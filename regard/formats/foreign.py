"""Advice for directories and files that cannot be imported."""

from pathlib import Path

CONVERT_MARIAN = (
    "convert it with the script convert_marian_to_pytorch.py of transformers 4, or download the converted model (such "
    "as "
    "Helsinki-NLP/opus-mt-en-de) from the Hugging Face hub, and import that directory"
)
KNOWN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "a Marian model written by marian-nmt",
        ("decoder.yml", "*.npz.decoder.yml", "*.bin.decoder.yml", "*.npz.yml", "model.npz", "opus*.npz"),
        CONVERT_MARIAN,
    ),
    (
        "a fairseq model",
        ("dict.*.txt", "checkpoint*.pt", "model.pt"),
        "fairseq checkpoints cannot be imported; look for the same model in Hugging Face's Marian format",
    ),
    (
        "a CTranslate2 model",
        ("model.bin",),
        "import the model that it was converted from; CTranslate2 models can only translate",
    ),
    ("a NumPy archive, the format of marian-nmt models", ("*.npz",), CONVERT_MARIAN),
    (
        "an OpenNMT-py or other PyTorch checkpoint",
        ("*.pt",),
        "only Hugging Face directories of Marian and BERT can be imported; save the model with save_pretrained, "
        "if it has that format",
    ),
    (
        "a PyTorch checkpoint",
        ("*.pth", "*.ckpt"),
        "only Hugging Face directories of Marian and BERT can be imported; save the model with save_pretrained, "
        "if it has that format",
    ),
    (
        "weights without their configuration",
        ("*.safetensors", "pytorch_model*.bin"),
        "download config.json and the vocabulary that belong to them into the same directory",
    ),
    ("a binary model, perhaps of marian-nmt", ("*.bin",), CONVERT_MARIAN),
    (
        "a TensorFlow or Flax model",
        ("tf_model.h5", "flax_model.msgpack", "*.ckpt.index", "saved_model.pb"),
        "download model.safetensors or pytorch_model.bin of the same model",
    ),
    ("an ONNX model", ("*.onnx",), "download the model that it was converted from"),
    ("a GGUF file for llama.cpp", ("*.gguf",), "download the model that it was converted from"),
)
"""Descriptions by file name patterns (the first match counts), and what to do."""


def describe_foreign(place: Path) -> str | None:
    """Return what a file, or a directory without config.json, looks like and what to do; `None` if that is unknown."""
    try:
        names = [place] if place.is_file() else sorted(place.iterdir())
    except OSError:
        return None
    if any(path.name == "run.json" for path in names):
        return f"{place} is already a run of Regard. Use it directly: `regard translate {place}`."
    for looks, patterns, advice in KNOWN:
        found = next((path.name for pattern in patterns for path in names if path.match(pattern)), None)
        if found is not None:
            return f"{place} looks like {looks} ({found}), not like a Hugging Face directory. To use it here, {advice}."
    return None
