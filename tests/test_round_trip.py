"""Import → export → import → export keeps logits and text, for random Marian models of every kind that is imported."""

import json

import pytest
import torch

from regard.formats.special_names import has_special_names, restore_names, unique_names
from regard.foundation.errors import RegardError
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.text.specials import BOS, EOS, PAD, SPECIALS
from tests.long_cases import few
from tests.marian import save_marian, sentences

transformers = pytest.importorskip("transformers", reason="needs pip install 'regard[huggingface]'")
pytest.importorskip("sentencepiece", reason="needs pip install 'regard[huggingface]'")


from regard.formats.from_huggingface import import_run  # noqa: E402
from regard.formats.to_huggingface import export_huggingface  # noqa: E402

KINDS = {
    "one vocabulary, one SentencePiece model": {"one_spm": True},
    "one vocabulary, two SentencePiece models": {},
    "a vocabulary that has <s> already": {"extra": ("<s>",)},
    "a vocabulary that has all our special tokens": {"extra": ("<s>", "<sep>", "<mask>")},
    "two vocabularies": {"shared": False, "activation_function": "relu"},
    "two vocabularies of different sizes, with <s>": {"shared": False, "longer": 3, "extra": ("<s>",)},
    "two vocabularies, nothing tied": {"shared": False, "tie_word_embeddings": False, "longer": 2},
    "starting with the end symbol": {"decoder_start_token_id": 0, "scale_embedding": False},
    "starting with a token of its own": {"extra": ("<s>",), "decoder_start_token_id": 2},
    "padding that is ruled out by its bias": {"ruled_out": -1e9},
    "padding that is ruled out for ever": {"ruled_out": float("-inf")},
}


@pytest.mark.parametrize("seed", few([1, 2], 1))
@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS.keys())
def test_a_model_goes_out_and_comes_in_again_with_the_same_logits_and_text(settings, seed, tmp_path):
    settings = dict(settings)
    ruled_out = settings.pop("ruled_out", None)
    # A taught model, so that outputs end and differ.
    model = save_marian(tmp_path / "0", seed=seed, steps=60 if settings.get("shared", True) else 0, **settings)
    if ruled_out is not None:
        with torch.no_grad():
            model.final_logits_bias[0, model.config.pad_token_id] = ruled_out
        model.save_pretrained(tmp_path / "0")
    texts = [*sentences("source", 6, seed=seed), "", "unseen wörds <s> </s> <pad> <sep>", " ".join(["dog"] * 70)]
    said, logits, vocabularies, settled = [], [], [], []
    for round_ in range(2):
        run = import_run(tmp_path / str(round_), tmp_path / f"run{round_}")
        export_huggingface(run, tmp_path / str(round_ + 1))
        translator = load_run(run.directory)
        torch.manual_seed(5)
        source = torch.randint(6, translator.source_tokenizer.size, (3, 9))
        inputs = torch.randint(6, translator.target_tokenizer.size, (3, 7))
        source[:, -1], source[1, 6:], source[1, 5], inputs[:, 0] = EOS, PAD, EOS, BOS
        with torch.inference_mode():
            logits.append(translator.model(source, inputs))
            there = transformers.MarianMTModel.from_pretrained(tmp_path / str(round_ + 1)).eval()
            theirs = there(input_ids=source, attention_mask=source != PAD, decoder_input_ids=inputs).logits
        torch.testing.assert_close(theirs, logits[0], atol=1e-4, rtol=1e-4)
        said.append([translator.translate(text) for text in texts])
        vocabularies.append((translator.source_tokenizer.vocabulary, translator.target_tokenizer.vocabulary))
        config = Run.open(run.directory).config
        settled.append((config.model, config.decoding, config.data.cleaning))
    assert torch.equal(logits[0], logits[1])
    assert said[0] == said[1]
    assert vocabularies[0] == vocabularies[1]
    assert settled[0] == settled[1]
    files = [
        [(tmp_path / str(round_) / name).read_bytes() for name in ("config.json", "vocab.json", "model.safetensors")]
        for round_ in (1, 2)
    ]
    assert files[0] == files[1]


def test_the_first_export_says_what_the_original_says(tmp_path):
    model = save_marian(tmp_path / "hf", steps=120, dropout=0.0, extra=("<s>",))
    run = import_run(tmp_path / "hf", tmp_path / "run")
    export_huggingface(run, tmp_path / "back")
    names = list(json.loads((tmp_path / "back" / "vocab.json").read_text()))
    assert names[:6] == ["<pad>", "<regard:s>", "</s>", "<unk>", "<sep>", "<mask>"] and names.count("<s>") == 1
    from tests.marian import tokenizer_of

    back = transformers.MarianMTModel.from_pretrained(tmp_path / "back").eval()
    for text in sentences("source", 4, seed=3):
        said = []
        for place, each in ((tmp_path / "hf", model), (tmp_path / "back", back)):
            tokenizer = tokenizer_of(place)
            ids = each.generate(**tokenizer([text], return_tensors="pt"), num_beams=3, max_new_tokens=30)
            said.append(tokenizer.decode(ids[0], skip_special_tokens=True))
        assert said[0] == said[1] == load_run(run.directory).translate(text, beam=3)


def test_names_are_unique_and_come_back():
    for pieces in (["a"], ["<s>", "a"], ["<pad>", "</s>", "<unk>", "<s>", "<sep>", "<mask>", "b"]):
        names = unique_names([*SPECIALS, *pieces])
        assert len(set(names)) == len(names) and has_special_names(names)
        assert restore_names(names) == [*SPECIALS, *pieces]
    assert not has_special_names(["</s>", "<unk>", "a", "b", "c", "d"])
    with pytest.raises(RegardError, match="Two tokens of the vocabulary are called `a`"):
        unique_names([*SPECIALS, "a", "a"])
