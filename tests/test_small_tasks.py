"""Small tasks judged honestly: no shift by dropout, a linear model to compare with, refusals that name lines."""

import json

import numpy as np
import pytest
import torch

from regard import planning
from regard.cli import main
from regard.config.loading import dump, from_mapping
from regard.config.task import Classification as Settings
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.labels import score_numbers
from regard.models.classifier import build_classifier
from regard.runs.run import Run
from regard.tasks.bad_inputs import BadInputs
from regard.tasks.loaded import load_run
from regard.tasks.outputs.choice import LEAST_TO_FIT
from regard.tasks.outputs.label import TEMPERATURES
from regard.tasks.outputs.number import fit_line
from regard.tasks.preparation import prepare, training_pairs
from regard.training import baseline, outcome
from regard.training.loop import train
from regard.training.view import View
from tests.task_runs import corpus, labelled_lines, settings


class Telling(View):
    """Remembers warnings and what was said."""

    def __init__(self):
        super().__init__()
        self.told: list[str] = []

    def warn(self, text: str) -> None:
        self.told.append(text)

    def say(self, text: str) -> None:
        self.told.append(text)


class TestDropout:
    """What training shows to a classifier is, in the mean, what it is given afterwards."""

    @pytest.mark.parametrize("pairs, pool", [("joined", "max"), ("apart", "max"), ("apart", None), ("attended", None)])
    @pytest.mark.parametrize("encoder, most", [("bag", 0.02), ("rnn", 0.55)])
    def test_it_stands_behind_pooling_and_comparison(self, pairs, pool, encoder, most):
        torch.manual_seed(0)
        source = torch.randint(6, 60, (24, 13))
        source[:, 0], source[:, 6], source[:, -1] = 1, 4, 2
        shift = {}
        for dropout in (0.3,):
            given = {"width": 32, "dropout": dropout, "encoder": {"kind": encoder}}
            cell = from_mapping({"data": {"train": {"generate": "copy"}}, "model": given}).model
            torch.manual_seed(1)
            model = build_classifier(cell, Settings(pool=pool, pairs=pairs), 60, 3, texts=1 if pairs == "joined" else 2)
            with torch.no_grad():
                plain = model.eval().features(source)
                model.train()
                drawn = torch.stack([model.features(source) for _ in range(200)]).mean(0)
            shift[dropout] = ((drawn - plain).square().mean().sqrt() / plain.std()).item()
        assert shift[0.3] < most, shift

    def test_other_readers_still_drop_their_states(self):
        from regard.models.tagger import Tagger

        given = {"width": 32, "dropout": 0.5, "encoder": {"kind": "rnn"}}
        cell = from_mapping({"data": {"train": {"generate": "copy"}}, "model": given}).model
        states = Tagger(cell, 60, 3).train().encode(torch.randint(6, 60, (4, 9))).states
        assert 0.3 < (states == 0).float().mean() < 0.7


class TestSettling:
    def task(self, kind, tmp_path):
        config = from_mapping(settings(kind, tmp_path))
        return prepare(config, tmp_path / "run").task

    def test_estimates_are_brought_to_where_the_numbers_are(self, tmp_path):
        task = self.task("number", tmp_path)
        pairs = prepare(task.config, tmp_path / "run").validation_pairs * 60
        assert len(pairs) >= LEAST_TO_FIT
        torch.manual_seed(0)
        model = task.build().eval()
        last = model.classifier[-1] if isinstance(model.classifier, torch.nn.Sequential) else model.classifier
        with torch.no_grad():
            last.bias.add_(7.0)
        before, after = (
            score_numbers(
                [answer.facts["number"] for answer in task.output.answer(model, [pair.source for pair in pairs])],
                [float(pair.target) for pair in pairs],
            )
            if step == 0 or task.output.calibrate(model, pairs)
            else None
            for step in (0, 1)
        )
        assert before["squared_error"] > 10 and after["squared_error"] < 3
        said = [answer.facts["number"] for answer in task.output.answer(model, [pair.source for pair in pairs])]
        true = [float(pair.target) for pair in pairs]
        assert sum(said) / len(said) == pytest.approx(sum(true) / len(true), abs=1e-3)

    def test_a_line_is_never_turned_round_and_needs_a_spread(self):
        said, true = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 5.0, 7.0])
        assert fit_line(said, true) == pytest.approx((2.0, 1.0))
        assert fit_line(said, true.flip(0)) == pytest.approx((1.0, 3.0))
        assert fit_line(torch.ones(3), true) == pytest.approx((1.0, 4.0))

    @pytest.mark.parametrize("kind", ["classes", "number"])
    def test_few_data_fit_nothing_and_that_is_told(self, kind, tmp_path):
        view = Telling()
        train(from_mapping(settings(kind, tmp_path)), tmp_path / "run", view=view)
        warned = [text for text in view.told if "was not fitted" in text]
        assert len(warned) == 1 and f"{LEAST_TO_FIT} are needed" in warned[0]
        if kind == "classes":
            assert load_run(tmp_path / "run").model.temperature.item() == 1.0
        assert "not calibrated" in Run.open(tmp_path / "run").info["result"]["choice"]

    def test_a_temperature_that_data_do_not_determine_is_limited_and_told(self, tmp_path, monkeypatch):
        task = self.task("classes", tmp_path)
        pairs = prepare(task.config, tmp_path / "run").validation_pairs * 60
        model = task.build().eval()
        labels = [pair.target.strip() for pair in pairs]
        sure = torch.tensor([[20.0 * (label == name) for name in task.output.labels] for label in labels])
        random = torch.randn(sure.shape, generator=torch.Generator().manual_seed(1)) * 50
        for scores, limit in ((sure, TEMPERATURES[0]), (random, TEMPERATURES[1])):
            monkeypatch.setattr(task.output, "scores", lambda model, texts, scores=scores: scores)
            settled = task.output.calibrate(model, pairs)
            assert model.temperature.item() == pytest.approx(limit) and "was limited" in settled.warning

    def test_squared_error_is_reported_and_can_choose(self, tmp_path):
        config = settings("number", tmp_path)
        config["training"]["early_stopping"] = {"metric": "squared_error"}
        train(from_mapping(config), tmp_path / "run", view=View())
        info = Run.open(tmp_path / "run").info
        assert info["best"]["metric"] == "squared_error" and info["best"]["value"] > 0
        assert info["result"]["validation"]["squared_error"] > 0
        assert "| squared error |" in Run.open(tmp_path / "run").card.read_text()
        lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
        errors = {line["step"]: line["squared_error"] for line in lines if line["kind"] == "validation"}
        assert info["best"]["step"] == min(errors, key=errors.__getitem__)


class TestLinearBaseline:
    @pytest.mark.parametrize("kind", ["classes", "number", "pairs"])
    def test_it_is_fitted_on_the_same_split_stored_and_shown(self, kind, tmp_path, capsys):
        pytest.importorskip("sklearn", reason="needs scikit-learn")
        config = from_mapping(settings(kind, tmp_path))
        train(config, tmp_path / "run", view=View())
        metric = "squared_error" if kind == "number" else "accuracy"
        kept = Run.open(tmp_path / "run").info["baseline"]
        prepared = prepare(config, tmp_path / "run")
        texts = list(training_pairs(config))
        assert kept["examples"] == len(texts) == prepared.report.train
        held = {(pair.source, pair.target) for pair in prepared.validation_pairs}
        assert not held & {(pair.source, pair.target) for pair in texts}
        again = baseline.fit_baseline(config, texts, prepared.validation_pairs, prepared.test_pairs)
        assert again["validation"] == pytest.approx(kept["validation"])
        assert ", linear model |" in Run.open(tmp_path / "run").card.read_text()
        assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
        part = "test" if prepared.test_pairs else "validation"
        assert json.loads(capsys.readouterr().out)["baseline"][metric] == pytest.approx(kept[part][metric])
        assert main(["evaluate", str(tmp_path / "run")]) == 0
        assert "a linear model of the same data" in capsys.readouterr().out

    def test_it_learns_what_a_linear_model_can(self, tmp_path):
        pytest.importorskip("sklearn", reason="needs scikit-learn")
        config = settings("classes", tmp_path)
        config["data"]["train"] = {"labelled": corpus(tmp_path / "more.txt", labelled_lines(600))}
        config = from_mapping(config)
        prepared = prepare(config, tmp_path / "run")
        found = baseline.fit_baseline(config, list(training_pairs(config)), prepared.validation_pairs, [])
        assert found["validation"]["accuracy"] > 95 and "test" not in found

    def test_it_is_not_fitted_to_hundreds_of_labels(self, tmp_path, monkeypatch):
        """With thousands, scipy's L-BFGS crashed the process."""
        monkeypatch.setattr(baseline, "MOST_LABELS", 1)
        train(from_mapping(settings("classes", tmp_path)), tmp_path / "run", view=View())
        assert "No linear model was fitted" in Run.open(tmp_path / "run").card.read_text()
        assert "baseline" not in Run.open(tmp_path / "run").info

    def test_without_the_library_the_card_says_how_to_get_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(outcome, "can_fit", lambda: False)
        train(from_mapping(settings("classes", tmp_path)), tmp_path / "run", view=View())
        assert "pip install 'scikit-learn" in Run.open(tmp_path / "run").card.read_text()
        assert "baseline" not in Run.open(tmp_path / "run").info

    def test_a_damaged_entry_in_a_run_is_no_score(self):
        for kept in (None, 3, [], {"test": 5}, {"test": {"accuracy": "x"}}, {"validation": {"accuracy": 1}}):
            assert baseline.stored_baseline({"baseline": kept}, "test") is None


class TestAnswers:
    @pytest.fixture(scope="class")
    def runs(self, tmp_path_factory):
        place = tmp_path_factory.mktemp("runs")
        for kind in ("classes", "pairs"):
            train(from_mapping(settings(kind, place)), place / kind, view=View())
        return place

    def test_python_and_the_command_line_agree_on_empty_texts(self, runs, tmp_path, capsys):
        texts = ["w1 w2", "", "   ", "w0"]
        said = [answer.line for answer in load_run(runs / "classes").predict(texts)]
        assert said[1] == said[2] == "" and said[0] and load_run(runs / "classes").predict("").line == ""
        assert main(["predict", str(runs / "classes"), corpus(tmp_path / "in.txt", texts)]) == 0
        assert capsys.readouterr().out.split("\n")[:-1] == said
        pairs = ["w1\tw2", "\t", "w1\t", "\tw2", ""]
        said = [answer.line for answer in load_run(runs / "pairs").predict(pairs)]
        assert [bool(line) for line in said] == [True, False, True, True, False]
        assert main(["predict", str(runs / "pairs"), corpus(tmp_path / "in.tsv", pairs)]) == 0
        assert capsys.readouterr().out.split("\n")[:-1] == said

    @pytest.mark.parametrize("text", ["w1", "w1\tw2\tw3"])
    def test_python_and_the_command_line_refuse_the_same_pairs(self, runs, text, tmp_path, capsys):
        with pytest.raises(UsageError, match="reads 2 texts"):
            load_run(runs / "pairs").predict(text)
        with pytest.raises(BadInputs, match=r"inputs\[1\] .*reads 2 texts") as error:
            load_run(runs / "pairs").predict(["w1\tw2", text, "w3\tw4"])
        assert main(["predict", str(runs / "pairs"), corpus(tmp_path / "in.tsv", ["w1\tw2", text, "w3\tw4"])]) == 1
        written, told = capsys.readouterr()
        assert written.splitlines() == ["" if one is None else one.line for one in error.value.answers]
        assert "Line 2: This run reads 2 texts" in told

    @pytest.mark.parametrize("kind", ["classes", "pairs"])
    def test_every_line_of_json_has_the_same_fields(self, runs, kind, tmp_path, capsys):
        line = "w1" if kind == "classes" else "w1\tw2"
        lines = [line, "", "  "] + (["w1\tw2\tw3"] if kind == "pairs" else [])
        main(["predict", str(runs / kind), corpus(tmp_path / "in.txt", lines), "--json"])
        found = [json.loads(one) for one in capsys.readouterr().out.splitlines()]
        assert len(found) == len(lines) and found[0]["label"]
        for one in found[1:]:
            assert one.keys() - {"error"} == found[0].keys() and one["label"] is one["probabilities"] is None
        assert load_run(runs / kind).predict("").facts == {"label": None, "probabilities": None}


class TestCorpora:
    def columns(self, tmp_path, lines, **more):
        config = settings("tags", tmp_path)
        config["data"]["train"] = {"columns": corpus(tmp_path / "c.txt", lines), **more}
        return from_mapping(config)

    def test_columns_are_chosen_where_there_are_more_than_two(self, tmp_path):
        rows = [row for n in range(40) for row in (f"w{n % 9} NN x B-{n % 3}", f"v{n % 7} VB y O", "")]
        with pytest.raises(RegardError, match=r"c\.txt:1 has 4 columns.*word_column and tag_column"):
            prepare(self.columns(tmp_path, rows), tmp_path / "run")
        config = self.columns(tmp_path, rows, word_column=1, tag_column=4)
        assert prepare(config, tmp_path / "chosen").task.vocabularies.labels.names == ("B-0", "B-1", "B-2", "O")

    @pytest.mark.parametrize("line", ["w3\tB\textra", "w3\t\tB", "w3"])
    def test_an_extra_tab_makes_no_new_tag(self, line, tmp_path):
        rows = [row for n in range(40) for row in (f"w{n}\tB", "v\tO", "")]
        with pytest.raises(RegardError, match=r"c\.txt:\d+ has [13] columns, but the lines before it have 2"):
            prepare(self.columns(tmp_path, [*rows, line, ""]), tmp_path / "run")

    def test_an_extra_tab_makes_no_new_class(self, tmp_path):
        config = settings("classes", tmp_path)
        lines = [f"text number {n}\t{'good' if n % 2 else 'bad'}" for n in range(60)]
        config["data"]["train"] = {"tsv": corpus(tmp_path / "l.tsv", [*lines, "with a\ttab in it\tgood"])}
        with pytest.raises(RegardError, match=r"l\.tsv:61 has 3 tab-separated columns, but the first line has 2"):
            prepare(from_mapping(config), tmp_path / "run")
        config["data"]["train"] = {"tsv": corpus(tmp_path / "f.tsv", ["with a\ttab in it\tgood", *lines])}
        with pytest.raises(RegardError, match=r"f\.tsv:2 has 2 tab-separated columns, but the first line has 3"):
            prepare(from_mapping(config), tmp_path / "run")

    def test_a_label_that_occurs_once_is_told(self, tmp_path):
        config = settings("classes", tmp_path)
        lines = [f"{'good' if n % 2 else 'bad'} text number {n}" for n in range(90)]
        config["data"]["train"] = {"labelled": corpus(tmp_path / "l.txt", [*lines, "godo a text"])}
        config["data"]["validation"] = {"labelled": corpus(tmp_path / "v.txt", ["good a", "bad b"])}
        notes = prepare(from_mapping(config), tmp_path / "run").report.notes
        assert any("`godo` only once" in note for note in notes)

    @pytest.mark.parametrize(
        ("task", "part"), [({"kind": "language-model", "length": 8}, "decoder"), ({"kind": "masked-words"}, "encoder")]
    )
    def test_no_more_documents_are_kept_than_there_are(self, task, part, tmp_path):
        texts = corpus(tmp_path / "t.txt", [f"w{n} w{n % 7} " * 60 for n in range(50)])
        given = {
            "task": task,
            "data": {"train": {"text": texts}, "cleaning": {"max_length": 50}},
            "text": {"tokenizer": {"kind": "words"}},
            "model": {"width": 16, part: {"kind": "rnn"}},
            "training": {"steps": 2, "validate_every": 2, "checkpoint_every": 2, "batch_tokens": 200},
        }
        train(from_mapping(given), tmp_path / "run", view=View())
        prepared = prepare(Run.open(tmp_path / "run").config, tmp_path / "run")
        report = prepared.report
        assert f": {report.train:,} {prepared.task.noun} of {report.pairs:,} |" in (
            Run.open(tmp_path / "run").card.read_text()
        )
        assert report.train <= report.pairs == 50
        assert part == "decoder" or len(prepared.train) > report.pairs, "texts are stored in pieces"


class TestCleaning:
    def config(self, tmp_path, share, **cleaning):
        long, count = "word " * 60, 80
        rows = [f"{long if n < share * count else ''}number {n}\tshort {n}" for n in range(count)]
        given = {"data": {"train": {"tsv": corpus(tmp_path / "p.tsv", rows)}, "held_out": 5}, "model": {"width": 16}}
        if cleaning:
            given["data"]["cleaning"] = cleaning
        return from_mapping(given)

    def test_a_filter_that_drops_more_than_a_quarter_asks(self, tmp_path):
        with pytest.raises(UsageError) as error:
            prepare(self.config(tmp_path, 0.5), tmp_path / "run")
        told = str(error.value)
        assert "40 of 80 training pairs (50%) by length ratio" in told and "data.cleaning.max_ratio (5)" in told
        assert "write the current value into the configuration" in told

    @pytest.mark.parametrize("share", [0.2, 0.5])
    def test_a_plan_says_so_beforehand(self, share, tmp_path, capsys):
        config = self.config(tmp_path, share)
        (tmp_path / "my.yaml").write_text(dump(config).replace("    max_ratio: 5.0\n", ""))
        assert main(["plan", str(tmp_path / "my.yaml"), "--no-measure"]) == 0
        told = " ".join(capsys.readouterr().err.split())
        assert ("warning: Cleaning would drop 40 of 80 training pairs (50%) by length ratio" in told) is (share == 0.5)
        assert main(["plan", str(tmp_path / "my.yaml"), "--no-measure", "--json"]) == 0
        warnings = json.loads(capsys.readouterr().out)["warnings"]
        assert [("estimate from the first 80 pairs" in one) for one in warnings] == [True] * (share == 0.5)
        assert not planning.plan(self.config(tmp_path, share, max_ratio=5.0), measure=False).warnings

    def test_a_limit_that_somebody_has_set_is_meant(self, tmp_path):
        assert (
            prepare(self.config(tmp_path, 0.5, max_ratio=5.0), tmp_path / "same").report.dropped["length ratio"] == 40
        )
        assert not prepare(self.config(tmp_path, 0.5, max_ratio=100.0), tmp_path / "wider").report.dropped
        assert prepare(self.config(tmp_path, 0.2), tmp_path / "few").report.dropped["length ratio"] == 16

    def test_lengths_in_tokens_ask_too(self, tmp_path):
        rows = [f"{'a b ' * 200 if n % 2 else 'a b'} {n}\t{'c d ' * 200 if n % 2 else 'c d'} {n}" for n in range(80)]
        given = {"data": {"train": {"tsv": corpus(tmp_path / "p.tsv", rows)}, "held_out": 5}, "model": {"width": 16}}
        (told,) = planning.plan(from_mapping(given), measure=False).warnings
        assert "drop 40 of 80 training pairs (50%) by too long, the first of them number 2." in told
        with pytest.raises(UsageError, match=r"by too long.*data\.cleaning\.max_length \(256\)"):
            prepare(from_mapping(given), tmp_path / "run")


def test_the_scale_of_embeddings_is_a_setting_of_models_that_only_read_too(tmp_path):
    scales = []
    for scaled in (True, False):
        config = from_mapping(settings("classes", tmp_path, model={"embeddings": {"scale": scaled}}))
        model = prepare(config, tmp_path / f"{scaled}").task.build()
        scales.append(model.source_embedding(torch.tensor([7])) / model.source_embedding.weight[7])
    torch.testing.assert_close(scales[0], 4 * scales[1])  # the width is 16


def test_estimates_are_fitted_by_the_line_of_least_squares_and_never_reversed():
    random = np.random.default_rng(3)
    estimates = random.normal(2.0, 1.0, 50)
    for slope, shift in ((2.5, -4.0), (0.2, 7.0)):
        true = slope * estimates + shift + random.normal(0, 0.3, 50)
        expected = np.polyfit(estimates, true, 1)
        assert fit_line(torch.from_numpy(estimates), torch.from_numpy(true)) == pytest.approx(tuple(expected))
    reversed_estimates = torch.from_numpy(-estimates)
    slope, shift = fit_line(reversed_estimates, torch.from_numpy(estimates))
    assert slope == 1.0 and shift == pytest.approx(2 * estimates.mean())
