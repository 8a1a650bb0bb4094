"""Sentences whose words have tags: CoNLL-U, or a word and its tag on each line."""

import re
from collections.abc import Iterator
from pathlib import Path

from regard.config.text_corpora import ColumnFiles, ConlluFiles
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError

_CONLLU_COLUMNS = 10
_TAG_COLUMN = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "head": 6, "deprel": 7, "deps": 8, "misc": 9}
_MAY_BE_EMPTY = ("feats", "deps", "misc")
"""Columns in which `_` is a value: the word has none of these."""

_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The number of a range of words or of an empty node."""
_COMMENT = re.compile(r"#\s*(newdoc|newpar)\b|#\s*[\w.:-]+\s+=\s|-DOCSTART-\s")
"""How lines begin that are no words: comments of CoNLL-U, and the first line of a document in CoNLL-2003."""

Word = tuple[str, str]
"""A word and its tag."""


def read_tagged(corpus: ConlluFiles | ColumnFiles) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each sentence as its words and its tags, both separated by spaces; white space in a word becomes `_`.

    The location of its first word comes first.
    """
    paths = corpus.conllu if isinstance(corpus, ConlluFiles) else corpus.columns
    for path in paths:
        sentence: list[Word] = []
        start = 1
        columns = _Columns(corpus, path) if isinstance(corpus, ColumnFiles) else None
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                if isinstance(corpus, ConlluFiles):
                    word = _conllu(line, corpus.tag, path, number, expected=len(sentence) + 1)
                else:
                    word = columns.read(line, number, begins=not sentence) if columns else None
                start = start if sentence else number
                sentence += [word] if word else []
            elif sentence:
                yield f"{path}:{start}", _join_words(sentence)
                sentence = []
        if sentence:
            yield f"{path}:{start}", _join_words(sentence)


def _join_words(sentence: list[Word]) -> tuple[str, str]:
    words, tags = zip(*sentence, strict=True)
    return " ".join("_".join(word.split()) for word in words), " ".join(tags)


def _conllu(line: str, tag: str, path: str, number: int, *, expected: int) -> Word | None:
    """Return the word of a line, or `None` for comments, ranges of words (`3-4`) and empty nodes (`5.1`).

    `expected` is the number of the next word of the sentence.
    """
    if line.startswith("#"):
        return None
    columns = line.split("\t")
    if len(columns) != _CONLLU_COLUMNS:
        raise RegardError(
            f"{path}:{number} has {len(columns)} tab-separated columns, but CoNLL-U has {_CONLLU_COLUMNS}. Correct the "
            "line, or name the file under `columns` if it has a word and a tag on each line."
        )
    if _NO_WORD.fullmatch(columns[0]):
        return None
    if columns[0] != str(expected):
        raise RegardError(
            f"{path}:{number} begins with `{columns[0][:20]}` where word {expected} was expected. Number the words of "
            "a sentence 1, 2, 3, … and end each sentence with an empty line."
        )
    word, found = columns[1].strip(), columns[_TAG_COLUMN[tag]].strip()
    if not word or not found or " " in found or (found == "_" and tag not in _MAY_BE_EMPTY):
        raise RegardError(
            f"{path}:{number} has the word `{word}` with the {tag} tag `{found}`, but every word needs one tag. "
            "Correct the "
            "line, or choose another column with `tag`, such as upos or xpos."
        )
    return word, found


class _Columns:
    """Reads the lines of one file, all of which have as many columns as the first."""

    def __init__(self, corpus: ColumnFiles, path: str) -> None:
        self.path = path
        self.chosen = corpus.word_column is not None or corpus.tag_column is not None
        self.word, self.tag = corpus.word_column or 1, corpus.tag_column or 2
        self.count: int | None = None
        self.is_numbered = Path(path.removesuffix(".gz")).suffix in (".conllu", ".conllup")

    def read(self, line: str, number: int, *, begins: bool) -> Word | None:
        """Return the word of a line, or `None` for one that is no word; `begins`: whether a sentence begins here."""
        if begins and _COMMENT.match(line):
            return None
        parts = [part.strip() for part in line.split("\t")] if "\t" in line.strip() else line.split()
        count = len(parts)
        if self.count is None:
            if count != 2 and not self.chosen:
                raise RegardError(
                    f"{self.path}:{number} has {count} columns, but a word and its tag are needed. Name the columns "
                    "with word_column and tag_column, counted from 1."
                )
            self.count = count
        if count != self.count:
            raise RegardError(
                f"{self.path}:{number} has {count} columns, but the lines before it have {self.count}. Remove what is "
                "extra, such as a tab, or add what is missing."
            )
        if max(self.word, self.tag) > count:
            raise RegardError(
                f"{self.path}:{number} has {count} columns, but column {max(self.word, self.tag)} is needed. Set "
                "word_column and tag_column to columns that exist."
            )
        if self.is_numbered and self.word > 1 and _NO_WORD.fullmatch(parts[0]):
            return None
        word, tag = parts[self.word - 1], parts[self.tag - 1]
        if not word or not tag or len(tag.split()) != 1:
            raise RegardError(
                f"{self.path}:{number} has the word `{word}` with the tag `{tag}`, but every word needs exactly one "
                "tag."
            )
        return word, tag
