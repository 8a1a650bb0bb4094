"""Questions about pictures: a picture and a text are two memories, and one answer is given."""

import json
import random
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from PIL import Image

from regard import inspection
from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.batches import Cursor
from regard.data.corpus import Pair, read
from regard.data.pictures import as_floats
from regard.data.scenes import SIDE, Scene, Thing, draw, parse, question_pairs, questions, scenes
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import read_weights
from regard.inspection.analyses.attention.looks import overlap
from regard.runs.run import Run
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.preparation import prepare
from regard.training.loop import train
from regard.training.start import Start
from regard.training.view import View
from tests.task_runs import COURSE, corpus, settings, task_and_model

SCENE = "shapes: red circle 0 0, blue star 2 1"
ASKED = [
    f"{SCENE}\tis there a red circle ?",
    f"{SCENE}\thow many stars are there ?",
    "shapes: black cross 1 1\tis there a red circle ?",
]
ENCODERS = ("bag", "rnn", "conv", "transformer")


def looker(directory: Path, **model: Any) -> LoadedRun:
    more = {"model": model} if model else {}
    task, made, _ = task_and_model("questions", directory, **more)
    return LoadedRun(task, made)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("form", ["conv", "patches"])
def test_company_and_padding_change_nothing(encoder, form, tmp_path):
    found = looker(tmp_path, encoder={"kind": encoder}, picture={"size": 16, "patch": 4, "layers": 1, "form": form})
    together = found.output.scores(found.model, ASKED)
    alone = torch.cat([found.output.scores(found.model, [one]) for one in ASKED])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(together[0], together[2], atol=1e-4)  # another picture
    assert not torch.allclose(together[0], together[1], atol=1e-4)  # another question


def test_the_loss_of_a_lesson_is_that_of_its_questions_one_by_one(tmp_path):
    config = from_mapping(settings("questions", tmp_path))
    prepared = prepare(config, tmp_path / "run")
    task = prepared.task.configured(config)
    torch.manual_seed(0)
    model = task.build().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        batches = list(task.batches(prepared.validation).once())
        loss = sum(
            task.output.loss(model, task.training_batch(one, generator, training=False)).nll.item() for one in batches
        )
        scores = task.output.scores(model, [pair.source for pair in prepared.validation_pairs])
    right = torch.tensor([prepared.task.vocabularies.labels.number(pair.target) for pair in prepared.validation_pairs])
    assert loss == pytest.approx(torch.nn.functional.cross_entropy(scores, right, reduction="sum").item(), rel=1e-4)


def test_no_picture_is_both_learnt_from_and_judged_by(tmp_path):
    config = from_mapping(settings("questions", tmp_path, data={"held_out_test": 20}))
    prepared = prepare(config, tmp_path / "run")
    parts = [{pair.source.split("\t")[0] for pair in part} for part in (prepared.validation_pairs, prepared.test_pairs)]
    every = {pair.source.split("\t")[0] for pair in read(config.data.train)}
    learnt = {
        prepared.task.input.image.images.store.names[prepared.train[place][0][0]]
        for place in range(len(prepared.train))
    }
    assert parts[0] and parts[1] and not parts[0] & parts[1] and not learnt & (parts[0] | parts[1])
    assert learnt | parts[0] | parts[1] <= every


def test_generated_questions_are_always_the_same_and_have_true_answers():
    assert list(question_pairs(20, 7, 3)) == list(question_pairs(20, 7, 3)) != list(question_pairs(20, 8, 3))
    for name, answer in question_pairs(50, 1, 4):
        picture, question = name.split("\t")
        scene = parse(picture)
        if question.startswith("how many"):
            shape = next(one for one in ("circle", "square", "triangle", "star", "cross") if one in question)
            assert ("none", "one", "two", "three", "four").index(answer) == len(scene.those(shape))
        elif question.startswith("what colour"):
            assert [one.colour for one in scene.those(question.split()[-2])] == [answer]
        elif question.startswith("is there"):
            colour, shape = question.split()[3:5]
            assert bool(scene.those(shape, colour)) == (answer == "yes")


def test_watched_is_unwatched_and_every_look_shares_itself_among_the_whole_picture(tmp_path):
    task, model, _ = task_and_model("questions", tmp_path, task={"kind": "visual-questions", "looks": 3})
    found = LoadedRun(task, model)
    trace = found.trace(ASKED[0])
    torch.testing.assert_close(
        trace.log_probabilities[0], found.output.scores(found.model, ASKED[:1])[0].log_softmax(-1)
    )
    seen = inspection.attention(trace)
    to_picture, to_words = ([one for one in seen.heads if one.kind == kind] for kind in ("picture", "source"))
    assert seen.kind == "picture" and [one.layer for one in to_picture] == [one.layer for one in to_words] == [0, 1, 2]
    for one in (*to_picture, *to_words):
        assert one.weights.shape[1:] == (1, 16 if one.kind == "picture" else len(trace.source))
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]))
    *looks, answer = seen.look.maps().flatten(1)
    for one, weights in zip(to_picture, looks, strict=True):
        torch.testing.assert_close(weights, one.weights[:, 0].mean(0))
    torch.testing.assert_close(answer, torch.stack(looks).mean(0))
    assert seen.look.caption == f"is there a red circle ? → {trace.target.tokens[0]}"
    read = [trace.source.summed(one.weights.mean((0, 1)))[1:-1].argmax() for one in to_words]
    named = [trace.source.word_texts[1:-1][int(word)] for word in read]
    assert seen.look.words[:-1] == [f"look {number}: {word}" for number, word in enumerate(named, start=1)]


def test_a_picture_is_looked_at_once_for_all_its_questions(tmp_path):
    config = from_mapping(settings("questions", tmp_path))
    prepared = prepare(config, tmp_path / "run")
    task = prepared.task.configured(config)
    batches, learnt = task.batches(prepared.train, training=True), prepared.train
    orders = []
    for cursor in (Cursor(0, 0), Cursor(1, 0)):
        taken = islice(batches.after(cursor), batches.per_epoch(cursor.epoch))
        rows = [int(row) for batch, _ in taken for row in batch.rows]
        assert sorted(rows) == list(range(len(learnt)))  # every question once
        orders.append(rows)
    assert orders[0] != orders[1]
    model, passed = task.build(), []
    model.picture.register_forward_pre_hook(lambda _, given: passed.append(len(given[0])))
    for batch in batches.once():
        pictures = [int(learnt[int(row)][0][0]) for row in batch.rows]
        model(batch.source, as_floats(batch.pictures))
        assert passed.pop() == len(set(pictures)) < len(pictures)


def test_reasons_are_given_in_words_of_the_question(tmp_path):
    found = inspection.attribute(looker(tmp_path).trace(ASKED[1]), ["occlusion"])
    assert found.read.word_texts[1:-1] == ["how", "many", "stars", "are", "there", "?"]
    assert found.answers[0].methods["occlusion"].source.abs().sum() > 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("questions")
    train(from_mapping(settings("questions", place)), place / "run", view=View())
    return place / "run"


def test_a_run_answers_by_the_command_line(run, tmp_path, capsys):
    draw(parse(SCENE), 48).save(tmp_path / "a.png")
    path = corpus(tmp_path / "in.tsv", [f"{tmp_path / 'a.png'}\tis there a red circle ?", "", ASKED[0]])
    assert main(["predict", str(run), path, "--json"]) == 0
    first, empty, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert sum(first["probabilities"].values()) == pytest.approx(1.0) and empty["label"] is None
    assert empty.keys() == first.keys()
    assert first["label"] == second["label"]  # the same picture, drawn and written out
    for name in ("page.html", "picture.png", "data.json"):
        words = ["inspect", "attention", str(run), str(tmp_path / "a.png"), "is there a red circle ?"]
        assert main([*words, "-o", str(tmp_path / name)]) == 0
    assert "data:image/png" in (tmp_path / "page.html").read_text()
    assert json.loads((tmp_path / "data.json").read_text())["attention"]
    capsys.readouterr()
    assert main(["evaluate", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "accuracy" in found["scores"] and found["tables"][-1]["title"].startswith("By the first words")


def test_what_is_wrong_is_told_in_a_sentence(run, tmp_path, capsys):
    for line, code, told in (
        (SCENE, 1, "Line 1: This run reads 2 texts at once"),
        (f"{SCENE}\t ", 1, "Line 1: The question after the image is empty"),
        ("nowhere.png\tis there a red circle ?", 1, "nowhere.png"),
        ("shapes: red potato 0 0\tis there a red circle ?", 1, "not an object of a scene"),
    ):
        assert main(["predict", str(run), corpus(tmp_path / "in.tsv", [line])]) == code
        assert told in capsys.readouterr().err
    for words, told in (
        (["inspect", "attention", str(run), SCENE], "separated by a tab"),
        (["inspect", "attention", str(run), SCENE, " "], "is empty"),
        (["inspect", "attention", str(run), SCENE, "is it ?", "--target", "perhaps"], "not a label"),
        (["inspect", "lens", str(run), SCENE], "separated by a tab"),
        (["translate", str(run)], "is not a translation run"),
        (["caption", str(run), SCENE], "is not a captioning run"),
    ):
        assert main(words) in (1, 2)
        assert told in capsys.readouterr().err


def test_settings_that_do_not_fit_are_refused(tmp_path):
    base = settings("questions", tmp_path)
    for change, told in (
        ({"model": {"encoder": {"kind": "image"}}}, "cannot read text"),
        ({"model": {"decoder": {"kind": "rnn"}}}, "model.decoder has no effect"),
        ({"data": {"train": {"generate": "dates"}}}, "reads pictures"),
    ):
        with pytest.raises(RegardError, match=told):
            train(from_mapping({**base, **change}), tmp_path / "run", view=View())
    with pytest.raises(UsageError, match=r"model\.picture has no effect"):
        from_mapping(settings("classes", tmp_path, model={"picture": {"size": 16}}))


def test_pictures_in_a_folder_with_questions_in_a_file(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    generator, lines = random.Random(0), []
    for number, scene in enumerate(scenes(30, 3)):
        draw(scene, 24).save(folder / f"{number}.png")
        lines += [f"{number}.png\t{one.question}\t{one.answer}" for one in questions(scene, generator, 3)]
    columns = {"question_column": 2, "caption_column": 3}
    section = {"images": str(folder), "captions": corpus(tmp_path / "q.tsv", lines), **columns}
    config = settings("questions", tmp_path, training=COURSE | {"steps": 2, "validate_every": 2, "checkpoint_every": 2})
    config["data"] = {"train": section, "held_out": 9}
    outcome = train(from_mapping(config), tmp_path / "run", view=View())
    assert "accuracy" in outcome.validation
    records = [dict(zip(("image", "question", "answer"), line.split("\t"), strict=True)) for line in lines]
    names = {"question_field": "question", "caption_field": "answer"}
    path = corpus(tmp_path / "q.jsonl", [json.dumps(record) for record in records])
    as_json = {"images": str(folder), "captions": path, **names}
    task = {"task": {"kind": "visual-questions"}}
    both = [list(read(from_mapping({**task, "data": {"train": one}}).data.train)) for one in (section, as_json)]
    name, question, answer = lines[0].split("\t")
    assert both[0] == both[1] and both[0][0] == Pair(f"{folder}/{name}\t{question}", answer)


def test_a_folder_without_a_question_is_told_with_its_line(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    columns = {"question_column": 2, "caption_column": 3}
    section = {"images": str(folder), "captions": corpus(tmp_path / "q.tsv", ["a.png\t \tyes"]), **columns}
    config = settings("questions", tmp_path)
    config["data"] = {"train": section}
    with pytest.raises(RegardError, match=r"q\.tsv:1 has no question"):
        prepare(from_mapping(config), tmp_path / "run")


def test_eyes_can_be_taken_over_from_a_run_that_captions_pictures(run, tmp_path):
    captions = settings("captions", tmp_path)
    train(from_mapping(captions), tmp_path / "captions", view=View())
    config = settings("questions", tmp_path, model={"start_from": str(tmp_path / "captions")})
    config["training"] |= {"tune": "fresh", "steps": 4, "validate_every": 4, "checkpoint_every": 4}
    train(from_mapping(config), tmp_path / "run", view=View())
    there, here = (read_weights(Run.open(tmp_path / one).weights) for one in ("captions", "run"))
    eyes = {name: tensor for name, tensor in here.items() if name.startswith("picture.")}
    assert eyes and all(torch.equal(eyes[name], there[name.replace("picture.", "encoder.", 1)]) for name in eyes)
    config["model"]["picture"] = {"size": 16, "patch": 4, "layers": 2}
    with pytest.raises(UsageError, match=r"model\.picture\.layers is 2 here, but 1 in"):
        from_mapping(config)


def test_eyes_that_would_be_cut_into_other_heads_are_refused(tmp_path):
    eyes, how = {"form": "patches", "size": 16, "patch": 4, "layers": 1}, {"heads": 4, "score": "scaled-dot"}
    captions = settings("captions", tmp_path, model={"encoder": {"kind": "image", **eyes}, "attention": how})
    captions["training"] |= {"steps": 1, "validate_every": 1, "checkpoint_every": 1}
    train(from_mapping(captions), tmp_path / "captions", view=View())
    asking = {"start_from": str(tmp_path / "captions"), "picture": eyes, "attention": how}
    for kind, own in (("questions", asking), ("captions", {"start_from": str(tmp_path / "captions")})):
        config = {**captions, **(settings(kind, tmp_path) if kind == "questions" else {})}
        config["model"] = {**config["model"], **own}
        with pytest.raises(
            UsageError, match=r"model\.attention\.heads is 2 here, but 4 in .* set model.attention.heads=4"
        ):
            Start.of(from_mapping(config, ["model.attention.heads=2"]))
        with pytest.raises(UsageError, match=r"model\.attention\.score is dot here"):
            Start.of(from_mapping(config, ["model.attention.score=dot"]))
        assert Start.of(from_mapping(config))


def asked_by_place(scene: Scene) -> list[tuple[str, Thing]]:
    """For each thing of a scene a question about its colour that says nothing but where it stands."""
    rows, columns = ("top", "middle", "bottom"), ("left", "centre", "right")
    return [(f"what colour is {rows[one.row]} {columns[one.column]} ?", one) for one in scene.things]


@pytest.mark.learning
def test_a_model_that_has_learnt_to_answer_looks_at_what_it_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # which questions are held out depends on the paths of pictures
    folder, lines = Path("pictures"), []
    folder.mkdir()
    for number, scene in enumerate(scenes(800, 3)):
        draw(scene, 24).save(folder / f"{number}.png")
        lines += [f"{number}.png\t{question}\t{one.colour}" for question, one in asked_by_place(scene)]
    columns = {"question_column": 2, "caption_column": 3}
    section = {"images": str(folder), "captions": corpus(tmp_path / "q.tsv", lines), **columns}
    config = settings("questions", tmp_path)
    config["data"] = {"train": section, "held_out": 100}
    config["model"] = {
        "width": 32,
        "dropout": 0.0,
        "encoder": {"kind": "bag"},
        "picture": {"size": 24, "patch": 4, "layers": 1},
        "attention": {"heads": 1},
    }
    config["training"] |= {
        "steps": 1000,  # at 600 it depends on the rounding of a machine whether it has learnt enough
        "batch_tokens": 600,
        "label_smoothing": 0.0,
        "optimizer": {"learning_rate": 0.005},
        "schedule": {"kind": "cosine", "warmup": 20},
        "validate_every": 1000,
        "checkpoint_every": 1000,
    }
    train(from_mapping(config), tmp_path / "run", view=View())
    predictor = load_run(tmp_path / "run")
    right, attended, chance, found = [], [], [], []
    for scene in scenes(50, 4):  # none of these was learnt from
        for question, one in asked_by_place(scene):
            trace = predictor.trace(f"{scene.name}\t{question}")
            right.append(trace.target.tokens[0] == one.colour)
            inside = overlap(trace.picture.grid, tuple(edge / SIDE for edge in one.box))  # rows × columns
            weights = inspection.attention(trace).look.maps()[-1]
            attended.append(float((weights * inside).sum()))
            chance.append(float(inside.mean()))
            found.append(bool(inside.flatten()[weights.argmax()] > 0))
    assert fmean(right) > 0.95
    assert fmean(attended) > 4 * fmean(chance) and fmean(found) > 0.9
