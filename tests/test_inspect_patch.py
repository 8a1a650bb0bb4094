"""Patching: what a copied activation brings back of the answer to another source."""

import json
import re

import pytest
import torch
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from regard import inspection
from regard.cli import main
from regard.inspection.analyses.patch import compute as patching
from regard.inspection.analyses.patch import copying
from regard.inspection.analyses.patch.compute import ENCODER_LAYERS, SUMMARY
from regard.inspection.analyses.patch.copying import Spot, differences
from regard.inspection.analyses.prune.removal import without_heads
from regard.models import build
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side, trace
from regard.text.specials import BOS, EOS
from tests.cells import KINDS, VOCABULARY, model_of

CLEAN, CORRUPTED = [9, 7, 8, 12, EOS], [9, 15, 8, 12, EOS]
PREFIX, ANSWER, INSTEAD = [11, 6], 9, 13
NAMES = {
    "encoder": ["encoder.layers.0.attention", "encoder.layers.1.attention"],
    "decoder": ["decoder.layers.0.attention", "decoder.layers.1.attention"],
    "source": ["decoder.layers.0.source_attention", "decoder.layers.1.source_attention"],
}


def traced(model, source, last):
    def side(ids):
        return Side(ids, [str(one) for one in ids], list(range(len(ids))), [one in (BOS, EOS) for one in ids])

    said = [*PREFIX, last, EOS]
    return trace(model, side(source), side(said), side([BOS, *said[:-1]]))


@pytest.fixture(scope="module")
def copier(transformer_run):
    return load_run(transformer_run)


@pytest.mark.parametrize("name", KINDS)
def test_an_identity_patch_recovers_nothing_and_a_full_patch_all_in_every_cell(name):
    model = model_of(name)
    clean, corrupted = traced(model, CLEAN, ANSWER), traced(model, CORRUPTED, INSTEAD)
    place = len(PREFIX)
    rows = [one.log_probabilities[place] for one in (clean, corrupted)]
    want = [float(row[ANSWER] - row[INSTEAD]) for row in rows]
    states = [one for one in clean.activations if ENCODER_LAYERS.fullmatch(one)]
    heads = [one for one in clean.activations if one.endswith(".head_outputs")]
    single = [(Spot(states[-1], 1),), (Spot(SUMMARY),), *((Spot(one, head=0),) for one in heads)]
    full = (Spot(states[-1]), Spot(SUMMARY))
    same = differences(corrupted, corrupted.activations, [*single, full], (ANSWER, INSTEAD), place)
    torch.testing.assert_close(same, torch.full_like(same, want[1]), rtol=1e-4, atol=1e-5)
    found = differences(corrupted, clean.activations, [full], (ANSWER, INSTEAD), place)
    torch.testing.assert_close(found, torch.tensor([want[0]]), rtol=1e-4, atol=1e-5)


def test_for_a_transformer_the_states_of_the_last_encoder_layer_are_all_there_is(copier):
    found = inspection.patch(copier.trace("d a c b", "d a c b"), copier.trace("d a e b", "d a e b"))
    wholes = dict(found.wholes)
    assert wholes["the source's states, all layers"] == pytest.approx(1, abs=1e-3)
    assert wholes["the source as one vector"] == pytest.approx(0, abs=1e-3)
    assert wholes["all attention to the source"] == pytest.approx(1, abs=1e-3)


def test_the_word_that_was_changed_carries_the_difference(copier):
    found = inspection.patch(copier.trace("d a c b", "d a c b"), copier.trace("d a e b", "d a e b"))
    assert (found.answer, found.instead, found.read) == ("c", "e", ["<s>", "d", "a"])
    states = next(one for one in found.maps if one.part == "states" and one.kind == "encoder")
    assert states.rows == ["embedding", "layer 0", "layer 1"]
    assert states.columns == ["d", "a", "c/e", "b", "</s>"]
    torch.testing.assert_close(states.values[0], torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]), atol=1e-3, rtol=0)
    last = next(one for one in found.maps if one.part == "states" and one.kind == "decoder").values[-1]
    torch.testing.assert_close(last, torch.tensor([0.0, 0.0, 1.0]), atol=1e-3, rtol=0)


def test_together_or_one_by_one_patches_recover_the_same(copier, monkeypatch):
    pair = copier.trace("d a c b", "d a c b"), copier.trace("d a e b", "d a e b")
    together = inspection.patch(*pair)
    monkeypatch.setattr(copying, "TOKENS", 1)
    for one, other in zip(together.maps, inspection.patch(*pair).maps, strict=True):
        torch.testing.assert_close(one.values, other.values, rtol=1e-3, atol=1e-4)


def test_there_is_a_map_of_states_attention_and_heads_of_every_kind(copier):
    found = inspection.patch(copier.trace("d a c b", "d a c b"), copier.trace("d a e b", "d a e b"))
    assert {(one.part, one.kind) for one in found.maps} == {
        ("states", "encoder"),
        ("states", "decoder"),
        *((part, kind) for part in ("attention", "heads") for kind in ("encoder", "decoder", "source")),
    }
    for one in found.maps:
        assert one.values.shape == (len(one.rows), len(one.columns)) and one.values.isfinite().all()


def test_layers_may_have_lost_heads(monkeypatch):
    model = without_heads(
        model_of("transformer>transformer/attention"),
        {"encoder.layers.0.attention": [1], "decoder.layers.1.source_attention": [], "decoder.layers.0.attention": [0]},
        lambda cell: build(cell, VOCABULARY, VOCABULARY),
    )
    pair = traced(model, CLEAN, ANSWER), traced(model, CORRUPTED, INSTEAD)
    monkeypatch.setattr(patching, "SMALLEST", 0.01)  # the model is random
    found = inspection.patch(*pair)
    heads = {one.kind: one.values.isfinite().sum(1).tolist() for one in found.maps if one.part == "heads"}
    counts = {
        kind: [len(pair[0].activations[f"{name}.head_outputs"]) for name in names] for kind, names in NAMES.items()
    }
    assert heads == counts
    assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("clean", "corrupted", "more", "message"),
    [
        ("a b c", "a b c d", [], r"4 and 5 tokens \(a\|b\|c\|</s> and a\|b\|c\|d\|</s>\)"),
        ("a b c", "a b c", [], "the same to this model"),
        ("a b c", "a b d", ["--target", "a b", "--instead", "a b"], "--instead"),
        ("a b c", "a b d", ["--target", "a b d", "--instead", "a b c"], "no difference to recover"),
        ("", "a", [], "source text is empty"),
    ],
)
def test_sources_that_cannot_be_compared_are_refused(transformer_run, capsys, clean, corrupted, more, message):
    assert main(["inspect", "patch", str(transformer_run), clean, corrupted, *more]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_patching_by_a_recurrent_model_as_table_data_and_picture(copy_run, tmp_path, capsys):
    pair = ["a b c", "a b d", "--target", "a b c", "--instead", "a b d"]
    assert main(["inspect", "patch", str(copy_run), *pair]) == 0
    assert "all that the encoder leaves" in capsys.readouterr().out
    assert main(["inspect", "patch", str(copy_run), *pair, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    wholes = {one["name"]: one["recovery"] for one in said["wholes"]}
    assert wholes["both: all that the encoder leaves"] == pytest.approx(1, abs=1e-3)
    pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    assert main(["inspect", "patch", str(copy_run), *pair, "-o", str(tmp_path / "patch.svg")]) == 0
    assert (tmp_path / "patch.svg").read_bytes().startswith(b"<?xml")


def test_the_page_switches_between_states_attention_and_heads(copier, browser, tmp_path):
    found = inspection.patch(copier.trace("d a c b", "d a c b"), copier.trace("d a e b", "d a e b"))
    path = tmp_path / "patch.html"
    found.save(path)
    browser.get(path.as_uri())
    assert [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".patch-differs")] == ["c", "e"]
    titles = []
    for button in browser.find_elements(By.CSS_SELECTOR, ".controls button"):
        button.click()
        titles.append([one.text for one in browser.find_elements(By.CSS_SELECTOR, ".patch-maps .view-heading")])
    assert [len(some) for some in titles] == [2, 3, 3]
    browser.find_element(By.CSS_SELECTOR, ".patch-maps canvas").send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
    assert "recovers" in browser.find_element(By.CSS_SELECTOR, ".patch-readout").text
    assert browser.get_log("browser") == []
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390  # a telephone shows it
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_recoveries_over_many_pairs_have_intervals(copier, transformer_run, tmp_path, capsys):
    pairs = [("a b c", "a d c"), ("b c d", "b a d"), ("c a b", "c f b"), ("a b", "a b c"), ("e f a", "d f a")]
    found = inspection.patch_pairs(copier, pairs)
    assert found.pairs == 4 and len(found.skipped) == 1 and found.skipped[0].startswith("pair 4:")
    for place, one in enumerate(found.wholes):
        values = [
            dict(inspection.patch(copier.trace(clean), copier.trace(other)).wholes)[one.name]
            for clean, other in pairs[:3] + pairs[4:]
        ]
        assert one.mean == pytest.approx(sum(values) / 4, abs=1e-4), place
        assert one.interval[0] <= one.mean <= one.interval[1]
    (tmp_path / "pairs.tsv").write_text("".join(f"{clean}\t{other}\n" for clean, other in pairs))
    command = ["inspect", "patch", str(transformer_run), "--pairs", str(tmp_path / "pairs.tsv")]
    assert main(command) == 0
    assert "4 pairs of sources" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["heads"][0]["recovery_95"][0] <= facts["heads"][0]["recovery"] <= facts["heads"][0]["recovery_95"][1]
    for ending in ("html", "txt", "json"):
        found.save(tmp_path / f"pairs.{ending}")
    assert main([*command, "a b"]) == 2 and "leave out the others" in capsys.readouterr().err
    assert main(["inspect", "patch", str(transformer_run), "a b"]) == 2
    capsys.readouterr()
    (tmp_path / "bad.tsv").write_text("a b c\n")
    assert main([*command[:-1], str(tmp_path / "bad.tsv")]) == 1
    assert "bad.tsv:1 has 1 tab-separated columns" in capsys.readouterr().err


def test_one_pair_is_said_to_have_no_interval(copier):
    assert "no interval" in str(inspection.patch(copier.trace("a b c"), copier.trace("a d c")))
