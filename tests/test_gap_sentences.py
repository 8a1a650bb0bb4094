"""Gap sentences: what is taken out of a document, and what a model learns from it."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.config.loading import from_mapping
from regard.config.text_corpora import GapSentences
from regard.data.corpus import read
from regard.data.gap_sentences import find_gaps
from regard.foundation.errors import RegardError
from regard.training.loop import train

WORDS = st.sampled_from(["oil", "gas", "power", "price", "contract", "meeting", "friday", "please", "the", "a", "of"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(lambda words: " ".join(words).capitalize() + ".")
DOCUMENTS = st.lists(SENTENCES, min_size=1, max_size=12).map("\n".join)


def corpus(path: str = "mails.jsonl", **settings: float) -> GapSentences:
    return GapSentences.model_validate({"gap_sentences": path, "field": "text", **settings})


def overlap(one: str, other: str) -> float:
    """ROUGE-1 by its definition: matched words of both sides, with multiplicity."""
    left, right = one.lower().replace(".", "").split(), other.lower().replace(".", "").split()
    shared = sum(min(left.count(word), right.count(word)) for word in set(left))
    return 2 * shared / (len(left) + len(right))


@given(document=DOCUMENTS, share=st.sampled_from([0.1, 0.3, 0.5, 1.0]))
@settings(deadline=None)
def test_a_document_is_its_gap_and_the_rest(document: str, share: float) -> None:
    """Nothing is lost or added; the targets are the fitting sentences with the largest ROUGE-1 of the rest."""
    given_sentences = document.split("\n")
    gaps = list(find_gaps(document, corpus(share=share, min_words=2, max_words=10)))
    fitting = [sentence for sentence in given_sentences if 2 <= len(sentence.split()) <= 10]
    most = max(1, round(share * len(given_sentences)))
    assert len(gaps) == (min(most, len(fitting)) if len(given_sentences) > 1 else 0)
    for gap in gaps:
        assert gap.document == document
        assert Counter(gap.rest.split("\n")) + Counter([gap.sentence]) == Counter(given_sentences)
    scores = [overlap(gap.sentence, gap.rest) for gap in gaps]
    rest = Counter(fitting) - Counter(gap.sentence for gap in gaps)
    for sentence in rest if gaps else ():
        others = given_sentences.copy()
        others.remove(sentence)
        assert overlap(sentence, "\n".join(others)) <= min(scores)


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.5, 1.0])
def test_the_share_of_whole_documents(tmp_path: Path, kept: float) -> None:
    """Of every prefix of the pairs, this share (rounded down) has the whole document as source."""
    path = tmp_path / "mails.jsonl"
    texts = [f"The meeting {number} is on Friday.\nPlease come to meeting {number}.\nBye." for number in range(40)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pairs = list(read(corpus(str(path), kept=kept, share=0.6)))
    assert len(pairs) == 80  # of three sentences, 0.6 are two
    whole = [pair.target in pair.source for pair in pairs]
    assert [sum(whole[:count]) for count in range(81)] == [int(count * kept) for count in range(81)]


def test_lines_and_json_give_the_same_pairs(tmp_path: Path) -> None:
    texts = ["One two three four. Two three four five. Six seven eight.", "Alone."]
    plain, packed = tmp_path / "mails.txt", tmp_path / "mails.jsonl.gz"
    plain.write_text("\n".join(texts) + "\n")
    packed.write_bytes(gzip.compress("".join(json.dumps({"text": text}) + "\n" for text in texts).encode()))
    pairs = list(read(corpus(str(plain))))
    assert pairs == list(read(corpus(str(packed)))) and len(pairs) == 1


def test_documents_of_one_sentence_have_no_gaps(tmp_path: Path) -> None:
    path = tmp_path / "mails.txt"
    path.write_text("Only one sentence here.\nAnother document with one sentence.\n")
    with pytest.raises(RegardError, match="no pairs"):
        list(read(corpus(str(path))))


def test_a_model_that_summarises_starts_from_gap_sentences(tmp_path: Path) -> None:
    """A run on plain documents, and one on summaries that takes its tokenizer and all its weights."""
    days = ["Monday", "Tuesday", "Friday"]
    rows = [
        {"text": f"Meeting {n % 13} is on {days[n % 3]}. Bring file {n % 11} on {days[n % 3]}.", "title": days[n % 3]}
        for n in range(300)
    ]
    path = tmp_path / "mails.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    side = {"kind": "transformer", "layers": 1}
    first = {
        "task": {"kind": "summarising"},
        "data": {"train": {"gap_sentences": str(path)}, "held_out": 20},
        "model": {"width": 32, "copying": True, "encoder": side, "decoder": side},
        "training": {"steps": 10, "device": "cpu"},
    }
    train(from_mapping(first), tmp_path / "first")
    second = {
        "task": {"kind": "summarising"},
        "data": {"train": {"jsonl": str(path), "source_field": "text", "target_field": "title"}, "held_out": 20},
        "model": {"start_from": str(tmp_path / "first")},
        "training": {"steps": 1, "device": "cpu", "optimizer": {"kind": "sgd", "learning_rate": 1e-9}},
    }
    train(from_mapping(second), tmp_path / "second")
    texts = [row["text"] for row in rows[:20]]
    assert regard.load(tmp_path / "first").translate(texts) == regard.load(tmp_path / "second").translate(texts)
