"""Kept items: whole words, as often as the source has them, where the model looks."""

import re
from collections import Counter
from random import Random

import pytest
import torch

from regard.config.text import Tokenizer as Settings
from regard.models import build
from regard.search import Constraints, ModelSteps, beam, greedy, sample
from regard.search.kept import Pieces, kept_rule
from regard.search.kept_parts import find_kept, is_glued
from regard.search.rules import may_end
from regard.search.steps import AttentiveSteps
from regard.text.learning import train
from regard.text.specials import EOS
from tests.cells import cell
from tests.long_cases import few
from tests.test_search import FAMILIES

LINES = ["number 8 and number 44 of 1990", "room 3.5, bus 12 (7) see www.a.org/x or {name}", "a b c d 0 1 2 6 9"] * 20
NUMBER = re.compile(r"\w*\d(?:[.,:](?=\d)|\w)*")
"""A number with all letters and digits that it is glued to."""


@pytest.fixture(scope="module", params=["bpe", "characters"])
def tokenizer(request):
    settings = {"kind": request.param, "min_frequency": 1}
    if request.param == "bpe":
        settings["vocabulary"] = 310
    return train(Settings.model_validate(settings), lambda: iter(LINES), "test")


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("number 8 and number 448", ["8", "448"]),
        ("a 3 by 3 grid", ["3", "3"]),
        ("3.5kg, A4, 1990s, k-9 and 8:30am", ["9"]),
        ("1,000.5 at 12:30.", ["1,000.5", "12:30"]),
        ("有8个人", ["8"]),
    ],
)
def test_numbers_are_found_as_whole_words_each_time(source, kept):
    found = find_kept(source, ["numbers"])
    assert [one.text for one in found] == kept
    assert all(source[one.start : one.end] == one.text for one in found)


def test_what_overlaps_is_kept_once():
    found = find_kept("see www.a.org/8 or 8, <b>bold</b>", ["numbers", "urls", "placeholders"])
    assert [one.text for one in found] == ["www.a.org/8", "8", "<b>", "</b>"]
    # Of two that overlap only in part nothing is lost.
    assert [one.text for one in find_kept("a b c d", ["a b c", "c d"])] == ["a b c d"]


@pytest.mark.parametrize(
    ("before", "after", "glued"),
    [
        ("44", "8", True), ("a", "8", True), ("8", "th", True), ("8.", "5", True), ("8", ".5", True),
        ("8", ". 5", False), ("8", ".", False), ("(", "8", False), ("", "8", False), ("8", " 9", False),
        ("有", "8", False), ("www.a.org", "/x", True), ("www.a.org", ".", False), ("}", "s", False),
    ],
)  # fmt: skip
def test_what_reads_as_one_word_is_glued(before, after, glued):
    assert is_glued(before, after) is glued


def rule_of(source, tokenizer, constraints=None, kinds=("numbers",)):
    kept = find_kept(source, kinds)
    offsets = tokenizer.encode(source).offsets
    return kept_rule(source, kept, offsets, constraints or Constraints(), Pieces(tokenizer))


@pytest.mark.parametrize("source", ["number 8 and number 44", "8 of 88 or 8", "bus 12 (7) in 1990", "4 44 444"])
@pytest.mark.parametrize("family", ["rnn", "transformer", "fixed"])
@pytest.mark.parametrize("seed", few(range(3), 1))
def test_every_number_comes_out_as_it_went_in_and_no_other(tokenizer, source, family, seed):
    torch.manual_seed(seed)
    model = build(cell(**FAMILIES[family]), tokenizer.size, tokenizer.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    steps = ModelSteps(model) if family == "fixed" else AttentiveSteps(model)
    ids = torch.tensor([[*tokenizer.encode(source).ids, EOS]])
    rule = rule_of(source, tokenizer)
    limits = [rule.needs + 20]
    found = [*greedy(steps, ids, limits, rules=[rule])]
    found += beam(steps, ids, limits, width=4, count=4, rules=[rule])[0]
    found += beam(steps, ids, limits, width=4, count=4, full=True, rules=[rule])[0]
    found += sample(steps, ids, limits, count=10, temperature=1.5, rules=[rule])[0]
    wanted = Counter(re.findall(r"\d+", source))
    for one in found:
        text = tokenizer.decode(one.tokens)
        assert Counter(NUMBER.findall(text)) == wanted, text
        assert may_end(rule, one.tokens, tokenizer.size)


class Looking:
    """A step model that likes to say numbers, and looks at one source token after the other, as told."""

    class State:
        def __init__(self, rows, looks, time):
            self.rows, self.looks, self.time = rows, looks, time
            if time:
                self.attention = looks[min(time, len(looks)) - 1].expand(rows, -1)

        def select(self, rows):
            return type(self)(len(rows), self.looks, self.time)

    def __init__(self, tokenizer, looks, size):
        self.looks = torch.eye(size)[looks]
        self.scores = torch.full((tokenizer.size,), -9.0)
        for text in ("4 4", "8"):
            self.scores[list(tokenizer.encode(text).ids)] = -1.0
        self.scores[EOS] = -2.0

    def start(self, source):
        return self.State(len(source), self.looks, 0)

    def step(self, tokens, state):
        return self.scores.log_softmax(0).repeat(len(tokens), 1), self.State(len(tokens), self.looks, state.time + 1)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("width", [1, 4])
def test_attention_says_which_number_comes_first(tokenizer, first, width):
    source = "number 8 and number 44"
    encoded = tokenizer.encode(source)
    places = [
        encoded.offsets.index(span) for span in encoded.offsets if source[slice(*span)].strip() in ("8", "4", "44")
    ]
    places = [places[0], places[-1]]
    looks = [places[first]] * 2 + [places[1 - first]] * 30
    rule, limits = rule_of(source, tokenizer), [30]
    steps = Looking(tokenizer, looks, len(encoded.ids) + 1)
    ids = torch.tensor([[*encoded.ids, EOS]])
    found = (
        beam(steps, ids, limits, width=width, rules=[rule])[0]
        if width > 1
        else greedy(steps, ids, limits, rules=[rule])
    )
    numbers = re.findall(r"\d+", tokenizer.decode(found[0].tokens))
    assert numbers == (["8", "44"] if first == 0 else ["44", "8"])


def test_a_prefix_may_say_a_number_first(tokenizer):
    constraints = Constraints(prefix="number 44")
    rule = rule_of("number 8 and number 44", tokenizer, constraints)
    state = rule.start
    for token in tokenizer.encode("number 44").ids:
        assert rule.allowed(state, 30, tokenizer.size) is None
        state = rule.after(state, token)
    assert rule.met(state) > 0 and not bool(rule.allowed(state, 30, tokenizer.size)[EOS])
    for token in tokenizer.encode("8").ids:
        state = rule.after(state, token)
    assert bool(rule.allowed(state, 30, tokenizer.size)[EOS])


def test_other_kinds_are_copied_whole_too(tokenizer):
    source = "see www.a.org/x or {name}"
    torch.manual_seed(0)
    model = build(cell(**FAMILIES["rnn"]), tokenizer.size, tokenizer.size).eval()
    rule = rule_of(source, tokenizer, kinds=("urls", "placeholders"))
    ids = torch.tensor([[*tokenizer.encode(source).ids, EOS]])
    for one in beam(AttentiveSteps(model), ids, [rule.needs + 9], width=4, count=4, rules=[rule])[0]:
        text = tokenizer.decode(one.tokens)
        assert "{name}" in text and re.search(r"(?<!\w)www\.a\.org/x(?![\w/])", text), text


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("on 12/05/2018 at 3:45", ["12/05/2018", "3:45"]),
        ("from 2018-05-09 on", ["2018-05-09"]),
        ("pages 10-12, 1,000.5 in all.", ["10-12", "1,000.5"]),
        ("the 1990s and 10km, the 3rd", []),
        # A sign belongs to a number, a hyphen does not.
        ("-5 to +3, (−2.5) and ±4", ["-5", "+3", "−2.5", "±4"]),
        ("COVID-19, a U-2 and 5 - 3", ["19", "2", "5", "3"]),
        ('x=-3 or $-5 or "-7"', ["-3", "-5", "-7"]),
        # Points, decimals in both conventions, exponents.
        (".5 of $.50 or -.5 ...5", [".5", ".50", "-.5", "5"]),
        ("1.000,50 and 1,000.50 and 1'000 and 1e-5", ["1.000,50", "1,000.50", "1'000", "1e-5"]),
        # Units, currency, percent; versions, telephone numbers.
        ("5% of 20 €, $5, 30 km and 5°C", ["5", "20", "5", "30", "5"]),
        ("1.2.3 but not v1.2.3", ["1.2.3"]),
        ("call +1-555-123-4567 or (555) 123-4567", ["+1-555-123-4567", "555", "123-4567"]),
    ],
)
def test_a_number_is_kept_whole(source, kept):
    assert [one.text for one in find_kept(source, ("numbers",))] == kept


@pytest.mark.parametrize(
    ("source", "pattern", "kept"),
    [
        ("at 3:45 on A3", "[0-9]+", ["3:45", "A3"]),
        ("-5 and -.5 and 1e-5", "[0-9]+", ["-5", "-.5", "1e-5"]),
        ("the 1990s, k-9", r"\d+", ["1990s", "9"]),
        ("a catalogue of cats", "cat", ["catalogue", "cats"]),
        ("see www.a.org/x/y now", "org", ["org"]),
        ("a  8 b", r"\s+8\s+", ["8"]),
        ("有8个人", "[0-9]", ["8"]),
        ("nothing here", "[0-9]*", []),
    ],
)
def test_a_match_of_a_pattern_is_never_left_out(source, pattern, kept):
    assert [one.text for one in find_kept(source, (pattern,))] == kept


WORDS = ["number", "room", "bus", "of", "see", "and", "(a)", "k-", "a.", "-", "–", "the", "b,"]
NUMBERS = [
    "{a}", "-{a}", "+{a}", ".{a}", "{a}.{b}", "{a},{b}", "{a}:{b}", "{a}/{b}/{c}", "{a}-{b}", "{a}.{b}.{c}", "({a})",
    "{a}%", "${a}", "{a}km", "{a}s", "{a}rd", "A{a}", "v{a}.{b}", "{a}:{b}am", "-{a}km", "{a}.", "{a}e-{b}", "{a}'{b}",
]  # fmt: skip


def random_sentence(random):
    """Words and numbers of every form in any order."""
    count = random.randint(1, 4)
    numbers = [
        random.choice(NUMBERS).format(**{name: random.choice(["0", "8", "44", "90", "1990", "12"]) for name in "abc"})
        for _ in range(count)
    ]
    words = [*numbers, *(random.choice(WORDS) for _ in range(random.randint(0, 5)))]
    random.shuffle(words)
    return " ".join(words)


def check_numbers(source, text):
    """An independent reading of an output: what is kept stands there as often as in the source, and no other digits."""
    kept = Counter(one.text for one in find_kept(source, ("numbers",)))
    outside = source
    for one in reversed(find_kept(source, ("numbers",))):
        outside = outside[: one.start] + " " + outside[one.end :]
    spare = set(re.findall("[0-9]+", outside))
    rest = text
    for item, count in sorted(kept.items(), key=lambda one: -len(one[0])):
        found = re.compile(
            r"(?<![^\W_])(?<!\d[.,:/'’-])(?<![\s(\"$][-+−±.])(?<!^[-+−±.])"
            + re.escape(item)
            + r"(?![^\W_])(?![.,:/'’-]\d)"
        )
        number = len(found.findall(rest))
        assert number == count or (number > count and item in spare), (source, text, item)
        rest = found.sub("#", rest)
    assert not kept or set(re.findall("[0-9]+", rest)) <= spare, (source, text)


@pytest.fixture(scope="module")
def numeric_tokenizer(tokenizer):
    lines = [random_sentence(Random(seed)) for seed in range(400)]
    return train(Settings.model_validate({"kind": tokenizer.kind, "min_frequency": 1}), lambda: iter(lines), "test")


@pytest.mark.parametrize("seed", few(range(40), 14))
def test_random_sentences_keep_their_numbers_and_have_no_others(numeric_tokenizer, seed):
    random = Random(1000 + seed)
    torch.manual_seed(seed)
    model = build(cell(**FAMILIES[random.choice(["rnn", "transformer"])]), *[numeric_tokenizer.size] * 2).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    for _ in range(3):
        source = random_sentence(random)
        rule = rule_of(source, numeric_tokenizer)
        ids = torch.tensor([[*numeric_tokenizer.encode(source).ids, EOS]])
        found = greedy(AttentiveSteps(model), ids, [rule.needs + 15], rules=[rule])
        found += beam(AttentiveSteps(model), ids, [rule.needs + 15], width=3, count=3, rules=[rule])[0]
        found += sample(ModelSteps(model), ids, [rule.needs + 15], count=4, temperature=1.5, rules=[rule])[0]
        for one in found:
            check_numbers(source, numeric_tokenizer.decode(one.tokens))


def test_a_number_that_is_not_kept_allows_its_own_digits_and_no_others(tokenizer):
    rule = rule_of("number 8 of 1990s", tokenizer)

    def allowed(text):
        state = rule.start
        for token in tokenizer.encode(text).ids:
            mask = rule.allowed(state, 40, tokenizer.size)
            if mask is not None and not mask[token]:
                return False
            state = rule.after(state, token)
        return may_end(rule, tokenizer.encode(text).ids, tokenizer.size)

    assert allowed("number 8 of 1990") and allowed("1990 number 8") and allowed("number 8")
    for text in ("number 8 of 199", "number 8 of 90", "number 8 of 44", "number 8 of 19900", "1990", "number 8 1990"):
        assert not allowed(text), text


def test_a_sign_makes_another_number(numeric_tokenizer):
    texts = Pieces(numeric_tokenizer).edges
    joined = [token for token, text in enumerate(texts) if text.startswith("8")]
    for source, can_join in (("a 8 - b", False), ("a -8 b", True)):
        rule = rule_of(source, numeric_tokenizer)
        state = rule.start
        for token in numeric_tokenizer.encode("a -").ids:
            state = rule.after(state, token)
        assert joined and bool(rule.allowed(state, 40, numeric_tokenizer.size)[joined].any()) is can_join
