"""The index of training examples and `regard inspect nearest`: exact, independent of batches, of these weights only."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import inspection
from regard.cli import main
from regard.data.store import InMemoryStore, TokenStore
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.installation import install_command
from regard.inspection import indexing, state_index
from regard.inspection.indexing import build_index, draw_examples
from regard.inspection.last_states import fingerprint, last_states
from regard.inspection.state_index import HEADER, StateIndex, normalise, open_index
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from tests.stored_runs import FIXTURES
from tests.test_inspect_results import check_page, check_table, numbers, source_of

RUNS = FIXTURES / "format-1"
INDEX = (Path(__file__).parent.parent / "pyproject.toml").read_text().partition("\nindex = ")[2].partition("\n")[0]
KINDS = ["translation-transformer", "translation-rnn", "translation-fixed", "answering", "classes", "tags", "language"]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """The stored runs with their indices, by name."""
    place = tmp_path_factory.mktemp("indexed")
    found = {}
    for name in KINDS:
        shutil.copytree(RUNS / name, place / name)
        loaded = load_run(place / name)
        found[name] = loaded, build_index(Run.open(place / name), loaded)
    return found


def ids_of(index, number):
    return tuple(ids.tolist() for ids in index.examples[number])


@pytest.mark.parametrize("name", KINDS)
def test_the_states_of_a_training_example_find_it_first(name, indexed):
    _, index = indexed[name]
    for side in index.header.sides:
        states, places = np.asarray(index.vectors(side)), np.asarray(index.places(side))
        chosen = np.random.default_rng(5).choice(len(states), 20, replace=False)
        for row, matches in zip(chosen, index.search(side, states[chosen], 3), strict=True):
            equal = places[states @ states[row] > 1 - 1e-5]  # such as a prefix that two targets share
            assert matches[0].similarity == pytest.approx(1, abs=1e-5)
            assert [matches[0].example, matches[0].position] in equal.tolist() and places[
                row
            ].tolist() in equal.tolist()


@pytest.mark.parametrize("name", KINDS)
def test_every_token_of_an_example_has_one_state(name, indexed):
    run, index = indexed[name]
    special = {"encoder": len(run.input.frame.before) + len(run.input.frame.after), "decoder": 1}
    for side in index.header.sides:
        places = np.asarray(index.places(side))
        for number in range(index.header.examples):
            length = len(index.examples[number][side == "decoder"]) + special[side]
            if name == "language":
                length = min(length, 12)  # one window
            assert places[places[:, 0] == number][:, 1].tolist() == list(range(length))


def test_an_example_of_the_data_finds_itself_by_text(copy_run, tmp_path):
    """The whole way: a text from the training data is traced, and each of its tokens finds its own example."""
    shutil.copytree(copy_run, tmp_path / "run")
    run = load_run(tmp_path / "run")
    build_index(Run.open(tmp_path / "run"), run)
    text = run.source_tokenizer.decode(TokenStore(tmp_path / "run" / "data" / "train")[7][0].tolist())
    model = regard.load(tmp_path / "run")
    for side in ("encoder", "decoder"):
        found = model.explain(text, "nearest", text, side=side, count=2).to_json()
        assert found["side"] == side and found["queries"]
        for query in found["queries"]:
            best = query["neighbours"][0]
            assert best["similarity"] == pytest.approx(1, abs=1e-4) and best["token"] == query["token"]
    example = found["examples"][found["queries"][-1]["neighbours"][0]["example"]]
    assert example["source"]["text"] == text == example["target"]["text"]  # the state after the last token has read all


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_search_is_exhaustive(name, count, indexed):
    _, index = indexed[name]
    for side in index.header.sides:
        vectors, places = np.asarray(index.vectors(side)), np.asarray(index.places(side))
        states = np.random.default_rng(3).normal(size=(4, vectors.shape[1])).astype(np.float32)
        cosines = normalise(states) @ vectors.T  # Q×N
        for row, matches in zip(cosines, index.search(side, states, count), strict=True):
            best = np.full(index.header.examples, -np.inf)
            np.maximum.at(best, places[:, 0], row)
            wanted = np.sort(best)[::-1][:count]
            assert [one.similarity for one in matches] == pytest.approx(wanted[np.isfinite(wanted)].tolist(), abs=1e-5)
            for one in matches:
                own = row[(places[:, 0] == one.example) & (places[:, 1] == one.position)]
                assert own == pytest.approx([one.similarity], abs=1e-5)
            assert len({one.example for one in matches}) == len(matches)


def test_an_example_with_many_near_tokens_leaves_room_for_others(indexed, monkeypatch):
    index = StateIndex(indexed["translation-rnn"][1].directory)
    vectors = np.array([[1, 0]] * 100 + [[0, 1], [0.6, 0.8]], dtype=np.float32)
    monkeypatch.setitem(index._vectors, "encoder", vectors)
    monkeypatch.setitem(
        index._places, "encoder", np.array([[5, n] for n in range(100)] + [[2, 0], [3, 1]], dtype=np.int32)
    )
    [found] = index.search("encoder", np.array([[2, 0]], dtype=np.float32), 3)
    assert found == [(5, 0, 1.0), (3, 1, pytest.approx(0.6)), (2, 0, 0.0)]


@pytest.mark.parametrize("name", KINDS)
def test_batches_do_not_change_an_index(name, indexed, tmp_path):
    run, index = indexed[name]
    shutil.copytree(RUNS / name, tmp_path / name)
    single = build_index(Run.open(tmp_path / name), run, tokens=1)  # one example at a time
    for side in index.header.sides:
        assert np.array_equal(single.places(side), index.places(side))
        assert np.abs(single.vectors(side) - index.vectors(side)).max() < 1e-5


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("classes", "tags")])
def test_decoder_states_are_what_the_output_layer_reads(name, indexed):
    run, index = indexed[name]
    trace = run.trace(source_of(name))
    states = last_states(run.model, *trace.tensors())["decoder"][0]
    assert torch.allclose(run.model.scores(states).log_softmax(-1), trace.log_probabilities, atol=1e-4)
    assert index.vectors("decoder").shape[1] == states.shape[1]


def test_a_limit_draws_different_examples(indexed):
    run, _ = indexed["translation-rnn"]
    sources = [[6, 7, number % 40] for number in range(200)]  # each five times
    targets = [[number % 80] for number in range(200)]
    store = InMemoryStore(sources, targets)
    every, examples = draw_examples(store, run, 10_000, 1)
    assert every == list(range(80)) and examples == [(sources[row], targets[row]) for row in every]
    rows, examples = draw_examples(store, run, 50, 1)
    assert len(rows) == 50 and rows == sorted(set(rows))
    assert examples == [(sources[row], targets[row]) for row in rows]
    assert len({str(example) for example in examples}) == 50
    assert rows != draw_examples(store, run, 50, 2)[0] and rows == draw_examples(store, run, 50, 1)[0]


@pytest.mark.parametrize("name", KINDS)
def test_json_has_all_that_the_page_and_the_table_show(name, indexed, tmp_path):
    run, index = indexed[name]
    source = source_of(name)
    for side in index.header.sides:
        found = inspection.nearest(run.trace(source), run, index, side=side, count=3)
        check_page(found)
        assert not check_table(found)
        data = found.to_json()
        assert all(len(query["neighbours"]) == 3 for query in data["queries"])
        for query in data["queries"]:
            for one in query["neighbours"]:
                shown = data["examples"][one["example"]]["source" if side == "encoder" else "target"]
                assert shown["tokens"][one["position"]] == one["token"]
        found.save(tmp_path / "page.html")
        found.save(tmp_path / "picture.png")
    assert found.side == ("encoder" if name in ("classes", "tags") else "decoder")
    assert inspection.nearest(run.trace(source), run, index).side == found.side  # by default
    [only] = inspection.nearest(run.trace(source), run, index, position=1, count=2).queries
    assert only.position == 1 and only.token == (found.target if found.side == "decoder" else found.source).tokens[1]


def test_labels_and_tags_of_examples_are_named(indexed):
    run, index = indexed["classes"]
    examples = inspection.nearest(run.trace("w0 w1"), run, index).to_json()["examples"]
    assert {one["target"]["text"] for one in examples} <= {"yes", "no"}
    assert all((one["target"]["text"] == "yes") == ("w0" in one["source"]["text"].split()) for one in examples)
    run, index = indexed["tags"]
    for one in inspection.nearest(run.trace("w0 w1"), run, index).to_json()["examples"]:
        words, tags = one["source"]["text"].split(), one["target"]["text"].split()
        assert tags == ["first", *words[:-1]]


# The command line


@pytest.fixture
def fresh(tmp_path):
    return shutil.copytree(RUNS / "translation-transformer", tmp_path / "run")


def test_index_then_nearest(fresh, capsys):
    assert main(["inspect", "nearest", str(fresh), "a b c"]) == 2
    assert f"regard index {fresh}" in capsys.readouterr().err
    assert main(["index", str(fresh), "--limit", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 30
    assert main(["index", str(fresh)]) == 0
    assert "of 280 of 280 training examples" in capsys.readouterr().out
    assert main(["inspect", "nearest", str(fresh), "a b c", "--side", "encoder", "--position", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    here = regard.load(fresh).explain("a b c", "nearest", side="encoder", position=1).to_json()
    assert told == json.loads(json.dumps(here)) and numbers(told)
    assert not list(fresh.glob(".index.aside*"))
    assert main(["inspect", "nearest", str(fresh), "a b c", "--position", "99"]) == 2
    assert "numbered from 0" in capsys.readouterr().err


def test_a_report_has_it_once_there_is_an_index(fresh):
    assert "regard index" in inspection.report(fresh, "a b c").left_out["nearest"]
    assert main(["index", str(fresh)]) == 0
    assert "nearest" in inspection.report(fresh, "a b c").results


def test_a_run_without_data_is_refused(fresh, capsys):
    shutil.rmtree(fresh / "data" / "train")
    assert main(["index", str(fresh)]) == 2
    assert "no longer has its training data" in capsys.readouterr().err


def test_an_index_of_other_weights_is_refused(fresh, indexed):
    assert main(["index", str(fresh)]) == 0
    run = load_run(fresh)
    assert fingerprint(run.model) == fingerprint(load_run(fresh).model)
    other = load_run(fresh)
    other.model.output_bias.data[7] += 1e-3
    index = open_index(fresh)
    index.check(run)
    with pytest.raises(UsageError, match=f"other weights.*regard index {fresh}"):
        inspection.nearest(other.trace("a b c"), other, index)


def test_a_damaged_index_is_refused(fresh):
    assert main(["index", str(fresh)]) == 0
    whole = (fresh / "index" / HEADER).read_text()
    for path, content in (
        (fresh / "index" / HEADER, whole.replace('"examples": 280', '"examples": 281')),
        (fresh / "index" / "encoder.vectors", "short"),
    ):
        kept = path.read_bytes()
        path.write_text(content)
        with pytest.raises(RegardError, match="regard index"):
            open_index(fresh)
        path.write_bytes(kept)
        os.utime(path)
    open_index(fresh)


@pytest.mark.parametrize(
    ("name", "dtype", "place", "value", "why"),
    [
        ("decoder.places", "<i4", 0, 280, "places that no example has"),
        ("decoder.places", "<i4", 1, -1, "places that no example has"),
        ("decoder.places", "<i4", 1, 77, "places that no example has"),
        ("decoder.vectors", "<f4", 3, np.nan, "not finite"),
        ("examples/target.tokens", "<u2", 0, 60_000, "checksum"),
    ],
)
def test_a_changed_index_is_refused(fresh, name, dtype, place, value, why):
    run = load_run(fresh)
    build_index(Run.open(fresh), run, limit=300)
    values = np.fromfile(fresh / "index" / name, dtype=dtype)
    values[place] = value
    values.tofile(fresh / "index" / name)
    state_index._open.cache_clear()
    with pytest.raises(RegardError, match=why):
        inspection.nearest(run.trace("a b c"), run, open_index(fresh), count=300)


def test_an_index_of_another_width_is_refused(fresh, indexed):
    run = load_run(fresh)
    index = build_index(Run.open(fresh), run, limit=300)
    with pytest.raises(RegardError, match="not 3"):
        index.search("decoder", np.ones((1, 3), dtype=np.float32), 2)


def test_a_failure_leaves_the_old_index(fresh, monkeypatch):
    assert main(["index", str(fresh), "--limit", "20"]) == 0
    before = (fresh / "index" / HEADER).read_text()
    run = load_run(fresh)

    def fail(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(Run.open(fresh), run, progress=fail)
    assert (fresh / "index" / HEADER).read_text() == before and not list(fresh.glob(".index.aside*"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("usage", (), {"free": 1000}))
    with pytest.raises(UsageError, match="--limit"):
        build_index(Run.open(fresh), run)
    assert open_index(fresh).header.examples == 20


def test_two_processes_do_not_build_at_once(fresh):
    run = load_run(fresh)
    with indexing._lock(Run.open(fresh)), pytest.raises(UsageError, match="Another process"):
        build_index(Run.open(fresh), run)
    build_index(Run.open(fresh), run, limit=5)


def test_a_missing_library_is_named_with_its_command(fresh, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert main(["index", str(fresh)]) == 1
    assert install_command("index") in capsys.readouterr().err and "faiss-cpu>=" in INDEX


def test_runs_without_single_texts_are_refused(tmp_path, capsys):
    for name, why in (("captions", "reads pictures"), ("pairs", "two texts"), ("pairs-apart", "two texts")):
        shutil.copytree(RUNS / name, tmp_path / name)
        assert main(["index", str(tmp_path / name)]) == 2
        assert why in capsys.readouterr().err
    assert state_index.DIRECTORY == "index" and indexing.LIMIT == 10_000
