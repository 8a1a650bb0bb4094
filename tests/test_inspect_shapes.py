"""Looking into models that only read, or only write: what holds of a trace holds of theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard import inspection
from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.prepare import prepare
from regard.errors import UsageError
from regard.inspection.reasons import trusted
from regard.nn import taps
from regard.predictor import Predictor
from regard.shapes.choice import shape_of
from regard.training.loop import train
from regard.training.view import View
from regard.writer import Writer
from tests.test_shapes import corpus, settings, shape_and_model, tagged_lines

TEXTS = {
    "classes": "w1 w2 w3",
    "number": "w1 w2\tw3 w4 w5",
    "pairs": "w1 w2\tw3 w4 w5",
    "tags": "w1 w2 w3",
    "masked": "w1 ___ w3 ___",
}
ENCODERS = ("bag", "rnn", "conv", "transformer")


def reader(kind: str, directory: Path, **more: Any) -> Predictor:
    shape, model, _ = shape_and_model(kind, directory, **more)
    return Predictor(shape, model)


def writer(directory: Path, **more: Any) -> Writer:
    shape, model, _ = shape_and_model("language", directory, **more)
    return Writer(model, shape.config, shape.form.target)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_watched_is_unwatched(kind, encoder, tmp_path):
    found = reader(kind, tmp_path, model={"encoder": {"kind": encoder}})
    trace = found.trace(TEXTS[kind])
    source, asked = trace.tensors()
    with torch.no_grad():
        plain = found.model.scores(found.model.outputs(source, asked))[0].log_softmax(-1)
    torch.testing.assert_close(trace.log_probabilities, plain, atol=1e-5, rtol=1e-4)
    assert len(trace.target) == {"tags": 3, "masked": 2}.get(kind, 1) and trace.reads_only


@pytest.mark.parametrize("kind", ["classes", "pairs", "tags"])
def test_what_is_traced_is_what_is_predicted(kind, tmp_path):
    found = reader(kind, tmp_path)
    trace, facts = found.trace(TEXTS[kind]), found.predict(TEXTS[kind]).facts
    assert trace.target.tokens == (facts["tags"] if kind == "tags" else [facts["label"]])
    if kind != "tags":
        assert trace.said.exp().item() == pytest.approx(facts["probabilities"][facts["label"]], abs=1e-4)


@pytest.mark.parametrize("pool", [None, "attention"])
@pytest.mark.parametrize("pairs", ["joined", "apart", "attended"])
def test_rows_of_every_map_sum_to_one_and_texts_read_apart_see_only_what_they_may(pairs, pool, tmp_path):
    shape = {"pairs": pairs, "pool": pool}
    trace = reader("pairs", tmp_path, shape=shape, model={"encoder": {"kind": "transformer"}}).trace(TEXTS["pairs"])
    found = inspection.attention(trace)
    kinds = {one.kind for one in found.heads}
    assert "encoder" in kinds and ("between" in kinds) == (pairs == "attended")
    assert ("source" in kinds) == (pool == "attention" and pairs != "attended")
    for one in found.heads:
        rows, across = found.sides(one.kind)
        assert one.weights.shape[1:] == (len(rows), len(across))
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]), atol=1e-5, rtol=1e-5)
        if pairs != "joined" and one.kind != "source":
            first = trace.parts[0]
            inside = one.weights[:, :first, :first].sum()
            assert (inside == 0) == (one.kind == "between")
    assert trace.source.tokens.count("</s>") == (1 if pairs == "joined" else 2)


@pytest.mark.parametrize("pairs", ["joined", "apart", "attended"])
def test_an_intervention_reaches_every_text(pairs, tmp_path):
    trace = reader("pairs", tmp_path, shape={"pairs": pairs}, model={"encoder": {"kind": "transformer"}}).trace(
        TEXTS["pairs"]
    )
    name = "encoder.layers.0.states"
    held = trace.activations[name]
    same = trace.again({name: lambda was: was})
    torch.testing.assert_close(same.log_probabilities, trace.log_probabilities)
    gone = trace.again({name: torch.zeros_like})
    assert held.shape[0] == len(trace.source) and gone.activations[name].abs().max() == 0
    with pytest.raises(UsageError, match="no tap"):
        trace.again({"encoder.nowhere": lambda was: was})


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_reasons_sum_to_what_all_words_did(kind, encoder, tmp_path):
    trace = reader(kind, tmp_path, model={"encoder": {"kind": encoder}}).trace(TEXTS[kind])
    found = inspection.reasons(trace, ["integrated", "occlusion"])
    for reason in found.reasons:
        amounts = reason.methods["integrated"]
        assert amounts.shape == (len(trace.target), len(trace.source)) and trusted(reason)
        special = torch.tensor(trace.source.special)
        assert amounts[:, special].abs().max() == 0 and reason.methods["occlusion"][:, special].abs().max() == 0


@pytest.mark.parametrize("pairs", ["apart", "attended"])
def test_reasons_know_both_texts(pairs, tmp_path):
    trace = reader("pairs", tmp_path, shape={"pairs": pairs}).trace(TEXTS["pairs"])
    found = inspection.reasons(trace, ["integrated"])
    amounts = found.reasons[0].methods["integrated"]
    first = trace.parts[0]
    assert trusted(found.reasons[0]) and amounts[:, :first].any() and amounts[:, first:].any()


def test_the_word_that_was_planted_is_the_reason(tmp_path):
    lines = [f"{'yes' if seed % 2 else 'no'} {'good' if seed % 2 else 'bad'} w{seed % 7}" for seed in range(200)]
    config = settings("classes", tmp_path, training={"steps": 60, "validate_every": 60, "checkpoint_every": 60})
    config["data"] = {"train": {"labelled": corpus(tmp_path / "easy.txt", lines)}, "cleaning": {"duplicates": "keep"}}
    config["model"]["encoder"] = {"kind": "bag"}
    train(from_mapping(config), tmp_path / "run", view=View())
    predictor = Predictor.load(tmp_path / "run")
    for text, label, word in (("good w1", "yes", "good"), ("w3 bad", "no", "bad")):
        trace = predictor.trace(text)
        found = inspection.reasons(trace)
        for amounts in found.reasons[0].methods.values():
            best = found.read.word_texts[int(found.words(amounts)[0].argmax())]
            assert (trace.target.tokens, best) == ([label], word)
    against = inspection.reasons(predictor.trace("good w1", "no"), ["occlusion"])
    worst = against.words(against.reasons[0].methods["occlusion"])[0]
    assert against.read.word_texts[int(worst.argmin())] == "good"


@pytest.mark.parametrize("kind", ["classes", "tags", "masked", "pairs"])
def test_effective_attention_does_the_same(kind, tmp_path):
    more: dict[str, Any] = {"shape": {"pairs": "attended"}} if kind == "pairs" else {}
    longer = {"pairs": "w1 w2 w3 w4 w5 w6 w7\tw8 w9 w1 w2 w3 w4 w5 w6"}
    text = longer.get(
        kind, "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 ___" if kind == "masked" else "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10"
    )
    model = {"encoder": {"kind": "transformer"}, "width": 8, "attention": {"heads": 2}}
    found = inspection.identify(reader(kind, tmp_path, model=model, **more).trace(text))
    shown = {one.what: one for one in found.demonstrations}
    assert shown["effective"].change < 1e-4 and shown["elsewhere"].change < 1e-4 < shown["control"].change
    torch.testing.assert_close(found.mixing.contributions.sum(-1), torch.ones(found.mixing.contributions.shape[:2]))


@pytest.mark.parametrize("decoder", ["rnn", "conv", "transformer"])
def test_a_language_model_is_looked_into_by_its_text(decoder, tmp_path):
    found = writer(tmp_path, model={"decoder": {"kind": decoder}})
    trace = found.trace("w1 w2 w3 w4")
    assert len(trace.source) == 0 and trace.target.tokens == ["w1", "w2", "w3", "w4", "</s>"]
    reasons = inspection.reasons(trace, ["integrated", "occlusion"])
    amounts = reasons.reasons[0].methods["integrated"]
    assert trusted(reasons.reasons[0]) and amounts.triu(1).abs().max() < 1e-6  # nobody has read what comes behind
    assert inspection.lens(trace).ranks.shape[1] == 5
    if decoder == "transformer":
        assert {one.kind for one in inspection.attention(trace).heads} == {"decoder"}
    with pytest.raises(UsageError, match="no source"):
        inspection.contributions(trace)
    with pytest.raises(UsageError, match="encoder"):
        inspection.identify(trace)
    with pytest.raises(UsageError, match="no target"):
        found.trace("w1", "w2")


def test_a_text_with_nothing_in_it_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nothing to look into"):
        reader("classes", tmp_path).trace(" ")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs as they are on a disk."""
    found = {}
    for kind in ("pairs", "tags", "language"):
        place = tmp_path_factory.mktemp(kind)
        end = "decoder" if kind == "language" else "encoder"
        more = {"shape": {"pairs": "attended"}} if kind == "pairs" else {}
        config = from_mapping(settings(kind, place, model={end: {"kind": "transformer"}}, **more))
        train(config, place / "run", view=View())
        found[kind] = place / "run"
    return found


def test_the_command_line_looks_into_every_shape(runs, capsys, tmp_path):
    for kind, text in (("pairs", TEXTS["pairs"]), ("tags", TEXTS["tags"]), ("language", "w1 w2")):
        for analysis in ("attention", "attribute", *(["identify"] if kind != "language" else ["lens"])):
            page = tmp_path / f"{kind}-{analysis}.html"
            assert main(["inspect", analysis, str(runs[kind]), text, "-o", str(page)]) == 0
            assert "showAll" in page.read_text()
            capsys.readouterr()
            assert main(["inspect", analysis, str(runs[kind]), text, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)
    assert main(["inspect", "attribute", str(runs["pairs"]), TEXTS["pairs"], "-o", str(tmp_path / "x.png")]) == 0


def test_what_does_not_apply_says_so_in_a_sentence(runs, capsys, tmp_path):
    text = corpus(tmp_path / "a.txt", ["w1 w2"])
    for words in (
        ["lens", "RUN", "w1 w2"], ["contributions", "RUN", "w1 w2"], ["patch", "RUN", "w1", "w2"],
        ["align", "RUN", "--source", text, "--target", text], ["identify", "RUN", "--corpus", text],
        ["prune", "RUN", "--keep", "1"], ["attention", "RUN", "w1 w2", "--kind", "between"],
    ):  # fmt: skip
        assert main(["inspect", *(str(runs["tags"]) if one == "RUN" else one for one in words)]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and len(told) < 400, told


def test_layers_are_probed(runs, tmp_path):
    path = corpus(tmp_path / "words.tsv", [line.replace(" ", "\t") for line in tagged_lines(80)])
    for kind, side in (("tags", "encoder"), ("language", "decoder")):
        opened = Writer.load(runs[kind]) if kind == "language" else Predictor.load(runs[kind])
        found = inspection.probe(opened, path, "2")
        assert found.side == side and found.layers[0] == "embedding" and len(found.layers) > 1


def test_a_reader_that_is_watched_costs_nothing_afterwards(tmp_path):
    found = reader("classes", tmp_path)
    found.trace("w1 w2")
    assert not any(module.watched for module in found.model.modules() if isinstance(module, taps.Tap))


def test_shapes_build_the_same_models_for_probes(tmp_path):
    config = from_mapping(settings("classes", tmp_path))
    prepared = prepare(config, tmp_path / "run")
    shape = shape_of(config, prepared.form)
    assert Predictor(shape, shape.build()).fresh().state_dict().keys() == shape.build().state_dict().keys()
