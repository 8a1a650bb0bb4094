"""SentencePiece models (Kudo and Richardson, 2018) as tokenizers, read with the sentencepiece library."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.text.normalising import WORD_START, without_surrogates
from regard.text.specials import SPECIALS, UNK
from regard.text.tokenizer import BYTES, Encoded, Kind, Tokenizer

if TYPE_CHECKING:
    from regard.text.packed_rows import PackedRows


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model with a vocabulary: our special tokens first, then pieces in any order.

    The vocabulary may differ from the model's own: in Marian, two SentencePiece models share one. A piece that is not
    in the vocabulary is unknown. Tokens such as `>>de<<`, if the vocabulary has them, select the target language at the
    start of a source, as in multilingual Marian models.
    """

    def __init__(self, model: bytes, vocabulary: Sequence[str], *, origin: str) -> None:
        self.model = model
        self._vocabulary = list(vocabulary)
        self._processor = _processor(model, origin)
        self._ids = {token: number for number, token in enumerate(vocabulary) if number >= len(SPECIALS)}
        self._codes = tuple(token for token in self._ids if token.startswith(">>") and token.endswith("<<"))
        self._bytes = set(BYTES)

    @classmethod
    def of_model(cls, path: Path) -> Self:
        """Return the tokenizer of a model file with the model's own vocabulary."""
        try:
            model = path.read_bytes()
        except OSError as error:
            raise RegardError(f"The SentencePiece model {path} cannot be read: {error.strerror or error}.") from error
        processor = _processor(model, str(path))
        numbers = range(processor.get_piece_size())
        regular = [number for number in numbers if not (processor.is_control(number) or processor.is_unknown(number))]
        return cls(model, [*SPECIALS, *(processor.id_to_piece(number) for number in regular)], origin=str(path))

    @cached_property
    def size(self) -> int:
        """Number of tokens, special ones included."""
        return len(self._vocabulary)

    @cached_property
    def kind(self) -> Kind:
        """`sentencepiece`."""
        return "sentencepiece"

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines its behaviour."""
        return hashlib.sha256(self.model + json.dumps(self._vocabulary).encode()).hexdigest()

    @cached_property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        return self._vocabulary

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """Empty: the model does not expose its merges."""
        return []

    def normalise(self, text: str) -> str:
        """Return the text after tokenising and detokenising, if it has no unknown pieces."""
        normal: str = self._processor.normalize(without_surrogates(text))
        return normal.replace(WORD_START, " ").strip(" ")

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text, without special tokens."""
        code, rest = self._split_language_code(without_surrogates(text))
        start = len(text) - len(rest)
        tokens: list[str] = self._processor.encode(rest, out_type=str)
        offsets = [(start + first, start + last) for first, last in self._offsets(rest, tokens)]
        word, words = (0 if code else -1), []
        for token in tokens:
            word = max(word + token.startswith(WORD_START), 0)
            words.append(word)
        ids = [self._ids.get(token, UNK) for token in tokens]
        if not code:
            return Encoded(ids, tokens, offsets, words)
        return Encoded([self._ids[code], *ids], [code, *tokens], [(0, len(code)), *offsets], [0, *words])

    def encode_packed(self, texts: Sequence[str]) -> "PackedRows":
        """Return the ids of many texts in one array."""
        from regard.text.packed_rows import PackedRows

        return PackedRows.of(self.encode_batch(texts))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return only the ids of several texts."""
        coded = [self._split_language_code(without_surrogates(text)) for text in texts]
        cut: list[list[str]] = self._processor.encode([rest for _, rest in coded], out_type=str) if coded else []
        rows = [[self._ids.get(token, UNK) for token in tokens] for tokens in cut]
        return [[self._ids[code], *row] if code else row for (code, _), row in zip(coded, rows, strict=True)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; special tokens are dropped, except `<unk>`."""
        tokens: list[str] = []
        for index in ids:
            number = int(index)
            if not 0 <= number < self.size:
                raise RegardError(f"Token {number} is not in this tokenizer's vocabulary of {self.size} tokens.")
            if number == UNK:
                tokens[len(tokens) - (tokens[-1:] == [WORD_START]) :] = [WORD_START + SPECIALS[UNK]]
            elif number >= len(SPECIALS):
                tokens.append(self._vocabulary[number])
        text: str = self._processor.decode_pieces(tokens) if tokens else ""
        return text.replace(WORD_START, " ").strip(" ")  # pieces of another model keep their `▁`

    def save(self, path: Path) -> None:
        """Write the vocabulary to `path`, and the model next to it as `.spm`, which other tools can read."""
        content = {"sentencepiece": path.with_suffix(".spm").name, "vocabulary": self._vocabulary}
        durable.write(path.with_suffix(".spm"), self.model)
        durable.write(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path, content: Mapping[str, Any]) -> Self:
        """Load a tokenizer that `save` wrote, given its parsed JSON."""
        vocabulary = content["vocabulary"]
        if not isinstance(vocabulary, list) or tuple(vocabulary[: len(SPECIALS)]) != SPECIALS:
            raise ValueError(f"its first tokens are not {' '.join(SPECIALS)}")
        model_path = path.with_name(Path(str(content["sentencepiece"])).name)
        try:
            model = model_path.read_bytes()
        except OSError as error:
            raise RegardError(f"The tokenizer {path} needs {model_path}: {error.strerror or error}.") from error
        return cls(model, vocabulary, origin=str(model_path))

    def _split_language_code(self, text: str) -> tuple[str, str]:
        """Return the language code at the start of a text, if the vocabulary has it, and the rest."""
        code = next((code for code in self._codes if text.startswith(code)), "")
        return code, text[len(code) :]

    def _offsets(self, text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
        """Return spans of raw characters without white space; `▁` alone spans the white space that it represents."""
        normal, places = self._processor.normalize(text, with_offsets=True)
        spans: list[tuple[int, int]] = []
        here = spelt = 0  # position in the normalised text; bytes of the current character so far
        for token in tokens:
            first, spelt = here, spelt + 1 if token in self._bytes else 0
            if not spelt:
                here += len(token)
            elif spelt == len(normal[here : here + 1].encode()):
                here, spelt = here + 1, 0
            last = here + 1 if spelt else here
            start, end = places[min(first, len(places) - 1)], places[min(last, len(places) - 1)]
            if token != WORD_START:
                while start < end and text[start].isspace():
                    start += 1
                while end > start and text[end - 1].isspace():
                    end -= 1
            elif not text[start:end].isspace():
                end = start
            spans.append((start, end))
        return spans


def _processor(model: bytes, origin: str) -> Any:
    """Return the library's processor of a model; raises if the library is missing or the model invalid."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise RegardError(
            f"SentencePiece models need the sentencepiece library. Install it with `{install_command('huggingface')}`."
        ) from None
    processor = SentencePieceProcessor()
    try:
        whole = bool(model) and processor.LoadFromSerializedProto(model)
    except (RuntimeError, OSError, ValueError) as error:
        raise RegardError(f"{origin} is not a SentencePiece model, or is damaged. Download it again.") from error
    if not whole:
        raise RegardError(f"{origin} is not a SentencePiece model: it is empty or damaged.")
    return processor
