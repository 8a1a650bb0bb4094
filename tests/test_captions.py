"""Laws of models that look: what holds of text holds of pictures, and what they looked at can be seen."""

import json
import math
import random

import pytest
import torch
from PIL import Image

import regard
from regard import inspection
from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.scenes import SHAPES, SIDE, Scene, Thing, draw, scenes
from regard.foundation.errors import RegardError, UsageError
from regard.inspection.analyses.attention.looks import Look, overlap
from regard.nn import taps
from regard.search import Search
from regard.search.steps import SOURCE_ATTENTION
from regard.tasks.inputs.image import mirrored, moved
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.outputs.caption import unevenness
from regard.tasks.preparation import prepare
from regard.tasks.training_batch import TrainingPoint
from regard.text.specials import PAD
from regard.training.gradient_threads import GradientThreads
from regard.training.loop import train
from regard.training.view import View

CELLS = {
    "conv>rnn/attention": {
        "encoder": {"kind": "image", "form": "conv", "size": 16, "patch": 4, "layers": 1},
        "decoder": {"kind": "rnn"},
    },
    "conv>rnn/fixed": {
        "encoder": {"kind": "image", "form": "conv", "size": 16, "patch": 4, "layers": 1},
        "decoder": {"kind": "rnn", "cell": "lstm"},
        "join": {"kind": "fixed"},
    },
    "patches>transformer/attention": {
        "encoder": {"kind": "image", "form": "patches", "size": 16, "patch": 4, "layers": 1},
        "decoder": {"kind": "transformer", "layers": 2},
    },
}
NAMES = [scene.name for scene in scenes(6, seed=99)]


def settings(cell="conv>rnn/attention", **more):
    return {
        "task": {"kind": "captioning", **more.pop("task", {})},
        "data": {"train": {"generate": "shapes", "size": 60}, "held_out": 10},
        "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
        "model": {"width": 16, "dropout": 0.0, **CELLS[cell]},
        "training": {"steps": 4, "batch_tokens": 120, "device": "cpu", **more.pop("training", {})},
        "decoding": {"max_length": 12, "beam": 3},
        **more,
    }


def captioner(cell, directory):
    """A captioner with random weights, sharp enough to have preferences."""
    config = from_mapping(settings(cell))
    task = prepare(config, directory / "run").task
    torch.manual_seed(3)
    model = task.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return LoadedRun(task, model)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was hardly trained, with attention."""
    directory = tmp_path_factory.mktemp("captions") / "run"
    train(from_mapping(settings()), directory, view=View())
    return directory


@pytest.fixture(scope="module")
def text_run(copy_run):
    return copy_run


@pytest.mark.parametrize("cell", CELLS)
class TestSearch:
    def test_beam_one_is_greedy_and_company_does_not_matter(self, cell, tmp_path):
        model = captioner(cell, tmp_path)
        together = model.hypotheses(NAMES, Search(beam=1))
        wide = model.hypotheses(NAMES, Search(beam=1, coverage_penalty=0.0, count=1))
        assert [one[0].tokens for one in together] == [one[0].tokens for one in wide]
        for name, found in zip(NAMES, together, strict=True):
            (alone,) = model.hypotheses([name], Search(beam=1))
            assert alone[0].tokens == found[0].tokens
            assert alone[0].score == pytest.approx(found[0].score, abs=1e-4)

    def test_the_score_reported_is_the_score_recomputed(self, cell, tmp_path):
        model = captioner(cell, tmp_path)
        for name, found in zip(NAMES, model.hypotheses(NAMES, Search(beam=3)), strict=True):
            seen = model.trace_hypothesis(name, found[0])
            assert seen.target_log_probs[: len(found[0].log_probs)].tolist() == pytest.approx(
                found[0].log_probs, abs=1e-4
            )

    def test_the_same_seed_draws_the_same_whatever_else_is_drawn(self, cell, tmp_path):
        model = captioner(cell, tmp_path)
        search = Search(samples=3, count=3, seed=5)
        together = model.hypotheses(NAMES[:3], search)
        (alone,) = model.hypotheses(NAMES[2:3], search)
        assert [one.tokens for one in together[2]] == [one.tokens for one in alone]
        assert len({one.tokens for row in together for one in row}) > 3

    def test_a_trace_repeats_itself_and_looks_share_a_weight_of_one(self, cell, tmp_path):
        model = captioner(cell, tmp_path)
        seen = model.trace(NAMES[0])
        assert seen.picture.grid == (4, 4) and len(seen.source) == 16
        again = seen.again({})
        torch.testing.assert_close(again.log_probabilities, seen.log_probabilities)
        looked = [value for name, value in seen.activations.items() if name.endswith("source_attention.weights")]
        assert bool(looked) == (model.config.model.join.kind == "attention")
        for weights in looked:
            assert weights.shape[1:] == (len(seen.target), 16)
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))


class TestLearning:
    def test_the_penalty_is_the_formula(self):
        weights = torch.tensor([[[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]])  # the last position is not asked for
        asked = torch.tensor([[True, True, False]])
        assert unevenness(weights, asked).item() == pytest.approx((1 - 1.5) ** 2 + (1 - 0.5) ** 2)

    @pytest.mark.parametrize("cell", ["conv>rnn/attention", "patches>transformer/attention"])
    def test_the_penalty_is_added_to_the_loss_and_to_nothing_else(self, cell, tmp_path):
        found = {}
        for price in (0.0, 0.7):
            config = from_mapping(settings(cell, task={"doubly_stochastic": price}))
            prepared = prepare(config, tmp_path / f"run{price}")
            task = prepared.task.configured(config)
            torch.manual_seed(0)
            model = task.build()
            batch = next(iter(task.batches(prepared.train).once()))
            lesson = task.training_batch(batch, torch.Generator().manual_seed(0), training=True)
            found[price] = task.output.loss(model, lesson, scale=0.5, point=TrainingPoint(1, 4, torch.Generator()))
            plain = task.output.loss(model, lesson, scale=0.5)
            assert plain.smoothed.item() == pytest.approx(0.5 * plain.nll.item(), rel=1e-5)
            with torch.no_grad(), taps.watch(model, SOURCE_ATTENTION) as seen:
                model(lesson["source"], lesson["inputs"])
            layers = torch.stack([seen[name].mean(1) for name in seen])  # L×B×T×S
            total = (layers * (lesson["outputs"] != PAD)[None, :, :, None]).sum(2)  # L×B×S
            expected = (1 - total).square().sum(2).mean(0).sum().item()
        added = found[0.7].smoothed.item() - found[0.0].smoothed.item()
        assert added == pytest.approx(0.7 * 0.5 * expected, rel=1e-3)
        assert found[0.7].nll.item() == pytest.approx(found[0.0].nll.item())

    def test_threads_that_learn_side_by_side_learn_the_same(self, tmp_path):
        config = from_mapping(settings(task={"doubly_stochastic": 0.5}))
        prepared = prepare(config, tmp_path / "run")
        task = prepared.task.configured(config)
        torch.manual_seed(0)
        model = task.build()
        batch = next(iter(task.batches(prepared.train).once()))
        lesson = task.training_batch(batch, torch.Generator().manual_seed(0), training=True)

        def teach(share, exposes):
            return task.output.loss(model, share, scale=0.1, point=TrainingPoint(1, 4, exposes))

        gradients = []
        for size in (1, 3):
            model.zero_grad()
            threads = GradientThreads(size)
            if size == 1:
                teach(lesson, torch.Generator()).smoothed.backward()
            else:
                threads.backward(model, lesson, teach)
                threads.close()
            gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)

    def test_a_picture_is_moved_by_whole_pixels_and_no_further_than_allowed(self):
        pixels = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        assert moved(pixels, 0, torch.Generator()) is pixels
        shifted = moved(pixels, 2, torch.Generator().manual_seed(1))
        ways = set()
        for one, other in zip(pixels, shifted, strict=True):
            fits = [
                (y, x)
                for y in range(-2, 3)
                for x in range(-2, 3)
                if torch.equal(other[:, 2:6, 2:6], one[:, 2 + y : 6 + y, 2 + x : 6 + x])
            ]
            ways.add(fits[0])
            assert len(fits) == 1
        assert len(ways) > 10
        flipped = mirrored(pixels, torch.Generator().manual_seed(1))
        kept = [torch.equal(one, other) for one, other in zip(pixels, flipped, strict=True)]
        turned = [torch.equal(one.flip(2), other) for one, other in zip(pixels, flipped, strict=True)]
        assert all(a != b for a, b in zip(kept, turned, strict=True)) and 8 < sum(kept) < 32


class TestCommand:
    def test_saved_is_loaded_and_a_file_is_its_scene(self, run, tmp_path, capsys):
        draw(next(scenes(1, seed=99))).save(tmp_path / "a.png")
        model = load_run(run)
        assert model.translate(str(tmp_path / "a.png")) == model.translate(NAMES[0])
        assert main(["caption", str(run), str(tmp_path / "a.png"), NAMES[1]]) == 0
        assert capsys.readouterr().out.splitlines() == model.translate([NAMES[0], NAMES[1]])

    def test_names_with_tabs_and_line_breaks_stay_in_their_cell(self, run, tmp_path, capsys):
        draw(next(scenes(1, seed=99))).save(tmp_path / "a\tb\nc.png")
        assert main(["caption", str(run), str(tmp_path / "a\tb\nc.png"), "--format", "tsv"]) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert line.split("\t")[:2] == [f"{tmp_path}/a\\tb\\nc.png", "1"]

    def test_as_rows_and_as_objects_it_says_the_same(self, run, capsys):
        assert main(["caption", str(run), *NAMES[:2], "--beam", "3", "--n-best", "2"]) == 0
        rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert [(row[0], row[1]) for row in rows] == [(name, rank) for name in NAMES[:2] for rank in "12"]
        assert main(["caption", str(run), *NAMES[:2], "--beam", "3", "--n-best", "2", "--format", "jsonl"]) == 0
        objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [one["caption"] for one in objects] == [row[3] for row in rows[::2]]
        assert [one["others"][0]["caption"] for one in objects] == [row[3] for row in rows[1::2]]

    def test_confidence_is_the_geometric_mean_of_the_probabilities(self, run, capsys):
        best = regard.load(run)(NAMES[0], beam=3, count=2)
        for result in (best, *best.alternatives):
            probabilities = [math.exp(value) for value in result.log_probs]
            assert result.confidence == pytest.approx(math.prod(probabilities) ** (1 / len(probabilities)))
            assert result.facts["confidence"] == result.confidence
        assert main(["caption", str(run), NAMES[0], "--beam", "3", "--format", "jsonl"]) == 0
        assert json.loads(capsys.readouterr().out)["confidence"] == pytest.approx(best.confidence, abs=1e-4)

    def test_where_it_looked_is_a_page_a_picture_and_data(self, run, tmp_path, capsys):
        for ending in ("html", "png", "json", "txt"):
            assert main(["caption", str(run), *NAMES[:2], "-o", str(tmp_path / f"look.{ending}")]) == 0
        found = json.loads((tmp_path / "look.json").read_text())["pictures"]
        page = (tmp_path / "look.html").read_text()
        assert [one["picture"] for one in found] == NAMES[:2] and found[0]["grid"] == [4, 4]
        for one in found:
            assert len(one["looked"]) == len(one["words"]) and " ".join(one["words"]) == one["caption"]
            for weights in one["looked"]:
                assert sum(map(sum, weights)) == pytest.approx(1, abs=0.01)
        assert page.count("data:image/png;base64,") == 2 and "http://" not in page.replace("http://www.w3.org", "")
        assert Image.open(tmp_path / "look.png").width > 300
        assert found[0]["caption"] in (tmp_path / "look.txt").read_text()

    def test_inspect_attention_gives_the_same(self, run, tmp_path, capsys):
        assert main(["caption", str(run), NAMES[0], "-o", str(tmp_path / "a.json")]) == 0
        for name in ("b.json", "b.html", "b.png"):
            assert main(["inspect", "attention", str(run), NAMES[0], "-o", str(tmp_path / name)]) == 0
        one = json.loads((tmp_path / "a.json").read_text())["pictures"][0]
        other = json.loads((tmp_path / "b.json").read_text())["looked"]
        assert one == other
        assert (tmp_path / "b.html").read_text().count("data:image/png;base64,") == 1

    def test_a_model_with_one_vector_says_that_it_looked_nowhere(self, tmp_path, capsys):
        train(from_mapping(settings("conv>rnn/fixed")), tmp_path / "run", view=View())
        assert main(["caption", str(tmp_path / "run"), NAMES[0], "-o", str(tmp_path / "a.html")]) == 0
        assert "looked at no place in particular" in (tmp_path / "a.html").read_text()
        assert main(["caption", str(tmp_path / "run"), NAMES[0], "-o", str(tmp_path / "a.png")]) == 0
        assert main(["inspect", "attention", str(tmp_path / "run"), NAMES[0]]) == 2
        assert "no attention to show" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["caption", "RUN", "nowhere.png"], 1, "nowhere.png does not exist"),
            (["caption", "RUN", "TEXT"], 1, "notes.txt is not an image in a format that can be read"),
            (["caption", "RUN", "shapes: pink circle 0 0"], 1, "is not an object of a scene"),
            (["caption", "RUN", "NAME", "--top-k", "3"], 2, "Add --sample"),
            (["caption", "RUN", "NAME", "-o", "a.doc"], 2, "has no ending that says what to write"),
            (["caption", "RUN", "NAME", "-o", "a.html", "--format", "jsonl"], 2, "Leave out --format"),
            (["caption", "OTHER", "NAME"], 2, "is not a captioning run (n → m"),
            (["translate", "RUN", "TEXT"], 2, "Use regard caption"),
            (["predict", "RUN", "TEXT"], 2, "regard caption"),
            (["generate", "RUN"], 2, "Use regard caption"),
            (["inspect", "attention", "RUN", "a dog runs"], 1, "a dog runs does not exist"),
            (["inspect", "attention", "RUN", "NAME", "--target", "a zebra"], 2, "word that is not in the vocabulary"),
        ],
    )
    def test_what_is_wrong_is_told_in_words(self, run, text_run, arguments, code, message, tmp_path, capsys):
        (tmp_path / "notes.txt").write_text("a dog runs\n")
        known = {"RUN": str(run), "OTHER": str(text_run), "TEXT": str(tmp_path / "notes.txt"), "NAME": NAMES[0]}
        assert main([known.get(one, one) for one in arguments]) == code
        told = capsys.readouterr().err
        assert message in " ".join(told.split()) and "Traceback" not in told

    def test_a_picture_that_cannot_be_read_stops_no_other(self, run, tmp_path, capsys):
        (tmp_path / "notes.png").write_text("a dog runs\n")
        names = [*NAMES[:2], str(tmp_path / "notes.png"), NAMES[2]]
        assert main(["caption", str(run), *names, "--format", "jsonl"]) == 1
        said, told = capsys.readouterr()
        lines = [json.loads(line) for line in said.splitlines()]
        assert [line["picture"] for line in lines] == names
        assert [line["caption"] is not None for line in lines] == [True, True, False, True]
        assert all(line.keys() - {"error"} == lines[0].keys() for line in lines)
        assert "is not an image in a format that can be read" in lines[2]["error"]
        assert main(["caption", str(run), *names, str(tmp_path / "nowhere.png")]) == 1
        written, errors = capsys.readouterr()
        assert [bool(line) for line in written.splitlines()] == [True, True, False, True, False]
        assert "nowhere.png does not exist" in errors and "2 pictures could not be captioned" in errors
        assert "notes.png is not an image in a format that can be read" in told
        assert main(["caption", str(run), *names, "-o", str(tmp_path / "looks.json")]) == 1
        assert "notes.png is not an image in a format that can be read" in capsys.readouterr().err
        shown = (tmp_path / "looks.json").read_text()
        assert all(name in shown for name in NAMES[:3])

    @pytest.mark.parametrize("verb", ["patch", "attribute", "contributions"])
    def test_analyses_of_text_say_that_this_is_none(self, run, verb, capsys):
        assert main(["inspect", verb, str(run), *NAMES[: 2 if verb == "patch" else 1]]) == 2
        assert "regard inspect all shows what applies to it" in " ".join(capsys.readouterr().err.split())

    @pytest.mark.parametrize("verb", ["identify", "all"])
    def test_what_applies_to_a_picture_is_shown(self, run, verb, tmp_path):
        assert main(["inspect", verb, str(run), NAMES[0], "-o", str(tmp_path / "page.html")]) == 0

    def test_the_lens_reads_every_layer_over_a_picture(self, run, tmp_path, capsys):
        assert main(["inspect", "lens", str(run), NAMES[0], "-o", str(tmp_path / "a.html")]) == 0

    def test_it_is_evaluated_by_what_it_held_out_and_by_other_pictures(self, run, tmp_path, capsys):
        assert main(["evaluate", str(run), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert {"bleu", "meteor", "cider", "exact", "true"} <= set(found["scores"]) and found["loss"] > 0
        (tmp_path / "names.txt").write_text("".join(f"{name}\n" for name in NAMES))
        (tmp_path / "right.txt").write_text("there is a star\n" * len(NAMES))
        files = ["--source", str(tmp_path / "names.txt"), "--reference", str(tmp_path / "right.txt")]
        assert main(["evaluate", str(run), *files]) == 0
        told = capsys.readouterr().out
        assert f"{len(NAMES)} captions" in told and "BLEU-1" in told and "BLEU-4" in told

    def test_without_pillow_it_says_what_to_install(self, run, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "PIL", None)
        with pytest.raises(RegardError, match="-m pip install 'pillow"):
            load_run(run).translate(NAMES[0])


def test_an_image_run_refuses_what_only_text_has(run):
    with pytest.raises(UsageError, match="reads a text and generates another"):
        load_run(run).forced(NAMES[0])
    assert inspection.attention(load_run(run).trace(NAMES[0])).look.caption == load_run(run).translate(NAMES[0])


def two_things(count, seed):
    """Scenes of two things of nine kinds, each with a sentence that names both."""
    chance = random.Random(seed)
    kinds = [(shape, colour) for shape in ("circle", "square", "cross") for colour in ("red", "green", "blue")]
    cells = [(column, row) for column in range(3) for row in range(3)]
    found = {}
    while len(found) < count:
        placed = zip(chance.sample(kinds, 2), chance.sample(cells, 2), strict=True)
        shifts = [(chance.randint(-2, 2), chance.randint(-2, 2)) for _ in range(2)]
        things = [Thing(*kind, *cell, 6, shift) for (kind, cell), shift in zip(placed, shifts, strict=True)]
        first, second = chance.sample(things, 2)
        found[Scene(tuple(things))] = f"there is a {first.name} and a {second.name}"
    return found


@pytest.mark.learning
def test_while_it_writes_the_name_of_a_shape_it_looks_at_the_shape(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # which examples are held out depends on their paths
    (tmp_path / "scenes").mkdir()
    lines = []
    for number, (scene, sentence) in enumerate(two_things(1500, seed=1).items()):
        draw(scene).save(tmp_path / "scenes" / f"{number}.png")
        lines.append(f"{number}.png\t{sentence}\n")
    (tmp_path / "captions.tsv").write_text("".join(lines))
    config = {
        "task": {"kind": "captioning"},
        "data": {
            "train": {"images": "scenes", "captions": "captions.tsv"},
            "held_out": 60,
        },
        "text": {"tokenizer": {"kind": "words"}},
        "model": {
            "width": 48,
            "dropout": 0.0,
            "encoder": {"kind": "image", "patch": 8, "layers": 1},
            "decoder": {"kind": "transformer", "layers": 1},
            "attention": {"heads": 1},
        },
        "training": {
            "steps": 400,
            "batch_tokens": 320,
            "label_smoothing": 0.0,
            "optimizer": {"learning_rate": 0.003},
            "schedule": {"kind": "cosine"},
            "validate_every": 400,
        },
        "decoding": {"beam": 1, "max_length": 12},
    }
    train(from_mapping(config), tmp_path / "run", view=View())
    model, attended, chance, found = load_run(tmp_path / "run"), [], [], []
    fresh = list(two_things(100, seed=2))
    for scene, best in zip(fresh, model.hypotheses([scene.name for scene in fresh]), strict=True):
        look = Look.of(model.trace_hypothesis(scene.name, best[0]))
        for place, word in enumerate(look.words):
            for thing in scene.those(word, look.words[place - 1]) if word in SHAPES else ():
                left, top, right, bottom = (edge / SIDE for edge in thing.box)
                inside = overlap(look.grid, (left, top, right, bottom))
                weights = look.maps()[place]
                attended.append(float((weights * inside).sum()))
                chance.append((right - left) * (bottom - top))
                found.append(bool(inside.flatten()[weights.argmax()] > 0))
    assert len(attended) > 80  # of two hundred names, these are of things that are there
    assert sum(attended) > 3 * sum(chance)
    assert sum(found) > 0.5 * len(found)


def test_the_weight_inside_a_box_is_its_area_when_everything_is_looked_at_alike():
    box = (0.1, 0.25, 0.6, 0.8)
    assert float(overlap((6, 5), box).mean()) == pytest.approx(0.5 * 0.55)
    assert float(overlap((4, 4), (0.0, 0.0, 1.0, 1.0)).min()) == 1.0
    assert float(overlap((4, 4), (0.25, 0.25, 0.5, 0.5)).sum()) == 1.0
