"""What tasks are given: labels as people write them, and input that is refused in a sentence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.corpus import Pair, read
from regard.data.labels import Labels
from regard.foundation.errors import RegardError, UsageError
from regard.tasks.preparation import prepare
from regard.training.loop import train
from regard.training.view import View
from tests.task_runs import corpus, labelled_lines, pair_lines, settings, words


class TestJsonLabels:
    def read(self, tmp_path, *records: dict[str, Any], **fields: str) -> list[Pair]:
        path = corpus(tmp_path / "x.jsonl", [json.dumps(record) for record in records])
        section = {"jsonl": path, "target_field": "label", **fields}
        return list(read(from_mapping({"task": {"kind": "classification"}, "data": {"train": section}}).data.train))

    def test_numbers_and_booleans_are_labels_as_json_writes_them(self, tmp_path):
        labels = [1, 0, 2.5, -3e-7, True, "five"]
        found = self.read(tmp_path, *({"source": "a", "label": label} for label in labels))
        assert [pair.target for pair in found] == ["1", "0", "2.5", "-3e-07", "true", "five"]

    @pytest.mark.parametrize("label", [None, [1], {"a": 1}])
    def test_what_is_no_label_is_reported_with_its_line(self, label, tmp_path):
        with pytest.raises(RegardError, match=r"x\.jsonl:2: .*field `label` is .*, but it must be a string"):
            self.read(tmp_path, {"source": "a", "label": 1}, {"source": "b", "label": label})

    @pytest.mark.parametrize("output", ["classes", "number"])
    def test_a_run_learns_from_them(self, output, tmp_path):
        records = [{"source": " ".join(words(n)), "label": n % 2 if output == "classes" else n / 8} for n in range(60)]
        config = settings("classes", tmp_path, task={"kind": "classification" if output == "classes" else "regression"})
        path = corpus(tmp_path / "x.jsonl", [json.dumps(record) for record in records])
        config["data"] = {"train": {"jsonl": path, "target_field": "label"}, "held_out": 6}
        outcome = train(from_mapping(config), tmp_path / "run", view=View())
        assert set(outcome.validation) >= ({"accuracy"} if output == "classes" else {"pearson"})


class TestBadInput:
    def refused(self, config: dict[str, Any], directory: Path) -> str:
        with pytest.raises(RegardError) as told:
            train(from_mapping(config), directory / "run", view=View())
        assert not (directory / "run" / "run.json").exists()
        return str(told.value)

    def test_a_missing_label_is_reported_with_its_line(self, tmp_path):
        config = settings("classes", tmp_path)
        config["data"]["train"] = {"labelled": corpus(tmp_path / "bad.txt", ["yes a b", "no", "no c"])}
        assert "bad.txt:2" in self.refused(config, tmp_path)

    def test_an_empty_label_is_dropped_from_training_and_refused_in_validation(self, tmp_path):
        config = settings("pairs", tmp_path)
        lines = Path(config["data"]["train"]["tsv"]).read_text(encoding="utf-8").splitlines()
        first, second, *rest = lines[3].split("\t")
        config["data"]["train"]["tsv"] = corpus(
            tmp_path / "bad.tsv", [*lines, "\t".join([first, second, " ", *rest[1:]])]
        )
        train(from_mapping(config), tmp_path / "trained", view=View())
        report = json.loads((tmp_path / "trained" / "data" / "finished.json").read_text())
        assert report["dropped"].get("empty side", 0) == 1 or 1 in report["dropped"].values()
        config["data"]["validation"] = {
            **config["data"]["train"],
            "tsv": corpus(tmp_path / "v.tsv", ["a\tb\tsame\t1", "c\td\t \t1"]),
        }
        assert "v.tsv:2 has no label" in self.refused(config, tmp_path)

    def test_a_label_that_training_never_shows_is_reported(self, tmp_path):
        config = settings("classes", tmp_path)
        config["data"]["validation"] = {"labelled": corpus(tmp_path / "v.txt", ["yes w1", "", "perhaps w2"])}
        told = self.refused(config, tmp_path)
        assert "`perhaps`" in told and "v.txt:3" in told

    def test_a_tag_that_training_never_shows_is_reported_with_the_line_of_its_sentence(self, tmp_path):
        config = settings("tags", tmp_path)
        config["data"]["validation"] = {
            "columns": corpus(tmp_path / "v.txt", ["w1 first", "", "", "w1 first", "w2 odd"])
        }
        assert "v.txt:4 has the label `odd`" in self.refused(config, tmp_path)

    def test_a_held_out_text_with_a_label_of_its_own_is_left_out_and_reported(self, tmp_path):
        config = settings("classes", tmp_path)
        lines = [line.replace("no ", f"l{number} ") for number, line in enumerate(labelled_lines(60))]
        config["data"]["train"] = {"labelled": corpus(tmp_path / "odd.txt", [*lines, *labelled_lines(200)[60:]])}
        prepared = prepare(from_mapping(config), tmp_path / "run")
        assert any("that no training example has" in note for note in prepared.report.notes)
        assert prepared.validation_pairs and len(prepared.validation) == len(prepared.validation_pairs)
        assert all(pair.target in prepared.task.vocabularies.labels.names for pair in prepared.validation_pairs)

    def test_labels_that_only_training_has_are_reported(self, tmp_path):
        config = settings("classes", tmp_path)
        config["data"]["validation"] = {"labelled": corpus(tmp_path / "v.txt", ["yes w0", "yes w0 w1"])}
        notes = prepare(from_mapping(config), tmp_path / "run").report.notes
        assert notes == [
            "The validation data does not contain `no`, which the training data has, so that it is not evaluated."
        ]
        assert prepare(from_mapping(config), tmp_path / "run").report.notes == notes

    def test_a_single_label_is_refused(self, tmp_path):
        with pytest.raises(RegardError, match="at least two"):
            Labels.learn(["yes", "yes"])

    def test_what_is_no_number_is_reported(self, tmp_path):
        for wrong in ("many", "nan", "1e99"):
            config = settings("number", tmp_path)
            lines = [*pair_lines(5), f"a\tb\tsame\t{wrong}"]
            config["data"]["train"]["tsv"] = corpus(tmp_path / "bad.tsv", lines)
            assert f"bad.tsv:6 has `{wrong}`" in self.refused(config, tmp_path)

    def test_words_and_tags_that_differ_in_number_are_reported(self, tmp_path):
        config = settings("tags", tmp_path)
        config["data"]["train"] = {"tsv": corpus(tmp_path / "bad.tsv", ["a b\tX Y", "c d e\tX Y"])}
        assert "bad.tsv:2 has 3 words and 2 tags" in self.refused(config, tmp_path)

    @pytest.mark.parametrize("name, line", [("columns", "word"), ("conllu", "1\tword\tNOUN")])
    def test_a_line_that_is_no_word_with_a_tag_is_reported(self, name, line, tmp_path):
        config = settings("tags", tmp_path)
        config["data"]["train"] = {name: corpus(tmp_path / "bad.txt", [line])}
        assert "bad.txt:1" in self.refused(config, tmp_path)

    def test_conllu_ranges_comments_and_empty_nodes_are_no_words(self, tmp_path):
        rows = [["1-2", "don't"], ["1", "do", "AUX"], ["2", "n't", "PART"], ["2.1", "go"], ["3", "1 000", "NUM"]]
        lines = ["\t".join([row[0], row[1], "_", *row[2:], *["_"] * (10 - 3 - len(row[2:]))]) for row in rows]
        path = corpus(tmp_path / "x.conllu", ["# text = …", *lines])
        found = list(read(from_mapping({"task": {"kind": "tagging"}, "data": {"train": {"conllu": path}}}).data.train))
        assert found == [Pair("do n't 1_000", "AUX PART NUM")]

    @pytest.mark.parametrize(
        "task, data, word",
        [
            ("classification", {"text": "a.txt"}, "labelled or table or dataset or tsv or jsonl"),
            ("language-model", {"tsv": "a.tsv"}, "text or json_text"),
            ("translation", {"labelled": "a.txt"}, "paired"),
        ],
    )
    def test_a_corpus_of_the_wrong_sort_is_reported_before_it_is_read(self, task, data, word):
        with pytest.raises(UsageError, match=word):
            from_mapping({"task": {"kind": task}, "data": {"train": data}})

    @pytest.mark.parametrize(
        "override, word",
        [
            ("model.decoder.kind=rnn", "model.decoder has no effect"),
            ("training.exposure.word_dropout=0.1", "training.exposure"),
            ("training.early_stopping.metric=bleu", "accuracy"),
            ("task.kind=clasification", "did you mean classification"),
        ],
    )
    def test_settings_without_effect_are_refused(self, override, word, tmp_path):
        with pytest.raises(UsageError, match=word):
            from_mapping(settings("classes", tmp_path), [override])

    def test_presets_serve_every_task(self, tmp_path):
        for preset in ("transformer-tiny", "bahdanau", "convs2s", "bag"):
            config = from_mapping({"preset": preset, **settings("classes", tmp_path)} | {"model": {}})
            assert config.model.decoder is None and config.model.encoder is not None
            written = from_mapping({"preset": preset, **settings("language", tmp_path)} | {"model": {}})
            assert written.model.encoder is None and written.model.decoder is not None

    def test_predict_counts_the_texts_of_a_line(self, tmp_path, capsys):
        train(from_mapping(settings("pairs", tmp_path)), tmp_path / "run", view=View())
        path = corpus(tmp_path / "in.tsv", ["a\tb", "", "alone", "c\td"])
        assert main(["predict", str(tmp_path / "run"), path]) == 1
        said, told = capsys.readouterr()
        assert "Line 3: This run reads 2 texts at once" in told
        assert [bool(line) for line in said.splitlines()] == [True, False, False, True]  # the others are answered

    def test_a_label_that_no_line_could_hold_is_reported(self, tmp_path):
        config = settings("classes", tmp_path)
        records = [{"source": "a b", "target": "yes"}, {"source": "c", "target": "n\to"}]
        config["data"]["train"] = {"jsonl": corpus(tmp_path / "x.jsonl", [json.dumps(one) for one in records])}
        assert "x.jsonl:2 has a label with a tab" in self.refused(config, tmp_path)

    def test_the_task_of_a_run_cannot_change(self, tmp_path):
        train(from_mapping(settings("classes", tmp_path)), tmp_path / "run", view=View())
        before = (tmp_path / "run" / "config.yaml").read_bytes()
        changed = from_mapping(settings("classes", tmp_path, task={"pool": "max"}, training={"steps": 99}))
        with pytest.raises(UsageError, match=r"task\.pool cannot change when a run is continued"):
            train(changed, tmp_path / "run", resume=True, view=View())
        assert (tmp_path / "run" / "config.yaml").read_bytes() == before

    def test_a_trained_run_whose_data_are_gone_keeps_its_tokenizers(self, tmp_path, capsys):
        config = from_mapping(settings("classes", tmp_path))
        train(config, tmp_path / "run", view=View())
        shutil.rmtree(tmp_path / "run" / "data")
        corpus(tmp_path / "labelled.txt", ["yes other words", "no than before"] * 30)
        with pytest.raises(RegardError, match=r"data is missing, and the trained model"):
            prepare(config, tmp_path / "run")
        assert main(["evaluate", str(tmp_path / "run")]) == 1
        (tmp_path / "in.txt").write_text("a b\n")
        assert main(["predict", str(tmp_path / "run"), str(tmp_path / "in.txt")]) == 0
        capsys.readouterr()

    def test_a_finished_run_without_its_weights_says_so(self, tmp_path, capsys):
        train(from_mapping(settings("classes", tmp_path)), tmp_path / "run", view=View())
        (tmp_path / "run" / "model.safetensors").unlink()
        (tmp_path / "in.txt").write_text("a b\n")
        assert main(["predict", str(tmp_path / "run"), str(tmp_path / "in.txt")]) == 1
        assert "model.safetensors is missing" in capsys.readouterr().err

    def test_of_every_other_picture_all_questions_are_taken(self, tmp_path):
        config = settings("questions", tmp_path)
        whole = prepare(from_mapping(config), tmp_path / "whole")
        config["data"]["every"] = 2
        half = prepare(from_mapping(config), tmp_path / "half")
        assert [one.report.pairs for one in (whole, half)] == [240, 120]
        kinds = [{pair.source.split("\t")[1].split()[0] for pair in one.validation_pairs} for one in (whole, half)]
        assert len(kinds[1]) == len(kinds[0]) > 2
