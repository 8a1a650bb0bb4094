"""Gap sentences: documents without one of their sentences, to pretrain models that summarise (Zhang et al., 2020)."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from regard.config.text_corpora import GapSentences, JsonTexts, TextFiles
from regard.data.documents import read_documents
from regard.data.shared_words import count_words, f1
from regard.text.sentences import sentences

JSON_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
"""Endings of files with one JSON object per line; in others a document is a line."""


class Gap(NamedTuple):
    """A document without one of its sentences."""

    rest: str
    sentence: str
    document: str


def read_gap_sentences(corpus: GapSentences) -> Iterator[tuple[str, str]]:
    """Yield (document without one of its sentences, this sentence); a share `kept` has the whole document as source.

    Which documents are left whole depends only on the order of the pairs.
    """
    number = 0
    for path in corpus.gap_sentences:
        files = (
            JsonTexts(json_text=[path], field=corpus.field) if path.endswith(JSON_ENDINGS) else TextFiles(text=[path])
        )
        for document in read_documents(files):
            for gap in find_gaps(document, corpus):
                whole = int((number + 1) * corpus.kept) > int(number * corpus.kept)
                number += 1
                yield gap.document if whole else gap.rest, gap.sentence


def find_gaps(document: str, corpus: GapSentences) -> Iterator[Gap]:
    """Yield a gap for each of the most important sentences, those that share most words (F₁) with the others.

    A share `share` of the sentences is taken, at least one, and none of fewer than `min_words` or more than
    `max_words` words.
    """
    pieces = [piece for piece in sentences(document) if piece.text]
    words = [count_words(piece.text) for piece in pieces]
    total = sum(words, Counter[str]())
    fits = [corpus.min_words <= len(piece.text.split()) <= corpus.max_words for piece in pieces]
    places = [place for place, fit in enumerate(fits) if fit]
    places.sort(key=lambda place: -f1(words[place], total - words[place]))
    for place in places[: max(1, round(corpus.share * len(pieces)))]:
        rest = "".join(piece.text + piece.space for other, piece in enumerate(pieces) if other != place).strip()
        if rest:
            yield Gap(rest, pieces[place].text, document)
