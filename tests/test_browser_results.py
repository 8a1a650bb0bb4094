"""The law of complete results, read from the rendered page: every number that is visible there is in the JSON."""

import pytest

from regard.inspection.table_result import TableResult
from tests.test_browser_pages import all_of, one_of, opened
from tests.test_inspect_results import results_of, unknown_numbers

TEXT = """
const part = arguments[0].cloneNode(true);
part.querySelectorAll("svg, style, script, option, .quiet, h1, h2, h3").forEach((one) => one.remove());
document.body.append(part);
const text = part.innerText;
part.remove();
return text;
"""
"""What is visible of a part, without axes and explanations."""


@pytest.mark.parametrize(
    "name",
    [
        "translation-transformer",
        "translation-rnn",
        "classes",
        "tags",
        "language",
        "pairs-attended",
        "captions",
        "number",
    ],
)
def test_the_page_shows_no_number_that_the_json_lacks(browser, name, tmp_path):
    report = results_of(name, tmp_path)
    report.save(tmp_path / "report.html")
    opened(browser, tmp_path / "report.html")
    wrong, numbers = {}, 0
    for analysis, result in report.results.items():
        shown = browser.execute_script(TEXT, one_of(browser, f"article#{analysis}"))
        assert shown.strip()
        numbers += len(unknown_numbers(shown, {"nothing": -1}))
        if bad := unknown_numbers(shown, result.to_json()):
            wrong[analysis] = bad
    assert not wrong and numbers > 5


def test_a_table_shows_its_cells_as_python_formats_them_and_sorts_by_value(browser, tmp_path):
    rows = [("b", 3.9e-05, 10), ("a", 1.25, 9), ("c", float("nan"), 100)]
    table = TableResult("T", ("name", "value", "count"), rows)
    table.save(tmp_path / "table.html")
    opened(browser, tmp_path / "table.html")

    def cells():
        return [[cell.text for cell in all_of(row, "td")] for row in all_of(browser, "tbody tr")]

    assert cells() == table.texts
    aligned = [cell.value_of_css_property("text-align") for cell in all_of(browser, "tbody tr:first-child td")]
    assert aligned[0] in ("left", "start") and aligned[1:] == ["right", "right"]
    heads = all_of(browser, "th")
    (all_of(heads[2], "button") or [heads[2]])[0].click()
    assert [row[2] for row in cells()] == ["100", "10", "9"]
