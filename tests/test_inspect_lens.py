"""The lens: every decoder layer read as if it were the last."""

import json

import pytest
import torch
from selenium.webdriver.common.by import By

from regard import inspection
from regard.cli import main
from regard.inspection.states import DECODER_LAYERS
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side, trace
from regard.text.specials import BOS, EOS
from tests.cells import CELLS, KINDS, model_of

SOURCE, TARGET = [9, 7, 8, 12, EOS], [11, 6, 9, EOS]


def traced(model):
    def side(ids):
        return Side(ids, [str(one) for one in ids], list(range(len(ids))), [one in (BOS, EOS) for one in ids])

    return trace(model, side(SOURCE), side(TARGET), side([BOS, *TARGET[:-1]]))


@pytest.fixture(scope="module")
def copier(transformer_run):
    return load_run(transformer_run)


@pytest.mark.parametrize("name", KINDS)
def test_the_last_layer_is_the_model_itself_in_every_cell(name):
    seen = traced(model_of(name))
    found = inspection.lens(seen, words=10**6)
    torch.testing.assert_close(found.probabilities[-1], seen.target_log_probs.exp(), rtol=1e-4, atol=1e-6)
    for place, words in enumerate(found.top[-1]):
        shares = seen.log_probabilities[place].exp()
        torch.testing.assert_close(torch.tensor([share for _, share in words]), shares.sort(descending=True).values)
        assert found.ranks[-1, place] == 1 + (shares > shares[TARGET[place]]).sum()
    layers = CELLS[name].decoder.layers
    assert found.ranks.shape == found.probabilities.shape == (layers, len(TARGET))
    assert layers == 1 or (found.probabilities[0] - found.probabilities[-1]).abs().max() > 1e-5


@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_layer_is_read_through_the_final_norm_and_the_output_layer(place):
    cell = next(
        name
        for name, one in CELLS.items()
        if one.decoder.kind == "transformer" and one.decoder.norm_place == place and one.join.kind == "attention"
    )
    model = model_of(cell)
    seen = traced(model)
    states = seen.activations["decoder.layers.0.states"]
    with torch.no_grad():
        by_hand = model.scores(model.decoder.exit(model.decoder.norm(states))).softmax(-1)
    found = inspection.lens(seen)
    torch.testing.assert_close(found.probabilities[0], by_hand[range(len(TARGET)), TARGET], rtol=1e-4, atol=1e-6)


def test_a_layer_that_changes_nothing_says_what_the_layer_before_says(copier):
    seen = copier.trace("d a c b")
    names = [name for name in seen.activations if DECODER_LAYERS.fullmatch(name)]
    again = seen.again({names[-1]: lambda _: seen.activations[names[0]][None]})
    found = inspection.lens(again)
    torch.testing.assert_close(found.probabilities[0], found.probabilities[1])


def test_a_word_is_decided_where_it_becomes_first_for_good(copier):
    found = inspection.lens(copier.trace("d a c b", "d a c b"))
    for place, layer in enumerate(found.decided):
        first = [bool(rank == 1) for rank in found.ranks[:, place]]
        assert not first[-1] if layer is None else all(first[layer:])
        assert layer in (None, 0) or not first[layer - 1]
    assert found.decided[0] is not None
    assert found.top[-1][0][0][0] == "d"


def test_the_lens_as_a_table_data_and_pictures(copier, transformer_run, tmp_path, capsys):
    assert main(["inspect", "lens", str(transformer_run), "a b c"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["word", "layer", "0", "layer", "1", "first", "from"]
    assert main(["inspect", "lens", str(transformer_run), "a b c", "--target", "c a", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["target"] == ["c", "a", "</s>"] and len(said["layers"]) == 2
    pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    inspection.lens(copier.trace("a b c")).save(tmp_path / "lens.png")
    assert (tmp_path / "lens.png").read_bytes().startswith(b"\x89PNG")


def test_a_target_that_cannot_be_said_is_refused_by_the_lens(transformer_run, capsys):
    assert main(["inspect", "lens", str(transformer_run), "a b", "--target", "a zebra"]) == 2
    assert "word 2" in capsys.readouterr().err


def test_a_click_opens_what_a_layer_would_have_said(copier, browser, tmp_path):
    text = " ".join("abcdef"[place % 6] for place in range(100))
    found = inspection.lens(copier.trace("d a c b", text))
    path = tmp_path / "lens.html"
    found.save(path)
    browser.get(path.as_uri())
    cells = browser.find_elements(By.CSS_SELECTOR, ".lens td")
    assert len(cells) == 2 * 101
    cells[-1].click()
    assert "position 101" in browser.find_element(By.CSS_SELECTOR, ".lens-detail").text
    before = cells[1].value_of_css_property("background-color")
    browser.find_elements(By.CSS_SELECTOR, ".controls button")[1].click()
    assert browser.find_elements(By.CSS_SELECTOR, ".controls button")[1].get_attribute("aria-pressed") == "true"
    colours = {cell.value_of_css_property("background-color") for cell in cells[:20]}
    assert len(colours) > 1 and before
    assert browser.get_log("browser") == []
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390  # a telephone shows it
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
