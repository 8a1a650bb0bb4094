"""Suggested replies behind HTTP, and the demo inbox in a browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.reply.suggester import Suggester
from tests.reply_bundle import QUESTIONS, make_bundle
from tests.serving import RunningServer, running_server

pytest.importorskip("fastapi", reason="needs the extra serve")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory)


@pytest.fixture(scope="module")
def server(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    arguments = (f"reply={bundle}", "--workers", "1", "--log-choices")
    with running_server(tmp_path_factory.mktemp("server"), *arguments) as running:
        yield running


def test_served_suggestions_are_those_of_python(server: RunningServer, bundle: Path) -> None:
    suggester = Suggester.open(bundle)
    messages = [*QUESTIONS, "My father passed away.", "Hi Bo,\nwhere are you?\nThanks,\nAnn"]
    with server.client() as client:
        answer = client.post("/v1/reply", json={"messages": messages, "rate": 1.0, "explain": True})
    assert answer.status_code == 200, answer.text
    local = [suggester.suggest_for_mail(message, rate=1.0).to_json(explain=True) for message in messages]
    assert answer.json()["outputs"] == json.loads(json.dumps(local))


@pytest.mark.parametrize(
    "body",
    [{}, {"messages": []}, {"messages": [1]}, {"messages": ["hi"], "rate": 2}, {"messages": ["hi"], "model": "none"}],
)
def test_wrong_requests_are_refused(server: RunningServer, body: dict) -> None:
    with server.client() as client:
        answer = client.post("/v1/reply", json=body)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]


def test_choices_are_logged_only_where_the_server_was_asked_to(server: RunningServer, bundle: Path) -> None:
    with server.client() as client:
        body = {"shown": ["Yes.", "No."], "chosen": "Yes.", "sent": "Yes, I am."}
        assert client.post("/v1/reply/choice", json=body).json() == {"status": "logged"}
        wrong = client.post("/v1/reply/choice", json={"shown": ["Yes."], "chosen": "Perhaps."})
    assert wrong.status_code == 400
    (line,) = (bundle / "feedback.jsonl").read_text().splitlines()
    assert json.loads(line)["edited"] is True


def test_the_inbox_suggests_and_only_its_button_sends(server: RunningServer, browser) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, 60)
    browser.get(f"{server.url}/inbox")
    wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
    browser.find_element(By.ID, "own").send_keys("where are you")
    browser.find_element(By.ID, "add").click()

    def suggestions() -> list:
        return browser.find_elements(By.CSS_SELECTOR, ".suggestion")

    def explanation() -> str:
        return browser.find_element(By.CSS_SELECTOR, ".why").text

    wait.until(lambda _: suggestions() or explanation().startswith("No suggestions"))
    assert suggestions(), explanation()
    first = suggestions()[0]
    text = first.text
    first.send_keys(Keys.ENTER)  # by keyboard
    reply = browser.find_element(By.ID, "reply")
    assert reply.get_attribute("value") == text
    assert browser.switch_to.active_element == reply
    assert not browser.find_elements(By.CSS_SELECTOR, ".sent")  # inserted, not sent
    second = suggestions()[1]
    second.click()
    assert reply.get_attribute("value") == second.text  # what was not edited is replaced
    first.click()
    reply.send_keys(" See you soon.")
    send = browser.find_element(By.ID, "send")
    assert send.is_enabled()
    send.click()
    sent = wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, ".sent"))
    assert f"{text} See you soon." in sent[0].text
    assert browser.find_element(By.ID, "reply").get_attribute("value") == ""


def test_the_inbox_says_why_there_are_no_suggestions(server: RunningServer, browser) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{server.url}/inbox")
    WebDriverWait(browser, 60).until(lambda page: page.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
    browser.find_element(By.ID, "own").send_keys("My grandmother passed away")
    browser.find_element(By.ID, "add").click()
    why = browser.find_element(By.CSS_SELECTOR, ".why")
    WebDriverWait(browser, 60).until(lambda _: "sensitive" in why.text)
    assert not browser.find_elements(By.CSS_SELECTOR, ".suggestion")


def test_markup_in_a_message_is_shown_as_text(server: RunningServer, browser) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{server.url}/inbox")
    WebDriverWait(browser, 60).until(lambda page: page.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
    title = browser.title
    hostile = "<img src=x onerror=\"document.title='changed'\"><script>document.title='changed'</script> where are you?"
    browser.find_element(By.ID, "own").send_keys(hostile)
    browser.find_element(By.ID, "add").click()
    why = browser.find_element(By.CSS_SELECTOR, ".why")
    WebDriverWait(browser, 60).until(lambda _: "Looking" not in why.text)
    assert browser.find_element(By.CSS_SELECTOR, ".reader .text").text == hostile
    assert not browser.find_elements(By.CSS_SELECTOR, "#inbox img, #inbox script")
    assert browser.title == title
