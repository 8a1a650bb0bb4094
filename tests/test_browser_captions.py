"""What a user sees, points at and clicks where a model looked at pictures."""

import pytest
import torch
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from regard.data.scenes import parse
from regard.inspection.analyses.attention.looks import Look, Looks
from regard.tasks.trace import Side
from tests.test_browser_pages import NARROW, all_of, one_of, opened

NAMES = ("shapes: red circle 0 0, blue star 2 1", "shapes: green cross 1 1")
WORDS = ["there", "is", "a", "red", "circle"]


def look(name, *, heads=2, layers=2):
    """A caption of five words; word n looked at place n alone in layer 0, and everywhere alike in layer 1."""
    assert parse(name)
    count = len(WORDS) + 1
    target = Side([*range(9, 14), 2], [*WORDS, "</s>"], list(range(count)), [False] * 5 + [True])
    sharp = torch.eye(count, 36).expand(heads, count, 36)
    even = torch.full((heads, count, 36), 1 / 36)
    return Look(name, (6, 6), target, [(0, sharp), (1, even)][:layers], [("there is a star", -0.5)])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("looks") / "page.html"
    Looks([look(NAMES[0]), look(NAMES[1], heads=1, layers=1)]).save(path)
    return path


def dots(browser, place=0):
    """All the dots of a large picture, as one number."""
    return browser.execute_script(
        "const c = document.querySelectorAll('.look-large')[arguments[0]], p = c.getContext('2d');"
        "return p.getImageData(0, 0, c.width, c.height).data.reduce((sum, one) => sum + one, 0);",
        place,
    )


def told(browser, place=0):
    return all_of(browser, ".look-readout")[place].text


def words(browser, place=0):
    return all_of(all_of(browser, ".look")[place], ".look-word")


def test_a_page_shows_each_picture_with_the_words_of_its_caption(browser, page):
    opened(browser, page)
    assert [one.text for one in all_of(browser, ".look-caption")] == ["there is a red circle"] * 2
    assert [one.text for one in words(browser)] == WORDS
    assert dots(browser) > 0
    assert "there is a star" in all_of(browser, ".look")[0].text


def test_pointing_at_a_word_shows_where_it_looked_and_leaving_it_shows_the_picture(browser, page):
    opened(browser, page)
    before = dots(browser)
    ActionChains(browser).move_to_element(words(browser)[3]).perform()
    assert told(browser).startswith("red looked most at row 0, column 3") and dots(browser) != before
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    assert "as it is" in told(browser) and dots(browser) == before


def test_a_click_holds_a_word_and_escape_lets_go(browser, page):
    opened(browser, page)
    word = words(browser, 1)[4]
    word.click()
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    browser.execute_script("arguments[0].blur()", word)
    assert word.get_attribute("aria-pressed") == "true" and told(browser, 1).startswith("circle looked most")
    assert "(held)" in told(browser, 1) and "as it is" in told(browser, 0)
    word.send_keys(Keys.ESCAPE)
    assert word.get_attribute("aria-pressed") == "false"


def test_arrow_keys_go_from_word_to_word(browser, page):
    opened(browser, page)
    first, second, *_ = words(browser)
    browser.execute_script("arguments[0].focus()", first)
    first.send_keys(Keys.ARROW_RIGHT)
    assert browser.switch_to.active_element == second
    assert told(browser).startswith("is looked most at row 0, column 1")


def test_layers_and_heads_can_be_told_apart_and_the_light_be_heat(browser, page):
    opened(browser, page)
    one, other = all_of(browser, ".look")
    names = [[name.text for name in all_of(some, ".controls .name")] for some in (one, other)]
    assert names == [["Show", "Layer", "Head"], ["Show"]]
    words(browser)[2].click()
    assert "(0.51)" in told(browser)  # the mean of one and of a thirty-sixth
    press = {button.text: button for button in all_of(one, '[aria-label="Layer"] button')}
    press["0"].click()
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    assert "(1.00)" in told(browser)
    light = dots(browser)
    next(button for button in all_of(one, ".controls button") if button.text == "heat").click()
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    assert dots(browser) != light


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_telephone_can_show_it(browser, page, dark):
    opened(browser, page, NARROW, dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW


def test_a_model_that_looked_nowhere_has_its_caption_and_nothing_to_point_at(browser, tmp_path):
    Looks([look(NAMES[0], layers=0)]).save(tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    assert "no place in particular" in one_of(browser, "body").text and not all_of(browser, ".look .controls")


def test_a_sound_has_an_axis_of_time_and_words_name_seconds(browser, tmp_path):
    target = Side([9, 10, 2], ["seven", "two", "</s>"], [0, 1, 2], [False, False, True])
    weights = torch.zeros(1, 3, 60)
    weights[0, 0, 5], weights[0, 1, 40] = 1.0, 1.0
    heard = Look("sound", (1, 60), target, [(0, weights)], frames=torch.rand(238, 40))
    assert heard.seconds == 2.4 and "seven  0.20 1.00" in str(Looks([heard]))
    Looks([heard]).save(tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    ticks = [tick.text for tick in all_of(browser, ".look-times span")]
    assert ticks == ["0 s", *(f"{2 * number / 10:g}" for number in range(1, 13))]
    picture, last = one_of(browser, ".look-large").rect, all_of(browser, ".look-times span")[-1].rect
    assert abs(last["x"] + last["width"] / 2 - picture["x"] - picture["width"]) < 3  # 2.4 s is the right edge
    assert told(browser) == "Nothing is chosen: the spectrogram as it is."
    words(browser)[1].click()
    assert told(browser).startswith("two listened most at 1.60 s")


def test_a_drawing_of_a_sound_has_its_words_below_the_spectrogram():
    target = Side([9, 10, 2], ["seven", "$wo", "</s>"], [0, 1, 2], [False, False, True])
    figure = Look("sound", (1, 60), target, [(0, torch.rand(1, 3, 60))], frames=torch.rand(238, 40)).draw()
    spectrogram, below = figure.axes
    assert [label.get_text() for label in below.get_yticklabels()] == ["seven", r"\$wo"]
    assert spectrogram.get_xlim() == below.get_xlim() == (0, 2.4)
    assert spectrogram.get_position().x0 == below.get_position().x0
