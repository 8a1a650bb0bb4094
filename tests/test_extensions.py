"""Components of a user's own: the walk-throughs of docs/extending.md, executed."""

import re
import sys
from pathlib import Path

import pytest
import torch

from regard import extensions
from regard.cli import main
from regard.config import plugins
from regard.config.loading import from_mapping
from regard.config.schema import json_schema
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.scoring import score_text
from regard.nn.recurrence import make_recurrence
from regard.runs.run import Run
from regard.tasks.loaded import load_run

DOCS = Path(__file__).parent.parent / "docs" / "extending.md"
SETTINGS = {
    "data": {"train": {"generate": "copy", "size": 300, "symbols": 5, "max_length": 4}},
    "text": {"tokenizer": {"kind": "words"}},
    "training": {"steps": 6, "batch_tokens": 256},
}
CELLS = {
    "score": {"width": 16, "attention": {"score": "cosine"}},
    "positions": {"width": 16, "positions": {"kind": "logarithmic"}},
    "cell": {
        "width": 16,
        "encoder": {"kind": "rnn", "cell": "minimal"},
        "decoder": {"kind": "rnn", "cell": "minimal"},
        "attention": {"score": "cosine"},
    },
}


@pytest.fixture(scope="module")
def my_parts(tmp_path_factory):
    """The module that the documentation writes, loaded as an extension."""
    directory = tmp_path_factory.mktemp("extension")
    blocks = re.findall(r'```python title="my_parts.py"\n(.*?)```', DOCS.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 5
    (directory / "my_parts.py").write_text("\n".join(blocks), encoding="utf-8")
    sys.path.insert(0, str(directory))
    extensions.load("my_parts")
    yield directory
    sys.path.remove(str(directory))


@pytest.fixture(scope="module", params=CELLS)
def run(request, my_parts, tmp_path_factory) -> Path:
    from regard.training.loop import train
    from regard.training.view import View

    directory = tmp_path_factory.mktemp("runs") / request.param
    train(from_mapping(SETTINGS | {"model": CELLS[request.param]}), directory, view=View())
    return directory


def test_an_extension_trains_and_translates_step_by_step_as_all_at_once(run):
    translator = load_run(run)
    tokens, target = translator.forced("a b c", "c b a")
    with torch.inference_mode():
        swept = translator.model(tokens, target[:, :-1])
        state, steps = translator.model.start(translator.model.encode(tokens)), []
        for position in range(target.shape[1] - 1):
            scores, state = translator.model.step(target[:, position], state)
            steps.append(scores)
    assert torch.allclose(swept, torch.stack(steps, 1), atol=1e-5)
    assert isinstance(translator.translate("a b"), str)


def test_a_run_records_its_extension_and_is_refused_without_it(run, monkeypatch, capsys):
    assert Run.open(run).config.plugins == ["my_parts"]
    monkeypatch.setattr(plugins, "_loaded", set())
    assert main(["translate", str(run), "/dev/null"]) == 2
    assert "needs the extension my_parts" in capsys.readouterr().err


def test_a_run_never_imports_an_extension_by_itself(run, monkeypatch):
    monkeypatch.setattr(plugins, "_loaded", set())
    monkeypatch.delitem(sys.modules, "my_parts")
    with pytest.raises(UsageError, match="--plugin my_parts"):
        load_run(run)
    assert "my_parts" not in sys.modules


def test_the_command_line_loads_an_extension(run, monkeypatch, capsys):
    monkeypatch.setattr(plugins, "_loaded", set())
    assert main(["--plugin", "my_parts", "translate", str(run), "/dev/null"]) == 0


def test_the_environment_loads_an_extension(run, monkeypatch):
    monkeypatch.setattr(plugins, "_loaded", set())
    monkeypatch.setenv("REGARD_PLUGINS", "my_parts")
    assert load_run(run).translate("a") is not None


def test_the_module_is_there_after_import_regard():
    import regard

    assert regard.extensions.load is plugins.load


def test_the_environment_is_read_before_a_metric_is_asked_for(run, monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_PLUGINS", "my_parts")
    (tmp_path / "in.txt").write_text("a b\n")
    assert main(["translate", str(run), str(tmp_path / "in.txt"), "--mbr", "first-word", "--samples", "4"]) == 0


def test_errors_and_schema_know_the_names(my_parts):
    with pytest.raises(UsageError, match=r"one of additive, .*cosine.*did you mean cosine"):
        from_mapping(SETTINGS | {"model": {"attention": {"score": "cosin"}}})
    assert "cosine" in str(json_schema())


def test_a_name_is_taken_once(my_parts):
    with pytest.raises(ValueError, match="taken"):
        extensions.attention_score("dot")(lambda heads, query_width, key_width: None)
    with pytest.raises(ValueError, match="taken"):
        extensions.metric("bleu")(type("Other", (), {"__module__": "other"}))


def blocks_run(directory, text, **options):
    (directory / "corpus.txt").write_text(text)
    corpus = {"reader": "blocks", "paths": str(directory / "corpus.txt"), "options": options}
    return SETTINGS | {"data": {"train": corpus}, "model": {"width": 16}}


def test_a_corpus_format_of_one_s_own_is_trained_on(my_parts, tmp_path):
    from regard.tasks.preparation import prepare

    text = "\n\n".join(f"en: a{n} b\nde: c{n} d" for n in range(60))
    config = from_mapping(blocks_run(tmp_path, text, source="en", target="de"))
    assert config.plugins == ["my_parts"]
    prepared = prepare(config, tmp_path / "run")
    assert len(prepared.train) + len(prepared.validation) == 60
    assert {pair.target.split()[1] for pair in prepared.validation_pairs} == {"d"}


def test_a_reader_that_fails_is_reported_with_the_file(my_parts, tmp_path):
    from regard.tasks.preparation import prepare

    config = from_mapping(blocks_run(tmp_path, "en: a\nde: b\n\nno colon here", source="en", target="de"))
    with pytest.raises(RegardError, match=r"corpus\.txt: the reader blocks failed after 1 examples"):
        prepare(config, tmp_path / "run")
    with pytest.raises(UsageError, match="one of blocks"):
        from_mapping(SETTINGS | {"data": {"train": {"reader": "blcks", "paths": "x"}}})


def test_a_metric_scores_text(my_parts):
    scores = score_text(["a b", "c d"], ["a x", "y d"], ["first-word", "exact"])
    assert scores["first-word"] == 50.0


def test_a_cell_of_one_s_own_equals_its_steps(my_parts):
    layer = make_recurrence("minimal", 3, 5)
    inputs = torch.randn(2, 4, 3)
    state = layer.blank(inputs)
    swept = layer(inputs, state)
    for position in range(4):
        state = layer.step(inputs[:, position], state)
        assert torch.allclose(swept[:, position], state)


@pytest.mark.parametrize(("name", "says"), [("no_such_module", "was not found"), ("my parts.py", "not the name")])
def test_an_extension_that_cannot_be_loaded_is_refused(name, says, capsys):
    assert main(["--plugin", name, "runs", "/tmp"]) == 2
    assert says in capsys.readouterr().err


def test_an_extension_with_a_mistake_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_parts.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    assert main(["--plugin", "broken_parts", "runs", "/tmp"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err
