"""Beams, narrowing and full: what they find, when they stop, and that no n-best list has a text twice."""

import itertools

import pytest
import torch

from regard.models import build
from regard.search import ModelSteps, beam
from regard.search.group import Group
from regard.search.steps import AttentiveSteps
from regard.search.tree import SearchTree
from regard.text.specials import BOS, EOS
from tests.cells import KINDS, cell, model_of, sentences
from tests.test_search import FAMILIES, WORDS, tiny_model, total

SOURCE = torch.tensor([[6, 7, 3, EOS]])
PENALTIES = [0.0, 0.6, 1.0, 2.0]


def random_model(seed, vocabulary):
    """A model over a larger vocabulary, sharp enough to have preferences."""
    torch.manual_seed(seed)
    model = build(cell(**FAMILIES["rnn"]), vocabulary, vocabulary).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model


class Table:
    """A step model whose next token depends on the last one alone, by a table of probabilities."""

    class State:
        def select(self, rows):
            return self

    def __init__(self, rows, size=12):
        self.rows, self.size = rows, size

    def start(self, source):
        return self.State()

    def step(self, tokens, state):
        scores = torch.full((len(tokens), self.size), 1e-9)
        for row, token in enumerate(tokens.tolist()):
            for following, probability in self.rows.get(token, {EOS: 1.0}).items():
                scores[row, following] = probability
        return scores.log(), state


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("seed", range(5))
def test_a_full_beam_as_wide_as_the_space_is_exhaustive_search(seed, penalty):
    model, longest = tiny_model(seed), 4
    every = {
        said: total(model, SOURCE, (*said, EOS)) / (length + 1) ** penalty
        for length in range(longest)
        for said in itertools.product(WORDS[1:], repeat=length)
    }
    best = sorted(every, key=lambda said: -every[said])[:5]
    width = len(WORDS) ** longest
    found = beam(ModelSteps(model), SOURCE, [longest], width=width, length_penalty=penalty, count=5, full=True)[0]
    assert [one.tokens for one in found] == best
    for one in found:
        assert one.score == pytest.approx(every[one.tokens], rel=1e-4) and one.ended == "end"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("coverage", [0.0, 0.3])
def test_stopping_gives_up_nothing_that_going_on_would_find(monkeypatch, full, penalty, coverage):
    def search():
        return [
            beam(
                AttentiveSteps(model) if coverage else ModelSteps(model),
                SOURCE,
                [9],
                width=width,
                count=count,
                length_penalty=penalty,
                coverage_penalty=coverage,
                full=full,
            )[0]
            for model in models
            for width, count in ((2, 1), (3, 1), (4, 3), (6, 6))
        ]

    models = [tiny_model(seed, family) for seed in range(2) for family in ("rnn", "transformer")]
    steps = [0, 0]
    measured = Group.extend

    def counted(self, *given):
        steps[-1] += 1
        return measured(self, *given)

    monkeypatch.setattr(Group, "extend", counted)
    stopped = search()
    steps.append(0)
    monkeypatch.setattr(Group, "_competitive", lambda self, living: living if self.room > 0 else [])
    assert [[one.tokens for one in found] for found in search()] == [[one.tokens for one in found] for found in stopped]
    assert steps[1] < steps[2] if penalty == 0.0 else steps[1] <= steps[2], "it does stop early"


@pytest.mark.parametrize("name", KINDS[::3])
def test_the_score_of_a_full_beam_is_the_score_recomputed(name):
    model, (source, _) = model_of(name), sentences(4, 6, seed=12)
    for row, found in enumerate(beam(ModelSteps(model), source, [7] * 4, width=4, count=4, full=True)):
        assert len({one.tokens for one in found}) == len(found)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True) or any(
            one.ended != "end" for one in found
        )
        for one in found:
            said = [*one.tokens, *([EOS] if one.ended == "end" else [])]
            expected = total(model, source[row : row + 1, : int((source[row] != 0).sum())], said)
            assert one.score == pytest.approx(expected / len(said), rel=1e-3, abs=1e-4)


def test_in_a_full_beam_an_ended_hypothesis_takes_no_slot():
    # Two bad ends come first and would fill a beam of two.
    rows = {BOS: {EOS: 0.35, 6: 0.33, 7: 0.32}, 6: {EOS: 0.5, 8: 0.5}, 7: {9: 1.0}, 9: {10: 1.0}, 10: {EOS: 1.0}}
    narrow = beam(Table(rows), SOURCE, [8], width=2)[0][0]
    full = beam(Table(rows), SOURCE, [8], width=2, full=True)[0][0]
    assert full.score > narrow.score and full.tokens == (7, 9, 10)


def test_a_full_beam_follows_as_many_as_it_is_wide_after_one_has_ended():
    # The end comes first; then the second best of two that live is the one that wins.
    rows = {
        BOS: {EOS: 0.34, 6: 0.33, 7: 0.33},
        6: {8: 1.0},
        7: {9: 0.9, EOS: 0.1},
        8: {10: 0.3, 11: 0.3, 5: 0.2, 3: 0.2},
    }
    assert beam(Table(rows), SOURCE, [8], width=2, full=True)[0][0].tokens == (7, 9)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("diversity", [0.0, 0.1, 0.5])
def test_no_text_comes_twice_and_as_many_come_as_are_asked_for(full, groups, diversity):
    def text(tokens):  # tokens in pairs read the same, as two spellings of a word do
        return " ".join(str(token // 2) for token in tokens)

    ends = set()
    for seed, limit in itertools.product(range(3), (2, 5, 12)):
        found = beam(
            ModelSteps(random_model(seed, vocabulary=20)),
            SOURCE,
            [limit],
            width=6,
            count=6,
            groups=groups,
            diversity=diversity,
            full=full,
            text=text,
        )[0]
        texts = [text(one.tokens) for one in found]
        assert len(set(texts)) == len(texts) == 6
        order = [(one.ended != "end", -one.score) for one in found]
        assert order == sorted(order)
        ends |= {one.ended for one in found}
    assert {"end", "length"} <= ends, "both ways to end are tried"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_where_fewer_texts_exist_all_are_given(full, groups):
    def text(tokens):
        return "x" * len(tokens)

    found = beam(
        ModelSteps(random_model(1, vocabulary=9)), SOURCE, [2], width=6, count=6, groups=groups, full=full, text=text
    )
    assert sorted(text(one.tokens) for one in found[0]) == ["", "x", "xx"]


@pytest.mark.parametrize("full", [False, True])
def test_groups_give_as_many_texts_as_are_asked_for(full):
    rows = {BOS: {6: 0.4, 7: 0.3, 8: 0.3}, **{token: {EOS: 0.5, 9: 0.3, 10: 0.2} for token in (6, 7, 8)}}
    found = beam(Table(rows), SOURCE, [6], width=6, count=6, groups=3, diversity=0.01, full=full)[0]
    assert len({one.tokens for one in found}) == len(found) == 6


def test_of_two_spellings_of_a_text_the_better_is_given():
    rows = {BOS: {6: 0.4, 7: 0.6}, 6: {EOS: 0.9, 8: 0.1}, 7: {EOS: 0.2, 9: 0.8}, 9: {EOS: 1.0}}
    found = beam(Table(rows), SOURCE, [4], width=4, count=3, text=lambda tokens: "same" if tokens else "")[0]
    assert [one.tokens for one in found][:1] == [(7, 9)] and len(found) <= 2


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_tree_has_the_scores_that_decide(penalty):
    rows = {BOS: {6: 0.5, 7: 0.3, EOS: 0.2}, 6: {7: 0.6, EOS: 0.4}, 7: {EOS: 0.7, 6: 0.3}}
    tree = SearchTree()
    found = beam(Table(rows), SOURCE, [5], width=3, count=3, length_penalty=penalty, trees=[tree])[0]
    for one in found:
        assert tree.nodes[tree.ends[one.tokens]].score == pytest.approx(one.score)
    for node in tree.nodes:
        length, parent = 1, node.parent
        while parent >= 0:
            length, parent = length + 1, tree.nodes[parent].parent
        assert node.score == pytest.approx(node.total / length**penalty)
    ended = [node for place, node in enumerate(tree.nodes) if place in tree.ends.values()]
    chosen = [node.score for node in ended if node.fate == "chosen"]
    assert len(chosen) == 3 and min(chosen) >= max((node.score for node in ended if node.fate == "ended"), default=-99)


def test_a_group_is_kept_only_from_what_groups_before_it_have_said():
    rows = {BOS: {EOS: 0.4, 6: 0.35, 7: 0.15, 8: 0.1}, 6: {7: 0.5, 8: 0.49, EOS: 0.01}}
    tree = SearchTree()
    beam(Table(rows), SOURCE, [5], width=4, groups=2, diversity=0.1, trees=[tree])
    # The first group has one slot left after its end, and says 7; so 8 is as good for the second as it was.
    assert (6, 7) in tree.ends and (6, 8) in tree.ends
