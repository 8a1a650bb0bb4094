"""The laws of search, on models small enough to enumerate."""

import itertools
import math

import pytest
import torch

from regard.foundation.errors import UsageError
from regard.models import build
from regard.nn import taps
from regard.search import ModelSteps, beam, greedy
from regard.search.best import best
from regard.search.steps import SOURCE_ATTENTION, AttentiveSteps
from regard.search.tree import SearchTree
from regard.text.specials import BOS, EOS
from tests.cells import CELLS, KINDS, cell, model_of, sentences

WORDS = (EOS, 3, 6, 7)
FAMILIES = {
    "rnn": {"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
    "fixed": {
        "encoder": {"kind": "rnn"},
        "decoder": {"kind": "rnn", "cell": "lstm"},
        "join": {"kind": "fixed", "form": "every-step"},
    },
    "bag": {"encoder": {"kind": "bag"}, "decoder": {"kind": "rnn"}},
    "feeding": {
        "encoder": {"kind": "transformer"},
        "decoder": {"kind": "rnn"},
        "join": {"kind": "attention", "order": "after", "input_feeding": True},
    },
    "conv": {"encoder": {"kind": "conv", "layers": 2}, "decoder": {"kind": "conv", "layers": 2}},
    "transformer": {"encoder": {"kind": "transformer", "layers": 1}, "decoder": {"kind": "transformer", "layers": 2}},
}
"""Models small enough to enumerate, one of each kind of decoder and join."""


def tiny_model(seed: int, family: str = "rnn"):
    """A model over eight tokens, of which four are ever said, sharp enough to have preferences."""
    torch.manual_seed(seed)
    model = build(cell(**FAMILIES[family]), 8, 8).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model


def total(model, source, tokens):
    """The log-probability of an output, computed in one pass."""
    inputs = torch.tensor([[BOS, *tokens]])[:, : len(tokens)]
    with torch.no_grad():
        scores = model(source, inputs).log_softmax(-1)[0]
    return float(scores.gather(1, torch.tensor(tokens)[:, None]).sum())


@pytest.mark.parametrize("name", KINDS)
def test_beam_one_is_greedy(name):
    model, (source, _) = model_of(name), sentences(5, 6, seed=11)
    limits = [4, 6, 8, 3, 9]
    one = greedy(ModelSteps(model), source, limits)
    other = beam(ModelSteps(model), source, limits, width=1)
    assert [h.tokens for h in one] == [h[0].tokens for h in other]
    assert [h.ended for h in one] == [h[0].ended for h in other]
    for a, b in zip(one, other, strict=True):
        assert a.score == pytest.approx(b[0].score, rel=1e-4)


@pytest.mark.parametrize(
    "name", sorted({*KINDS, *(name for name in CELLS if name.startswith("transformer>transformer/"))})
)
def test_a_model_that_was_searched_can_still_learn(name):
    model, (source, target) = model_of(name), sentences(2, 90, seed=11)
    greedy(ModelSteps(model), source, [80, 80])
    with torch.inference_mode():
        model(source, target)
    model.train()
    model(source, target).sum().backward()


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize(("family", "seed"), [*(("rnn", seed) for seed in range(5)), *((kind, 5) for kind in FAMILIES)])
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(family, seed, penalty):
    model, source, longest = tiny_model(seed, family), torch.tensor([[6, 7, 3, EOS]]), 4
    every = {}
    for length in range(longest + 1):
        for said in itertools.product(WORDS[1:], repeat=length):
            if length < longest:
                every[said] = total(model, source, (*said, EOS)) / (length + 1) ** penalty
    best = sorted(every.items(), key=lambda item: -item[1])
    found = beam(ModelSteps(model), source, [longest], width=len(WORDS) ** longest, length_penalty=penalty, count=5)[0]
    assert [h.tokens for h in found] == [said for said, _ in best[:5]]
    for hypothesis, (_, score) in zip(found, best, strict=False):
        assert hypothesis.score == pytest.approx(score, rel=1e-4)
        assert hypothesis.ended == "end"


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("width", [1, 4])
def test_the_score_reported_is_the_score_recomputed(name, width):
    model, (source, _) = model_of(name), sentences(4, 6, seed=12)
    for row, found in enumerate(beam(ModelSteps(model), source, [7] * 4, width=width, count=width)):
        for hypothesis in found:
            said = [*hypothesis.tokens, *([EOS] if hypothesis.ended == "end" else [])]
            length = int((source[row] != 0).sum())
            expected = total(model, source[row : row + 1, :length], said)
            assert sum(hypothesis.log_probs) == pytest.approx(expected, rel=1e-3, abs=1e-4)
            assert hypothesis.score == pytest.approx(expected / len(said), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_batch_is_single_in_any_order(name):
    model, (source, _) = model_of(name), sentences(5, 6, seed=13)
    limits = [5, 7, 4, 6, 8]
    together = beam(ModelSteps(model), source, limits, width=3)
    for row in range(5):
        length = int((source[row] != 0).sum())
        alone = beam(ModelSteps(model), source[row : row + 1, :length], limits[row : row + 1], width=3)
        assert together[row][0].tokens == alone[0][0].tokens
    order = [3, 0, 4, 0, 2, 1]  # the first one twice
    shuffled = beam(ModelSteps(model), source[order], [limits[row] for row in order], width=3)
    assert [found[0].tokens for found in shuffled] == [together[row][0].tokens for row in order]
    assert shuffled[1] == shuffled[3], "duplicates of a sentence give the same output wherever they stand"


@pytest.mark.parametrize("count", [1, 5, 40])
@pytest.mark.parametrize("size", [7, 1024, 1500, 1503, 4000])
def test_the_best_few_are_those_of_all_scores_in_order(size, count):
    scores = torch.randn(6, size, generator=torch.Generator().manual_seed(size))
    scores[:, ::3], scores[2, 5:] = float("-inf"), float("-inf")  # as rules leave them
    scores[3, -1] = 9.0
    values, places = best(scores, count)
    expected = scores.topk(min(count, size), dim=1)
    assert torch.equal(values, expected.values) and torch.equal(scores.gather(1, places), values)
    assert all(len(set(row)) == len(row) for row in places.tolist())


class Forgetful:
    """A model as a step model that keeps nothing: every step reads the source and all that was said, from the start."""

    class State:
        def __init__(self, source, said):
            self.source, self.said = source, said

        def select(self, rows):
            return type(self)(self.source[rows], self.said[rows])

    def __init__(self, model):
        self.model = model

    def start(self, source):
        return self.State(source.content, source.content[:, :0])

    def step(self, tokens, state):
        said = torch.cat([state.said, tokens[:, None]], dim=1)
        return self.model(state.source, said)[:, -1].log_softmax(-1), self.State(state.source, said)


@pytest.mark.parametrize("name", KINDS)
def test_cached_is_uncached(name):
    model, (source, _) = model_of(name), sentences(3, 5, seed=17)
    limits = [5, 7, 4]
    for cached, uncached in zip(
        beam(ModelSteps(model), source, limits, width=3, count=3),
        beam(Forgetful(model), source, limits, width=3, count=3),
        strict=True,
    ):
        assert [one.tokens for one in cached] == [one.tokens for one in uncached]
        for one, other in zip(cached, uncached, strict=True):
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)


def test_the_laws_are_tried_on_every_kind_of_model():
    settings = [CELLS[name] for name in KINDS]
    assert {one.encoder.kind for one in settings} == {"bag", "rnn", "conv", "transformer"}
    assert {one.decoder.kind for one in settings} == {"rnn", "conv", "transformer"}
    assert {one.join.kind for one in settings} == {"fixed", "attention"}
    scores = {one.attention.score for one in settings if one.attention}
    assert scores == {"additive", "dot", "scaled-dot", "bilinear"}
    kinds = {one.positions.kind for one in settings if one.positions}
    assert kinds == {"none", "sinusoidal", "learned", "relative", "bias", "rotary", "alibi"}


def test_a_wider_beam_never_finds_less_on_the_whole():
    scores = dict.fromkeys((1, 3, 20), 0.0)
    for seed in range(10):
        model, source = tiny_model(seed), torch.tensor([[6, 7, 3, EOS]])
        for width in scores:
            scores[width] += beam(ModelSteps(model), source, [6], width=width, length_penalty=0.0)[0][0].score
    assert scores[1] <= scores[3] <= scores[20]
    assert math.isfinite(scores[1])


def test_no_output_is_longer_than_its_limit():
    model, (source, _) = model_of("gru-both>gru/attention"), sentences(3, 5, seed=14)
    with torch.no_grad():
        model.output_bias[EOS] = -50.0  # it never ends by itself: only the limit can end an output
    for hypothesis, limit in zip(greedy(ModelSteps(model), source, [1, 2, 3]), (1, 2, 3), strict=True):
        assert len(hypothesis.tokens) == limit and hypothesis.ended == "length"
    for found, limit in zip(beam(ModelSteps(model), source, [1, 2, 3], width=4, count=4), (1, 2, 3), strict=True):
        assert found and all(len(h.tokens) == limit and h.ended == "length" for h in found)


@pytest.mark.parametrize("family", ["rnn", "feeding", "conv", "transformer"])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_with_a_coverage_penalty_too_a_full_beam_is_exhaustive_search(family, penalty):
    model, source, longest, beta = tiny_model(2, family), torch.tensor([[6, 7, 3, EOS]]), 4, 0.4
    every = {}
    for length in range(longest):
        for said in itertools.product(WORDS[1:], repeat=length):
            with taps.watch(model, SOURCE_ATTENTION) as seen, torch.no_grad():
                model(source, torch.tensor([[BOS, *said]]))
            looked = torch.cat(list(seen.values()), dim=1).mean(1)[0].sum(0)  # S
            cover = beta * float(looked.clamp(1e-9, 1.0).log().sum())  # never looked at: as good as never
            every[said] = total(model, source, (*said, EOS)) / (length + 1) ** penalty + cover
    found = beam(
        AttentiveSteps(model),
        source,
        [longest],
        width=len(WORDS) ** longest,
        length_penalty=penalty,
        coverage_penalty=beta,
        count=5,
    )[0]
    assert [h.tokens for h in found] == sorted(every, key=lambda said: -every[said])[:5]
    for one in found:
        assert one.score == pytest.approx(every[one.tokens], rel=1e-3)


def test_a_coverage_penalty_is_the_same_in_any_company():
    """Positions of padding are no part of a source that could be left uncovered."""
    model, (source, _) = model_of("gru-both>gru/attention"), sentences(4, 6, seed=3)
    lengths = (source != 0).sum(1).tolist()
    assert min(lengths) < max(lengths)
    limits, options = [6] * 4, {"width": 3, "count": 3, "coverage_penalty": 0.4}
    together = beam(AttentiveSteps(model), source, limits, **options)
    for row, length in enumerate(lengths):
        alone = beam(AttentiveSteps(model), source[row : row + 1, :length], limits[:1], **options)[0]
        assert [one.tokens for one in together[row]] == [one.tokens for one in alone]
        assert [one.score for one in together[row]] == pytest.approx([one.score for one in alone], rel=1e-4)


def test_coverage_needs_attention_and_says_so():
    with pytest.raises(UsageError, match="fixed vector"):
        AttentiveSteps(model_of("gru-both>gru/initial"))
    model, (source, _) = model_of("gru-both>gru/attention"), sentences(2, 4, seed=1)
    with pytest.raises(UsageError, match="states have `attention`"):
        beam(ModelSteps(model), source, [4, 4], width=2, coverage_penalty=0.1)


@pytest.mark.parametrize("name", KINDS[::4])
def test_groups_without_diversity_agree_and_with_it_differ(name):
    model, (source, _) = model_of(name), sentences(4, 6, seed=15)
    two = beam(ModelSteps(model), source, [8] * 4, width=2)
    same = beam(ModelSteps(model), source, [8] * 4, width=4, groups=2, diversity=0.0)
    apart = beam(ModelSteps(model), source, [8] * 4, width=4, groups=2, diversity=5.0, count=4)
    for row in range(4):
        assert same[row][0].tokens == two[row][0].tokens
        assert len({h.tokens[:1] for h in apart[row]}) > 1
        assert any(h.tokens == two[row][0].tokens for h in apart[row]), "the first group is an ordinary beam"
    with pytest.raises(UsageError, match="multiple"):
        beam(ModelSteps(model), source, [8] * 4, width=5, groups=2)


@pytest.mark.parametrize("name", KINDS[::4])
def test_a_recorded_beam_finds_the_same_and_its_tree_holds_what_it_found(name):
    model, (source, _) = model_of(name), sentences(3, 6, seed=16)
    trees = [SearchTree() for _ in range(3)]
    plain = beam(ModelSteps(model), source, [7] * 3, width=3, count=2)
    assert beam(ModelSteps(model), source, [7] * 3, width=3, count=2, trees=trees) == plain
    for tree, found in zip(trees, plain, strict=True):
        fates = {node.fate for node in tree.nodes}
        assert {"chosen", "died"} <= fates <= {"chosen", "died", "ended", "lived"}
        for one in found:
            place, path, total_log_prob = tree.ends[one.tokens], [], tree.nodes[tree.ends[one.tokens]].total
            while place >= 0:
                assert tree.nodes[place].fate == "chosen" and tree.nodes[place].parent < place
                path.insert(0, tree.nodes[place].token)
                place = tree.nodes[place].parent
            assert tuple(token for token in path if token != EOS) == one.tokens
            assert total_log_prob == pytest.approx(sum(one.log_probs), rel=1e-4, abs=1e-4)


class Late:
    """A step model whose best output is the longest: a first token that costs much, and nothing from then on."""

    class State:
        def __init__(self, said):
            self.said = said

        def select(self, rows):
            return type(self)(self.said)

    def start(self, source):
        return self.State(0)

    def step(self, tokens, state):
        chances = torch.full((len(tokens), 12), 1e-9)
        for row, token in enumerate(tokens.tolist()):
            if token == BOS:
                chances[row, [EOS, 6]] = torch.tensor([0.52, 0.11])
            else:
                chances[row, 6 if state.said < 3 else EOS] = 1.0
        return chances.log(), self.State(state.said + 1)


def test_a_beam_goes_on_as_long_as_anything_could_still_win():
    found = beam(Late(), torch.tensor([[6, 7, EOS]]), [4], width=2)[0][0]
    assert found.tokens == (6, 6, 6) and found.ended == "end"
    assert found.score == pytest.approx(math.log(0.11) / 4, rel=1e-4)  # the empty output scores log 0.52


class Parrot:
    """A step model that says three tokens, one after the other, for ever; `end` is its score of the end symbol."""

    class State:
        def select(self, rows):
            return self

    def __init__(self, end=-30.0):
        self.end = end

    def start(self, source):
        return self.State()

    def step(self, tokens, state):
        scores = torch.full((len(tokens), 12), -9.0)
        scores[:, EOS] = self.end
        for row, token in enumerate(tokens.tolist()):
            scores[row, {6: 7, 7: 8}.get(token, 6)] = 0.0
        return scores.log_softmax(1), state


@pytest.mark.parametrize("width", [1, 3])
def test_endless_repetition_is_cut_and_reported(width):
    source = torch.tensor([[6, 7, EOS]])
    found = greedy(Parrot(), source, [200])[0] if width == 1 else beam(Parrot(), source, [200], width=width)[0][0]
    assert found.ended == "repetition" and found.tokens == (6, 7, 8) and len(found.log_probs) == 3
    assert greedy(Parrot(), source, [20])[0].ended == "length"
    assert greedy(Parrot(), source, [90], patience=[100])[0].ended == "length"


def test_a_beam_prefers_what_ended_by_itself_to_what_was_cut():
    source = torch.tensor([[6, 7, EOS]])
    assert greedy(Parrot(end=-1.0), source, [200])[0].ended == "repetition"
    found = beam(Parrot(end=-1.0), source, [200], width=3, count=3)[0]
    assert found[0].ended == "end" and set(found[0].tokens) <= {6, 7, 8}
    assert [one.ended != "end" for one in found] == sorted(one.ended != "end" for one in found)
