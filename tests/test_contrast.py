"""Laws of contrastive evaluation: the order of items does not matter, and a planted rule is found exactly."""

import gzip
import json
import random

import pytest

from regard.cli import main
from regard.evaluation.contrast import Item, by_model, contrast, looks_like_id, read_suite, warn_of_equals, warn_of_ids
from regard.evaluation.senses import SenseItem, count_senses, read_key
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.intervals import wilson
from tests.stored_runs import FIXTURES
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
    assert (found.facts()["total"]["by_source_low"], found.facts()["total"]["by_source_high"]) == wilson(4, 4)
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
    with pytest.raises(UsageError, match="only one"):
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
        ("a\tb\tc\na\tb\n", r":2 has 2 tab-separated columns, but there must be at least 3"),
        ("source\tcorrect\nx\ty\n", "no column `wrong`"),
        ("source\tcorrect\twrong\nx\ty\t\n", r":2 has no wrong target"),
        ("source\tcorrect\twrong\nx\ty\tz\tz\n", r":2 has 4 tab-separated columns, but there must be 3"),
        ('{"source": "a", "correct": "b", "wrong": []}\n', r":1 is not an item"),
        ('{"source": "a", "wrong": "b"}\n', r":1 is not an item"),
        ('{"source": "a", "correct": "b", "wrong": "c"}\n[]\n', r":2 is not an item"),
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


def test_sources_that_look_like_ids_are_warned_of():
    assert looks_like_id("bn:00012345n") and looks_like_id("12 34 56") and looks_like_id("")
    assert not looks_like_id("A dog runs.") and not looks_like_id("一只狗在跑。") and not looks_like_id("Чёрный кот")
    ids = [Item(f"w{number}", "books", ("bank",), "key") for number in range(30)]
    assert "30 of 30 sources" in warn_of_ids(ids) and "`w0`" in warn_of_ids(ids)
    sentences = [Item("a dog runs", "x", ("y",), "key")] * 30
    assert warn_of_ids(sentences) is None and warn_of_ids([*sentences, ids[0]]) is None
    assert "15 of 45" in warn_of_ids([*sentences, *ids[:15]])


SENSES = [
    SenseItem("the bank of the river", ("Ufer", "Flussufer"), ("Bank", "Geldinstitut"), "books"),
    SenseItem("the bank pays", ("Bank",), ("Ufer",), "books"),
    SenseItem("a long paper", ("Papier am Stück",), ("Zeitung",), "ted"),
]


def test_good_and_bad_words_are_counted_in_the_output():
    found = count_senses(SENSES, ["Am UFER, dort.", "Die Bank am Ufer zahlt.", "langes papier am stück."])
    assert found.found == ["right", "wrong", "right"]  # a bad word beside a good one is wrong, as MuCoW counts
    assert (found.total.right, found.total.wrong, found.total.neither) == (2, 1, 0)
    assert found.total.precision == pytest.approx(2 / 3) and found.categories["books"].precision == 0.5
    part = count_senses(SENSES, ["Uferlos.", "Banken", "am Papier Stück"])  # whole words, in their order
    assert part.found == ["neither"] * 3 and part.total.coverage == 0 and part.total.f1 == 0
    facts = json.loads(json.dumps(found.facts()))
    low, high = wilson(2, 3)
    assert facts["total"]["low"] == low and facts["total"]["high"] == high and facts["total"]["coverage"] == 1
    assert "precision" in str(found) and "66.7 %" in str(found)
    with pytest.raises(UsageError, match="2 outputs for 3 items"):
        count_senses(SENSES, ["a", "b"])


def test_every_way_of_writing_a_word_sense_suite_gives_the_same_items(tmp_path):
    (tmp_path / "s.tsv").write_text(
        "source\tgood\tbad\tcategory\nthe bank\tBank Geldinstitut\tUfer\tbooks\nthe bat\tSchläger\t\tted\n"
    )
    records = [
        {"source": "the bank", "good": ["Bank", "Geldinstitut"], "bad": "Ufer", "category": "books"},
        {"source": "the bat", "good": ["Schläger"], "category": "ted"},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "en-de.key.txt").write_text("1\tbooks\tbank\tBank Geldinstitut\tUfer\n2\tted\tbat\tSchläger\t\n")
    (tmp_path / "en-de.text.txt").write_text("the bank\nthe bat\n")
    expected = [
        SenseItem("the bank", ("Bank", "Geldinstitut"), ("Ufer",), "books"),
        SenseItem("the bat", ("Schläger",), (), "ted"),
    ]
    assert read_suite(tmp_path / "s.tsv") == read_suite(tmp_path / "s.jsonl") == expected
    assert read_key(tmp_path / "en-de.key.txt", tmp_path / "en-de.text.txt") == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("source\tgood\tbad\na\tb\n", r":2 has 2 tab-separated columns"),
        ("source\tgood\tbad\na\t\tb\n", r":2 is not an item"),
        ('{"source": "a", "good": [1], "bad": []}\n', r":1 is not an item"),
        ('{"source": "a", "good": ["b"]}\n7\n', r":2 is not an item"),
        ('{"source": "a", "good": [" "]}\n', r":1: ' ' is not a word"),
    ],
)
def test_a_wrong_word_sense_suite_is_told_with_its_line(content, message, tmp_path):
    (tmp_path / "suite.tsv").write_text(content)
    with pytest.raises(RegardError, match=message):
        read_suite(tmp_path / "suite.tsv")


def test_a_key_without_its_sentences_is_refused(tmp_path):
    (tmp_path / "key").write_text("1\tbooks\tbank\tBank\tUfer\n")
    (tmp_path / "text").write_text("a\nb\n")
    with pytest.raises(UsageError, match="has 1 lines, but"):
        read_key(tmp_path / "key", tmp_path / "text")
    (tmp_path / "key").write_text("1\tbooks\n2\tted\n")
    with pytest.raises(RegardError, match="has 2 tab-separated columns"):
        read_key(tmp_path / "key", tmp_path / "text")


def test_a_wrong_target_that_is_the_right_one_is_warned_of(tmp_path, capsys):
    assert warn_of_equals([Item("a b", "b", ("c",), "x")]) is None
    told = warn_of_equals([Item("a b", "b", ("c",), "x"), Item("a b", "b", ("c", "b"), "x")])
    assert told.startswith("1 of 2 items has a wrong target that equals the right one, the first of them item 2 (`b`).")
    run = str(FIXTURES / "format-1" / "translation-rnn")
    (tmp_path / "suite.tsv").write_text("w0 w1\tw0\tw1\nw0 w1\tw1\tw1\n")
    assert main(["contrast", run, str(tmp_path / "suite.tsv"), "--json"]) == 0
    said, errors = capsys.readouterr()
    assert "warning: 1 of 2 items has a wrong target that equals the right one" in errors
    assert json.loads(said)["warnings"] == [errors.removeprefix("warning: ").strip()]
