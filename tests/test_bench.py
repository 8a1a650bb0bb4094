"""The benchmark suite: what it counts, how it fails, what it says when it cannot measure."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import environments, growth, report
from benchmarks.corpus import Corpus
from benchmarks.environments import Unavailable
from benchmarks.options import Options
from benchmarks.plan import MEMORY, TIME
from benchmarks.report import Figure
from benchmarks.rounds import Crowd
from benchmarks.training import ARCHITECTURES, OURS, PEERS
from benchmarks.worker import Worker
from regard.cli import main

ROOT = Path(__file__).parents[1]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A measured program made of a few lines."""
    monkeypatch.setattr("benchmarks.worker.CACHE", tmp_path)
    monkeypatch.setattr("benchmarks.worker.PROGRAMS", tmp_path)
    (tmp_path / "pace.py").write_text((ROOT / "benchmarks" / "programs" / "pace.py").read_text())

    def write(text):
        (tmp_path / "measured.py").write_text(f"from pace import Pace, answer, command\n{text}\n")
        return Worker("measured", "regard", "measured", {}, threads=1)

    return write


def test_a_round_counts_only_what_was_learnt_in_it(program):
    """Ten tokens an update: the warm-up before the first round and the update that is not finished do not count."""
    worker = program(
        "import time\npace, learnt = Pace(3), 0\nwhile True:\n"
        "    pace.tick(learnt)\n    time.sleep(0.01)\n    learnt += 10"
    )
    with worker:
        worker.ready()
        for _ in range(2):
            found = worker.ask(seconds=0.0, updates=5)
            assert found["updates"] == 5 and found["tokens"] == 50
            assert found["seconds"] >= 0.05
        assert worker.peak() > 1e6


def test_a_pause_between_rounds_costs_nothing(program):
    import time

    with program("import time\npace = Pace(1)\nwhile True:\n    pace.tick(0)\n    time.sleep(0.01)") as worker:
        worker.ready()
        time.sleep(2)
        assert worker.ask(seconds=0.0, updates=2)["seconds"] < 2


def test_a_program_that_dies_is_reported_with_its_last_words(program):
    with (
        program("raise SystemExit('the disk is made of cheese')") as worker,
        pytest.raises(Unavailable, match="cheese"),
    ):
        worker.ready()


def test_one_that_fails_does_not_stop_the_others(program, monkeypatch):
    good = program("answer(loaded=True)\nwhile True:\n    command()\n    answer(seconds=1.0)")
    bad = Worker("bad", "regard", "missing", {}, threads=1)
    crowd = Crowd({"bad": bad, "good": good}, threads=1)
    monkeypatch.setattr(crowd, "_sgemm", Worker("limit", "regard", good.program, {}, threads=1))
    with crowd:
        assert crowd.each("round", lambda worker: worker.ask()) == {"good": {"seconds": 1.0}}
    assert list(crowd.failed) == ["bad"]
    assert any("bad" in line for line in report.reasons({"bad": Figure(why_not=crowd.failed["bad"])}))


def test_a_peer_that_cannot_be_installed_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / "environments")
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    (tmp_path / "eole.txt").write_text(f"{tmp_path}/no-such-wheel-1.0-py3-none-any.whl\n")
    with pytest.raises(Unavailable, match="cannot be installed"):
        environments.interpreter("eole")
    with pytest.raises(Unavailable, match="no peer is called fairseq"):
        environments.interpreter("fairseq")


def test_every_pin_is_exact_and_no_registry_is_named():
    for path in (ROOT / "benchmarks" / "peers").glob("*.txt"):
        for line in path.read_text().splitlines():
            assert line.startswith("#") or "==" in line, f"{path.name}: {line}"
            assert "://" not in line and not line.startswith("-")
    assert {path.stem for path in (ROOT / "benchmarks" / "peers").glob("*.txt")} == set(environments.VERSIONS)
    assert {peer for peer, _ in PEERS.values()} <= set(environments.VERSIONS)


def test_the_median_of_rounds_and_their_spread():
    figure = Figure([90.0, 100.0, 130.0])
    assert figure.median == 100 and figure.spread == pytest.approx(0.4)
    assert figure.shown() == "100 ±20%" and Figure(why_not="gone").shown() == "–"
    assert report.ratio(150.0, 100.0) == "1.50×" and report.ratio(None, 100.0) == "–"
    assert report.best({"a": Figure([2.0]), "b": Figure([3.0]), "c": Figure()}, ["a", "b", "c"]) == 3.0


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_found(exponent):
    sizes = [1, 4, 16, 64]
    found, factor = growth.fit(sizes, [3 * size**exponent for size in sizes])
    assert found == pytest.approx(exponent) and factor == pytest.approx(3)


def test_growth_beyond_the_law_is_called_broken():
    law = growth.Law("learn", "pairs", "pairs", (1, 10, 100), time=0, memory=0, why="")
    found = {size: {"seconds": float(size), "peak": 1e9} for size in law.sizes}
    time, memory = growth._law(law, found, {})["quantities"]
    assert not time["kept"] and memory["kept"]


def test_all_build_the_same_model():
    """As many numbers as the paper's formula says, whoever counts: embeddings once, four matrices for an attention."""
    from regard.config.loading import from_mapping
    from regard.models import build

    for name in ("tiny", "small"):
        one = ARCHITECTURES[name]
        model = build(from_mapping({**one.settings(), "data": {"train": {"generate": "copy"}}}).model, 100, 100)
        attention, inner = (
            4 * (one.width**2 + one.width),
            2 * one.width * one.feed_forward + one.feed_forward + one.width,
        )
        norm = 2 * one.width
        layers = one.layers * ((attention + inner + 2 * norm) + (2 * attention + inner + 3 * norm))
        assert sum(each.numel() for each in model.parameters()) == 100 * one.width + 100 + layers + 2 * norm


def test_the_limits_of_the_plan_are_those_that_were_promised():
    assert (TIME, MEMORY) == (0.25, 0.15)


def test_only_the_peers_that_were_named():
    assert Options().wants("eole") and not Options(peers=["joeynmt"]).wants("eole")


def test_unknown_parts_and_runs_are_refused_in_a_sentence(capsys, tmp_path):
    assert main(["bench", "speed"]) == 2
    assert "`speed`" in capsys.readouterr().err
    assert main(["bench", "decode", "--run", str(tmp_path)]) == 2
    assert "not a trained run" in capsys.readouterr().err


def test_an_unknown_peer_is_refused_before_anything_is_measured():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "train", "--peers", "fairseq"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "fairseq" in done.stderr and "Traceback" not in done.stderr


def test_a_corpus_gives_everybody_the_same_tokens(tmp_path):
    """Regard's store and the peers' text files say the same."""
    from benchmarks import corpus
    from regard.data.store import TokenStore

    data = corpus._generated(tmp_path, pairs=300, tested=20)
    made = corpus._prepare(tmp_path, "made up", data, vocabulary=300)
    store = TokenStore(tmp_path / "prepared" / "data" / "train")
    lines = (tmp_path / "train.trg").read_text().splitlines()
    assert len(lines) == len(store) == made.facts["pairs"]
    for row, line in enumerate(lines):
        assert [int(token[1:]) for token in line.split()] == list(store[row][1])
    again = Corpus(tmp_path, "made up", json.loads((tmp_path / "facts.json").read_text()))
    run = again.run("one", ARCHITECTURES["tiny"].settings())
    assert (run / "data" / "finished.json").exists() and (run / "config.yaml").exists()
    assert OURS not in PEERS and len(again.sources) == len(again.references) == 20


def test_the_sentencepiece_model_of_an_argos_package_splits_like_the_tokenizer():
    import sentencepiece

    from benchmarks.argos import sentencepiece_model
    from regard.text.tokenizer import Tokenizer

    path = next((ROOT / "tests" / "fixtures" / "format-1" / "translation-transformer" / "tokenizers").glob("*.json"))
    ours = Tokenizer.load(path)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(json.loads(path.read_text())))
    for text in ("a b c", "abc fed, a", "ab  cd", "a Ω b"):
        assert theirs.encode(text, out_type=str) == ours.encode(text).tokens
