"""The law of learning side by side: how many threads share a lesson changes nothing but rounding."""

from functools import partial

import pytest
import torch

from regard.data.batches import Cursor
from regard.tasks.preparation import prepare
from regard.tasks.training_batch import TrainingPoint
from regard.training import muon, optimizer
from regard.training.gradient_threads import GradientThreads
from regard.training.trainer import Trainer
from tests.test_training import tiny

TRANSFORMER = ["model.encoder.kind=transformer", "model.decoder.kind=transformer", "model.decoder.layers=2"]
CONV = ["model.encoder.kind=conv", "model.decoder.kind=conv", "model.join.kind=attention"]
CELLS = {"recurrent": [], "transformer": TRANSFORMER, "convolutional": CONV}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tiny(), tmp_path_factory.mktemp("run"))


def trainer(prepared, *overrides, threads):
    config = tiny(*overrides)
    task = prepared.task.configured(config)
    batches = task.batches(prepared.train, training=True)
    return Trainer(config, task, batches, device=torch.device("cpu"), threads=threads)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_gradients_of_shares_add_up_to_those_of_the_whole(prepared, cell, size):
    made = trainer(prepared, *CELLS[cell], "model.dropout=0", threads=GradientThreads(size))
    model, task = made.model.double().train(), made.task
    batch, _ = next(made.batches.after(Cursor()))
    lesson = task.training_batch(batch, torch.Generator(), training=True)

    def teach(share, random):
        return task.output.loss(model, share, scale=1 / lesson.count, point=TrainingPoint(1, 10, random))

    whole = teach(lesson, torch.Generator())
    whole.smoothed.backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    loss, nll = made.threads.backward(model, lesson, teach)
    torch.testing.assert_close(loss, whole.smoothed.detach())
    torch.testing.assert_close(nll, whole.nll)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-9, atol=1e-12)
    made.close()


@pytest.mark.parametrize("cell", CELLS)
def test_the_same_seed_learns_the_same_bit_for_bit_whichever_thread_is_faster(prepared, cell):
    exposed = ["model.dropout=0.3", "training.exposure.scheduled_sampling.kind=linear"]
    left = []
    for _ in range(3):
        made = trainer(prepared, *CELLS[cell], *exposed, threads=GradientThreads(3))
        for _ in range(5):
            made.update()
        made.close()
        left.append(torch.cat([parameter.detach().reshape(-1) for parameter in made.model.parameters()]))
    assert torch.equal(left[0], left[1])
    assert torch.equal(left[0], left[2])


def test_shares_draw_differently_from_one_another(prepared):
    made = trainer(prepared, threads=GradientThreads(2))
    batch, _ = next(made.batches.after(Cursor()))
    lesson = made.task.training_batch(batch, torch.Generator(), training=True)
    drawn = {}

    def teach(share, random):
        drawn[share["source"].data_ptr()] = torch.rand(5, generator=random)
        return made.task.output.loss(made.model, share)

    made.threads.backward(made.model, lesson, teach)
    first, second = drawn.values()
    assert not torch.equal(first, second)
    made.close()


@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_a_step_is_the_same_whoever_takes_it(prepared, kind, monkeypatch):
    monkeypatch.setattr(muon, "PIECE", 1)  # every matrix is a piece of its own
    left = []
    for size in (1, 3):
        made = trainer(prepared, f"training.optimizer.kind={kind}", threads=GradientThreads(size))
        for number, parameter in enumerate(made.model.parameters()):
            parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        before = [parameter.detach().clone() for parameter in made.model.parameters()]
        optimizer.set_rate(made.optimizer, 0.01)
        made.optimizer.step()
        made.close()
        assert not any(torch.equal(*each) for each in zip(before, made.model.parameters(), strict=True))
        left.append(torch.cat([parameter.detach().reshape(-1) for parameter in made.model.parameters()]))
    torch.testing.assert_close(*left, rtol=1e-6, atol=1e-7)


def test_works_are_done_once_each_and_their_results_keep_their_order():
    threads = GradientThreads(3)
    assert threads.run([partial(pow, number, 2) for number in range(100)]) == [number**2 for number in range(100)]
    assert threads.run([]) == []
    threads.close()


def test_a_lesson_of_one_row_is_learnt_by_any_crew(prepared):
    made = trainer(prepared, threads=GradientThreads(4))
    batch, _ = next(made.batches.after(Cursor()))
    row = made.task.training_batch(batch, torch.Generator(), training=True).shares(len(batch))[0]
    made.threads.backward(made.model, row, lambda share, random: made.task.output.loss(made.model, share))
    assert any(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in made.model.parameters())
    made.close()


def test_what_goes_wrong_in_a_share_is_told_and_the_threads_are_given_back(prepared):
    made = trainer(prepared, threads=GradientThreads(2))
    batch, _ = next(made.batches.after(Cursor()))
    lesson = made.task.training_batch(batch, torch.Generator(), training=True)
    before = torch.get_num_threads()

    def teach(share, random):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        made.threads.backward(made.model, lesson, teach)
    assert torch.get_num_threads() == before
    made.close()
