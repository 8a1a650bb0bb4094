"""What is wrong with a directory is told before anything is imported: its settings, its weights, its kind."""

import json
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from regard.cli import main
from regard.foundation.errors import RegardError, UsageError
from tests.marian import save_marian

pytest.importorskip("transformers", reason="needs pip install 'regard[huggingface]'")
pytest.importorskip("sentencepiece", reason="needs pip install 'regard[huggingface]'")

from regard.formats.from_huggingface import import_run


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    place = tmp_path_factory.mktemp("marian") / "hf"
    save_marian(place)
    return place


def copied(marian, tmp_path):
    place = tmp_path / "hf"
    shutil.copytree(marian, place)
    return place


def refused(place, tmp_path) -> str:
    """The sentence that an import ends with; nothing is left behind."""
    with pytest.raises(RegardError) as error:
        import_run(place, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"encoder_layers": 1}, "has 2 layers model.encoder.layers.…, but config.json declares encoder_layers = 1"),
        ({"decoder_layers": 2}, "has 3 layers model.decoder.layers.…, but config.json declares decoder_layers = 2"),
        ({"decoder_layers": 5}, "has 3 layers model.decoder.layers.…, but config.json declares decoder_layers = 5"),
        ({"pad_token_id": 0}, "for padding and end"),
        ({"pad_token_id": 1}, "for padding and unknown"),
        ({"eos_token_id": 1}, "for end and unknown"),
        ({"decoder_activation_function": "relu"}, "decoder activation function `relu`"),
        ({"normalize_before": True}, "has `normalize_before`"),
        ({"dropout": "abc"}, "`dropout` is 'abc', but it must be a number from 0 to 1"),
        ({"attention_dropout": [1]}, "`attention_dropout` is [1]"),
        ({"dropout": 1.5}, "`dropout` is 1.5"),
        ({"d_model": "32"}, "`d_model` is '32'"),
        ({"d_model": True}, "`d_model` is True"),
        ({"vocab_size": {}}, "`vocab_size` is {}"),
        ({"encoder_layers": 10**12}, "`encoder_layers` is 1000000000000"),
        ({"encoder_layers": 10**6}, "layers is 1000000"),
        ({"scale_embedding": "yes"}, "`scale_embedding` is 'yes', but it must be true or false"),
        ({"tie_word_embeddings": 1}, "`tie_word_embeddings` is 1"),
        ({"activation_function": 7}, "`activation_function` is 7, but it must be text"),
        ({"model_type": ["marian"]}, "`model_type` is ['marian']"),
        ({"eos_token_id": "x"}, "`eos_token_id` is 'x'"),
        ({"pad_token_id": -1}, "`pad_token_id` is -1"),
        ({"max_position_embeddings": "many"}, "`max_position_embeddings` is 'many'"),
        ({"num_beams": "x"}, "`num_beams` is 'x'"),
        ({"length_penalty": -3}, "`length_penalty` is -3"),
        ({"encoder_attention_heads": 5, "decoder_attention_heads": 5}, "is not divisible by 5 attention heads"),
    ],
)
def test_settings_that_do_not_belong_are_refused_by_name(marian, tmp_path, changes, said):
    place = copied(marian, tmp_path)
    path = place / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    told = refused(place, tmp_path)
    assert said in told and "config.json" in told and len(told) < 400, told


WRONG = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_value_anywhere_in_the_settings_is_a_bug_in_regard(marian, tmp_path_factory, data):
    place = copied(marian, tmp_path_factory.mktemp("fuzz"))
    name = data.draw(st.sampled_from(["config.json", "generation_config.json", "vocab.json"]))
    content = json.loads((place / name).read_text()) if (place / name).exists() else {}
    keys = sorted({*content, "num_beams", "max_length", "length_penalty", "decoder_activation_function"})
    content[data.draw(st.sampled_from(keys))] = data.draw(WRONG)
    (place / name).write_text(json.dumps(content))
    try:
        import_run(place, place.parent / "run")
    except RegardError as error:
        assert str(error).endswith(".") and not (place.parent / "run").exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_refused(marian, tmp_path, value):
    place = copied(marian, tmp_path)
    weights = load_file(place / "model.safetensors")
    weights["model.decoder.layers.1.fc1.weight"][3, 4] = value
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    told = refused(place, tmp_path)
    assert "model.decoder.layers.1.fc1.weight has 1 numbers that are not finite" in told


def test_quantized_weights_are_refused(marian, tmp_path):
    place = copied(marian, tmp_path)
    weights = load_file(place / "model.safetensors")
    weights["model.encoder.layers.0.fc1.weight"] = weights["model.encoder.layers.0.fc1.weight"].to(torch.int8)
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    assert "has the type int8" in refused(place, tmp_path)


def test_an_output_layer_that_is_not_the_embeddings_is_refused_where_they_are_one(marian, tmp_path):
    place = copied(marian, tmp_path)
    weights = load_file(place / "model.safetensors")
    weights["lm_head.weight"] = weights["model.shared.weight"] + 1
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    assert "lm_head.weight differs from model.shared.weight" in refused(place, tmp_path)


def test_an_activation_other_than_that_of_marian_nmt_is_refused(marian, tmp_path):
    place = copied(marian, tmp_path)
    (place / "decoder.yml").write_text("beam-size: 6\ntransformer-ffn-activation: relu\n")
    assert "trained with the activation `relu`" in refused(place, tmp_path)
    (place / "decoder.yml").write_text("transformer-ffn-activation: swish\n")
    assert import_run(place, tmp_path / "run").directory.exists()


@pytest.mark.parametrize(
    ("files", "looks"),
    [
        (["dict.en.txt", "dict.de.txt", "checkpoint_best.pt"], "a fairseq model"),
        (["model.npz", "vocab.yml", "decoder.yml"], "a Marian model written by marian-nmt"),
        (["opus.bpe32k.npz.best-perplexity.npz.decoder.yml"], "a Marian model"),
        (["model.alphas.bin", "decoder.yml"], "a Marian model"),
        (["weights.npz"], "a NumPy archive"),
        (["model.intgemm.bin", "vocab.spm"], "a binary model, perhaps of marian-nmt"),
        (["net.pth"], "a PyTorch checkpoint"),
        (["model_step_10000.pt"], "an OpenNMT-py or other PyTorch checkpoint"),
        (["model.bin", "shared_vocabulary.json"], "a CTranslate2 model"),
        (["model.safetensors"], "weights without their configuration"),
        (["model.onnx"], "an ONNX model"),
    ],
)
def test_foreign_directories_and_files_are_called_what_they_look_like(files, looks, tmp_path, capsys):
    place = tmp_path / "theirs"
    place.mkdir()
    for name in files:
        (place / name).write_bytes(b"\x00\x01")
    assert main(["import", str(place), str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert f"looks like {looks}" in told and "To use it here," in told and told.endswith(".\n"), told
    with pytest.raises(UsageError, match="looks like"):
        import_run(place / files[-1] if len(files) == 1 else place, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_and_an_empty_directory_are_told_apart(marian, tmp_path):
    run = import_run(marian, tmp_path / "run")
    with pytest.raises(UsageError, match="is already a run of Regard"):
        import_run(run.directory, tmp_path / "again")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RegardError, match=r"There is no config\.json"):
        import_run(tmp_path / "empty", tmp_path / "again")


def test_a_ctranslate2_directory_is_called_what_it_is(tmp_path):
    (tmp_path / "config.json").write_text('{"layer_norm_epsilon": null}')
    (tmp_path / "model.bin").write_bytes(b"\x06\0\0\0")
    with pytest.raises(UsageError, match="looks like a CTranslate2 model"):
        import_run(tmp_path, tmp_path / "run")


def test_tensors_without_a_place_are_named(marian, tmp_path, capsys):
    place = copied(marian, tmp_path)
    weights = load_file(place / "model.safetensors")
    assert main(["import", str(place), str(tmp_path / "plain")]) == 0
    assert "Left out" not in capsys.readouterr().err
    save_file(weights | {"model.foo": torch.zeros(2)}, place / "model.safetensors", metadata={"format": "pt"})
    assert main(["import", str(place), str(tmp_path / "run")]) == 0
    assert "1 tensors that this model does not use (model.foo)" in capsys.readouterr().err
