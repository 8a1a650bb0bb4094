"""WordPiece vocabularies (Schuster and Nakajima, 2012), as BERT has them: trained elsewhere, read here."""

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
"""How a vocabulary file marks the pieces that go on with a word."""

MARKS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[SEP]", "[MASK]")
"""What our special tokens are called there, in our order; one symbol ends a text and stands between two."""

LONGEST_WORD = 100
"""Characters of a word that is looked up; a longer one is unknown."""


@dataclass(frozen=True)
class Folding:
    """What is done to text before it is cut."""

    lower: bool = True
    strip_accents: bool | None = None
    """By default, where it is lower-cased."""
    chinese: bool = True
    """Whether each Chinese character is a word."""
    clean: bool = True
    """Whether control characters are dropped."""


class WordPieceTokenizer(Tokenizer):
    """Words, cut at white space and punctuation, as the longest pieces of a vocabulary that fit, from the left.

    Pieces are kept as ours are: what begins a word has `▁` before it, what goes on with one has nothing. What cannot be
    made of pieces is unknown, as a whole word. Text comes back with a space around each punctuation mark.
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
        """Return the tokenizer of a vocabulary file, one piece a line."""
        return cls.of_vocabulary(renumbered(read_vocabulary(path), str(path))[0], Folding(lower=lower))

    @cached_property
    def kind(self) -> Kind:
        """It is `wordpiece`."""
        return "wordpiece"

    def normalise(self, text: str) -> str:
        """Return what is left of a text after tokenising and detokenising, as far as nothing in it is unknown."""
        normal = self._inner.normalizer.normalize_str(without_surrogates(text))
        return " ".join(word.removeprefix(WORD_START) for word, _ in self._inner.pre_tokenizer.pre_tokenize_str(normal))

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text, without special tokens."""
        text = without_surrogates(text)
        encoding = self._inner.encode(text, add_special_tokens=False)
        starts = [not here.isspace() and (not place or text[place - 1].isspace()) for place, here in enumerate(text)]
        number = [count - 1 for count in accumulate(starts)]  # of the word that each character stands in
        words = [max(number[start], 0) if start < len(number) else 0 for start, _ in encoding.offsets]
        return Encoded(encoding.ids, encoding.tokens, list(encoding.offsets), words)


def read_vocabulary(path: Path) -> list[str]:
    """Return the pieces of a `vocab.txt`, or of a `tokenizer.json` whose model is WordPiece, in the order of their numbers."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"The vocabulary {path} cannot be read ({error}). Fetch it again.") from error
    if path.suffix != ".json":
        return content.removesuffix("\n").split("\n")
    try:
        model = json.loads(content)["model"]
        if model["type"] != "WordPiece":
            raise RegardError(f"{path} is a tokenizer of the type {model['type']}, where BERT has WordPiece.")
        numbers: dict[str, int] = model["vocab"]
        pieces = sorted(numbers, key=numbers.__getitem__)
        whole = [numbers[piece] for piece in pieces] == list(range(len(pieces)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RegardError(f"{path} does not describe a tokenizer ({error}). Fetch it again.") from error
    if not whole:
        raise RegardError(f"{path} does not number its pieces from 0 without gaps.")
    return pieces


def read_folding(directory: Path) -> Folding:
    """Return how the text of a directory's model is folded, by its `tokenizer.json` or `tokenizer_config.json`."""
    known: dict[str, Any] = {}
    for name, names in (
        ("tokenizer.json", ("lowercase", "strip_accents", "handle_chinese_chars", "clean_text")),
        ("tokenizer_config.json", ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "clean_text")),
    ):
        try:
            content = json.loads((directory / name).read_text(encoding="utf-8"))
            said = content["normalizer"] if name == "tokenizer.json" else content
            found = dict(zip(("lower", "strip_accents", "chinese", "clean"), map(said.get, names), strict=True))
            known = {key: bool(value) for key, value in found.items() if value is not None} | known
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # there is none, or it says nothing of this: BERT's own way
    return Folding(**known)


def renumbered(pieces: Sequence[str], origin: str) -> tuple[list[str], list[int]]:
    """Return pieces in our order and as we write them, and the old number of each: special tokens first."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    if len(numbers) != len(pieces):
        twice = next(piece for number, piece in enumerate(pieces) if numbers[piece] != number)
        raise RegardError(f"{origin} has `{twice}` twice: it is no WordPiece vocabulary, or damaged.")
    missing = [mark for mark in dict.fromkeys(MARKS) if mark not in numbers]
    if missing:
        raise RegardError(f"{origin} has no {', '.join(missing)}: it is no vocabulary of BERT.")
    rest = [number for number, piece in enumerate(pieces) if piece not in MARKS]
    ours = [*SPECIALS, *(_ours(pieces[number]) for number in rest)]
    if len(set(ours)) != len(ours):
        raise RegardError(f"{origin} has pieces that begin with `{WORD_START}`, which marks the start of a word here.")
    return ours, [*(numbers[mark] for mark in MARKS), *rest]


def _ours(piece: str) -> str:
    """Return a piece as we write it."""
    goes_on = piece.startswith(CONTINUED) and len(piece) > len(CONTINUED)
    return piece.removeprefix(CONTINUED) if goes_on else WORD_START + piece
