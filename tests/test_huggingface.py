"""Marian models come in and go out with the same numbers; `transformers` is the judge, nothing is downloaded."""

import json
import shutil

import pytest
import torch

from regard.cli import main
from regard.config.loading import from_mapping
from regard.foundation.errors import RegardError, UsageError
from regard.models import build
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.text.specials import BOS, EOS, PAD
from tests.marian import save_marian, sentences, tokenizer_of
from tests.random_runs import random_run

transformers = pytest.importorskip("transformers", reason="needs pip install 'regard[huggingface]'")
pytest.importorskip("sentencepiece", reason="needs pip install 'regard[huggingface]'")


from regard.formats.from_huggingface import import_run, renumbering  # noqa: E402
from regard.formats.hub_settings import HubSettings  # noqa: E402
from regard.formats.to_huggingface import export_huggingface  # noqa: E402

CASES = {
    "as OPUS has it": {},
    "gelu, unscaled": {"activation_function": "gelu", "scale_embedding": False, "encoder_layers": 1},
    "two vocabularies": {"activation_function": "relu", "shared": False},
    "nothing tied": {"shared": False, "tie_word_embeddings": False},
}


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A Marian model that translates word by word, and the run that it becomes."""
    place = tmp_path_factory.mktemp("marian")
    model = save_marian(place / "hf", steps=120, dropout=0.0)
    import_run(place / "hf", place / "run")
    return model, place / "hf", place / "run"


def both_logits(model, hf, run):
    """Logits of random input from both sides, in the imported vocabulary's order and for its tokens."""
    translator = load_run(run)
    settings = HubSettings.read(hf / "config.json")
    source = renumbering(hf / "vocab.json", settings, settings.integer("vocab_size"))
    apart = hf / "target_vocab.json"
    target = renumbering(apart, settings, settings.integer("decoder_vocab_size")) if apart.exists() else source
    torch.manual_seed(3)
    ours = torch.randint(6, len(source.tokens), (3, 9))
    ours[:, -1], ours[1, 6:], ours[1, 5] = EOS, PAD, EOS
    inputs = torch.randint(6, len(target.tokens), (3, 7))
    inputs[:, 0] = BOS
    with torch.inference_mode():
        mine = translator.model(ours, inputs)
        theirs = model(
            input_ids=source.rows[ours], attention_mask=(ours != PAD).long(), decoder_input_ids=target.rows[inputs]
        ).logits
    real = [EOS, 3, *range(6, len(target.tokens))]
    return mine[..., real], theirs[..., target.rows[real]]


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES.keys())
def test_an_imported_marian_model_gives_the_logits_of_transformers(settings, tmp_path):
    model = save_marian(tmp_path / "hf", **settings)
    import_run(tmp_path / "hf", tmp_path / "run")
    mine, theirs = both_logits(model, tmp_path / "hf", tmp_path / "run")
    assert (mine - theirs).abs().max() < 1e-4


def test_it_says_what_transformers_says_greedily_and_by_beam(taught):
    model, hf, run = taught
    translator, tokenizer = load_run(run), tokenizer_of(hf)
    texts = sentences("source", 8, seed=5)
    said = {1: 0, 4: 0}
    for text in texts:
        batch = tokenizer([text], return_tensors="pt")
        limit = 3 * (batch.input_ids.shape[1] - 1) + 10
        for beams in said:
            ids = model.generate(
                **batch, num_beams=beams, max_new_tokens=limit, bad_words_ids=[[model.config.pad_token_id]]
            )
            said[beams] += translator.translate(text, beam=beams) == tokenizer.decode(ids[0], skip_special_tokens=True)
    assert said == {1: len(texts), 4: len(texts)}


def test_its_attention_can_be_inspected_and_is_that_of_transformers(taught):
    model, hf, run = taught
    seen = load_run(run).trace("a dog runs", "ein hund läuft")
    tokenizer = tokenizer_of(hf)
    batch = tokenizer(["a dog runs"], text_target=["ein hund läuft"], return_tensors="pt")
    start = torch.tensor([[model.config.decoder_start_token_id]])
    inputs = torch.cat([start, batch.pop("labels")[:, :-1]], dim=1)
    with torch.inference_mode():
        model.set_attn_implementation("eager")
        there = model(**batch, decoder_input_ids=inputs, output_attentions=True).cross_attentions
    for depth, weights in enumerate(there):
        mine = seen.activations[f"decoder.layers.{depth}.source_attention.weights"]
        assert torch.allclose(mine, weights, atol=1e-5)


def test_a_torch_file_is_read_like_safetensors(taught, tmp_path):
    model, hf, run = taught
    shutil.copytree(hf, tmp_path / "hf")
    (tmp_path / "hf" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "hf" / "pytorch_model.bin")
    import_run(tmp_path / "hf", tmp_path / "run")
    mine, theirs = (load_run(each).model.state_dict() for each in (tmp_path / "run", run))
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def damaged(change):
    """What importing says of a directory that has been damaged."""

    def without(name):
        return lambda place: (place / name).unlink()

    return without(change) if isinstance(change, str) else change


def _truncate(place):
    path = place / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5000])


def _edit(**settings):
    def change(place):
        path = place / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))

    return change


def _drop_a_token(place):
    vocabulary = json.loads((place / "vocab.json").read_text())
    vocabulary.popitem()
    (place / "vocab.json").write_text(json.dumps(vocabulary))


def _pickle(place):
    (place / "model.safetensors").unlink()
    torch.save({"model": print}, place / "pytorch_model.bin")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("config.json", "weights without their configuration .* download config.json"),
        (_edit(model_type="bart"), "`bart`"),
        (_edit(activation_function="tanh"), "`tanh`"),
        (_edit(encoder_layers=3), "has 2 layers model.encoder.layers.…, but config.json declares encoder_layers = 3"),
        (_edit(decoder_ffn_dim=70), "64×32, but config.json requires 70×32"),
        ("model.safetensors", "no weights"),
        (_truncate, "is the first incomplete tensor"),
        (_pickle, "weights only"),
        ("source.spm", "source.spm"),
        (_drop_a_token, "tokens, but config.json declares"),
    ],
)
def test_a_damaged_directory_is_refused_by_name_and_leaves_nothing(taught, tmp_path, change, said):
    shutil.copytree(taught[1], tmp_path / "hf")
    damaged(change)(tmp_path / "hf")
    with pytest.raises(RegardError, match=said):
        import_run(tmp_path / "hf", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_import_and_export_on_the_command_line(taught, tmp_path, capsys):
    assert main(["import", str(taught[1]), str(tmp_path / "run")]) == 0
    assert "regard translate" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "hf"), "--to", "huggingface"]) == 0
    assert "MarianMTModel" in capsys.readouterr().out
    assert main(["runs", str(tmp_path)]) == 0
    assert "finished" in capsys.readouterr().out
    assert main(["import", str(tmp_path / "nowhere"), str(tmp_path / "other")]) == 2


def test_an_imported_run_says_that_its_corpus_is_elsewhere(taught, tmp_path, capsys):
    config = str(taught[2] / "config.yaml")
    assert main(["train", config, "--run", str(tmp_path / "again"), "training.steps=1"]) == 1
    assert "trained elsewhere" in capsys.readouterr().err


def test_a_run_is_never_written_over(taught, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("do not lose me")
    with pytest.raises(UsageError, match="not an empty directory"):
        import_run(taught[1], tmp_path / "run")


POST = {"norm_place": "post", "activation": "silu", "layers": 2}
EXPORTED = {
    "post-norm is marian": ({"encoder": {**POST, "feed_forward": 40}, "decoder": POST}, None),
    "pre-norm is pegasus": (
        {"encoder": {"layers": 2, "activation": "gelu"}, "decoder": {"layers": 1, "activation": "gelu"}},
        None,
    ),
    "unscaled": ({"encoder": POST, "decoder": POST, "embeddings": {"scale": False}}, None),
    "two vocabularies": ({"encoder": POST, "decoder": POST}, "words"),
    "nothing tied": ({"encoder": POST, "decoder": POST, "embeddings": {"tie": "none"}}, None),
    "pruned heads": ({"encoder": POST, "decoder": POST, "pruned": {"decoder.layers.0.source_attention": [1, 3]}}, None),
}


@pytest.mark.parametrize(("model", "target"), EXPORTED.values(), ids=EXPORTED.keys())
def test_transformers_loads_what_is_exported_and_gives_the_same_logits(model, target, tmp_path):
    run = random_run(tmp_path / "run", model, target=target)
    export_huggingface(run, tmp_path / "hf")
    theirs, told = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    unexpected = [name for name in (*told["missing_keys"], *told["unexpected_keys"]) if "embed_positions" not in name]
    assert not unexpected
    translator = load_run(run.directory)
    source, inputs = torch.randint(6, 15, (2, 7)), torch.randint(6, 15, (2, 5))
    source[:, -1], source[1, 4:], source[1, 3], inputs[:, 0] = EOS, PAD, EOS, BOS
    with torch.inference_mode():
        logits = theirs.eval()(input_ids=source, attention_mask=source != PAD, decoder_input_ids=inputs).logits
        assert (translator.model(source, inputs) - logits).abs().max() < 1e-4


def test_exported_tokenizers_cut_text_as_ours_do(tmp_path):
    run = random_run(tmp_path / "run", {"encoder": POST, "decoder": POST}, tokenizer="bpe")
    export_huggingface(run, tmp_path / "hf")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    ours = load_run(run.directory).source_tokenizer
    for text in ("a b c", "  unseen wörds, 12 </s>"):
        assert theirs(text)["input_ids"] == [*ours.encode(text).ids, EOS]
        assert theirs.decode(ours.encode(text).ids) == ours.decode(ours.encode(text).ids)


def test_an_imported_run_goes_out_again_as_it_came(taught, tmp_path):
    model, hf, run = taught
    export_huggingface(Run.open(run), tmp_path / "back")
    back = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back").eval()
    tokenizers = tokenizer_of(hf), transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    text = sentences("source", 1, seed=9)
    said = []
    for tokenizer, each in zip(tokenizers, (model, back), strict=True):
        ids = each.generate(**tokenizer(text, return_tensors="pt"), num_beams=4, max_new_tokens=30)
        said.append(tokenizer.decode(ids[0], skip_special_tokens=True))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ({"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}}, "model.encoder.kind `rnn`"),
        ({"positions": {"kind": "rotary"}}, "model.positions.kind `rotary`"),
        ({"encoder": {"norm": "rms"}}, "model.encoder.norm `rms`"),
        ({"decoder": {"activation": "swiglu"}}, "model.decoder.activation `swiglu`"),
        ({"attention": {"score": "additive"}}, "model.attention.score `additive`"),
        ({"join": {"kind": "fixed"}}, "model.join.kind `fixed`"),
    ],
)
def test_a_cell_without_an_equal_says_which_part_has_none(model, part, tmp_path):
    run = random_run(tmp_path / "run", model)
    with pytest.raises(RegardError, match=part):
        export_huggingface(run, tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_a_sentencepiece_model_serves_to_train_ones_own(tmp_path):
    from regard.tasks.preparation import prepare
    from tests.marian import spm

    (tmp_path / "my.spm").write_bytes(spm("source"))
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{one}\n" for one in sentences("source", 60)))
    config = from_mapping(
        {
            "data": {"train": {"tsv": str(tmp_path / "pairs.tsv")}, "held_out": 5},
            "text": {"tokenizer": {"kind": "sentencepiece", "model": str(tmp_path / "my.spm")}},
            "model": {"width": 16},
        }
    )
    prepared = prepare(config, tmp_path / "run")
    tokenizer = prepared.task.input.tokenizer
    assert tokenizer.kind == "sentencepiece"
    assert tokenizer.fingerprint == prepare(config, tmp_path / "run").task.input.tokenizer.fingerprint
    text = "  a dog\truns "
    encoded = tokenizer.encode(text)
    assert tokenizer.encode_batch([text, ""]) == [encoded.ids, []]
    assert tokenizer.decode(encoded.ids) == tokenizer.normalise(text) == "a dog runs"
    assert encoded.words[0] == 0 and encoded.words[-1] == 2
    assert "".join(text[first:last] for first, last in encoded.offsets) == "adogruns"
    assert build(config.model, tokenizer.size, tokenizer.size).output_bias.shape == (tokenizer.size,)
