"""Laws of tokenizers: nothing is lost but what normalising says, and every token knows where it comes from."""

import json
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.text import Text
from regard.config.text import Tokenizer as Settings
from regard.data.corpus import Pair
from regard.foundation.errors import RegardError, UsageError
from regard.text import unigram
from regard.text.dropout import BpeDropout
from regard.text.learning import train_tokenizers
from regard.text.specials import BOS, EOS, PAD, SPECIALS, UNK
from regard.text.tokenizer import BYTES, Tokenizer

LOSSLESS = ("bpe", "unigram", "characters")
KINDS = (*LOSSLESS, "words")

SENTENCES = (
    "Two young, white males are outside near many bushes.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Several men in hard hats are operating a giant pulley system (12 of them, in 2018).",
    "Mehrere Männer mit Schutzhelmen bedienen ein Antriebsradsystem, ohne Eile!",
    'A little girl climbing into a wooden playhouse; she said: "It\'s mine".',
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz, das sie „meins“ nennt.",
    "Ça va? Où est-ce que l'élève étudie à 9 h 30 ?",
    "Привет, мир! Καλημέρα κόσμε. 今日は良い天気です。",
)
PAIRS = [Pair(a, b) for a in SENTENCES for b in SENTENCES] * 2

PARTS = [
    "</s>",
    "<pad>",
    "<unk>",
    "<s>",
    "<0x41>",
    "<0xFF>",
    "▁",
    "▁a",
    "\ud800",
    "\udfff",
    "\0",
    "\r\n",
    "\u2028",
    "\x1c",
    "\x85",
]
PARTS += [
    "e\u0301",
    "\u0301",
    "ﬁ",
    "½",
    "Å",
    "\u00a0",
    "\u3000",
    "👩‍👩‍👧",
    "🇩🇪",
    "שלום",
    "مرحبا",
    "한국",
    "가",
    "İ",
    "ß",
    "ς",
    "_",
    "12",
    "  ",
]
ANY_TEXT = st.one_of(
    st.text(),
    st.text(st.characters(codec=None)),
    st.lists(st.one_of(st.sampled_from([*PARTS, *" ".join(SENTENCES).split()]), st.text(max_size=3))).map("".join),
    st.lists(st.sampled_from([*PARTS, *" ".join(SENTENCES).split()])).map(" ".join),
)


@cache
def trained(kind: str, unicode: str = "nfc", lower: bool = False) -> Tokenizer:
    settings = Settings(kind=kind, min_frequency=1, unicode=unicode, lower=lower)
    return train_tokenizers(Text(tokenizer=settings), lambda: PAIRS)[0]


def visible(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=150)
def test_detokenised_is_normalised(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.decode(tokenizer.encode(text).ids) == tokenizer.normalise(text)


@pytest.mark.parametrize(("unicode", "lower"), [("nfkc", False), ("none", False), ("nfc", True), ("nfkc", True)])
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=60)
def test_detokenised_is_normalised_under_every_normalisation(unicode: str, lower: bool, text: str) -> None:
    tokenizer = trained("bpe", unicode, lower)
    assert tokenizer.decode(tokenizer.encode(text).ids) == tokenizer.normalise(text)


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=100)
def test_words_are_lossless_where_none_is_unknown(text: str) -> None:
    tokenizer = trained("words")
    encoded = tokenizer.encode(text)
    if UNK not in encoded.ids:
        assert tokenizer.decode(encoded.ids) == tokenizer.normalise(text)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_words_bring_known_sentences_back_exactly(sentence: str) -> None:
    tokenizer = trained("words")
    assert tokenizer.decode(tokenizer.encode(sentence).ids) == sentence


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=100)
def test_a_batch_is_its_texts_one_by_one(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.encode_batch([text, "", text]) == [tokenizer.encode(text).ids, [], tokenizer.encode(text).ids]


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=60)
def test_no_text_becomes_a_special_token(kind: str, text: str) -> None:
    ids = trained(kind).encode(text + " ".join(SPECIALS)).ids
    assert not set(ids) & ({*range(len(SPECIALS))} - ({UNK} if kind == "words" else set()))


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=150)
def test_normalising_is_what_python_would_do(text: str) -> None:
    known = "".join(c for c in text if unicodedata.category(c) != "Cn")  # Unicode versions differ in new characters
    whole = re.sub("[\ud800-\udfff]", "\ufffd", known)
    expected = " ".join(unicodedata.normalize("NFC", whole).split()).replace("▁", "_")
    assert trained("bpe").normalise(known) == expected


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=60)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    tokenizer = trained("bpe", "nfkc")
    assert tokenizer.normalise(tokenizer.normalise(text)) == tokenizer.normalise(text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=100)
def test_spans_lie_in_the_raw_text_in_order_and_cover_all_that_is_visible(kind: str, text: str) -> None:
    encoded = trained(kind).encode(text)
    assert len(encoded.ids) == len(encoded.tokens) == len(encoded.offsets) == len(encoded.words)
    covered = bytearray(len(text))
    last = 0
    for start, end in encoded.offsets:
        assert 0 <= start <= end <= len(text)
        assert start >= last
        last = start
        covered[start:end] = b"\1" * (end - start)
    assert all(covered[place] or character.isspace() for place, character in enumerate(text))


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=100)
def test_every_token_knows_its_word(kind: str, text: str) -> None:
    encoded = trained(kind).encode(text)
    words = text.split()
    assert sorted(set(encoded.words)) == list(range(len(words)))
    assert encoded.words == sorted(encoded.words)
    for token, (start, end), word in zip(encoded.tokens, encoded.offsets, encoded.words, strict=True):
        if token != "▁":
            assert text[start:end] in words[word]


def test_spans_survive_what_normalising_changes() -> None:
    text = "  e\u0301te\u0301\u00a0 ▁x\u3000€ "
    encoded = trained("characters").encode(text)
    spans = [
        text[start:end] for (start, end), token in zip(encoded.offsets, encoded.tokens, strict=True) if token != "▁"
    ]
    assert spans == ["e\u0301", "t", "e\u0301", "▁", "x", "€", "€", "€"]
    assert encoded.words == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_bytes_that_are_no_utf8_decode_to_replacement_characters() -> None:
    tokenizer = trained("bpe")
    byte = {token: place for place, token in enumerate(tokenizer.vocabulary)}
    assert tokenizer.decode([byte["<0xC3>"], byte["<0xA9>"]]) == "é"
    assert set(tokenizer.decode([byte["<0xFF>"], byte["<0xC3>"]])) == {"\ufffd"}


@given(ids=st.lists(st.integers(0, 262)))
@settings(deadline=None, max_examples=50)
def test_any_ids_decode(ids: list[int]) -> None:
    assert isinstance(trained("bpe").decode(ids), str)


def test_special_tokens_are_dropped_and_unknown_words_shown() -> None:
    tokenizer = trained("words")
    ids = tokenizer.encode("Two young bushes").ids
    assert tokenizer.decode([BOS, *ids, EOS, PAD]) == tokenizer.decode(ids)
    assert tokenizer.decode(tokenizer.encode("Two xyzzy males").ids) == "Two <unk> males"


@pytest.mark.parametrize("outside", [-1, 10**6])
def test_an_id_out_of_range_is_an_error(outside: int) -> None:
    with pytest.raises(RegardError, match="vocabulary"):
        trained("bpe").decode([outside])


@pytest.mark.parametrize("kind", KINDS)
def test_saved_is_loaded(kind: str, tmp_path: Path) -> None:
    tokenizer, path = trained(kind), tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert (loaded.kind, loaded.size, loaded.fingerprint) == (kind, tokenizer.size, tokenizer.fingerprint)
    assert loaded.encode_batch(SENTENCES) == tokenizer.encode_batch(SENTENCES)
    assert loaded.encode("</s>").ids == tokenizer.encode("</s>").ids
    library = tokenizers.Tokenizer.from_file(str(path))
    assert library.encode(SENTENCES[1]).ids == tokenizer.encode(SENTENCES[1]).ids
    assert library.decode(library.encode(SENTENCES[0]).ids) == tokenizer.normalise(SENTENCES[0])


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_and_bytes_come_first(kind: str) -> None:
    vocabulary = trained(kind).vocabulary
    assert tuple(vocabulary[: len(SPECIALS)]) == SPECIALS
    assert kind == "words" or tuple(vocabulary[len(SPECIALS) :][:256]) == BYTES


def test_the_fingerprint_follows_the_content() -> None:
    prints = [trained(kind).fingerprint for kind in KINDS] + [trained("bpe", "nfkc").fingerprint]
    assert len(set(prints)) == len(prints)


HOSTILE = {
    "empty": "",
    "no JSON": "hello",
    "a list": "[1, 2]",
    "another object": "{}",
    "null model": '{"model": null, "pre_tokenizer": null}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_tokenizer_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(RegardError, match="not a Regard tokenizer"):
        Tokenizer.load(path)


def test_a_missing_or_binary_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\0")
    for name in ("missing.json", "binary.json", "."):
        with pytest.raises(RegardError, match="cannot be read"):
            Tokenizer.load(tmp_path / name)


@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_a_truncated_tokenizer_is_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cut") / "tokenizer.json"
    trained("words").save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
    with pytest.raises(RegardError):
        Tokenizer.load(path)


def change(content: dict, name: str) -> None:
    vocabulary = content["model"]["vocab"]
    if name == "a gap":
        vocabulary["far away"] = 4_000_000_000
    elif name == "other first tokens":
        vocabulary["<pad>"], vocabulary["</s>"] = vocabulary["</s>"], vocabulary["<pad>"]
    elif name == "a wrong merge":
        content["model"]["merges"].append(["nobody", "knows"])
    elif name == "another model":
        content["model"]["type"] = "WordPiece"
    elif name == "a bad expression":
        content["normalizer"]["normalizers"][1]["pattern"]["Regex"] = "(("


@pytest.mark.parametrize("name", ["a gap", "other first tokens", "a wrong merge", "another model", "a bad expression"])
def test_a_tokenizer_changed_by_hand_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    trained("bpe").save(path)
    content = json.loads(path.read_text())
    change(content, name)
    path.write_text(json.dumps(content))
    with pytest.raises(RegardError, match="not a Regard tokenizer"):
        Tokenizer.load(path)


# --- learning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_corpus_gives_the_same_tokenizer(kind: str) -> None:
    first, second = (train_tokenizers(Text(tokenizer=Settings(kind=kind)), lambda: iter(PAIRS))[0] for _ in range(2))
    assert first.fingerprint == second.fingerprint


def test_shared_is_one_object_and_separate_are_two() -> None:
    source, target = train_tokenizers(Text(), lambda: PAIRS)
    assert source is target
    pairs = [Pair("a b c", "x y z")] * 4
    source, target = train_tokenizers(Text(joint=False, tokenizer=Settings(kind="words")), lambda: pairs)
    assert "▁a" in source.vocabulary and "▁a" not in target.vocabulary
    source, target = train_tokenizers(Text(target=Settings(kind="characters")), lambda: pairs)
    assert (source.kind, target.kind) == ("bpe", "characters")


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_larger_than_the_corpus_says_how_many_it_supports(kind: str) -> None:
    with pytest.raises(RegardError, match="supports only") as error:
        train_tokenizers(Text(tokenizer=Settings(kind=kind, vocabulary=50_000)), lambda: PAIRS)
    supported = int(re.search(r"vocabulary=(\d+)", str(error.value))[1])
    tokenizer, _ = train_tokenizers(Text(tokenizer=Settings(kind=kind, vocabulary=supported)), lambda: PAIRS)
    assert tokenizer.size == supported


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_that_the_corpus_supports_is_met_exactly(kind: str) -> None:
    size = 60 if kind == "words" else 320
    assert train_tokenizers(Text(tokenizer=Settings(kind=kind, vocabulary=size)), lambda: PAIRS)[0].size == size


@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_vocabulary_too_small_for_bytes_says_the_least(kind: str) -> None:
    with pytest.raises(RegardError, match="at least 263"):
        train_tokenizers(Text(tokenizer=Settings(kind=kind, vocabulary=100)), lambda: PAIRS)
    smallest, _ = train_tokenizers(Text(tokenizer=Settings(kind=kind, vocabulary=263)), lambda: PAIRS)
    assert smallest.decode(smallest.encode(SENTENCES[7]).ids) == SENTENCES[7]


def test_rare_characters_are_spelt_in_bytes() -> None:
    pairs = [Pair("aaa bbb", "aaa"), Pair("aaa €", "bbb")]
    tokenizer, _ = train_tokenizers(Text(tokenizer=Settings(kind="characters", min_frequency=2)), lambda: pairs)
    assert tokenizer.encode("a€").tokens == ["▁", "a", "<0xE2>", "<0x82>", "<0xAC>"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("extreme", [{"vocabulary": 10**30}, {"min_frequency": 10**30}])
def test_extreme_settings_never_crash(kind: str, extreme: dict[str, int]) -> None:
    try:
        tokenizer, _ = train_tokenizers(Text(tokenizer=Settings(kind=kind, **extreme)), lambda: PAIRS)
    except RegardError:
        return
    assert tokenizer.decode(tokenizer.encode(SENTENCES[0]).ids) == SENTENCES[0]


def test_a_corpus_of_nothing_has_no_tokenizer() -> None:
    with pytest.raises(RegardError, match="cannot be trained"):
        train_tokenizers(Text(), lambda: [Pair(" ", "\n")])


def test_unigram_prefers_what_is_frequent() -> None:
    units = Counter({"▁low": 50, "▁lower": 20, "▁newest": 60, "▁widest": 30})
    pieces = dict(unigram.learn(units, sorted(set("".join(units))), 24, 2))
    assert {"▁low", "▁newest", "▁widest"} <= set(pieces)
    assert abs(sum(np.exp(list(pieces.values()))) - 1) < 1e-3


# --- BPE-dropout ----------------------------------------------------------------------------------------------------


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=150)
def test_dropping_nothing_changes_nothing(text: str) -> None:
    tokenizer = trained("bpe")
    ids = tokenizer.encode(text).ids
    assert BpeDropout(tokenizer, 0.0)(ids, np.random.default_rng(0)).tolist() == ids


@given(text=ANY_TEXT, probability=st.floats(0, 0.99), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=100)
def test_dropping_merges_never_changes_the_text(text: str, probability: float, seed: int) -> None:
    tokenizer = trained("bpe")
    ids = tokenizer.encode(text).ids
    first, second = (BpeDropout(tokenizer, probability)(ids, np.random.default_rng(seed)) for _ in range(2))
    assert tokenizer.decode(first) == tokenizer.decode(ids)
    assert first.tolist() == second.tolist()


def test_dropping_almost_all_merges_leaves_characters() -> None:
    tokenizer = trained("bpe")
    ids = tokenizer.encode(SENTENCES[0]).ids
    cut = BpeDropout(tokenizer, 0.999999)(ids, np.random.default_rng(0))
    assert len(cut) == len(SENTENCES[0].split()) + len(visible(SENTENCES[0]))


def test_dropping_merges_needs_merges() -> None:
    with pytest.raises(UsageError, match="bpe_dropout"):
        BpeDropout(trained("unigram"), 0.1)
