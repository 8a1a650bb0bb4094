"""What a directory or file that cannot be imported looks like, and what to do with it."""

from pathlib import Path

CONVERT_MARIAN = (
    "convert it with the script convert_marian_to_pytorch.py of transformers 4, or fetch the converted model (such as "
    "Helsinki-NLP/opus-mt-en-de) from the Hugging Face hub, and import that directory"
)
KNOWN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "a Marian model as marian-nmt writes it",
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
        "import the model that it was made from; CTranslate2 models are made for translating only",
    ),
    ("a NumPy archive, as marian-nmt writes its models", ("*.npz",), CONVERT_MARIAN),
    (
        "an OpenNMT-py or other PyTorch checkpoint",
        ("*.pt",),
        "only Hugging Face directories of Marian and BERT can be imported: save the model there with save_pretrained, "
        "if it has such a form",
    ),
    (
        "a PyTorch checkpoint",
        ("*.pth", "*.ckpt"),
        "only Hugging Face directories of Marian and BERT can be imported: save the model there with save_pretrained, "
        "if it has such a form",
    ),
    (
        "weights without their configuration",
        ("*.safetensors", "pytorch_model*.bin"),
        "fetch config.json and the vocabulary that belong to them into the same directory",
    ),
    ("a binary model, perhaps of marian-nmt", ("*.bin",), CONVERT_MARIAN),
    (
        "a TensorFlow or Flax model",
        ("tf_model.h5", "flax_model.msgpack", "*.ckpt.index", "saved_model.pb"),
        "fetch model.safetensors or pytorch_model.bin of the same model",
    ),
    ("an ONNX model", ("*.onnx",), "fetch the model that it was made from"),
    ("a GGUF file for llama.cpp", ("*.gguf",), "fetch the model that it was made from"),
)
"""What something looks like, by the names of its files (the first match counts), and what to do with it."""


def describe_foreign(place: Path) -> str | None:
    """Return what a file, or a directory without config.json, looks like and what to do; `None` if that is unknown."""
    try:
        names = [place] if place.is_file() else sorted(place.iterdir())
    except OSError:
        return None
    if any(each.name == "run.json" for each in names):
        return f"{place} is a run of Regard already. Use it as it is: `regard translate {place}`."
    for looks, patterns, advice in KNOWN:
        found = next((each.name for pattern in patterns for each in names if each.match(pattern)), None)
        if found is not None:
            return f"{place} looks like {looks} ({found}), not like a Hugging Face directory. To use it here, {advice}."
    return None
