"""Laws of METEOR, and its agreement with an independent implementation."""

import itertools
import sys

import pytest

from regard.errors import RegardError, UsageError
from regard.evaluation import meteor
from regard.evaluation.meteor import LANGUAGES, Link, Meteor, Settings, align, words

NLTK = Settings(alpha=0.9, beta=3.0, gamma=0.5, delta=0.5, stem=1.0, stemmer="english")
"""The parameters of nltk's METEOR: those of Lavie and Agarwal (2007), every match of weight 1."""


def one(metric, hypothesis, *references):
    return metric.score(metric.statistics([hypothesis], [references])[0])


# From nltk 3.10.4: single_meteor_score(reference.split(), hypothesis.split(), stemmer=SnowballStemmer("english"),
# wordnet=without synsets). Sentences where the alignment is in no doubt: nltk does not look for the fewest chunks.
@pytest.mark.parametrize(
    ("hypothesis", "reference", "value"),
    [
        ("a man is reading a book in the park", "a man reads books in a park", 0.795068),
        ("two dogs run quickly through deep snow", "two dogs are running through the snow", 0.531429),
        ("the president spoke to the audience", "the president then spoke to the audience", 0.853462),
        ("children playing outside near water", "a child plays outside by the waters", 0.375817),
        ("nothing here fits", "a wholly different sentence", 0.0),
    ],
)
def test_with_its_parameters_it_is_nltks_meteor(hypothesis, reference, value):
    assert one(Meteor("other", NLTK), hypothesis, reference) == pytest.approx(100 * value, abs=1e-4)


def test_the_alignment_has_the_fewest_chunks():
    # on the mat | sat | the cat: 3 chunks of 6 matches, so 1 − 0.5 · (3/6)³
    assert one(Meteor("other", NLTK), "on the mat sat the cat", "the cat sat on the mat") == pytest.approx(93.75)


def test_the_alignment_is_the_best_of_all():
    letters = "aab", "aba", "bba", "abab", "bab"
    for said, wanted in itertools.product(letters, repeat=2):
        links = align(said, wanted, lambda a, b: float(a == b))
        most = sum(min(said.count(letter), wanted.count(letter)) for letter in "ab")
        assert len(links) == most
        fewest = min(chunks_of(said, order, wanted) for order in itertools.permutations(range(len(wanted)), most))
        assert chunks_of_links(links) == fewest


def chunks_of_links(links):
    ends = {link[:2] for link in links}
    return sum((a - 1, b - 1) not in ends for a, b in ends)


def chunks_of(said, places, wanted):
    """The fewest chunks if these reference places are matched, in this order, to some words of the hypothesis."""
    fewest = float("inf")
    for chosen in itertools.combinations(range(len(said)), len(places)):
        if all(said[a] == wanted[b] for a, b in zip(chosen, places, strict=True)):
            fewest = min(fewest, chunks_of_links([Link(a, b, 1.0) for a, b in zip(chosen, places, strict=True)]))
    return fewest


@pytest.mark.parametrize("language", LANGUAGES)
def test_perfect_is_100_and_nothing_is_0(language):
    metric = Meteor(language)
    assert one(metric, "Der Hund bellt.", "Der Hund bellt.") == pytest.approx(100)
    assert one(metric, "", "Der Hund bellt.") == 0 == one(metric, "Die Katze", "")
    assert one(metric, "", "") == 100
    assert f"lang:{language}|" in metric.signature and "alpha:" in metric.signature


def test_a_function_word_counts_less_than_a_content_word():
    metric = Meteor("en")
    missing_article = one(metric, "dog barks at night", "the dog barks at night")
    missing_noun = one(metric, "the barks at night", "the dog barks at night")
    assert missing_article > missing_noun


def test_a_stem_counts_less_than_the_word_and_more_than_none():
    metric = Meteor("de")
    same, stem, none = (
        one(metric, f"zwei {word} stehen", "zwei Häuser stehen") for word in ("Häuser", "Haus", "Autos")
    )
    assert same > stem > none


def test_the_best_of_several_references_counts():
    metric = Meteor("en")
    both = one(metric, "a cat sleeps", "a dog runs", "a cat is sleeping")
    assert both == max(one(metric, "a cat sleeps", "a dog runs"), one(metric, "a cat sleeps", "a cat is sleeping"))


def test_marks_are_words():
    assert words("Don't stop!") == ["don", "'", "t", "stop", "!"]


def test_a_synonym_matches_where_there_is_a_wordnet(monkeypatch):
    sets = {"quick": frozenset({"fast.a"}), "rapid": frozenset({"fast.a", "rapid.n"})}
    monkeypatch.setattr(meteor, "_wordnet", lambda: lambda word: sets.get(word, frozenset()))
    known = Meteor("en")
    monkeypatch.setattr(meteor, "_wordnet", lambda: None)
    unknown = Meteor("en")
    assert one(known, "a quick dog", "a rapid dog") > one(unknown, "a quick dog", "a rapid dog")
    assert "|syn:wordnet-0.8|" in known.signature and "|syn:no|" in unknown.signature


def test_babble_is_aligned_in_bounded_time():
    assert 0 < one(Meteor("en"), "salad bowl " * 100, "bowl salad " * 100) < 100


def test_an_unknown_language_is_refused():
    with pytest.raises(UsageError, match="`xx`: choose from en, de"):
        Meteor("xx")


def test_a_missing_stemmer_is_told_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(RegardError, match=r"pip install \"regard\[meteor\]\""):
        Meteor("de")
    assert one(Meteor("other"), "a", "a") == 100  # exact matches need none
