"""The laws of constraints: never broken, and without effect where they ask for nothing."""

import itertools
import random

import pytest
import torch

from regard.config.text import Tokenizer as Settings
from regard.foundation.errors import RegardError, UsageError
from regard.models import build
from regard.search import ModelSteps, beam, greedy, sample
from regard.search.constraints import Constraints, encode_phrase, writings
from regard.search.forbidden import Forbidden
from regard.search.phrases import Only, Prefix, Required
from regard.search.rules import Every
from regard.text.learning import train
from regard.text.specials import EOS
from tests.cells import KINDS, cell, model_of, sentences
from tests.test_search import FAMILIES, total

LINES = [
    "the cat sat on the mat", "a catalogue of cats", "the dog, the cat and the hat", "concatenate a cat",
    "on the mat sat the cat (cat)", "new york is new", "york is not new york", "那只猫 很好 猫",
]  # fmt: skip


@pytest.fixture(scope="module", params=["bpe", "characters", "words"])
def tokenizer(request):
    settings = {"kind": request.param, "min_frequency": 1}
    if request.param == "bpe":
        settings["vocabulary"] = 330
    return train(Settings.model_validate(settings), lambda: iter(LINES * 20), "test")


def babbler(tokenizer, family="rnn"):
    """An untrained model over a real vocabulary, sharp enough to have preferences."""
    torch.manual_seed(0)
    model = build(cell(**FAMILIES[family]), tokenizer.size, tokenizer.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return model


def outputs(model, tokenizer, constraints, limit=20):
    """Texts by greedy search, by beam and by sampling."""
    rule = constraints.rule(tokenizer)
    source = torch.tensor([[7, 8, 9, EOS]])
    limits = [max(limit, rule.needs + 1)]
    found = [*greedy(ModelSteps(model), source, limits, rules=[rule])]
    found += beam(ModelSteps(model), source, limits, width=4, count=4, rules=[rule])[0]
    found += sample(ModelSteps(model), source, limits, count=8, temperature=1.5, rules=[rule])[0]
    return [tokenizer.decode(one.tokens) for one in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_constraints_are_never_broken(tokenizer, family):
    model = babbler(tokenizer, family)
    for text in outputs(model, tokenizer, Constraints(prefix="the cat")):
        assert text.startswith("the cat")
    for text in outputs(model, tokenizer, Constraints(require=("cat", "the mat"))):
        assert "cat" in text and "the mat" in text
    words = ("cat", "the", "new york", "猫", "sat*")
    for text in outputs(model, tokenizer, Constraints(forbid=words)):
        assert not Forbidden(words, tokenizer).breaks(text)
        assert "猫" not in text and not {"cat", "the"} & set(text.split())
    for text in outputs(model, tokenizer, Constraints(only=tuple(LINES))):
        assert text in LINES
    both = Constraints(prefix="a", require=("new", "mat"), forbid=("cat*", "york"))
    for text in outputs(model, tokenizer, both):
        assert text.startswith("a") and "new" in text and "mat" in text
        assert not Forbidden(both.forbid, tokenizer).breaks(text)


@pytest.mark.parametrize("name", KINDS)
def test_vacuous_constraints_change_nothing(name):
    model, (source, _) = model_of(name), sentences(3, 6, seed=5)
    limits = [8, 6, 9]
    plain = beam(ModelSteps(model), source, limits, width=3, count=2)
    rules = [Every([Prefix(()), Required([])])] * 3
    assert beam(ModelSteps(model), source, limits, width=3, count=2, rules=rules) == plain
    said = [Required([[plain[row][0].tokens[:1]]]) if plain[row][0].tokens else Required([]) for row in range(3)]
    found = beam(ModelSteps(model), source, limits, width=3, rules=said)
    for row in range(3):
        assert set(plain[row][0].tokens[:1]) <= set(found[row][0].tokens)
    assert greedy(ModelSteps(model), source, limits, rules=rules) == greedy(ModelSteps(model), source, limits)


def test_what_is_never_said_may_be_forbidden(tokenizer):
    model = babbler(tokenizer)
    source = torch.tensor([[7, 8, 9, EOS]])
    plain = beam(ModelSteps(model), source, [12], width=4)[0][0]
    rule = Constraints(forbid=("zebra", "the cat sat on the moon")).rule(tokenizer)
    assert beam(ModelSteps(model), source, [12], width=4, rules=[rule])[0][0] == plain


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trie_with_a_full_beam_scores_every_allowed_output(family):
    random.seed(family)
    torch.manual_seed(3)
    model = build(cell(**FAMILIES[family]), 12, 12).eval()
    source = torch.tensor([[6, 7, 8, EOS]])
    allowed = {tuple(random.choices(range(6, 12), k=random.randint(1, 4))) for _ in range(25)}
    found = beam(ModelSteps(model), source, [5], width=60, count=60, length_penalty=0.7, rules=[Only(sorted(allowed))])[
        0
    ]
    scores = {said: total(model, source, (*said, EOS)) / (len(said) + 1) ** 0.7 for said in allowed}
    assert [h.tokens for h in found] == sorted(allowed, key=lambda said: -scores[said])
    for one in found:
        assert one.score == pytest.approx(scores[one.tokens], rel=1e-3) and one.ended == "end"


def test_a_required_phrase_with_a_full_beam_is_exhaustive_search():
    from tests.test_search import tiny_model

    model, source, longest = tiny_model(3), torch.tensor([[6, 7, 3, EOS]]), 4
    every = {
        said: total(model, source, (*said, EOS)) / (len(said) + 1)
        for length in range(longest)
        for said in itertools.product((3, 6, 7), repeat=length)
        if any(said[place : place + 2] == (6, 3) for place in range(length))
    }
    rules = [Required([[(6, 3)]])]
    found = beam(ModelSteps(model), source, [longest], width=400, count=5, rules=rules)[0]
    assert [h.tokens for h in found] == sorted(every, key=lambda said: -every[said])[:5]


def test_required_phrases_that_overlap_are_all_said():
    rule = Required([[(6, 7, 8)], [(7, 9)], [(8, 8)]])
    model = model_of("gru-both>gru/attention")
    source = torch.tensor([[6, 7, 8, EOS]])
    for limit in (rule.needs + 1, rule.needs + 4):
        for one in sample(ModelSteps(model), source, [limit], count=40, temperature=3.0, rules=[rule])[0]:
            text = "-".join(map(str, one.tokens))
            assert all(phrase in text for phrase in ("6-7-8", "7-9", "8-8"))


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("the cat sat", True), ("the cats sat", False), ("concat", False), ("cat", True), ("(cat)", True),
        ("a new york day", True), ("a new  york day", True), ("new yorks", False), ("我的猫很好", True), ("sad", True),
        ("dis sad", True), ("dissad", False), ("saddle", True), ("new new york", True), ("cat-like", True),
    ],
)  # fmt: skip
def test_forbidden_phrases_are_whole_words_and_a_star_is_any_ending(tokenizer, text, broken):
    assert Forbidden(("cat", "new york", "猫", "sad*"), tokenizer).breaks(text) is broken


def test_phrases_are_written_as_inside_a_sentence(tokenizer):
    assert encode_phrase("the cat", tokenizer) == tuple(tokenizer.encode("the cat").ids)
    for ways in (writings("cat", tokenizer), writings("new york", tokenizer)):
        assert 1 <= len(ways) <= 2
        for way in ways:
            assert tokenizer.decode(way).strip() in ("cat", "new york")


@pytest.mark.parametrize(
    ("constraints", "names"),
    [
        (Constraints(require=("the cat",), forbid=("cat",)), ["the cat", '"cat"']),
        (Constraints(prefix="new york", forbid=("york*",)), ["new york", '"york*"']),
        (Constraints(prefix="zebra", only=("a cat",)), ["zebra"]),
        (Constraints(require=("dog",), only=("a cat",)), ["dog"]),
        (Constraints(forbid=("cat",), only=("a cat",)), ["forbidden"]),
        (Constraints(only=()), ["empty"]),
    ],
)
def test_contradictions_say_which(tokenizer, constraints, names):
    with pytest.raises(UsageError) as error:
        constraints.rule(tokenizer)
    assert all(name in str(error.value) for name in names)


def test_rules_that_leave_nothing_are_told():
    model = model_of("gru-both>gru/attention")
    source = torch.tensor([[6, 7, 8, EOS]])
    with pytest.raises(RegardError, match="No output satisfies all constraints"):
        greedy(ModelSteps(model), source, [5], rules=[Every([Prefix((7,)), Only([(8,)])])])
