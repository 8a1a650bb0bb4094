"""The studio in a browser: real clicks and keys, for each thing that a person can do there."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import regard
from regard.inspection.changes import ScaleHead
from regard.inspection.interventions import attentions
from regard.serving.catalogue import ServedModel
from regard.serving.studio import export_page
from tests.serving import RunningServer
from tests.studio_server import TEXT, studio_server
from tests.test_browser_layout import violations

pytest.importorskip("fastapi", reason="needs the extra serve")


@pytest.fixture(scope="module")
def server(copy_run: Path, transformer_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with studio_server(tmp_path_factory.mktemp("server"), transformer_run, copy_run) as running:
        yield running


@pytest.fixture(scope="module")
def models(copy_run: Path, transformer_run: Path) -> dict:
    return {"transformer": regard.load(transformer_run), "rnn": regard.load(copy_run)}


@pytest.fixture
def studio(server: RunningServer, browser) -> Callable[..., None]:
    browser.studio = server.url

    def open_page(**state: object) -> None:
        browser.get("about:blank")
        browser.set_window_size(1280, 900)
        browser.get(f"{server.url}/#{quote(json.dumps({'model': 'transformer', **state}))}")
        if state.get("texts"):
            wait(browser, "return document.body.dataset.answered")

    return open_page


def wait(browser, script: str, seconds: float = 60) -> object:
    until = time.monotonic() + seconds
    while not (found := browser.execute_script(script)):
        assert time.monotonic() < until, (
            script,
            browser.execute_script("return document.body.innerText"),
            browser.get_log("browser")[:5],
        )
        time.sleep(0.03)
    return found


def words(browser) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll('.output .word .word-text')].map((one) => one.textContent)"
    )


def click(browser, selector: str, text: str | None = None) -> None:
    fits = "true" if text is None else f"one.textContent.trim() === {json.dumps(text)}"
    found = wait(browser, f"return [...document.querySelectorAll({json.dumps(selector)})].find((one) => {fits})")
    found.click()  # type: ignore[attr-defined]


def answers(browser) -> int:
    return int(browser.execute_script("return document.body.dataset.answered || 0"))


def after_answer(browser, act: Callable[[], object]) -> None:
    before = answers(browser)
    act()
    wait(browser, f"return Number(document.body.dataset.answered) > {before}")


def test_1_the_output_follows_typing_with_probabilities_and_a_difference(studio, browser) -> None:
    from selenium.webdriver.common.by import By

    studio()
    box = wait(browser, "return document.querySelector('textarea')")
    wait(browser, "return document.querySelector('.output').textContent.includes('appears here')")
    after_answer(browser, lambda: browser.find_element(By.CSS_SELECTOR, "textarea").send_keys("a b c"))
    first = words(browser)
    assert first[-1] == "end" and box is not None
    chances = browser.execute_script(
        "return [...document.querySelectorAll('.output .chance')].map((one) => one.textContent)"
    )
    assert len(chances) == len(first) and all(one.endswith("%") for one in chances)
    after_answer(browser, lambda: browser.find_element(By.CSS_SELECTOR, "textarea").send_keys(" d"))
    assert words(browser) != first
    assert browser.find_elements(By.CSS_SELECTOR, ".before ins")


def test_2_steps_show_the_distribution_and_where_attention_looks(studio, browser, models: dict) -> None:
    studio(texts=[TEXT])
    watched = models["transformer"].watch(TEXT, beam=5)
    for position in (0, 1, 2):
        names = browser.execute_script(
            "return [...document.querySelectorAll('.steps-bars .bar-name')].map((one) => one.textContent)"
        )
        assert names[0] == watched.predictions[position].candidates[0].text.strip()
        click(browser, "button[aria-label='Step forward']")
    tinted = browser.execute_script(
        "return [...document.querySelectorAll('.steps-source .token')].filter((one) => one.style.background).length"
    )
    assert tinted > 0
    click(browser, "button[aria-label='First token']")
    click(browser, "button[aria-label='Play']")
    wait(browser, "return document.querySelector('.steps-where').textContent.startsWith('3 of')")
    click(browser, "button[aria-label='Pause']")


def test_2_the_mixture_of_decoder_and_ctc_is_named(browser, models: dict, tmp_path: Path) -> None:
    """The page of a recogniser: its steps show the decoder, and search adds CTC."""
    run = models["rnn"].run.directory
    model = ServedModel.open(run, name="rnn", engine="native")
    page = export_page([model], ["a b c"])
    assert '"ctc":0.0' in page
    (tmp_path / "page.html").write_text(page.replace('"ctc":0.0', '"ctc":0.3'))
    browser.get((tmp_path / "page.html").as_uri())
    wait(browser, "return document.querySelector('.steps-numbers')?.textContent")
    shown = browser.execute_script("return document.body.textContent")
    assert "log P, 0.70 decoder + 0.30 CTC: " in shown
    assert "This is the decoder alone; search adds CTC with a weight of 0.30." in shown
    click(browser, "[role=tab]", "Beam")
    wait(browser, "return document.querySelector('.formula')?.textContent.includes('(1 − λ) log P(y | x)')")


def test_3_another_word_can_be_chosen_pinned_and_left_again(studio, browser) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    studio(texts=[TEXT])
    original = words(browser)
    browser.find_elements(By.CSS_SELECTOR, ".output .word")[1].send_keys(Keys.ENTER)
    options = wait(
        browser,
        "return [...document.querySelectorAll('.menu .bar-name')].map((one) => one.textContent)",
    )
    other = next(place for place, text in enumerate(options) if text != original[1] and not text.startswith("<"))
    after_answer(browser, browser.find_elements(By.CSS_SELECTOR, ".menu .bar-row")[other].click)
    assert words(browser)[1] == options[other] and words(browser)[0] == original[0]
    click(browser, ".forks button", "Pin this output")
    after_answer(browser, lambda: click(browser, ".forks button", "Back to the model's own output"))
    assert words(browser) == original
    assert browser.find_elements(By.CSS_SELECTOR, ".pins ins, .pins del")


def test_4_the_beam_grows_and_its_width_is_a_slider(studio, browser) -> None:
    from selenium.webdriver.common.by import By

    studio(texts=[TEXT], tab="beam")
    boxes = len(browser.find_elements(By.CSS_SELECTOR, ".tree-stage g"))
    slide = (
        "const one = document.querySelector(arguments[0]); one.value = arguments[1];"
        "for (const name of ['input', 'change']) one.dispatchEvent(new Event(name));"
    )
    browser.execute_script(slide, "input[aria-label='search steps shown']", 2)
    assert 0 < len(browser.find_elements(By.CSS_SELECTOR, ".tree-stage g")) < boxes
    after_answer(browser, lambda: browser.execute_script(slide, "input[aria-label='width']", 1))
    assert len(browser.find_elements(By.CSS_SELECTOR, ".view-beam ol li")) == 1


def test_5_methods_can_be_switched(studio, browser) -> None:
    studio(texts=[TEXT], tab="look")
    wait(browser, "return document.querySelector('.view-look canvas')")
    choose = (
        "const one = document.querySelector(\"select[aria-label='method']\");"
        "one.value = arguments[0]; one.dispatchEvent(new Event('change'));"
    )
    for method in ("contributions", "gradient", "effective", "weights"):
        browser.execute_script(f"document.body.dataset.panels = ''; {choose}", method)
        wait(browser, "return Number(document.body.dataset.panels) > 0 && !document.querySelector('.waiting')")
    started = time.monotonic()
    browser.execute_script(f"document.body.dataset.panels = ''; {choose}", "gradient")
    wait(browser, "return Number(document.body.dataset.panels) > 0")
    assert time.monotonic() - started < 2  # it was computed before


def test_6_changes_are_listed_undone_and_told_in_python(studio, browser, models: dict, transformer_run: Path) -> None:
    studio(texts=[TEXT], tab="change")
    original = words(browser)
    path = next(path for path in attentions(models["transformer"].model) if path.endswith("source_attention"))
    for head in (0, 1):
        after_answer(browser, lambda head=head: click(browser, f"button[aria-label='{path}, head {head}']"))
    code = browser.execute_script("return document.querySelector('.python').textContent")
    expected = models["transformer"].watch(TEXT, changes=[ScaleHead(path, 0, 0.0), ScaleHead(path, 1, 0.0)])
    assert [word for word in words(browser) if word != "end"] == expected.text.split()
    told: list[object] = []
    exec(code.replace("print(", "told.append("), {"told": told})  # the Python that the page shows
    assert told[0].text == expected.text
    after_answer(browser, lambda: click(browser, "#view button", "Undo all changes"))
    assert words(browser) == original


def test_7_why_this_word_and_not_that_one(studio, browser) -> None:
    from selenium.webdriver.common.by import By

    studio(texts=[TEXT], tab="why", position=1)
    wait(
        browser,
        "return document.querySelectorAll('.view-why .panel').length >= 3 && !document.querySelector('.waiting')",
    )
    field = browser.find_element(By.CSS_SELECTOR, "input[aria-label='instead of this word']")
    field.send_keys(field.get_attribute("placeholder"))
    click(browser, ".view-why .controls button", "Ask")
    wait(browser, "return !document.querySelector('.waiting') && document.querySelector('.view-why .panel')")
    assert not browser.find_elements(By.CSS_SELECTOR, ".problem, .reason")


def test_8_the_nearest_training_examples_of_a_state(
    studio, browser, transformer_run: Path, server: RunningServer
) -> None:
    pytest.importorskip("faiss", reason="needs the extra index")
    from regard.cli import main

    studio(texts=[TEXT], tab="nearest", position=1)
    if not (transformer_run / "index").exists():
        wait(browser, "return document.querySelector('.reason')?.textContent.includes('regard index')")
        assert main(["index", str(transformer_run), "--limit", "50"]) == 0
        browser.execute_script("location.reload()")
    for side in ("decoder", "encoder"):
        studio(texts=[TEXT], tab="nearest", position=1, side=side, sourcePosition=1)
        wait(browser, "return document.querySelector('.view-nearest .panel') && !document.querySelector('.waiting')")


def test_9_two_models_two_sentences_and_a_checkpoint_are_compared(studio, browser) -> None:
    for state in (
        {"against": "model", "otherModel": "rnn"},
        {"against": "text", "otherText": "f e d"},
        {"against": "step"},
    ):
        studio(texts=[TEXT], tab="compare", **state)
        wait(browser, "return document.querySelectorAll('.column .output-words').length === 2")


def test_10_a_corpus_is_a_table_whose_rows_open(browser, transformer_run: Path, models: dict, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By

    lines = ["a b c", "d e f", "a a b", "c d"]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "out.txt").write_text("a b c\nf e d\na a b\nc d\n")
    files = (str(tmp_path / "in.txt"), str(tmp_path / "out.txt"))
    command = [
        sys.executable,
        "-m",
        "regard",
        "studio",
        f"m={transformer_run}",
        "--corpus",
        *files,
        "--port",
        "0",
        "--no-browser",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+/", process.stderr.readline())[0]
        browser.get(f"{address}#{quote(json.dumps({'model': 'm', 'tab': 'corpus'}))}")
        wait(browser, "return document.querySelectorAll('.corpus-table tbody tr').length === 4")
        first = browser.find_element(By.CSS_SELECTOR, ".corpus-table tbody tr").text
        assert "d e f" in first  # the worst by chrF
        click(browser, ".corpus-table .small")
        wait(browser, "return document.querySelector('.corpus-detail .panel')")
        after_answer(browser, lambda: click(browser, ".corpus-row"))
        assert browser.execute_script("return document.querySelector('textarea').value") == "d e f"
    finally:
        process.terminate()
        process.wait()


def test_11_formulas_have_the_numbers_of_the_sentence(studio, browser, models: dict) -> None:
    studio(texts=[TEXT], tab="beam")
    told = browser.execute_script("return document.querySelector('.formula').textContent")
    best = models["transformer"].watch(TEXT).found[0]
    assert f"{sum(best.log_probs):.3f}"[:5] in told.replace("−", "-") or f"{sum(best.log_probs):.2f}"[:4] in told


def test_12_the_state_is_in_the_address_and_an_exported_page_needs_no_server(studio, browser, tmp_path: Path) -> None:
    studio(texts=[TEXT], tab="look")
    address = browser.execute_script("return location.href")
    shown = words(browser)
    browser.get("about:blank")
    browser.get(address)
    wait(browser, "return document.body.dataset.answered")
    assert words(browser) == shown and browser.execute_script("return document.querySelector('.view-look') !== null")
    for old in browser.downloads.glob("studio*.html"):
        old.unlink()
    click(browser, ".bar button", "Export page")
    until = time.monotonic() + 30
    while not (found := list(browser.downloads.glob("studio*.html"))):
        assert time.monotonic() < until
        time.sleep(0.05)
    browser.get(found[0].as_uri())
    wait(browser, "return document.body.dataset.answered")
    assert words(browser) == shown
    for name in ("PNG", "SVG", "JSON"):
        click(browser, ".save button", name)
        wait(browser, f"return document.body.dataset.saved === '{name}'")


def test_tasks_without_a_decoder_and_images(studio, browser, tmp_path: Path) -> None:
    from PIL import Image
    from selenium.webdriver.common.by import By

    studio(model="classes", texts=["w0 w1 w2"])
    assert words(browser)[0] in ("yes", "no")
    browser.find_element(By.ID, "tab-beam").click()
    assert "no search" in browser.find_element(By.ID, "view").text
    Image.new("RGB", (48, 48), "red").save(tmp_path / "red.png")
    studio(model="captions")
    wait(browser, "return document.querySelector('input[type=file]')")
    wait(browser, "return document.querySelector('.output').textContent.includes('appears here')")
    after_answer(
        browser, lambda: browser.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(str(tmp_path / "red.png"))
    )
    browser.find_element(By.ID, "tab-look").click()
    wait(browser, "return document.querySelector('.view-look .panel')")


def test_nothing_is_logged_as_an_error_and_problems_are_told(studio, browser) -> None:
    browser.get_log("browser")
    studio(texts=[TEXT])
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    state = {
        "model": "transformer",
        "texts": [TEXT],
        "changes": [{"kind": "attend", "position": 0, "to": 0}, {"kind": "attend", "position": 0, "to": 1}],
    }
    browser.execute_script("location.hash = arguments[0]", quote(json.dumps(state)))
    wait(browser, "return document.querySelector('.problem')?.textContent.includes('contradict')")
    assert words(browser)  # what was refused is taken back
    assert "changes" not in browser.execute_script("return decodeURIComponent(location.hash)")
    for wrong in ("{", quote(json.dumps({"tab": "nix", "method": "nix", "position": 1.5})), "%%%"):
        browser.get("about:blank")
        browser.get(f"{browser.studio}/#{wrong}")
        wait(browser, "return document.querySelector('textarea')")
        assert not browser.find_elements("css selector", ".problem")


def test_a_lost_connection_is_found_again_and_nothing_is_lost(browser, transformer_run: Path) -> None:
    from selenium.webdriver.common.by import By

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "regard", "studio", f"m={transformer_run}", "--port", str(port), "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        process.stderr.readline()
        browser.get(f"http://127.0.0.1:{port}/#{quote(json.dumps({'model': 'm', 'texts': ['a b c']}))}")
        wait(browser, "return document.body.dataset.answered")
        process.terminate()
        process.wait()
        browser.find_element(By.CSS_SELECTOR, "textarea").send_keys(" d")
        wait(browser, "return document.querySelector('.status').textContent.includes('connection is lost')")
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait(browser, "return Number(document.body.dataset.answered) > 1")
        assert browser.execute_script("return document.querySelector('textarea').value") == "a b c d"
        assert browser.execute_script("return document.querySelector('.status').textContent") == ""
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_no_serious_violation_of_accessibility_and_nothing_too_wide(
    studio, browser, axe, size: tuple[int, int]
) -> None:
    for tab in ("step", "beam", "look", "change", "why", "compare"):
        studio(texts=[TEXT], tab=tab, against="text", otherText="c b a")
        browser.set_window_size(*size)
        wait(browser, "return !document.querySelector('.waiting')")
        wide = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 1, (tab, wide)
        assert violations(browser, axe) == [], tab
