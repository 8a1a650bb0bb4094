"""A run that starts from another has its cell, its tokenizers and its search; what differs is refused at once."""

import math

import pytest
import torch
import torch.nn.functional as F

from regard import planning
from regard.cli import main
from regard.config.loading import from_mapping, load
from regard.foundation.errors import UsageError
from regard.foundation.weights import read_weights
from regard.objectives.objective import cross_entropy
from regard.runs.run import Run
from regard.tasks.preparation import prepare
from regard.tasks.vocabularies import load_tokenizers
from regard.training.journal import Journal
from regard.training.loop import train
from regard.training.start import Start
from regard.training.view import View
from tests.marian import WORDS, save_marian, sentences

pytest.importorskip("transformers", reason="needs pip install 'regard[huggingface]'")
pytest.importorskip("sentencepiece", reason="needs pip install 'regard[huggingface]'")

from regard.formats.from_huggingface import import_run
from regard.tasks.loaded import load_run

KINDS = {
    "one vocabulary, two SentencePiece models": {},
    "two vocabularies": {"shared": False, "longer": 3},
    "nothing tied": {"shared": False, "tie_word_embeddings": False},
}


def pairs(directory) -> str:
    """Sentences and their translations word by word."""
    rows = []
    for source in sentences("source", 80, seed=4):
        rows.append(f"{source}\t{' '.join(WORDS['target'][WORDS['source'].index(word)] for word in source.split())}")
    (directory / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(directory / "pairs.tsv")


def settings(base, directory, **more):
    """A configuration that says nothing but what it starts from, and its data."""
    course = {
        "steps": 3,
        "validate_every": 3,
        "checkpoint_every": 3,
        "batch_tokens": 200,
        "device": "cpu",
        "log_every": 1,
    }
    return {
        "data": {"train": {"tsv": pairs(directory)}, "held_out": 8},
        "model": {"start_from": str(base)},
        "training": course | {"optimizer": {"learning_rate": 1e-5}},
        **more,
    }


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_an_imported_model_is_tuned_with_its_own_cell_tokenizers_and_search(kind, tmp_path):
    save_marian(tmp_path / "hf", **kind)
    (tmp_path / "hf" / "generation_config.json").write_text('{"num_beams": 3, "length_penalty": 0.7}')
    base = import_run(tmp_path / "hf", tmp_path / "base")
    config = from_mapping(settings(tmp_path / "base", tmp_path))
    assert config.model.model_copy(update={"start_from": None}) == base.config.model
    assert config.decoding == base.config.decoding and config.decoding.beam == 3
    train(config, tmp_path / "tuned", view=View())
    there, here = load_tokenizers(base.tokenizers), load_tokenizers(tmp_path / "tuned" / "tokenizers")
    assert [one.fingerprint for one in there] == [one.fingerprint for one in here]
    assert here[0].fingerprint != here[1].fingerprint
    prepared = prepare(config, tmp_path / "tuned")
    target = prepared.task.output.tokenizer.encode_batch(["ein hund läuft auf der straße"])
    assert target == there[1].encode_batch(["ein hund läuft auf der straße"]) and 3 not in target[0]  # 3 is unknown
    taken = Run.open(tmp_path / "tuned").info["taken"]
    weights = read_weights(Run.open(tmp_path / "tuned").weights)
    assert sorted(taken) == sorted(weights)  # nothing is fresh
    for name, tensor in read_weights(base.weights).items():
        assert torch.allclose(weights[name], tensor, atol=1e-3), name
    losses = [line["loss"] for line in Journal(Run.open(tmp_path / "tuned").metrics).lines() if line["kind"] == "train"]
    assert losses and all(0 < loss < 20 for loss in losses)
    # A run is complete: it opens where its base is gone.
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    assert isinstance(load_run(tmp_path / "tuned").translate("a dog runs"), str)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("model.width", 64, "model.width is 64 here, but 32"),
        ("model.encoder.layers", 1, "model.encoder.layers is 1 here, but 2"),
        ("model.decoder.layers", 4, "model.decoder.layers is 4 here, but 3"),
        ("model.decoder.activation", "relu", "model.decoder.activation is relu here, but silu"),
        ("model.decoder.kind", "rnn", "model.decoder.kind is rnn here, but transformer"),
        ("model.attention.heads", 2, "model.attention.heads is 2 here, but 4"),
        ("model.embeddings.tie", "none", "model.embeddings.tie is none here, but all"),
        ("model.positions.kind", "rotary", "model.positions.kind is rotary here, but sinusoidal"),
        ("text.tokenizer.kind", "bpe", "text.tokenizer.kind is bpe here, but sentencepiece"),
        ("text.joint", "false", "text.joint is false here, but true"),
        ("text.target.kind", "characters", "text.target is characters here, but not set"),
        ("decoding.beam", 9, "decoding.beam is 9 here, but 4"),
    ],
)
def test_what_a_file_says_differently_is_refused_before_any_data_is_read(key, value, told, marian_base, tmp_path):
    given = settings(marian_base, tmp_path)
    given["data"]["train"] = {"tsv": str(tmp_path / "nowhere.tsv")}
    with pytest.raises(UsageError, match=told) as error:
        from_mapping(given, [f"{key}={value}"])
    assert str(marian_base) in str(error.value) and "Remove" in str(error.value)
    same = from_mapping(given)
    assert from_mapping(given, ["model.width=32", "decoding.beam=4"]) == same
    # What no weight depends on is a run's own.
    assert from_mapping(given, ["model.dropout=0.3", "decoding.batch_tokens=99"]).model.dropout == 0.3
    with pytest.raises(UsageError, match=r"model\.width is 64"):
        Start.of(same.model_copy(update={"model": same.model.model_copy(update={"width": 64})}))


@pytest.fixture(scope="module")
def marian_base(tmp_path_factory):
    place = tmp_path_factory.mktemp("base")
    save_marian(place / "hf")
    (place / "hf" / "generation_config.json").write_text('{"num_beams": 4}')
    import_run(place / "hf", place / "run")
    return place / "run"


def test_a_preset_that_differs_is_refused_too(marian_base, tmp_path):
    with pytest.raises(UsageError, match=r"which model\.start_from names"):
        from_mapping({**settings(marian_base, tmp_path), "preset": "transformer-tiny"})


def test_a_run_without_its_base_is_read_and_a_new_one_says_what_is_missing(tmp_path, capsys):
    given = settings(tmp_path / "nowhere", tmp_path)
    with pytest.raises(UsageError, match=r"model\.start_from cannot be used: .*nowhere does not exist"):
        from_mapping(given)


def test_a_plan_follows_the_run_that_is_started_from(marian_base, tmp_path, capsys):
    config = from_mapping(settings(marian_base, tmp_path))
    made = planning.plan(config, measure=False)
    base = Run.open(marian_base)
    sizes = tuple(one.size for one in load_tokenizers(base.tokenizers))
    assert made.vocabulary == sizes
    assert sum(made.parameters.values()) == base.info["parameters"]
    tokenizers = load_tokenizers(base.tokenizers)
    first = next(iter((tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines())).split("\t")
    assert made.lengths.each[0] == tuple(len(tokenizers[side].encode(first[side]).ids) + 1 for side in (0, 1))
    import yaml

    (tmp_path / "my.yaml").write_text(yaml.safe_dump(settings(marian_base, tmp_path)))
    assert main(["plan", str(tmp_path / "my.yaml"), "--no-measure"]) == 0
    assert f"{sizes[0]:,} source and {sizes[1]:,} target tokens" in capsys.readouterr().out
    assert load(tmp_path / "my.yaml").model == config.model


def test_a_language_model_that_starts_from_a_translator_has_the_words_that_it_wrote(tmp_path):
    """The decoder is taken over, so its vocabulary is the target's: the source's would be read by the wrong vectors."""
    save_marian(tmp_path / "hf", shared=False, longer=2)
    base = import_run(tmp_path / "hf", tmp_path / "base")
    (tmp_path / "text.txt").write_text("\n".join(sentences("target", 60)) + "\n", encoding="utf-8")
    given = settings(tmp_path / "base", tmp_path, task={"kind": "language-model", "length": 16})
    given["data"] = {"train": {"text": str(tmp_path / "text.txt")}, "held_out": 5, "cleaning": {"duplicates": "keep"}}
    train(from_mapping(given), tmp_path / "run", view=View())
    own = load_tokenizers(tmp_path / "run" / "tokenizers")[0]
    assert own.fingerprint == load_tokenizers(base.tokenizers)[1].fingerprint
    vectors = read_weights(Run.open(tmp_path / "run").weights)["decoder.embedding.weight"]
    assert torch.allclose(vectors, read_weights(base.weights)["decoder.embedding.weight"], atol=1e-3)


class TestSmoothing:
    @pytest.mark.parametrize("ruled_out", [-60.0, -100.0, -1e9])
    def test_tokens_that_are_never_produced_have_no_part_in_it(self, ruled_out):
        torch.manual_seed(0)
        states = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(11, 4, dtype=torch.float64, requires_grad=True)
        bias = torch.randn(11, dtype=torch.float64)
        bias[[0, 4, 7]] = ruled_out
        bias.requires_grad_()
        targets = torch.tensor([[1, 2, 3, 5, 6], [8, 9, 10, 0, 0], [1, 1, 2, 0, 0]])
        loss = cross_entropy(states, weight, bias, targets, smoothing=0.1, scale=0.5)
        logs = F.linear(states, weight, bias).log_softmax(2)
        real, left = targets != 0, [1, 2, 3, 5, 6, 8, 9, 10]
        nll = -logs.gather(2, targets[:, :, None])[..., 0][real].sum()
        expected = 0.5 * (0.9 * nll - 0.1 * logs[..., left].mean(2)[real].sum())
        torch.testing.assert_close(loss.smoothed, expected)
        inputs = (states, weight, bias)
        for ours, plain in zip(
            torch.autograd.grad(loss.smoothed, inputs), torch.autograd.grad(expected, inputs), strict=True
        ):
            torch.testing.assert_close(ours, plain)

    def test_the_loss_of_an_imported_model_is_a_number_that_means_something(self, tmp_path):
        model = save_marian(tmp_path / "hf")
        with torch.no_grad():
            model.final_logits_bias[0, model.config.pad_token_id] = -1e9
        model.save_pretrained(tmp_path / "hf")
        run = import_run(tmp_path / "hf", tmp_path / "run")
        found = load_run(run.directory).model
        targets = torch.randint(6, 30, (4, 6))
        states = torch.randn(4, 6, 32)
        loss = cross_entropy(states, found.output_weight, found.output_bias, targets, smoothing=0.1)
        assert math.isfinite(loss.smoothed.item()) and loss.smoothed.item() / loss.tokens < 50


def test_a_run_with_another_kind_of_encoder_is_refused_before_any_data_is_read(tmp_path, capsys):
    from tests.stored_runs import FIXTURES

    captions = FIXTURES / "format-1" / "captions"
    (tmp_path / "my.yaml").write_text(
        f"data: {{train: {{tsv: {tmp_path / 'not-there.tsv'}}}}}\nmodel: {{start_from: {captions}}}\n"
    )
    assert main(["train", str(tmp_path / "my.yaml"), "--run", str(tmp_path / "run")]) == 2
    assert "encoder is of kind `image`" in capsys.readouterr().err


def test_advice_is_written_as_a_file_would_have_it(tmp_path):
    save_marian(tmp_path / "hf", **KINDS["two vocabularies"])
    import_run(tmp_path / "hf", tmp_path / "base")
    given = settings(tmp_path / "base", tmp_path)
    with pytest.raises(UsageError, match=r"text\.joint is true here, but false in .*, or set text\.joint=false\.$"):
        from_mapping(given, ["text.joint=true"])
    assert from_mapping(given, ["text.joint=false"]) == from_mapping(given)


class TestWhereADifferenceComesFrom:
    """A setting that contradicts `model.start_from` is reported at the place that sets it."""

    def refused(self, marian_base, tmp_path, overrides=(), **more) -> str:
        import yaml

        given = {**settings(marian_base, tmp_path), **more}
        text = "\n".join(["# a comment", "", yaml.safe_dump(given, sort_keys=False)])
        (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(UsageError) as error:
            load(tmp_path / "my.yaml", overrides)
        return str(error.value).replace(f"{tmp_path}/", "")

    def test_the_line_of_the_file(self, marian_base, tmp_path):
        told = self.refused(marian_base, tmp_path, model={"start_from": str(marian_base), "width": 64})
        line = (tmp_path / "my.yaml").read_text().splitlines().index("  width: 64") + 1
        assert told.startswith(f"my.yaml:{line}: model.width is 64") and "Remove model.width," in told

    @pytest.mark.parametrize(
        "override", ["model.encoder.layers=9", "model.encoder={layers: 9}", "model={encoder: {layers: 9}}"]
    )
    def test_the_command_line_although_the_file_has_that_setting_too(self, override, marian_base, tmp_path):
        model = {"start_from": str(marian_base), "encoder": {"layers": 2}}
        told = self.refused(marian_base, tmp_path, [override], model=model)
        assert told.startswith("command line: model.encoder.layers is 9")

    def test_a_section_whose_kind_the_command_line_changes(self, marian_base, tmp_path):
        text = {"target": {"kind": "words"}}
        told = self.refused(marian_base, tmp_path, ["text.target.kind=characters"], text=text)
        assert told.startswith("command line: text.target is characters")

    def test_a_preset_of_the_command_line(self, marian_base, tmp_path):
        model = {"start_from": str(marian_base), "width": 32}
        told = self.refused(marian_base, tmp_path, ["preset=transformer-tiny"], model=model)
        assert told.startswith("command line (preset transformer-tiny): model.width is 128")
        assert "Remove the preset transformer-tiny, or set model.width=32." in told

    def test_a_preset_of_the_file(self, marian_base, tmp_path):
        told = self.refused(marian_base, tmp_path, preset="transformer-tiny")
        line = (tmp_path / "my.yaml").read_text().splitlines().index("preset: transformer-tiny") + 1
        assert told.startswith(f"my.yaml:{line} (preset transformer-tiny): model.width is 128")
        # What the file sets above its preset is the file's own.
        told = self.refused(
            marian_base, tmp_path, preset="transformer-tiny", model={"start_from": str(marian_base), "width": 64}
        )
        assert told.startswith("my.yaml:") and "(preset" not in told and "Remove model.width," in told
