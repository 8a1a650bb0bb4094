"""Attention of every kind, layer and head, as page, picture, table and data; and one report of all analyses."""

import base64
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import inspection
from regard.cli import main
from regard.foundation.errors import UsageError
from regard.inspection import registry
from regard.inspection.page import pack
from regard.tasks.loaded import load_run
from tests.cells import KINDS, model_of
from tests.test_trace import traced


@pytest.fixture(scope="module")
def trace(transformer_run):
    return load_run(transformer_run).trace("a b c d")


@pytest.mark.parametrize("name", KINDS)
def test_every_map_of_every_cell_has_rows_that_sum_to_one_by_token_and_by_word(name):
    seen = traced(model_of(name))
    if not seen.matching("*.weights"):
        with pytest.raises(UsageError, match="no attention"):
            inspection.attention(seen)
        return
    for heads in inspection.attention(seen).heads:
        for head in (None, 0):
            for words in (False, True):
                shown = inspection.attention(seen, heads.kind, heads.layer, head, words=words).shown
                assert shown.values.shape == (len(shown.rows), len(shown.columns))
                torch.testing.assert_close(shown.values.sum(-1), torch.ones(len(shown.rows)))


def test_one_head_is_the_head_and_the_mean_is_the_mean(trace):
    weights = trace.activations["decoder.layers.1.source_attention.weights"]
    assert torch.equal(inspection.attention(trace, "source", 1, 0).shown.values, weights[0])
    torch.testing.assert_close(inspection.attention(trace, "source", 1).shown.values, weights.mean(0))
    below = trace.activations["decoder.layers.0.source_attention.weights"]
    torch.testing.assert_close(inspection.attention(trace).shown.values, torch.cat([below, weights]).mean(0))


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        (("source", 5), "no layer 5 .* 0 to 1"),
        (("encoder", 0, 2), "no head 2 .* 0 to 1"),
        (("encoder", None, 1), "of which layer"),
        (("target",), "picture, source, between, encoder, places, decoder"),
    ],
)
def test_a_choice_that_is_not_there_is_refused_with_those_that_are(trace, choice, complaint):
    with pytest.raises(UsageError, match=complaint):
        inspection.attention(trace, *choice)


def test_a_kind_that_a_model_lacks_is_refused_with_the_reason(copy_run):
    with pytest.raises(UsageError, match=r"encoder has no self-attention\. It has attention of the kind source"):
        inspection.attention(load_run(copy_run).trace("a b"), "encoder")


def test_the_command_writes_what_the_ending_says(transformer_run, tmp_path, capsys):
    for ending, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!doctype"), ("json", b"{")):
        path = tmp_path / f"map.{ending}"
        options = ["--kind", "encoder", "--layer", "1", "--head", "0", "-o", str(path)]
        assert main(["inspect", "attention", str(transformer_run), "a b c", *options]) == 0
        assert path.read_bytes().startswith(begins)
    data = json.loads((tmp_path / "map.json").read_text())
    assert data["start"] == {"kind": "encoder", "layer": 1, "head": 0, "words": False}
    assert len(data["attention"]) == 6
    capsys.readouterr()
    assert main(["inspect", "attention", str(transformer_run), "a b c", "--kind", "encoder", "--layer", "1"]) == 0
    assert capsys.readouterr().out.startswith("Inside the source, layer 1, mean of all heads:")


def test_an_empty_source_is_refused_and_nothing_written(transformer_run, tmp_path, capsys):
    assert main(["inspect", "attention", str(transformer_run), " ", "-o", str(tmp_path / "page.html")]) == 2
    assert "text is empty" in capsys.readouterr().err and not (tmp_path / "page.html").exists()


@given(st.lists(st.floats(-(2.0**99), 2.0**99, allow_subnormal=False, width=32), min_size=1, max_size=20))
def test_packed_numbers_keep_more_than_four_digits_whatever_their_size(values):
    given = torch.tensor(values, dtype=torch.float32)
    packed = pack(given)
    parts = base64.b64decode(packed["packed"])
    padded = b"".join(b"\0" + parts[place : place + 3] for place in range(0, len(parts), 3))
    read = torch.frombuffer(bytearray(padded), dtype=torch.float32)
    assert packed["shape"] == [len(values)]
    assert bool(((read.double() - given.double()).abs() <= 2**-16 * given.double().abs()).all())


def test_a_report_has_every_analysis_or_the_reason_why_not(transformer_run, copy_run, tmp_path):
    names = set(registry.built_in()) - {"all"}
    for run in (transformer_run, copy_run):
        found = inspection.report(run, "a b c d")
        assert set(found.results) | set(found.left_out) == names
        assert {"attention", "attribute", "lens"} <= set(found.results)
        assert found.target and "corpus" in found.left_out["heads"]
        found.save(tmp_path / "report.html")
        found.save(tmp_path / "report.json")
        page = (tmp_path / "report.html").read_text()
        assert all(f'<article id="{name}">' in page and f'href="#{name}"' in page for name in found.results)
        assert all(f"<dt>{name}</dt>" in page for name in found.left_out)
        data = json.loads((tmp_path / "report.json").read_text())
        assert set(data["results"]) == set(found.results) and set(data["left_out"]) == set(found.left_out)
    assert "Transformer" in found.left_out["contributions"]


def test_a_report_patches_where_there_is_a_second_source(transformer_run):
    assert "patch" in inspection.report(transformer_run, "a b c", corrupted="a d c").results


def test_a_report_is_no_picture_and_wants_a_corpus_that_is_there(transformer_run, tmp_path, capsys):
    assert main(["inspect", "all", str(transformer_run), "a b", "-o", str(tmp_path / "all.png")]) == 2
    assert "no picture" in capsys.readouterr().err
    assert main(["inspect", "all", str(transformer_run), "a b", "--corpus", str(tmp_path / "none.conllu")]) == 2
    assert "none.conllu is not a file" in capsys.readouterr().err


def test_a_report_asks_a_corpus_where_there_is_one(transformer_run, tmp_path):
    lines = []
    for number in range(36):
        letters = [chr(97 + number // 6**step % 6) for step in (0, 1, 0, 1, 0)]
        rows = [f"{place}\t{one}\t_\t{'VERB' if one in 'ab' else 'NOUN'}" for place, one in enumerate(letters, start=1)]
        lines += [f"# text = {' '.join(letters)}", *(f"{row}\t_\t_\t0\troot\t_\t_" for row in rows), ""]
    (tmp_path / "letters.conllu").write_text("\n".join(lines) + "\n")
    found = inspection.report(transformer_run, "a b c d", corpus=tmp_path / "letters.conllu")
    assert {"heads", "probe", "identify-corpus"} <= set(found.results), found.left_out
    found.save(tmp_path / "report.html")
