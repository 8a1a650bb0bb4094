"""Watching a model answer, as it is and changed: what search found = what one pass says, with any change."""

import json
from pathlib import Path

import pytest
import torch

import regard
from regard.api.model import Model
from regard.foundation.errors import UsageError
from regard.inspection import changes as kinds
from regard.inspection.changes import (
    Attend,
    Change,
    Freeze,
    Overwrite,
    RemovePositions,
    ScaleHead,
    change_from,
    to_json,
)
from regard.inspection.interventions import attentions
from regard.nn import taps
from regard.search.constraints import Constraints
from tests.stored_runs import FIXTURES

STORED = sorted(path.name for path in (FIXTURES / "format-1").iterdir() if (path / "config.yaml").exists())


@pytest.fixture(scope="module")
def models(copy_run: Path, transformer_run: Path) -> dict[str, Model]:
    return {"rnn": regard.load(copy_run), "transformer": regard.load(transformer_run)}


@pytest.fixture(params=["rnn", "transformer"])
def model(request: pytest.FixtureRequest, models: dict) -> Model:
    return models[request.param]


def source_of(model: Model) -> str:
    return " ".join(token for token in model.loaded.source_tokenizer.vocabulary[-4:]).replace("▁", "")


def states_of(model: Model) -> str:
    """The name of a tap of the encoder with a vector for each source token."""
    return next(
        name
        for name, value in model.trace(source_of(model)).activations.items()
        if name.startswith("encoder") and "states" in name and value.dim() == 2 and len(value) > 1
    )


def each_kind(model: Model) -> list[list[Change]]:
    first = next(name for name in attentions(model.model) if name.endswith("source_attention"))
    other = " ".join(reversed(source_of(model).split()))
    found: list[list[Change]] = [
        [ScaleHead(first, 0, 0.0)],
        [ScaleHead(first, 0, 2.5)],
        [Attend(1, 0)],
        [Attend(2, 1, first, 0), Attend(1, 0, first, 0)],
        [Freeze(first), ScaleHead(first, 0, 0.5)],
        [Overwrite(states_of(model), 1, other)],
        [Overwrite(states_of(model), 0, other, 2), Freeze(first, 0)],
    ]
    return [*found, [RemovePositions("encoder")]] if model.config.model.encoder.kind == "transformer" else found


@pytest.mark.parametrize("beam", [1, 4])
def test_search_with_changes_equals_one_pass_with_them(model: Model, beam: int) -> None:
    for changes in [[], *each_kind(model)]:
        watched = model.watch(source_of(model), changes=changes, beam=beam)
        best = watched.found[0]
        passed = watched.trace.target_log_probs[: len(best.log_probs)]
        torch.testing.assert_close(torch.tensor(best.log_probs), passed, rtol=1e-4, atol=1e-4, msg=str(changes))


def test_nothing_is_left_of_a_change(model: Model) -> None:
    source = source_of(model)
    before = model.watch(source).to_json()
    for changes in each_kind(model):
        model.watch(source, changes=changes)
        assert model.watch(source).to_json() == before
    assert not taps.watched(model.model)


def test_a_factor_of_one_changes_nothing_and_zero_is_a_head_switched_off(model: Model) -> None:
    source = source_of(model)
    unchanged = model.watch(source)
    for name, attention in attentions(model.model).items():
        for head in range(attention.heads):
            assert model.watch(source, changes=[ScaleHead(name, head, 1.0)]).found == unchanged.found
    name = next(name for name in attentions(model.model) if name.endswith("source_attention"))
    off = model.watch(source, changes=[ScaleHead(name, 0, 0.0)])
    assert not off.trace.activations[f"{name}.head_outputs"][0].any()
    assert unchanged.trace.activations[f"{name}.head_outputs"][0].any()


def test_directed_attention_looks_there_and_keeps_what_came_before(model: Model) -> None:
    source = source_of(model)
    unchanged = model.watch(source)
    watched = model.watch(source, changes=[Attend(2, 0)])
    assert watched.trace.target.ids[:2] == unchanged.trace.target.ids[:2]
    assert watched.prefix == 2
    for name, weights in watched.trace.matching("*source_attention.weights").items():
        expected = torch.zeros(weights.shape[0], weights.shape[2])
        expected[:, 0] = 1
        torch.testing.assert_close(weights[:, 2], expected, msg=name)
        assert weights[:, 1, 0].max() < 1 or weights.shape[2] == 1


def test_frozen_attention_is_that_of_the_unchanged_pass(model: Model) -> None:
    source = source_of(model)
    name = next(name for name in attentions(model.model) if name.endswith("source_attention"))
    other = Overwrite(states_of(model), 1, " ".join(reversed(source.split())))
    loose = model.watch(source, changes=[other]).trace.activations[f"{name}.weights"]
    unchanged = model.watch(source).trace.activations[f"{name}.weights"]
    frozen = model.watch(source, changes=[other, Freeze(name)]).trace.activations[f"{name}.weights"]
    rows = min(frozen.shape[1], unchanged.shape[1])
    torch.testing.assert_close(frozen[:, :rows], unchanged[:, :rows])
    assert not torch.allclose(loose[:, :rows], unchanged[:, : loose.shape[1]][:, :rows], atol=1e-3)


def test_an_overwritten_activation_is_that_of_the_other_source(model: Model) -> None:
    source, name = source_of(model), states_of(model)
    other = " ".join(reversed(source.split()))
    watched = model.watch(source, changes=[Overwrite(name, 1, other, 2)])
    torch.testing.assert_close(watched.trace.activations[name][1], model.trace(other).activations[name][2])
    same = model.watch(source, changes=[Overwrite(name, 1, source)])
    assert same.found[0].tokens == model.watch(source).found[0].tokens


def test_without_positions_the_order_of_a_source_does_not_matter_to_the_encoder(models: dict) -> None:
    model = models["transformer"]
    source = source_of(model)
    turned = " ".join(reversed(source.split()))
    states = [
        model.watch(text, changes=[RemovePositions()]).trace.matching("encoder.*states") for text in (source, turned)
    ]
    last = [list(found.values())[-1][:-1] for found in states]  # without the end symbol
    torch.testing.assert_close(last[0], last[1].flip(0), rtol=1e-4, atol=1e-5)
    usual = [list(model.trace(text).matching("encoder.*states").values())[-1][:-1] for text in (source, turned)]
    assert not torch.allclose(usual[0], usual[1].flip(0), atol=1e-3)


def test_an_output_begins_with_the_tokens_that_were_asked_for(model: Model) -> None:
    source = source_of(model)
    watched = model.watch(source)
    candidate = next(one for one in watched.predictions[1].candidates if one.token != watched.trace.target.ids[1])
    prefix = [watched.trace.target.ids[0], candidate.token]
    forked = model.watch(source, prefix=prefix)
    assert forked.trace.target.ids[:2] == prefix and forked.prefix == 2
    assert forked.predictions[0].probability == pytest.approx(watched.predictions[0].probability, rel=1e-4)
    assert forked.predictions[1].probability == pytest.approx(candidate.probability, rel=1e-4)


@pytest.mark.parametrize("name", STORED)
def test_runs_of_every_task_can_be_watched(name: str) -> None:
    directory = FIXTURES / "format-1" / name
    model = regard.load(directory)
    source = {"captions": "shapes: red circle 0 0 6 0 0, blue square 2 1 5 1 0"}.get(name)
    if source is None:
        texts = model.config.data.train.texts
        if model.config.task.input_kind().image:
            source = ("shapes: red circle 0 0 6 0 0, blue square 2 1 5 1 0", "how many circles are there ?")
        elif texts > 1:
            source = ("w1 w2 w3", "w2 w4")
        else:
            source = "w1 <mask> w3" if name == "masked" else "a b c" if "translation" in name else "w1 w2 w3"
    if name == "masked":
        from regard.tasks.outputs.masked_words import BLANK

        source = f"w1 {BLANK} w3"
    watched = model.watch(source)
    told = watched.to_json()
    json.dumps(told, allow_nan=False)
    assert len(told["predictions"]) in (0, len(told["target"]["tokens"]))
    for prediction in told["predictions"]:
        assert sum(one["probability"] for one in prediction["candidates"]) <= 1 + 1e-4
    if model.loaded.writes_text and model.config.task.input_kind().encoder:
        assert watched.text == model(source).line
    assert str(watched) and watched.page().startswith("<!doctype html>")


def test_labels_can_change() -> None:
    model = regard.load(FIXTURES / "format-1" / "tags-transformer")
    watched = model.watch("w1 w2 w3")
    name, attention = next(iter(attentions(model.model).items()))
    off = [ScaleHead(name, head, 0.0) for head in range(attention.heads)]
    changed = model.watch("w1 w2 w3", changes=off)
    assert [one.probability for one in changed.predictions] != [one.probability for one in watched.predictions]
    directed = model.watch("w1 w2 w3", changes=[Attend(1, 0, name)]).trace.activations[f"{name}.weights"]
    assert directed[:, 1, 0].min() == 1 and directed[:, 0, 0].max() < 1


def test_changes_are_plain_data() -> None:
    every = [
        ScaleHead("a", 1, 0.5),
        Attend(1, 2),
        Attend(1, 2, "a", 0),
        Freeze("a"),
        Overwrite("t", 1, "x"),
        RemovePositions("encoder"),
    ]
    for change in every:
        assert change_from(json.loads(json.dumps(to_json(change)))) == change
        assert eval(repr(change), vars(kinds)) == change
    assert change_from({"kind": "scale-head", "attention": "a", "head": 1, "by": 0}) == ScaleHead("a", 1, 0)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "none"},
        {"kind": "scale-head"},
        {"kind": "scale-head", "attention": 1, "head": 1},
        {"kind": "scale-head", "attention": "a", "head": "1"},
        {"kind": "scale-head", "attention": "a", "head": True},
        {"kind": "attend", "position": 1, "to": None},
        {"kind": "attend", "position": 1, "to": 1, "more": 2},
        {"kind": ["freeze"]},
    ],
)
def test_wrong_data_is_refused(data: dict) -> None:
    with pytest.raises(UsageError):
        change_from(data)


def test_changes_that_do_not_fit_are_refused(models: dict) -> None:
    model = models["transformer"]
    name = next(iter(attentions(model.model)))
    source = source_of(model)
    for changes in (
        [ScaleHead("nowhere", 0)],
        [ScaleHead(name, 99)],
        [Attend(0, 99)],
        [Freeze(name), Attend(0, 0, name)],
        [Attend(1, 0), Attend(1, 1)],
        [ScaleHead(name, 0, 0.0), ScaleHead(name, 0, 2.0)],
        [Overwrite("nowhere", 0, "a")],
        [Overwrite(f"{name}.weights", 0, source)],
        [Overwrite(states_of(model), 0, source, 99)],
        [RemovePositions("middle")],
        [ScaleHead(name, 0)] * 201,
    ):
        with pytest.raises(UsageError):
            model.watch(source, changes=changes)
    with pytest.raises(UsageError, match="no positions"):
        models["rnn"].watch(source_of(models["rnn"]), changes=[RemovePositions()])
    with pytest.raises(UsageError, match="empty"):
        model.watch("  ")


def test_prefixes_of_tokens_are_checked(models: dict) -> None:
    for wrong in ((-1,), ("a",), 3):
        with pytest.raises(UsageError):
            Constraints(prefix_tokens=wrong)
    with pytest.raises(UsageError):
        Constraints(prefix="a", prefix_tokens=(5,))
    with pytest.raises(UsageError, match="vocabulary"):
        models["rnn"].watch(source_of(models["rnn"]), prefix=[10**6])


def test_an_inner_watch_sees_what_the_outer_one_wrote(models: dict) -> None:
    model = models["transformer"].model
    name = next(name for name in taps.names(model) if name.endswith("head_outputs"))
    path, ids = model.get_submodule(name), torch.ones(1, 2, 3, 4)
    with (
        taps.watch(model, write={name: lambda value: value * 2}) as outer,
        taps.watch(model, name, write={name: lambda value: value + 1}) as inner,
    ):
        result = path(ids)
    assert (
        torch.equal(inner[name], ids * 2 + 1) and torch.equal(outer[name], ids * 2) and torch.equal(result, ids * 2 + 1)
    )
    assert not path.watched
