"""What a user sees and clicks on the pages that commands write."""

import json
import random

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from regard.cli import main
from regard.evaluation.comparison import compare
from regard.evaluation.side_by_side import write_page

NARROW, WIDE = 390, 1200


def opened(browser, path, width=WIDE, dark=False):
    """A page in a window of a width, as the file that it is; nothing may be wrong with it."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    return browser


def all_of(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def one_of(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def luminance(colour):
    """Relative luminance of `rgb(…)` (WCAG 2)."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(browser, selector):
    """Between an element's text and the page's paper."""
    shades = [
        luminance(one_of(browser, selector).value_of_css_property("color")),
        luminance(one_of(browser, "body").value_of_css_property("background-color")),
    ]
    return (max(shades) + 0.05) / (min(shades) + 0.05)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Two systems that differ in thirty sentences, one of them a word of a hundred letters and some markup."""
    chance = random.Random(7)
    right = [
        " ".join(chance.choices(["der", "die", "das", "ein", "Mann", "Hund", "läuft", "<b>rot</b>"], k=9))
        for _ in range(30)
    ]
    right[3] = "x" * 100 + " & Co"
    bad = [" ".join(chance.sample(line.split(), len(line.split()) - 1)) for line in right]
    path = tmp_path_factory.mktemp("pages") / "compare.html"
    write_page(compare({"bad": bad, "good": right}, right, ["chrf"], sources=right, samples=5), path)
    return path


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    """A form over six sentences, with its key."""
    folder = tmp_path_factory.mktemp("judge")
    texts = {"source": "source", "good": "good", "bad": "bad"}
    for name, says in texts.items():
        (folder / f"{name}.txt").write_text("".join(f"{says} <i>{number}</i>\n" for number in range(6)))
    named = [f"--system={name}={folder / name}.txt" for name in ("good", "bad")]
    assert main(["judge", "make", "--source", f"{folder}/source.txt", *named, "-o", f"{folder}/form.html"]) == 0
    return folder / "form.html"


@pytest.fixture(scope="module")
def tree(copy_run, tmp_path_factory):
    """The beams of two lines, drawn."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "in.txt").write_text("a b c\n\nb\n")
    options = ["--beam", "4", "--n-best", "2", "--show-search", f"{folder}/tree.html", "-o", f"{folder}/out.tsv"]
    assert main(["translate", str(copy_run), f"{folder}/in.txt", *options]) == 0
    return folder / "tree.html"


@pytest.mark.parametrize("name", ["comparison", "form", "tree"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_is_wider_than_a_telephone_and_all_can_be_read(browser, request, name, dark):
    opened(browser, request.getfixturevalue(name), NARROW, dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW
    paper = luminance(one_of(browser, "body").value_of_css_property("background-color"))
    assert paper < 0.05 if dark else paper > 0.9
    for selector in ("h1", "p", ".quiet, .faint"):
        if all_of(browser, selector):
            assert contrast(browser, selector) >= 4.5, selector


def test_sentences_can_be_ordered_by_gain_loss_and_line(browser, comparison):
    opened(browser, comparison)
    order = Select(one_of(browser, "#order"))

    def column(fact):
        return [float(card.get_attribute(f"data-{fact}")) for card in all_of(browser, ".card")]

    assert len(column("gain")) == 30 and column("gain") == sorted(column("gain"), reverse=True)
    order.select_by_value("loss")
    assert column("gain") == sorted(column("gain"))
    order.select_by_value("line")
    assert column("line") == list(range(1, 31))
    order.select_by_value("worst")
    assert column("score") == sorted(column("score"))


def test_outputs_stand_side_by_side_and_below_each_other_where_it_is_narrow(browser, comparison):
    for width, beside in ((WIDE, True), (NARROW, False)):
        opened(browser, comparison, width)
        first, second = all_of(browser, ".card:first-child .side-by-side > div")
        assert (first.rect["y"] == second.rect["y"]) is beside


def test_sentences_can_be_found_by_what_they_say(browser, comparison):
    opened(browser, comparison)
    one_of(browser, "#find").send_keys("& CO")
    shown = [card for card in all_of(browser, ".card") if card.is_displayed()]
    assert len(shown) == 1 and "x" * 100 in shown[0].text and one_of(browser, "#count").text == "1 shown"
    one_of(browser, "#find").clear()
    one_of(browser, "#find").send_keys(" \b")
    assert sum(card.is_displayed() for card in all_of(browser, ".card")) == 30


def test_the_picture_tells_its_numbers_to_who_points_at_them(browser, comparison):
    opened(browser, comparison)
    found = one_of(browser, ".bin:last-of-type")
    number = found.find_element(By.CSS_SELECTOR, ".value")
    assert number.value_of_css_property("opacity") == "0"
    ActionChains(browser).move_to_element(found.find_element(By.CSS_SELECTOR, "circle")).perform()
    assert number.value_of_css_property("opacity") == "1" and float(number.text) > 0


def test_markup_in_texts_is_shown_and_never_run(browser, comparison, form):
    opened(browser, comparison)
    assert "<b>rot</b>" in one_of(browser, "#sentences").text and not all_of(browser, "#sentences b")
    opened(browser, form)
    assert "<i>0</i>" in one_of(browser, "#items").text and not all_of(browser, "#items i")


def say(browser, name, value):
    """Click one answer of one question, as a judge does: on its label."""
    label = all_of(browser, f'input[name="{name}"]')[value].find_element(By.XPATH, "..")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", label)
    label.click()


def test_what_a_judge_clicks_is_kept_saved_and_counted(browser, form, capsys):
    opened(browser, form, NARROW)
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    one_of(browser, "#save").click()
    assert "your name" in one_of(browser, "#message").text and not list(browser.downloads.glob("*.json"))
    one_of(browser, "#judge").send_keys("Änne O’Neil")
    for item in range(1, 7):
        texts = [box.text for box in all_of(browser, f"#items > div:nth-child({item}) .candidate")]
        for at, text in enumerate(texts):
            say(browser, f"{item}-adequate-{at}", 0 if "good" in text else 1)
            say(browser, f"{item}-fluent-{at}", 0)
        if item < 6:
            say(browser, f"{item}-better", next(at for at, text in enumerate(texts) if "good" in text))
    assert one_of(browser, "#done").text == "5 of 6 done"
    browser.refresh()
    assert one_of(browser, "#done").text == "5 of 6 done", "answers outlive the page"
    assert one_of(browser, "#judge").get_attribute("value") == "Änne O’Neil"
    assert len(all_of(browser, "input:checked")) == 6 * 4 + 5
    one_of(browser, "#next").click()
    assert one_of(browser, "#items > div:nth-child(6)").rect["y"] >= browser.execute_script("return scrollY") - 1
    say(browser, "6-better", 2)  # equal
    assert not one_of(browser, "#next").is_displayed()
    one_of(browser, "#save").click()
    saved = browser.downloads / "answers-Änne-O-Neil.json"
    WebDriverWait(browser, 60).until(lambda _: saved.exists())
    assert saved.name in one_of(browser, "#message").text
    capsys.readouterr()
    assert main(["judge", "score", str(saved), "--key", str(form.with_suffix(".key.json")), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["judges"] == {"Änne O’Neil": 6}
    assert found["systems"]["good"]["adequate"]["rate"] == 1 and found["systems"]["bad"]["adequate"]["rate"] == 0
    assert found["systems"]["good"]["wins"]["rate"] == pytest.approx(5.5 / 6)


def shown_boxes(section, fate):
    return [box for box in all_of(section, f"g.{fate}") if box.is_displayed()]


def test_the_tree_opens_with_all_that_was_in_the_beam(browser, tree):
    """Not as one line: the paths that the beam held and lost stand next to the result."""
    opened(browser, tree)
    data = tree_data_of(browser)
    assert len(all_of(browser, "section")) == 2 == len(data)
    for section, search in zip(all_of(browser, "section"), data, strict=True):
        parents = {node["parent"] for node in search["nodes"]}
        held = [node for place, node in enumerate(search["nodes"]) if node["fate"] != "died" or place in parents]
        boxes = all_of(section, "g")
        assert len(boxes) == len(held) < len(search["nodes"])
        assert len({round(box.rect["y"]) for box in boxes}) > 1, "more than one line"
        press = {button.text: button for button in all_of(section, ".choice button")}
        press["also candidates left out"].click()
        assert len(all_of(section, "g")) == len(search["nodes"])
        press["results"].click()
        assert len(all_of(section, "g")) == len(shown_boxes(section, "chosen"))


def tree_data_of(browser):
    data = json.loads(one_of(browser, "#data").get_attribute("textContent"))
    return [panel["data"] for panel in data]


def test_boxes_show_the_score_that_decides(browser, tree):
    """The number below the last box of a result is the score of its hypothesis, and no other end scores higher."""
    opened(browser, tree)
    for section, search in zip(all_of(browser, "section"), tree_data_of(browser), strict=True):
        ends = [box for box in all_of(section, "g") if box.text.startswith("</s>")]
        scores = [float(box.find_element(By.CSS_SELECTOR, ".score").text.replace("−", "-")) for box in ends]
        chosen = [score for box, score in zip(ends, scores, strict=True) if box.get_attribute("class") == "chosen"]
        wanted = sorted((one["score"] for one in search["hypotheses"]), reverse=True)
        assert sorted(chosen, reverse=True) == pytest.approx(wanted, rel=0.05)
        assert max(chosen) == max(scores)


def test_pointing_at_a_box_tells_its_path(browser, tree):
    opened(browser, tree)
    section = all_of(browser, "section")[0]
    told = section.find_element(By.CSS_SELECTOR, ".tree-readout")
    idle = told.text
    last = next(box for box in all_of(section, "g.chosen") if "</s>" in box.text)
    ActionChains(browser).move_to_element(last.find_element(By.CSS_SELECTOR, "rect")).perform()
    assert all(letter in told.text for letter in "abc") and last.get_attribute("data-score") in told.text
    way = all_of(section, "g.way")
    assert [box.text.split()[0].strip("▁") for box in way] == ["a", "b", "c", "</s>"]
    assert len(all_of(section, "path.way")) == len(way) - 1
    ActionChains(browser).move_to_element(one_of(browser, "h1")).perform()
    assert told.text == idle


def test_no_two_boxes_of_a_tree_lie_on_each_other(browser, tree):
    opened(browser, tree)
    for section in all_of(browser, "section"):
        all_of(section, ".choice button")[2].click()
        places = [(box.rect["x"], box.rect["y"]) for box in all_of(section, "rect")]
        assert len(places) > 4 and len(set(places)) == len(places)


def test_a_comparison_has_a_legend_and_shows_missing_words(browser, comparison):
    opened(browser, comparison)
    legend = one_of(browser, ".legend.marks")
    mark, missing = legend.find_element(By.CSS_SELECTOR, "mark"), legend.find_element(By.CSS_SELECTOR, "del")
    assert mark.is_displayed() and missing.is_displayed() and "missing" in legend.text
    lost = all_of(browser, "#sentences .card:first-child .side-by-side > div:first-child del.missing")
    assert len(lost) >= 1 and all(word.rect["width"] > 0 for word in lost)
    style = lost[0].value_of_css_property("text-decoration-line"), lost[0].value_of_css_property("color")
    assert style == (missing.value_of_css_property("text-decoration-line"), missing.value_of_css_property("color"))
    assert style[0] == "line-through"
    dots = all_of(browser, ".legend.systems .dot")
    borders = [
        one.value_of_css_property("border-left-color")
        for one in all_of(browser, ".card:first-child .side-by-side > div")
    ]
    assert [dot.value_of_css_property("background-color") for dot in dots[-2:]] == [
        colour.replace("rgb(", "rgba(").replace(")", ", 1)") if colour.startswith("rgb(") else colour
        for colour in borders
    ]
    one_of(browser, "#missing").click()
    assert not any(word.is_displayed() for word in lost)
