"""The laws of sampling, of ensembles and of choosing among samples."""

import itertools
import math
from collections import Counter

import pytest
import torch

from regard.foundation.errors import UsageError
from regard.search import ModelSteps, greedy, sample
from regard.search.ensemble import EnsembleSteps, join_sources
from regard.search.mbr import expected_utilities, utility_of
from regard.search.sampling import truncate
from regard.search.steps import Source
from regard.text.loops import PATIENCE, loop_start, patience_for
from regard.text.specials import EOS
from tests.cells import KINDS, model_of, sentences
from tests.test_search import FAMILIES, WORDS, tiny_model, total

SOURCE = torch.tensor([[6, 7, 3, EOS]])
LONGEST = 3


def distribution(model):
    """The probability of each output of at most LONGEST tokens, among what is ever said."""
    steps, found = ModelSteps(model), {}
    for length in range(LONGEST + 1):
        for said in itertools.product(WORDS[1:], repeat=length):
            whole = said if length == LONGEST else (*said, EOS)
            state, probability = steps.start(Source.of(SOURCE)), 1.0
            for before, token in zip((1, *whole), whole, strict=False):
                scores, state = steps.step(torch.tensor([before]), state)
                probability *= float(scores[0, list(WORDS)].softmax(0)[WORDS.index(token)])
            found[said] = probability
    return found


@pytest.mark.parametrize(("family", "seed"), [("rnn", 0), ("rnn", 1), *((kind, 2) for kind in FAMILIES)])
def test_frequencies_match_the_models_distribution(family, seed):
    with torch.inference_mode():
        model, draws = tiny_model(seed, family), 4000
        expected = distribution(model)
        found = sample(ModelSteps(model), SOURCE, [LONGEST], count=draws, seed=seed)[0]
    assert math.isclose(sum(expected.values()), 1.0, rel_tol=1e-4)
    counts = Counter(one.tokens for one in found)
    assert set(counts) <= set(expected)
    common = {said: p * draws for said, p in expected.items() if p * draws >= 5}
    rare = draws - sum(common.values())
    chi = sum((counts[said] - mean) ** 2 / mean for said, mean in common.items())
    chi += (draws - sum(counts[said] for said in common) - rare) ** 2 / max(rare, 1)
    degrees = len(common)
    assert chi < degrees + 4 * math.sqrt(2 * degrees)  # four standard deviations of chi-square


@pytest.mark.parametrize("name", KINDS[::4])
@pytest.mark.parametrize("choice", [{"temperature": 0.0}, {"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-9}])
def test_without_chance_sampling_is_greedy(name, choice):
    model, (source, _) = model_of(name), sentences(4, 6, seed=1)
    one = greedy(ModelSteps(model), source, [8] * 4)
    other = sample(ModelSteps(model), source, [8] * 4, **choice)
    assert [h.tokens for h in one] == [h[0].tokens for h in other]
    for a, b in zip(one, other, strict=True):
        assert a.log_probs == pytest.approx(b[0].log_probs, abs=1e-4)  # the model's own, whatever the choice


@pytest.mark.parametrize("name", KINDS)
def test_samples_do_not_depend_on_neighbours_or_order(name):
    model, (source, _) = model_of(name), sentences(5, 6, seed=2)
    limits = [7, 5, 9, 6, 8]
    together = sample(ModelSteps(model), source, limits, count=3, seed=4, temperature=1.5)
    order = [3, 0, 4, 1, 2]
    shuffled = sample(
        ModelSteps(model), source[order], [limits[row] for row in order], count=3, seed=4, temperature=1.5
    )
    for place, row in enumerate(order):
        assert [h.tokens for h in shuffled[place]] == [h.tokens for h in together[row]]
        length = int((source[row] != 0).sum())
        alone = sample(
            ModelSteps(model), source[row : row + 1, :length], [limits[row]], count=3, seed=4, temperature=1.5
        )
        assert [h.tokens for h in alone[0]] == [h.tokens for h in together[row]]
    assert len({h.tokens for h in together[0]}) > 1, "samples of one sentence differ from each other"
    (one,), _, (other,) = sample(ModelSteps(model), source[[0, 1, 0]], [7, 5, 7], seed=4)
    assert one.tokens == other.tokens, "duplicates of a sentence give the same output wherever they stand"
    assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)  # a product of odd widths rounds row by row


def test_the_score_of_a_sample_is_the_models_own():
    model = tiny_model(1)
    for one in sample(ModelSteps(model), SOURCE, [6], count=20, temperature=2.0, top_k=3, top_p=0.9)[0]:
        said = [*one.tokens, *([EOS] if one.ended == "end" else [])]
        assert sum(one.log_probs) == pytest.approx(total(model, SOURCE, said), rel=1e-3)


def test_truncation_keeps_the_best_and_the_nucleus():
    scores = torch.tensor([[0.5, 0.1, 0.3, 0.1]]).log()
    assert truncate(scores, 2, None).isfinite().tolist() == [[True, False, True, False]]
    assert truncate(scores, None, 0.5).isfinite().tolist() == [[True, False, False, False]]
    assert truncate(scores, None, 0.51).isfinite().tolist() == [[True, False, True, False]]
    assert truncate(scores, None, 1.0).isfinite().all() and truncate(scores, 9, None).isfinite().all()


@pytest.mark.parametrize("name", KINDS)
def test_an_ensemble_of_one_is_the_model_and_of_equals_too(name):
    model, (source, _) = model_of(name), sentences(4, 6, seed=3)
    alone = greedy(ModelSteps(model), source, [8] * 4)
    one = greedy(EnsembleSteps([ModelSteps(model)]), join_sources([Source.of(source)]), [8] * 4)
    assert alone == one
    two = greedy(EnsembleSteps([ModelSteps(model)] * 2), join_sources([Source.of(source)] * 2), [8] * 4)
    assert [h.tokens for h in two] == [h.tokens for h in alone]


def test_an_ensemble_averages_probabilities():
    models = [tiny_model(1), tiny_model(2)]
    steps = EnsembleSteps([ModelSteps(model) for model in models])
    with torch.inference_mode():
        mixed, _ = steps.step(torch.tensor([1]), steps.start(join_sources([Source.of(SOURCE)] * 2)))
        each = [
            ModelSteps(model).step(torch.tensor([1]), ModelSteps(model).start(Source.of(SOURCE)))[0] for model in models
        ]
    torch.testing.assert_close(mixed.exp(), (each[0].exp() + each[1].exp()) / 2)


def test_minimum_bayes_risk_prefers_what_most_agree_with():
    texts = ["the cat sat", "the cat sat", "a dog ran", "the cat sits"]
    means = expected_utilities(texts, utility_of("chrf"))
    assert means.index(max(means)) == 0 and means[0] == means[1]
    assert expected_utilities(["a", "b"], utility_of("exact"), [3.0, 1.0]) == pytest.approx([0.75, 0.25])
    assert expected_utilities(["a", "b", "a"], utility_of("exact")) == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    for metric in ("bleu", "ter"):
        assert max(expected_utilities(texts, utility_of(metric))) == expected_utilities(texts, utility_of(metric))[0]
    rouge = [utility_of(name)("the cat sat", "the cat sits") for name in ("rouge1", "rouge2", "rougeL")]
    assert rouge == pytest.approx([200 / 3, 50, 200 / 3])  # two of three words, one of two pairs
    assert utility_of("rouge")("the cat sat", "the cat sits") == pytest.approx((rouge[0] + 4 * rouge[1] + rouge[2]) / 6)
    with pytest.raises(UsageError, match="chrf"):
        utility_of("comet")


def test_loops_are_cut_to_one_round_and_sane_output_is_left_alone():
    assert loop_start([5, 6] + [7, 8, 9] * 20) == 5
    assert loop_start([7] * 40) == 1
    assert loop_start([7] * (PATIENCE - 1)) is None
    assert loop_start(list(range(200))) is None
    assert loop_start(list(range(20)) * 3) is None
    assert loop_start([7] * 100, patience_for([9] * 100)) is None, "a source that repeats may be answered in kind"
    assert (
        loop_start([7] * 231, patience_for([9] * 100)) is None and loop_start([7] * 232, patience_for([9] * 100)) == 1
    )
    assert patience_for([1, 2, 3, 4, 5]) == PATIENCE and patience_for([1, 2, 1, 2]) == PATIENCE + 8
