"""Attribution says which input made an output: it adds up, it finds what was copied, and it works in every cell."""

import json

import pytest
import torch
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

import regard
from regard import inspection
from regard.cli import main
from regard.errors import UsageError
from regard.inspection.attribution import METHODS, along, alternative, attribute, borne, occlude
from regard.inspection.vectors import Question, Vectors
from regard.text.specials import BOS, EOS, UNK
from regard.trace import Side, Trace, trace
from tests.cells import model_of
from tests.test_browser_pages import all_of, one_of, opened

SOURCE, TARGET = [9, 7, 8, 12, EOS], [11, 6, 9, EOS]
INPUTS = [BOS, *TARGET[:-1]]
EACH = [
    "bag>elman/initial",
    "elman>gru/every-step",
    "lstm-backward>lstm/transformed",
    "gru-both>gru/before",
    "gru-both>lstm/feeding",
    "conv>conv/attention",
    "transformer>conv/attention",
    "conv>transformer/every-step",
    "transformer-post>transformer-post/attention",
    "transformer>transformer/rotary",
    "narrow",
    "wide",
]
"""Every encoder, decoder and join at least once, and widths that differ."""


def side(ids: list[int], words: list[int] | None = None) -> Side:
    return Side(ids, [str(one) for one in ids], words or list(range(len(ids))), [one in (BOS, EOS) for one in ids])


def traced(name: str, source: Side | None = None) -> Trace:
    return trace(model_of(name), source or side(SOURCE), side(TARGET), side(INPUTS))


def value(seen: Trace, source: list[int], inputs: list[int]) -> torch.Tensor:
    """The log-probability of each target token when the model plainly reads these tokens: T."""
    with torch.no_grad():
        logits = seen.model(torch.tensor([source]), torch.tensor([inputs]))[0]
    return logits.log_softmax(-1).gather(1, torch.tensor(seen.target.ids)[:, None])[:, 0]


@pytest.mark.parametrize("name", EACH)
def test_integrated_gradients_sum_to_the_difference_of_outputs_within_the_shown_gap(name):
    seen = traced(name)
    answer = attribute(seen, ["integrated"]).answers[0]
    blank = value(seen, [UNK] * 4 + [EOS], [BOS, UNK, UNK, UNK])
    difference = value(seen, SOURCE, INPUTS) - blank
    found = answer.methods["integrated"]
    summed = found.source.sum(-1) + found.prefix.sum(-1)
    torch.testing.assert_close(answer.explained, difference, rtol=1e-4, atol=1e-5)
    assert ((summed - difference).abs() <= answer.gaps + 1e-5).all()
    assert (answer.gaps <= borne(difference)).all() and answer.wide == []


@pytest.mark.parametrize("name", EACH)
def test_occlusion_is_what_a_plain_pass_loses_when_a_token_is_unknown(name):
    seen = traced(name)
    found = attribute(seen, ["occlusion"]).answers[0].methods["occlusion"]
    real = value(seen, SOURCE, INPUTS)
    for place in range(4):
        lost = real - value(seen, [UNK if at == place else one for at, one in enumerate(SOURCE)], INPUTS)
        torch.testing.assert_close(found.source[:, place], lost, rtol=1e-3, atol=1e-5)
        if place:
            lost = real - value(seen, SOURCE, [UNK if at == place else one for at, one in enumerate(INPUTS)])
            torch.testing.assert_close(found.prefix[:, place], lost, rtol=1e-3, atol=1e-5)
    assert found.source[:, -1].abs().max() == 0 and found.prefix[:, 0].abs().max() == 0


@pytest.mark.parametrize("name", ["gru-both>gru/before", "conv>conv/attention", "transformer>transformer/rotary"])
def test_what_has_not_been_read_yet_and_what_is_blank_already_has_no_part(name):
    seen = traced(name, side([9, UNK, 8, 12, EOS]))
    for answer in attribute(seen).answers:
        for found in answer.methods.values():
            assert found.prefix.triu(1).abs().max() == 0
            assert found.source[:, 1].abs().max() < 1e-6
            assert found.source[:, 0].abs().max() > 1e-4


def test_gradient_times_input_is_integrated_gradients_where_the_model_is_linear(monkeypatch):
    vectors = Vectors(traced("transformer>transformer/rotary"))
    mixing = torch.randn(5, 4)
    monkeypatch.setattr(
        vectors, "states", lambda source, inputs: inputs.cumsum(1) + torch.einsum("bse,st->bte", source, mixing)
    )
    questions = [Question(torch.tensor(TARGET), torch.tensor([7, 7, 7, 7]))]
    asked = [(0, place) for place in range(4)]
    gradient = along(vectors, questions, asked, torch.ones(1), torch.ones(1))
    points = torch.linspace(0.05, 0.95, 10)
    integrated = along(vectors, questions, asked, points, torch.full((10,), 0.1))
    torch.testing.assert_close(gradient, integrated, rtol=1e-4, atol=1e-5)
    real = torch.zeros(1, 4)
    with torch.no_grad():
        real[0] = questions[0].answers(vectors.model.scores(vectors.states(*vectors.at(torch.ones(1)))))[0]
    torch.testing.assert_close(occlude(vectors, questions, real, side(TARGET))[0], gradient, rtol=1e-4, atol=1e-5)


def test_why_this_and_not_that_is_the_difference_of_why_this_and_why_that():
    vectors = Vectors(traced("transformer>transformer/rotary"))
    this, that = torch.tensor(TARGET), torch.tensor([7, 8, 7, 8])
    questions = [Question(this), Question(that), Question(this, that)]
    asked = [(number, place) for number in range(3) for place in range(4)]
    found = along(vectors, questions, asked, torch.tensor([0.3, 0.9]), torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(found[2], found[0] - found[1], rtol=1e-3, atol=1e-5)


def test_a_word_is_taken_away_whole():
    seen = traced("transformer>transformer/rotary", side(SOURCE, [0, 1, 1, 2, 3]))
    found = attribute(seen, ["occlusion"]).answers[0].methods["occlusion"]
    lost = value(seen, SOURCE, INPUTS) - value(seen, [9, UNK, UNK, 12, EOS], INPUTS)
    torch.testing.assert_close(found.words(seen)[0][:, 1], lost, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found.words(seen)[0][:, 0], found.source[:, 0])


@pytest.mark.parametrize("run", ["copy_run", "transformer_run"])
def test_a_copying_model_prefers_what_it_says_because_of_the_word_it_copies(request, run):
    seen = regard.load(request.getfixturevalue(run)).trace("d a c b", target="d a c b")
    lead = attribute(seen).answers[1]  # over the runner-up: a log-probability of 0 has nothing more to lose
    for method in ("integrated", "occlusion"):
        assert lead.methods[method].source[:4].argmax(-1).tolist() == [0, 1, 2, 3]


def test_another_word_is_met_piece_by_piece():
    class Pieces:
        def encode(self, text):
            return type("Encoded", (), {"ids": {"ab": [11, 8], "": [], "?": [UNK]}[text]})

    target = side(TARGET, [0, 0, 1, 2])
    seen = Trace(model_of("narrow"), side(SOURCE), target, side(INPUTS), {}, torch.zeros(4, 23), Pieces())
    assert alternative(seen, "ab").tolist() == [11, 8, 11, 11]
    for text in ("", "?"):
        with pytest.raises(UsageError, match="no word that this model can say"):
            alternative(seen, text)


def test_a_method_that_there_is_not_is_refused(transformer_run, capsys):
    assert main(["inspect", "attribute", str(transformer_run), "a b", "--method", "magic"]) == 2
    assert "occlusion, integrated, gradient" in capsys.readouterr().err


def test_the_table_and_the_data_say_the_same(transformer_run, capsys):
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--instead", "d"]) == 0
    table = capsys.readouterr().out
    assert "and not “d”" in table and "occlusion" in table
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--method", "occlusion", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [question["name"] for question in data["questions"]] == [
        "why it was said",
        "why it was said and not the runner-up",
    ]
    matrix = data["questions"][0]["methods"][0]["tokens"]["source"]
    assert len(matrix) == len(data["target"]["tokens"]) and len(matrix[0]) == len(data["source"]["tokens"])


@pytest.fixture(scope="module")
def page(transformer_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("attribution") / "page.html"
    inspection.attribute(regard.load(transformer_run).trace("d a c b", target="d a c b")).save(path)
    return path


def tints(browser, selector):
    return [one.value_of_css_property("background-color") for one in all_of(browser, f"{selector} .text")]


def test_a_word_that_is_picked_shows_what_made_it(browser, page):
    opened(browser, page)
    said = all_of(browser, ".said")
    said[2].click()
    one_of(browser, "h1").click()
    assert said[2].get_attribute("aria-pressed") == "true"
    shades = tints(browser, ".tokens.source")
    assert shades[2] not in (shades[0], shades[1], shades[3])
    told = one_of(browser, ".influence-told").text
    assert told.startswith("c") and "nats" in told and "might have said" in told and "gap" not in told
    next(one for one in all_of(browser, "[aria-label=method] button") if one.text == METHODS["integrated"]).click()
    assert "gap" in one_of(browser, ".influence-told").text


def test_methods_and_questions_are_switched_on_the_same_matrix(browser, page):
    opened(browser, page)
    names = [one.text for one in all_of(browser, "[aria-label=method] button")]
    assert names[:3] == list(METHODS.values()) and "attention" in names
    before = tints(browser, ".tokens.source")
    all_of(browser, "[aria-label=method] button")[-1].click()
    assert tints(browser, ".tokens.source") != before
    Select(one_of(browser, "select[aria-label=minus]")).select_by_index(1)
    assert "larger share" in one_of(browser, ".panel").text
    all_of(browser, "[aria-label=why] button")[1].click()
    all_of(browser, "[aria-label=level] button")[1].click()
    assert browser.get_log("browser") == [] and len(all_of(browser, ".said")) == 5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_a_telephone(browser, page, dark):
    opened(browser, page, 390, dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert all_of(browser, ".said")[0].find_element(By.CSS_SELECTOR, ".bar").is_displayed()
