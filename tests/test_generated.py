"""Laws of generated corpora: the same settings give the same pairs, all different, and none contradicts another."""

import re
import sys
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from regard.config.data import Generated
from regard.data import dates
from regard.data.corpus import read
from regard.foundation.errors import RegardError

TASKS = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}


@pytest.mark.parametrize("task", TASKS)
@given(
    symbols=st.integers(2, 200),
    shortest=st.integers(1, 5),
    more=st.integers(0, 60),
    size=st.integers(1, 300),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=40)
def test_targets_are_what_the_task_says(
    task: str, symbols: int, shortest: int, more: int, size: int, seed: int
) -> None:
    corpus = Generated(
        generate=task, symbols=symbols, min_length=shortest, max_length=shortest + more, size=size, seed=seed
    )
    there = sum(symbols**length for length in range(shortest, shortest + more + 1))
    if there < size:
        with pytest.raises(RegardError, match=f"Only {there:,} different rows"):
            list(read(corpus))
        return
    pairs = list(read(corpus))
    assert pairs == list(read(corpus))
    assert len(pairs) == len({pair.source for pair in pairs}) == size
    for pair in pairs:
        row = pair.source.split(" ")
        assert shortest <= len(row) <= shortest + more
        assert pair.target.split(" ") == TASKS[task](row)


def test_lengths_are_spread_evenly() -> None:
    lengths = [len(pair.source.split()) for pair in read(Generated(generate="copy", size=5000))]
    assert [lengths.count(1), lengths.count(2)] == [20, 400]  # all there are
    assert {lengths.count(length) for length in range(3, 11)} == {572, 573}


def test_all_rows_there_are_can_be_asked_for() -> None:
    corpus = Generated(generate="sort", symbols=3, min_length=1, max_length=4, size=3 + 9 + 27 + 81)
    assert len({pair.source for pair in read(corpus)}) == corpus.size


@pytest.mark.parametrize("task", [*TASKS, "dates"])
def test_another_seed_gives_another_corpus(task: str) -> None:
    first, second = ({p.source for p in read(Generated(generate=task, size=500, seed=seed))} for seed in (1, 2))
    assert len(first & second) < 100


# --- dates ----------------------------------------------------------------------------------------------------------


def test_no_date_contradicts_another() -> None:
    pairs = list(read(Generated(generate="dates", size=50_000)))
    assert len({pair.source for pair in pairs}) == 50_000
    folded = {(re.sub(r"[\s.,]+", " ", pair.source.casefold()).strip(), pair.target) for pair in pairs}
    assert len(folded) == len({source for source, _ in folded})


def test_dates_that_mean_the_same_only_in_one_language_are_left_out() -> None:
    pairs = list(read(Generated(generate="dates", size=20_000, languages=["pl", "hr", "en", "en_GB", "fr"])))
    assert not [pair for pair in pairs if "listopad" in pair.source.lower()]
    meanings: dict[str, set[str]] = {}
    for pair in pairs:
        meanings.setdefault(re.sub(r"[\s.,]+", " ", pair.source.casefold()).strip(), set()).add(pair.target)
    assert all(len(found) == 1 for found in meanings.values())
    for pair in pairs:
        if numeric := re.fullmatch(r"(\d+)/(\d+)/(\d{4})", pair.source):
            first, second = int(numeric[1]), int(numeric[2])
            assert first == second or max(first, second) > 12


def test_a_language_alone_may_use_its_own_order() -> None:
    pairs = read(Generated(generate="dates", size=5000, languages=["en"]))
    assert any(re.fullmatch(r"0?3/0?4/\d{4}", pair.source) and "-03-04" in pair.target for pair in pairs)


def test_targets_are_real_days_and_sources_name_their_year() -> None:
    for source, target in read(Generated(generate="dates", size=3000)):
        day = date.fromisoformat(target)
        assert 1900 <= day.year <= 2099
        assert str(day.year) in source
        assert str(day.day) in source


def test_dates_speak_many_languages() -> None:
    assert len(dates.LANGUAGES) >= 30
    sources = " ".join(pair.source for pair in read(Generated(generate="dates", size=20_000)))
    for word in ("Saturday", "Mittwoch", "décembre", "мая", "月", "년", "tháng", "Μαρτίου", "1st", "1er", ":e"):
        assert word in sources


def test_too_few_different_dates_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dates, "LAST", date(1900, 1, 31))
    monkeypatch.setattr(dates, "_PATIENCE", 500)
    with pytest.raises(RegardError, match="Make size smaller"):
        list(read(Generated(generate="dates", size=10_000, languages=["zh"])))


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(RegardError, match="does not support the language `xx`"):
        list(read(Generated(generate="dates", languages=["en", "xx"])))


def test_missing_babel_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(RegardError, match="-m pip install babel"):
        list(read(Generated(generate="dates")))


def test_dates_in_no_language_at_all_are_refused() -> None:
    with pytest.raises(ValidationError, match="empty list of languages"):
        Generated(generate="dates", languages=[])
