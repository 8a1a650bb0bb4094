"""The n-gram model that language models are measured against: `benchmarks/kneser_ney.py`."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

BEGIN, END, A, B, C = range(5)


def module():
    path = Path(__file__).parent.parent / "benchmarks" / "kneser_ney.py"
    spec = importlib.util.spec_from_file_location("kneser_ney", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def counted(documents, order, vocabulary=5):
    return module().KneserNey(documents, order, vocabulary, begin=BEGIN, end=END)


def test_a_small_case_is_what_it_is_by_hand():
    """Of `a b` and `a c`: before a, b, c stands one word each, before the end two; 0.5 is taken from 1, 1 from 2."""
    model = counted([[A, B], [A, C]], order=2)
    once = 0.5 / 5 + 2.5 / 5 / 4  # P(a) = P(b) = P(c): four words share the 2.5 that were taken
    ends = 1 / 5 + 2.5 / 5 / 4
    assert 3 * once + ends == pytest.approx(1)
    wanted = [1 / 2 + 1 / 2 * once, 0.5 / 2 + 1 / 2 * once, 0.5 + 0.5 * ends]  # a | begin, b | a, end | b
    assert np.exp(model.log_probs([[A, B]])).tolist() == pytest.approx(wanted)


def test_what_begins_a_document_is_counted_as_often_as_it_is_seen():
    """Nothing stands before `begin a`: two of three documents begin so, and trigrams leave it at that."""
    model = counted([[A, B], [A, C], [B, A]], order=3)
    start = model.tables[1]
    numbers = {(int(key) // 5, int(key) % 5): int(count) for key, count in zip(start.keys, start.counts, strict=True)}
    first = model.tables[0].keys.tolist().index(BEGIN)
    assert numbers[first, A] == 2 and numbers[first, B] == 1


def test_discounts_follow_from_how_many_are_seen_once_to_four_times():
    counts = np.array([1] * 4 + [2] * 2 + [3] + [4])
    assert module().discounts_of(counts).tolist() == pytest.approx(
        [0, 1 - 2 * 0.5 * 2 / 4, 2 - 3 * 0.5 / 2, 3 - 4 * 0.5]
    )


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_of_all_words_sum_to_one_behind_any_words(order):
    random = np.random.default_rng(order)
    documents = [random.zipf(1.7, 12).clip(1, 9) + 1 for _ in range(200)]  # 10 is never seen in most of them
    model = counted(documents, order, vocabulary=12)
    for before in ([], [2, 3], [5, 4, 3, 2], [11, 11], [2, 2, 2, 2, 2, 2]):
        words = [model.log_probs([[*before, word]])[len(before)] for word in range(2, 12)]
        end = model.log_probs([before])[len(before)]
        assert sum(map(math.exp, [*words, end])) == pytest.approx(1)


def test_more_context_is_worth_something_where_words_depend_on_words():
    random = np.random.default_rng(0)
    documents = []
    for _ in range(300):
        row = random.integers(2, 12, 2).tolist()
        for _ in range(20):
            row.append(2 + (row[-1] + row[-2]) % 10 if random.random() < 0.9 else int(random.integers(2, 12)))
        documents.append(row)
    surprise = [-counted(documents[:250], order, 12).log_probs(documents[250:]).mean() for order in (1, 2, 3)]
    assert surprise[0] > surprise[1] - 0.05 and surprise[2] < 0.7 * surprise[1]
