"""Cleaning and splitting: every reason is counted, and a source is never on two sides of a split."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.data import Cleaning
from regard.data.cleaning import CleaningReport, Fate, with_fate
from regard.data.corpus import Pair
from regard.data.survey import survey
from regard.foundation.errors import RegardError
from regard.runs.records import parse


def test_every_reason_is_counted_with_its_first_line() -> None:
    pairs = [
        Pair("a good pair", "ein gutes Paar"),
        Pair("", "nothing"),
        Pair("x" * 101, "x" * 101),
        Pair("short", "very " * 19),
        Pair("a good pair", "ein gutes Paar"),
        Pair("a good pair", "ein anderes Paar"),
        Pair(" \u3000", "white"),
    ]
    fate, report = survey(pairs, Cleaning(max_characters=100), held_out=0, seed=1)
    assert fate.tolist() == [Fate.TRAIN, Fate.EMPTY, Fate.TOO_LONG, Fate.RATIO, Fate.DUPLICATE, Fate.TRAIN, Fate.EMPTY]
    assert report.dropped == {"empty side": 2, "too long": 1, "length ratio": 1, "duplicate": 1}
    assert report.examples == {"empty side": 2, "too long": 3, "length ratio": 4, "duplicate": 5}
    assert parse(CleaningReport, json.loads(json.dumps(report.to_json())), Path("finished.json")) == report
    table = str(report).splitlines()
    assert table[0].split() == ["read", "7"]
    assert len({line.index(digits) + len(digits) for line, digits in zip(table, "722111", strict=True)}) == 1
    kept, _ = survey(pairs, Cleaning(duplicates="keep"), held_out=0, seed=1)
    assert Fate.DUPLICATE not in kept


@given(
    sources=st.lists(st.integers(0, 30), min_size=40, max_size=120),
    held_out=st.integers(1, 50),
    tested=st.integers(0, 20),
    seed=st.integers(0, 5),
)
@settings(deadline=None, max_examples=60)
def test_a_source_is_never_on_two_sides_of_the_split(sources: list[int], held_out: int, tested: int, seed: int) -> None:
    pairs = [
        Pair(f"Source  {source}" if place % 2 else f"source {source}", f"{place}")
        for place, source in enumerate(sources)
    ]
    try:
        fate, report = survey(pairs, Cleaning(), held_out=held_out, tested=tested, seed=seed)
    except RegardError as error:
        assert "too few" in str(error)
        return
    again, _ = survey(pairs, Cleaning(), held_out=held_out, tested=tested, seed=seed)
    assert (fate == again).all()
    kept, out, test = (
        {sources[n - 1] for n, _ in with_fate(pairs, fate, wanted)} for wanted in (Fate.TRAIN, Fate.HELD_OUT, Fate.TEST)
    )
    assert not kept & out and not kept & test and not out & test
    assert 0 < report.held_out <= min(held_out, len(pairs) // 10)
    assert (report.tested > 0) == (tested > 0) and report.tested <= min(tested, len(pairs) // 10)
    assert report.train + report.held_out + report.tested == len(pairs)
    alone, _ = survey(pairs, Cleaning(), held_out=held_out, seed=seed)
    assert ((alone == Fate.HELD_OUT) == (fate == Fate.HELD_OUT)).all()


def test_a_corpus_that_changes_between_readings_is_refused() -> None:
    pairs = [Pair(str(n), str(n)) for n in range(5)]
    fate, _ = survey(pairs, Cleaning(), held_out=0, seed=0)
    for changed in (pairs[:4], [*pairs, Pair("6", "6")]):
        with pytest.raises(RegardError, match="changed"):
            list(with_fate(changed, fate, Fate.TRAIN))


WORDS = st.lists(st.sampled_from(["Oil", "oil", "GAS", "gas", "power", "price"]), min_size=1, max_size=6).map(" ".join)


@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=20), least=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
@settings(deadline=None)
def test_targets_with_few_words_of_the_source_are_dropped(pairs: list[tuple[str, str]], least: float) -> None:
    """Exactly those whose share of words that the source has, whatever their case, is smaller than the limit."""
    cleaning = Cleaning(min_overlap=least, duplicates="keep", max_ratio=100)
    fate, report = survey([Pair(*pair) for pair in pairs], cleaning, held_out=0, seed=1)
    shares = [np.mean([word.lower() in source.lower().split() for word in target.split()]) for source, target in pairs]
    assert fate.tolist() == [Fate.OVERLAP if share < least else Fate.TRAIN for share in shares]
    assert report.dropped.get("too few words of the source", 0) == sum(share < least for share in shares)


def test_marks_are_not_words() -> None:
    """A target without words has nothing that the source could lack."""
    pairs = [Pair("the gas price, today", "Gas-price: today!"), Pair("the gas price", "?!"), Pair("gas", "gases")]
    fate, _ = survey(pairs, Cleaning(min_overlap=1.0), held_out=0, seed=1)
    assert fate.tolist() == [Fate.TRAIN, Fate.TRAIN, Fate.OVERLAP]
