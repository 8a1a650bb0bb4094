"""Reads corpora for analyses, and matches the words of annotated sentences to the tokens of a model."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.data.conllu import Sentence, read_conllu
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class MatchedSentence:
    """A sentence as the model reads it."""

    sentence: Sentence
    ids: list[int]
    """Its tokens, without special ones."""
    tokens: list[list[int]]
    """The places of each word's tokens: at least one."""


def match_tokens(sentence: Sentence, tokenizer: Tokenizer) -> MatchedSentence:
    """Assign each token to the word that contains most of its characters.

    A word that gets none of its own (the `n't` of a token `don't`) shares those that touch it; a word that no token
    touches cannot be matched, and its sentence is named.
    """
    encoded = tokenizer.encode(sentence.text)
    own: list[list[int]] = [[] for _ in sentence.words]
    touching: list[list[int]] = [[] for _ in sentence.words]
    for index, (start, end) in enumerate(encoded.offsets):
        shared = [min(end, word.end) - max(start, word.start) for word in sentence.words]
        if not shared or max(shared) <= 0:
            continue
        own[shared.index(max(shared))].append(index)
        for number, characters in enumerate(shared):
            if characters > 0:
                touching[number].append(index)
    for word, mine, near in zip(sentence.words, own, touching, strict=True):
        if not mine and not near:
            raise RegardError(
                f'The sentence at line {sentence.line} ("{sentence.text[:60]}") cannot be matched to the tokens: '
                f'none of them holds "{word.form}". Is the text the one that was annotated?'
            )
    return MatchedSentence(sentence, encoded.ids, [mine or near for mine, near in zip(own, touching, strict=True)])


def read_matched_sentences(
    path: Path | str, tokenizer: Tokenizer, *, longest: int, most: int | None = None
) -> list[MatchedSentence]:
    """The sentences of a CoNLL-U file with at most `longest` tokens, up to `most` of them."""
    found = list(islice(_short_sentences(read_conllu(path), tokenizer, longest), most))
    if not found:
        raise RegardError(f"{path} has no sentence of at most {longest} tokens: give another corpus.")
    return found


def _short_sentences(sentences: Iterable[Sentence], tokenizer: Tokenizer, longest: int) -> Iterator[MatchedSentence]:
    for sentence in sentences:
        matched = match_tokens(sentence, tokenizer)
        if len(matched.ids) <= longest:
            yield matched


def read_texts(path: Path | str, most: int) -> list[str]:
    """The texts of a CoNLL-U file, or the lines of any other that are not empty; up to `most`."""
    if Path(path).name.removesuffix(".gz").endswith(".conllu"):
        return [sentence.text for sentence in islice(read_conllu(path), most)]
    return list(islice((line for line in read_lines(path) if line.strip()), most))
