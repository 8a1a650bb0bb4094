"""Contributions take a model apart exactly: parts sum to the whole, shares to one, and planted truths are found."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from regard import inspection
from regard.cli import main
from regard.config.cell import resolve
from regard.config.model import Model as Cell
from regard.foundation.errors import UsageError
from regard.inspection.analyses.contributions.compute import contributions
from regard.inspection.decomposition import Block
from regard.inspection.flow import attention_flows, decompose, layers, roll_out, why_not_applicable
from regard.inspection.gain import Gain
from regard.models import build
from regard.nn.attention import Attention
from regard.tasks.loaded import load_run
from regard.tasks.trace import trace
from regard.text.specials import EOS, UNK
from tests.cells import CELLS, model_of
from tests.test_browser_pages import all_of, one_of, opened
from tests.test_inspect_attribution import EACH, INPUTS, SOURCE, TARGET, side, traced, value

TRANSFORMERS = [name for name in CELLS if ">transformer" in name or name == "narrow"]


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_the_parts_of_every_block_sum_to_what_it_gave_and_the_shares_of_every_row_to_one(name):
    seen, blocks = traced(name), []
    if why_not_applicable(seen):
        with pytest.raises(UsageError, match="regard inspect attribute"):
            contributions(seen)
        return

    def measure(block, found):
        blocks.append(block)
        parts, bias = block.parts()
        torch.testing.assert_close(parts.sum(1) + bias, block.output(found), rtol=1e-4, atol=1e-5)
        return block.contributions(found)

    for found in (layers(seen, measure), roll_out(seen)):
        source, prefix = found.roll()
        torch.testing.assert_close(source.sum(-1) + prefix.sum(-1), torch.ones(len(TARGET)))
        assert source.min() >= 0 and prefix.min() >= 0 and prefix.triu(1).max() == 0
    assert len(blocks) >= len(seen.model.decoder.layers)


@pytest.mark.parametrize("name", ["transformer>transformer/attention", "transformer-post>transformer-post/attention"])
def test_what_a_block_gave_is_what_the_model_went_on_with(name):
    seen, given = traced(name), []
    layers(seen, lambda block, found: (given.append(block.output(found)), block.contributions(found))[1])
    layer = seen.model.encoder.layers[0]
    with torch.no_grad():
        normed = layer.feed_forward_norm(given[0]) if layer.pre else given[0]
        states = given[0] + layer.feed_forward(normed)
        states = states if layer.pre else layer.feed_forward_norm(states)
    torch.testing.assert_close(states, seen.activations["encoder.layers.0.states"], rtol=1e-4, atol=1e-5)


def test_a_decoder_that_finds_nothing_in_the_source_has_no_share_of_it():
    model = model_of("transformer>transformer/attention")
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.source_attention.out.weight.zero_()
    found = contributions(trace(model, side(SOURCE), side(TARGET), side(INPUTS)))
    assert found.source_share.max() == 0
    torch.testing.assert_close(found.prefix.sum(-1), torch.ones(len(TARGET)))


def test_a_fixed_vector_brings_the_source_to_the_places_it_is_added_to():
    for form, reached in (("every-step", 4), ("transformed", 1)):
        source, _ = decompose(traced(f"transformer>transformer/{form}")).entered
        assert (source.sum(-1) > 0).tolist() == [place < reached for place in range(4)]


def test_rollout_gives_every_word_the_same_source_share():
    source, _ = roll_out(traced("transformer>transformer/attention")).roll()
    torch.testing.assert_close(source.sum(-1), torch.full((4,), 1 - 0.5**2))


@pytest.fixture
def plain() -> Attention:
    """Two heads that pass values on as they are."""
    made = Attention(query_width=4, memory_width=4, heads=2, score="scaled-dot")
    with torch.no_grad():
        made.value.weight.copy_(torch.eye(4)), made.out.weight.copy_(torch.eye(4))
    return made


def test_a_block_that_copies_got_all_from_what_it_copied_and_one_that_keeps_all_from_itself(plain):
    states, looks = torch.randn(3, 4), torch.tensor([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    found = looks @ states
    with torch.no_grad():
        copied = Block(plain, looks.expand(2, 3, 3), states, torch.zeros(4), torch.zeros(3, 4), own=True)
        torch.testing.assert_close(copied.contributions(found), looks)
        keeping = Block(plain, torch.zeros(2, 3, 3), states, torch.zeros(4), states, own=True)
        torch.testing.assert_close(keeping.contributions(torch.zeros(3, 4)), torch.eye(3))
        halves = Block(plain, looks.expand(2, 3, 3), states, torch.zeros(4), found, own=False)
        shares = halves.contributions(found)
        torch.testing.assert_close(shares, torch.cat([looks / 2, torch.full((3, 1), 0.5)], dim=1))


@pytest.mark.parametrize("norm", [nn.LayerNorm(4), nn.RMSNorm(4, eps=1e-6)], ids=["layer", "rms"])
def test_a_norm_behind_the_sum_is_taken_apart_with_it(plain, norm):
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([0.5, 2, -1, 1]))
        states = torch.randn(3, 4)
        weights = torch.rand(2, 3, 3).softmax(-1)
        found = torch.einsum("htn,nhk->thk", weights, states.view(3, 2, 2)).flatten(1)
        parts, bias = (block := Block(plain, weights, states, torch.zeros(4), states, own=True, norm=norm)).parts()
        torch.testing.assert_close(parts.sum(1) + bias, block.output(found))


def test_heads_that_were_taken_out_contribute_nothing():
    settings = {
        "width": 16,
        "encoder": {"kind": "transformer", "layers": 1},
        "decoder": {"kind": "transformer", "layers": 1},
        "attention": {"heads": 2},
        "pruned": {"encoder.layers.0.attention": [], "decoder.layers.0.source_attention": [1]},
    }
    torch.manual_seed(0)
    model = build(resolve(Cell.model_validate(settings), shared_vocabulary=True), 23, 23).eval()
    found = decompose(trace(model, side(SOURCE), side(TARGET), side(INPUTS)))
    torch.testing.assert_close(found.encoder[0], torch.eye(len(SOURCE)))
    assert found.roll()[0].sum() > 0


def test_a_recurrent_decoder_is_told_of_attribution(copy_run, capsys):
    assert main(["inspect", "contributions", str(copy_run), "a b"]) == 2
    assert "regard inspect attribute" in capsys.readouterr().err
    assert [one.name for one in attention_flows(load_run(copy_run).trace("a b"))] == ["attention"]


def test_a_copying_model_gets_each_word_from_the_one_it_copies(transformer_run):
    found = contributions(load_run(transformer_run).trace("d a c b", target="d a c b"))
    assert found.source[:4].argmax(-1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", EACH)
def test_a_gain_is_what_a_plain_pass_loses_when_every_source_token_is_unknown(name):
    seen = traced(name)
    lost = value(seen, SOURCE, INPUTS) - value(seen, [UNK] * 4 + [EOS], INPUTS)
    torch.testing.assert_close(Gain.of(seen).tokens, lost, rtol=1e-3, atol=1e-5)


def test_a_word_gains_what_its_tokens_gain_and_is_flagged_whole_below_zero():
    target = side([11, 6, 9, 12, EOS], [0, 0, 1, 1, 2])
    found = Gain(torch.tensor([2.0, -3.0, -1.0, 1.5, -4.0]), target)
    torch.testing.assert_close(found.words, torch.tensor([-1.0, 0.5, -4.0]))
    assert found.flagged == [True, True, False, False, False], "the end symbol never is"


def test_words_that_the_source_does_not_hold_gain_less_than_those_that_it_holds(copy_run):
    translator = load_run(copy_run)
    right, wrong = [], []
    for row in ("dacb", "bcad", "cabd", "abdc", "bdca", "cdba"):
        for place in range(4):
            said = row[:place] + "f" + row[place + 1 :]
            words = Gain.of(translator.trace(" ".join(row), " ".join(said))).words.tolist()
            right, wrong = [*right, *words[:place]], [*wrong, words[place]]
        assert not any(Gain.of(translator.trace(" ".join(row))).flagged)
    less = [one < other for one in wrong for other in right]
    assert sum(less) / len(less) > 0.9


def test_who_finds_nothing_in_the_source_gains_nothing_by_it():
    model = model_of("transformer>transformer/attention")
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.source_attention.out.weight.zero_()
    found = Gain.of(trace(model, side(SOURCE), side(TARGET), side(INPUTS)))
    torch.testing.assert_close(found.tokens, torch.zeros(len(TARGET)), atol=1e-5, rtol=0)


def test_table_data_and_page_say_how_much_is_the_source(transformer_run, capsys, tmp_path, browser):
    assert main(["inspect", "contributions", str(transformer_run), "d a c b"]) == 0
    table = capsys.readouterr().out
    assert "share" in table and "no word is below zero" in table and "%" in table
    assert main(["inspect", "contributions", str(transformer_run), "d a c b", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["sourceShare"]) == len(data["target"]["tokens"]) and min(data["gain"]["words"][:4]) > 0
    path = tmp_path / "page.html"
    found = contributions(load_run(transformer_run).trace("d a c b"))
    found = replace(found, gain=Gain(torch.tensor([1.0, -2.0, 3.0, 4.0, -5.0]), found.trace.target))
    assert "▾ less likely with its source than with a blank one (gain, in nats, of the whole word): a." in str(found)
    found.save(path)
    opened(browser, path)
    marked = all_of(browser, ".output.low")
    assert [one.text for one in marked] == ["a"]
    marked[0].click()
    assert "perhaps invented" in one_of(browser, ".influence-readout").text
    assert main(["inspect", "contributions", str(transformer_run), "d a c b", "-o", str(path)]) == 0
    opened(browser, path)
    said = all_of(browser, ".output")
    widths = [one.find_element("css selector", ".bar i").rect["width"] for one in said]
    assert len(set(widths)) > 1
    said[1].click()
    share = round(100 * data["sourceShare"][1])
    assert f"source {share} %" in one_of(browser, ".influence-readout").text
    all_of(browser, "[aria-label=method] button")[1].click()
    assert not said[1].find_element("css selector", ".bar").is_displayed(), "rollout has no share to show"


def test_what_is_shown_is_in_the_interface():
    assert {"attribute", "contributions"} <= set(dir(inspection))
