"""Small random Marian models as `transformers` saves them: nothing is downloaded."""

import io
import json
import random
from pathlib import Path

import pytest

PAIRS = """a ein,man mann,dog hund,woman frau,runs läuft,sits sitzt,on auf,the der,street straße,with mit,red rotem,
blue blauem,bicycle fahrrad,near am,water wasser,and und,plays spielt,ball ball"""
WORDS = {
    side: [pair.split()[place] for pair in PAIRS.replace("\n", "").split(",")]
    for place, side in enumerate(("source", "target"))
}


def sentences(side: str, count: int, seed: int = 0) -> list[str]:
    """Random sentences of a side's words."""
    draw = random.Random(f"{side}{seed}")
    return [" ".join(draw.choices(WORDS[side], k=draw.randint(2, 9))) for _ in range(count)]


def spm(side: str, size: int = 40) -> bytes:
    """A SentencePiece model of a side's sentences."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="needs pip install 'regard[huggingface]'")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(side, 300)), model_writer=model, vocab_size=size, minloglevel=2
    )
    return model.getvalue()


def pieces(model: bytes) -> list[str]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def save_marian(
    directory: Path, *, shared: bool = True, seed: int = 0, steps: int = 0, one_spm: bool = False,
    extra: tuple[str, ...] = (), longer: int = 0, **settings,
):  # fmt: skip
    """A random MarianMTModel in a directory with its tokenizer files, as the hub has them; the model itself.

    `one_spm` gives both sides the SentencePiece model of the source; `extra` are tokens that no SentencePiece model
    produces, such as `<s>`; with two vocabularies the target's is `longer` than the source's by so many tokens.
    """
    transformers = pytest.importorskip("transformers", reason="needs pip install 'regard[huggingface]'")
    import torch

    directory.mkdir(parents=True, exist_ok=True)
    models = {side: spm("source" if one_spm else side) for side in WORDS}
    for side, model in models.items():
        (directory / f"{side}.spm").write_bytes(model)
    cut = {side: [p for p in pieces(model) if p not in ("<unk>", "<s>", "</s>")] for side, model in models.items()}
    joint = ["</s>", "<unk>", *extra, *dict.fromkeys(cut["source"] + cut["target"]), "<pad>"]
    apart = {side: ["</s>", "<unk>", *extra, *cut[side], "<pad>"] for side in WORDS}
    # Separate vocabularies still share the numbers of their special tokens.
    apart["target"] += [f"more{n}" for n in range(longer)]
    vocabularies = (
        {"vocab.json": joint} if shared else {"vocab.json": apart["source"], "target_vocab.json": apart["target"]}
    )
    for name, tokens in vocabularies.items():
        (directory / name).write_text(json.dumps({token: n for n, token in enumerate(tokens)}, ensure_ascii=False))
    sizes = [len(tokens) for tokens in vocabularies.values()]
    assert len(apart["source"]) == len(apart["target"]) - longer
    config = transformers.MarianConfig(
        **{
            "vocab_size": sizes[0],
            "decoder_vocab_size": sizes[-1],
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 64,
            "activation_function": "swish",
            "scale_embedding": True,
            "max_position_embeddings": 64,
            "pad_token_id": sizes[0] - 1,
            "decoder_start_token_id": sizes[0] - 1,
            "eos_token_id": 0,
            "forced_eos_token_id": None,
            "share_encoder_decoder_embeddings": shared,
            "init_std": 0.1,
            **settings,
        }
    )
    torch.manual_seed(seed)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        model.final_logits_bias.normal_(std=0.3)
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(torch.randn_like(parameter) * 0.1)
    if steps:
        teach(model, directory, steps)
    model.save_pretrained(directory)
    return model


def teach(model, directory: Path, steps: int) -> None:
    """Teach a Marian model to translate word by word, well enough for outputs that end and differ."""
    import torch

    tokenizer = tokenizer_of(directory)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for step in range(steps):
        sources = sentences("source", 24, seed=1000 + step)
        targets = [" ".join(WORDS["target"][WORDS["source"].index(word)] for word in one.split()) for one in sources]
        batch = tokenizer(sources, text_target=targets, padding=True, return_tensors="pt")
        batch["labels"] = batch["labels"].masked_fill(batch["labels"] == model.config.pad_token_id, -100)
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def tokenizer_of(directory: Path):
    """The tokenizer of `transformers`, without its advice on other libraries."""
    import warnings

    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.MarianTokenizer.from_pretrained(
            directory, separate_vocabs=(directory / "target_vocab.json").exists()
        )
