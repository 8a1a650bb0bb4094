"""`regard.load` opens every run of every task, with one obvious call; Python answers as the command line does."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.cli import main
from regard.data.pictures import read_picture
from regard.foundation.errors import UsageError
from regard.search import Search
from regard.tasks.bad_inputs import BadInputs
from regard.tasks.results import FilledText, Label, Nothing, Number, Tags, Text
from tests.documentation import EXAMPLES
from tests.stored_runs import FIXTURES, SCENE, answer, question
from tests.task_runs import settings

STORED = FIXTURES / "format-1"
KINDS = {
    "translation-transformer": Text,
    "translation-rnn": Text,
    "translation-fixed": Text,
    "translation-conv": Text,
    "translation-two-vocabularies": Text,
    "answering": Text,
    "captions": Text,
    "language": Text,
    "classes": Label,
    "pairs": Label,
    "pairs-apart": Label,
    "pairs-attended": Label,
    "questions": Label,
    "number": Number,
    "tags": Tags,
    "tags-transformer": Tags,
    "masked": FilledText,
}
IN_PYTHON = {"language": {"beam": 1}}


def inputs_of(name):
    """What the stored question asks, as Python takes it: parts in a tuple."""
    _, text = question(name)
    if name == "captions":
        return [SCENE]
    if name == "language":
        return ["w0 w1"]
    return [tuple(line.split("\t")) if "\t" in line else line for line in text.splitlines()]


@pytest.mark.parametrize("name", KINDS)
def test_every_run_opens_and_answers_as_the_command_line_does(name):
    model = regard.load(STORED / name, ["decoding.max_length=6"] if name == "language" else [])
    results = model(inputs_of(name), **IN_PYTHON.get(name, {}))
    printed = answer(STORED / name, *question(name))
    for result, facts in zip(results, printed, strict=True):
        assert isinstance(result, KINDS[name]) and repr(result) and result._repr_html_()
        for key in ("text", "caption") if isinstance(result, Text) else result.facts:
            if key in facts and not (key == "text" and "caption" in facts):
                mine = result.text if isinstance(result, Text) else json.loads(json.dumps(result.facts))[key]
                assert mine == facts[key] or np.allclose(
                    list(mine.values()) if isinstance(mine, dict) else mine,
                    list(facts[key].values()) if isinstance(mine, dict) else facts[key],
                )


@pytest.mark.parametrize("name", KINDS)
def test_one_input_gives_one_result_and_a_list_a_list(name):
    model = regard.load(STORED / name)
    one = inputs_of(name)[0]
    assert isinstance(model([one]), list) and model([one])[0].line == model(one).line
    assert model([]) == []
    assert str(model.run.directory) in repr(model)


@pytest.mark.parametrize("name", KINDS)
def test_every_run_is_traced_and_evaluated(name):
    model = regard.load(STORED / name)
    assert model.trace(inputs_of(name)[0]).activations
    assert model.evaluate().facts()


def test_an_explanation_by_its_name(tmp_path):
    model = regard.load(STORED / "translation-transformer")
    model.explain("a b c", "attention").save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000
    with pytest.raises(UsageError, match=r"no explanation 'magic'.*attribute"):
        model.explain("a", "magic")


def test_alternatives_and_search_options():
    model = regard.load(STORED / "translation-transformer")
    found = model("a b c", beam=4, count=3)
    assert len(found.alternatives) == 2 and found.score >= found.alternatives[0].score
    assert model("a b c", Search(beam=1)).text == model.translate("a b c", beam=1)
    with pytest.raises(UsageError, match="are not search options"):
        model("a", beams=3)
    with pytest.raises(UsageError, match="beam"):
        model("a", beam="5")


def test_images_are_paths_pil_images_or_arrays(tmp_path):
    model = regard.load(STORED / "captions")
    pixels = read_picture(SCENE, 48).transpose(1, 2, 0)  # H×W×3
    Image.fromarray(pixels).save(tmp_path / "scene.png")
    by_path, by_image, by_array = model([tmp_path / "scene.png", Image.fromarray(pixels), pixels])
    assert by_path == by_image == by_array
    asked = regard.load(STORED / "questions")
    assert asked((pixels, "what colour ?")).label == asked((tmp_path / "scene.png", "what colour ?")).label
    assert model(pixels / 255) == by_array
    with pytest.raises(regard.RegardError, match="values from 20 to 255"):
        model(pixels.astype(float))
    with pytest.raises(UsageError, match=r"has a question of type Image\. Give \(image, text\)"):
        asked(("what colour ?", Image.fromarray(pixels)))


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("classes", 3, "must be a text"),
        ("classes", b"bytes", "must be a text"),
        ("pairs", "only one", "two texts|2 texts"),
        ("answering", "only one", "two texts|2 texts"),
        ("captions", "no-such-file.png", "does not exist"),
        ("classes", ("a", "b"), "tuple of 2"),
        ("translation-rnn", ("a b", "c"), "tuple of 2"),
        ("pairs", ("a", "b", "c"), "tuple of 3"),
    ],
)
def test_wrong_inputs_are_refused(name, given, says):
    with pytest.raises(regard.RegardError, match=says):
        regard.load(STORED / name)(given)


def test_what_a_run_cannot_do_is_refused():
    model = regard.load(STORED / "classes")
    with pytest.raises(UsageError, match="does not generate text"):
        model.translate("w0")
    with pytest.raises(UsageError, match="no search options"):
        model("w0", beam=3)
    assert isinstance(model(""), Nothing)


def test_train_returns_the_model(tmp_path):
    settings = {
        "data": {"train": {"generate": "copy", "size": 300, "symbols": 5, "max_length": 4}},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 16, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
        "training": {"steps": 4, "batch_tokens": 256},
    }
    model = regard.train(settings, tmp_path / "run", ["training.steps=3"])
    assert model.run.info["step"] == 3 and isinstance(model("a b"), Text | Nothing)


class TestBadInputs:
    """An input of a list that cannot be answered is named by its index, and the others lose nothing."""

    def test_one_bad_picture_of_a_list(self, tmp_path, capsys):
        from regard.cli import main

        (tmp_path / "notes.png").write_text("a dog runs\n")
        other = SCENE.replace("red", "blue")
        names = [SCENE, str(tmp_path / "notes.png"), other, str(tmp_path / "nowhere.png"), SCENE]
        model = regard.load(STORED / "captions")
        for ask in (model, model.translate):
            with pytest.raises(BadInputs) as error:
                ask(names)
            told = str(error.value)
            assert told.startswith("2 of 5 inputs cannot be answered.")
            assert 'inputs[1] ("' in told and "notes.png is not an image in a format that can be read" in told
            assert 'inputs[3] ("' in told and "nowhere.png does not exist" in told
            assert list(error.value.problems) == [1, 3] and error.value.answers[1] is error.value.answers[3] is None
        lines = ["" if one is None else one.line for one in error.value.answers]
        assert [lines[0], lines[2], lines[4]] == [one.line for one in model([SCENE, other, SCENE])]
        assert main(["caption", str(STORED / "captions"), *names]) == 1
        assert capsys.readouterr().out.splitlines() == lines
        with pytest.raises(BadInputs, match=r"inputs\[1\]") as error:
            model.hypotheses(names)
        assert [best is not None for best in error.value.answers] == [True, False, True, False, True]

    def test_one_bad_picture_alone_raises_its_own_error(self, tmp_path):
        with pytest.raises(regard.RegardError, match=r"^nowhere\.png does not exist") as error:
            regard.load(STORED / "captions")("nowhere.png")
        assert not isinstance(error.value, BadInputs)

    @pytest.mark.parametrize("name", ["", "  "])
    def test_an_empty_name_is_no_directory(self, name):
        with pytest.raises(regard.RegardError, match="name of the picture is empty"):
            regard.load(STORED / "captions")(name)
        with pytest.raises(BadInputs, match=r"inputs\[1\].*name of the picture is empty"):
            regard.load(STORED / "captions")([SCENE, name])

    def test_a_damaged_image_in_memory(self, tmp_path):
        Image.effect_noise((64, 64), 90).save(tmp_path / "a.png")
        (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:900])
        damaged = Image.open(tmp_path / "a.png")  # decoded when its pixels are needed
        with pytest.raises(BadInputs, match=r"inputs\[1\] \(PngImageFile\): The image cannot be read as a picture"):
            regard.load(STORED / "captions")([SCENE, damaged])

    def test_images_of_a_wrong_type_are_refused_with_their_index(self):
        with pytest.raises(UsageError, match=r"inputs\[1\] cannot be read: An image must be"):
            regard.load(STORED / "captions")([SCENE, np.zeros((4, 4), dtype=np.int64)])

    @pytest.mark.parametrize("name", ["answering", "pairs", "questions"])
    def test_wrong_numbers_of_texts(self, name):
        model = regard.load(STORED / name)
        good = inputs_of(name)[0]
        with pytest.raises(BadInputs, match=r"inputs\[1\].*reads 2 texts") as error:
            model([good, "only one text", good])
        answers = error.value.answers
        assert answers[1] is None and [answers[0].line, answers[2].line] == [model(good).line] * 2

    def test_a_question_about_a_picture_that_is_not_there(self):
        model = regard.load(STORED / "questions")
        good = inputs_of("questions")[0]
        with pytest.raises(
            BadInputs, match=r'inputs\[0\] \("nowhere.png", "is it red \?"\): nowhere.png does not exist'
        ):
            model([("nowhere.png", "is it red ?"), good])
        with pytest.raises(BadInputs, match=r"inputs\[1\].*The question after the image is empty"):
            model([good, (good[0], " ")])

    def test_a_wrong_search_is_refused_as_such(self):
        with pytest.raises(
            UsageError, match=r"`count` \(--n-best\) is 3\. It must be at most `beam` \(--beam\), which is 1\."
        ):
            regard.load(STORED / "captions")([SCENE, "nowhere.png"], beam=1, count=3)

    def test_many_bad_inputs_are_counted(self):
        with pytest.raises(BadInputs, match=r"^9 of 9 inputs(?s:.*)… and 4 more\.$") as error:
            regard.load(STORED / "captions")([f"nowhere{n}.png" for n in range(9)])
        assert len(error.value.problems) == 9


def test_the_training_loop_of_the_documentation_trains_a_run(tmp_path, monkeypatch, capsys, record_property):
    record_property(EXAMPLES, 1)
    text = (Path(__file__).parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
    (script,) = re.findall(r'```python title="loop.py"\n(.*?)```', text, re.S)
    assert len(script.strip().splitlines()) <= 30
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    exec(compile(script, "loop.py", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "d c b a"
    model = regard.load("runs/mine")
    assert model.run.info["status"] == "finished" and model.evaluate().scores.values["exact"] > 90
    assert main(["runs", "runs/mine", "--verify"]) == 0


@pytest.mark.parametrize("kind", ["classes", "tags", "captions"])
def test_a_loop_of_one_s_own_works_for_every_kind_of_output(kind, tmp_path):
    experiment = regard.prepare(settings(kind, tmp_path), tmp_path / "run")
    model = experiment.task.build().train()
    batch = next(experiment.batches(torch.Generator().manual_seed(1)))
    experiment.task.output.loss(model, batch, scale=1 / batch.count).smoothed.backward()
    assert any(parameter.grad is not None for parameter in model.parameters())
    trained = experiment.save(model)
    assert trained.evaluate() is not None


class TestEvaluatedPairs:
    """Pairs that Python gives are checked as the command line checks files, and scored by the same metrics."""

    @pytest.mark.parametrize("name", KINDS)
    def test_the_scores_are_those_of_the_command_line(self, name, capsys):
        assert main(["evaluate", str(STORED / name), "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert json.loads(json.dumps(regard.load(STORED / name).evaluate().facts())) == printed

    @pytest.mark.parametrize(
        "name, data, told",
        [
            ("classes", [("w0 w1", "yes"), ("w0", "maybe")], r"data\[1\] has the label `maybe`"),
            ("pairs", [(("w0", "w1"), "nowhere")], r"data\[0\] has the label `nowhere`"),
            ("number", [(("w0", "w1"), "many")], r"data\[0\] has `many` instead of a number"),
            ("tags", [("w0 w1", "first")], r"data\[0\] has 2 words and 1 tags"),
            ("classes", [], "or is empty"),
            ("classes", "abc", "list of"),
            ("classes", [("w0", "yes", "no")], r"data\[0\] is not a pair"),
            ("classes", [(3, "yes")], r"data\[0\] is of type int"),
            ("classes", [("w0", None)], r"reference of data\[0\] is of type NoneType"),
            ("pairs", [("w0", "same")], r"data\[0\]: This run reads 2 texts"),
        ],
    )
    def test_what_is_wrong_is_said_with_its_index(self, name, data, told):
        with pytest.raises(regard.RegardError, match=told):
            regard.load(STORED / name).evaluate(data)

    def test_images_in_memory(self):
        image = Image.new("RGB", (20, 30), "red")
        assert regard.load(STORED / "captions").evaluate([(image, "a red circle")]).lines

    def test_a_language_model_is_judged_by_texts(self):
        model = regard.load(STORED / "language")
        assert model.evaluate(["w1 w2"]).facts() == model.evaluate([("w1 w2", "")]).facts()

    def test_metrics_are_for_translations(self):
        with pytest.raises(UsageError, match="Leave out `metrics`"):
            regard.load(STORED / "classes").evaluate(metrics=["bleu"])


class TestExplanations:
    def test_unknown_options_are_refused(self):
        with pytest.raises(UsageError, match=r"'method' is not an option of attribute: it has methods"):
            regard.load(STORED / "classes").explain("w0 w1", "attribute", method="gradient")

    @pytest.mark.parametrize("name", ["classes", "language", "translation-transformer"])
    def test_attribution_is_that_of_the_command_line(self, name, capsys):
        assert main(["inspect", "attribute", str(STORED / name), "a b", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert regard.load(STORED / name).explain("a b", "attribute").to_json().keys() == printed.keys()

    def test_words_of_a_picture(self):
        with pytest.raises(UsageError, match="this run reads pictures"):
            regard.load(STORED / "captions").explain(SCENE, "attribute")

    def test_a_target_is_text(self):
        with pytest.raises(UsageError, match="The target is of type int"):
            regard.load(STORED / "classes").trace("w0 w1", 3)


def test_hypotheses_take_the_inputs_of_a_call():
    image = Image.new("RGB", (20, 30), "red")
    captions = regard.load(STORED / "captions")
    assert captions.hypotheses([image])[0][0].text == captions(image).text
    answering = regard.load(STORED / "answering")
    one = inputs_of("answering")[0]
    assert answering.hypotheses([one])[0][0].text == answering(one).text


def test_a_search_is_a_search():
    with pytest.raises(UsageError, match="The search is of type int"):
        regard.load(STORED / "translation-transformer")("a b", 5)


def test_one_setting_may_be_given_as_a_string():
    directory = STORED / "translation-rnn"
    assert (
        regard.load(directory, "decoding.beam=3")("a b").text == regard.load(directory, ["decoding.beam=3"])("a b").text
    )


def test_training_finds_recipes_by_name(tmp_path):
    with pytest.raises(UsageError, match="dates"):
        regard.train("date", tmp_path / "run")
