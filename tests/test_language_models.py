"""Laws of language models: windows, packing, prompts, and the probabilities of texts."""

import itertools
import json

import pytest
import torch

from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.packing import windows
from regard.evaluation.likelihood import total
from regard.evaluation.perplexity import text_likelihoods
from regard.search import Search
from regard.tasks.loaded import LoadedRun
from regard.text.specials import BOS, EOS, PAD
from regard.training.loop import train
from regard.training.validation import mean_loss
from regard.training.view import View
from tests.task_runs import corpus, settings, task_and_model


class TestLanguageModels:
    @pytest.mark.parametrize("decoder", ["rnn", "conv", "transformer"])
    def test_step_by_step_is_all_at_once_without_a_memory(self, decoder, tmp_path):
        _, model, _ = task_and_model("language", tmp_path, model={"decoder": {"kind": decoder, "layers": 2}})
        inputs = torch.randint(6, 15, (3, 7))
        whole = model(torch.zeros(3, 0, dtype=torch.long), inputs)
        state = model.start(model.encode(inputs))
        for place in range(7):
            scores, state = model.step(inputs[:, place], state)
            torch.testing.assert_close(scores, whole[:, place], atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize("length, stride", [(5, 5), (5, 2), (5, 1), (100, 50), (2, 1)])
    def test_a_sliding_window_asks_for_every_token_once(self, length, stride):
        for tokens in (2, 3, 6, 7, 23):
            asked = [
                place
                for window in windows(tokens, length, stride)
                for place in range(window.start + window.known, window.end - 1)
            ]
            assert asked == list(range(tokens - 1))
            assert all(window.end - window.start <= length + 1 for window in windows(tokens, length, stride))

    def test_packing_loses_nothing_and_repeats_nothing(self, tmp_path):
        task, _, prepared = task_and_model("language", tmp_path)
        documents = sorted(tuple(prepared.train[row][1].tolist()) for row in range(len(prepared.train)))
        for world_size in (1, 3):
            row: dict[int, list[int]] = {}
            for rank in range(world_size):
                batches = task.batches(prepared.train, rank=rank, world_size=world_size, training=True)
                for batch, _ in itertools.islice(batches.after(), batches.per_epoch()):
                    for window, tokens in zip(batch.rows.tolist(), batch.target.tolist(), strict=True):
                        row[window] = [token for token in tokens if token != PAD]
            text = [token for window in sorted(row) for token in (row[window][:-1])] + row[max(row)][-1:]
            found, document = [], []
            for token in text:
                if token == EOS:
                    found.append(tuple(document))
                document = [] if token in (BOS, EOS) else [*document, token]
            assert sorted(found) == documents

    def test_the_loss_of_training_is_the_perplexity_of_score(self, tmp_path):
        task, model, prepared = task_and_model("language", tmp_path)
        loss = mean_loss(task, model, task.batches(prepared.validation), device=torch.device("cpu"))
        writer = LoadedRun(task, model)
        found = total(text_likelihoods(writer, [pair.source for pair in prepared.validation_pairs]))
        assert loss == pytest.approx(-found.log_prob / found.tokens, rel=1e-4)

    def test_what_is_written_has_the_probability_that_is_reported(self, tmp_path):
        task, model, _ = task_and_model("language", tmp_path, task={"length": 60}, decoding={"max_length": 9})
        writer = LoadedRun(task, model)
        for search in (Search(beam=1), Search(beam=3), Search(samples=2, count=2, top_k=5)):
            for prompt, found in zip(["", "w1 w2", "w3"], writer.hypotheses(["", "w1 w2", "w3"], search), strict=True):
                for one in found:
                    (whole,) = text_likelihoods(writer, [writer.output.whole(prompt, one)])
                    given = len(prompt.split())
                    said = whole.log_probs[given : given + len(one.log_probs)]
                    assert list(one.log_probs) == pytest.approx(list(said), abs=1e-4)

    def test_prompts_keep_their_place_whatever_their_length(self, tmp_path):
        task, model, _ = task_and_model("language", tmp_path, decoding={"max_length": 5})
        writer = LoadedRun(task, model)
        prompts = ["w1 w2 w3", "", "w4", "w5 w6 w7"]
        together = [found[0].tokens for found in writer.hypotheses(prompts, beam=1)]
        assert together == [writer.hypotheses([prompt], beam=1)[0][0].tokens for prompt in prompts]

    def test_generate_and_score_from_the_command_line(self, tmp_path, capsys):
        train(from_mapping(settings("language", tmp_path, decoding={"max_length": 6})), tmp_path / "run", view=View())
        run = str(tmp_path / "run")
        draw = ["generate", run, "--prompt", "w1 w2", "--sample", "--samples", "2", "--top-p", "0.9", "--seed", "3"]
        assert main(draw) == 0
        first = capsys.readouterr().out
        assert len(first.splitlines()) == 2 and all(line.startswith("w1 w2") for line in first.splitlines())
        assert main(draw) == 0
        assert capsys.readouterr().out == first
        texts = corpus(tmp_path / "t.txt", ["w1 w2 w3", "w4"])
        assert main(["score", run, "--target", texts, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["total"]["sentences"] == 2
        assert main(["score", run, "--source", texts, "--target", texts]) == 2
        assert main(["translate", run, texts]) == 2
        assert main(["predict", run, texts]) == 2
        assert "regard generate" in capsys.readouterr().err
