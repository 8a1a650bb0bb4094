"""The pages of `nearest` and `reference` in a browser: every number is in the JSON, and keys choose tokens."""

import json
import shutil

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from regard import inspection
from regard.inspection.indexing import build_index
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from tests.stored_runs import FIXTURES
from tests.test_browser_layout import violations
from tests.test_browser_pages import NARROW, WIDE, all_of, one_of, opened
from tests.test_browser_results import TEXT
from tests.test_inspect_results import unknown_numbers


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A page of each analysis, of a run with an index."""
    place = shutil.copytree(FIXTURES / "format-1" / "translation-rnn", tmp_path_factory.mktemp("runs") / "run")
    run = load_run(place)
    index = build_index(Run.open(place), run)
    trace = run.trace("a b c", "a b c")
    found = {
        "nearest": inspection.nearest(trace, run, index, count=4),
        "reference": inspection.reference(trace, run, "a b c", beam=3),
    }
    for name, result in found.items():
        result.save(place / f"{name}.html")
    return place, found


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", ["nearest", "reference"])
def test_the_page_shows_no_number_that_the_json_lacks(browser, results, axe, name, width):
    place, found = results
    opened(browser, place / f"{name}.html", width=width)
    shown = browser.execute_script(TEXT, one_of(browser, "main"))
    assert unknown_numbers(shown, {"nothing": -1}) and not unknown_numbers(shown, found[name].to_json())
    assert violations(browser, axe) == []
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth + 1")


def test_keys_choose_a_token_and_its_examples_are_shown(browser, results):
    place, found = results
    opened(browser, place / "nearest.html")
    data = json.loads(json.dumps(found["nearest"].to_json()))
    tokens = all_of(browser, ".tokens button")
    assert [token.text for token in tokens] == [query["token"] for query in data["queries"]]
    tokens[0].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert tokens[2].get_attribute("aria-pressed") == "true"
    cards = all_of(browser, ".nearest-list li")
    neighbours = data["queries"][2]["neighbours"]
    assert len(cards) == len(neighbours) == 4
    for card, neighbour in zip(cards, neighbours, strict=True):
        example = data["examples"][neighbour["example"]]
        assert card.find_element(By.TAG_NAME, "mark").text == neighbour["token"]
        assert card.find_element(By.CLASS_NAME, "nearest-source").text == example["source"]["text"]
        assert (
            card.find_element(By.CLASS_NAME, "nearest-target").text.removesuffix("</s>").strip()
            == example["target"]["text"]
        )


def test_the_verdict_is_that_of_the_json(browser, results):
    place, found = results
    opened(browser, place / "reference.html")
    data = found["reference"].to_json()
    assert one_of(browser, ".reference-verdict").text == data["explanation"]
    strips = all_of(browser, ".reference-strip")
    for strip, side in zip(strips, ("output", "reference"), strict=True):
        assert [one.text for one in strip.find_elements(By.CSS_SELECTOR, ".reference-token")] == data[side]["tokens"]
    assert len(all_of(browser, ".reference-token.left")) == (data["search"]["fate"] != "found")
    assert len(all_of(browser, "tbody tr")) == max(data["output"]["length"], data["reference"]["length"])
