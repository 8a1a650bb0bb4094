"""The law of complete results, read from the rendered page: every number that is visible there is in the JSON."""

import pytest

import regard
from regard.inspection.table_result import TableResult
from tests.stored_runs import FIXTURES
from tests.test_browser_pages import NARROW, WIDE, all_of, one_of, opened
from tests.test_inspect_results import results_of, unknown_numbers

TEXT = """
const part = arguments[0].cloneNode(true);
part.querySelectorAll("svg, style, script, option, .quiet, .key-ticks, h1, h2, h3").forEach((one) => one.remove());
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
        "tags-transformer",
        "language",
        "pairs-attended",
        "captions",
        "number",
    ],
)
def test_the_page_shows_no_number_that_the_json_lacks(browser, name, tmp_path):
    report = results_of(name)
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


SOURCES = ("a b c d", "b c d e", "c d e f a", "d e f", "f a b", "e a c b", "a a b", "f e d c")
CHOICES = """
const [name, place] = arguments;
const choice = document.querySelector(`[aria-label="${name}"]`);
const options = choice.options ?? choice.querySelectorAll("button");
if (place < options.length && choice.options) {
  choice.selectedIndex = place;
  choice.dispatchEvent(new Event("change"));
}
else if (place < options.length) options[place].click();
return options.length;
"""
"""Choose one of the options of a control, and return how many there are."""


@pytest.mark.parametrize(
    ("name", "run"),
    [("attribute", "rnn"), ("contributions", "transformer"), ("lens", "transformer"), ("patch", "transformer")],
)
def test_every_choice_of_a_corpus_page_shows_numbers_of_the_json(browser, name, run, tmp_path):
    (tmp_path / "source.txt").write_text("\n".join(SOURCES))
    (tmp_path / "reference.txt").write_text("\n".join(one[::-1] for one in SOURCES))
    model = regard.load(FIXTURES / "format-1" / f"translation-{run}")
    result = model.explain(how=name, corpus=tmp_path / "source.txt", reference=tmp_path / "reference.txt")
    result.save(tmp_path / "page.html")
    for width in (WIDE, NARROW):
        opened(browser, tmp_path / "page.html", width)
        charts, groupings = (browser.execute_script(CHOICES, one, 99) for one in ("measure", "by"))
        assert charts == len(result.charts) and groupings == len(result.groupings) == 5
        for chart in range(charts):
            browser.execute_script(CHOICES, "measure", chart)
            for by, grouping in enumerate(result.groupings):
                browser.execute_script(CHOICES, "by", by)
                shown = browser.execute_script(TEXT, one_of(browser, "main"))
                assert not unknown_numbers(shown, result.to_json())
                rows = [all_of(row, "td")[0].text for row in all_of(browser, "table.sortable tbody tr")]
                assert rows == ["all", *(group.name for group in grouping.groups)]
                bars, lines = all_of(browser, ".means-bars"), all_of(browser, "svg polyline")
                assert len(bars) == len(result.charts[chart].measures) or len(lines) == len(rows)
        wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"the page is {wide} pixels wider than the window"
    assert browser.get_log("browser") == []


def test_a_bar_and_its_interval_are_where_their_numbers_are(browser, tmp_path):
    (tmp_path / "source.txt").write_text("\n".join(SOURCES))
    model = regard.load(FIXTURES / "format-1" / "translation-rnn")
    result = model.explain(how="attribute", corpus=tmp_path / "source.txt")
    result.save(tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    groups = [result.overall, *result.groupings[0].groups]
    browser.execute_script(CHOICES, "measure", 2)
    places = [result.measures.index(name) for name in ("source", "prefix")]
    known = [value for one in groups for place in places for value in (one.means[place], *(one.intervals[place] or ()))]
    low, span = min(0, *known), max(0, *known) - min(0, *known)
    assert low < 0  # bars go both ways
    drawn = [(group, place) for place in places for group in groups]
    for (group, place), track in zip(drawn, all_of(browser, ".means-track"), strict=True):
        left, width = track.rect["x"], track.rect["width"]
        bar = one_of(track, ".means-bar").rect
        edges = [(edge - left) / width * span + low for edge in (bar["x"], bar["x"] + bar["width"])]
        assert edges == pytest.approx(sorted((0, group.means[place])), abs=0.01 * span)
        if group.intervals[place]:
            ends = one_of(track, ".means-ends").rect
            edges = [(edge - left) / width * span + low for edge in (ends["x"], ends["x"] + ends["width"])]
            assert edges == pytest.approx(list(group.intervals[place]), abs=0.01 * span)


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
