"""Looking into models that only read, or only write: what holds of a trace holds of theirs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from regard import inspection
from regard.cli import main
from regard.config.loading import dump, from_mapping
from regard.data.corpus import Pair
from regard.foundation.errors import UsageError
from regard.inspection.analyses.attribute.one_side import amounts_of
from regard.inspection.analyses.heads.compute import describe_heads, training_batches
from regard.inspection.analyses.patch.copying import Spot, differences
from regard.inspection.analyses.prune.compute import choose_attentions
from regard.inspection.analyses.prune.removal import without_heads
from regard.inspection.interventions import attentions, scale_head, scale_heads
from regard.nn import taps
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.preparation import prepare
from regard.tasks.trace import Side
from regard.tasks.training_batch import TrainingBatch
from regard.training.loop import train
from regard.training.view import View
from tests.task_runs import corpus, settings, tagged_lines, task_and_model

TEXTS = {
    "classes": "w1 w2 w3",
    "number": "w1 w2\tw3 w4 w5",
    "pairs": "w1 w2\tw3 w4 w5",
    "tags": "w1 w2 w3",
    "masked": "w1 ___ w3 ___",
}
ENCODERS = ("bag", "rnn", "conv", "transformer")


def reader(kind: str, directory: Path, **more: Any) -> LoadedRun:
    task, model, _ = task_and_model(kind, directory, **more)
    return LoadedRun(task, model)


def writer(directory: Path, **more: Any) -> LoadedRun:
    task, model, _ = task_and_model("language", directory, **more)
    return LoadedRun(task, model)


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
        assert trace.target_log_probs.exp().item() == pytest.approx(facts["probabilities"][facts["label"]], abs=1e-4)


@pytest.mark.parametrize("kind", ["classes", "pairs", "questions"])
def test_there_is_one_way_to_a_probability_and_it_leads_by_the_fit_temperature(kind, tmp_path):
    text = {**TEXTS, "questions": "shapes: red circle 0 0\thow many circles are there ?"}[kind]
    found = reader(kind, tmp_path, model={"encoder": {"kind": "transformer"}})
    untempered = found.predict(text).facts["probabilities"]
    found.model.temperature.fill_(0.3)
    said, trace = found.predict(text).facts["probabilities"], found.trace(text)
    assert max(said.values()) > max(untempered.values()) + 0.01
    assert trace.log_probabilities[0].exp().tolist() == pytest.approx(list(said.values()), abs=1e-5)
    reasons = inspection.attribute(trace).to_json()
    assert all(chance == pytest.approx(said[name], abs=1e-4) for name, chance in reasons["likeliest"][0])
    assert inspection.lens(trace).probabilities[-1].tolist() == pytest.approx([max(said.values())], abs=1e-5)


@pytest.mark.parametrize("pool", [None, "attention"])
@pytest.mark.parametrize("pairs", ["joined", "apart", "attended"])
def test_rows_of_every_map_sum_to_one_and_texts_read_apart_see_only_what_they_may(pairs, pool, tmp_path):
    task = {"pairs": pairs, "pool": pool}
    trace = reader("pairs", tmp_path, task=task, model={"encoder": {"kind": "transformer"}}).trace(TEXTS["pairs"])
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
    trace = reader("pairs", tmp_path, task={"pairs": pairs}, model={"encoder": {"kind": "transformer"}}).trace(
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
    found = inspection.attribute(trace, ["integrated", "occlusion"])
    for reason in found.answers:
        amounts = amounts_of(reason.methods["integrated"])
        assert amounts.shape == (len(trace.target), len(trace.source)) and not reason.wide
        special = torch.tensor(trace.source.special)
        assert (
            amounts[:, special].abs().max() == 0
            and amounts_of(reason.methods["occlusion"])[:, special].abs().max() == 0
        )


@pytest.mark.parametrize("pairs", ["apart", "attended"])
def test_reasons_know_both_texts(pairs, tmp_path):
    trace = reader("pairs", tmp_path, task={"pairs": pairs}).trace(TEXTS["pairs"])
    found = inspection.attribute(trace, ["integrated"])
    amounts = amounts_of(found.answers[0].methods["integrated"])
    first = trace.parts[0]
    assert not found.answers[0].wide and amounts[:, :first].any() and amounts[:, first:].any()


def test_the_word_that_was_planted_is_the_reason(tmp_path):
    lines = [f"{'yes' if seed % 2 else 'no'} {'good' if seed % 2 else 'bad'} w{seed % 7}" for seed in range(200)]
    config = settings("classes", tmp_path, training={"steps": 60, "validate_every": 60, "checkpoint_every": 60})
    config["data"] = {"train": {"labelled": corpus(tmp_path / "easy.txt", lines)}, "cleaning": {"duplicates": "keep"}}
    config["model"]["encoder"] = {"kind": "bag"}
    train(from_mapping(config), tmp_path / "run", view=View())
    predictor = load_run(tmp_path / "run")
    for text, label, word in (("good w1", "yes", "good"), ("w3 bad", "no", "bad")):
        trace = predictor.trace(text)
        found = inspection.attribute(trace)
        for amounts in found.answers[0].methods.values():
            best = found.read.word_texts[int(found.words(amounts)[0].argmax())]
            assert (trace.target.tokens, best) == ([label], word)
    against = inspection.attribute(predictor.trace("good w1", "no"), ["occlusion"])
    worst = against.words(against.answers[0].methods["occlusion"])[0]
    assert against.read.word_texts[int(worst.argmin())] == "good"


@pytest.mark.parametrize("kind", ["classes", "tags", "masked", "pairs"])
def test_effective_attention_does_the_same(kind, tmp_path):
    more: dict[str, Any] = {"task": {"pairs": "attended"}} if kind == "pairs" else {}
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
    reasons = inspection.attribute(trace, ["integrated", "occlusion"])
    amounts = amounts_of(reasons.answers[0].methods["integrated"])
    assert not reasons.answers[0].wide and amounts.triu(1).abs().max() < 1e-6  # nobody has read what comes behind
    assert inspection.lens(trace).ranks.shape[1] == 5
    if decoder == "transformer":
        assert {one.kind for one in inspection.attention(trace).heads} == {"decoder"}
    with pytest.raises(UsageError, match="no source"):
        inspection.contributions(trace)
    mixed = inspection.identify(trace).mixing.contributions
    assert mixed.triu(1).abs().max() == 0 and mixed.shape[1:] == (5, 5)  # BOS and four words
    with pytest.raises(UsageError, match="no target"):
        found.trace("w1", "w2")


@pytest.mark.parametrize("text", ["w1 w2", "w1\tw2\tw3"])
def test_a_pair_is_two_texts(text, tmp_path):
    with pytest.raises(UsageError, match="reads 2 texts at once"):
        reader("pairs", tmp_path).trace(text)


def test_a_text_with_nothing_in_it_is_refused(tmp_path):
    with pytest.raises(UsageError, match="text is empty"):
        reader("classes", tmp_path).trace(" ")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs as they are on a disk."""
    found = {}
    for kind in ("pairs", "tags", "language"):
        place = tmp_path_factory.mktemp(kind)
        end = "decoder" if kind == "language" else "encoder"
        more = {"task": {"pairs": "attended"}} if kind == "pairs" else {}
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
        ["contributions", "RUN", "w1 w2"], ["patch", "RUN", "w1", "w1"], ["identify", "RUN"],
        ["align", "RUN", "--source", text, "--target", text], ["attention", "RUN", "w1 w2", "--kind", "between"],
        ["prune", "RUN", "--keep", "1", "--which", "decoder"],
    ):  # fmt: skip
        assert main(["inspect", *(str(runs["tags"]) if one == "RUN" else one for one in words)]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and len(told) < 400, told


def test_layers_are_probed(runs, tmp_path):
    path = corpus(tmp_path / "words.tsv", [line.replace(" ", "\t") for line in tagged_lines(45)])
    for kind, side in (("tags", "encoder"), ("language", "decoder")):
        opened = load_run(runs[kind])
        found = inspection.probe(opened, path, "2")
        assert found.side == side and found.layers[0] == "embedding" and len(found.layers) > 1


def test_a_reader_that_is_watched_costs_nothing_afterwards(tmp_path):
    found = reader("classes", tmp_path)
    found.trace("w1 w2")
    assert not any(module.watched for module in found.model.modules() if isinstance(module, taps.Tap))


def test_shapes_build_the_same_models_for_probes(tmp_path):
    config = from_mapping(settings("classes", tmp_path))
    prepared = prepare(config, tmp_path / "run")
    task = prepared.task
    assert LoadedRun(task, task.build()).untrained().state_dict().keys() == task.build().state_dict().keys()


ATTENDING: dict[str, dict[str, Any]] = {
    "classes": {"encoder": {"kind": "transformer", "layers": 1}},
    "number": {"encoder": {"kind": "transformer", "layers": 1}},
    "pairs": {"encoder": {"kind": "transformer", "layers": 1}},
    "tags": {"encoder": {"kind": "transformer", "layers": 1}},
    "masked": {"encoder": {"kind": "transformer", "layers": 1}},
    "language": {"decoder": {"kind": "transformer", "layers": 1}},
    "captions": {
        "encoder": {"kind": "image", "form": "patches", "size": 16, "patch": 8, "layers": 1},
        "decoder": {"kind": "transformer", "layers": 1},
    },
    "questions": {
        "encoder": {"kind": "transformer", "layers": 1},
        "picture": {"form": "patches", "size": 16, "patch": 8, "layers": 1},
    },
}
"""Every shape, small, with attention wherever it can have some."""


def attending(kind: str, directory: Path, **more: Any) -> tuple[LoadedRun, list[Pair]]:
    """A model of a shape, and examples of it."""
    attention = {"attention": {"heads": 2}, **ATTENDING[kind], **more}
    pairs = {"task": {"pairs": "attended"}} if kind == "pairs" else {}
    task, model, prepared = task_and_model(kind, directory, model=attention, **pairs)
    return LoadedRun(task, model), prepared.validation_pairs


def loss_of(subject: LoadedRun, given: list[TrainingBatch], write: dict[str, Any] | None = None) -> float:
    """The loss of some lessons, for each answer, with an intervention."""
    with torch.no_grad(), taps.watch(subject.model, write=write):
        total = sum(subject.output.loss(subject.model, lesson).nll.item() for lesson in given)
    return total / sum(lesson.count for lesson in given)


@pytest.mark.parametrize("kind", ATTENDING)
def test_every_head_of_every_shape_is_described_by_the_shapes_own_loss(kind, tmp_path):
    subject, examples = attending(kind, tmp_path)
    found = describe_heads(subject, examples)
    every = [(name, head) for name, one in attentions(subject.model).items() for head in range(one.heads)]
    assert [(one.attention, one.head) for one in found.heads] == every
    given = list(training_batches(subject.task, examples, subject.model.device))
    assert found.loss == pytest.approx(loss_of(subject, given), rel=1e-5)
    for one in found.heads[:: len(found.heads) - 1]:
        without = loss_of(subject, given, scale_head(one.attention, one.head, 0.0))
        assert one.rise == pytest.approx(without - found.loss, abs=1e-5)
        assert one.rows > 0 and 0 < one.confidence <= 1
    for ending in ("html", "json", "txt"):
        found.save(tmp_path / f"heads.{ending}")
    kinds = {one.kind for one in found.heads}
    assert kinds == {
        "pairs": {"encoder", "between"},
        "language": {"decoder"},
        "captions": {"encoder", "decoder", "source"},
        "questions": {"encoder", "source", "picture", "places"},
    }.get(kind, {"encoder"})


@pytest.mark.parametrize("kind", [kind for kind in ATTENDING if kind != "captions"])
def test_a_head_made_to_look_at_the_token_before_is_found_to_do_so_in_every_shape(kind, tmp_path):
    subject, examples = attending(kind, tmp_path, positions={"kind": "bias"})
    end = "decoder" if kind == "language" else "encoder"
    name = f"{end}.layers.0.attention"
    bias = attentions(subject.model)[name].distances.weight
    middle = bias.shape[1] // 2
    with torch.no_grad():
        bias[0, middle - 1] = 100.0
        bias[1, middle] = 100.0
    corpus = [" ".join(f"w{n % 12}" for n in range(start, start + 5)) for start in range(9)]
    for over in (None, corpus):
        before, itself = (one for one in describe_heads(subject, examples, over).heads if one.attention == name)
        assert before.offset == -1 and before.of_possible == 1.0 and "positional" in before.roles
        assert itself.offset == 0 and itself.of_possible == itself.same == 1.0


def test_a_word_that_comes_later_cannot_be_followed_by_a_language_model(tmp_path):
    subject, examples = attending("language", tmp_path)
    path = tmp_path / "small.conllu"
    row = "1\tw{0}\tw\tX\t_\t_\t2\tdet\t_\t_\n2\tw{1}\tw\tX\t_\t_\t0\troot\t_\t_\n3\tw3\tw\tX\t_\t_\t2\tobj\t_\t_\n\n"
    path.write_text("".join(row.format(number % 10, number // 10) for number in range(100)))  # both halves have some
    found = describe_heads(subject, examples, path)
    assert {(one.name, one.direction) for one in found.relations} == {("det", "to dependent"), ("obj", "to head")}
    assert all(one.offset == -1 and one.baseline == 1.0 for one in found.relations)
    assert all(offset <= 0 for one in found.heads for offset in one.offsets)


@pytest.mark.parametrize("kind", ATTENDING)
def test_removed_heads_are_zeroed_heads_in_every_shape(kind, tmp_path):
    subject, examples = attending(kind, tmp_path)
    model, task = subject.model, subject.task
    given = list(training_batches(task, examples, model.device))

    def build(cell: Any) -> Any:
        return task.configured(task.config.model_copy(update={"model": cell})).build()

    _, names = choose_attentions(model, "all")
    assert set(attentions(model)) - set(names) == ({"between"} if kind == "pairs" else set())
    for kept in ([1], []):
        smaller = without_heads(model, dict.fromkeys(names, kept), build).eval()
        off = scale_heads({(name, head): 0.0 for name in names for head in range(2) if head not in kept})
        assert loss_of(LoadedRun(task, smaller), given) == pytest.approx(loss_of(subject, given, off), rel=1e-4)
        assert sum(p.numel() for p in smaller.parameters()) < sum(p.numel() for p in model.parameters())
        left = from_mapping(yaml.safe_load(dump(task.config.model_copy(update={"model": smaller.cell}))))
        assert left.model.pruned == dict.fromkeys(names, kept)


@pytest.mark.parametrize("kind", ["classes", "language", "questions"])
def test_a_run_of_any_shape_is_pruned_into_a_run_of_its_own(kind, tmp_path):
    config = from_mapping(settings(kind, tmp_path, model={"attention": {"heads": 2}, **ATTENDING[kind]}))
    train(config, tmp_path / "run", view=View())
    found = inspection.prune(tmp_path / "run", keep=1, steps=20, directory=tmp_path / "small", view=View())
    small = load_run(tmp_path / "small")
    assert sum(attentions(small.model)[name].heads for name in found.kept) == 1
    measure = {"language": "perplexity"}.get(kind, "accuracy")
    assert found.metric == measure and f"validation {measure}" in [name for name, *_ in found.scores]
    frozen = [name for name in dict(small.model.named_parameters()) if name.split(".")[0] in ("classifier", "picture")]
    old, new = load_run(tmp_path / "run").model.state_dict(), small.model.state_dict()
    assert all(torch.equal(old[name], new[name]) for name in frozen) and (frozen or kind == "language")


@pytest.mark.parametrize("kind", ["classes", "pairs", "masked", "language", "questions"])
def test_identifiability_over_a_corpus_is_told_of_whatever_reads_text(kind, tmp_path):
    subject, _ = attending(kind, tmp_path)
    rows = [f"w{n % 12} w{n % 5} w{n % 7} w3 w4 w5 w6 w7 w8 w9 w10"[: 12 + 2 * (n % 8)].strip() for n in range(40)]
    texts = [f"{row}\t{row}" if kind == "pairs" else row for row in rows]
    found = inspection.identify_corpus(subject, texts)
    assert found.sentences == (80 if kind == "pairs" else 40)
    assert {one.kind for one in found.likenesses} == {"decoder" if kind == "language" else "encoder"}
    assert all(-1 <= one.correlation <= 1.00001 and one.rank <= one.length for one in found.likenesses)
    assert found.tokens.found["none", "cosine", "sentence"][0] == 1.0  # a token is found in its own vector
    assert found.mixing.median[0] == pytest.approx(1.0)  # and is all that is in it
    for ending in ("html", "json", "txt"):
        found.save(tmp_path / f"identification.{ending}")


@pytest.mark.parametrize("kind", ["classes-rnn", "pairs", "language", "captions", "questions"])
def test_a_report_shows_what_applies_to_a_run_and_says_why_the_rest_does_not(kind, tmp_path, capsys):
    shape = kind.removesuffix("-rnn")
    model = {} if kind == "classes-rnn" else {"model": {"attention": {"heads": 2}, **ATTENDING[shape]}}
    pairs = {"task": {"pairs": "attended"}} if kind == "pairs" else {}
    train(from_mapping(settings(shape, tmp_path, **model, **pairs)), tmp_path / "run", view=View())
    picture = "shapes: red circle 0 0, blue star 2 1"
    words = {"captions": [picture], "questions": [picture, "how many circles are there ?"]}.get(shape, ["w1 w2 w3"])
    words = ["w1 w2", "w3 w4"] if kind == "pairs" else words
    page = tmp_path / "report.html"
    assert main(["inspect", "all", str(tmp_path / "run"), *words, "-o", str(page)]) == 0
    told = capsys.readouterr().err
    assert main(["inspect", "all", str(tmp_path / "run"), *words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["results"]) == {
        "classes-rnn": {"attribute", "identify"},
        "language": {"attention", "attribute", "lens", "direct", "identify"},
        "captions": {"attention", "lens", "direct", "identify", "heads"},  # over its own images
    }.get(kind, {"attention", "attribute", "lens", "identify"})
    answers = {"classes-rnn": {"yes", "no"}, "pairs": {"same", "other"}, "language": {""}}
    assert said["target"] in answers.get(kind, {said["target"]}) and "this run" not in said["target"]
    every = {
        "attention",
        "contributions",
        "attribute",
        "lens",
        "direct",
        "align",
        "identify",
        "patch",
        "heads",
        "probe",
        "prune",
        "nearest",
        "reference",
    }
    assert set(said["results"]) | set(said["left_out"]) == every
    assert all(reason.endswith(".") and len(reason) < 300 for reason in said["left_out"].values())
    assert all(f"left out: {name}" in told for name in said["left_out"])


@pytest.mark.parametrize("kind", ["classes", "pairs", "tags", "masked", "questions"])
def test_the_last_layer_of_a_reader_says_what_the_model_says(kind, tmp_path):
    subject, examples = attending(kind, tmp_path)
    trace = subject.trace(TEXTS.get(kind, examples[0].source))
    found = inspection.lens(trace)
    torch.testing.assert_close(found.probabilities[-1], trace.target_log_probs.exp(), atol=1e-5, rtol=1e-4)
    assert set(found.ranks[-1].tolist()) == {1} and all(rank is not None for rank in found.decided)
    looks = [name for name in trace.activations if name.startswith("looks.") and name.endswith(".states")]
    assert len(found.top) == (len(looks) or 1)  # a layer, or every look


def test_a_layer_says_what_the_tagger_would_say_of_its_states(tmp_path):
    layers = {"encoder": {"kind": "transformer", "layers": 3}}
    subject, _ = attending("tags", tmp_path, **layers)
    trace = subject.trace("w1 w2 w3")
    found, model = inspection.lens(trace), subject.model
    for layer in range(3):
        states = trace.activations[f"encoder.layers.{layer}.states"][1:4]  # behind BOS
        with torch.no_grad():
            shares = model.classifier(model.encoder.norm(states)).softmax(-1)
        said = shares.gather(1, torch.tensor(trace.target.ids)[:, None])[:, 0]
        torch.testing.assert_close(found.probabilities[layer], said, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["classes", "pairs", "apart", "masked", "questions"])
def test_copying_nothing_changes_nothing_and_copying_all_states_recovers_all(kind, tmp_path):
    shape = "pairs" if kind == "apart" else kind
    subject, examples = attending(shape, tmp_path)
    if kind == "apart":
        (tmp_path / "apart").mkdir()
        made, model, _ = task_and_model(
            "pairs",
            tmp_path / "apart",
            model={"attention": {"heads": 2}, **ATTENDING["pairs"]},
            task={"pairs": "apart"},
        )
        subject = LoadedRun(made, model)
    with torch.no_grad():
        for name, parameter in subject.model.named_parameters():
            if not name.startswith(("encoder.", "picture.", "looks.")) and parameter.dim() > 1:
                parameter.mul_(10.0)  # so that two texts differ by more than nothing
    texts = {"pairs": ("w1 w2\tw3 w4", "w5 w2\tw3 w9"), "masked": ("w1 w2 ___", "w7 w5 ___")}
    texts["questions"] = tuple(f"{examples[0].source.split(chr(9))[0]}\t{one}" for one in ("is there a", "how many a"))
    clean, corrupted = texts.get(shape, ("w1 w2 w3", "w7 w5 w3"))
    traces = [subject.trace(text) for text in (clean, corrupted)]
    place, favour = 0, traces[0].log_probabilities[0] - traces[1].log_probabilities[0]  # V
    ids = int(favour.argmax()), int(favour.argmin())
    told = Side.of_labels(["a"], [ids[0]]), Side.of_labels(["b"], [ids[1]])
    one, other = (replace(trace, target=side) for trace, side in zip(traces, told, strict=True))
    found = inspection.patch(one, other)
    assert found.wholes[0][1] == pytest.approx(1.0, abs=1e-3)
    itself = differences(other, other.activations, [(Spot("encoder.layers.0.states"),)], ids, place)
    assert itself.item() == pytest.approx(found.before[1], abs=1e-3)
    kinds = {each.kind for each in found.maps}
    assert (
        "encoder" in kinds
        and ("picture" in kinds) == (kind == "questions")
        and ("between" in kinds) == (kind == "pairs")
    )
    for ending in ("html", "txt"):
        found.save(tmp_path / f"patch.{ending}")
