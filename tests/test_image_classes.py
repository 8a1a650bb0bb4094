"""image → label: a task that is nothing but its entry in the table."""

import base64
import json

import numpy as np
import pytest
from PIL import Image

import regard
from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.scenes import name_pairs, parse
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.tasks.bad_inputs import BadInputs
from regard.tasks.results import Label
from regard.training.loop import train
from regard.training.view import View
from tests.serving import running_server


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that tells red squares from blue ones."""
    directory = tmp_path_factory.mktemp("images")
    pictures = directory / "pictures"
    pictures.mkdir()
    random, lines = np.random.default_rng(1), []
    for number in range(160):
        values = random.integers(0, 60, (20, 20, 3), dtype=np.uint8)
        x, y = random.integers(0, 12, 2)
        values[y : y + 8, x : x + 8, 0 if number % 2 else 2] = 250
        Image.fromarray(values).save(pictures / f"{number}.png")
        lines.append(f"{number}.png\t{'red' if number % 2 else 'blue'}\n")
    (directory / "labels.tsv").write_text("".join(lines))
    settings = {
        "task": {"kind": "image-classification", "shift": 1, "flip": True},
        "data": {
            "train": {"images": str(pictures), "captions": str(directory / "labels.tsv")},
            "held_out": 20,
            "held_out_test": 20,
        },
        "model": {"width": 16, "encoder": {"kind": "image", "size": 20, "patch": 4, "layers": 1}},
        "training": {
            "steps": 150,
            "validate_every": 50,
            "batch_tokens": 1000,
            "device": "cpu",
            "optimizer": {"learning_rate": 0.005},
        },
    }
    train(from_mapping(settings), directory / "run", view=View())
    return directory / "run"


def test_it_learns_and_its_card_says_so(run):
    assert Run.open(run).info["result"]["test"]["accuracy"] == 100.0
    card = (run / "README.md").read_text()
    assert "A classifier of images" in card and "regard predict" in card


def test_images_are_answered_by_name_object_and_command_line(run, capsys, tmp_path):
    model, pictures = regard.load(run), run.parent / "pictures"
    names = [str(pictures / f"{number}.png") for number in range(6)]
    answers = model(names)
    assert [answer.label for answer in answers] == ["blue", "red"] * 3 and all(type(one) is Label for one in answers)
    with Image.open(names[1]) as image:
        assert model(image).probability == pytest.approx(answers[1].probability, abs=1e-6)
    (tmp_path / "in.txt").write_text("\n".join([*names[:2], "missing.png"]) + "\n")
    assert main(["predict", str(run), str(tmp_path / "in.txt"), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["label"] for line in lines] == ["blue", "red", None] and "missing.png" in lines[2]["error"]
    with pytest.raises(BadInputs, match=r"inputs\[1\]"):
        model([names[0], "missing.png"])


def test_a_batch_costs_what_its_images_cost(run):
    loaded = regard.load(run).loaded
    from regard.tasks.preparation import prepare

    prepared = prepare(loaded.config, run)
    sizes = [len(batch) for batch in prepared.task.batches(prepared.train).once()]
    assert max(sizes) <= 1000 // 25 and sum(sizes) == len(prepared.train)


def test_it_is_evaluated_and_looked_into(run, capsys):
    assert main(["evaluate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["accuracy"] == 100.0
    trace = regard.load(run).trace(run.parent / "pictures" / "3.png")
    assert trace.target.tokens == ["red"] and trace.picture is not None and len(trace.source) == 25
    with pytest.raises(UsageError, match="is not a label"):
        regard.load(run).trace(run.parent / "pictures" / "3.png", "green")


@pytest.mark.parametrize("what", ["attention", "attribute", "lens", "identify", "heads", "all"])
def test_an_analysis_works_or_is_refused_in_a_sentence(run, what, capsys):
    image = [] if what == "heads" else [str(run.parent / "pictures" / "3.png")]
    code = main(["inspect", what, str(run), *image])
    assert code == (0 if what in ("lens", "all") else 2)
    assert "bug in Regard" not in capsys.readouterr().err


def test_a_server_says_that_an_image_is_read_alone(run, tmp_path):
    file = base64.b64encode((run.parent / "pictures" / "3.png").read_bytes()).decode()
    with running_server(tmp_path, run, "--workers", "1") as server, server.client() as client:
        right = client.post("/v1/predict", json={"file": file})
        wrong = client.post("/v1/predict", json={"file": file, "inputs": ["which colour?"]})
    assert right.json()["outputs"][0]["label"] == "red"
    assert wrong.status_code == 400 and "reads a file alone" in wrong.json()["error"]


@pytest.mark.parametrize("to", ["huggingface", "ctranslate2"])
def test_an_export_is_refused(run, to, capsys, tmp_path):
    assert main(["export", str(run), str(tmp_path / "out"), "--to", to]) == 1
    assert "image-classification: image → 1" in capsys.readouterr().err


def test_other_encoders_are_refused(run):
    settings = {"task": {"kind": "image-classification"}, "data": {"train": {"images": "x", "captions": "y.tsv"}}}
    assert from_mapping(settings).cell == "image (conv) → classes"
    with pytest.raises(UsageError, match=r"model\.encoder\.kind `rnn` cannot read pictures"):
        from_mapping({**settings, "model": {"encoder": {"kind": "rnn"}}})
    with pytest.raises(UsageError, match=r"model\.decoder has no effect"):
        from_mapping({**settings, "model": {"decoder": {"kind": "rnn"}}})


@pytest.mark.parametrize("preset", [None, "bahdanau"])
def test_settings_of_an_encoder_without_its_kind_are_those_of_the_default_one(preset):
    """They used to be read as those of a text encoder, and left out."""
    found = from_mapping(
        {
            "task": {"kind": "captioning"},
            "data": {"train": {"generate": "shapes", "size": 20}},
            "model": {"width": 16, "encoder": {"layers": 1, "patch": 8}},
        }
        | ({"preset": preset} if preset else {}),
        ["model.encoder.size=32"],
    )
    assert (found.model.encoder.kind, found.model.encoder.layers) == ("image", 1)
    assert (found.model.encoder.patch, found.model.encoder.size) == (8, 32)


def test_generated_pictures_of_one_shape_have_its_name_as_label():
    pairs = list(name_pairs(300, 1))
    assert len(set(pairs)) == 300 and pairs == list(name_pairs(300, 1)) != list(name_pairs(300, 2))
    for name, label in pairs:
        (thing,) = parse(name).things
        assert label == f"{thing.colour} {thing.shape}"
    assert len({label for _, label in pairs}) == 40


def test_more_pictures_of_one_shape_than_there_are_is_refused():
    with pytest.raises(RegardError, match=r"29,880 different pictures of one shape, not 29,881\. Reduce size\."):
        next(name_pairs(29_881, 1))
    assert len(set(name_pairs(29_880, 1))) == 29_880
