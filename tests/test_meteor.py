"""Laws of METEOR, and its agreement with an independent implementation."""

import itertools
import os
import random
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from regard.foundation.errors import RegardError, UsageError
from regard.metrics import meteor
from regard.metrics.function_words import FUNCTION_WORDS
from regard.metrics.meteor import LANGUAGES, Link, Meteor, Settings, align, words

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


# From METEOR 1.5 itself (meteor-1.5.jar, 2015), given our words and our function words, with exact and stem matches:
# java -jar meteor-1.5.jar OUT REF -l LANGUAGE -s FUNCTION_WORDS -m "exact stem" -w "1.0 STEM"
JAVA = {
    "de": [
        ("Zwei Hunde rennen über die Wiese.", "Zwei Hunde laufen über eine grüne Wiese.", 0.419521),
        ("Ein kleines Mädchen liest ein Buch.", "Das Mädchen liest im Garten ein altes Buch.", 0.379667),
        ("Der Zug kam gestern zu spät.", "Gestern kam der Zug viel zu spät an.", 0.478968),
        ("Die Kinder spielten im Schnee.", "Kinder spielen draußen im tiefen Schnee.", 0.324810),
        ("Er kauft rote Äpfel auf dem Markt.", "Auf dem Markt kaufte er einen roten Apfel.", 0.543972),
        ("Niemand hat den Brief gelesen.", "Wir fahren morgen nach Hause.", 0.067500),
    ],
    "en": [
        ("Two dogs run across the field.", "Two dogs are running over a green field.", 0.289177),
        ("The train came too late yesterday.", "Yesterday the train arrived much too late.", 0.319913),
        ("A girl reads books in the garden.", "The little girl is reading an old book in the garden.", 0.272739),
        ("Children were playing in deep snow.", "The children play outside in the snow.", 0.263511),
        ("At the market he buys red apples.", "He bought a red apple at the market.", 0.324610),
        ("Nobody has read that letter.", "We will go home tomorrow.", 0.033333),
    ],
}
JAVA_CORPUS = {"de": 0.3878649666563007, "en": 0.26301325491900435}


@pytest.mark.parametrize("language", JAVA)
def test_it_is_the_reference_implementations_meteor(language):
    metric = Meteor(language, replace(LANGUAGES[language], synonym=0.0))
    outputs, references, values = zip(*JAVA[language], strict=True)
    rows = metric.statistics(outputs, [(reference,) for reference in references])
    assert [metric.score(row) for row in rows] == pytest.approx([100 * value for value in values], abs=1e-4)
    assert metric.score(rows.sum(0)) == pytest.approx(100 * JAVA_CORPUS[language])


MULTI30K = Path("../shared/data/multi30k")
JAR = os.environ.get("REGARD_METEOR_JAR", "")


@pytest.mark.skipif(not JAR or not MULTI30K.exists(), reason="needs REGARD_METEOR_JAR=meteor-1.5.jar and Multi30k")
@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("stem", [False, True], ids=["exact", "stem"])
def test_on_real_sentences_it_links_no_less_than_the_reference_implementation(language, stem, tmp_path):
    references = (MULTI30K / f"test_2016_flickr.{language}").read_text().splitlines()[:300]
    outputs = [spoilt(line, random.Random(number)) for number, line in enumerate(references)]
    chosen = LANGUAGES[language]
    metric = Meteor(language, replace(chosen, synonym=0.0, stem=chosen.stem if stem else 0.0))
    for name, lines in (("out", outputs), ("ref", references)):
        (tmp_path / name).write_text("".join(" ".join(words(line)) + "\n" for line in lines))
    (tmp_path / "function").write_text("\n".join(sorted(FUNCTION_WORDS[language])) + "\n")
    modules = ["-m", "exact stem", "-w", f"1.0 {chosen.stem}"] if stem else ["-m", "exact", "-w", "1.0"]
    files = [tmp_path / "out", tmp_path / "ref", "-l", language, "-s", tmp_path / "function"]
    call = ["java", "-Dfile.encoding=UTF-8", "-Xmx1G", "-jar", JAR, *files, *modules]
    told = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = [100 * float(line.split("\t")[1]) for line in told if line.startswith("Segment")]
    ours = [metric.score(row) for row in metric.statistics(outputs, [(one,) for one in references])]
    same = sum(abs(a - b) < 0.005 for a, b in zip(ours, theirs, strict=True))
    assert same >= (0.85 if stem else 0.97) * len(ours)
    assert statistics.correlation(ours, theirs) > 0.995


def spoilt(line, chance):
    """A sentence with some words left out, some ends changed and, now and then, its halves swapped."""
    said = [word + "s" * (chance.random() < 0.1) for word in line.split() if chance.random() > 0.15]
    middle = chance.randrange(len(said) + 1) if chance.random() < 0.5 else 0
    return " ".join(said[middle:] + said[:middle])


def test_the_alignment_has_the_fewest_chunks():
    # on the mat | sat | the cat: 3 chunks of 6 matches, so 1 − 0.5 · (3/6)³
    assert one(Meteor("other", NLTK), "on the mat sat the cat", "the cat sat on the mat") == pytest.approx(93.75)


def test_few_chunks_count_more_than_exact_words():
    def match(word: str, other: str) -> float:
        return 1.0 if word == other else 0.6 if word.rstrip("s") == other.rstrip("s") else 0.0

    links = align(["the", "cats", "run"], ["the", "cat", "run", "cats"], match)
    assert [link.reference for link in links] == [0, 1, 2]  # not the exact cats, which would make three chunks


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
    with pytest.raises(UsageError, match=r"`xx`\. Choose from en, de"):
        Meteor("xx")


def test_a_missing_stemmer_is_told_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(RegardError, match="-m pip install 'snowballstemmer"):
        Meteor("de")
    assert one(Meteor("other"), "a", "a") == 100  # exact matches need none
