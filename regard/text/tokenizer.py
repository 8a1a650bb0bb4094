"""Tokenizers: raw text to ids and back, lossless except for normalisation."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.text.normalising import WORD_START, normaliser, without_surrogates
from regard.text.specials import SPECIALS, UNK

if TYPE_CHECKING:
    from regard.config.text import Tokenizer as Settings
    from regard.text.packed_rows import PackedRows, PackedWords

T = TypeVar("T", bound="Tokenizer")
Kind = Literal["bpe", "unigram", "characters", "words", "sentencepiece", "wordpiece"]
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""Tokens for single bytes, which spell characters without a token in UTF-8."""

_LONGEST_CACHED_WORD = 32
_FEW_WORDS = 16
_MOST_CACHED_WORDS = 100_000


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of a text, with the span and the word of each."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    """Span of raw characters of each token, without white space; `▁` alone spans the white space that it represents."""
    words: list[int]
    """Index of the whitespace-separated word of each token."""


class Tokenizer:
    """A trained tokenizer of the `tokenizers` library; `decode(encode(x).ids) == normalise(x)` for every `str`.

    (With kind `words`: for every text without an unknown word.) The space before a word is written `▁`, as in
    SentencePiece (Kudo and Richardson, 2018). Text that looks like a special token stays text.
    """

    def __init__(self, inner: tokenizers.Tokenizer):
        inner.encode_special_tokens = True  # "</s>" in raw text is four characters, not the end of the sentence
        self._inner = inner
        self._cache: dict[str, list[int]] = {}
        self._packed: PackedWords | None = None

    @classmethod
    def of(cls, settings: "Settings", model: models.Model) -> Self:
        """Return the tokenizer around a trained model, with the normalisation and pre-tokenisation of its kind."""
        inner = tokenizers.Tokenizer(model)
        inner.normalizer = normaliser(settings)
        inner.pre_tokenizer = splitter(settings.kind)
        inner.decoder = decoders.Sequence(
            [
                decoders.Replace(WORD_START, " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        )
        inner.add_special_tokens([AddedToken(special, special=True, normalized=False) for special in SPECIALS])
        return cls(inner)

    @cached_property
    def size(self) -> int:
        """Number of tokens, special ones included."""
        return int(self._inner.get_vocab_size())

    @cached_property
    def kind(self) -> Kind:
        """Its kind."""
        return _kind(json.loads(self._inner.to_str()))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines its behaviour."""
        content = json.dumps(json.loads(self._inner.to_str()), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @cached_property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        ids: Mapping[str, int] = self._inner.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """Merges of byte-pair encoding in the order of training; empty for other kinds."""
        return [(left, right) for left, right in json.loads(self._inner.to_str())["model"].get("merges", [])]

    def normalise(self, text: str) -> str:
        """Return the text after tokenising and detokenising; see `regard.text.normalising`."""
        normal: str = self._inner.normalizer.normalize_str(without_surrogates(text))
        return normal.removeprefix(" ")

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text, without special tokens."""
        text = without_surrogates(text)
        encoding = self._inner.encode(text, add_special_tokens=False)
        pieces = encoding.tokens
        if self.kind == "words":  # an unknown word hides its `▁`
            normal = self._inner.normalizer.normalize_str(text)
            pieces = [piece for piece, _ in self._inner.pre_tokenizer.pre_tokenize_str(normal)]
        word, words = -1, []
        for piece in pieces:
            word += piece.startswith(WORD_START)
            words.append(word)
        return Encoded(encoding.ids, encoding.tokens, _spans(text, pieces, encoding.offsets), words)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return only the ids of several texts; words are cached, since tokens do not cross words."""
        rows = [without_surrogates(text).split() for text in texts]
        cache = self._cache
        words = {word: cache[word] for row in rows for word in row if word in cache}
        new = list({word: None for row in rows for word in row if word not in words})
        for word, ids in zip(new, self._encode_words(new), strict=True):
            words[word] = ids
        self._cache = cache if len(cache) <= _MOST_CACHED_WORDS else {}
        self._cache.update((word, words[word]) for word in new if len(word) <= _LONGEST_CACHED_WORD)
        return [list(chain.from_iterable(map(words.__getitem__, row))) for row in rows]

    def encode_packed(self, texts: Sequence[str]) -> "PackedRows":
        """Return the ids of many texts in one array, in less time than `encode_batch`."""
        if self._packed is None or self._packed.is_full:
            from regard.text.packed_rows import PackedWords

            self._packed = PackedWords()
        return self._packed.join(list(map(without_surrogates, texts)), self._encode_words)

    def _encode_words(self, words: list[str]) -> list[list[int]]:
        if len(words) <= _FEW_WORDS:  # a batch wakes threads, which takes longer than a few words
            return [self._inner.encode(word, add_special_tokens=False).ids for word in words]
        return [encoding.ids for encoding in self._inner.encode_batch_fast(words, add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; special tokens are dropped, except `<unk>`."""
        tokens = []
        for index in ids:
            number = int(index)
            if not 0 <= number < self.size:
                raise RegardError(f"Token {number} is not in this tokenizer's vocabulary of {self.size} tokens.")
            if number == UNK:
                tokens.append(WORD_START + SPECIALS[UNK])
            elif number >= len(SPECIALS):
                tokens.append(self.vocabulary[number])
        text: str = self._inner.decoder.decode(tokens)
        return text

    def save(self, path: Path) -> None:
        """Write a plain `tokenizer.json` that the `tokenizers` library loads too."""
        durable.write(path, self._inner.to_str(pretty=True))

    @staticmethod
    def load(path: Path) -> "Tokenizer":
        """Load a tokenizer of any kind that `save` wrote; raises for any other file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RegardError(f"The tokenizer {path} cannot be read: {error}.") from error
        try:
            content = json.loads(text)
            if "sentencepiece" in content:
                from regard.text.sentencepiece import SentencePieceTokenizer

                return SentencePieceTokenizer.read(path, content)
            kind = _kind(content)
            _check_vocabulary(content)
            _check_parts(content)
            if kind == "wordpiece":
                from regard.text.wordpiece import WordPieceTokenizer

                return _try_out(WordPieceTokenizer(tokenizers.Tokenizer.from_str(text)))
            tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(text))
            tokenizer.kind = kind  # already known; finding it again would take as long as reading the file
            return _try_out(tokenizer)
        except (KeyboardInterrupt, SystemExit, MemoryError, RegardError):
            raise
        except BaseException as error:  # the library panics on some hostile files, outside of Exception
            raise RegardError(
                f"{path} is not a Regard tokenizer, or is damaged ({type(error).__name__}: {str(error)[:200]})."
            ) from error


def splitter(kind: Kind) -> pre_tokenizers.PreTokenizer:
    """Return the pre-tokenizer of a kind; tokens do not cross its boundaries."""
    words = pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="never", split=True)
    punctuation = pre_tokenizers.Punctuation("isolated")
    digits = pre_tokenizers.Digits(individual_digits=True)
    parts: dict[Kind, list[pre_tokenizers.PreTokenizer]] = {
        "bpe": [words, punctuation, digits],
        "unigram": [words, punctuation, digits],
        "characters": [words],
        "words": [words, punctuation],
    }
    return pre_tokenizers.Sequence(parts[kind])


def _kind(content: Mapping[str, Any]) -> Kind:
    """Return the kind of a `tokenizer.json`, from its model and its pre-tokenizer."""
    model = content["model"]["type"]
    parts = [part["type"] for part in content["pre_tokenizer"]["pretokenizers"]]
    if model == "BPE":
        return "characters" if parts == ["Metaspace"] else "bpe"
    return {"Unigram": "unigram", "WordLevel": "words", "WordPiece": "wordpiece"}[model]  # type: ignore[return-value]


def _check_vocabulary(content: Mapping[str, Any]) -> None:
    """Raise if a vocabulary has gaps, or does not begin with the special tokens."""
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):
        tokens = [piece for piece, _ in vocabulary]
    else:
        tokens = sorted(vocabulary, key=vocabulary.__getitem__)
        if [vocabulary[token] for token in tokens] != list(range(len(tokens))):
            raise ValueError("its token numbers have gaps")
    if tuple(tokens[: len(SPECIALS)]) != SPECIALS:
        raise ValueError(f"its first tokens are not {' '.join(SPECIALS)}")


def _check_parts(content: Mapping[str, Any]) -> None:
    """Raise if a file lacks a part that `save` always writes, or has a setting that it never writes.

    The library would fail on some of these only in use, and on others with unclear messages.
    """
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        if not isinstance(content.get(part), dict):
            raise ValueError(f"it has no {part}")
    model = content["model"]
    for setting in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.get(setting):
            raise ValueError(f"its {setting} is not empty")
    unknown = model.get("unk_id") if model["type"] == "Unigram" else model.get("unk_token")
    if unknown != (UNK if model["type"] == "Unigram" else SPECIALS[UNK]):
        raise ValueError(f"its unknown token is not {SPECIALS[UNK]}")


def _try_out(tokenizer: T) -> T:
    """Use every part of a tokenizer once, so that a broken one is rejected when it is loaded."""
    text = "a B\u00e9 1, \U0010ffff"
    tokenizer.normalise(text)
    tokenizer.decode(tokenizer.encode(text).ids)
    tokenizer.decode(range(min(tokenizer.size, 300)))
    if len(tokenizer.vocabulary) != tokenizer.size or not all(tokenizer.vocabulary):
        raise ValueError("its vocabulary has tokens without a name")
    return tokenizer


def _spans(text: str, pieces: Sequence[str], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of raw characters, without white space and including combining marks that were composed."""
    spans: list[tuple[int, int]] = []
    following = bound = len(text)  # start of the next token, and of the next token after equal ones
    for piece, (first, last) in zip(reversed(pieces), reversed(offsets), strict=True):
        start, end = first, last
        if start < following:
            bound = following if end <= following else bound
            following = start
        if piece == WORD_START:
            spans.append((start, end) if text[start:end].isspace() else (start, start))
            continue
        while start < end and text[start].isspace():
            start += 1
        while end < bound and not text[end].isspace():
            end += 1
        spans.append((start, end))
    return spans[::-1]
