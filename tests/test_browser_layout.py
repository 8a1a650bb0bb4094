"""Where things are on a page, measured: at 10, 40 and 120 tokens, wide and narrow, light and dark."""

import json
import re

import pytest
import torch
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from regard import inspection
from regard.cli import main
from regard.inspection.analyses.attention.result import Attention, Heads
from regard.inspection.page import Panel, render
from regard.tasks.trace import Side
from tests.test_browser_pages import NARROW, all_of, comparison, form, luminance, one_of, opened, tree

__all__ = ["comparison", "form", "tree"]  # fixtures

DESKTOP, LENGTHS = 1280, (10, 40, 117)


def rect(browser, selector, place=0):
    """Edges of an element in the window: left, top, right, bottom."""
    return browser.execute_script(
        "const r = document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect();"
        "return [r.left, r.top, r.right, r.bottom]",
        selector,
        place,
    )


def side(count):
    names = [f"word{place}" for place in range(count - 1)] + ["</s>"]
    return Side(list(range(count)), names, list(range(count)), [False] * (count - 1) + [True])


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Pages of attention: six layers of eight heads over texts of several lengths."""
    folder, pages = tmp_path_factory.mktemp("maps"), {}
    for count in LENGTHS:
        generator = torch.Generator().manual_seed(count)
        weights = torch.randn(6, 8, count, count, generator=generator).softmax(-1)
        heads = [Heads(f"decoder.layers.{n}.source_attention", "source", n, one) for n, one in enumerate(weights)]
        pages[count] = folder / f"{count}.html"
        Attention(side(count), side(count), side(count), heads).save(pages[count])
    return pages


def influence(count):
    """What the view of contributions is given, with random shares over `count` tokens on both sides."""
    generator = torch.Generator().manual_seed(count)
    source = torch.rand(count, count, generator=generator)
    prefix = torch.rand(count, count, generator=generator).tril()
    total = source.sum(1, keepdim=True) + prefix.sum(1, keepdim=True)
    rows = {"source": (source / total).tolist(), "prefix": (prefix / total).tolist()}
    names = {"tokens": side(count).tokens, "words": list(range(count)), "wordTexts": side(count).tokens}
    method = {"name": "shares", "signed": False, "splits": True, "note": "A note.", "tokens": rows, "words": rows}
    return {
        "source": names,
        "target": names,
        "inputs": {
            **names,
            "tokens": ["<s>", *side(count).tokens[:-1]],
            "wordTexts": ["<s>", *side(count).tokens[:-1]],
        },
        "questions": [{"name": "how it came about", "methods": [method]}],
        "gain": {
            "tokens": [1.0] * count,
            "words": [1.0] * count,
            "flagged": [False] * count,
            "unsupported": [False] * count,
        },
        "probabilities": [0.5] * count,
        "alternatives": [[["a", 0.5], ["b", 3.9e-05]]] * count,
    }


@pytest.fixture(scope="module")
def influences(tmp_path_factory):
    folder = tmp_path_factory.mktemp("influence")
    for count in LENGTHS:
        (folder / f"{count}.html").write_text(
            render("Influence", [Panel("influence", influence(count))], run="runs/mine")
        )
    return {count: folder / f"{count}.html" for count in LENGTHS}


@pytest.mark.parametrize("count", LENGTHS)
def test_the_head_grid_stands_next_to_the_map_at_every_length(browser, maps, count):
    opened(browser, maps[count], DESKTOP)
    grid, stage = rect(browser, ".heads"), rect(browser, ".stage")
    assert grid[2] <= DESKTOP and grid[0] >= rect(browser, ".map")[2], "to the right of the map, inside the window"
    assert grid[1] < stage[3] and grid[3] > stage[1] - 200, "at the height of the map"
    assert grid[1] < 500, "in sight when the page opens"
    browser.execute_script("document.querySelector('.stage').scrollIntoView()")
    grid = rect(browser, ".heads")
    assert grid[1] < 300 and grid[3] > 100, "and when the map is scrolled to"
    for tile in (0, len(all_of(browser, ".heads .tile")) - 1):
        assert rect(browser, ".heads .tile", tile)[2] <= DESKTOP


@pytest.mark.parametrize("count", LENGTHS)
def test_on_a_telephone_the_head_grid_stands_right_above_the_map(browser, maps, count):
    opened(browser, maps[count], NARROW)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW
    grid, stage = rect(browser, ".heads"), rect(browser, ".stage")
    assert grid[2] <= NARROW and 0 <= stage[1] - grid[3] < 60


@pytest.mark.parametrize("width", [DESKTOP, NARROW])
def test_names_stay_in_sight_when_a_long_map_scrolls(browser, maps, width):
    opened(browser, maps[117], width)
    frame = rect(browser, ".map")
    assert frame[2] <= width
    browser.execute_script("const m = document.querySelector('.map'); m.scrollLeft = m.scrollTop = 1e6;")
    rows, columns = rect(browser, ".map-rows"), rect(browser, ".map-columns")
    assert abs(rows[0] - frame[0]) < 2 and abs(columns[1] - frame[1]) < 2, "frozen to the edges"
    last_row, last_column = rect(browser, ".map-rows span", 116), rect(browser, ".map-columns span", 116)
    assert frame[0] <= last_row[0] < last_row[2] <= frame[2] and frame[1] <= last_row[1] < last_row[3] <= frame[3] + 1
    assert frame[0] <= last_column[0] < last_column[2] <= frame[2] and last_column[1] >= frame[1] - 1
    cells = rect(browser, ".map canvas.cells")
    assert abs(cells[3] - last_row[3]) < 3 and abs(cells[2] - last_column[2]) < 3, "names stand at their cells"


def test_keys_scroll_to_the_cell_they_reach(browser, maps):
    opened(browser, maps[117], DESKTOP)
    canvas = one_of(browser, ".map canvas.cells")
    browser.execute_script("arguments[0].focus({preventScroll: true})", canvas)
    canvas.send_keys(*[Keys.ARROW_RIGHT] * 100, *[Keys.ARROW_DOWN] * 3)
    frame, name = rect(browser, ".map"), rect(browser, ".map-columns span.now")
    assert frame[0] <= name[0] < name[2] <= frame[2]
    assert one_of(browser, ".map-columns span.now").text == "word99"


def picture(browser, selector=".map canvas.cells"):
    """Luminance of the middle of each cell of a map."""
    return browser.execute_script(
        "const c = document.querySelector(arguments[0]), pen = c.getContext('2d');"
        "const count = (s) => document.querySelectorAll(s).length;"
        "const rows = count('.map-rows span'), columns = count('.map-columns span');"
        "const size = (c.width - 1) / columns, all = [];"
        "for (let r = 0; r < rows; r++) { const row = []; for (let x = 0; x < columns; x++) {"
        "  const d = pen.getImageData(Math.floor((x + 0.4) * size), Math.floor((r + 0.4) * size), 1, 1).data;"
        "  row.push((d[0] + d[1] + d[2]) / 765); } all.push(row); } return all",
        selector,
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_long_map_is_not_blank_each_row_reaches_the_full_colour(browser, maps, dark):
    opened(browser, maps[117], DESKTOP, dark)
    rows = picture(browser)
    full = [max(row) if dark else min(row) for row in rows]
    assert max(full) - min(full) < 0.05 and (min(full) > 0.6 if dark else max(full) < 0.4)
    ticks = [tick.text for tick in all_of(browser, ".key-ticks i")]
    assert (
        ticks == ["0 %", "25 %", "50 %", "75 %", "100 %"] and "largest value in its row" in one_of(browser, ".key").text
    )
    assert "Each row has its own colour scale" in one_of(browser, ".notes").text
    next(one for one in all_of(browser, "[aria-label=Colours] button") if one.text == "absolute").click()
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    faint = [max(row) if dark else min(row) for row in picture(browser)]
    assert all(abs(one - other) > 0.2 for one, other in zip(full, faint, strict=True)), (
        "absolute weights of 1/117 are faint"
    )
    assert [tick.text for tick in all_of(browser, ".key-ticks i")] == ["0", "0.25", "0.50", "0.75", "1.00"]
    assert "one colour scale" in one_of(browser, ".notes").text


def test_a_short_map_opens_with_absolute_colours(browser, maps):
    opened(browser, maps[10], DESKTOP)
    assert one_of(browser, "[aria-label=Colours] [aria-pressed=true]").text == "absolute"


def test_ticks_stand_below_their_colours(browser, maps):
    opened(browser, maps[40], DESKTOP)
    bar = rect(browser, ".key canvas")
    for place, share in enumerate((0, 0.25, 0.5, 0.75, 1)):
        tick = rect(browser, ".key-ticks i", place)
        assert abs((tick[0] + tick[2]) / 2 - (bar[0] + share * (bar[2] - bar[0]))) < 2 and tick[1] >= bar[3] - 1


@pytest.mark.parametrize("count", LENGTHS)
def test_both_halves_of_an_influence_map_are_in_sight_with_scrollers_of_their_own(browser, influences, count):
    opened(browser, influences[count], DESKTOP)
    source, prefix = rect(browser, ".influence-map.source"), rect(browser, ".influence-map.prefix")
    assert source[2] <= prefix[0] and prefix[2] <= DESKTOP and abs(source[1] - prefix[1]) < 2, "next to each other"
    assert min(source[2] - source[0], prefix[2] - prefix[0]) > 200
    rows = [rect(browser, f".influence-map.{half} .map-rows span", 3)[1] for half in ("source", "prefix")]
    assert abs(rows[0] - rows[1]) < 1, "rows stand at equal heights"
    if count < 117:
        return
    browser.execute_script("document.querySelector('.influence-map.source').scrollLeft = 1e6")
    state = browser.execute_script(
        "const [s, p] = ['source', 'prefix'].map((one) => document.querySelector(`.influence-map.${one}`));"
        "s.scrollTop = 300; return [s.scrollLeft, p.scrollLeft, s.scrollTop]"
    )
    assert state[0] > 300 and state[1] == 0, "one scrolls sideways without the other"
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.execute_script("return document.querySelector('.influence-map.prefix').scrollTop") == state[2] > 0
    for half in ("source", "prefix"):
        frame, names = rect(browser, f".influence-map.{half}"), rect(browser, f".influence-map.{half} .map-rows")
        assert (
            abs(names[0] - frame[0]) < 2 and abs(rect(browser, f".influence-map.{half} .map-columns")[1] - frame[1]) < 2
        )


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_telephone_shows_both_halves_below_each_other(browser, influences, count, dark):
    opened(browser, influences[count], NARROW, dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW
    source, prefix = rect(browser, ".influence-map.source"), rect(browser, ".influence-map.prefix")
    assert source[3] <= prefix[1] and max(source[2], prefix[2]) <= NARROW


def test_small_numbers_are_not_shown_as_zero(browser, influences):
    opened(browser, influences[10], DESKTOP)
    assert "3.9e-5" in one_of(browser, ".influence-readout").text


def test_no_word_of_a_control_is_broken_on_a_telephone(browser, influences, maps, comparison, form):
    """Words of labels, buttons, table heads and headings stand on one line each."""
    broken = (
        "const wrong = []; const range = document.createRange();"
        "for (const e of document.querySelectorAll('.name, button, th, h1, h2, h3, summary, label, legend')) {"
        "  for (const n of [...e.childNodes].filter((one) => one.nodeType === 3))"
        "  for (const m of n.textContent.matchAll(/[\\w-]{2,14}/g)) {"
        "    range.setStart(n, m.index); range.setEnd(n, m.index + m[0].length);"
        "    const boxes = [...range.getClientRects()].filter((r) => r.width > 1);"
        "    const tops = new Set(boxes.map((r) => Math.round(r.top)));"
        "    if (tops.size > 1 && !m[0].includes('-')) wrong.push(m[0]); } } return wrong"
    )
    for page in (influences[10], maps[10], comparison, form):
        opened(browser, page, NARROW)
        assert browser.execute_script(broken) == []


@pytest.fixture(scope="module")
def report(transformer_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("layout") / "report.html"
    arguments = ["inspect", "all", str(transformer_run), "a b c d", "--corrupted", "a b f d", "-o", str(path)]
    assert main(arguments) == 0
    return path


def test_a_report_has_one_end_symbol_and_names_its_run(browser, report, transformer_run):
    opened(browser, report)
    text = one_of(browser, "main").get_attribute("textContent")
    assert "</s>" in text and "↵" not in text and "⏎" not in text
    assert str(transformer_run) in one_of(browser, ".run").text and str(transformer_run) in browser.title


def test_a_page_of_one_analysis_names_its_run(browser, transformer_run, tmp_path):
    path = tmp_path / "lens.html"
    assert main(["inspect", "lens", str(transformer_run), "a b", "-o", str(path)]) == 0
    opened(browser, path)
    run = one_of(browser, ".run")
    assert str(transformer_run) in run.text and run.rect["y"] < 200


def test_the_search_page_names_its_run(browser, tree, copy_run):
    opened(browser, tree)
    assert str(copy_run) in one_of(browser, ".run").text


def test_the_explanation_of_colours_holds_in_light_and_dark(browser, report):
    """No text says that darker means more: in dark mode it would be wrong."""
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", report.read_text(), flags=re.DOTALL)
    data = json.loads(re.search(r'id="data">(.*?)</script>', report.read_text(), re.DOTALL)[1])
    assert not re.search(r"\b(darker|lighter|darkest|lightest)\b", text + json.dumps(data))
    for dark in (False, True):
        opened(browser, report, DESKTOP, dark)
        zero, full = browser.execute_script(
            "const k = document.querySelector('.key canvas'), p = k.getContext('2d');"
            "const at = (x) => [...p.getImageData(x, 5, 1, 1).data].slice(0, 3);"
            "return [1, k.width - 2].map((x) => `rgb(${at(x).join(',')})`)"
        )
        paper = luminance(one_of(browser, "body").value_of_css_property("background-color"))
        assert abs(luminance(full) - paper) > 0.3 > abs(luminance(zero) - paper), "more is farther from the paper"


@pytest.mark.parametrize("name", ["report", "comparison", "form", "tree"])
def test_every_page_has_a_main_landmark_and_every_canvas_a_role(browser, request, name):
    opened(browser, request.getfixturevalue(name))
    assert len(all_of(browser, "main")) == 1 and len(all_of(browser, "h1")) == 1
    inside = browser.execute_script(
        "const others = [...document.body.children].filter((e) => !['MAIN', 'SCRIPT'].includes(e.tagName));"
        "return others.filter((e) => e.id !== 'tip').length"
    )
    assert inside == 0, "all content is inside it"
    for canvas in all_of(browser, "canvas"):
        role = canvas.get_attribute("role")
        assert role in ("img", "presentation")
        assert bool(canvas.get_attribute("aria-label")) == (role == "img")


def violations(browser, axe):
    """What axe-core finds serious or critical."""
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then((r) => arguments[0](r.violations.map("
        "  (v) => [v.impact, v.id, v.nodes.length, v.nodes[0].html, v.nodes[0].failureSummary].map("
        "    (part) => typeof part === 'string' ? part.slice(0, 300) : part))))"
    )
    return [one for one in found if one[0] in ("serious", "critical")]


def heads_page(run, path):
    inspection.heads(run, most=20).named(run).save(path)


@pytest.fixture(scope="module")
def heads(transformer_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("heads") / "heads.html"
    heads_page(transformer_run, path)
    return path


@pytest.mark.parametrize("name", ["report", "comparison", "form", "tree", "heads", "maps", "influences"])
@pytest.mark.parametrize(
    ("width", "dark", "count"),
    [
        (DESKTOP, False, 10),
        (NARROW, True, 40),
        pytest.param(NARROW, False, 117, marks=pytest.mark.long),
        pytest.param(DESKTOP, True, 117, marks=pytest.mark.long),
    ],
    ids=["wide-light", "narrow-dark", "narrow-light", "wide-dark"],
)
def test_axe_finds_nothing_serious(browser, request, axe, name, width, dark, count):
    page = request.getfixturevalue(name)
    opened(browser, page[count] if isinstance(page, dict) else page, width, dark)
    assert violations(browser, axe) == []


def test_heads_open_coloured_by_importance_and_none_is_blank(browser, heads):
    opened(browser, heads)
    assert one_of(browser, "[aria-label='colour by'] [aria-pressed=true]").text == "importance: gradient"
    tiles = all_of(browser, "button.head")
    assert tiles and all(re.fullmatch(r"[\d.e-]+", tile.text) for tile in tiles)
    strongest = max(tiles, key=lambda tile: float(tile.text))
    assert strongest.get_attribute("aria-pressed") == "true", "the most important head is picked"
    shades = {tile: luminance(tile.value_of_css_property("background-color")) for tile in tiles}
    assert shades[strongest] == min(shades.values())


def test_a_server_can_serve_the_same_modules(browser, tmp_path):
    """The files of views, unchanged, next to each other behind a web server."""
    import http.server
    import threading

    from regard.inspection.page import find_view
    from regard.pages.modules import read_style, shared_view

    for name in ("kit", "heatmap", "charts"):
        (tmp_path / f"{name}.js").write_text(shared_view(name).script)
    for name in ("base", "kit"):
        (tmp_path / f"{name}.css").write_text(read_style(name))
    (tmp_path / "influence.js").write_text(find_view("influence").script)
    (tmp_path / "influence.css").write_text(find_view("influence").style)
    (tmp_path / "data.json").write_text(json.dumps(influence(10)))
    (tmp_path / "index.html").write_text(
        '<!doctype html><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'self\'">'
        '<link rel="stylesheet" href="base.css"><link rel="stylesheet" href="kit.css">'
        '<link rel="stylesheet" href="influence.css">'
        '<main><div id="root"></div></main><script type="module" src="start.js"></script>'
    )
    (tmp_path / "start.js").write_text(
        'import { show } from "./influence.js";\n'
        'const data = await (await fetch("data.json")).json();\n'
        'show(document.getElementById("root"), data);\ndocument.body.dataset.ready = "true";\n'
    )

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.get_log("browser")
        browser.get(f"http://127.0.0.1:{server.server_port}/index.html")
        browser.execute_async_script(
            "const wait = () => document.body.dataset.ready ? arguments[0]() : setTimeout(wait, 20); wait();"
        )
        assert len(all_of(browser, ".influence-map.source .map-rows span")) == 10
        assert not [line for line in browser.get_log("browser") if "favicon" not in line["message"]]
    finally:
        server.shutdown()
        server.server_close()
