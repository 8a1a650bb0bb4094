"""What a user sees, points at and clicks on the pages of `regard inspect`."""

import json
import re

import pytest
import torch
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from regard import inspection
from regard.inspection.analyses.attention.result import Attention, Heads
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side
from tests.test_browser_pages import NARROW, all_of, luminance, one_of, opened

SENTENCE = "a b c d"


@pytest.fixture(scope="module")
def transformer(transformer_run, tmp_path_factory):
    """The attention of a small Transformer: page and data of the same trace."""
    return _saved(transformer_run, tmp_path_factory.mktemp("transformer"))


@pytest.fixture(scope="module")
def recurrent(copy_run, tmp_path_factory):
    """The attention of a recurrent model, which has one map."""
    return _saved(copy_run, tmp_path_factory.mktemp("recurrent"))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """Random weights over words of several tokens, so that merging shows."""
    generator = torch.Generator().manual_seed(3)
    source = Side([9, 10, 11, 2], ["un", "do", "it", "</s>"], [0, 0, 1, 2], [False, False, False, True])
    target = Side([9, 10, 2], ["mach", "es", "</s>"], [0, 0, 1], [False, False, True])
    inputs = Side([1, 9, 10], ["<s>", "mach", "es"], [0, 1, 1], [True, False, False])
    weights = torch.rand(2, 3, 4, generator=generator).softmax(-1)
    found = Attention(source, target, inputs, [Heads("decoder.source_attention", "source", 0, weights)])
    path = tmp_path_factory.mktemp("pieces") / "page.html"
    found.save(path)
    return path, weights


def _saved(run, folder):
    found = inspection.attention(load_run(run).trace(SENTENCE))
    found.save(folder / "page.html")
    found.save(folder / "data.json")
    return folder / "page.html", json.loads((folder / "data.json").read_text())


def press(browser, text, within="body"):
    """Click the button that says so."""
    next(one for one in all_of(browser, f"{within} button") if one.text == text).click()


def choose(browser, label):
    """Click the small map with a name, and take the pointer away."""
    one_of(browser, f'[aria-label="{label}"]').click()
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()


def weights(data, kind, layer):
    return next(one["weights"] for one in data["attention"] if (one["kind"], one["layer"]) == (kind, layer))


def keyed(browser, *keys):
    """What the hint says when the keys have moved over the map."""
    canvas = one_of(browser, ".stage canvas.cells")
    browser.execute_script("arguments[0].blur(); arguments[0].focus()", canvas)
    canvas.send_keys(*keys)
    return one_of(browser, "#tip").text


def walk(row, column):
    """Keys that lead from nowhere to a cell."""
    return [Keys.ARROW_DOWN, Keys.ARROW_UP] + [Keys.ARROW_DOWN] * row + [Keys.ARROW_RIGHT] * column


def test_the_page_fetches_nothing_and_complains_of_nothing(browser, transformer):
    opened(browser, transformer[0])
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert one_of(browser, "body").get_attribute("data-ready") == "true"
    assert not re.findall(r"(?:src|href)=|https?://(?!www\.w3\.org)", transformer[0].read_text())


def is_shown(text, before, value):
    """Whether a text shows a number after some words; the page rounds to three decimals, small ones to two digits."""
    return text.startswith(before) and abs(float(text.removeprefix(before)) - float(value)) < 0.0006


@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize(("kind", "tab"), [("source", "To the source"), ("encoder", "Inside the source")])
def test_the_hint_says_the_weight_of_the_data(browser, transformer, kind, tab, head):
    path, data = transformer
    opened(browser, path)
    press(browser, tab)
    press(browser, "map")
    choose(browser, f"layer 1, head {head}")
    told = weights(data, kind, 1)[head]
    for row, column in ((0, 0), (2, 1), (len(told) - 1, len(told[0]) - 1)):
        shown = keyed(browser, *walk(row, column)).rpartition(": ")[2]
        assert abs(float(shown) - told[row][column]) < 0.0006


def test_the_mean_of_all_is_the_mean_and_tells_of_its_heads(browser, transformer):
    path, data = transformer
    opened(browser, path)
    heads = torch.tensor(weights(data, "source", 0) + weights(data, "source", 1))
    assert abs(float(keyed(browser, *walk(1, 2)).split()[-1]) - float(heads.mean(0)[1, 2])) < 0.0006
    press(browser, "1", ".controls")
    layer = weights(data, "source", 1)
    said = keyed(browser, *walk(1, 2)).splitlines()
    assert [is_shown(line, f"head {head} ", layer[head][1][2]) for head, line in enumerate(said[1:])] == [True, True]


def test_pointing_at_a_cell_tells_its_row_and_a_click_holds_it(browser, transformer):
    path, data = transformer
    opened(browser, path)
    canvas = one_of(browser, ".stage canvas.cells")
    right, low = canvas.size["width"] // 2 - 20, canvas.size["height"] // 2 - 10
    ActionChains(browser).move_to_element_with_offset(canvas, right, low).perform()
    last = data["target"]["tokens"][-1]
    assert one_of(browser, "#tip").text.startswith(last) and one_of(browser, ".readout b").text == last
    ActionChains(browser).click().move_to_element(one_of(browser, "h1")).perform()
    assert one_of(browser, ".readout b").text == last and "(held)" in one_of(browser, ".readout").text
    one_of(browser, ".tab").send_keys(Keys.ESCAPE)
    assert not all_of(browser, ".readout b")


def test_lines_show_where_a_word_looks(browser, transformer):
    path, data = transformer
    opened(browser, path)
    press(browser, "Inside the source")
    choose(browser, "layer 0, head 1")
    row = weights(data, "encoder", 0)[1][2]
    place = max(range(len(row)), key=row.__getitem__)
    left = all_of(browser, ".lines [role=group]:first-child button")
    ActionChains(browser).move_to_element(left[2]).perform()
    assert is_shown(one_of(browser, ".readout .given").text, f"{data['source']['tokens'][place]} ", row[place])
    shades = [
        one.value_of_css_property("background-color")
        for one in all_of(browser, ".lines [role=group]:last-child button")
    ]
    clear = [1.0 if shade.endswith(", 0)") else luminance(shade) for shade in shades]
    assert min(range(len(row)), key=clear.__getitem__) == place
    left[2].click()
    ActionChains(browser).move_to_element(all_of(browser, ".lines [role=group]:last-child button")[place]).perform()
    assert is_shown(one_of(browser, "#tip").text.split()[-1], "", row[place])


def drawn(browser):
    """How much ink of which hue the lines have."""
    return browser.execute_script(
        "const c = document.querySelector('.lines canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let blue = 0, red = 0;"
        "for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 40) {"
        "  blue += d[i + 2] > d[i] + 30; red += d[i] > d[i + 2] + 30; }"
        "return [blue, red]"
    )


def test_heads_are_switched_by_a_click_and_isolated_by_two(browser, transformer):
    opened(browser, transformer[0])
    press(browser, "Inside the source")
    choose(browser, "layer 0, mean of all heads")
    assert all(drawn(browser))
    blue, red = all_of(browser, ".chips button")
    blue.click()
    assert drawn(browser)[0] == 0 and blue.get_attribute("aria-pressed") == "false"
    blue.click()
    ActionChains(browser).double_click(blue).perform()
    assert drawn(browser)[1] == 0 and red.get_attribute("aria-pressed") == "false"
    assert one_of(browser, '[aria-label="layer 0, head 0"]').get_attribute("aria-pressed") == "true"
    ActionChains(browser).double_click(blue).perform()
    assert red.get_attribute("aria-pressed") == blue.get_attribute("aria-pressed") == "true"


def test_pointing_at_a_small_map_previews_it_and_nothing_moves(browser, transformer):
    opened(browser, transformer[0])
    tile = one_of(browser, '[aria-label="layer 1, head 1"]')
    before = tile.location, one_of(browser, ".what").text
    ActionChains(browser).move_to_element(tile).perform()
    assert (tile.location, one_of(browser, ".what").text) == (before[0], "Layer 1, head 1")
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    assert one_of(browser, ".what").text == before[1]


def test_words_are_given_the_sum_and_give_the_mean(browser, pieces):
    path, given = pieces
    opened(browser, path)
    press(browser, "word")
    merged = given.mean(0)[:2, :2].sum(1).mean()
    said = keyed(browser, *walk(0, 0))
    assert said.startswith("maches → undo: ") and abs(float(said.split()[3]) - float(merged)) < 0.0006


def test_hidden_tokens_are_not_shared_out(browser, pieces):
    path, given = pieces
    opened(browser, path)
    one_of(browser, "input[type=checkbox]").click()
    assert "not renormalised" in one_of(browser, ".notes").text
    said = keyed(browser, *walk(0, 1)).splitlines()
    assert said[0].startswith("mach → do: ") and is_shown(said[1], "head 0 ", given[0, 0, 1])
    hidden = one_of(browser, ".readout").text.rpartition("hidden tokens ")[2]
    assert is_shown(hidden, "", given.mean(0)[0, 3])


def test_a_row_can_be_read_as_what_was_read(browser, pieces):
    opened(browser, pieces[0])
    press(browser, "just read")
    assert keyed(browser, *walk(0, 0)).startswith("<s> → un: ")
    assert keyed(browser, *walk(2, 0)).startswith("es → un: ")


def test_a_recurrent_model_has_one_map_on_the_same_page(browser, recurrent):
    path, data = recurrent
    opened(browser, path)
    assert not all_of(browser, "[role=tab]") and not one_of(browser, ".heads").is_displayed()
    told = weights(data, "source", 0)[0]
    assert is_shown(keyed(browser, *walk(1, 1)).rpartition(": ")[2], "", told[1][1])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_a_telephone(browser, transformer, dark):
    opened(browser, transformer[0], NARROW, dark)
    for tab in ("To the source", "Inside the source", "Inside the target"):
        press(browser, tab)
        for way in ("lines", "map"):
            press(browser, way)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW
    paper = luminance(one_of(browser, "body").value_of_css_property("background-color"))
    assert paper < 0.05 if dark else paper > 0.9


def test_a_hundred_tokens_do_not_stall(browser, tmp_path):
    """4+4 layers of 4 heads over 100×100 tokens: processor time of the page's own thread, whatever else is running."""
    names = [f"word{place}" for place in range(99)] + ["</s>"]
    side = Side(list(range(100)), names, list(range(100)), [False] * 99 + [True])
    generator = torch.Generator().manual_seed(0)
    maps = (torch.randn(12, 4, 100, 100, generator=generator) * 3).softmax(-1)
    kinds = [("source", layer) for layer in range(4)] + [(kind, n) for kind in ("encoder", "decoder") for n in range(4)]
    heads = [Heads(f"{kind}.{n}", kind, n, one) for (kind, n), one in zip(kinds, maps, strict=True)]
    path = tmp_path / "page.html"
    Attention(side, side, side, heads).save(path)
    assert path.stat().st_size < 2e6

    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(one["value"] for one in found if one["name"] == "TaskDuration")

    opened(browser, path)
    assert spent() < 2
    for tab in ("Inside the source", "map", "Inside the target", "word", "To the source", "lines"):
        before = spent()
        press(browser, tab)
        browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
        assert spent() - before < 1, tab
    assert not browser.get_log("browser")


@pytest.fixture(scope="module")
def report(transformer_run, tmp_path_factory):
    """Everything about one translation, patching included."""
    found = inspection.report(transformer_run, "a b c d", corrupted="a b f d")
    path = tmp_path_factory.mktemp("report") / "report.html"
    found.save(path)
    return path, found


def test_a_report_fills_every_part_and_links_to_it(browser, report):
    path, found = report
    opened(browser, path)
    assert one_of(browser, "body").get_attribute("data-ready") == "true"
    assert [part.get_attribute("id") for part in all_of(browser, "article")] == list(found.results)
    for view in all_of(browser, ".view"):
        assert view.size["height"] > 30 and "cannot be shown" not in view.text
    one_of(browser, '.contents a[href="#lens"]').click()
    assert abs(one_of(browser, "#lens").rect["y"] - browser.execute_script("return scrollY")) < 40
    assert one_of(browser, "#left-out ~ dl").text.startswith("prune")
    assert not browser.get_log("browser")


def test_a_report_fits_a_telephone(browser, report):
    opened(browser, report[0], NARROW)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW
