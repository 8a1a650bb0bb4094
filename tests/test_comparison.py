"""Laws of comparison: what is the same is never different, and what is better is found to be."""

import json
import random
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.comparison import compare
from regard.evaluation.length_picture import draw_by_length
from regard.evaluation.side_by_side import compare_words, page_data, write_page
from regard.evaluation.slices import FEWEST, by_kind, by_length, frequencies, word_f1
from regard.foundation.errors import UsageError
from regard.metrics.intervals import small_sample_factor
from regard.metrics.scoring import make, score_text
from regard.metrics.significance import compare_statistics, correct, holm
from regard.pages import compare_page
from tests.null import most_by_chance

WORDS = ("der", "die", "das", "hund", "katze", "baum", "haus", "läuft", "schläft", "steht", "groß", "klein", "rot")


def render(found):
    return compare_page.render(page_data(found))


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


SIMULATIONS = 500


def null_comparison(generator, sentences, systems):
    """Statistics of several systems of exactly the same quality, whose scores depend on the sentence."""
    hard = generator.beta(2, 2, sentences)
    values = np.clip(hard + generator.normal(0, 0.2, (systems, sentences)), 0, 1)
    return [np.stack([row, np.ones(sentences)], axis=1) for row in values]


@pytest.mark.parametrize("sentences", [15, 60])
def test_the_null_is_called_significant_in_no_more_than_five_per_cent(sentences):
    metric, generator = make(["f1"])["f1"], np.random.default_rng(11 + sentences)
    false = {"bootstrap": 0, "randomisation": 0, "significant": 0}
    for seed in range(SIMULATIONS):
        first, second = null_comparison(generator, sentences, 2)
        found = compare_statistics(metric, first, second, samples=200, seed=seed)
        false["bootstrap"] += found.bootstrap < 0.05
        false["randomisation"] += found.randomisation < 0.05
        false["significant"] += found.significant
    assert max(false.values()) <= most_by_chance(SIMULATIONS), false
    assert min(false["bootstrap"], false["randomisation"]) >= SIMULATIONS * 0.02  # calibrated, not merely timid


def test_several_equal_systems_are_corrected_for_their_number():
    metric, generator = make(["f1"])["f1"], np.random.default_rng(5)
    any_raw = any_corrected = 0
    for seed in range(200):
        first, *others = null_comparison(generator, 40, 6)
        found = {
            str(number): compare_statistics(metric, first, other, samples=200, seed=seed)
            for number, other in enumerate(others)
        }
        any_raw += any(max(one.bootstrap, one.randomisation) < 0.05 for one in found.values())
        any_corrected += any(one.significant for one in correct(found).values())
    assert any_corrected <= most_by_chance(200) < any_raw


def test_holm_corrects_by_rank_and_keeps_the_order():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5]) == [0.5] and holm([]) == [] and holm([0.9, 0.8]) == [1.0, 1.0]


def test_one_sentence_proves_nothing():
    metric = make(["f1"])["f1"]
    found = compare_statistics(metric, np.array([[0.1, 1.0]]), np.array([[0.9, 1.0]]), samples=100)
    assert found.bootstrap == 1.0 and not found.significant
    assert small_sample_factor(1) == 1.0 < small_sample_factor(500) < 1.01 < 1.05 < small_sample_factor(20)


def test_raw_and_corrected_values_are_told_with_the_correction():
    found = compare({"bad": BAD, "close": spoilt(REFERENCES, 0.38), "good": GOOD}, REFERENCES, ["chrf"], samples=100)
    facts = found.facts()
    assert facts["correction"] == {"method": "holm", "tests": 2}
    good = facts["significance"]["good"]["chrf"]
    assert good["bootstrap_corrected"] == pytest.approx(2 * good["bootstrap"])
    assert "corrected for 2 systems by Holm's method" in str(found) and "Holm" in render(found)
    assert "no correction is needed" in str(compare({"bad": BAD, "good": GOOD}, REFERENCES, ["chrf"], samples=20))


def test_slices_say_whose_length_they_go_by():
    alone = compare({"bad": BAD, "good": GOOD}, REFERENCES, ["chrf"], samples=20)
    assert "by length of the reference" in str(alone) and "of the source" not in str(alone)
    assert "by length of the reference" in render(alone) and "of the source" not in render(alone)
    assert "Words in the reference" in render(alone) and alone.facts()["sliced_by"] == "reference"
    beside = compare({"bad": BAD, "good": GOOD}, REFERENCES, ["chrf"], sources=REFERENCES, samples=20)
    assert "by length of the source" in str(beside) and beside.facts()["sliced_by"] == "source"
    records = compare(
        {"bad": BAD, "good": GOOD},
        REFERENCES,
        ["chrf"],
        sources=['{"a": 1}'] * len(GOOD),
        sliced_by="reference",
        samples=20,
    )
    assert records.facts()["by_kind"] == alone.facts()["by_kind"] and records.sentences[0].source == '{"a": 1}'


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
    found = compare_words("der <Hund> bellt laut", "der Hund bellt sehr laut")
    assert found == [
        ("der", "same"),
        ("<Hund>", "extra"),
        ("Hund", "missing"),
        ("bellt", "same"),
        ("sehr", "missing"),
        ("laut", "same"),
    ]
    assert compare_words("", "ein Wort") == [("ein", "missing"), ("Wort", "missing")] and compare_words("", "") == []


def test_the_picture_is_drawn(tmp_path):
    draw_by_length(compare({"a": BAD, "b $x": GOOD}, REFERENCES, samples=5), tmp_path / "length.png")
    assert (tmp_path / "length.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="two systems"):
        compare({"a": ["x"]}, ["x"])
    with pytest.raises(UsageError, match="1 outputs for 2 references"):
        compare({"a": ["x", "y"], "b": ["x"]}, ["x", "y"])
