"""Plain text, document by document."""

from collections.abc import Iterator

from regard.config.text_corpora import JsonTexts, TextFiles
from regard.data.json_fields import json_sort, parse_json
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError


def read_documents(corpus: TextFiles | JsonTexts) -> Iterator[str]:
    """Yield the documents of a corpus that are not empty."""
    texts = _plain(corpus) if isinstance(corpus, TextFiles) else _json(corpus)
    return (text for text in texts if text.strip())


def _plain(corpus: TextFiles) -> Iterator[str]:
    for path in corpus.text:
        if corpus.documents == "lines":
            yield from read_lines(path)
            continue
        paragraph: list[str] = []
        for line in read_lines(path):
            if line.strip():
                paragraph.append(line)
            else:
                yield " ".join(paragraph)
                paragraph = []
        yield " ".join(paragraph)


def _json(corpus: JsonTexts) -> Iterator[str]:
    for path in corpus.json_text:
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            record = parse_json(line, place)
            if not isinstance(record, dict) or corpus.field not in record:
                known = ", ".join(map(str, list(record)[:10])) if isinstance(record, dict) else json_sort(record)
                raise RegardError(
                    f"{place} has no field `{corpus.field}` (found: {known}). Set field to the name of the text."
                )
            found = record[corpus.field]
            parts = found if isinstance(found, list) else [found]
            if not all(isinstance(part, str) for part in parts):
                raise RegardError(
                    f"{place}: field `{corpus.field}` is {json_sort(found)}, but it must be a string or a list of "
                    "strings."
                )
            yield " ".join(parts)
