"""A trace tells what happened inside the real model; an intervention changes one thing in it, and nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import inspection
from regard.config.text import Tokenizer as Settings
from regard.data.conllu import read_conllu
from regard.foundation.errors import RegardError, UsageError
from regard.inspection import interventions
from regard.inspection.corpus import match_tokens
from regard.nn import taps
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side, Trace, trace
from regard.text.learning import train as learn
from regard.text.specials import BOS, EOS
from tests.cells import CELLS, KINDS, model_of

SOURCE, TARGET = [9, 7, 8, 12, EOS], [11, 6, 9, EOS]


@pytest.fixture(scope="module")
def recurrent(copy_run):
    return load_run(copy_run)


@pytest.fixture(scope="module")
def transformer(transformer_run):
    return load_run(transformer_run)


def side(ids: list[int]) -> Side:
    return Side(ids, [str(one) for one in ids], list(range(len(ids))), [one in (BOS, EOS) for one in ids])


def traced(model) -> Trace:
    return trace(model, side(SOURCE), side(TARGET), side([BOS, *TARGET[:-1]]))


@pytest.mark.parametrize("name", KINDS)
def test_watching_changes_nothing_in_any_cell(name):
    model = model_of(name)
    seen = traced(model)
    with torch.no_grad():
        plain = model(torch.tensor([SOURCE]), torch.tensor([[BOS, *TARGET[:-1]]]))[0].log_softmax(-1)
    torch.testing.assert_close(seen.log_probabilities, plain, rtol=1e-4, atol=1e-5)
    assert set(seen.activations) == set(taps.names(model))
    for weights in seen.matching("*.weights").values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


@pytest.mark.parametrize("name", KINDS)
def test_writing_what_was_there_changes_nothing_in_any_cell(name):
    seen = traced(model_of(name))
    states = [name for name, value in seen.activations.items() if name.startswith("encoder.") and value.dim() == 2]
    again = seen.again({name: write for one in states for name, write in _same(seen, one).items()})
    torch.testing.assert_close(again.log_probabilities, seen.log_probabilities)


def _same(seen: Trace, name: str):
    return interventions.replace(name, seen.activations[name])


def test_every_position_of_a_trace_has_its_token(recurrent):
    seen = recurrent.trace("a b c")
    said = recurrent.translate("a b c").split()
    assert seen.source.tokens == ["a", "b", "c", "</s>"]
    assert seen.target.tokens == [*said, "</s>"]
    assert seen.inputs.tokens == ["<s>", *said]
    assert seen.activations["decoder.source_attention.weights"].shape == (1, len(seen.target), len(seen.source))
    assert seen.log_probabilities.shape == (len(seen.target), recurrent.target_tokenizer.size)


def test_what_was_said_has_the_score_of_the_search(transformer):
    best = transformer.hypotheses(["a b c"], beam=1)[0][0]
    seen = transformer.trace("a b c", target=best.text)
    torch.testing.assert_close(seen.target_log_probs, torch.tensor(best.log_probs), rtol=1e-4, atol=1e-4)


def test_a_head_scaled_by_zero_is_gone_and_by_one_is_itself(transformer):
    seen = transformer.trace("d a c b")
    name = "decoder.layers.0.source_attention"
    off = seen.again(interventions.scale_head(name, 1, 0.0))
    assert off.activations[f"{name}.head_outputs"][1].abs().max() == 0
    assert (off.log_probabilities - seen.log_probabilities).abs().max() > 1e-4
    same = seen.again(interventions.scale_head(name, 1, 1.0))
    torch.testing.assert_close(same.log_probabilities, seen.log_probabilities)


def test_an_activation_replaced_at_one_position_is_left_alone_at_others(transformer):
    seen, name = transformer.trace("d a c b"), "encoder.layers.0.states"
    states = seen.activations[name]
    again = seen.again(interventions.replace(name, torch.zeros_like(states), positions=[2]))
    kept = [place for place in range(len(states)) if place != 2]
    assert again.activations[name][2].abs().max() == 0
    assert torch.equal(again.activations[name][kept], states[kept])


def test_frozen_attention_does_not_depend_on_what_is_read(transformer):
    one, other = transformer.trace("a b c", "a b c"), transformer.trace("c a b", "a b c")
    name = "encoder.layers.0.attention"
    weights = one.activations[f"{name}.weights"]
    again = other.again(interventions.freeze_attention(name, weights))
    assert torch.equal(again.activations[f"{name}.weights"], weights)
    single = other.again(interventions.freeze_attention(name, weights[1], head=1)).activations[f"{name}.weights"]
    assert torch.equal(single[1], weights[1])
    torch.testing.assert_close(single[0], other.activations[f"{name}.weights"][0])


def test_an_intervention_on_nothing_is_refused(transformer):
    seen = transformer.trace("a b")
    with pytest.raises(UsageError, match=r"no tap encoder.layers.9.states. Did you mean encoder"):
        seen.again({"encoder.layers.9.states": lambda value: value})
    with pytest.raises(UsageError, match="no head 7"):
        seen.again(interventions.scale_head("encoder.layers.0.attention", 7, 0.0))


TEXT = ["der Hund läuft durch den tiefen Schnee.", "ein Mann schläft in dem grünen Raum."] * 20


@pytest.fixture(scope="module")
def pieces():
    return learn(Settings(kind="bpe", vocabulary=330), lambda: iter(TEXT), "target")


@given(st.lists(st.sampled_from(["Hund", "Schnee.", "Xylophon", "42", "…"]), min_size=1, max_size=6))
def test_tokens_make_up_the_words_between_white_space(pieces, words):
    made = Side.of(pieces, [BOS, *pieces.encode(" ".join(words)).ids, EOS])
    assert made.word_texts[0] == "<s>" and made.word_texts[-1] == "</s>"
    assert made.word_texts[1:-1] == words


def test_words_are_shown_as_they_were_written_though_spelt_in_bytes(pieces):
    assert Side.of(pieces, pieces.encode("東京 Xylophon 😀").ids).word_texts == ["東京", "Xylophon", "😀"]


def test_merging_to_words_keeps_rows_that_sum_to_one(pieces):
    made = Side.of(pieces, [*pieces.encode("ein Xylophon läuft").ids, EOS])
    assert len(made) > len(made.word_texts) == 4
    weights = torch.rand(3, len(made), len(made)).softmax(-1)
    merged = made.averaged(made.summed(weights))
    assert merged.shape == (3, 4, 4)
    torch.testing.assert_close(merged.sum(-1), torch.ones(3, 4))


def test_an_activation_of_another_text_does_not_fit(transformer):
    seen, other = transformer.trace("a b c d"), transformer.trace("a b")
    name = "encoder.layers.0.states"
    with pytest.raises(UsageError, match="as many tokens"):
        seen.again(interventions.replace(name, other.activations[name]))
    with pytest.raises(UsageError, match="positions 0 to 4"):
        seen.again(interventions.replace(name, seen.activations[name], positions=[9]))


@pytest.mark.parametrize("source", ["", "  ", ["a"]])
def test_nothing_cannot_be_looked_into(transformer, source):
    with pytest.raises(UsageError, match="source text is empty"):
        transformer.trace(source)


def test_a_target_that_the_model_cannot_say_is_refused(recurrent):
    with pytest.raises(UsageError, match="word 2"):
        recurrent.trace("a b", target="a zebra")


def test_more_text_than_fits_says_the_limit_and_the_cost(transformer):
    with pytest.raises(UsageError, match=r"GiB .* up to [0-9,]+ tokens"):
        transformer.trace("a " * 30_000)


def test_a_model_without_attention_says_so():
    name = next(name for name, cell in CELLS.items() if cell.join.kind == "fixed" and cell.encoder.kind == "bag")
    if CELLS[name].decoder.kind == "transformer":
        pytest.skip("a Transformer decoder looks at itself")
    with pytest.raises(UsageError, match="fixed vector"):
        inspection.attention(traced(model_of(name)))


ROWS = """\
# text = I don't know.
1\tI\ti\tPRON\tPRP\tCase=Nom|Number=Sing\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tknow\tknow\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_
"""


def test_words_of_a_treebank_know_their_characters(tmp_path):
    (tmp_path / "a.conllu").write_text(ROWS, encoding="utf-8")
    [sentence] = read_conllu(tmp_path / "a.conllu")
    assert [sentence.text[word.start : word.end] for word in sentence.words] == ["I", "do", "n't", "know", "."]
    assert [word.head for word in sentence.words] == [3, 3, 3, -1, 3]
    assert sentence.words[0].features == {"Case": "Nom", "Number": "Sing"}


def test_every_word_of_a_treebank_gets_tokens_and_every_letter_one_word(tmp_path, pieces):
    (tmp_path / "a.conllu").write_text(ROWS, encoding="utf-8")
    [sentence] = read_conllu(tmp_path / "a.conllu")
    found = match_tokens(sentence, pieces)
    assert all(found.tokens)
    assert sorted(place for places in found.tokens for place in places) == sorted(
        {place for places in found.tokens for place in places}
    )
    whole = learn(Settings(kind="bpe"), lambda: iter([sentence.text] * 30), "source")
    assert len(whole.encode("know").ids) == 1
    assert match_tokens(sentence, whole).tokens[3] == [
        match_tokens(sentence, whole).ids.index(whole.encode("know").ids[0])
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [("1\tI\ti", "3 tab-separated columns"), ("x" + "\t_" * 9, "word number"), ("", "empty")],
)
def test_a_broken_treebank_names_its_line(tmp_path, line, message):
    (tmp_path / "a.conllu").write_text(line, encoding="utf-8")
    with pytest.raises(RegardError, match=message):
        list(read_conllu(tmp_path / "a.conllu"))


@pytest.mark.parametrize("ending", ["html", "json", "txt", "png", "svg", "pdf"])
def test_a_result_is_saved_in_the_form_its_name_asks_for(recurrent, tmp_path, ending):
    if ending in ("png", "svg", "pdf"):
        pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    path = tmp_path / f"result.{ending}"
    inspection.attention(recurrent.trace("a b c")).save(path)
    begins = {
        "html": b"<!doctype html>",
        "json": b"{",
        "txt": b"To the source",
        "png": b"\x89PNG",
        "svg": b"<?xml",
        "pdf": b"%PDF",
    }
    assert path.read_bytes().startswith(begins[ending])


def test_an_unknown_ending_is_refused(recurrent, tmp_path):
    with pytest.raises(UsageError, match=r"\.html, \.json"):
        inspection.attention(recurrent.trace("a b c")).save(tmp_path / "result.doc")


def test_a_copying_model_looks_at_what_it_copies(recurrent):
    found = inspection.attention(recurrent.trace("d a c b", target="d a c b"))
    assert found.mean.argmax(-1)[:4].tolist() == [0, 1, 2, 3]
    assert "<iframe" in found._repr_html_()
