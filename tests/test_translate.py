"""What `regard translate` promises: every line, in order, whatever happens; and the laws of cutting text."""

import importlib
import inspect
import io
import json
import math
import os
import random
import re
import subprocess
import sys
import threading

import pytest
from typer.testing import CliRunner

from regard.cli import line_input, main
from regard.cli.partial_output import whole_lines
from regard.cli.verbs import app
from regard.config.text import Tokenizer as Settings
from regard.data import lines
from regard.foundation.errors import RegardError, UsageError
from regard.models import build
from regard.search import Constraints, Hypothesis, Search
from regard.search.mbr import FLATNESS, utility_of
from regard.tasks.ensemble import ensemble
from regard.tasks.inputs.text import length_groups
from regard.tasks.loaded import load_run
from regard.text.learning import train as learn
from regard.text.sentences import pieces, sentences
from regard.training.loop import train
from regard.training.view import View
from tests.cells import cell
from tests.loading import loaded
from tests.test_training import tiny

LINES = ["a b c", "", "d e", "a b c", "t s r q p", "b"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(), tmp_path_factory.mktemp("runs") / "copy", view=View()).run.directory


@pytest.fixture(scope="module")
def translator(run):
    return load_run(run)


def typed(capfd, *arguments):
    """Exit code, standard output and standard error of a command."""
    code = main(["translate", *map(str, arguments)])
    told = capfd.readouterr()
    return code, told.out, told.err


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_as_many_lines_come_out_as_went_in(run, source, translator, capfd):
    code, out, _ = typed(capfd, run, source)
    lines = out.split("\n")[:-1]
    assert code == 0 and len(lines) == len(LINES) and lines[1] == ""
    assert lines == translator.translate(LINES)
    assert lines[0] == lines[3], "duplicates give the same output wherever they stand"


def test_order_and_company_do_not_matter(translator):
    texts = [" ".join(random.Random(n).choices("abcdefghijklmnopqrst", k=1 + n % 9)) for n in range(12)]
    for search in (Search(beam=3), Search(samples=2, seed=5, temperature=1.3), Search(beam=1)):
        together = translator.translate(texts, search)
        assert translator.translate(texts[::-1], search) == together[::-1]
        assert [translator.translate(text, search) for text in texts[:4]] == together[:4]


@pytest.mark.parametrize("options", [("--beam", "4", "--n-best", "2"), ("--sample", "--samples", "2", "--seed", "7")])
def test_several_outputs_are_a_table(run, source, capfd, options):
    code, out, _ = typed(capfd, run, source, *options)
    rows = [line.split("\t") for line in out.split("\n")[:-1]]
    assert code == 0 and len(rows) == 2 * len(LINES)
    assert [row[:2] for row in rows[:4]] == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
    assert all(float(row[2]) <= 0 for row in rows if row[3])


def test_json_lines_tell_scores_alignment_and_attention(run, source, capfd):
    code, out, _ = typed(capfd, run, source, "--format", "jsonl", "--with", "scores,alignment,attention")
    told = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [one["line"] for one in told] == [1, 2, 3, 4, 5, 6]
    first = told[0]
    assert list(told[1]) == list(first) and told[1]["text"] == "" and told[1]["tokens"] == told[1]["log_probs"] == []
    assert told[1]["attention"] == {"source": [], "target": [], "weights": []}
    assert first["score"] == pytest.approx(sum(first["log_probs"]) / len(first["log_probs"]), abs=1e-4)
    assert len(first["attention"]["weights"]) == len(first["attention"]["target"])
    for row in first["attention"]["weights"]:
        assert len(row) == len(first["attention"]["source"]) and sum(row) == pytest.approx(1, abs=1e-2)
    assert [target for _, target in first["alignment"]] == list(range(len(first["text"].split())))


def test_constraints_from_the_command_line(run, source, tmp_path, capfd):
    (tmp_path / "words.txt").write_text("a\nb\n\n")
    (tmp_path / "allowed.txt").write_text("a b\nc d e\n")
    _, out, _ = typed(capfd, run, source, "--prefix", "q r", "--require", "s t", "--forbid", tmp_path / "words.txt")
    for line, output in zip(LINES, out.split("\n"), strict=False):
        if line:
            assert output.startswith("q r") and "s t" in output and not {"a", "b"} & set(output.split())
    _, out, _ = typed(capfd, run, source, "--only", tmp_path / "allowed.txt", "--beam", "2")
    assert set(out.split("\n")) == {"a b", "c d e", ""}
    _, out, _ = typed(capfd, run, source, "--keep", "[pq]+")
    assert {"p", "q"} <= set(out.split("\n")[4].split())


def test_several_runs_are_an_ensemble(run, source, translator, capfd, tmp_path):
    _, alone, _ = typed(capfd, run, source)
    code, out, _ = typed(capfd, run, run, source)
    assert code == 0 and out == alone
    assert ensemble([translator]).translate(LINES) == translator.translate(LINES)
    other = train(tiny("data.train.symbols=5"), tmp_path / "other", view=View()).run.directory
    code, _, error = typed(capfd, run, other, source)
    assert code == 2 and "another target vocabulary" in error


def test_members_of_an_ensemble_may_read_the_source_in_tokens_of_their_own(translator):
    letters = learn(Settings.model_validate({"kind": "characters"}), lambda: iter(LINES * 20), "source")
    apart = cell(encoder={"kind": "transformer"}, embeddings={"tie": "target"})
    model = build(apart, letters.size, translator.target_tokenizer.size).eval()
    reader = loaded(model, translator.config, letters, translator.target_tokenizer)
    together = ensemble([translator, reader]).hypotheses(LINES)
    assert [len(found) for found in together] == [1, 0, 1, 1, 1, 1] and together[0] == together[3]
    with pytest.raises(UsageError, match="one run"):
        ensemble([translator, reader]).translate("a", Search(coverage_penalty=0.1))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--temperature", "0.5"), "--sample"),
        (("--sample", "--beam", "4"), "Use one of them"),
        (("--beam", "2", "--n-best", "3"), "`count` (--n-best) is 3"),
        (("--sample", "--diverse", "2"), "`groups` (--diverse) needs a beam"),
        (("--format", "text", "--with", "scores"), "plain text"),
        (("--format", "xml"), "xml"),
        (("--with", "colours"), "colours"),
        (("--mbr", "comet"), "comet"),
        (("--top-p", "1.5", "--sample"), "top-p"),
        (("--top-p", "nan", "--sample"), "top-p"),
        (("--temperature", "nan", "--sample"), "--temperature"),
        (("--temperature", "inf", "--sample"), "`temperature` (--temperature) is inf"),
        (("--coverage-penalty", "nan"), "--coverage-penalty"),
        (("--length-penalty", "nan"), "--length-penalty"),
        (("--diverse", "2", "--diversity", "inf"), "`diversity` (--diversity) is inf"),
        (("--split", "--prefix", "a"), "whole texts"),
        (("--show-search", "tree.png"), ".html or .json"),
        (("--require", "nosuchword"), "nosuchword"),
        (("--keep", "(["), "regular expression"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(run, source, capfd, options, says):
    code, out, error = typed(capfd, run, source, *options)
    assert code == 2 and says in error and "Traceback" not in error and not out


def test_text_that_is_not_utf8_is_named_and_the_lines_before_it_are_not_lost(run, tmp_path, translator, capfd):
    bad, out = tmp_path / "bad.txt", tmp_path / "out.txt"
    bad.write_bytes(b"a b\n\xff\xfe\nb\n")
    code, printed, error = typed(capfd, run, bad)
    assert code == 1 and "bad.txt:2 is not valid UTF-8" in error and printed == translator.translate("a b") + "\n"
    code, _, error = typed(capfd, run, bad, "-o", out)
    assert code == 1 and "out.txt.partial has 1 lines" in error
    bad.write_bytes(b"a b\nc\nb\n")
    assert typed(capfd, run, bad, "-o", out)[0] == 0, "once it is mended, the same command goes on"
    assert out.read_text().splitlines() == translator.translate(["a b", "c", "b"])
    code, _, error = typed(capfd, run, tmp_path / "none.txt")
    assert code == 1 and "none.txt does not exist" in error


def test_an_interrupted_file_is_continued_and_comes_out_the_same(run, source, tmp_path, capfd, monkeypatch):
    from regard.cli import translate as verb

    monkeypatch.setattr(line_input, "CHUNK", 2)
    whole, out = typed(capfd, run, source)[1], tmp_path / "out.txt"
    real, calls = verb._translate, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            arguments[3].write("half a li")
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(verb, "_translate", interrupted)
    code, _, error = typed(capfd, run, source, "-o", out)
    assert code == 130 and not out.exists() and "out.txt.partial has 4 lines" in error
    monkeypatch.setattr(verb, "_translate", real)
    code, _, error = typed(capfd, run, source, "-o", out, "--beam", "1")
    assert code == 2 and "another command" in error
    code, _, error = typed(capfd, run, source, "-o", out)
    assert code == 0 and "Continuing" in error and out.read_text() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_a_line_without_end_is_refused_and_memory_stays_bounded(run, capfd, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 16)  # of /dev/zero there is always more
    code, _, error = typed(capfd, run, "/dev/zero")
    assert code == 1 and "may never end" in error
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n" + b"b " * (1 << 16))))
    code, printed, error = typed(capfd, run)
    assert code == 1 and "standard input:2 is longer than" in error and printed.count("\n") == 1


def test_of_a_pipe_what_has_come_is_translated_before_more_comes(run, translator):
    code = "import sys; from regard.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "translate", str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for text in ("a b c", "b"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == translator.translate(text) + "\n"
        process.stdin.write(b"a b")  # the last line without its end
        process.stdin.close()
        assert process.stdout.read().decode() == translator.translate("a b") + "\n"
    assert process.returncode == 0


@pytest.mark.parametrize("size", [1, 3, 1 << 16])
def test_lines_arrive_whole_however_they_are_cut(size, monkeypatch):
    sent = b"one\n\nthree" + b"e" * 9 + b"\nfour"
    read, write = os.pipe()
    os.write(write, sent)
    os.close(write)
    real = os.read
    monkeypatch.setattr(os, "read", lambda number, count: real(number, min(size, count)))
    stream = line_input.StreamInput(read)
    assert list(iter(lambda: stream.readline(8), b"")) == [b"one\n", b"\n", b"threeeee", b"eeeeee\n", b"four"]
    os.close(read)


KILLED = """
import os, signal, sys
from regard.cli import line_input, main, translate as verb
from tests.loading import loaded
line_input.CHUNK = 2
real, calls = verb._translate, []
def killed(*arguments):
    calls.append(arguments)
    real(*arguments)
    if len(calls) == 2:
        arguments[3].write("half a li")
        arguments[3].flush()
        os.kill(os.getpid(), signal.SIGKILL)
verb._translate = killed
main(sys.argv[1:])
"""


@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_what_is_killed_goes_on_where_it_was_and_comes_out_the_same(run, source, tmp_path, capfd, form):
    whole, out = typed(capfd, run, source, "--format", form)[1], tmp_path / "out.txt"
    arguments = ["translate", str(run), str(source), "--format", form, "-o", str(out)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, check=False)
    assert done.returncode == -9 and not out.exists()
    assert (tmp_path / "out.txt.partial").read_text().endswith("half a li")
    code, _, error = typed(capfd, *arguments[1:])
    assert code == 0 and "already has 4 lines" in error and out.read_text() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_a_pipe_is_written_to_and_never_replaced(run, source, tmp_path, capfd):
    whole, pipe, read = typed(capfd, run, source)[1], tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert typed(capfd, run, source, "-o", pipe)[0] == 0
    reader.join(10)
    assert pipe.is_fifo() and read == [whole]


def test_only_whole_lines_of_a_partial_output_count(tmp_path):
    path = tmp_path / "p"
    path.write_bytes(b"1\n2\n3\n4\n5\nhal")
    assert whole_lines(path, 2) == 2 and path.read_bytes() == b"1\n2\n3\n4\n"


def test_the_search_can_be_looked_at(run, source, tmp_path, capfd):
    for name in ("tree.json", "tree.html"):
        code, out, _ = typed(capfd, run, source, "--beam", "3", "--show-search", tmp_path / name)
        assert code == 0 and out == typed(capfd, run, source, "--beam", "3")[1]
    told = json.loads((tmp_path / "tree.json").read_text())
    assert [one["source"] for one in told] == [line for line in LINES if line]
    assert {node["fate"] for node in told[0]["nodes"]} >= {"chosen", "died"}
    page = (tmp_path / "tree.html").read_text()
    assert page.count('<section class="panel" data-view="tree">') == 5
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert [panel["data"] for panel in shown] == told, "the page shows what JSON says"


@pytest.mark.parametrize("verb", ["translate", "evaluate", "compare"])
def test_help_groups_every_option_once(verb):
    module = importlib.import_module(f"regard.cli.{verb}")
    parameters = inspect.signature(getattr(module, verb)).parameters
    grouped = [name for names in module.GROUPS.values() for name in names]
    assert len(set(grouped)) == len(grouped) and set(grouped) <= set(parameters)
    shown = CliRunner().invoke(app, [verb, "--help"]).output
    headings = [line.removesuffix(":") for line in shown.splitlines() if line.endswith(":") and line[0].isalpha()]
    assert headings == ["Arguments", *module.GROUPS, "Options"] and "\x1b" not in shown
    assert shown.split("Options:")[1].split("Examples")[0].split()[0] == "--help", "all others have a group"


@pytest.mark.parametrize("given", [None, 3, b"a", {"a"}, ["a", None]])
def test_what_is_no_text_is_refused(translator, given):
    with pytest.raises(UsageError, match="of type"):
        translator.translate(given)
    with pytest.raises(UsageError, match="list of texts"):
        translator.hypotheses("a")


def test_hypotheses_come_best_first_those_that_were_cut_behind_those_that_ended(translator):
    found = translator.hypotheses(["a b c"], Search(beam=300, count=300))[0]
    cut = [one.ended != "end" for one in found]
    assert cut == sorted(cut) and True in cut and False in cut
    for whole in (True, False):
        scores = [one.score for one in found if (one.ended == "end") is whole]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("metric", ["ter", "edits", "meteor", "bleu:char"])
def test_samples_can_be_chosen_among_by_any_metric(run, source, capfd, metric):
    code, out, _ = typed(capfd, run, source, "--mbr", metric, "--samples", 4)
    assert code == 0 and out.count("\n") == len(LINES)
    code, _, error = typed(capfd, run, source, "--mbr", "cider")
    assert code == 2 and "Use chrf" in error


def test_help_shows_examples_without_torch():
    result = CliRunner().invoke(app, ["translate", "--help"])
    assert result.exit_code == 0 and "--show-search" in result.output and "runs/mine" in result.output


def test_a_choice_by_minimum_bayes_risk_is_one_of_the_samples(translator):
    drawn = translator.hypotheses(["a b c"], Search(samples=12, count=12, seed=1, temperature=2.0))[0]
    chosen = translator.hypotheses(["a b c"], Search(samples=12, seed=1, temperature=2.0, utility="chrf"))[0][0]
    assert chosen.text in {one.text for one in drawn}
    shortest = Search(samples=12, seed=1, temperature=2.0, utility=lambda one, other: -len(one))
    assert len(translator.translate("a b c", shortest)) == min(len(one.text) for one in drawn)


def test_a_choice_by_minimum_bayes_risk_in_a_beam_agrees_best_with_the_beam(translator):
    """Recomputed from the n-best list, weighted by a power of the probability; those that were cut off do not count."""
    agree = utility_of("rouge")
    changed = 0
    for text in ("a b c", "b a", "c c a b", "a"):
        found = [one for one in translator.hypotheses([text], Search(beam=8, count=8))[0] if one.ended == "end"]
        whole = [one.text for one in found]
        weights = [math.prod(map(math.exp, one.log_probs)) ** FLATNESS for one in found]
        chosen = translator.hypotheses([text], Search(beam=8, utility="rouge"))[0]
        assert len(chosen) == 1 and chosen[0].text in whole
        means = [
            sum(weight * agree(one, other) for weight, other in zip(weights, whole, strict=True)) / sum(weights)
            for one in whole
        ]
        assert chosen[0].score == pytest.approx(max(means))
        changed += chosen[0].text != whole[0]
        longest = Search(beam=8, utility=lambda one, other: len(one))
        assert len(translator.translate(text, longest)) == max(map(len, whole))
    assert changed  # otherwise this would not distinguish it from beam search


def test_the_command_line_chooses_among_samples_or_in_a_beam(run, source, translator, capfd):
    """`--beam` makes it a beam, otherwise samples are drawn."""
    for options, search in (
        (("--beam", 6), Search(beam=6, utility="rouge")),
        ((), Search(samples=32, temperature=0.7, utility="rouge")),
    ):
        code, out, _ = typed(capfd, run, source, "--mbr", "rouge", *options)
        assert code == 0 and out.splitlines() == translator.translate(LINES, search)
    code, _, error = typed(capfd, run, source, "--mbr", "rouge", "--beam", 6, "--samples", 4)
    assert code == 2 and "Use one of them" in error


def test_what_is_kept_must_be_spellable_and_free(translator):
    with pytest.raises(UsageError, match="42"):
        translator.translate("a 42 b", Search(keep=("numbers",)))
    with pytest.raises(RegardError, match='"a b"'):
        translator.translate(["c", "a b"], Search(keep=("b",), constraints=Constraints(forbid=("b",)), beam=2))
    kept = Search(keep=("urls", "numbers", "placeholders")).kept("See https://a.b/c?d=1, {name} %s: 3,5 or 7. v2")
    assert [one.text for one in kept] == ["https://a.b/c?d=1", "{name}", "%s", "3,5", "7"]


def test_a_text_that_is_too_long_is_cut_and_nothing_is_dropped(translator, monkeypatch):
    one = translator.translate("a b", Search(split=None))
    assert one == translator.translate("a b"), "what fits is never cut"
    seen = []

    def shouting(texts, search, trees, before=None, rows=None):
        seen.extend(texts)
        return [[Hypothesis((), (), 0.0, "end", text.upper())] if text else [] for text in texts]

    monkeypatch.setattr(translator.generator, "find", shouting)
    for text in ("A b c.  D e f? \n G" * 3000, "a " * 25_000, "x" * 50_000):  # some 50,000 characters each
        assert translator.translate(text, Search(split=None)) == text.upper()
    assert max(len(translator.source_tokenizer.encode(text).ids) for text in seen) <= 256
    seen.clear()
    assert translator.translate("A b. C d.", Search(split=True)) == "A B. C D." and seen == ["A b.", "C d."]


def test_sentences_are_cut_where_readers_would():
    def cut(text):
        return [piece.text for piece in sentences(text)]

    assert cut("Dr. Smith met J. Doe on 9. Mai 2018. They talked. Then?") == [
        "Dr. Smith met J. Doe on 9. Mai 2018.", "They talked.", "Then?",
    ]  # fmt: skip
    assert cut('"Really?" he asked. „Ja.“ Gut, z.B. so.') == ['"Really?" he asked.', "„Ja.“", "Gut, z.B. so."]
    assert cut("今日は。元気ですか？「はい。」そう") == ["今日は。", "元気ですか？", "「はい。」", "そう"]
    assert cut("It was 2018. Pi is 3.14. See www.a.org. End") == [
        "It was 2018.",
        "Pi is 3.14.",
        "See www.a.org.",
        "End",
    ]
    assert cut("one\ntwo") == ["one", "two"] and cut("9. Mai 2018") == ["9. Mai 2018"] and cut("") == []
    assert cut("क्या हाल है? अच्छा हूँ। ठीक") == ["क्या हाल है?", "अच्छा हूँ।", "ठीक"]


def test_pieces_put_together_are_the_text():
    chance = random.Random(0)
    for _ in range(500):
        text = "".join(chance.choices('ab A.!? \n。,"」1', k=chance.randint(0, 60)))
        for found in (sentences(text), pieces(text, lambda piece: len(piece) < 8)):
            assert "".join(piece.text + piece.space for piece in found) == text
        assert all(len(piece.text) < 8 for piece in pieces(text, lambda piece: len(piece) < 8))


def test_groups_hold_every_text_once_longest_first():
    found = list(length_groups([3, 0, 9, 1, 9, 2], 12))
    assert sorted(place for group in found for place in group) == [0, 2, 3, 4, 5] and found[0] == [2]


@pytest.mark.parametrize(
    "settings", [{"temperature": math.nan}, {"coverage_penalty": math.nan}, {"length_penalty": -1}, {"diversity": -1}]
)
def test_numbers_that_mean_nothing_are_refused_in_python_too(settings):
    with pytest.raises(UsageError, match=r"must be between"):
        Search(**settings)
