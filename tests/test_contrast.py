"""Laws of contrastive evaluation: the order of items does not matter, and a planted rule is found exactly."""

import gzip
import json
import random

import pytest

from regard.errors import RegardError, UsageError
from regard.evaluation.contrast import Item, by_model, contrast, read_suite
from regard.evaluation.intervals import wilson
from tests.test_likelihood import translator_of

ITEMS = [
    Item("abc", "abc", ("ab", "abcc"), "length"),
    Item("a b", "a b", ("b a",), "order"),
    Item("c", "c", ("", "a", "b"), "length"),
    Item("b", "b", ("b",), "same"),
    Item("cab", "c", ("cab", "a"), "planted"),
]


def copying(sources, targets):
    """A rule in place of a model: a target is good if it is the source."""
    return [float(source == target) for source, target in zip(sources, targets, strict=True)]


def test_the_accuracy_of_a_planted_rule_is_exact():
    found = contrast(ITEMS, copying)
    assert {name: one.accuracy for name, one in found.categories.items()} == {
        "length": 1.0, "order": 1.0, "same": 0.0, "planted": 0.0,
    }  # fmt: skip
    assert (found.total.right, found.total.count) == (3, 5)
    assert found.categories["length"].margin == 1.0 and found.categories["planted"].margin == -1.0
    assert found.categories["length"].chance == pytest.approx((1 / 3 + 1 / 4) / 2)


def test_a_control_takes_out_what_a_model_likes_whatever_the_source():
    def liking_short(sources, targets):
        return [0.1 * same - len(target) for same, target in zip(copying(sources, targets), targets, strict=True)]

    items = [Item(word, word, (word[:-1],), "cut") for word in ("abc", "bca", "cab", "acb")]
    found = contrast(items, liking_short, control=True)
    assert (found.total.right, found.total.gained) == (0, 4)
    assert "by source" in str(found) and found.facts()["total"]["accuracy_by_source"] == 1.0
    deaf = contrast(items, lambda _, targets: [-float(len(target)) for target in targets], control=True)
    assert deaf.total.gained == 0


def test_what_is_known_in_short_sentences_only_is_seen_by_length():
    def short_of_breath(sources, targets):
        return [float(s == t) if len(s.split()) < 10 else 0.0 for s, t in zip(sources, targets, strict=True)]

    items = [Item("a " * long, "a " * long, ("b",), name) for long in (3, 30) for name in ("x", "y") for _ in range(20)]
    found = contrast(items, short_of_breath)
    assert [[one.accuracy for one in several.values()] for several in found.lengths.values()] == [[1, 1], [0, 0]]
    assert sum(one.count for several in found.lengths.values() for one in several.values()) == len(items)
    assert "words in the source" in str(found) and set(found.facts()["lengths"]) == set(found.lengths)


def test_a_control_without_other_sources_is_refused():
    with pytest.raises(UsageError, match="one only"):
        contrast(ITEMS[:2], copying, control=True)


@pytest.mark.parametrize("per_token", [False, True])
def test_the_order_of_items_does_not_matter(per_token):
    translator = translator_of()
    order = random.Random(2).sample(range(len(ITEMS)), len(ITEMS))
    straight = contrast(ITEMS, by_model(translator, per_token=per_token)).margins
    shuffled = contrast([ITEMS[at] for at in order], by_model(translator, per_token=per_token)).margins
    assert shuffled == pytest.approx([straight[at] for at in order], abs=1e-4)


def test_the_margin_is_a_difference_of_log_probabilities():
    translator = translator_of()
    right, wrong = by_model(translator)(["a b", "a b"], ["a b", "b a"])
    assert contrast(ITEMS[1:2], by_model(translator)).margins == pytest.approx([right - wrong], abs=1e-4)


def test_every_way_of_writing_a_suite_gives_the_same_items(tmp_path):
    bare = "a\tb\tc\td\n\ne\tf\tg\n"
    titled = "category\tsource\tcorrect\twrong 1\twrong 2\nx\ta\tb\tc\td\n\te\tf\tg\t\n"
    records = [
        {"source": "a", "correct": "b", "wrong": ["c", "d"], "category": "x"},
        {"source": "e", "correct": "f", "wrong": "g"},
    ]
    (tmp_path / "kind.tsv.gz").write_bytes(gzip.compress(bare.encode()))
    (tmp_path / "kind.tsv").write_text(titled)
    (tmp_path / "kind.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_suite(tmp_path / "kind.tsv.gz") == [
        Item("a", "b", ("c", "d"), "kind"),
        Item("e", "f", ("g",), "kind"),
    ]
    expected = [Item("a", "b", ("c", "d"), "x"), Item("e", "f", ("g",), "kind")]
    assert read_suite(tmp_path / "kind.tsv") == read_suite(tmp_path / "kind.jsonl") == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a\tb\tc\na\tb\n", r":2 has 2 tab-separated columns; there must be at least 3"),
        ("source\tcorrect\nx\ty\n", "no column `wrong`"),
        ("source\tcorrect\twrong\nx\ty\t\n", r":2 has no wrong target"),
        ("source\tcorrect\twrong\nx\ty\tz\tz\n", r":2 has 4 tab-separated columns; there must be 3"),
        ('{"source": "a", "correct": "b", "wrong": []}\n', r":1 is no item"),
        ('{"source": "a", "wrong": "b"}\n', r":1 is no item"),
        ('{"source": "a", "correct": "b", "wrong": "c"}\n[]\n', r":2 is no item"),
        ('{"source"\n', r":1 is not valid JSON"),
    ],
)
def test_a_wrong_suite_is_told_with_its_line(content, message, tmp_path):
    (tmp_path / "suite.tsv").write_text(content)
    with pytest.raises(RegardError, match=message):
        read_suite(tmp_path / "suite.tsv")


def test_wilsons_interval():
    # Worked example of Newcombe (1998), 81 of 263: 0.2553 to 0.3662; and 0 of 20: 0 to 0.1611.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0, 1)
