"""WordPiece tokenizers (Schuster and Nakajima, 2012), read from the vocabularies of BERT models."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from regard.foundation.errors import RegardError
from regard.text.normalising import WORD_START, without_surrogates
from regard.text.specials import SPECIALS, UNK
from regard.text.tokenizer import Encoded, Kind, Tokenizer

CONTINUED = "##"
"""Prefix of pieces that continue a word in a vocabulary file."""

MARKS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[SEP]", "[MASK]")
"""BERT's names of our special tokens, in our order; `[SEP]` both ends a text and separates two."""

LONGEST_WORD = 100
"""In characters; longer words are unknown."""


@dataclass(frozen=True)
class Folding:
    """Normalisation before tokenising."""

    lower: bool = True
    strip_accents: bool | None = None
    """By default the same as `lower`."""
    chinese: bool = True
    """Whether each Chinese character is a word."""
    clean: bool = True
    """Whether control characters are dropped."""


class WordPieceTokenizer(Tokenizer):
    """Splits words at white space and punctuation, and each word greedily into the longest pieces from the left.

    Pieces are stored in our notation: `▁` before a piece that begins a word, nothing before one that continues it. A
    word that cannot be segmented is unknown. Decoded text has a space around each punctuation mark.
    """

    @classmethod
    def of_vocabulary(cls, pieces: Sequence[str], folding: Folding) -> Self:
        """Return a tokenizer of pieces in their order, our special tokens first."""
        numbers = {piece: number for number, piece in enumerate(pieces)}
        inner = tokenizers.Tokenizer(
            models.WordPiece(
                numbers,
                unk_token=SPECIALS[UNK],
                continuing_subword_prefix="",
                max_input_chars_per_word=LONGEST_WORD + len(WORD_START),
            )
        )
        inner.normalizer = normalizers.BertNormalizer(
            clean_text=folding.clean,
            handle_chinese_chars=folding.chinese,
            strip_accents=folding.strip_accents,
            lowercase=folding.lower,
        )
        marked = pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always", split=False)
        inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), marked])
        inner.decoder = decoders.Sequence(
            [decoders.Replace(WORD_START, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        inner.add_special_tokens([AddedToken(special, special=True, normalized=False) for special in SPECIALS])
        return cls(inner)

    @classmethod
    def of_model(cls, path: Path, *, lower: bool) -> Self:
        """Return the tokenizer of a vocabulary file, one piece per line."""
        return cls.of_vocabulary(renumber_pieces(read_vocabulary(path), str(path))[0], Folding(lower=lower))

    @cached_property
    def kind(self) -> Kind:
        """`wordpiece`."""
        return "wordpiece"

    def normalise(self, text: str) -> str:
        """Return the text after tokenising and detokenising, if it has no unknown words."""
        normal = self._inner.normalizer.normalize_str(without_surrogates(text))
        return " ".join(word.removeprefix(WORD_START) for word, _ in self._inner.pre_tokenizer.pre_tokenize_str(normal))

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text, without special tokens."""
        text = without_surrogates(text)
        encoding = self._inner.encode(text, add_special_tokens=False)
        starts = [not here.isspace() and (not index or text[index - 1].isspace()) for index, here in enumerate(text)]
        number = [count - 1 for count in accumulate(starts)]  # word of each character
        words = [max(number[start], 0) if start < len(number) else 0 for start, _ in encoding.offsets]
        return Encoded(encoding.ids, encoding.tokens, list(encoding.offsets), words)


def read_vocabulary(path: Path) -> list[str]:
    """Return the pieces of a `vocab.txt`, or of a `tokenizer.json` of type WordPiece, in the order of their ids."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"The vocabulary {path} cannot be read ({error}). Download it again.") from error
    if path.suffix != ".json":
        return content.removesuffix("\n").split("\n")
    try:
        model = json.loads(content)["model"]
        if model["type"] != "WordPiece":
            raise RegardError(f"{path} is a tokenizer of type {model['type']}, but BERT has WordPiece.")
        numbers: dict[str, int] = model["vocab"]
        pieces = sorted(numbers, key=numbers.__getitem__)
        whole = [numbers[piece] for piece in pieces] == list(range(len(pieces)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RegardError(f"{path} does not describe a tokenizer ({error}). Download it again.") from error
    if not whole:
        raise RegardError(f"{path} does not number its pieces from 0 without gaps.")
    return pieces


def read_folding(directory: Path) -> Folding:
    """Read the normalisation of a model from its `tokenizer.json` or `tokenizer_config.json`."""
    known: dict[str, Any] = {}
    for name, names in (
        ("tokenizer.json", ("lowercase", "strip_accents", "handle_chinese_chars", "clean_text")),
        ("tokenizer_config.json", ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "clean_text")),
    ):
        try:
            content = json.loads((directory / name).read_text(encoding="utf-8"))
            settings = content["normalizer"] if name == "tokenizer.json" else content
            found = dict(zip(("lower", "strip_accents", "chinese", "clean"), map(settings.get, names), strict=True))
            known = {key: bool(value) for key, value in found.items() if value is not None} | known
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # no such file or setting: BERT's default
    return Folding(**known)


def renumber_pieces(pieces: Sequence[str], origin: str) -> tuple[list[str], list[int]]:
    """Return pieces in our order and notation, special tokens first, and the old id of each."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    if len(numbers) != len(pieces):
        twice = next(piece for number, piece in enumerate(pieces) if numbers[piece] != number)
        raise RegardError(f"{origin} has `{twice}` twice. It is not a WordPiece vocabulary, or is damaged.")
    missing = [mark for mark in dict.fromkeys(MARKS) if mark not in numbers]
    if missing:
        raise RegardError(f"{origin} has no {', '.join(missing)}. It is not a BERT vocabulary.")
    rest = [number for number, piece in enumerate(pieces) if piece not in MARKS]
    ours = [*SPECIALS, *(_to_our_notation(pieces[number]) for number in rest)]
    if len(set(ours)) != len(ours):
        raise RegardError(f"{origin} has pieces that begin with `{WORD_START}`, which marks the start of a word here.")
    return ours, [*(numbers[mark] for mark in MARKS), *rest]


def _to_our_notation(piece: str) -> str:
    """Return a piece in our notation."""
    goes_on = piece.startswith(CONTINUED) and len(piece) > len(CONTINUED)
    return piece.removeprefix(CONTINUED) if goes_on else WORD_START + piece
