"""Attribution says which input made an output: it adds up, it finds what was copied, and it works in every cell."""

import json

import pytest
import torch
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from regard import inspection
from regard.cli import main
from regard.foundation.errors import UsageError
from regard.inspection.analyses.attribute import other_word as other_words
from regard.inspection.analyses.attribute.compute import attribute
from regard.inspection.analyses.attribute.methods import METHODS, gradients_along_path, occlude, tolerance
from regard.inspection.vectors import Question, Vectors
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side, Trace, trace
from regard.text.specials import BOS, EOS, UNK
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
    assert (answer.gaps <= tolerance(difference)).all() and answer.wide == []


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
    gradient = gradients_along_path(vectors, questions, asked, torch.ones(1), torch.ones(1))
    points = torch.linspace(0.05, 0.95, 10)
    integrated = gradients_along_path(vectors, questions, asked, points, torch.full((10,), 0.1))
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
    found = gradients_along_path(vectors, questions, asked, torch.tensor([0.3, 0.9]), torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(found[2], found[0] - found[1], rtol=1e-3, atol=1e-5)


def test_a_word_is_taken_away_whole():
    seen = traced("transformer>transformer/rotary", side(SOURCE, [0, 1, 1, 2, 3]))
    found = attribute(seen, ["occlusion"]).answers[0].methods["occlusion"]
    lost = value(seen, SOURCE, INPUTS) - value(seen, [9, UNK, UNK, 12, EOS], INPUTS)
    torch.testing.assert_close(found.words(seen)[0][:, 1], lost, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found.words(seen)[0][:, 0], found.source[:, 0])


@pytest.mark.parametrize("run", ["copy_run", "transformer_run"])
def test_a_copying_model_prefers_what_it_says_because_of_the_word_it_copies(request, run):
    seen = load_run(request.getfixturevalue(run)).trace("d a c b", target="d a c b")
    lead = attribute(seen).answers[1]  # over the runner-up: a log-probability of 0 has nothing more to lose
    for method in ("integrated", "occlusion"):
        assert lead.methods[method].source[:4].argmax(-1).tolist() == [0, 1, 2, 3]


class Pieces:
    """A tokenizer of which some words are several pieces."""

    vocabulary = tuple(f"{'▁' if number % 2 else ''}t{number}" if number != 20 else "▁" for number in range(23))

    def encode(self, text):
        known = {"ab": [11, 8], "one": [13], "": [], "?": [UNK], "bare": [20, 8], "a b": [11, 13]}
        return type("Encoded", (), {"ids": known[text]})

    def decode(self, ids):
        return " ".join(self.vocabulary[one] for one in ids)


def pieced(cell="transformer>transformer/rotary"):
    """A trace whose first target word has two tokens."""
    inputs = side(INPUTS, [0, 1, 1, 2])
    model = model_of(cell)
    return trace(model, side(SOURCE), side(TARGET, [0, 0, 1, 2]), inputs, tokenizer=Pieces())


def test_the_whole_of_another_word_is_scored_at_one_place(monkeypatch):
    monkeypatch.setattr(other_words.Side, "of", lambda tokenizer, ids: words_of(ids))
    seen = pieced()
    for at, start in ((1, 0), (2, 2)):
        other = other_words.compare_with_word(seen, "ab", at)
        assert (other.word, other.places[0], other.own) == (at - 1, start, [start, start + 1])
        read = [BOS, *TARGET[:start], 11]
        with torch.no_grad():
            logits = seen.model.scores(seen.model.outputs(torch.tensor([SOURCE]), torch.tensor([read])))[0]
        chances = logits.log_softmax(-1)
        expected = chances[start, 11] + chances[start + 1, 8]
        assert other.log_probs[1] == pytest.approx(expected.item(), abs=1e-4)
        assert other.log_probs[0] == pytest.approx(seen.target_log_probs[other.places].sum().item(), abs=1e-5)
    with pytest.raises(UsageError, match="name one with --at") as error:
        other_words.compare_with_word(seen, "ab")
    best = max((other_words.compare_with_word(seen, "ab", at) for at in (1, 2)), key=lambda one: one.log_probs[1])
    assert f"highest in place of word {best.word + 1} “" in str(error.value)


def words_of(ids):
    words = [max(0, number) for number in range(len(ids))]
    return side(ids, words)


def test_the_lead_over_another_word_is_lost_token_by_token(monkeypatch):
    monkeypatch.setattr(other_words.Side, "of", lambda tokenizer, ids: words_of(ids))
    seen = pieced()
    found = attribute(seen, ["occlusion"], instead="ab", at=1)
    lead, why = found.answers
    assert lead.others == ["ab", "", "", ""] and why.others is None
    amounts = lead.methods["occlusion"].source
    assert amounts[1:].abs().max() == 0 and amounts[0].abs().max() > 0

    def whole(source, ids):
        with torch.no_grad():
            logits = seen.model.scores(seen.model.outputs(torch.tensor([source]), torch.tensor([[BOS, *ids[:-1]]])))[0]
        return logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum().item()

    for place in range(2):
        blank = [*SOURCE[:place], UNK, *SOURCE[place + 1 :]]
        lost = (whole(SOURCE, TARGET[:2]) - whole(SOURCE, [11, 8])) - (whole(blank, TARGET[:2]) - whole(blank, [11, 8]))
        assert amounts[0, place].item() == pytest.approx(lost, abs=1e-4)
    facts = found.to_json()["instead"]
    assert facts["word"] == 1 and facts["instead"] == "ab" and "as whole words" in str(found)


@pytest.mark.parametrize(
    ("text", "replaced", "expected"),
    [
        ("Hund", "rennt.", "Hund."),
        ("Hund", "„rennt“", "„Hund“"),
        ("Hund!", "rennt.", "Hund!"),
        ("Hund", "rennt", "Hund"),
        ("Hund", "3.", "Hund."),
        ("Hund", ".", "Hund"),  # a full stop is a word of its own here
        (",", "rennt.", ","),
        ("E-Bike", "U-Bahn,", "E-Bike,"),
    ],
)
def test_another_word_takes_over_the_punctuation_of_the_one_it_replaces(text, replaced, expected):
    assert other_words.with_punctuation(text, replaced) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "not a word that this model can write"), ("?", "not a word that this model can write"), ("a b", "is several"),
     ("bare", "bare space mark")],
)  # fmt: skip
def test_what_is_no_word_to_be_set_against_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        other_words.compare_with_word(pieced(), text)
    with pytest.raises(UsageError, match="no word 9"):
        other_words.compare_with_word(pieced(), "one", 9)


def test_a_table_says_how_much_of_what_all_tokens_do_is_covered(transformer_run):
    found = attribute(load_run(transformer_run).trace("d a c b", target="d a c b"))
    for answer, facts in zip(found.answers, found.to_json()["explanations"], strict=True):
        for method, one in answer.methods.items():
            rows = (one.source.sum(-1) + one.prefix.sum(-1)).tolist()
            assert facts["covered"][METHODS[method]] == pytest.approx(rows, abs=1e-3)
            assert not one.splits  # the start symbol is never blanked: a share of source and prefix would be made up
    assert "covers" in str(found) and f"of {found.answers[0].explained[0].item():+.2f}" in str(found)


def test_a_method_that_there_is_not_is_refused(transformer_run, capsys):
    assert main(["inspect", "attribute", str(transformer_run), "a b", "--method", "magic"]) == 2
    assert "occlusion, integrated, gradient" in capsys.readouterr().err


def test_the_table_and_the_data_say_the_same(transformer_run, capsys):
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--instead", "d"]) == 2
    assert "name one with --at N" in " ".join(capsys.readouterr().err.split())
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--instead", "d", "--at", "1"]) == 0
    table = capsys.readouterr().out
    assert "and not “d”" in table and "occlusion" in table and "Compared at word 1, “a”" in table
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--instead", "b", "--at", "2"]) == 2
    assert 'Word 2 of the output is "b" already' in " ".join(capsys.readouterr().err.split())
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--instead", "d", "--at", "2"]) == 0
    assert "Compared at word 2, “b”" in capsys.readouterr().out
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--at", "2"]) == 2
    assert "--instead" in capsys.readouterr().err
    assert main(["inspect", "attribute", str(transformer_run), "a b c", "--method", "occlusion", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [question["name"] for question in data["questions"]] == [
        "why it was predicted",
        "why it was predicted and not the runner-up",
    ]
    matrix = data["questions"][0]["methods"][0]["tokens"]["source"]
    assert len(matrix) == len(data["target"]["tokens"]) and len(matrix[0]) == len(data["source"]["tokens"])


@pytest.fixture(scope="module")
def page(transformer_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("attribution") / "page.html"
    inspection.attribute(load_run(transformer_run).trace("d a c b", target="d a c b")).save(path)
    return path


def tints(browser, selector):
    return [one.value_of_css_property("background-color") for one in all_of(browser, f"{selector} .text")]


def test_a_word_that_is_picked_shows_what_made_it(browser, page):
    opened(browser, page)
    said = all_of(browser, ".output")
    said[2].click()
    one_of(browser, "h1").click()
    assert said[2].get_attribute("aria-pressed") == "true"
    shades = tints(browser, ".tokens.source")
    assert shades[2] not in (shades[0], shades[1], shades[3])
    told = one_of(browser, ".influence-readout").text
    assert told.startswith("c") and "nats" in told and "alternatives" in told and "gap" not in told
    next(one for one in all_of(browser, "[aria-label=method] button") if one.text == METHODS["integrated"]).click()
    assert "gap" in one_of(browser, ".influence-readout").text


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
    assert browser.get_log("browser") == [] and len(all_of(browser, ".output")) == 5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_a_telephone(browser, page, dark):
    opened(browser, page, 390, dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    first = all_of(browser, ".output")[0]
    assert first.is_displayed()
    assert not first.find_element(By.CSS_SELECTOR, ".bar").is_displayed()  # these methods have no share to show
