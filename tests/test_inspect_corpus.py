"""Corpus mode of attribute, contributions, lens and patch: means by group, with intervals over sentences."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import inspection
from regard.cli import main
from regard.foundation.errors import RegardError, UsageError
from regard.inspection.analyses.patch.replacement import Replacements
from regard.inspection.corpus_means import Chart, Observations
from regard.inspection.examples import AnnotatedText, Example, Examples, read_examples, trace_examples
from regard.inspection.word_groups import END, FIFTHS, OutputWords, frequent_tokens, group_tokens
from regard.metrics.answers import word_edit_distance, word_edits
from regard.tasks.loaded import load_run
from regard.tasks.trace import Side
from tests.stored_runs import FIXTURES
from tests.test_inspect_results import check_page, check_table

RUNS = FIXTURES / "format-1"
FUNCTIONS = {
    "attribute": inspection.attribute_corpus,
    "contributions": inspection.contributions_corpus,
    "lens": inspection.lens_corpus,
    "patch": inspection.patch_corpus,
}
CASES = [(name, run) for name in FUNCTIONS for run in ("transformer", "rnn") if (name, run) != ("contributions", "rnn")]
SOURCES = ["a b c d", "b c d e", "c d e f a", "d e f", "f a b", "e a c b", "a a b", "f e d c"]
REFERENCES = ["a b c d", "b c d d", "c d e", "d e f", "f a b c", "e a", "a b", "f e d c"]


@pytest.fixture(scope="module")
def runs():
    return {name: load_run(RUNS / f"translation-{name}") for name in ("transformer", "rnn")}


def examples(sources=SOURCES, references=REFERENCES, first=1):
    made = [
        Example(number, AnnotatedText(source), None if right is None else AnnotatedText(right))
        for number, (source, right) in enumerate(zip(sources, references, strict=True), start=first)
    ]
    return Examples("texts", "references", made, made)


def written(tmp_path, sources=SOURCES, references=REFERENCES):
    paths = tmp_path / "source.txt", tmp_path / "reference.txt"
    for path, lines in zip(paths, (sources, references), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def every_group(result):
    return [result.overall, *(group for grouping in result.groupings for group in grouping.groups)]


# Laws of the means


@pytest.mark.parametrize(("name", "run"), CASES)
def test_groups_weighted_by_their_size_give_the_overall_mean(runs, name, run):
    found = FUNCTIONS[name](runs[run], examples())
    expected = {"word class", "position", "place", "error", "sentence"}
    assert {one.name for one in found.groupings} == expected
    for grouping in found.groupings:
        assert sum(group.tokens for group in grouping.groups) == found.overall.tokens
        for measure, (count, mean) in enumerate(zip(found.overall.counts, found.overall.means, strict=True)):
            parts = [(group.counts[measure], group.means[measure]) for group in grouping.groups]
            assert sum(size for size, _ in parts) == count
            if count:
                whole = sum(size * value for size, value in parts if size) / count
                assert whole == pytest.approx(mean, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("name", "run"), CASES)
def test_no_result_depends_on_the_batch_size(runs, name, run):
    one, all_of_them = (FUNCTIONS[name](runs[run], examples(), batch=batch) for batch in (1, 100))
    for mine, theirs in zip(every_group(one), every_group(all_of_them), strict=True):
        assert (mine.name, mine.tokens, mine.counts) == (theirs.name, theirs.tokens, theirs.counts)
        for this, that in zip(mine.means, theirs.means, strict=True):
            assert this == that if this is None else this == pytest.approx(that, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("run", ["transformer", "rnn"])
def test_one_sentence_has_the_means_of_the_single_attribution(runs, run):
    subject = runs[run]
    found = inspection.attribute_corpus(subject, examples(SOURCES[:1], REFERENCES[:1]))
    single = inspection.attribute(subject.trace(SOURCES[0]), ["occlusion"])
    influence = single.answers[0].methods["occlusion"]
    means = dict(zip(found.measures, found.overall.means, strict=True))
    assert means["gain"] == pytest.approx(single.gain.tokens.mean().item(), rel=1e-3)
    assert means["source"] == pytest.approx(influence.source.sum(1).mean().item(), rel=1e-3, abs=1e-5)
    assert means["prefix"] == pytest.approx(influence.prefix.sum(1).mean().item(), rel=1e-3, abs=1e-5)
    assert means["source share"] == pytest.approx(influence.source_share[1:].mean().item(), rel=1e-3)
    assert found.overall.intervals == [None] * len(found.measures)
    assert found.overall.tokens == len(single.trace.target)
    largest = [
        max(abs(x) for x in [*a, *b]) for a, b in zip(influence.source.tolist(), influence.prefix.tolist(), strict=True)
    ]
    whole = (influence.source.abs().sum(1) + influence.prefix.abs().sum(1)).tolist()
    shares = [one / other for one, other in zip(largest, whole, strict=True)]
    assert means["largest share"] == pytest.approx(np.mean(shares), rel=1e-3)
    assert 1 <= means["effective tokens"] <= len(single.trace.source) + len(single.trace.inputs)


def test_one_sentence_has_the_means_of_the_single_contributions(runs):
    found = inspection.contributions_corpus(runs["transformer"], examples(SOURCES[1:2], REFERENCES[1:2]))
    single = inspection.contributions(runs["transformer"].trace(SOURCES[1]))
    means = dict(zip(found.measures, found.overall.means, strict=True))
    assert means["source share"] == pytest.approx(single.source_share.mean().item(), rel=1e-3)
    assert means["gain"] == pytest.approx(single.gain.tokens.mean().item(), rel=1e-3)
    assert means["unsupported"] == pytest.approx(np.mean(single.gain.flagged), abs=1e-4)


@pytest.mark.parametrize("run", ["transformer", "rnn"])
def test_one_sentence_has_the_means_of_the_single_lens(runs, run):
    found = inspection.lens_corpus(runs[run], examples(SOURCES[2:3], REFERENCES[2:3]))
    single = inspection.lens(runs[run].trace(SOURCES[2]))
    decided = [one for one in single.decided if one is not None]
    layers = len(single.names)
    assert found.overall.counts[0] == len(decided)
    assert found.overall.means[0] == (pytest.approx(np.mean(decided), rel=1e-3) if decided else None)
    assert found.overall.means[1 : 1 + layers] == pytest.approx(single.probabilities.mean(1).tolist(), rel=1e-3)
    first = (single.ranks == 1).double().mean(1).tolist()
    assert found.overall.means[1 + layers : 1 + 2 * layers] == pytest.approx(first, abs=1e-4)
    reciprocal = (1 / single.ranks.double()).mean(1).tolist()
    assert found.overall.means[1 + 2 * layers :] == pytest.approx(reciprocal, rel=1e-3)


@pytest.mark.parametrize("run", ["transformer", "rnn"])
def test_patching_a_corpus_is_patching_its_corrupted_pairs(runs, run):
    """The means equal those of single patches of the same pairs, and the law of a full copy holds."""
    subject, several = runs[run], examples()
    found = inspection.patch_corpus(subject, several, seed=3)
    replacements = Replacements([one.source for one in several.every])
    wholes, at_word = [], []
    for example in several.chosen:
        for tried, corruption in enumerate(replacements.corrupt(example, subject.source_tokenizer, 3)):
            if tried == 4:
                break
            try:
                single = inspection.patch(subject.trace(example.source.text), subject.trace(corruption.text))
            except RegardError:
                continue
            wholes.append([value for _, value in single.wholes])
            states = next(one for one in single.maps if one.name == "encoder states")
            changed = [a != b for a, b in zip(single.clean, single.corrupted, strict=True)]
            at_word.append(states.values[:, changed].mean(1).tolist())
            break
    assert found.sentences == len(wholes) >= 2
    assert found.overall.means[: len(wholes[0])] == pytest.approx(np.mean(wholes, axis=0), rel=1e-3, abs=1e-4)
    start = len(wholes[0])
    assert found.overall.means[start : start + len(at_word[0])] == pytest.approx(
        np.mean(at_word, axis=0), rel=1e-3, abs=1e-4
    )
    both = found.measures.index("both: all that the encoder leaves")
    assert found.overall.means[both] == pytest.approx(1, abs=1e-3)
    assert sum(found.left_out.values()) == len(SOURCES) - found.sentences


# Laws of the intervals


def planted(random, sentences, spread=1.0, mean=2.0):
    """Tokens that share the offset of their sentence."""
    seen = Observations([Chart("planted", ("value",))])
    for number in range(sentences):
        size = int(random.integers(1, 9))
        values = mean + spread * random.normal() + 0.1 * random.normal(size=(size, 1))
        seen.add(number, [{"position": "first fifth"}] * size, values)
    return seen


def test_intervals_cover_a_planted_mean_although_tokens_depend_on_each_other():
    random = np.random.default_rng(5)
    covered = by_token = 0
    for _ in range(300):
        seen = planted(random, 25)
        low, high = seen.overall().intervals[0]
        covered += low <= 2.0 <= high
        values = np.concatenate(seen.values)
        by_token += abs(values.mean() - 2.0) <= 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    assert 0.90 <= covered / 300 <= 0.985
    assert by_token / 300 < 0.75  # what intervals over tokens would give


def test_intervals_shrink_with_more_sentences_and_not_with_repeated_tokens():
    random = np.random.default_rng(7)
    widths = [
        np.mean([np.ptp(planted(random, count).overall().intervals[0]) for _ in range(20)]) for count in (10, 40, 160)
    ]
    assert widths[0] > 1.6 * widths[1] > 1.6 * 1.6 * widths[2]

    def repeated(times):
        seen, values = Observations([Chart("x", ("x",))]), np.random.default_rng(1).normal(size=20)
        for number, value in enumerate(values):
            seen.add(number, [{"position": "first fifth"}] * times, np.full((times, 1), value))
        return seen.overall().intervals[0]

    assert repeated(50) == pytest.approx(repeated(1))


def test_what_is_not_defined_is_not_averaged():
    seen = Observations([Chart("x", ("x", "y"))])
    seen.add(1, [{"g": "a"}, {"g": "b"}], np.array([[1.0, np.nan], [3.0, 5.0]]))
    seen.add(2, [{"g": "a"}], np.array([[2.0, np.nan]]))
    whole = seen.overall()
    assert whole.counts == [3, 1] and whole.means == [2.0, 5.0] and whole.intervals[1] is None
    first = seen.groupings()[0].groups[0]
    assert first.means == [1.5, None] and first.counts == [2, 0] and first.intervals[1] is None
    json.dumps(first.means, allow_nan=False)


# Groups


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_word_edits_are_the_fewest_and_use_every_word_once(output, reference):
    edits = word_edits(output, reference)
    assert [one for one, _ in edits if one is not None] == list(range(len(output)))
    assert [one for _, one in edits if one is not None] == list(range(len(reference)))
    cost = sum(i is None or j is None or output[i] != reference[j] for i, j in edits)
    assert cost == word_edit_distance(output, reference)


def test_of_equally_short_edits_the_one_with_most_equal_words_is_taken():
    assert word_edits(["y", "."], [".", "d"]) == [(0, None), (1, 0), (None, 1)]
    assert word_edits([], ["a"]) == [(None, 0)] and word_edits(["a"], []) == [(0, None)] and word_edits([], []) == []


def side_of(words):
    """A side of given tokens; those that begin with ▁ begin a word."""
    ids, tokens, numbers = [], [], []
    for place, piece in enumerate(words):
        ids.append(10 + place)
        tokens.append(piece.removeprefix("▁") or "␣")
        numbers.append(numbers[-1] + piece.startswith("▁") if numbers else 0)
    return Side([*ids, 2], [*tokens, "</s>"], [*numbers, numbers[-1] + 1], [False] * len(ids) + [True])


def grouped(words, source, reference=None, **more):
    right = reference if reference is None or isinstance(reference, AnnotatedText) else AnnotatedText(reference)
    return group_tokens(Example(1, AnnotatedText(source), right), side_of(words), **more)


def test_words_are_split_at_punctuation_and_tokens_belong_to_the_word_that_has_most_of_them():
    found = OutputWords.of(side_of(["▁Der", "▁Hu", "nd", "▁rennt", ".", "▁3", ",5"]))
    assert found.texts == ["Der", "Hund", "rennt", ".", "3,5"]
    assert found.of_token == [0, 1, 1, 2, 3, 4, 4, None]
    assert found.continues == [False, False, True, False, False, False, True, False]


def test_classes_without_tags():
    frequent = np.zeros(30, dtype=bool)
    frequent[10] = True
    found = grouped(["▁Der", "▁Hu", "nd", "▁Max", ".", "▁12", "7"], "Max has 127 dogs.", frequent=frequent)
    classes = [one["word class"] for one in found]
    assert classes == [
        "frequent word",
        "rare word",
        "word-internal piece",
        "copied from the source",
        "punctuation",
        "number",
        "number",
        END,
    ]
    assert grouped(["▁Der"], "x")[0]["word class"] == "other word"
    assert all("error" not in one and "sentence" not in one for one in found)


def test_frequent_tokens_are_half_of_the_training_tokens():
    assert frequent_tokens(np.array([1, 40, 9, 30, 20])).tolist() == [False, True, False, True, False]
    assert frequent_tokens(np.array([100, 0, 0])).tolist() == [True, False, False]
    assert frequent_tokens(None) is None and frequent_tokens(np.zeros(3, dtype=int)) is None


def test_errors_and_places():
    found = grouped(["▁a", "▁x", "▁c", "▁y", "."], "s", "a b c. d")
    assert [one["error"] for one in found] == ["correct", "substituted", "correct", "inserted", "correct", END]
    assert {one["sentence"] for one in found} == {"reference words missing"}
    assert [one["place"] for one in found] == ["first word", "between", "between", "last word", "last word", END]
    assert [one["position"] for one in found] == [*FIFTHS, END]
    assert {one["sentence"] for one in grouped(["▁a"], "s", "a")} == {"no reference word missing"}


def test_parts_of_speech_come_from_the_reference_word_at_the_same_place():
    tags = ((0, 3, "DET"), (4, 8, "NOUN"), (9, 14, "_"), (14, 15, "PUNCT"))
    right = AnnotatedText("Der Hund rennt.", tags)
    found = grouped(["▁Der", "▁Ka", "tze", "▁rennt", "▁sehr", "."], "s", right, tagged=True)
    assert [one["word class"] for one in found] == [
        "DET",
        "NOUN",
        "NOUN",
        "no tag",
        "not in the reference",
        "PUNCT",
        END,
    ]


def test_an_empty_output_is_only_its_end(runs):
    side = Side([2], ["</s>"], [0], [True])
    [found] = group_tokens(Example(1, AnnotatedText("a"), AnnotatedText("b")), side)
    assert found == {
        "word class": END,
        "position": END,
        "place": END,
        "error": END,
        "sentence": "reference words missing",
    }


# Corrupted sources


def test_a_corrupted_source_differs_in_one_content_word(runs):
    tokenizer = runs["transformer"].source_tokenizer
    texts = [AnnotatedText(one) for one in SOURCES]
    replacements = Replacements(texts)
    seen = 0
    for number, text in enumerate(texts, start=1):
        example = Example(number, text)
        found = list(replacements.corrupt(example, tokenizer, 1))
        assert found == list(replacements.corrupt(example, tokenizer, 1))
        seen += len(found)
        for one in found:
            before, after = text.text.split(), one.text.split()
            assert len(before) == len(after) and sum(a != b for a, b in zip(before, after, strict=True)) == 1
            assert one.word in before and one.instead in after
            assert len(tokenizer.encode(one.text).ids) == len(tokenizer.encode(text.text).ids)
    assert seen


def test_with_tags_a_content_word_is_replaced_by_one_of_its_kind(runs):
    def text(words):
        spans, start = [], 0
        for _, tag in words:
            spans.append((start, start + 1, tag))
            start += 2
        return AnnotatedText(" ".join(word for word, _ in words), tuple(spans))

    texts = [text([("a", "DET"), ("b", "NOUN"), ("c", "VERB")]), text([("f", "DET"), ("d", "NOUN"), ("e", "VERB")])]
    found = list(Replacements(texts).corrupt(Example(1, texts[0]), runs["rnn"].source_tokenizer, 1))
    assert Counter((one.word, one.instead, one.tag) for one in found) == Counter(
        {("b", "d", "NOUN"): 1, ("c", "e", "VERB"): 1}
    )


# Reading


def conllu(sentences):
    rows = []
    for sentence in sentences:
        for place, (word, tag) in enumerate(sentence, start=1):
            rows.append(f"{place}\t{word}\t_\t{tag}\t_\t_\t{int(place > 1)}\troot\t_\t_")
        rows.append("")
    return "\n".join(rows) + "\n"


def test_empty_lines_are_left_out_together_with_their_partner(tmp_path):
    paths = written(tmp_path, ["a b", "", "c", "d"], ["a", "b", " ", "d"])
    found = read_examples(*paths)
    assert [(one.number, one.source.text, one.reference.text) for one in found.chosen] == [
        (1, "a b", "a"),
        (4, "d", "d"),
    ]
    assert sum(found.left_out.values()) == 2


def test_a_sample_is_drawn_by_its_seed_and_stays_in_order(tmp_path):
    sources, references = written(tmp_path, [f"a {n}" for n in range(50)], [f"b {n}" for n in range(50)])
    numbers = [
        [one.number for one in read_examples(sources, references, most=10, seed=seed).chosen] for seed in (1, 1, 2)
    ]
    assert numbers[0] == numbers[1] != numbers[2]
    assert numbers[0] == sorted(set(numbers[0])) and len(numbers[0]) == 10
    assert len(read_examples(sources, most=50).chosen) == 50


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_files_are_refused_in_a_sentence(name, tmp_path, capsys):
    run = str(RUNS / "translation-transformer")
    sources, references = written(tmp_path)
    (tmp_path / "short.txt").write_text("a b\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "blank.txt").write_text("\n \n\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00a\n")
    (tmp_path / "prose.conllu").write_text("A dog runs.\n")
    (tmp_path / "empty.conllu").write_text("")
    cases = [
        (["--corpus", sources, "--reference", tmp_path / "short.txt"], "8 texts"),
        (["--corpus", tmp_path / "none.txt"], "does not exist"),
        (["--corpus", sources, "--reference", tmp_path / "none.txt"], "does not exist"),
        (["--corpus", tmp_path], "is a directory"),
        (["--corpus", tmp_path / "empty.txt"], "no text to analyse"),
        (["--corpus", tmp_path / "blank.txt"], "no text to analyse"),
        (["--corpus", tmp_path / "bytes.txt"], "UTF-8"),
        (["--corpus", tmp_path / "prose.conllu"], "columns"),
        (["--corpus", sources, "--reference", tmp_path / "empty.conllu"], "is empty"),
        (["--corpus", sources, "--most", "0"], "--most"),
        (["--corpus", sources, "--seed", "-1"], "--seed"),
        (["--corpus", sources, "a b"], "--corpus"),
    ]
    for words, message in cases:
        assert main(["inspect", name, run, *map(str, words)]) in (1, 2)
        told = " ".join(capsys.readouterr().err.split())
        assert message in told and "Traceback" not in told, (words, told)
    assert (
        main(["inspect", name, run, "a b c", *(["a d c"] if name == "patch" else []), "--reference", str(references)])
        == 2
    )
    assert "--reference goes with a --corpus" in " ".join(capsys.readouterr().err.split())


def test_tags_that_do_not_match_the_text_are_taken_from_the_words(tmp_path):
    text = "# text = something else entirely\n" + conllu([[("a", "DET"), ("b", "NOUN")]])
    (tmp_path / "r.conllu").write_text(text)
    (tmp_path / "s.txt").write_text("a b\n")
    found = read_examples(tmp_path / "s.txt", tmp_path / "r.conllu")
    assert found.chosen[0].reference.text == "a b" and found.has_tags
    (tmp_path / "r.conllu").write_text(conllu([[("a", "_"), ("b", "_")]]))
    assert not read_examples(tmp_path / "s.txt", tmp_path / "r.conllu").has_tags


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("run", ["classes", "tags", "language", "captions", "number", "masked", "pairs"])
def test_other_tasks_are_refused_in_one_sentence(name, run, tmp_path, capsys):
    sources, _ = written(tmp_path)
    assert main(["inspect", name, str(RUNS / run), "--corpus", str(sources)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told.startswith("error: ") and told.endswith(".") and "this run" in told


def test_contributions_of_a_recurrent_decoder_are_refused_before_anything_is_translated(tmp_path, capsys, monkeypatch):
    sources, _ = written(tmp_path)
    monkeypatch.setattr("regard.inspection.examples.translate", None)
    assert main(["inspect", "contributions", str(RUNS / "translation-rnn"), "--corpus", str(sources)]) == 2
    assert "Transformer decoder" in capsys.readouterr().err


def test_long_and_unreadable_sources_are_left_out_and_counted(runs):
    several = examples(["a b", "a " * 2000, "b c"], ["a b", "a", "b c"])
    traced = [example.number for example, _ in trace_examples(runs["transformer"], several)]
    assert traced == [1, 3] and sum(several.left_out.values()) == 1
    with pytest.raises(UsageError, match="more than"):
        inspection.lens_corpus(runs["transformer"], examples(["a " * 2000], ["a"]))


# Commands, Python, results


@pytest.mark.parametrize(("name", "run"), CASES)
def test_the_json_has_every_number_of_page_and_table(runs, name, run, tmp_path):
    result = FUNCTIONS[name](runs[run], examples())
    check_page(result)
    assert not check_table(result)
    result.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000
    assert repr(result).startswith("<CorpusMeans: ") and len(repr(result)) < 160


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_command_and_python_give_the_same(name, tmp_path, capsys):
    run = RUNS / "translation-transformer"
    sources, references = written(tmp_path)
    words = ["--corpus", str(sources), "--reference", str(references), "--most", "5", "--seed", "2"]
    assert main(["inspect", name, str(run), *words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    explained = regard.load(run).explain(how=name, corpus=sources, reference=references, most=5, seed=2)
    assert json.loads(json.dumps(explained.to_json())) == shown
    assert shown["sentences"] + sum(one["examples"] for one in shown["left_out"]) == 5
    assert "word class" in [one["name"] for one in shown["groupings"]]
    assert str(run) in explained.page()


def test_parts_of_speech_from_a_treebank(tmp_path, capsys):
    sentences = [
        [("a", "DET"), ("b", "NOUN"), ("c", "VERB")],
        [("b", "NOUN"), ("a", "DET")],
        [("f", "ADV"), ("d", "NOUN")],
    ]
    (tmp_path / "both.conllu").write_text(conllu(sentences))
    words = ["--corpus", str(tmp_path / "both.conllu"), "--reference", str(tmp_path / "both.conllu"), "--json"]
    assert main(["inspect", "lens", str(RUNS / "translation-rnn"), *words]) == 0
    by = {one["name"]: one["groups"] for one in json.loads(capsys.readouterr().out)["groupings"]}
    names = {group["name"] for group in by["word class"]}
    assert names <= {"DET", "NOUN", "VERB", "ADV", "not in the reference", END} and "NOUN" in names


def test_explain_refuses_what_it_cannot_do(tmp_path):
    model = regard.load(RUNS / "translation-transformer")
    sources, _ = written(tmp_path)
    with pytest.raises(UsageError, match="not both"):
        model.explain("lens", corpus=sources)
    with pytest.raises(UsageError, match=r"of a corpus\. Use contributions, attribute, lens, identify, patch"):
        model.explain(how="attention", corpus=sources)
    for options in ({"most": 0}, {"seed": -1}):
        with pytest.raises(UsageError, match="must be at least"):
            model.explain(how="lens", corpus=sources, **options)
    with pytest.raises(UsageError, match="nothing to explain"):
        model.explain(how="lens")
    with pytest.raises(UsageError, match="'instead' is not an option of attribute"):
        model.explain(how="attribute", corpus=sources, instead="a")


def test_progress_is_reported(runs):
    seen = []
    inspection.lens_corpus(runs["rnn"], examples(), progress=lambda *one: seen.append(one))
    assert seen[-1] == ("examples", len(SOURCES), len(SOURCES)) and len(seen) > len(SOURCES)
