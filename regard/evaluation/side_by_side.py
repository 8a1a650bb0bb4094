"""A comparison as plain data for its page: the scores, the bins of the chart, and the outputs of all systems."""

import difflib
from pathlib import Path

from regard.evaluation import comparison as compared
from regard.evaluation.comparison import Comparison, Table
from regard.foundation import durable
from regard.metrics.scoring import label
from regard.pages import compare_page
from regard.pages.compare_page import Bin, ComparisonPage, Output, Row, Sentence, Slice, Word

SHOWN = 1000
"""Sentences on a page: those that differ most."""


def write_page(comparison: Comparison, path: Path) -> None:
    """Write the comparison as one HTML file."""
    durable.write(path, compare_page.render(page_data(comparison)))


def page_data(comparison: Comparison) -> ComparisonPage:
    """Return all that the page shows."""
    names = comparison.systems
    different = comparison.differing()
    shown = sorted(
        sorted(different, key=lambda sentence: -abs(sentence.gain))[:SHOWN], key=lambda sentence: -sentence.gain
    )
    return ComparisonPage(
        systems=names,
        scores=[
            Row(name=label(metric), scores=[comparison.scores[name][metric] for name in names])
            for metric in comparison.scores[names[0]].values
        ],
        verdicts=comparison.verdicts(),
        metric=label(comparison.main),
        sliced_by=comparison.sliced_by,
        bins=[
            Bin(
                name=title,
                lines=comparison.sizes[title],
                scores=[row[name] for name in names],
                intervals=[comparison.bands[title][name] for name in names],
            )
            for title, row in comparison.lengths.items()
        ],
        slices=[Slice(title=title, rows=_rows(table, comparison)) for title, table in comparison.tables()],
        sentences=[_sentence(sentence) for sentence in shown],
        differing=len(different),
        total=len(comparison.sentences),
        signatures={label(metric): text for metric, text in comparison.scores[names[0]].signatures.items()},
    )


def _rows(table: Table, comparison: Comparison) -> list[Row]:
    counted = table is not comparison.words and all(title in comparison.sizes for title in table)
    return [
        Row(
            name=title,
            scores=[row[name] for name in comparison.systems],
            lines=comparison.sizes[title] if counted else None,
        )
        for title, row in table.items()
    ]


def _sentence(sentence: compared.Sentence) -> Sentence:
    return Sentence(
        number=sentence.number,
        source=sentence.source,
        reference=sentence.reference,
        outputs=[
            Output(words=compare_words(output, sentence.reference), score=sentence.scores[name])
            for name, output in sentence.outputs.items()
        ],
    )


def compare_words(output: str, reference: str) -> list[Word]:
    """Return the words of an output, and between them those that it lacks.

    A word is `extra` if it is not at its place in the reference, and `missing` if the reference has it and the output
    does not have it there.
    """
    written, wanted = output.split(), reference.split()
    words: list[Word] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, written, wanted, autojunk=False).get_opcodes():
        if kind == "equal":
            words += [Word(text, "same") for text in written[a:b]]
        else:
            words += [Word(text, "extra") for text in written[a:b]]
            words += [Word(text, "missing") for text in wanted[c:d]]
    return words
