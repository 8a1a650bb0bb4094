"""Laws of questions about a text: what is asked, and where the answer is looked up."""

import importlib.util
import json
from pathlib import Path
from random import Random
from statistics import fmean
from types import ModuleType

import pytest

from regard.cli import main
from regard.config.loading import from_mapping, load
from regard.data.stories import Question, questions
from regard.tasks.loaded import load_run
from regard.training.loop import train
from regard.training.view import View
from tests.random_runs import run_of_two_texts

STORY = [
    "1 Mary moved to the bathroom.",
    "2 Where is Mary? \tbathroom\t1",
    "3 John went to the hallway.",
    "4 Where is John? \thallway\t3 1",
    "1 Sandra sat.",
    "2 Who sat? \tSandra",
]


def test_evidence_counts_the_sentences_of_the_story_and_not_the_questions_between(tmp_path: Path):
    path = tmp_path / "qa.txt"
    path.write_text("".join(f"{line}\n" for line in STORY))
    told = ("Mary moved to the bathroom.", "John went to the hallway.")
    assert list(questions(path)) == [
        Question(told[:1], "Where is Mary?", "bathroom", (0,)),
        Question(told, "Where is John?", "hallway", (1, 0)),
        Question(("Sandra sat.",), "Who sat?", "Sandra", ()),
    ]


def test_one_text_where_a_story_and_a_question_are_wanted_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = str(run_of_two_texts(tmp_path / "run").directory)
    (tmp_path / "in.tsv").write_text("a b\tc d\n\nalone\na\tb\n")
    assert main(["translate", run, str(tmp_path / "in.tsv"), "--format", "jsonl"]) == 1
    said, told = capsys.readouterr()
    assert [json.loads(line)["line"] for line in said.splitlines()] == [1, 2]  # what stands before it is answered
    assert "Line 3 has 1 tab-separated texts, but this run reads 2" in " ".join(told.split())
    for words in (["attention", run, "alone"], ["lens", run, "a\tb\tc"], ["all", run, "alone"]):
        assert main(["inspect", *words]) == 2
        assert "reads 2 texts at once" in " ".join(capsys.readouterr().err.split())
    assert main(["inspect", "attention", run, "a b", "c d"]) == 0


def benchmark(name: str) -> ModuleType:
    """A file of `benchmarks`, which is no package that is installed."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent.parent / "benchmarks" / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


ROOT = Path(__file__).parent.parent
BABI = ROOT.parent / "shared" / "data" / "babi" / "en"
NAMES, DEEDS = ["Mary", "John", "Sandra", "Daniel"], ["sleeps", "eats", "sings", "reads"]


def lookups(path: Path, count: int, seed: int) -> Path:
    """Stories in which three people do something each, and a question about one of them."""
    random, lines = Random(seed), []
    for _ in range(count):
        people, deeds, asked = random.sample(NAMES, 3), random.choices(DEEDS, k=3), random.randrange(3)
        lines += [f"{n} {who} {what}." for n, (who, what) in enumerate(zip(people, deeds, strict=True), start=1)]
        lines.append(f"4 What does {people[asked]} do?\t{deeds[asked]}\t{asked + 1}")
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.learning
def test_an_answer_is_looked_up_in_the_sentence_it_follows_from(tmp_path: Path):
    told = lookups(tmp_path / "train.txt", 2000, seed=1)
    config = from_mapping({
        "data": {"train": {"babi": str(told)}, "held_out": 100},
        "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
        "model": {
            "width": 64, "dropout": 0.0, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"},
            "join": {"kind": "attention"}, "attention": {"score": "additive"},
        },
        "training": {
            "steps": 600, "batch_tokens": 1024, "label_smoothing": 0.0, "validate_every": 100, "device": "cpu",
            "optimizer": {"learning_rate": 0.01}, "schedule": {"kind": "cosine", "warmup": 40},
        },
        "decoding": {"beam": 1, "max_length": 4},
    })  # fmt: skip
    train(config, tmp_path / "run", view=View())
    model, look_up = load_run(tmp_path / "run"), benchmark("babi").look_up
    asked = list(set(questions(lookups(tmp_path / "test.txt", 200, seed=2))) - set(questions(told)))
    assert len(asked) > 100
    found = [look_up(model, question) for question in asked]
    right = fmean(one.said == question.answer for one, question in zip(found, asked, strict=True))
    attended, chance = fmean(one.attended for one in found), fmean(one.chance for one in found)
    assert right >= 0.95
    assert chance == pytest.approx(1 / 3, abs=0.01) and attended > 1.5 * chance


@pytest.mark.learning
@pytest.mark.long
@pytest.mark.skipif(not BABI.exists(), reason="needs ../shared/data/babi")
def test_of_several_sentences_about_a_person_the_last_is_looked_up(tmp_path: Path):
    """Where a model that answers looks; whether a training comes to answer is not what is asked here.

    Nine hundred questions can also be memorised, and whether they are depends on the seed, and so on the order of
    batches: of seeds 1 to 3 with 900 steps, the first answers 99 % of the test, the others 55 % and 49 %. So seeds are
    tried in turn until one has learnt; a training that has not is cut short when its held-out loss stops falling.
    """
    told = {part: BABI / f"qa1_single-supporting-fact_{part}.txt.gz" for part in ("train", "test")}
    asked = [one for one in questions(told["test"]) if mentions(one) > 1][:150]
    shares = []
    for seed in range(1, 9):
        changes = [f"data.train.babi={told['train']}", "data.test=null", "training.steps=900", "training.device=cpu"]
        changes += [f"training.seed={seed}", "training.validate_every=150", "training.early_stopping.patience=2"]
        train(load(ROOT / "recipes" / "answering.yaml", changes), tmp_path / f"run-{seed}", view=View())
        model, look_up = load_run(tmp_path / f"run-{seed}"), benchmark("babi").look_up
        found = [look_up(model, question) for question in asked]
        shares.append(fmean(one.said == question.answer for one, question in zip(found, asked, strict=True)))
        if shares[-1] >= 0.9:
            break
    assert shares[-1] >= 0.9, shares
    attended, chance = fmean(one.attended for one in found), fmean(one.chance for one in found)
    assert chance < 0.25 and attended > 3 * chance


def mentions(question: Question) -> int:
    """How many sentences of a story are about the person asked for."""
    who = question.text.rstrip("?").split()[-1]
    return sum(sentence.startswith(f"{who} ") for sentence in question.story)
