"""Laws of comparison: what is the same is never different, and what is better is found to be."""

import json
import random
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import UsageError
from regard.evaluation.comparison import compare
from regard.evaluation.length_picture import draw_by_length
from regard.evaluation.metrics import make, score_text
from regard.evaluation.side_by_side import marked, render, write_page
from regard.evaluation.significance import compare_statistics
from regard.evaluation.slices import FEWEST, by_kind, by_length, frequencies, word_f1

WORDS = ("der", "die", "das", "hund", "katze", "baum", "haus", "läuft", "schläft", "steht", "groß", "klein", "rot")


def corpus(count=60, seed=3):
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(3, 30))) for _ in range(count)]


def spoilt(texts, share, seed=4):
    """The texts with a share of their words replaced."""
    chance = random.Random(seed)
    return [" ".join("falsch" if chance.random() < share else word for word in text.split()) for text in texts]


REFERENCES = corpus()
GOOD, BAD = spoilt(REFERENCES, 0.1), spoilt(REFERENCES, 0.4)


def outcome(first, second, metric="bleu", **more):
    one = make([metric])[metric]
    several = [(text,) for text in REFERENCES]
    rows = one.statistics(first, several), one.statistics(second, several)
    return compare_statistics(one, *rows, samples=200, **more)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "exact"])
def test_a_system_is_never_better_than_itself(metric):
    found = outcome(GOOD, GOOD, metric)
    assert found.difference == found.low == found.high == 0
    assert found.bootstrap == found.randomisation == 1
    assert not found.significant


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_clear_difference_is_significant(metric):
    found = outcome(BAD, GOOD, metric)
    assert found.significant and found.low <= found.difference <= found.high
    assert found.bootstrap == found.randomisation == 1 / 201  # the least that 200 samples can say


def test_the_order_of_two_systems_only_turns_the_sign():
    one, other = outcome(BAD, GOOD), outcome(GOOD, BAD)
    assert one.difference == -other.difference and one.low == pytest.approx(-other.high)
    assert (one.bootstrap, one.randomisation) == (other.bootstrap, other.randomisation)


def test_equally_good_systems_are_seldom_significant():
    called = sum(
        outcome(spoilt(REFERENCES, 0.3, seed), spoilt(REFERENCES, 0.3, seed + 100), "chrf").significant
        for seed in range(20)
    )
    assert called <= 4  # expected: 1 of 20


def test_the_same_seed_gives_the_same_answer():
    close = spoilt(REFERENCES, 0.12)
    assert outcome(GOOD, close, seed=5) == outcome(GOOD, close, seed=5) != outcome(GOOD, close, seed=6)


def test_slices_cover_every_sentence_and_score_as_themselves():
    found = compare({"bad": BAD, "good": GOOD}, REFERENCES, ["chrf"], sources=REFERENCES, samples=20)
    places = by_length(REFERENCES)
    assert sorted(place for some in places.values() for place in some) == list(range(len(REFERENCES)))
    for name, some in places.items():
        expected = score_text([GOOD[at] for at in some], [REFERENCES[at] for at in some], ["chrf"])["chrf"]
        assert found.lengths[name]["good"] == pytest.approx(expected)
        assert found.sizes[name] == len(some)


def test_lengths_and_kinds_are_named():
    assert by_length(["a " * 6] * 30 + ["a " * 61] * 25 + ["a"] * 40) == {
        "1–5": list(range(55, 95)),
        "6–10": list(range(30)),
        "61+": list(range(30, 55)),
    }
    kinds = by_kind(["Is it?", "Two.", "At 9?", 'He said "no".'])
    assert kinds == {"question": [0, 2], "with a number": [2], "with a quotation": [3], "none of these": [1]}


@given(st.lists(st.integers(0, 80), min_size=1, max_size=120))
def test_no_score_by_length_rests_on_a_handful_of_sentences(lengths):
    places = by_length(["a " * one for one in lengths])
    assert sorted(place for some in places.values() for place in some) == list(range(len(lengths)))
    assert len(places) == 1 or min(map(len, places.values())) >= FEWEST
    assert [max(lengths[at] for at in some) for some in places.values()] == sorted(
        max(lengths[at] for at in some) for some in places.values()
    )


def test_a_score_lies_within_its_band():
    found = compare({"bad": BAD, "good": GOOD}, REFERENCES, ["chrf"], sources=REFERENCES, samples=20)
    for name, row in found.lengths.items():
        for system, score in row.items():
            low, high = found.bands[name][system]
            assert low <= score <= high


def test_words_are_scored_by_their_frequency():
    counts = frequencies(["a a b", "a c"])
    assert counts == {"a": 3, "b": 1, "c": 1}
    f1 = word_f1(["a a x", "a"], [("a a b",), ("a c",)], counts)
    assert f1 == {"1": 0.0, "2–4": 100.0}


def test_differing_outputs_come_from_gain_to_loss():
    found = compare(
        {"a": ["x y", "same", "a b c"], "b": ["a b", "same", "q"]}, ["a b", "same", "a b c"], ["exact"], samples=5
    )
    assert [one.number for one in found.differing()] == [1, 3]
    facts = json.loads(json.dumps(found.facts()))
    assert [one["line"] for one in facts["gains"]] == [1] and [one["line"] for one in facts["losses"]] == [3]
    assert "2 of 3 sentences differ" in str(found)


def test_more_than_two_systems_are_compared_with_the_first():
    found = compare({"bad": BAD, "good": GOOD, "best": REFERENCES}, REFERENCES, samples=20)
    assert list(found.significance) == ["good", "best"]
    assert found.significance["best"]["bleu"].difference > found.significance["good"]["bleu"].difference > 0


class Reader(HTMLParser):
    """All tags and addresses of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.text = [], [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action")]

    def handle_data(self, data):
        self.text += data


def test_the_page_is_one_file_and_escapes_everything(tmp_path):
    evil = '<script>alert("x")</script> & </div>'
    found = compare({"<b>a": [evil, "c"], "b": ["a", "c"]}, ["a", "c"], sources=[evil, "c"], samples=5)
    write_page(found, tmp_path / "page.html")
    reader = Reader()
    reader.feed((tmp_path / "page.html").read_text())
    assert reader.tags.count("script") == 1 and "b" not in reader.tags
    assert evil in reader.text and all(address.startswith("data:") for address in reader.addresses)
    assert "http" not in render(found).replace("http-equiv", "")


def test_marks_are_on_the_words_that_differ():
    assert marked("der <Hund> bellt", "der Hund bellt") == "der <mark>&lt;Hund&gt;</mark> bellt"


def test_the_picture_is_drawn(tmp_path):
    draw_by_length(compare({"a": BAD, "b $x": GOOD}, REFERENCES, samples=5), tmp_path / "length.png")
    assert (tmp_path / "length.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="two systems"):
        compare({"a": ["x"]}, ["x"])
    with pytest.raises(UsageError, match="1 outputs for 2 references"):
        compare({"a": ["x", "y"], "b": ["x"]}, ["x", "y"])
