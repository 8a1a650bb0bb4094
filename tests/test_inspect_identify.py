"""What a head's weights do is all that can be told from them; other weights that do the same are counted and shown."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from regard import inspection
from regard.cli.verbs import app
from regard.data.batches import SOURCE_FRAME
from regard.foundation.errors import RegardError
from regard.inspection.analyses.identify import identification
from regard.inspection.analyses.identify.effective import Mixed, Slices, other_weights, project
from regard.inspection.analyses.identify.identification import attention_similarities
from regard.inspection.analyses.identify.token_identity import token_identity
from regard.inspection.analyses.identify.token_mixing import measure_mixing
from regard.inspection.corpus import read_texts
from regard.inspection.interventions import attentions
from regard.inspection.states import layer_taps
from regard.nn import taps
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side, Trace, trace
from regard.text.specials import BOS, EOS
from tests.cells import CELLS, covering, model_of

LONG = [9, 7, 8, 12, 11, 6, 10, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 9, 8, 7, EOS]
"""More tokens than any head of the cells is wide."""

ATTENTIVE = {
    (
        (cell.encoder.kind, getattr(cell.encoder, "norm_place", ""), cell.decoder.kind, getattr(cell.join, "order", ""))
        if name.count("/") < 2
        else (cell.encoder.kind, cell.attention.score, cell.attention.heads, cell.attention.keys_values)
    ): name
    for name, cell in CELLS.items()
    if cell.join.kind == "attention" or "transformer" in (cell.encoder.kind, cell.decoder.kind)
}
"""One of each kind of sides and join, and of each kind of attention."""

ENCODERS = {
    (cell.encoder.kind, getattr(cell.encoder, "cell", ""), getattr(cell.encoder, "norm_place", "")): name
    for name, cell in CELLS.items()
}


def side(ids: list[int]) -> Side:
    return Side(ids, [str(one) for one in ids], list(range(len(ids))), [one in (BOS, EOS) for one in ids])


def traced(model, source: list[int], target: list[int]) -> Trace:
    return trace(model, side(source), side(target), side([BOS, *target[:-1]]))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 14), st.integers(1, 6), st.integers(0, 3), st.booleans(), st.integers(0, 99))
def test_the_effective_part_of_any_weights_finds_the_same(length, width, lost, causal, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(length, width, generator=generator, dtype=torch.float64)
    rows[:, : min(lost, width)] = 0.0  # a smaller rank than the head's width
    weights = torch.rand(length, length, generator=generator)
    weights = weights.tril() if causal else weights
    weights = weights / weights.sum(-1, keepdim=True)
    what = Mixed(rows, 16)
    for sums in (False, True):
        part, rank = project(weights, what, causal=causal, sums=sums)
        assert rank == min(length, width - min(lost, width))
        torch.testing.assert_close(part.double() @ rows, weights.double() @ rows, atol=1e-5, rtol=1e-5)
        assert not causal or part.triu(1).abs().max() == 0
        if rank == length:
            assert torch.equal(part, weights)
        if sums:
            torch.testing.assert_close(part.sum(-1), torch.ones(length), atol=1e-5, rtol=1e-5)
        assert part.norm() <= weights.norm() + 1e-5  # what is idle was only taken away
    other = other_weights(weights, what, causal=causal)
    torch.testing.assert_close(other.double() @ rows, weights.double() @ rows, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(other.sum(-1), torch.ones(length), atol=1e-5, rtol=1e-5)
    assert other.min() >= 0
    if length > width + 1 and not causal:
        assert (other - weights).abs().max() > 1e-4


@pytest.mark.parametrize("name", covering(ATTENTIVE.values()))
def test_effective_attention_does_what_raw_attention_does_in_every_cell(name):
    model = model_of(name)
    seen = traced(model, LONG, [*LONG[::-1][1:], EOS])
    found = inspection.identify(seen)
    assert [one.name for one in found.attention] == list(attentions(model))
    for one in found.attention:
        module, values = attentions(model)[one.name], seen.activations[f"{one.name}.values"]
        for number, head in enumerate(one.heads):
            assert head.rank <= min(one.length, one.width)
            rows = values[number].double()
            if module.out is not None:
                rows = rows @ module.out.weight.detach().double().split(one.width, dim=1)[number].T
            assert head.rank == torch.linalg.matrix_rank(rows, rtol=max(rows.shape) * torch.finfo(torch.float32).eps)
            for part in (head.effective, head.same_sum):
                torch.testing.assert_close(part.double() @ rows, head.raw.double() @ rows, atol=1e-5, rtol=1e-4)
    if not found.demonstrations:
        assert all(head.rank == one.length for one in found.attention for head in one.heads)
        return
    effective, other, control = found.demonstrations
    assert effective.moved > 0 and control.moved == pytest.approx(effective.moved, rel=1e-3)
    assert effective.change < 1e-3 and other.change < 1e-3
    assert control.change > 10 * effective.change


def test_short_sentences_leave_no_choice():
    seen = traced(model_of("transformer>transformer/attention/scaled-dot-1"), [*LONG[:4], EOS], [*LONG[:3], EOS])
    found = inspection.identify(seen)
    for one in found.attention:
        assert all(head.rank == one.length and head.effective is head.raw for head in one.heads)
    assert found.demonstrations == [] and "correlation" in str(found)


def test_equal_values_share_what_they_are_given():
    """In a bag two equal words have equal values: how weight is dealt among them cannot be told."""
    seen = traced(model_of("bag>gru/attention"), [9, 7, 9, 8, EOS], [6, 9, EOS])
    [heads] = inspection.identify(seen).attention
    [head] = heads.heads
    assert (heads.length, head.rank) == (5, 4)
    torch.testing.assert_close(head.effective[:, 0], head.effective[:, 2])
    torch.testing.assert_close(head.effective[:, 0] * 2, head.raw[:, 0] + head.raw[:, 2], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(head.effective[:, [1, 3, 4]], head.raw[:, [1, 3, 4]], atol=1e-5, rtol=1e-4)


def test_neither_company_nor_padding_changes_ranks_and_likeness():
    model = model_of("transformer>transformer/attention")
    sources, targets = [LONG[:-1], LONG[:3], LONG[2:14]], [LONG[4:16], LONG[:2], LONG[:-1]]
    together = attention_similarities(model, sources, targets, SOURCE_FRAME)
    pairs = zip(sources, targets, strict=True)
    alone = [one for source, target in pairs for one in attention_similarities(model, [source], [target], SOURCE_FRAME)]
    key = lambda one: (one.kind, one.layer, one.length, one.rank, one.identifiable)  # noqa: E731
    assert sorted(map(key, together)) == sorted(map(key, alone))
    pairwise = zip(sorted(together, key=key), sorted(alone, key=key), strict=True)
    assert all(a.correlation == pytest.approx(b.correlation, abs=1e-3) for a, b in pairwise)


@pytest.mark.parametrize("name", ENCODERS.values())
def test_projections_agree_with_the_jacobian_within_their_error(name):
    model, ids = model_of(name), [*LONG[:6], EOS]
    exact, near = measure_mixing(model, ids, projections=None), measure_mixing(model, ids, projections=64)
    for one in (exact, near):
        torch.testing.assert_close(one.contributions.sum(-1), torch.ones(one.contributions.shape[:2]))
    assert exact.error.abs().max() == 0
    torch.testing.assert_close(exact.contributions[0], torch.eye(len(ids)))
    off = (near.contributions - exact.contributions).square().mean().sqrt()
    assert off <= 2 * near.error.square().mean().sqrt() + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_standard_error_of_a_cell_holds_for_the_worst_cell_too(seed):
    model, ids = model_of("transformer>transformer/rotary"), [*LONG[:6], EOS]
    exact, near = measure_mixing(model, ids, projections=None), measure_mixing(model, ids, projections=32, seed=seed)
    off, error = (near.contributions - exact.contributions).abs(), near.error
    spread = off[error > 1e-4] / error[error > 1e-4]
    assert (spread > 2).double().mean() < 0.12  # about 5 % of a normal distribution, a little more of Student's
    assert off.max() < 4 * error.max()


def test_the_error_that_is_printed_is_that_of_the_least_certain_cell(transformer_run):
    found = inspection.identify(load_run(transformer_run).trace("a b c d", target="a b c d"))
    layers = found.to_json()["layers"]
    for layer, error in zip(layers, found.mixing.error, strict=True):
        assert layer["standard_error"] == pytest.approx(error.max().item())
        assert layer["standard_error"] >= layer["mean_standard_error"]
        assert torch.tensor(layer["errors"]).shape == error.shape
    assert "largest standard error" in str(found)
    assert f"{found.mixing.error[-1].max().item():.2%}" in str(found)


def test_the_jacobian_is_that_of_automatic_differentiation():
    model, ids = model_of("transformer>transformer/rotary"), [*LONG[:4], EOS]
    name = layer_taps(model)[-1]
    start = {}

    def last(embedded):
        with taps.watch(model, name, write={layer_taps(model)[0]: lambda _: embedded}) as seen:
            model.encode(torch.tensor([ids]))
        return seen[name][0]

    with taps.watch(model, layer_taps(model)[0]) as recording:
        model.encode(torch.tensor([ids]))
    start = recording[layer_taps(model)[0]].detach()
    jacobian = torch.autograd.functional.jacobian(last, start)[:, :, 0]  # S×D×S×E
    norms = jacobian.square().sum((1, 3)).sqrt()
    wanted = norms / norms.sum(-1, keepdim=True)
    torch.testing.assert_close(
        measure_mixing(model, ids, projections=None).contributions[-1], wanted, atol=1e-5, rtol=1e-4
    )


def test_nothing_comes_from_where_an_encoder_cannot_look():
    ahead = measure_mixing(model_of("elman>gru/initial"), [*LONG[:6], EOS], projections=8).contributions[-1]
    before = torch.ones_like(ahead, dtype=torch.bool).tril()
    assert ahead[~before].max() == 0 and ahead[before].min() > 0
    model = model_of("conv>conv/attention")
    reach = sum(max(layer.before, layer.after) for layer in model.encoder.layers)
    near = measure_mixing(model, LONG, projections=8).contributions[-1]
    places = torch.arange(len(LONG))
    assert near[(places[:, None] - places).abs() > reach].abs().max() == 0


def rows(count: int, seed: int = 1) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 9, (count,), generator=generator).tolist()
    return [torch.randint(6, 23, (length,), generator=generator).tolist() for length in lengths]


@pytest.mark.parametrize("name", ["transformer>transformer/attention", "gru-both>gru/before", "narrow"])
def test_tokens_are_found_at_once_in_the_embedding_and_by_maps_above_it(name):
    found = token_identity(model_of(name), rows(60))
    for how in ("none", "linear"):
        for by in ("cosine", "euclidean"):
            assert found.found[how, by, "sentence"][0] == found.found[how, by, "vocabulary"][0] == 1.0
    assert found.found["linear", "cosine", "sentence"][1] > 2 * found.chance
    assert (found.found["none", "cosine", "sentence"][1] is None) == (name == "narrow")
    assert sum(found.sentences.values()) == 60


@pytest.fixture(scope="module")
def over_corpus(transformer_run):
    texts = [" ".join("abcdef"[one % 6] for one in row) for row in rows(30)]
    return inspection.identify_corpus(load_run(transformer_run), texts)


def test_over_a_corpus_short_texts_are_identifiable(over_corpus):
    assert {kind for kind, _, _ in over_corpus.kinds()} == {"source", "encoder", "decoder"}
    for kind, width, _ in over_corpus.kinds():
        assert width == 16
        assert next((one.correlation, one.identifiable) for one in over_corpus.bins(kind)) == (1.0, 1.0)
    facts = over_corpus.to_json()
    assert facts["contributions"]["median"][0] == facts["contributions"]["still_main"][0] == 1.0
    assert facts["sentences"] == 30 and "Tokens identified" in str(over_corpus)


def test_every_share_over_a_corpus_has_an_interval(over_corpus):
    facts, table = json.loads(json.dumps(over_corpus.to_json())), str(over_corpus)
    for kind in facts["attention"]:
        for one in [*kind["all"], *(one for bins in kind["layers"].values() for one in bins)]:
            for name, interval in one["intervals"].items():
                assert (interval is None) == (one["sentences"] < 2)
                assert interval is None or interval[0] <= one[name] + 1e-9 <= interval[1] + 2e-9
    low, high = next(one for one in facts["attention"][0]["all"] if one["intervals"]["rank"])["intervals"]["rank"]
    assert low < high and f"{low:.1f}–{high:.1f}" in table
    for one in facts["tokens"]["found"]:
        for share, interval in zip(one["accuracy"], one["intervals"], strict=True):
            assert (share is None) == (interval is None)
            assert share is None or 0 <= interval[0] <= share <= interval[1] <= 1
    assert any(high > low for one in facts["tokens"]["found"] for low, high in filter(None, one["intervals"]))
    assert "95 % intervals of these shares" in table
    contributions = facts["contributions"]
    assert list(contributions["intervals"]) == ["median", "mean", "still_main"]
    for name, intervals in contributions["intervals"].items():
        for value, (low, high) in zip(contributions[name], intervals, strict=True):
            assert 0 <= low <= value + 1e-6 and value - 1e-6 <= high <= 1
        low, high = intervals[-1]
        assert f"{100 * low:.1f}–{100 * high:.1f}" in table


def test_intervals_of_medians_and_shares_hold_the_truth_as_often_as_they_say():
    """Tokens of one sentence are alike: intervals over tokens would be far too narrow."""
    random = np.random.default_rng(5)
    hits = {"median": 0, "mean": 0, "still_main": 0}
    for _ in range(200):
        lengths = random.integers(4, 15, 50)
        own = [torch.full((1, length), float(random.uniform())) for length in lengths]  # median and mean 0.5
        main = [one > 0.7 for one in own]
        for name, ((low, high),) in identification._mixing_intervals(own, main).items():
            hits[name] += low <= (0.3 if name == "still_main" else 0.5) <= high
    assert all(180 <= count <= 200 for count in hits.values()), hits


def test_the_page_has_the_intervals(over_corpus, tmp_path, browser):
    over_corpus.save(tmp_path / "many.html")
    browser.get((tmp_path / "many.html").as_uri())
    text = browser.find_element("css selector", "body").text
    assert "95 % of correlation" in text and "In brackets 95 % intervals" in text
    low, high = over_corpus.mixing.intervals["mean"][-1]
    assert f"({100 * low:.1f} to {100 * high:.1f})" in text
    assert browser.find_elements("css selector", "polygon.band")


@pytest.mark.parametrize("ending", ["html", "json", "png"])
def test_what_was_found_is_saved(over_corpus, transformer_run, tmp_path, ending):
    if ending == "png":
        pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    of_one = inspection.identify(load_run(transformer_run).trace("a b c"))
    for place, found in enumerate((over_corpus, of_one)):
        found.save(tmp_path / f"{place}.{ending}")
        assert (tmp_path / f"{place}.{ending}").stat().st_size > 500


def test_the_page_shows_rank_and_length_and_switches(transformer_run, over_corpus, tmp_path, browser):
    text = " ".join("abcdef"[place % 6] for place in range(20))
    found = inspection.identify(load_run(transformer_run).trace(text, "a b c"))
    found.save(tmp_path / "one.html")
    browser.get((tmp_path / "one.html").as_uri())
    section = browser.find_element("css selector", "section[data-view=identify]")
    assert "21 tokens, head width 16, rank" in section.text
    for name in ("effective", "difference", "effective, sum kept", "raw"):
        section.find_element("xpath", f".//button[text()='{name}']").click()
        assert section.find_element("css selector", "canvas").get_attribute("aria-label")
    assert "a change as large, by chance" in section.text
    layers = browser.find_elements("css selector", "section[data-view=mixing] .choice button")
    layers[0].click()
    assert "100.0 % to its own state" in browser.find_element("css selector", "section[data-view=mixing]").text
    over_corpus.save(tmp_path / "many.html")
    browser.get((tmp_path / "many.html").as_uri())
    browser.find_element("xpath", "//button[text()='the vocabulary']").click()
    assert "Heads are 16 wide" in browser.find_element("css selector", "body").text
    assert not [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]


def test_a_model_without_attention_still_has_tokens():
    name = next(
        name
        for name, cell in CELLS.items()
        if cell.join.kind == "fixed" and cell.encoder.kind == "rnn" and cell.decoder.kind == "rnn"
    )
    found = inspection.identify(traced(model_of(name), [*LONG[:4], EOS], [*LONG[:3], EOS]))
    assert not found.attention and "no attention" in str(found)
    assert [panel.view for panel in found.panels()] == ["mixing"]


def test_a_recurrent_model_with_attention_is_shown_too(copy_run):
    found = inspection.identify(load_run(copy_run).trace("a b c"), exact=True)
    assert [one.name for one in found.attention] == ["decoder.source_attention"]
    assert found.projections is None and "exact Jacobian" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give a source text, or a --corpus"),
        (["a b", "--corpus", "TEXTS"], "Give a source text, or a --corpus"),
        (["--corpus", "TEXTS", "--exact"], "go with one source text"),
        (["--corpus", "TEXTS"], "3 texts of 1 to 256 tokens"),
        (["--corpus", "missing.txt"], "does not exist"),
    ],
)
def test_what_cannot_be_done_is_said(copy_run, tmp_path, arguments, message):
    texts = tmp_path / "texts.txt"
    texts.write_text("a b\n\nc\nd e f\n", encoding="utf-8")
    given = [str(texts) if one == "TEXTS" else one for one in arguments]
    ran = CliRunner().invoke(app, ["inspect", "identify", str(copy_run), *given])
    assert isinstance(ran.exception, RegardError) or ran.exit_code != 0
    assert message in f"{ran.exception} {ran.output}"


def test_the_command_prints_json_also_for_a_single_token(copy_run):
    for text in ("a b c", "a"):
        ran = CliRunner().invoke(app, ["inspect", "identify", str(copy_run), text, "--json"])
        assert ran.exit_code == 0, ran.exception
        assert json.loads(ran.stdout)["source"][-1] == "</s>"


def test_texts_are_read_from_lines_and_treebanks(tmp_path):
    (tmp_path / "a.txt").write_text("a b\n\nc\n", encoding="utf-8")
    (tmp_path / "a.conllu").write_text(
        "# text = a b\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n2\tb\tb\tX\tX\t_\t1\tdep\t_\t_\n"
    )
    assert read_texts(tmp_path / "a.txt", 10) == ["a b", "c"]
    assert read_texts(tmp_path / "a.conllu", 10) == ["a b"]


def test_slices_are_those_of_the_output_projection():
    module = attentions(model_of("transformer>transformer/attention"))["encoder.layers.0.attention"]
    values = torch.randn(module.heads, 5, 16 // module.heads)
    for number, what in enumerate(Slices.of(module, values.shape[2]).mix(values)):
        whole = values[number].double() @ module.out.weight.detach().double().split(values.shape[2], 1)[number].T
        torch.testing.assert_close(torch.linalg.svdvals(what.rows), torch.linalg.svdvals(whole)[: values.shape[2]])
