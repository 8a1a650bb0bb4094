"""Laws of every task: what holds for translation holds with another input or output."""

import json

import numpy as np
import pytest
import torch

from regard.cli import main
from regard.config.loading import dump, from_mapping
from regard.config.text import Tokenizer as Settings
from regard.data.batches import Batches
from regard.data.corpus import Pair, read
from regard.foundation.weights import read_weights
from regard.metrics.labels import confusion, correlation, ranks, score_labels, score_numbers
from regard.metrics.scoring import score_text
from regard.models.classifier import split_pair
from regard.nn import taps
from regard.runs.run import Run
from regard.tasks.outputs.label import fit_temperature
from regard.tasks.outputs.number import NumberOutput, numbers_in
from regard.tasks.preparation import prepare
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.joined import Joined
from regard.text.learning import train as learn
from regard.text.specials import BOS, EOS, PAD, SEP
from regard.training.journal import Journal
from regard.training.loop import train
from regard.training.validation import JUDGING_SEED
from regard.training.view import View
from tests.task_runs import COURSE, ENCODERS, READING, TASKS, corpus, settings, task_and_model


class TestEveryTask:
    @pytest.mark.parametrize("kind", TASKS)
    def test_it_trains_and_ends_with_a_card_that_says_how_to_use_it(self, kind, tmp_path):
        config = from_mapping(settings(kind, tmp_path))
        outcome = train(config, tmp_path / "run", view=View())
        run = Run.open(tmp_path / "run")
        expected = set(config.task.scores) - {"span_f1"}  # only of tags that mark spans
        assert run.status == "finished" and expected <= set(outcome.validation)
        card = run.card.read_text()
        assert config.cell in card and outcome.next_command.split()[1] in card
        assert Journal(run.metrics).lines("validation")

    @pytest.mark.parametrize("kind", TASKS)
    def test_interrupted_and_continued_is_uninterrupted(self, kind, tmp_path):
        whole = from_mapping(settings(kind, tmp_path))
        train(whole, tmp_path / "whole", view=View())
        half = from_mapping(settings(kind, tmp_path, training={"steps": 6}), ["training.schedule.warmup=2"])
        whole_again = from_mapping(settings(kind, tmp_path), ["training.schedule.warmup=2"])
        train(half, tmp_path / "parts", view=View())
        train(whole_again, tmp_path / "parts", resume=True, view=View())
        one = read_weights(tmp_path / "whole" / "checkpoints" / "step-00000012" / "model.safetensors")
        other = read_weights(tmp_path / "parts" / "checkpoints" / "step-00000012" / "model.safetensors")
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)

    @pytest.mark.parametrize("kind", TASKS)
    def test_its_configuration_survives_being_written_and_read(self, kind, tmp_path):
        config = from_mapping(settings(kind, tmp_path))
        path = tmp_path / "config.yaml"
        path.write_text(dump(config))
        from regard.config.loading import load

        assert load(path) == config

    @pytest.mark.parametrize("kind", READING)
    @pytest.mark.parametrize("encoder", ENCODERS)
    def test_padding_and_batch_change_nothing(self, kind, encoder, tmp_path):
        task, model, prepared = task_and_model(kind, tmp_path, model={"encoder": {"kind": encoder}})
        random = torch.Generator().manual_seed(JUDGING_SEED)
        together = sum(
            task.output.loss(model, task.training_batch(batch, random, training=False)).nll.item()
            for batch in task.batches(prepared.validation).once()
        )
        alone = 0.0
        for batch in Batches(prepared.validation, 1, 1, frames=(task.input.frame, task.output.target_frame)).once():
            lesson = task.training_batch(batch, random, training=False)
            alone += task.output.loss(model, lesson).nll.item()
        assert together == pytest.approx(alone, rel=1e-4)


class TestAcceptors:
    @pytest.mark.parametrize("pairs", ["joined", "apart", "attended"])
    @pytest.mark.parametrize("pool", [None, "first", "last", "mean", "max", "attention"])
    def test_every_pooling_and_comparison_ignores_padding(self, pairs, pool, tmp_path):
        task, model, _ = task_and_model(
            "pairs", tmp_path, task={"pairs": pairs, "pool": pool}, model={"encoder": {"kind": "transformer"}}
        )
        texts = ["w1 w2 w3\tw1", "w4\tw5 w6 w7 w8 w9", "w1\tw1"]
        together = task.output.scores(model, texts)
        alone = torch.cat([task.output.scores(model, [text]) for text in texts])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize("encoder", ["bag", "transformer"])
    def test_between_two_texts_the_same_word_finds_itself_from_the_start(self, encoder, tmp_path):
        config = from_mapping(settings("pairs", tmp_path, task={"pairs": "attended"}, model={
            "encoder": {"kind": encoder}, "attention": {"score": "dot", "project": encoder == "transformer"},
            "width": 64, "dropout": 0.0,
        }))  # fmt: skip
        task = prepare(config, tmp_path / "run").task
        torch.manual_seed(0)
        model = task.build().eval()
        with torch.no_grad(), taps.watch(model, "between.weights") as seen:
            task.output.scores(model, ["w1 w2 w3 w4 w5\tw1 w2 w3 w4 w5"])
        both = seen["between.weights"][0].mean(0)  # from the first text to the second, and back: 2S×S
        assert both.argmax(1).tolist() == 2 * list(range(7))

    def test_order_is_nothing_to_a_bag_and_something_to_the_others(self, tmp_path):
        for encoder in ENCODERS:
            directory = tmp_path / encoder
            directory.mkdir()
            task, model, _ = task_and_model("classes", directory, model={"encoder": {"kind": encoder}})
            one, other = task.output.scores(model, ["w1 w2 w3 w4", "w4 w2 w1 w3"])
            assert torch.allclose(one, other, atol=1e-6) == (encoder == "bag")

    def test_two_texts_are_reported_apart_at_the_separator(self):
        source = torch.tensor([[BOS, 7, 8, SEP, 9, EOS, PAD], [BOS, 7, SEP, 8, 9, 10, EOS]])
        first, second = split_pair(source)
        assert first.tolist() == [[BOS, 7, 8, EOS], [BOS, 7, EOS, PAD]]
        assert second.tolist() == [[BOS, 9, EOS, PAD, PAD], [BOS, 8, 9, 10, EOS]]

    def test_a_source_without_separator_has_an_empty_second_text(self):
        first, second = split_pair(torch.tensor([[BOS, 7, 8, EOS, PAD], [BOS, 7, SEP, 9, EOS]]))
        assert first.tolist() == [[BOS, 7, 8, EOS], [BOS, 7, EOS, PAD]]
        assert second.tolist() == [[BOS, EOS, PAD], [BOS, 9, EOS]]

    def test_balanced_weights_give_every_class_the_same_weight(self, tmp_path):
        task, _, prepared = task_and_model("classes", tmp_path, task={"class_weights": "balanced"})
        weights, counts = task.output._weights, torch.tensor(prepared.task.vocabularies.labels.counts)
        shares = weights * counts
        torch.testing.assert_close(shares, shares[:1].expand_as(shares))
        assert shares.sum().item() == pytest.approx(counts.sum().item())

    def test_balanced_classes_and_smoothing_together_favour_no_class(self, tmp_path, monkeypatch):
        """On the whole training data, equal scores are the minimum: no class gains by being rare."""
        changed = {"task": {"class_weights": "balanced"}, "training": {"label_smoothing": 0.1}}
        task, model, _ = task_and_model("classes", tmp_path, **changed)
        counts = [90, 9, 1]
        monkeypatch.setattr(task.output.known, "counts", counts)
        labels = torch.tensor([label for label, count in enumerate(counts) for _ in range(count)])
        scores = torch.zeros(len(counts), requires_grad=True)
        monkeypatch.setattr(task.output, "batch_scores", lambda model, batch: scores.expand(len(labels), -1))
        batch = TrainingBatch({"label": labels}, len(labels))
        task.output.loss(model, batch, point=TrainingPoint(1, 4, torch.Generator())).smoothed.backward()
        assert scores.grad.tolist() == pytest.approx([0, 0, 0], abs=1e-4)

    def test_the_fit_temperature_gives_back_the_truth(self):
        generator = torch.Generator().manual_seed(0)
        scores = torch.randn(4000, 4, generator=generator)
        labels = torch.multinomial(scores.softmax(1), 1, generator=generator)[:, 0]
        for factor in (0.5, 1.0, 3.0):
            assert fit_temperature(scores * factor, labels) == pytest.approx(factor, rel=0.1)

    def test_numbers_survive_the_store(self):
        numbers = [0.0, -1.5, 4.7, 1e-20, 3e20]
        output = object.__new__(NumberOutput)
        halves = output.targets([Pair("", str(number)) for number in numbers])
        assert numbers_in(torch.tensor(halves)).tolist() == [float(np.float32(number)) for number in numbers]

    def test_a_trained_acceptor_predicts_with_probabilities_that_sum_to_one(self, tmp_path, capsys, monkeypatch):
        lines = [f"{'yes' if seed % 2 else 'no'} {'good' if seed % 2 else 'bad'} w{seed % 7}" for seed in range(200)]
        config = settings("classes", tmp_path, training={"steps": 60, "validate_every": 60, "checkpoint_every": 60})
        config["data"]["train"] = {"labelled": corpus(tmp_path / "easy.txt", lines)}
        config["data"]["cleaning"] = {"duplicates": "keep"}
        config["model"]["encoder"] = {"kind": "bag"}
        outcome = train(from_mapping(config), tmp_path / "run", view=View())
        assert outcome.validation["accuracy"] == 100.0
        corpus(tmp_path / "in.txt", ["good w1", "", "bad w3"])
        assert main(["predict", str(tmp_path / "run"), str(tmp_path / "in.txt")]) == 0
        said = capsys.readouterr().out.split("\n")
        assert [line.split("\t")[0] for line in said] == ["yes", "", "no", ""]
        assert main(["predict", str(tmp_path / "run"), str(tmp_path / "in.txt"), "--json"]) == 0
        first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
        assert first["label"] == "yes" and second["label"] is None and third["line"] == 3
        assert sum(first["probabilities"].values()) == pytest.approx(1.0)
        assert main(["translate", str(tmp_path / "run"), str(tmp_path / "in.txt")]) == 2
        assert "regard predict" in capsys.readouterr().err


class TestScores:
    def test_f1_is_the_harmonic_mean_of_precision_and_recall(self):
        said, true, labels = list("aabbbc"), list("abbbac"), ("a", "b", "c", "d")
        scores = score_labels(said, true, labels)
        precision, recall = 1 / 2, 1 / 2
        assert scores.details["macro_f1"]["a"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))
        assert scores["accuracy"] == pytest.approx(100 * 4 / 6)
        assert scores["macro_f1"] == pytest.approx(100 * (1 / 2 + 2 / 3 + 1) / 3)  # `d` never occurs
        assert confusion(said, true, labels).sum() == 6

    def test_spearman_knows_order_only_and_pearson_knows_lines_only(self):
        true = [1.0, 2.0, 3.0, 4.0]
        assert score_numbers([1.0, 10.0, 100.0, 1000.0], true)["spearman"] == pytest.approx(100)
        assert score_numbers([1.0, 10.0, 100.0, 1000.0], true)["pearson"] < 99
        assert score_numbers([3.0, 5.0, 7.0, 9.0], true)["pearson"] == pytest.approx(100)
        assert score_numbers([1.0] * 4, true)["pearson"] == 0.0

    def test_equals_share_their_ranks(self):
        assert ranks(np.array([5.0, 1.0, 5.0, 0.0])).tolist() == [3.5, 2.0, 3.5, 1.0]
        assert correlation(np.array([1.0]), np.array([1.0])) == 0.0


class TestTransducers:
    def test_tags_stand_at_the_first_token_of_their_word(self, tmp_path):
        config = settings("tags", tmp_path, text={"tokenizer": {"kind": "characters", "min_frequency": 1}})
        prepared = prepare(from_mapping(config), tmp_path / "run")
        source, target = prepared.task.output.encode([Pair("w1 w10", "first w1")])
        words = [len(ids) for ids in prepared.task.output.word_tokens(["w1", "w10"])]
        labels = prepared.task.vocabularies.labels
        assert len(source[0]) == len(target[0]) == sum(words)
        assert [number for number in target[0] if number] == [labels.number("first") + 1, labels.number("w1") + 1]
        assert target[0][words[0]] == labels.number("w1") + 1

    @pytest.mark.parametrize("tokenizer", ["words", "characters", "bpe"])
    def test_there_is_one_tag_for_each_word_whatever_a_token_is(self, tokenizer, tmp_path):
        text = {"tokenizer": {"kind": tokenizer, "min_frequency": 1}}
        task, model, _ = task_and_model("tags", tmp_path, text=text)
        sentences = ["w1 never-seen, w2!", "w3", "\u200b w1 \u0301"]
        for answer, sentence in zip(task.output.answer(model, sentences), sentences, strict=True):
            assert answer.facts["words"] == sentence.split() and len(answer.facts["tags"]) == len(sentence.split())
            assert answer.line.count("/") >= len(sentence.split())


STORY = [
    "1 Mary moved to the bathroom.", "2 John went to the hallway.", "3 Where is Mary? \tbathroom\t1",
    "4 Where is John? \thallway\t2", "1 Sandra sat.", "2 Who sat? \tSandra,Mary\t1",
]  # fmt: skip


class TestQuestions:
    def test_a_question_sees_the_story_so_far_and_no_other(self, tmp_path):
        path = corpus(tmp_path / "qa.txt", STORY)
        told = "Mary moved to the bathroom. John went to the hallway."
        assert list(read(from_mapping({"data": {"train": {"babi": path}}}).data.train)) == [
            Pair(f"{told}\tWhere is Mary?", "bathroom"),
            Pair(f"{told}\tWhere is John?", "hallway"),
            Pair("Sandra sat.\tWho sat?", "Sandra,Mary"),
        ]

    def test_texts_are_joined_by_the_separator_and_know_their_characters(self):
        tokenizer = Joined(learn(Settings(kind="words", min_frequency=1), lambda: iter(["a b c d"]), "test"))
        found = tokenizer.encode("a b\tc d")
        assert found.ids == tokenizer.encode_batch(["a b\tc d"])[0]
        assert found.ids.count(SEP) == 1 and found.ids[2] == SEP
        assert ["a b\tc d"[first:last] for first, last in found.offsets] == ["a", "b", "\t", "c", "d"]
        assert found.words == [0, 1, 2, 3, 4]

    def test_answers_are_judged_by_exact_match_and_f1_and_long_stories_are_no_misfits(self, tmp_path):
        lines = []
        for seed in range(60):
            story = [f"{n + 1} w{seed % 9} is in room{(seed + n) % 5}." for n in range(12)]
            lines += [*story, f"13 Where is w{seed % 9}?\troom{seed % 5}\t1"]
        config = from_mapping({
            "data": {"train": {"babi": corpus(tmp_path / "qa.txt", lines)}, "held_out": 6},
            "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
            "model": {"width": 16, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
            "training": COURSE | {"steps": 2}, "decoding": {"max_length": 4},
        })  # fmt: skip
        outcome = train(config, tmp_path / "run", view=View())
        assert {"exact", "f1"} <= set(outcome.validation) and "bleu" not in outcome.validation
        assert prepare(config, tmp_path / "run").report.dropped.keys() <= {"duplicate"}

    def test_f1_counts_words_that_both_have(self):
        score = score_text(["the red ball", "x"], ["red ball", "y"], ["f1"])["f1"]
        assert score == pytest.approx(100 * (2 * 2 / 5 + 0) / 2)
