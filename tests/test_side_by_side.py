"""Batches searched side by side give what they give one after the other, in order, and can be stopped."""

from threading import Event, get_ident

import pytest
import torch

from regard.nn import taps
from regard.search import ModelSteps, Search, greedy
from regard.search.threads import Interruptible, Stopped, run_in_threads
from regard.tasks.loaded import load_run
from tests.cells import model_of, sentences
from tests.random_runs import random_run


@pytest.fixture
def two_threads():
    """As on a machine with two cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_come_in_order_whichever_is_done_first(two_threads):
    second_is_done = Event()

    def first_is_last(task, stop):
        """The first task waits for the second, which another thread has to do."""
        if task == 0:
            assert second_is_done.wait(60)
        elif task == 1:
            second_is_done.set()
        return task, get_ident()

    results = list(run_in_threads(first_is_last, range(9)))
    assert [task for task, _ in results] == list(range(9))
    assert len({thread for _, thread in results}) == 2
    assert torch.get_num_threads() == 2
    assert len({thread for _, thread in run_in_threads(first_is_last, range(3), most=1)} | {get_ident()}) == 1


def test_when_one_fails_the_others_stop_between_two_steps(two_threads):
    model, (source, _) = model_of("gru-both>gru/attention"), sentences(2, 5, seed=1)
    stopped, second_has_begun = [], Event()

    def work(task, stop):
        if task == 0:
            assert second_has_begun.wait(60)
            raise KeyboardInterrupt
        second_has_begun.set()
        try:
            while True:  # as a search that would never end
                greedy(Interruptible(ModelSteps(model), stop), source, [8, 8])
        except Stopped:
            stopped.append(task)
            raise

    with pytest.raises(KeyboardInterrupt):
        list(run_in_threads(work, range(4)))
    assert 1 in stopped
    with pytest.raises(Stopped):
        told = Event()
        told.set()
        greedy(Interruptible(ModelSteps(model), told), source, [8, 8])


@pytest.mark.parametrize("beam", [1, 3])
def test_two_cores_say_what_one_says(two_threads, tmp_path, beam):
    translator = load_run(random_run(tmp_path / "run", {}).directory, ["decoding.batch_tokens=24"])
    texts = ["a b c", "b", "", "c c a b", "a", "b a", "a b c", "c"]
    together = translator.hypotheses(texts, beam=beam)
    torch.set_num_threads(1)
    alone = translator.hypotheses(texts, beam=beam)
    assert together == alone
    assert together[0] == together[6], "duplicates of a sentence give the same output wherever they stand"


def test_taps_that_are_watched_see_one_batch_after_the_other(two_threads, tmp_path):
    translator = load_run(random_run(tmp_path / "run", {}).directory, ["decoding.batch_tokens=24"])
    name = next(name for name in taps.names(translator.model) if name.endswith("source_attention.weights"))
    threads = set()

    def note(weights):
        threads.add(get_ident())
        return weights

    with taps.watch(translator.model, write={name: note}):
        assert taps.watched(translator.model) == [name]
        translator.hypotheses(["a b c", "b", "c c a b", "a", "b a"], Search(beam=2))
    assert threads == {get_ident()} and not taps.watched(translator.model)
