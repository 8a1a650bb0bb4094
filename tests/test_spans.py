"""Spans of words that tags mark: all schemes, F1, and a tagger that reports it."""

import json
from itertools import product
from pathlib import Path

import pytest

import regard
from regard.cli import main
from regard.config.text_corpora import ColumnFiles, ConlluFiles
from regard.data.tagged import read_tagged
from regard.foundation.errors import RegardError
from regard.metrics.spans import marks_spans, score_spans, spans_of


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-PER I-PER O B-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),
        ("I-PER I-PER O I-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),  # IOB1
        ("I-PER B-PER O", [(0, 1, "PER"), (1, 2, "PER")]),  # IOB1: B only between neighbours
        ("B-PER E-PER S-LOC", [(0, 2, "PER"), (2, 3, "LOC")]),  # IOBES
        ("B-PER L-PER U-LOC", [(0, 2, "PER"), (2, 3, "LOC")]),  # BILOU
        ("B-PER I-LOC", [(0, 1, "PER"), (1, 2, "LOC")]),
        ("O I-PER", [(1, 2, "PER")]),
        ("B-A-B I-A-B", [(0, 2, "A-B")]),
        ("O O", []),
        ("", []),
    ],
)
def test_every_scheme_marks_the_same_spans(tags, spans):
    assert list(spans_of(tags.split())) == spans


def test_spans_do_not_overlap_and_cover_all_marked_words():
    for tags in product(["O", "B-X", "I-X", "I-Y", "E-X", "S-Y"], repeat=4):
        spans = list(spans_of(tags))
        covered = [place for start, end, _ in spans for place in range(start, end)]
        assert covered == [place for place, tag in enumerate(tags) if tag != "O"]


def test_f1_counts_whole_spans():
    outputs = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER"]]
    references = [["B-PER", "I-PER", "O", "B-ORG"], ["B-PER", "I-PER"]]
    scores = score_spans(outputs, references)
    assert scores["span_f1"] == pytest.approx(100 * 2 * 1 / (3 + 3))
    names = ("span_precision", "span_recall", "span_f1", "span_count")
    assert [scores.details[name]["PER"] for name in names] == [50.0, 50.0, 50.0, 2.0]
    assert scores.details["span_recall"]["LOC"] == 0 and score_spans([], [])["span_f1"] == 0


@pytest.mark.parametrize(
    ("tags", "marked"),
    [("O B-PER I-PER", True), ("B-X", True), ("NOUN VERB O", False), ("O", False), ("B I O", False), ("", False)],
)
def test_only_tags_of_a_scheme_mark_spans(tags, marked):
    assert marks_spans(tags.split()) == marked


def test_a_tagger_of_names_reports_spans_and_probabilities(tmp_path, capsys):
    people, places = ["Ann Lee", "Bo Ray", "Cy Fox", "Di Orr"], ["Rome", "Bonn", "Oslo", "Kyiv", "Lima"]
    lines = []
    for person, place, verb in product(people, places, ["lives", "works", "sleeps", "eats"]):
        words = zip([*person.split(), verb, "in", place], ["B-PER", "I-PER", "O", "O", "B-LOC"], strict=True)
        lines += [*map("\t".join, words), ""]
    (tmp_path / "names.txt").write_text("\n".join(lines))
    settings = {
        "task": {"kind": "tagging"},
        "data": {"train": {"columns": str(tmp_path / "names.txt")}, "held_out": 8},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 16, "encoder": {"kind": "rnn", "layers": 1}},
        "training": {"steps": 60, "batch_tokens": 200, "early_stopping": {"metric": "span_f1"}},
    }
    (tmp_path / "my.yaml").write_text(json.dumps(settings))
    assert main(["train", str(tmp_path / "my.yaml"), "--run", str(tmp_path / "run")]) == 0
    assert "span F1" in capsys.readouterr().out
    tags = regard.load(tmp_path / "run")("Ann Lee lives in Rome")
    assert len(tags.probabilities) == 5 and all(0 < probability <= 1 for probability in tags.probabilities)
    assert tags.facts["probabilities"] == tags.probabilities


WORDS = [("Ann", "B-PER"), ("sees", "O"), ("#", "O")]


def conllu(sentences: list[list[str]]) -> str:
    """Sentences in CoNLL-U, whose words begin with a number; without an empty line at the end."""
    rows = [["\t".join([*row.split(), *"_" * 6, "NER=O"]) for row in rows] for rows in sentences]
    return "\n\n".join("\n".join(sentence) for sentence in rows)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_are_no_words_are_skipped(tmp_path: Path, end: str) -> None:
    """Comments, also of CoNLL-U Plus, and first lines of documents; a word may be `#`."""
    rows = [f"{word} {tag}" for word, tag in WORDS]
    lines = [
        "\ufeff# global.columns = FORM NER",
        "-DOCSTART- O",
        "",
        "# newdoc",
        "# sent_id = 1",
        *rows,
        "",
        "# O",
        *rows,
    ]
    (tmp_path / "a.txt").write_bytes(end.join(lines).encode())
    found = [pair for _, pair in read_tagged(ColumnFiles(columns=[str(tmp_path / "a.txt")]))]
    assert found == [("Ann sees #", "B-PER O O"), ("# Ann sees #", "O B-PER O O")]
    rows = ["1-2 don't _", "1 do AUX", "1.1 x _", "2 n't PART"]
    (tmp_path / "a.conllu").write_bytes(f"# text = don't\n{conllu([rows])}".replace("\n", end).encode())
    both = (
        ConlluFiles(conllu=[str(tmp_path / "a.conllu")], tag="lemma"),
        ColumnFiles(columns=[str(tmp_path / "a.conllu")], word_column=2, tag_column=3),
    )
    for corpus in both:
        assert [pair for _, pair in read_tagged(corpus)] == [("do n't", "AUX PART")]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([["1 a X", "3 b X"]], "begins with `3` where word 2 was expected"),
        ([["1 a X", "2 b X", "1 a X"]], "begins with `1` where word 3 was expected"),
        ([["1 a X", "x b X"]], "begins with `x` where word 2 was expected"),
        ([["1 a X", "2 b"]], "9 tab-separated columns"),
    ],
)
def test_words_out_of_order_are_refused(tmp_path: Path, rows: list[list[str]], reason: str) -> None:
    """They would be lost, or two sentences taken for one."""
    (tmp_path / "a.conllu").write_text(conllu([["1 a X"], *rows]))
    with pytest.raises(RegardError, match=reason):
        list(read_tagged(ConlluFiles(conllu=[str(tmp_path / "a.conllu")], tag="lemma")))
