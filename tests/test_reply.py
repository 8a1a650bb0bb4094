"""Suggested replies: responses, intents, search, selection, sensitivity, and a bundle from end to end."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.foundation.errors import RegardError, UsageError
from regard.reply.building import UNSEEN, WEIGHTS, _sensitivity_lines, _trigger_lines, build
from regard.reply.conversations import Exchange
from regard.reply.feedback import log_choice, read_feedback
from regard.reply.intents import assign_intents, built_in_seeds, propagate
from regard.reply.measures import Ranking, Suggested, Trigger, summarise
from regard.reply.members import BuildOptions
from regard.reply.preprocessing import clean_chat
from regard.reply.response_classifier import ResponseClassifier
from regard.reply.responses import (
    Candidate,
    Response,
    collect_responses,
    doubtful_intents,
    read_responses,
    write_responses,
)
from regard.reply.scorer import Scorer
from regard.reply.selection import Scored, choose_suggestions
from regard.reply.sensitivity import THRESHOLDS, built_in_list, find_topic, parse_topics
from regard.reply.suggester import Suggester
from regard.runs.bundle import Bundle
from regard.search.recurrent_steps import RecurrentSteps, can_prepare
from regard.search.trie import Trie, best_outputs
from regard.tasks.loaded import LoadedRun, load_run
from tests.reply_bundle import OPTIONS, QUESTIONS, make_bundle

STORED = Path(__file__).parent / "fixtures" / "format-1"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory)


@pytest.fixture(scope="module")
def suggester(bundle: Path) -> Suggester:
    return Suggester.open(bundle)


class RandomClassifier:
    """Gives every output a random log-probability, which depends on the message."""

    def __init__(self, count: int) -> None:
        self.count = count

    def log_probs(self, message: str) -> np.ndarray:
        return -5 * np.random.default_rng(len(message)).random(self.count)

    of_labels = log_probs

    def among_responses(self, logs: np.ndarray) -> np.ndarray:
        return logs


def prefixes(trie: Trie) -> list[list[int]]:
    """Return the tokens that lead to each node."""
    found: list[list[int]] = [[] for _ in range(len(trie))]
    for node in range(len(trie)):
        children, _ = trie.expand(np.array([node]))
        for child in children:
            found[child] = [*found[node], int(trie.tokens[child])]
    return found


class TestTrie:
    OUTPUTS = ((5, 6, 7), (5, 6), (5, 8), (9,), (6, 5, 5, 5), (9, 9))

    @pytest.fixture
    def run(self):
        return load_run(STORED / "translation-rnn")

    def random_outputs(self, run, count: int) -> list[list[int]]:
        generator = np.random.default_rng(3)
        size = run.target_tokenizer.size
        rows = {tuple(generator.integers(6, size, generator.integers(1, 6)).tolist()) for _ in range(count)}
        return [list(row) for row in sorted(rows)]

    def test_children_are_those_of_the_outputs(self) -> None:
        trie = Trie(self.OUTPUTS)
        children, parents = trie.expand(np.array([0]))
        assert sorted(trie.tokens[children]) == [5, 6, 9]
        assert set(parents) == {0}
        assert sorted(trie.output[trie.output >= 0]) == list(range(len(self.OUTPUTS)))

    def scorer(self, run, outputs: list[list[int]], weight: float = 0.0) -> Scorer:
        """Return a scorer of outputs; with a weight, its second expert has random log-probabilities."""
        scorer = Scorer.__new__(Scorer)
        scorer.run, scorer.responses, scorer.ids, scorer.trie = run, [""] * len(outputs), outputs, Trie(outputs)
        scorer.weight, scorer.classifier = weight, RandomClassifier(len(outputs)) if weight else None
        scorer.prepared = RecurrentSteps(run.model) if can_prepare(run.model) else None
        return scorer

    def test_the_best_below_a_node_is_that_of_its_outputs(self) -> None:
        trie = Trie(self.OUTPUTS)
        values = np.array([-3.0, -5.0, -1.0, -7.0, -2.0, -4.0])
        best = dict(zip(map(tuple, prefixes(trie)), trie.best_below(values), strict=True))
        for prefix, found in best.items():
            below = [i for i, output in enumerate(self.OUTPUTS) if output[: len(prefix)] == prefix]
            assert found == max(values[below])

    @pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
    @pytest.mark.parametrize("run_name", ["translation-rnn", "translation-conv", "translation-fixed"])
    def test_a_beam_as_wide_as_the_trie_is_exhaustive(self, run_name: str, weight: float) -> None:
        run = load_run(STORED / run_name)
        outputs = self.random_outputs(run, 150)
        scorer = self.scorer(run, outputs, weight)
        for message in ("a b", "c a b d"):
            everything = scorer.score_all(message)
            best = np.argsort(-everything, kind="stable")[:20]
            found = scorer.rank(message, count=20, width=10_000)
            assert [one.score for one in found] == pytest.approx(everything[best].tolist(), abs=1e-4)
            assert len({one.output for one in found}) == 20
            assert scorer.score_by_trie(message) == pytest.approx(everything, abs=1e-4)
            order = np.argsort(-scorer.score_by_trie(message), kind="stable")
            for rank in (*range(1, len(order), 12), len(order)):
                assert scorer.rank_of(message, int(order[rank - 1])) == rank

    def test_a_narrow_beam_finds_true_scores(self, run) -> None:
        outputs = self.random_outputs(run, 150)
        rows = run.input.rows(["a b c"])
        steps, source = run.input.step_model(run.model, ["a b c"], rows, with_attention=False)
        found = best_outputs(steps, source, Trie(outputs), width=3, count=3)
        scorer = self.scorer(run, outputs)
        everything = scorer.score_all("a b c")
        assert len(found) == 3
        for one in found:
            assert one.score == pytest.approx(everything[one.output], abs=1e-4)

    def test_the_number_of_steps_does_not_depend_on_the_number_of_outputs(self, run) -> None:
        class Counting:
            def __init__(self, model) -> None:
                self.model, self.rows = model, 0

            def start(self, source):
                return self.model.start(source)

            def step(self, tokens, state):
                self.rows += len(tokens)
                return self.model.step(tokens, state)

        rows = run.input.rows(["a b c"])
        steps, source = run.input.step_model(run.model, ["a b c"], rows, with_attention=False)
        for count in (500, 3000):
            counting = Counting(steps)
            best_outputs(counting, source, Trie(self.random_outputs(run, count)), width=8, count=8)
            assert counting.rows <= 8 * 6 + 1


class TestResponses:
    def exchange(self, reply: str, conversation: int) -> Exchange:
        return Exchange(conversation, "hi", reply)

    def test_replies_are_counted_by_conversation(self) -> None:
        many = [self.exchange("Yes!", 1)] * 5 + [self.exchange("yes", 2), self.exchange("no", 3)]
        found = collect_responses(many, least=2)
        assert [(one.text, one.normal, one.count) for one in found] == [("Yes!", "yes", 2)]

    @pytest.mark.parametrize(
        "reply", ["I met Ann Lee", "call 713-345-6687", "what the fuck", "at 9:30", "!!!", "a@b.org"]
    )
    def test_personal_and_offensive_replies_are_left_out(self, reply: str) -> None:
        assert collect_responses([self.exchange(reply, number) for number in range(9)], least=2) == []

    def test_a_response_set_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        responses = [Response("Yes.", "yes", "positive", 7), Response("Why not?", "ask why")]
        write_responses(tmp_path / "responses.yaml", responses)
        assert read_responses(tmp_path / "responses.yaml") == responses

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "has no responses. Write a list"),
            ("# nothing\n", "has no responses. Write a list"),
            ("[]", "has no responses. Write a list"),
            ("text: Hi", "has no responses. Write a list"),
            ("\n- Hi", "line 2 is no entry. Write"),
            (
                "- text: Hi\n  intent: a\n- {text: yes, intent: a}",
                "line 3: the text is not a text but True. Put quotes",
            ),
            ("- text: Hi\n  intent: 5", "line 1: the intent is not a text but 5. Put quotes"),
            ("- text: Hi", "line 1 has no intent. Add"),
            ("- text: Hi\n  intent:", "line 1 has no intent. Add"),
            ("- text: Hi\n  intent: ' '", "line 1 has an empty intent. Write one"),
            ("- {text: Hi, intent: a, colour: red}", "line 1 has the unknown field colour. Remove it"),
            ("- {text: Hi, intent: a, polarity: good}", "line 1 has the unknown polarity good. Write positive"),
            ("- {text: Hi, intent: a, count: -1}", "line 1: the count is -1. Write a whole number"),
            (
                "- {text: Hi, intent: a}\n\n- {text: hi!, intent: b}",
                "line 3: “hi!” is the same response as “Hi” in line 1",
            ),
            ("- {text: '...', intent: a}", "line 1: the text “...” has no words. Remove"),
            ("- text: Hi\n  intent: a\n- text: Oh: no\n  intent: b", "line 3 is not YAML .*need quotes around them"),
            ("a: [", "line 2 is not YAML"),
            ("- text: Hi\n\tintent: a", "line 2 is not YAML"),
            ("- {text: Hi, intent: a}\n---\n- {text: Yo, intent: a}", "line 2 is not YAML"),
        ],
    )
    def test_wrong_entries_are_named_with_line_and_remedy(self, tmp_path: Path, content: str, message: str) -> None:
        path = tmp_path / "responses.yaml"
        path.write_text(content)
        with pytest.raises(RegardError, match=message):
            read_responses(path)

    def test_bytes_that_are_no_text_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.yaml"
        path.write_bytes(b"- text: caf\xe9\n  intent: a")
        with pytest.raises(RegardError, match=r"cannot be read .* Save it as text in UTF-8"):
            read_responses(path)

    def test_intents_that_are_almost_another_are_doubtful(self) -> None:
        intents = ("agree", "agree", "agre", "thanks", "thanks", "hello", "xylophone")
        responses = [Response(f"Text {number}", intent) for number, intent in enumerate(intents)]
        assert doubtful_intents(responses) == [(responses[2], "agree")]


class TestIntents:
    def test_seeds_keep_their_labels_and_neighbours_take_them(self) -> None:
        texts = ["yes", "yes i do", "yes she does", "no", "no way", "no way at all", "purple"]
        shares = propagate(texts, {"yes": 0, "yes i do": 0, "no": 1, "no way": 1}, 2)
        assert shares.sum(axis=1) == pytest.approx(np.ones(len(texts)))
        assert shares[0].tolist() == [1.0, 0.0]
        assert shares[2, 0] > 0.6 and shares[5, 1] > 0.6
        assert shares[6] == pytest.approx([0.5, 0.5])

    def test_every_seed_has_its_own_intent(self) -> None:
        seeds = built_in_seeds()
        examples = [example for seed in seeds.values() for example in seed.examples]
        assert len(examples) == len(set(examples))
        found = assign_intents([Candidate(example, example, 1) for example in examples])
        by_text = {response.text: response for response in found}
        for name, seed in seeds.items():
            for example in seed.examples:
                assert (by_text[example].intent, by_text[example].polarity) == (name, seed.polarity)

    def test_what_no_seed_reaches_is_an_intent_of_its_own(self) -> None:
        found = assign_intents([Candidate("Xylophone.", "xylophone", 3)])
        assert (found[0].intent, found[0].polarity) == ("xylophone", "neutral")


def scored(text: str, intent: str, polarity: str, score: float) -> Scored:
    return Scored(Response(text, intent, polarity), score, score, 0.0)


class TestSelection:
    def test_one_suggestion_per_intent(self) -> None:
        ranked = [scored(name, intent, "neutral", 0.0) for name, intent in zip("abcde", "xxyyz", strict=True)]
        found = choose_suggestions(ranked, lambda polarity: [])
        assert [one.response.text for one in found] == ["a", "c", "e"]

    @pytest.mark.parametrize(("first", "second"), [("positive", "negative"), ("negative", "positive")])
    def test_two_of_one_polarity_bring_the_other(self, first: str, second: str) -> None:
        ranked = [scored(name, name, first, 0.0) for name in "abc"]
        more = [scored("d", "a", second, 0.0), scored("e", "e", second, 0.0)]
        found = choose_suggestions(ranked, lambda polarity: [one for one in more if one.response.polarity == polarity])
        assert [one.response.text for one in found] == ["a", "b", "e"]

    def test_an_opposite_that_is_there_already_stays(self) -> None:
        ranked = [scored(*row, 0.0) for row in (("a", "a", "positive"), ("b", "b", "positive"), ("c", "c", "negative"))]
        found = choose_suggestions(ranked, lambda polarity: [scored("d", "d", polarity, 0.0)])
        assert [one.response.text for one in found] == ["a", "b", "c"]

    def test_neutral_suggestions_bring_no_opposite(self) -> None:
        ranked = [scored(*row, 0.0) for row in (("a", "a", "positive"), ("b", "b", "neutral"), ("c", "c", "positive"))]
        found = choose_suggestions(ranked, lambda polarity: [scored("d", "d", polarity, 0.0)])
        assert [one.response.text for one in found] == ["a", "b", "c"]


class TestMeasures:
    def test_ranks(self) -> None:
        ranking = Ranking(np.array([1.0, 2.0, 4.0, np.inf]))
        assert ranking.mrr == pytest.approx((1 + 0.5 + 0.25) / 4)
        assert ranking.precision_at(2) == 0.5
        low, high = ranking.interval()
        assert low < ranking.mrr < high

    def test_rankings_are_compared_in_pairs(self) -> None:
        """A small advantage on every message is certain, however much the messages differ."""
        ranks = np.random.default_rng(1).integers(1, 50, size=200).astype(float)
        better, worse = Ranking(ranks), Ranking(ranks * 1.1)
        difference, low, high = better.advantage(worse)["mrr"]
        assert difference == pytest.approx(better.mrr - worse.mrr)
        assert 0 < low < difference < high
        assert better.interval()[0] < worse.mrr
        assert worse.advantage(better)["mrr"][2] < 0
        assert better.advantage(worse)["p@10"][0] == pytest.approx(better.precision_at(10) - worse.precision_at(10))

    def test_suggestions(self) -> None:
        found = summarise(
            [
                Suggested(("a", "b", "c"), "b"),
                Suggested(("a", "a", "c"), "a"),
                Suggested(("a", "b", "c"), "d"),
                Suggested((), "a"),
            ],
            coverage=0.5,
            share=0.1,
        )
        assert (found["judged"], found["coverage"], found["coverage_of_judged"]) == (4, 0.5, 0.75)
        assert found["precision"] == pytest.approx(2 / 3)
        assert found["duplicates"] == pytest.approx(1 / 3)
        assert found["use"] == pytest.approx((0.75 + 1.0) / 4)
        assert found["use_of_all"] == pytest.approx(0.1 * (0.75 + 1.0) / 4)
        assert found["precision_of_all"] == pytest.approx(0.1 * 0.5 / 0.5)
        assert (found["position_1"], found["position_2"]) == pytest.approx((1 / 3, 1 / 3))

    def test_a_trigger_by_chance_has_no_lift(self) -> None:
        random = np.random.default_rng(2)
        chance = Trigger(random.random(2000) < 0.5, random.random(2000) < 0.5).facts()
        assert chance["interval"][0] < 1 < chance["interval"][1]
        good = Trigger(random.random(2000) < 0.8, random.random(2000) < 0.5).facts()
        assert good["lift"] == pytest.approx(1.6, abs=0.1)
        assert good["interval"][0] > 1.4


class TestSensitivity:
    TOPICS = parse_topics(built_in_list())

    def test_every_example_of_the_list_is_english_text(self) -> None:
        assert all(len(topic.examples) >= 10 and len(topic.patterns) >= 10 for topic in self.TOPICS)

    @pytest.mark.parametrize(
        "message",
        ["my grandmother passed away", "i have cancer", "we will sue you", "i lost my job", "this is unacceptable"],
    )
    def test_the_list_knows(self, message: str) -> None:
        assert find_topic(self.TOPICS, message) is not None

    @pytest.mark.parametrize("name", ["messages", "third"])
    def test_a_hundred_sensitive_messages_get_no_suggestions(self, suggester: Suggester, name: str) -> None:
        """The list was extended with these messages in view. At first it knew 78 of the third hundred."""
        messages = (Path(__file__).parent / "fixtures" / f"sensitive_{name}.txt").read_text().splitlines()
        assert len(messages) == 100
        assert [message for message in messages if suggester(message, rate=1.0).texts] == []

    @pytest.mark.parametrize(("name", "least"), [("unseen", 90), ("fourth", 70), ("fifth", 95), ("sixth", 60)])
    def test_the_list_alone_knows_most_messages(self, name: str, least: int) -> None:
        """Hundreds of messages that were written before they were tried. At first the list knew 84, 48, 76 and 53."""
        messages = (Path(__file__).parent / "fixtures" / f"sensitive_{name}.txt").read_text().splitlines()
        assert len(messages) == 100
        assert sum(find_topic(self.TOPICS, message) is not None for message in messages) >= least

    @pytest.mark.parametrize(
        "message",
        [
            "are you coming tonight?",
            "i like the song",
            "what a studied answer",
            "they had it at the store",
            "don't give me a hard time",
            "are you crazy? i love it",
        ],
    )
    def test_ordinary_messages_pass(self, message: str) -> None:
        assert find_topic(self.TOPICS, message) is None

    @pytest.mark.parametrize("text", ["- a", "a: {patterns: x}", "a: {patterns: [1]}", "a: {patterns: ['(']}"])
    def test_a_wrong_list_is_refused(self, text: str) -> None:
        with pytest.raises(Exception, match=r".+"):
            parse_topics(text)

    def test_validation_has_no_example_of_the_training(self) -> None:
        examples = [f"sad {number}" for number in range(80)]
        pairs = [(f"message {number}", "") for number in range(400)] * 2
        training, held_out = _sensitivity_lines(examples, pairs)
        assert not set(training) & set(held_out)
        assert {line for line in (*training, *held_out) if line.startswith("sensitive")} == {
            f"sensitive {example}" for example in examples
        }
        assert sum(line.startswith("sensitive") for line in held_out) == len(examples) // UNSEEN
        assert sum(line.startswith("ordinary") for line in (*training, *held_out)) == 400

    def test_the_threshold_is_that_of_the_bundle(self, bundle: Path, tmp_path: Path) -> None:
        shutil.copytree(bundle, tmp_path / "copy")
        path = tmp_path / "copy" / "bundle.json"
        record = json.loads(path.read_text())
        assert THRESHOLDS[0] <= record["settings"]["sensitive"] <= THRESHOLDS[1]
        record["settings"]["sensitive"] = 0.0
        path.write_text(json.dumps(record))
        assert "sensitive (with a probability" in str(
            Suggester.open(tmp_path / "copy")("where are you ao", rate=1.0).reason
        )
        record["settings"]["sensitive"] = 2
        path.write_text(json.dumps(record))
        with pytest.raises(RegardError, match="between 0 and 1"):
            Suggester.open(tmp_path / "copy")


class TestFeedback:
    RESPONSES = (Response("Yes.", "yes"), Response("No.", "no"), Response("Maybe.", "maybe"))

    def test_what_is_chosen_more_often_rises(self, tmp_path: Path) -> None:
        path = tmp_path / "feedback.jsonl"
        assert read_feedback(path).bonuses(self.RESPONSES).tolist() == [0, 0, 0]
        for _ in range(20):
            log_choice(path, ["Yes.", "No."], "Yes.", "Yes, gladly.")
        path.write_text(path.read_text() + "damaged\n")
        bonuses = read_feedback(path).bonuses(self.RESPONSES)
        assert bonuses[0] > 0.3
        assert bonuses[1] < -0.3
        assert bonuses[2] == pytest.approx(0.0)
        assert json.loads(path.read_text().splitlines()[0])["edited"] is True

    def test_only_shown_texts_can_be_chosen(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="not among those shown"):
            log_choice(tmp_path / "f", ["Yes."], "No.")


class TestBundle:
    def test_it_learns_which_replies_fit(self, suggester: Suggester) -> None:
        best = {message: suggester.rank(message, 6)[0].response.text for message in QUESTIONS}
        right = [text in QUESTIONS[message] for message, text in best.items()]
        assert sum(right) >= 4, best

    def test_suggestions_are_responses_of_different_intents(self, suggester: Suggester) -> None:
        texts = {response.text for response in suggester.responses}
        for message in QUESTIONS:
            found = suggester(message, rate=1.0)
            assert 0 < len(found.suggestions) <= 3
            assert set(found.texts) <= texts
            intents = [one.response.intent for one in found.suggestions]
            assert len(set(intents)) == len(intents)

    def test_removed_responses_are_never_suggested(self, bundle: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(bundle, copy)
        kept = [response for response in read_responses(copy / "responses.yaml") if response.intent != "yes"]
        write_responses(copy / "responses.yaml", [*kept, Response("I would be delighted.", "accept", "positive")])
        suggester = Suggester.open(copy)
        texts = {response.text for response in suggester.responses}
        assert "I would be delighted." in texts
        for message in QUESTIONS:
            assert set(suggester(message, rate=1.0).texts) <= texts

    def test_sensitive_messages_get_no_suggestions(self, suggester: Suggester) -> None:
        found = suggester("My father passed away last night.", rate=1.0)
        assert found.texts == []
        assert "sensitive" in (found.reason or "")

    def test_sensitive_words_with_capitals_are_no_names(self, suggester: Suggester) -> None:
        assert "<name>" in clean_chat("She has Alzheimer now.")
        found = suggester("She has Alzheimer now.", rate=1.0)
        assert found.reason == "The message is sensitive (illness: “Alzheimer”)."
        mail = suggester.suggest_for_mail("Hi Ann,\nshe has Alzheimer now.\nBo", rate=1.0)
        assert mail.reason == found.reason

    def test_messages_in_another_language_get_no_suggestions(self, suggester: Suggester) -> None:
        assert suggester.settings.language in (None, "en")
        english = Suggester.open(suggester.directory)
        english.settings = replace(english.settings, language="en")
        found = english("Kommst du heute Abend mit uns ins Kino, oder musst du noch arbeiten?", rate=1.0)
        assert found.reason == "The message is in German, but the responses are in English."
        assert english(" ".join([*QUESTIONS][:2]), rate=1.0).texts

    def test_the_rate_is_kept(self, suggester: Suggester, bundle: Path) -> None:
        rows = [json.loads(line) for line in (bundle / "held-out.jsonl").read_text().splitlines()][:150]
        messages = [row["message"] for row in rows]
        assert all(not suggester(message, rate=0.0).texts for message in messages[:5])
        shares = [np.mean([bool(suggester(message, rate=rate).texts) for message in messages]) for rate in (0.2, 1.0)]
        assert shares[1] == 1.0
        assert shares[0] <= 0.6

    def test_a_prepared_suggester_loads_nothing_more(self, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        suggester = Suggester.open(bundle)
        suggester.prepare()
        monkeypatch.setattr("regard.reply.suggester.load_run", None)
        monkeypatch.setattr("regard.reply.suggester.response_priors", None)
        assert suggester("where are you", rate=1.0).texts

    def test_lists_mails_and_wrong_inputs(self, suggester: Suggester) -> None:
        assert len(suggester(["where are you?", ""], rate=1.0)) == 2
        mail = suggester.suggest_for_mail("Hi Bo,\nwhere are you?\nThanks,\nAnn", rate=1.0)
        assert mail.message == "where are you?"
        assert suggester("   ").reason == "The message is empty."
        begin = time.process_time()
        assert "longer than 20,000" in (suggester.suggest_for_mail("where are you? " * 100_000, rate=1.0).reason or "")
        assert time.process_time() - begin < 2.0
        with pytest.raises(UsageError, match="must be a text"):
            suggester(3)
        with pytest.raises(UsageError, match="between 0 and 1"):
            suggester("hi", rate=2.0)

    def test_regard_load_opens_it(self, bundle: Path, suggester: Suggester) -> None:
        loaded = regard.load(bundle)
        assert loaded("where are you?", rate=1.0).texts == suggester("where are you?", rate=1.0).texts
        assert "responses" in repr(loaded)
        with pytest.raises(UsageError, match="takes no settings"):
            regard.load(bundle, ["decoding.beam=2"])

    def test_python_and_the_command_line_agree(
        self, bundle: Path, suggester: Suggester, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["reply", "suggest", str(bundle), "where are you?", "--rate", "1", "--json", "--explain"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found == json.loads(json.dumps(suggester("where are you?", rate=1.0).to_json(explain=True)))

    def test_a_mail_on_standard_input(self, bundle: Path) -> None:
        mail = b"From: Ann <a@x.org>\nSubject: Hi\n\nHi Bo,\n\nwhere are you?\n\nThanks,\nAnn\n"
        command = [
            sys.executable,
            "-m",
            "regard",
            "reply",
            "suggest",
            str(bundle),
            "--rate",
            "1",
            "--json",
            "--explain",
        ]
        done = subprocess.run(command, input=mail, capture_output=True, check=True)
        assert json.loads(done.stdout)["message"] == "where are you?"

    def test_evaluation(self, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["reply", "evaluate", str(bundle), "--json", "--most", "60"]) == 0
        found = json.loads(capsys.readouterr().out)
        ranking = found["ranking"]
        assert ranking["scorer"]["mrr"] > ranking["frequency"]["mrr"]
        ahead, low, high = found["advantage"]["frequency"]["mrr"]
        assert ahead == pytest.approx(ranking["scorer"]["mrr"] - ranking["frequency"]["mrr"])
        assert low < ahead < high
        assert {name: facts["duplicates"] for name, facts in found["suggesting"].items() if "diverse" in name} == {
            "diverse, without trigger": 0.0,
            "diverse, with trigger": 0.0,
        }
        assert "Warning" not in capsys.readouterr().err
        assert found["suggesting"]["diverse, without trigger"]["coverage"] == 1.0
        assert main(["reply", "evaluate", str(bundle), "--most", "30"]) == 0
        assert "MRR" in capsys.readouterr().out

    def test_edit_checks_what_was_written(
        self, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(bundle, copy)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", "true")
        assert main(["reply", "edit", str(copy)]) == 0
        assert "responses with" in capsys.readouterr().out
        editor = tmp_path / "editor"
        editor.write_text('#!/bin/sh\necho "nonsense: [" > "$1"\n')
        editor.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(editor))
        assert main(["reply", "edit", str(copy)]) == 1
        assert "line 2 is not YAML" in capsys.readouterr().err
        editor.write_text('#!/bin/sh\nsed -i "0,/intent: .*/s//intent: yess/" "$1"\n')
        shutil.copy(bundle / "responses.yaml", copy)
        assert main(["reply", "edit", str(copy)]) == 0
        monkeypatch.delenv("EDITOR")
        assert main(["reply", "edit", str(copy)]) == 2

    def test_a_finished_directory_is_not_built_again(self, bundle: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is built already"):
            build(tmp_path, bundle, BuildOptions(), report=lambda line: None)

    def test_an_interrupted_build_continues(self, bundle: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(bundle, copy)
        (copy / "bundle.json").unlink()
        shutil.rmtree(copy / "sensitivity")
        chat, options = bundle.parent / "chat.jsonl", OPTIONS
        lines: list[str] = []
        build(chat, copy, options, report=lines.append)
        assert "scorer: already trained." in lines
        assert Suggester.open(copy).suggest("where are you?", rate=1.0).texts
        (copy / "bundle.json").unlink()
        with pytest.raises(UsageError, match="was begun with steps=150"):
            build(chat, copy, BuildOptions(least=5, steps=70), report=lambda line: None)
        (copy / "build.json").write_text("{")
        with pytest.raises(UsageError, match="damaged"):
            build(chat, copy, options, report=lambda line: None)

    def test_the_classifier_is_weighed_on_validation_pairs(self, suggester: Suggester) -> None:
        assert suggester.settings.weight in WEIGHTS
        scorer = Scorer(suggester.scorer.run, suggester.scorer.responses, suggester_classifier(suggester), weight=1.0)
        message = "where are you"
        both, second = scorer.score_by_trie(message), scorer.classifier.log_probs(message)
        first = Scorer(scorer.run, scorer.responses).score_by_trie(message)
        assert both == pytest.approx((first + second) / 2, abs=1e-4)

    def test_the_classifier_does_not_judge_what_it_does_not_know(self, suggester: Suggester) -> None:
        known = [response.normal for response in suggester.responses]
        classifier = ResponseClassifier(suggester_classifier(suggester), [*known, "i would be delighted"])
        scores = classifier.log_probs("where are you")
        assert np.isfinite(scores).all()
        assert min(scores[:-1]) < scores[-1] < max(scores[:-1])
        with pytest.raises(RegardError, match="must be a classifier"):
            ResponseClassifier(suggester.scorer.run, known)

    def test_bundles_without_a_classifier_still_open(self, bundle: Path, tmp_path: Path) -> None:
        """As they were built before there was one."""
        copy = tmp_path / "copy"
        shutil.copytree(bundle, copy)
        record = json.loads((copy / "bundle.json").read_text())
        record["members"].remove("classifier")
        del record["settings"]["weight"]
        (copy / "bundle.json").write_text(json.dumps(record))
        shutil.rmtree(copy / "classifier")
        old = Suggester.open(copy)
        assert old.scorer.classifier is None
        assert old("where are you", rate=1.0).texts
        record["settings"]["weight"] = -1
        (copy / "bundle.json").write_text(json.dumps(record))
        with pytest.raises(RegardError, match="must be 0 or more"):
            Suggester.open(copy)


def suggester_classifier(suggester: Suggester) -> LoadedRun:
    """Return the run of the second expert, whatever its weight is."""
    return load_run(suggester.bundle.member("classifier"))


class TestWrongBundles:
    @pytest.mark.parametrize(
        "change",
        [
            lambda path: (path / "bundle.json").write_text("{"),
            lambda path: (path / "bundle.json").write_text('{"format": 1, "kind": "reply", "members": ["../x"]}'),
            lambda path: (path / "bundle.json").write_text('{"format": 9, "kind": "reply", "members": []}'),
            lambda path: (path / "bundle.json").write_text('{"format": 1, "kind": "reply", "members": ["scorer"]}'),
            lambda path: (path / "bundle.json").write_text('{"format": 1, "kind": "other", "members": []}'),
            lambda path: (path / "responses.yaml").unlink(),
            lambda path: shutil.rmtree(path / "scorer"),
            lambda path: (path / "scorer" / "link").symlink_to("/etc/passwd"),
        ],
    )
    def test_damage_is_one_clear_sentence(
        self, bundle: Path, tmp_path: Path, change: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
    ) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(bundle, copy)
        change(copy)
        assert main(["reply", "suggest", str(copy), "where are you?"]) in (1, 2)
        error = capsys.readouterr().err
        assert error.startswith("error:")
        assert "bug" not in error
        assert "Traceback" not in error

    def test_a_run_is_not_a_bundle(self) -> None:
        with pytest.raises(UsageError, match="is not a bundle"):
            Bundle.open(STORED / "translation-rnn")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"least": 0}, "least is 0"),
        ({"hold_out": 0.95}, "hold_out is 0.95"),
        ({"model": "gpt"}, "model is 'gpt'"),
        ({"steps": 0}, "steps is 0"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BuildOptions(**options)


def test_too_few_conversations(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"message": "a", "reply": "b"}\n')
    with pytest.raises(RegardError, match="has 1 messages with replies"):
        build(path, tmp_path / "run", BuildOptions(), report=lambda line: None)
    assert not (tmp_path / "run").exists()
    path.write_text('{"message": "a", "reply": "b"}\n' * 60)
    with pytest.raises(RegardError, match="has 1 different messages"):
        build(path, tmp_path / "run", BuildOptions(), report=lambda line: None)
    path.write_text("".join(f'{{"message": "a{n}", "reply": "unique {chr(97 + n % 26)}{n}"}}\n' for n in range(60)))
    with pytest.raises(RegardError, match="Only 0 replies occur"):
        build(path, tmp_path / "run", BuildOptions(), report=lambda line: None)


def test_a_table_of_usual_replies_has_messages_that_need_no_reply() -> None:
    """Every reply is a response there; the replies themselves were not answered."""
    lines = list(_trigger_lines([("are you there", "yes"), ("do you like it", "no")], {"yes", "no"}))
    assert sorted(lines) == ["none no", "none yes", "reply are you there", "reply do you like it"]
