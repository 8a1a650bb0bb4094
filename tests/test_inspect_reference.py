"""`regard inspect reference`: its scores are those of `regard score`, its way through search that of a plain beam."""

import itertools
import json
import math
import shutil

import pytest
import torch

import regard
from regard import inspection
from regard.cli import main
from regard.evaluation.likelihood import likelihoods
from regard.foundation.errors import UsageError
from regard.inspection.analyses.reference.watched_search import watch_search
from regard.search import Search
from regard.search.steps import NEVER_GENERATED
from regard.tasks.loaded import load_run
from regard.text.specials import BOS, EOS
from tests.stored_runs import FIXTURES, SCENE
from tests.test_inspect_results import check_page, check_table

RUNS = FIXTURES / "format-1"
KINDS = ["translation-transformer", "translation-rnn", "translation-fixed", "translation-conv"]
SHORT = ["decoding.max_length=3"]
"""Outputs of so few tokens that a beam can hold them all: up to 9 + 81 + 729 in a vocabulary of nine."""


def compared(run, source, reference, **options):
    return inspection.reference(run.trace(source, reference), run, source, **options)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_an_output_as_its_own_reference_has_no_difference(name, beam):
    run = load_run(RUNS / name)
    for source in ("a b c", "d", "b b a f"):
        [best] = run.hypotheses([source], beam=beam)[0]
        trace = run.trace_hypothesis(source, best)
        found = inspection.reference(trace, run, source, beam=beam)
        if best.ended != "end":
            continue
        assert (found.verdict, found.fate, found.difference, found.common) == (
            "same",
            "found",
            0.0,
            len(best.tokens) + 1,
        )
        assert found.output.score == pytest.approx(best.score, abs=1e-4)
        assert found.output.log_probs == pytest.approx(best.log_probs, abs=1e-4)
        assert all(step.rank <= step.room for step in found.steps)


@pytest.mark.parametrize("name", KINDS)
def test_scores_are_those_of_regard_score(name):
    run = load_run(RUNS / name)
    for penalty in (0.0, 0.6, 1.0):
        found = compared(run, "a b c", "c a", length_penalty=penalty)
        [wanted] = likelihoods(run, ["a b c"], ["c a"])
        assert found.reference.log_probs == pytest.approx(wanted.log_probs, abs=1e-4)
        assert found.reference.score == pytest.approx(wanted.log_prob / len(wanted.log_probs) ** penalty, abs=1e-4)
        assert found.length_penalty == penalty
        data = found.to_json()
        assert data["difference"] == pytest.approx(data["reference"]["score"] - data["output"]["score"], abs=1e-3)
        assert data["reference"]["totals"][-1] == pytest.approx(data["reference"]["log_prob"], abs=1e-3)


def test_the_command_line_says_the_same_score(tmp_path, capsys):
    run = RUNS / "translation-rnn"
    (tmp_path / "s").write_text("a b c\n")
    (tmp_path / "t").write_text("c a\n")
    assert main(["score", str(run), "--source", str(tmp_path / "s"), "--target", str(tmp_path / "t"), "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)["sentences"][0]
    assert main(["inspect", "reference", str(run), "a b c", "--target", "c a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reference"]["log_probs"] == pytest.approx(scored["log_probs"], abs=1e-3)
    assert found["reference"]["log_prob"] == pytest.approx(scored["log_prob"], abs=1e-3)
    assert found == regard.load(run).explain("a b c", "reference", "c a").to_json()


def unsure(name, seed, *overrides):
    """A run whose output layer has another, random bias: it is unsure of everything."""
    run = load_run(RUNS / name, overrides)
    noise = torch.randn(run.model.output_bias.shape, generator=torch.Generator().manual_seed(seed))
    run.model.output_bias.data += noise
    return run


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_as_wide_as_the_space_makes_no_search_error(penalty):
    seen = {1: set(), 1000: set()}
    references = [" ".join(row) for count in (1, 2) for row in itertools.product("abcdefgh", repeat=count)]
    for seed in range(3):
        run = unsure("translation-rnn", seed, *SHORT)
        for reference in references[seed::7]:
            for beam, verdicts in seen.items():
                found = compared(run, "a b c", reference, beam=beam, length_penalty=penalty)
                verdicts.add(found.verdict)
                assert beam == 1 or found.fate != "left"
    assert seen[1000] <= {"same", "model error"} and "model error" in seen[1000]
    assert "search error" in seen[1]


def next_log_probs(run, source, prefixes):
    """The log-probabilities after each prefix, by teacher forcing."""
    ids = torch.tensor([[*run.source_tokenizer.encode_batch([source])[0], EOS]])
    found = []
    with torch.no_grad():
        for prefix in prefixes:
            states = run.model.decode(run.model.encode(ids), torch.tensor([[BOS, *prefix]]))
            found.append(run.model.scores(states[:, -1])[0].log_softmax(-1))
    values = torch.stack(found)
    values[:, list(NEVER_GENERATED)] = -math.inf
    return values


def plain_beam(run, source, reference, width):
    """A beam search in a few lines: for each step the rank of the reference's prefix and the room, until it is left."""
    live, ended, seen = [((), 0.0)], 0, []
    wanted = (*reference, EOS)
    while live and ended < width and len(seen) < len(wanted):
        values = next_log_probs(run, source, [prefix for prefix, _ in live])
        candidates = sorted(
            (
                (total + float(values[row, token]), (*prefix, token))
                for row, (prefix, total) in enumerate(live)
                for token in range(values.shape[1])
                if values[row, token] > -math.inf
            ),
            reverse=True,
        )
        order = [path for _, path in candidates]
        room = width - ended
        if tuple(wanted[: len(seen) + 1]) not in order:
            break
        seen.append((order.index(tuple(wanted[: len(seen) + 1])) + 1, room))
        kept = candidates[:room]
        ended += sum(path[-1] == EOS for _, path in kept)
        live = [(path, total) for total, path in kept if path[-1] != EOS]
        if seen[-1][0] > room:
            break
    return seen


@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_way_of_a_reference_is_that_of_a_plain_beam(width):
    """References that are nearly found: the outputs of a wider search."""
    seen = []
    for seed in range(3):
        run = unsure("translation-rnn", seed, "decoding.max_length=6")
        for best in run.hypotheses(["a b c"], Search(beam=9, count=9))[0]:
            found = watch_search(run, "a b c", best.tokens, Search(beam=width, length_penalty=1.0))
            expected = plain_beam(run, "a b c", best.tokens, width)
            steps = [(step.rank, step.room) for step in found.steps]
            assert steps == expected[: len(steps)] and steps  # search may stop earlier, once nothing else can win
            if found.fate == "left":
                assert steps == expected and steps[-1][0] > steps[-1][1]
            seen.append((found.fate, len(steps), steps[-1][1]))
    assert "left" in {fate for fate, _, _ in seen} and max(count for _, count, _ in seen) > 2
    assert width < 4 or min(room for _, _, room in seen) < width  # a hypothesis had ended before


@pytest.mark.parametrize("name", KINDS)
def test_watching_does_not_change_search(name):
    run = load_run(RUNS / name)
    for source, beam in itertools.product(("a b c", "e", "f a c h b"), (1, 2, 5)):
        [best] = run.hypotheses([source], beam=beam)[0]
        found = watch_search(run, source, [7, 8], Search(beam=beam))
        assert (found.output.tokens, found.output.ended) == (best.tokens, best.ended)
        assert found.output.score == pytest.approx(best.score, abs=1e-5)


def test_what_only_a_wider_beam_finds_is_a_search_error_of_the_narrow_one():
    missed = 0
    for seed in range(6):
        run = unsure("translation-rnn", seed)
        [narrow] = run.hypotheses(["a b c"], beam=1)[0]
        [wide] = run.hypotheses(["a b c"], Search(beam=50, full_beam=True))[0]
        found = inspection.reference(run.trace_hypothesis("a b c", wide), run, "a b c", beam=1)
        if wide.ended == "end" and wide.tokens != narrow.tokens:
            assert found.verdict == "search error" and found.fate == "left"
            assert f"step {len(found.steps) - 1}" in found.explanation and found.common == len(found.steps) - 1
            missed += 1
    assert missed


@pytest.mark.parametrize("name", [*KINDS, "answering", "captions"])
def test_json_has_all_that_the_page_and_the_table_show(name, tmp_path):
    run = load_run(RUNS / name)
    source = {"answering": "a b c d\td e", "captions": SCENE}.get(name, "a b c")
    target = {"captions": "a red circle"}.get(name, "a b")
    found = compared(run, source, target, beam=2)
    check_page(found)
    assert not check_table(found)
    found.save(tmp_path / "page.html")
    found.save(tmp_path / "picture.png")
    assert len(repr(found)) < 160


def test_bad_input_gets_a_clear_message(tmp_path, capsys):
    run = str(RUNS / "translation-rnn")
    assert main(["inspect", "reference", run, "a b c"]) == 2
    assert "--target" in capsys.readouterr().err
    assert main(["inspect", "reference", str(RUNS / "classes"), "w0 w1", "--target", "yes"]) == 2
    assert "does not generate text from a source" in capsys.readouterr().err
    assert main(["inspect", "reference", run, "a b", "--target", "a", "--beam", "1001"]) == 2
    assert "between 1 and 1000" in capsys.readouterr().err
    with pytest.raises(UsageError, match="vocabulary"):
        regard.load(run).explain("a b c", "reference", "zebra")
    assert "--target" in inspection.report(shutil.copytree(run, tmp_path / "run"), "a b c").left_out["reference"]
