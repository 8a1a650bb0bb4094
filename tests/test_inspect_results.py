"""Laws of all results: JSON holds every number that the page, the table and the picture show."""

import base64
import functools
import json
import math
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

from regard import inspection
from regard.foundation.errors import UsageError
from regard.inspection import registry
from regard.inspection.analyses.attention.looks import Look, Looks
from regard.inspection.table_result import TableResult
from regard.tasks.loaded import load_run
from regard.training.view import View
from tests.stored_runs import FIXTURES, SCENE

RUNS = FIXTURES / "format-1"

INPUTS = {
    "translation": "a b c d",
    "answering": "a b c d\td e",
    "classes": "w0 w1 w2",
    "pairs": "w0 w1\tw0 w2",
    "number": "w0 w1\tw0 w2",
    "tags": "w0 w1 w2",
    "masked": "w0 ___ w2 w3",
    "language": "w0 w1 w2",
    "captions": SCENE,
    "questions": f"{SCENE}\twhat colour is the circle ?",
}
KINDS = [path.name for path in sorted(RUNS.iterdir()) if path.is_dir()]
LIKE_OTHERS = (
    *("translation-unigram", "translation-two-vocabularies", "translation-conv"),
    *("pairs", "pairs-apart", "tags"),
)
"""Runs whose results are those of others among them: of the same analyses, with the same parts."""


def source_of(name):
    return INPUTS[name.split("-", maxsplit=1)[0]]


def corpus(path, name):
    """Sentences with parts of speech and dependencies, in the words of a run."""
    letters = name.startswith(("translation", "answering"))
    lines = []
    for number in range(34):
        words = [("abcdef"[one] if letters else f"w{one}") for one in (number % 6, number // 6 % 6, number * 5 % 6)]
        lines.append(f"# text = {' '.join(words)}")
        for place, word in enumerate(words, start=1):
            tag = "VERB" if word[-1] in "ab01" else "NOUN"
            head, relation = (0, "root") if place == 1 else (place - 1, "obj")
            lines.append(f"{place}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def unpacked(data):
    """A panel's data with packed tensors as the page unpacks them (`unpack` in kit.js)."""
    if isinstance(data, dict) and set(data) == {"shape", "packed"}:
        parts = np.frombuffer(base64.b64decode(data["packed"]), dtype=np.uint8).reshape(-1, 3)
        whole = np.concatenate([np.zeros((len(parts), 1), np.uint8), parts], axis=1)  # the lowest byte first
        return whole.view("<f4").reshape(data["shape"]).astype(float).tolist()
    if isinstance(data, dict):
        return {name: unpacked(value) for name, value in data.items()}
    return [unpacked(one) for one in data] if isinstance(data, list | tuple) else data


def numbers(data):
    """Every number in plain data."""
    if isinstance(data, bool) or data is None or isinstance(data, str):
        return set()
    if isinstance(data, int | float):
        return {data}
    return set().union(*map(numbers, data.values() if isinstance(data, dict) else data))


def rows(data):
    """Every list of numbers in plain data."""
    if isinstance(data, dict):
        return set().union(*map(rows, data.values()))
    if not isinstance(data, list):
        return set()
    if data and all(isinstance(one, int | float) and not isinstance(one, bool) for one in data):
        return {tuple(data)}
    return set().union(*map(rows, data))


def check_page(result):
    """The law: what the page receives is in the JSON, rounded the same way."""
    known = json.loads(json.dumps(result.to_json(), allow_nan=False))
    shown = json.loads(json.dumps([unpacked(panel.data) for panel in result.panels()]))
    single = np.array(sorted(numbers(known)) or [math.inf])
    missing = [number for number in sorted(numbers(shown)) if not is_near(number, single)]
    assert not missing, f"{type(result).__name__}: {len(missing)} numbers of the page, {missing[:5]}"


def is_near(number, known):
    """Whether a number of the page is in the JSON: packed numbers are off by 2⁻¹⁶ at most, and JSON has five digits."""
    return np.abs(known - number).min() <= 1e-4 * abs(number)


def is_known(text, known):
    """Whether a printed number is the rounding of one in the JSON: itself, as a percentage, or in thousands (kbit)."""
    value = float(text.replace(",", "").replace("−", "-"))
    digits = len(text.partition(".")[2].partition("e")[0])
    if "e" in text:
        near = 10.0 ** (math.floor(math.log10(abs(value) or 1)) - digits) * 0.51
    else:
        near = 0.51 * 10.0**-digits
    return any(np.abs(known * factor - value).min() <= near for factor in (1, 100, -1, 0.001))


def check_table(result):
    """Every number of the table is the rounding of one in the JSON."""
    return unknown_numbers(str(result), result.to_json())


def unknown_numbers(text, data):
    """The numbers of a text that are neither in the JSON, nor in its words, nor the length of one of its lists."""
    data = json.loads(json.dumps(data))
    known = np.array(sorted(numbers(data) | lengths(data)))
    words = " ".join(strings(data)).replace("-", "−")
    found = re.findall(r"(?<![\w.])[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+−]?\d+)?(?![\w])", text.replace("95 %", ""))
    return [
        one
        for one in found
        if one.replace("-", "−").lstrip("+") not in words and not is_known(one.replace("+", ""), known)
    ]


def lengths(data):
    if isinstance(data, dict):
        return set().union({len(data)}, *map(lengths, data.values()))
    return set().union({len(data)}, *map(lengths, data)) if isinstance(data, list) else set()


def strings(data):
    if isinstance(data, str):
        return [data]
    if isinstance(data, dict):
        return [*map(str, data), *(one for value in data.values() for one in strings(value))]
    return [one for value in data for one in strings(value)] if isinstance(data, list | tuple) else []


@functools.cache
def results_of(name):
    """Every result that a stored run has, by the name of its analysis: a report with all that can be in one.

    `test_browser_results.py` looks at the same reports, in the same process (`distribution.py`).
    """
    with tempfile.TemporaryDirectory() as place:
        directory = copied(name, Path(place))  # align stores what it chose
        source = source_of(name)
        other = source.replace("c d", "e d").replace("w2", "w3").replace("the circle", "the square")
        return inspection.report(directory, source, corrupted=other, corpus=corpus(Path(place) / "corpus.conllu", name))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LIKE_OTHERS else []) for name in KINDS]
)
def test_json_has_every_number_of_page_and_table(name):
    report = results_of(name)
    assert "lens" in report.results or "lens" in report.left_out
    wrong = {}
    for analysis, result in report.results.items():
        check_page(result)
        if bad := check_table(result):
            wrong[analysis] = bad
    assert not wrong
    check_page(report)


def copied(name, tmp_path):
    directory = tmp_path / name
    shutil.copytree(RUNS / name, directory)
    return directory


def test_the_law_holds_of_what_no_report_has(tmp_path):
    directory = copied("translation-transformer", tmp_path)
    run = load_run(directory)
    pairs = inspection.patch_pairs(run, [("a b c", "a d c"), ("b c d", "b a d"), ("c d e", "c a e")])
    pruned = inspection.prune(directory, keep=1, steps=20, directory=tmp_path / "small", view=View())
    rows = ["a b c", "d e f"]
    gold = tmp_path / "gold.txt"
    gold.write_text("0-0 1-1 2?2\n0-0 1-1 2-2\n")
    aligned = inspection.align(run, rows, rows, gold=gold, reading="writes")
    compared = inspection.attribute(run.trace("a b c", "a b c"), instead="d", at=2)
    table = TableResult("T", ("name", "value"), [("a", 3.9e-05), ("b", float("nan")), ("c", 12345.678)])
    for result in (pairs, pruned, aligned, compared, table):
        check_page(result)
        assert not check_table(result)


def test_the_law_holds_of_pictures(tmp_path):
    captioner = load_run(RUNS / "captions")
    check_page(Looks([Look.of(captioner.trace(SCENE))]))


def test_the_law_can_fail():
    class Silent(TableResult):
        def to_json(self):
            return {"rows": []}

    silent = Silent("T", ("name", "value"), [("a", 0.1234)])
    with pytest.raises(AssertionError, match="1 numbers of the page"):
        check_page(silent)
    assert check_table(silent) == ["0.1234"]


@pytest.mark.parametrize("name", ["translation-transformer", "classes", "captions"])
def test_a_result_is_one_line_in_a_notebook(name):
    trace = load_run(RUNS / name).trace(source_of(name))
    for analysis in registry.explanations():
        try:
            analysis.check(load_run(RUNS / name))
            result = analysis.explain(trace)
        except UsageError:
            continue
        assert repr(result).startswith(f"<{type(result).__name__}: {result.title}")
        assert len(repr(result)) < 160 and "\n" not in repr(result) and "tensor" not in repr(result)


class TestTables:
    rows = (("Ein", 3.9e-05, 1), ("Hund $", 1.25, 12345), ("läuft", float("nan"), 3), ("<b>", float("inf"), 7))

    def table(self):
        return TableResult("How unlikely each token was", ("token", "−log p", "count"), self.rows)

    def test_cells_are_the_same_texts_everywhere(self):
        found = self.table()
        [panel] = found.panels()
        assert panel.data["texts"][0] == ["Ein", "3.9e-05", "1"]
        assert panel.data["texts"][2] == ["läuft", "–", "3"]
        for row, line in zip(panel.data["texts"], str(found).splitlines()[1:], strict=True):
            assert re.split(r"\s{2,}", line) == row
        assert json.loads(json.dumps(found.to_json(), allow_nan=False))["rows"][3] == ["<b>", None, 7]

    def test_numbers_are_aligned_to_the_right_and_texts_to_the_left(self):
        assert self.table().numeric == [False, True, True]
        mixed = TableResult("M", ("a", "b"), [(1, "x"), ("two", 2)])
        assert mixed.numeric == [False, False] and mixed.panels()[0].data["rows"] == [["1", "x"], ["two", "2"]]
        figure = self.table().draw()
        by_text = {text.get_text(): text for text in figure.texts}
        assert by_text["Ein"].get_ha() == by_text["token"].get_ha() == "left"
        assert by_text["3.9e-05"].get_ha() == by_text["count"].get_ha() == "right"

    def test_the_picture_has_no_gap_and_no_overlap(self, tmp_path):
        figure = self.table().draw()
        figure.canvas.draw()
        boxes = {text.get_text(): text.get_window_extent() for text in figure.texts}
        title = figure._suptitle.get_window_extent()
        assert 0 < title.y0 - boxes["token"].y1 < 1.5 * title.height
        assert boxes["Hund \\$"].x1 < boxes["1.25"].x0 and boxes["1.25"].x1 < boxes["12345"].x0
        wide = figure.get_window_extent()
        assert all(box.x0 >= 0 and box.x1 <= wide.width and box.y0 >= 0 for box in (*boxes.values(), title))
        self.table().save(tmp_path / "table.png")
        assert (tmp_path / "table.png").stat().st_size > 1000

    def test_empty_and_long_tables_are_drawn(self, tmp_path):
        TableResult("Nothing", ("a", "b"), []).save(tmp_path / "empty.png")
        long = TableResult("Long", ("a",), [("x" * 500,)] * 5000)
        long.save(tmp_path / "long.png")
        assert any("4,800 more rows" in text.get_text() for text in long.draw().texts)
