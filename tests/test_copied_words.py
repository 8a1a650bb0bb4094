"""BPE dropout for models that copy: equal words of source and target are cut alike."""

import numpy as np
import pytest

from regard.config.text import Tokenizer as Settings
from regard.text.dropout import BpeDropout
from regard.text.learning import train
from regard.text.specials import BOS, SEP
from regard.text.tokenizer import Tokenizer

LINES = [
    "Aarhus Airport serves Aarhus, and (Aarhus) is nice 12 times.",
    "airports serving people nicely in Aarhus-Nord",
]
TEXTS = ["Airport Aarhus nice 12", "Aarhus, (Aarhus) Airport. Airport 12 nice"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train(Settings(), lambda: iter(LINES * 4), "text.tokenizer")


def cuts(tokenizer: Tokenizer, ids, word: str) -> set[tuple[str, ...]]:
    """Return how a word is cut wherever a space stands before it, without the pieces of what follows it."""
    pieces, found = [tokenizer.vocabulary[token] for token in ids], set()
    for start in range(len(pieces)):
        for end in range(start + 1, len(pieces) + 1):
            if "".join(pieces[start:end]) == f"▁{word}":
                found.add(tuple(piece for piece in pieces[start:end]))
    return found


def test_equal_words_are_cut_alike(tokenizer: Tokenizer) -> None:
    rows, dropout, seen = tokenizer.encode_batch(TEXTS), BpeDropout(tokenizer, 0.5), set()
    for seed in range(20):
        both = dropout.together(rows, np.random.default_rng(seed))
        assert [tokenizer.decode(ids) for ids in both] == TEXTS
        for word in ("Airport", "Aarhus", "nice"):
            (source,), target = cuts(tokenizer, both[0], word), cuts(tokenizer, both[1], word)
            assert target == {source}, (word, seed)
        seen.add(tuple(both[0].tolist()))
    assert len(seen) > 10


def test_markers_of_fields_end_words(tokenizer: Tokenizer) -> None:
    name, town = tokenizer.encode_batch(["Aarhus", "Airport"])
    dropout = BpeDropout(tokenizer, 0.5)
    for seed in range(20):
        source, target = dropout.together([[BOS, *name, SEP, *town], [*town, *name]], np.random.default_rng(seed))
        rest = [token for token in source.tolist() if token not in (BOS, SEP)]
        assert sorted(rest) == sorted(target.tolist()), seed
        assert source.tolist().count(SEP) == 1


def test_the_same_draws_give_the_same_cuts(tokenizer: Tokenizer) -> None:
    rows, dropout = tokenizer.encode_batch(TEXTS), BpeDropout(tokenizer, 0.5)
    one, other = (dropout.together(rows, np.random.default_rng(3)) for _ in range(2))
    assert [ids.tolist() for ids in one] == [ids.tolist() for ids in other]


def test_nothing_changes_without_dropout(tokenizer: Tokenizer) -> None:
    rows = tokenizer.encode_batch([*TEXTS, *LINES])
    found = BpeDropout(tokenizer, 0.0).together(rows, np.random.default_rng(0))
    assert [ids.tolist() for ids in found] == rows
