"""Components of a user's own: the walk-throughs of docs/extending.md, executed."""

import re
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import regard
from regard import extensions
from regard.cli import main
from regard.config import plugins
from regard.config.loading import dump, from_mapping
from regard.config.schema import json_schema
from regard.foundation.errors import RegardError, UsageError
from regard.inspection import registry
from regard.metrics.scoring import score_text
from regard.nn.recurrence import make_recurrence
from regard.runs.run import Run
from regard.search import Hypothesis
from regard.tasks.generation import TextGenerator
from regard.tasks.loaded import load_run
from regard.tasks.results import Number
from regard.training.loop import train
from regard.training.view import View
from tests.documentation import EXAMPLES

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
    "decoder": {"width": 16, "decoder": {"kind": "averaging"}, "join": {"kind": "fixed"}},
}


@pytest.fixture(scope="module", autouse=True)
def forgotten_analyses():
    """Analyses that are registered here are not part of the reports of other tests."""
    known = dict(registry.EXTENSIONS)
    yield
    registry.EXTENSIONS.clear()
    registry.EXTENSIONS.update(known)


@pytest.fixture(scope="module")
def my_parts(tmp_path_factory):
    """The module that the documentation writes, loaded as an extension."""
    directory = tmp_path_factory.mktemp("extension")
    blocks = re.findall(r'```python title="my_parts.py"\n(.*?)```', DOCS.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 12
    (directory / "my_parts.py").write_text("\n".join(blocks), encoding="utf-8")
    sys.path.insert(0, str(directory))
    extensions.load("my_parts")
    yield directory
    sys.path.remove(str(directory))


def test_the_module_of_the_documentation_is_an_extension(my_parts, record_property):
    written = (my_parts / "my_parts.py").read_text(encoding="utf-8")
    record_property(EXAMPLES, DOCS.read_text(encoding="utf-8").count('```python title="my_parts.py"'))
    assert "my_parts" in sys.modules and Path(sys.modules["my_parts"].__file__).read_text(encoding="utf-8") == written


@pytest.fixture(scope="module", params=CELLS)
def run(request, my_parts, tmp_path_factory) -> Path:
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
    with pytest.raises(ValueError, match="already registered"):
        extensions.attention_score("dot")(lambda heads, query_width, key_width: None)
    with pytest.raises(ValueError, match="already registered"):
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


def tone(path: Path, frequency: float, seed: int) -> None:
    """A quarter to half a second of a noisy tone."""
    random = np.random.default_rng(seed)
    times = np.arange(int(random.integers(2000, 4000))) / 8000
    samples = 0.4 * np.sin(2 * np.pi * frequency * times) + 0.05 * random.standard_normal(len(times))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((samples * 2**14).astype("<i2").tobytes())


@pytest.fixture(scope="module")
def sounds(my_parts, tmp_path_factory) -> Path:
    """A run that tells low tones from high ones."""
    directory = tmp_path_factory.mktemp("sounds")
    lines = []
    for number in range(120):
        name, high = directory / f"{number}.wav", number % 2
        tone(name, (600 if not high else 2000) + 37 * (number % 7), number)
        lines.append(f"{name}\t{'high' if high else 'low'}\n")
    (directory / "sounds.tsv").write_text("".join(lines))
    settings = {
        "task": {"kind": "spectrum-classification"},
        "data": {"train": {"tsv": str(directory / "sounds.tsv")}, "held_out": 20},
        "model": {"width": 16},
        "training": {"steps": 60, "validate_every": 30, "batch_tokens": 2000, "device": "cpu"},
    }
    train(from_mapping(settings), directory / "run", view=View())
    return directory


def test_a_new_input_is_trained_on_answered_traced_and_resumed(sounds, my_parts):
    model = regard.load(sounds / "run")
    assert model.config.plugins == ["my_parts"] and model.config.cell == "spectrum → classes"
    names = [str(sounds / f"{number}.wav") for number in range(20)]
    assert [answer.label for answer in model(names)] == ["low", "high"] * 10
    alone = [model(name).probability for name in names[:5]]
    assert alone == pytest.approx([answer.probability for answer in model(names)[:5]], abs=1e-5)
    assert Run.open(sounds / "run").info["result"]["validation"]["accuracy"] == 100.0
    trace = model.trace(names[0])
    assert trace.target.tokens == ["low"]
    longer = from_mapping(yaml.safe_load(dump(model.config)), ["training.steps=62"])
    assert train(longer, sounds / "run", resume=True, view=View()).step == 62


def test_padding_changes_nothing_for_a_new_input(sounds, my_parts):
    loaded = load_run(sounds / "run")
    names = [str(sounds / f"{number}.wav") for number in range(6)]
    together = loaded.input.collate(names, [])[0]
    with torch.inference_mode():
        whole = loaded.model(together)
        apart = torch.cat([loaded.model(loaded.input.collate([name], [])[0]) for name in names])
    torch.testing.assert_close(whole, apart, atol=1e-5, rtol=1e-4)


def test_an_encoder_of_another_input_is_refused(my_parts):
    data = {"data": {"train": {"labelled": "x.txt"}}, "task": {"kind": "classification"}}
    with pytest.raises(UsageError, match=r"model\.encoder\.kind `spectrum` cannot read text"):
        from_mapping({**data, "model": {"encoder": {"kind": "spectrum"}}})
    with pytest.raises(UsageError, match=r"task\.kind must be one of .*spectrum-classification"):
        from_mapping({**data, "task": {"kind": "spectrun-classification"}})


def test_a_task_from_existing_parts_needs_its_entry_only(my_parts, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    lines = []
    for number in range(60):
        Image.new("RGB", (16, 16), (4 * number, 0, 0)).save(pictures / f"{number}.png")
        lines.append(f"{number}.png\t{number / 10}\n")
    (tmp_path / "captions.tsv").write_text("".join(lines))
    settings = {
        "task": {"kind": "image-estimation"},
        "data": {"train": {"images": str(pictures), "captions": str(tmp_path / "captions.tsv")}, "held_out": 10},
        "model": {"width": 16, "encoder": {"kind": "image", "size": 16, "patch": 4, "layers": 1}},
        "training": {"steps": 4, "validate_every": 2, "device": "cpu"},
    }
    train(from_mapping(settings), tmp_path / "run", view=View())
    answer = regard.load(tmp_path / "run")(pictures / "7.png")
    assert isinstance(answer, Number) and np.isfinite(answer.value)


def test_an_output_of_one_s_own_learns(my_parts, tmp_path):
    words = [" ".join(["yes"] * (number % 5) + ["no"] * (1 + number % 3)) for number in range(150)]
    lines = [f"{text}\t{text.split().count('yes')}\n" for text in words]
    (tmp_path / "counts.tsv").write_text("".join(lines))
    settings = {
        "task": {"kind": "counting"},
        "data": {
            "train": {"tsv": str(tmp_path / "counts.tsv")},
            "held_out": 30,
            "cleaning": {"duplicates": "keep"},
        },
        "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
        "model": {"width": 16, "encoder": {"kind": "bag", "pool": "sum"}, "dropout": 0.0},
        "training": {"steps": 150, "validate_every": 50, "device": "cpu", "optimizer": {"learning_rate": 0.02}},
    }
    train(from_mapping(settings), tmp_path / "run", view=View())
    model = regard.load(tmp_path / "run")
    few, many = model("no no").value, model("yes yes yes yes no").value
    assert few < 1 < many


def test_a_constraint_of_one_s_own_is_kept(run, my_parts, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("a b c d\nb c a d\n")
    command = ["--plugin", "my_parts", "translate", str(run), str(tmp_path / "in.txt")]
    assert main([*command, "--constraint", "at-most-words=2"]) == 0
    assert all(len(line.split()) <= 2 for line in capsys.readouterr().out.splitlines())
    assert main([*command, "--constraint", "none=2"]) == 2
    assert "There is no constraint 'none'" in capsys.readouterr().err
    assert main([*command, "--constraint", "at-most-words"]) == 2


def test_an_analysis_of_one_s_own_becomes_a_table_a_page_and_a_picture(run, my_parts, tmp_path, capsys):
    command = ["--plugin", "my_parts", "inspect", "surprise", str(run), "a b c"]
    assert main(command) == 0 and "−log p in nats" in capsys.readouterr().out
    for ending in ("html", "json", "png", "txt"):
        assert main([*command, "-o", str(tmp_path / f"result.{ending}")]) == 0
        assert (tmp_path / f"result.{ending}").stat().st_size > 20
    found = regard.load(run).explain("a b c", "surprise")
    assert found.to_json()["head"] == ["token", "−log p in nats"]
    with pytest.raises(UsageError, match="There is no explanation"):
        regard.load(run).explain("a b c", "surprize")


def test_an_engine_of_one_s_own_translates(run, my_parts, tmp_path, capsys):
    @extensions.engine("echo")
    def open_echo(directory: Path, overrides) -> TextGenerator:
        class Echo(TextGenerator):
            def translate(self, text, search=None, *, beam=None):
                return text

            def find(self, texts, search, trees, before=None, rows=None):
                return [[Hypothesis((), (), 0.0, "end", text=text)] for text in texts]

        loaded = load_run(directory, overrides)
        return Echo(loaded.model, loaded.config, loaded.input, loaded.target_tokenizer)

    (tmp_path / "in.txt").write_text("a b\nc d\n")
    assert main(["translate", str(run), str(tmp_path / "in.txt"), "--engine", "echo"]) == 0
    assert capsys.readouterr().out == "a b\nc d\n"


FAILING = """
from regard import extensions


@extensions.constraint("no-rule")
def no_rule(value, tokenizer):
    return None


@extensions.constraint("raises")
def raises(value, tokenizer):
    return int(value)


@extensions.analysis("no-result")
def no_result(trace):
    return None
"""


class TestFailingExtensions:
    """What an extension does wrong is not called a bug in Regard."""

    @pytest.fixture
    def failing(self, tmp_path_factory):
        directory = tmp_path_factory.mktemp("failing")
        (directory / "failing_parts.py").write_text(FAILING, encoding="utf-8")
        sys.path.insert(0, str(directory))
        extensions.load("failing_parts")
        yield
        sys.path.remove(str(directory))

    @pytest.mark.parametrize(
        "arguments, told",
        [
            (
                ["translate", "RUN", "IN", "--constraint", "raises=x"],
                r"extension failing_parts failed at failing_parts.py:12 \(ValueError",
            ),
            (
                ["translate", "RUN", "IN", "--constraint", "no-rule=x"],
                "constraint no-rule of an extension gives NoneType",
            ),
            (["inspect", "no-result", "RUN", "a b"], "analysis no-result returned an object of type NoneType"),
        ],
    )
    def test_it_is_named(self, arguments, told, failing, tmp_path, capsys):
        (tmp_path / "in.txt").write_text("a b\n")
        run = Path(__file__).parent / "fixtures" / "format-1" / "translation-transformer"
        given = {"RUN": str(run), "IN": str(tmp_path / "in.txt")}
        assert main([given.get(one, one) for one in arguments]) == 1
        error = capsys.readouterr().err
        assert re.search(told, error) and "bug in Regard" not in error

    @pytest.mark.parametrize("input, told", [("smell", "names 'smell', which is not one of"), (None, "has no `input`")])
    def test_a_task_that_cannot_work_is_refused_when_it_is_added(self, input, told):
        from typing import Literal

        from regard.config.task import TASKS, TaskSettings

        class Odd(TaskSettings):
            """No such input."""

            output = "label"
            title, examples, corpora = "X", "x", ("tsv",)
            kind: Literal["odd"] = "odd"

        if input is not None:
            Odd.input = input
        with pytest.raises(ValueError, match=told):
            extensions.task(Odd)
        assert "odd" not in TASKS

    def test_a_name_that_is_taken_changes_nothing(self):
        from regard.config.task import INPUTS, InputKind

        before = INPUTS["text"]
        with pytest.raises(ValueError, match="already registered"):
            extensions.input("text", InputKind(arrow="other"))(type("Mine", (), {}))
        assert INPUTS["text"] is before


def test_a_tracker_receives_the_losses(my_parts, tmp_path):
    settings = SETTINGS | {"training": SETTINGS["training"] | {"trackers": ["csv"]}}
    train(from_mapping(settings), tmp_path / "run", view=View())
    kinds = [line.split(",")[0] for line in (tmp_path / "run" / "losses.csv").read_text().splitlines()]
    assert {"train", "validation", "result"} >= set(kinds) >= {"validation", "result"}
    assert "my_parts" in Run.open(tmp_path / "run").config.plugins
