"""Starting from another run: what is taken over, what stays as it was, and what does not fit."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config.loading import from_mapping
from regard.foundation.errors import UsageError
from regard.foundation.weights import read_weights
from regard.runs.run import Run
from regard.training.loop import train
from regard.training.start import Tuning
from regard.training.view import View
from tests.task_runs import corpus, settings


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pretrained")
    model = {"encoder": {"kind": "transformer", "layers": 2}}
    train(from_mapping(settings("masked", directory, model=model)), directory / "run", view=View())
    return directory / "run"


class TestStartingFromAnotherRun:
    def started(self, pretrained: Path, directory: Path, kind: str, **more: Any) -> dict[str, Any]:
        model = {"encoder": {"kind": "transformer", "layers": 2}, "start_from": str(pretrained)}
        return settings(kind, directory, **{**more, "model": model | more.get("model", {})})

    @pytest.mark.parametrize("kind", ["classes", "pairs", "tags", "masked"])
    def test_the_encoder_and_the_vectors_are_taken(self, pretrained, kind, tmp_path):
        config = self.started(pretrained, tmp_path, kind, training={"steps": 1, "optimizer": {"learning_rate": 1e-9}})
        train(from_mapping(config), tmp_path / "run", view=View())
        there, here = read_weights(Run.open(pretrained).weights), read_weights(Run.open(tmp_path / "run").weights)
        common = [name for name in here if name.startswith("encoder.") or name == "source_embedding.weight"]
        assert common and all(torch.allclose(here[name], there[name], atol=1e-6) for name in common)
        assert set(common) <= set(Run.open(tmp_path / "run").info["taken"])

    def test_the_encoder_of_an_encoder_decoder_starts_from_it_too(self, pretrained, tmp_path):
        config = self.started(pretrained, tmp_path, "classes", training={"steps": 1})
        config["task"] = {"kind": "translation"}
        config["data"]["train"] = {
            "tsv": corpus(tmp_path / "t.tsv", [f"w{n % 7} w{n % 5}\tw{n % 3} w{n % 11}" for n in range(90)])
        }
        config["data"]["held_out"] = 5
        config["model"]["decoder"] = {"kind": "rnn"}
        train(from_mapping(config), tmp_path / "run", view=View())
        taken = Run.open(tmp_path / "run").info["taken"]
        assert "decoder.embedding.weight" in taken and any(name.startswith("encoder.layers.1") for name in taken)
        assert not any(name.startswith("decoder.layers") for name in taken)

    def test_fresh_leaves_what_was_taken_as_it_was(self, pretrained, tmp_path):
        config = self.started(pretrained, tmp_path, "classes", training={"tune": "fresh"})
        train(from_mapping(config), tmp_path / "run", view=View())
        there, here = read_weights(Run.open(pretrained).weights), read_weights(Run.open(tmp_path / "run").weights)
        assert all(torch.equal(here[name], there[name]) for name in here if name.startswith("encoder."))

    def test_gradual_thaws_from_the_top_down(self):
        taken = ["source_embedding.weight", "encoder.layers.0.a", "encoder.layers.1.a", "encoder.norm.weight"]
        tuning = Tuning("gradual", taken)
        frozen = [tuning.frozen(step, 80) for step in (1, 10, 20, 30, 40)]
        assert frozen == [set(taken[: 4 - thawed]) for thawed in range(5)]

    def test_what_does_not_fit_is_reported(self, pretrained, tmp_path):
        for model, word in (
            ({"width": 24}, "model.width is 24 here, but"),
            ({"encoder": {"kind": "rnn"}}, "model.encoder.kind is rnn here, but transformer"),
            ({"encoder": {"kind": "transformer", "layers": 1}}, "model.encoder.layers is 1 here, but 2"),
        ):
            with pytest.raises(UsageError, match=word):
                from_mapping(self.started(pretrained, tmp_path, "classes", model=model))
        other = self.started(pretrained, tmp_path, "classes", text={"tokenizer": {"kind": "characters"}})
        with pytest.raises(UsageError, match=r"text\.tokenizer\.kind is characters here"):
            from_mapping(other)
        with pytest.raises(UsageError, match="does not exist"):
            train(from_mapping(self.started(tmp_path / "none", tmp_path, "classes")), tmp_path / "run", view=View())
        with pytest.raises(UsageError, match=r"model\.start_from"):
            from_mapping(settings("classes", tmp_path, training={"tune": "fresh"}))
