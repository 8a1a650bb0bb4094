"""`regard translate --markup` and `--document`: HTML fragments and whole files."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.foundation.errors import RegardError

if TYPE_CHECKING:
    from regard.search import Search
    from regard.tasks.generation import TextGenerator
    from regard.text.inline_tags import Aligned
    from regard.text.markup import Segment


def translate_lines(translator: "TextGenerator", search: "Search", lines: Sequence[str]) -> list[str]:
    """Return lines of HTML, translated, each with its line break."""
    from regard.text.html_tree import parse
    from regard.text.markup import render, segments_of

    roots = [parse(line) for line in lines]
    segments = [segments_of(root) for root in roots]
    found = iter(_translate(translator, search, [segment for parts in segments for segment in parts]))
    return [
        " ".join(render(root, [next(found) for _ in parts]).splitlines()) + "\n"
        for root, parts in zip(roots, segments, strict=True)
    ]


def translate_file(translator: "TextGenerator", search: "Search", file: Path, output: Path | None) -> None:
    """Translate a document, and write it to a file or to standard output."""
    from regard.foundation import durable
    from regard.foundation.display import bar
    from regard.text.documents import Document

    try:
        content = file.read_bytes()
    except OSError as error:
        raise RegardError(f"{file} cannot be read: {error.strerror}.") from None
    document = Document.decode(file.name, content)
    translations: list[Aligned] = []
    with bar() as progress:
        for start in range(0, len(document.segments), 64):
            translations += _translate(translator, search, document.segments[start : start + 64])
            if progress:
                progress("translating", len(translations), len(document.segments))
    text = document.render(translations)
    if output is None:
        sys.stdout.write(text)
    else:
        durable.write(output, text)


def _translate(translator: "TextGenerator", search: "Search", segments: Sequence["Segment"]) -> "list[Aligned]":
    """Translate segments; those with tags also get an alignment."""
    from regard.tasks.aligned import translate_aligned
    from regard.text.inline_tags import Aligned

    plain = [segment.text for segment in segments if not segment.has_tags]
    tagged = [segment.text for segment in segments if segment.has_tags]
    outputs = iter(translator.translate(plain, search) if plain else [])
    aligned = iter(translate_aligned(translator, tagged, search) if tagged else [])
    return [next(aligned)[0] if segment.has_tags else Aligned(next(outputs), []) for segment in segments]
