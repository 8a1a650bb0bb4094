"""Laws of likelihood: what search reports, what training minimises and what is scored are one number."""

import math

import numpy as np
import pytest
import torch

from regard.config.loading import from_mapping
from regard.data.batches import pad_rows
from regard.data.corpus import Pair
from regard.evaluation import likelihood
from regard.evaluation.likelihood import (
    Likelihood,
    by_position,
    likelihoods,
    log_probs,
    perplexity,
    position_line,
    total,
)
from regard.foundation.errors import RegardError, UsageError
from regard.models import build
from regard.objectives.objective import batch_loss
from regard.search import ModelSteps, beam
from regard.text.learning import train_tokenizers
from regard.text.specials import BOS, EOS
from tests.cells import KINDS, model_of
from tests.loading import loaded

SOURCES = [[6, 7, 8], [9], [10, 11, 12, 13, 6, 7], [], [8, 8]]
TARGETS = [[7, 6], [9, 9, 10, 11, 12], [], [14], [6, 7, 8]]


def translator_of(**cell):
    """A random translator of letters."""
    settings = {"width": 16, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}, **cell}
    text = {"tokenizer": {"kind": "characters", "min_frequency": 1}, "target": {"kind": "characters"}}
    config = from_mapping({"data": {"train": {"generate": "copy"}}, "text": text, "model": settings})
    tokenizers = train_tokenizers(config.text, lambda: iter([Pair("a b c", "a b c")] * 3))
    torch.manual_seed(0)
    return loaded(build(config.model, *(one.size for one in tokenizers)).eval(), config, *tokenizers)


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [([1 / 10] * 10, 10), ([1 / 30_000] * 30_000, 30_000), ([1 / 4] * 3 + [1 / 120_000] * 30_000, 52.6)],
    ids=["ten digits", "30,000 names", "operator, sales, support and 30,000 names"],
)
def test_perplexity_of_the_lecture(probabilities, expected):
    assert math.fsum(probabilities) == pytest.approx(1)
    assert perplexity(probabilities) == pytest.approx(expected, rel=1e-3)


def test_perplexity_of_certainty_is_one():
    assert perplexity([1.0, 0.0]) == 1.0


@pytest.mark.parametrize("name", KINDS)
def test_the_likelihood_is_what_search_reports_for_the_same_hypothesis(name):
    model = model_of(name)
    batch = pad_rows([np.asarray(ids, dtype=np.int64) for ids in SOURCES], [], [EOS])
    for row, found in enumerate(beam(ModelSteps(model), batch, [7] * len(SOURCES), width=3, count=3)):
        for hypothesis in found:
            scored = log_probs(model, [SOURCES[row]], [hypothesis.tokens])[0]
            reached = scored if hypothesis.ended == "end" else scored[:-1]
            assert reached == pytest.approx(hypothesis.log_probs, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_neither_order_nor_company_matters(name, monkeypatch):
    model = model_of(name)
    together = log_probs(model, SOURCES, TARGETS)
    backwards = log_probs(model, SOURCES[::-1], TARGETS[::-1], tokens=9)[::-1]
    monkeypatch.setattr(likelihood, "LOGITS", 1)
    alone = [log_probs(model, [s], [t])[0] for s, t in zip(SOURCES, TARGETS, strict=True)]
    for a, b, c, target in zip(together, backwards, alone, TARGETS, strict=True):
        assert len(a) == len(target) + 1
        assert a == pytest.approx(b, abs=1e-4) and a == pytest.approx(c, abs=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_the_likelihood_is_what_training_minimises(name):
    model = model_of(name)
    source = pad_rows([np.asarray(ids, dtype=np.int64) for ids in SOURCES], [], [EOS])
    target = pad_rows([np.asarray(ids, dtype=np.int64) for ids in TARGETS], [BOS], [EOS])
    with torch.no_grad():
        loss = batch_loss(model, model.decode(model.encode(source), target[:, :-1]), target[:, 1:])
    scored = log_probs(model, SOURCES, TARGETS)
    assert -sum(map(sum, scored)) == pytest.approx(loss.nll.item(), rel=1e-4)
    assert sum(map(len, scored)) == loss.tokens


def test_text_is_counted_in_tokens_words_and_characters_with_its_end():
    translator = translator_of()
    found = likelihoods(translator, ["abc", "b a", ""], ["ab  a", "", "c"])
    assert [(len(one.log_probs), one.words, one.characters) for one in found] == [(6, 3, 5), (1, 1, 1), (3, 2, 2)]
    all_of_it = total(found)
    assert all_of_it.log_prob == pytest.approx(sum(one.log_prob for one in found))
    assert math.log(all_of_it.per_word) * all_of_it.words == pytest.approx(-all_of_it.log_prob)
    assert math.log(all_of_it.per_token) * 10 == pytest.approx(math.log(all_of_it.per_character) * 8)
    assert [one.targets for one in by_position(found)] == [3, 2, 2, 1, 1, 1]
    assert math.log(by_position(found)[3].perplexity) == pytest.approx(-found[0].log_probs[3])
    assert total([]).per_token == 1.0


def test_positions_in_a_line_are_those_of_all_tokens_put_together():
    found = [Likelihood((-1.0, -2.0, -3.0, -4.0), 1, 1), Likelihood((-3.0, -2.0), 1, 1)]
    told = {
        name: float(value)
        for name, value in (part.split(": ") for part in position_line(by_position(found)).split(", "))
    }
    assert list(told) == ["1", "2", "3–4"]
    assert list(told.values()) == pytest.approx([math.exp(2), math.exp(2), math.exp(3.5)], abs=0.005)
    long = position_line(by_position([Likelihood((-1.0,) * 60, 1, 1)]))
    assert [part.split(": ")[0] for part in long.split(", ")] == ["1", "2", "3–5", "6–10", "11–20", "21–50", "51–60"]
    assert position_line([]) == ""


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(UsageError, match="2 sources for 1 targets"):
        likelihoods(translator_of(), ["a", "b"], ["a"])
    learned = translator_of(positions={"kind": "learned", "max_length": 257}, encoder={"kind": "transformer"})
    with pytest.raises(RegardError, match="Target 2 has 301 tokens"):
        likelihoods(learned, ["a", "b"], ["a", "a" * 300])
    with pytest.raises(RegardError, match=r"Source 2 has 50,001 tokens, .* decoding.batch_tokens=50002"):
        likelihoods(translator_of(), ["a", "a" * 50_000], ["a", "b"])


def test_the_perplexity_of_several_targets_is_that_of_one_text_with_all_their_ends():
    one, other = Likelihood((-1.0, -2.0, -0.5), 2, 9), Likelihood((-3.0, -0.5), 2, 5)
    whole = total([one, other])
    assert (whole.sentences, whole.tokens, whole.words, whole.characters) == (2, 5, 4, 14)
    assert whole.per_token == pytest.approx(math.exp(7 / 5))
    assert whole.per_word == pytest.approx(math.exp(7 / 4))
    assert whole.per_character == pytest.approx(math.exp(7 / 14))
