"""Laws of masked models: what is asked for, in learning and in judging, and what fills a blank."""

import json

import pytest
import torch

from regard.data.corpus import Pair
from regard.evaluation.judged import judge_run
from regard.tasks.loaded import LoadedRun
from regard.text.specials import BOS, EOS, MASK, PAD, SPECIALS
from regard.training.validation import mean_loss
from tests.task_runs import corpus, task_and_model


def test_so_many_tokens_are_asked_for_and_hidden_exchanged_or_left(tmp_path):
    task, _, prepared = task_and_model("masked", tmp_path)
    tokens = torch.randint(6, prepared.task.input.tokenizer.size, (200, 50))
    lesson = task.output.hide(tokens, torch.Generator().manual_seed(1))
    asked = lesson["outputs"] != PAD
    assert torch.equal(lesson["outputs"][asked], tokens[asked])
    assert torch.equal(lesson["source"][~asked], tokens[~asked])
    assert asked.float().mean().item() == pytest.approx(0.15, abs=0.02)
    hidden = (lesson["source"] == MASK)[asked].float().mean().item()
    left = (lesson["source"] == tokens)[asked].float().mean().item()
    assert hidden == pytest.approx(0.8, abs=0.05) and left == pytest.approx(0.1 + 0.1 / 12, abs=0.04)


def test_special_tokens_are_never_asked_for(tmp_path):
    task, _, _ = task_and_model("masked", tmp_path)
    tokens = torch.tensor([[BOS, 7, 3, 8, EOS, PAD, PAD]]).expand(300, -1)
    outputs = task.output.hide(tokens, torch.Generator().manual_seed(1))["outputs"]
    assert set(outputs.unique().tolist()) <= {PAD, 7, 8}


def test_whole_words_are_hidden_whole(tmp_path):
    text = {"tokenizer": {"kind": "characters", "min_frequency": 1}}
    task, _, prepared = task_and_model("masked", tmp_path, task={"whole_words": True, "share": 0.4}, text=text)
    ids = prepared.task.input.tokenizer.encode("w10 w2 w7 w11")
    outputs = task.output.hide(torch.tensor([ids.ids] * 50), torch.Generator().manual_seed(1))["outputs"]
    for row in outputs:
        asked = {word for word, token in zip(ids.words, row.tolist(), strict=True) if token != PAD}
        assert all((token != PAD) == (word in asked) for word, token in zip(ids.words, row.tolist(), strict=True))
    assert 0 < (outputs != PAD).float().mean() < 1


def test_masks_are_dynamic_in_learning_and_fixed_in_judging(tmp_path):
    task, model, prepared = task_and_model("masked", tmp_path)
    random = torch.Generator().manual_seed(1)
    batch = next(task.batches(prepared.train).once())
    one, other = (task.training_batch(batch, random, training=True)["outputs"] for _ in range(2))
    assert not torch.equal(one, other)
    losses = {mean_loss(task, model, task.batches(prepared.validation), device=torch.device("cpu")) for _ in range(2)}
    assert len(losses) == 1


@pytest.mark.parametrize("whole_words", [False, True])
def test_who_judges_asks_for_something_however_small_the_share(whole_words, tmp_path):
    few = {"share": 1e-6, "whole_words": whole_words}
    text = {"tokenizer": {"kind": "characters", "min_frequency": 1}}
    task, model, prepared = task_and_model("masked", tmp_path, task=few, text=text)
    batch, random = next(task.batches(prepared.validation).once()), torch.Generator().manual_seed(1)
    assert task.training_batch(batch, random, training=True).count == 0
    asked = task.training_batch(batch, random, training=False)
    assert asked.count == int((asked["outputs"] != PAD).sum()) >= 1
    assert mean_loss(task, model, task.batches(prepared.validation), device=torch.device("cpu")) > 0.1
    assert 0 <= task.output.judge(model, prepared.validation_pairs, thorough=False).scores["accuracy"] <= 100


def test_where_nothing_can_be_asked_for_no_loss_is_told(tmp_path):
    task, model, _ = task_and_model("masked", tmp_path)
    unknown = [Pair("zebra ox", "")] * 3
    found = judge_run(task, model, unknown)
    assert found.loss is None and found.perplexity is None and not found.judgement.scores.values
    assert "NaN" not in json.dumps(found.facts())


@pytest.mark.parametrize("kept", [3, 12])
def test_blanks_are_filled_by_words_and_never_by_special_tokens(kept, tmp_path):
    lines = [" ".join(f"w{number % kept}" for number in range(seed, seed + 6)) for seed in range(60)]
    data = {"train": {"text": corpus(tmp_path / "few.txt", lines)}, "held_out": 6}
    task, model, prepared = task_and_model("masked", tmp_path, data=data)
    with torch.no_grad():
        model.output_bias[: len(SPECIALS)] = 100.0  # it would say nothing else
    predictor = LoadedRun(task, model)
    answer = predictor.predict("w1 ___ w2")
    words = {f"w{number}" for number in range(kept)}
    assert set(answer.line.split()) <= words and len(answer.line.split()) == 3
    (blank,) = answer.facts["blanks"]
    assert set(blank) <= words and len(blank) == len(set(blank)) == min(5, kept)
    assert predictor.trace("w1 ___ w2").target.tokens == [blank[0]]
    samples = task.output.judge(model, prepared.validation_pairs, thorough=False).samples
    assert all(len(one.output.split()) == len(one.reference.split()) for one in samples)


def test_long_documents_are_cut_and_not_lost(tmp_path):
    _, _, whole = task_and_model("masked", tmp_path)
    (tmp_path / "short").mkdir()
    _, _, short = task_and_model("masked", tmp_path / "short", data={"cleaning": {"max_length": 4}, "held_out": 20})
    assert short.train.tokens[0] == whole.train.tokens[0] and short.train.lengths[0].max() == 4
