"""Laws of all results: JSON holds every number that the page, the table and the picture show."""

import base64
import json
import math
import re
import shutil

import numpy as np
import pytest

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


def source_of(name):
    return INPUTS[name.split("-", maxsplit=1)[0]]


def corpus(path, name):
    """Sentences with parts of speech and dependencies, in the words of a run."""
    letters = name.startswith(("translation", "answering"))
    lines = []
    for number in range(40):
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
        whole = np.frombuffer(base64.b64decode(data["packed"]), dtype="<i2").reshape(data["shape"])
        return (whole / 1e4).tolist()
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
    missing = numbers(shown) - numbers(known)
    assert not missing, f"{type(result).__name__}: {len(missing)} numbers of the page, {sorted(missing)[:5]}"
    single = numbers(known)
    lost = [row for row in rows(shown) - rows(known) if len(row) > 1 and not set(row) <= single]
    assert not lost


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
    words = " ".join(strings(data))
    found = re.findall(r"(?<![\w.])[+−-]?\d[\d,]*(?:\.\d+)?(?:e[-−]?\d+)?(?![\w])", text.replace("95 %", ""))
    return [one for one in found if one not in words and not is_known(one.replace("+", ""), known)]


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


def results_of(name, tmp_path):
    """Every result that a stored run has, by the name of its analysis: a report with all that can be in one."""
    from regard import inspection

    directory = tmp_path / name
    shutil.copytree(RUNS / name, directory)  # align stores what it chose
    source = source_of(name)
    other = source.replace("c d", "e d").replace("w2", "w3").replace("the circle", "the square")
    return inspection.report(directory, source, corrupted=other, corpus=corpus(tmp_path / "corpus.conllu", name))


@pytest.mark.parametrize("name", KINDS)
def test_json_has_every_number_of_page_and_table(name, tmp_path):
    report = results_of(name, tmp_path)
    assert "lens" in report.results or "lens" in report.left_out
    wrong = {}
    for analysis, result in report.results.items():
        check_page(result)
        if bad := check_table(result):
            wrong[analysis] = bad
    assert not wrong
    check_page(report)
