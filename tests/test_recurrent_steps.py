"""Prepared steps of an LSTM with attention compute what the model computes."""

import numpy as np
import pytest
import torch

from regard.models import build
from regard.search.recurrent_steps import LARGEST, RecurrentSteps, can_prepare
from regard.search.steps import ModelSteps, Source
from regard.search.trie import Trie, best_outputs
from tests.cells import VOCABULARY, cell

LSTM = {"kind": "rnn", "cell": "lstm", "layers": 1}
AFTER = {"kind": "attention", "order": "after", "input_feeding": False}
CELLS = {
    **{
        score: {"encoder": LSTM, "decoder": LSTM, "join": AFTER, "attention": {"score": score, "heads": 1}}
        for score in ("dot", "scaled-dot", "bilinear")
    },
    "narrow-embeddings": {
        "encoder": LSTM,
        "decoder": LSTM,
        "join": AFTER,
        "attention": {"score": "bilinear", "heads": 1},
        "embeddings": {"width": 8, "norm": True},
    },
    "bag-encoder": {
        "encoder": {"kind": "bag"},
        "decoder": LSTM,
        "join": AFTER,
        "attention": {"score": "dot", "heads": 1},
    },
}
OTHERS = {
    "layers": {"encoder": LSTM, "decoder": {**LSTM, "layers": 2}, "join": AFTER, "attention": {"heads": 1}},
    "gru": {"encoder": LSTM, "decoder": {**LSTM, "cell": "gru"}, "join": AFTER, "attention": {"heads": 1}},
    "before": {"encoder": LSTM, "decoder": LSTM, "join": {"kind": "attention", "order": "before"}},
    "feeding": {"encoder": LSTM, "decoder": LSTM, "join": {**AFTER, "input_feeding": True}},
    "fixed": {"encoder": LSTM, "decoder": LSTM, "join": {"kind": "fixed"}},
    "heads": {"encoder": LSTM, "decoder": LSTM, "join": AFTER, "attention": {"score": "dot", "heads": 2}},
    "additive": {"encoder": LSTM, "decoder": LSTM, "join": AFTER, "attention": {"score": "additive", "heads": 1}},
    "projected": {"encoder": LSTM, "decoder": LSTM, "join": AFTER, "attention": {"heads": 1, "project": True}},
    "transformer": {"encoder": LSTM, "decoder": {"kind": "transformer", "layers": 1}},
}
SOURCE = torch.tensor([[7, 9, 12, 6, 15, 3]])


def make_model(settings):
    torch.manual_seed(1)
    model = build(cell(**settings), VOCABULARY, VOCABULARY).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return model


@pytest.mark.parametrize("name", CELLS)
@torch.inference_mode()
def test_prepared_steps_are_those_of_the_model(name: str) -> None:
    model = make_model(CELLS[name])
    source = Source.of(SOURCE)
    ours, theirs = RecurrentSteps(model), ModelSteps(model)
    first, second = ours.start(source), theirs.start(source)
    generator = torch.Generator().manual_seed(2)
    rows = 1
    for _ in range(5):
        tokens = torch.randint(0, VOCABULARY, (rows,), generator=generator)
        found, first = ours.step(tokens, first)
        wanted, second = theirs.step(tokens, second)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
        chosen = torch.randint(0, rows, (rows + 2,), generator=generator)
        first, second, rows = first.select(chosen), second.select(chosen), rows + 2


@pytest.mark.parametrize("name", CELLS)
def test_a_search_with_prepared_steps_finds_the_same(name: str) -> None:
    model = make_model(CELLS[name])
    random = np.random.default_rng(3)
    outputs = sorted({tuple(random.integers(6, VOCABULARY, random.integers(1, 5)).tolist()) for _ in range(80)})
    extra = -5 * random.random(len(outputs))
    for width in (4, 10_000):
        found, wanted = (
            best_outputs(steps, Source.of(SOURCE), Trie(outputs), width=width, count=4, extra=extra)
            for steps in (RecurrentSteps(model), ModelSteps(model))
        )
        assert [one.output for one in found] == [one.output for one in wanted]
        assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=1e-4)


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_cannot_be_prepared(name: str) -> None:
    model = make_model(OTHERS[name])
    assert not can_prepare(model)
    with pytest.raises(ValueError, match="no LSTM of one layer"):
        RecurrentSteps(model)


def test_a_large_table_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(CELLS["dot"])
    assert 0 < VOCABULARY * 4 * 16 <= LARGEST
    monkeypatch.setattr("regard.search.recurrent_steps.LARGEST", VOCABULARY * 4 * 16 - 1)
    assert not can_prepare(model)


def test_several_sources_are_refused() -> None:
    steps = RecurrentSteps(make_model(CELLS["dot"]))
    with pytest.raises(ValueError, match="not for 2"):
        steps.start(Source.of(torch.cat([SOURCE, SOURCE])))
