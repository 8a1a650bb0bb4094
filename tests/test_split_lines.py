"""Lines that are split, empty lines, samples and options in Python: what holds for whole lines holds for them too."""

import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from regard.cli import main
from regard.config.text import Tokenizer as Settings
from regard.foundation.errors import UsageError
from regard.models import build
from regard.search import Constraints, Search
from regard.search.forbidden import Forbidden
from regard.tasks.loaded import load_run
from regard.text.learning import train as learn
from regard.text.sentences import keep_whole, pieces, sentences
from regard.text.specials import EOS
from regard.training.loop import train
from regard.training.view import View
from tests.cells import cell
from tests.loading import loaded
from tests.test_training import tiny

TEXT = "a b a. C c b! B a c. A b"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(), tmp_path_factory.mktemp("runs") / "copy", view=View()).run.directory


@pytest.fixture(scope="module", params=["characters", "words"])
def translator(request, run):
    """A model that has learnt nothing, over characters or words."""
    lines = ["a b c.", "c c b! a.", "B a c. A b", "a 8 b 44 c 3"] * 20
    tokenizer = learn(Settings.model_validate({"kind": request.param, "min_frequency": 1}), lambda: iter(lines), "test")
    torch.manual_seed(3)
    model = build(cell(encoder={"kind": "transformer"}, decoder={"kind": "rnn"}), tokenizer.size, tokenizer.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
        for number, token in enumerate(tokenizer.vocabulary):
            model.output_bias[number] -= 100.0 * token.startswith("<")  # no babble of bytes and unknown words
    return loaded(model, load_run(run).config, tokenizer, tokenizer)


def typed(capfd, *arguments):
    code = main(["translate", *map(str, arguments)])
    told = capfd.readouterr()
    return code, told.out, told.err


@pytest.mark.parametrize(
    "search", [Search(split=True), Search(split=True, samples=6, count=6, seed=4), Search(split=True, beam=4, count=4)]
)
def test_a_forbidden_phrase_is_not_put_together_from_two_pieces(translator, search):
    cut = [piece.text for piece in sentences(TEXT)]
    apart = translator.hypotheses(cut, replace(search, split=False))
    assert len(cut) == 4
    phrases = {
        f"{before.text.split()[-1]} {after.text.split()[0]}"
        for first, second in itertools.pairwise(apart)
        for before, after in itertools.product(first, second)
        if before.text.split() and after.text.split()
    }
    assert phrases, "the pieces say something"
    forbidden = Forbidden(tuple(phrases), translator.target_tokenizer)
    assert any(forbidden.breaks(one.text) for one in translator.hypotheses([TEXT], search)[0])
    for one in translator.hypotheses([TEXT], replace(search, constraints=Constraints(forbid=tuple(phrases))))[0]:
        assert not forbidden.breaks(one.text), one.text


def test_a_resumed_text_is_read_without_the_space_that_is_not_written(translator):
    forbidden = Forbidden(("ab", "a b"), translator.target_tokenizer)
    ids = translator.target_tokenizer.encode("b").ids
    for space in ("", " "):
        rule = forbidden.resumed([forbidden.after_text(forbidden.start, "a" + space)])
        state = rule.start
        for token in ids:
            state = rule.after(state, token)
        assert state.broken or not rule.allowed(state, 1, translator.target_tokenizer.size)[EOS]


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_every_log_probability_has_its_token_and_scores_are_recomputed(translator, split, count):
    for one in translator.hypotheses([TEXT], Search(split=split, beam=4, count=count))[0]:
        assert len(one.log_probs) in (len(one.tokens), len(one.tokens) + 1)
        assert one.score == pytest.approx(sum(one.log_probs) / len(one.log_probs))
        if split:
            assert one.tokens.count(EOS) >= 1 or one.ended != "end"


def test_the_n_best_of_a_split_text_come_best_first_and_none_twice(translator):
    found = translator.hypotheses([TEXT], Search(split=True, beam=5, count=5))[0]
    order = [(one.ended != "end", -one.score) for one in found]
    assert len(found) == 5 == len({one.text for one in found}) and order == sorted(order)
    best = translator.hypotheses([TEXT], Search(split=True, beam=5))[0][0]
    assert found[0].score >= best.score - 1e-6


def test_json_lines_have_the_same_fields_whatever_the_line(run, tmp_path, capfd):
    (tmp_path / "in").write_text("a b. C d\n\na b\n \n")
    for options in ((), ("--beam", 4, "--n-best", 3)):
        given = ("--split", "--format", "jsonl", "--with", "scores", *options)
        code, out, _ = typed(capfd, run, tmp_path / "in", *given)
        told = [json.loads(line) for line in out.splitlines()]
        assert code == 0 and len(told) == 4 and len({tuple(one) for one in told}) == 1
        for one in told:
            assert len(one["tokens"]) == len(one["log_probs"])
            assert ("others" in one) is bool(options)
            for other in one.get("others", ()):
                assert len(other["tokens"]) == len(other["log_probs"])


def test_constraints_hold_for_empty_lines(translator):
    for text in ("", "  "):
        assert translator.translate(text) == ""
        assert translator.translate(text, Search(constraints=Constraints(forbid=("a",)))) == ""
        assert translator.translate(text, Search(constraints=Constraints(prefix="a b"))).startswith("a b")
        assert "c" in translator.translate(text, Search(beam=4, constraints=Constraints(require=("c",))))
        assert translator.translate(["a", text], Search(constraints=Constraints(only=("a b", "c"))))[1] in ("a b", "c")


def test_what_is_kept_is_never_cut():
    text = "He saw Dr. Who. And 1. FC Nuremberg. End"
    cut = pieces(text, lambda piece: len(piece) < 12)
    spans = [(7, 14), (20, 35)]
    whole = keep_whole(cut, spans)
    assert "".join(piece.text + piece.space for piece in whole) == text and len(cut) > len(whole) > 1
    for first, last in spans:
        assert any(text[first:last] in piece.text for piece in whole)
    starts = list(itertools.accumulate((len(piece.text + piece.space) for piece in cut), initial=0))
    ends = [start + len(piece.text) for start, piece in zip(starts, cut, strict=False)]
    assert keep_whole(cut, list(zip(starts, ends, strict=False))) == cut  # pieces themselves cross no boundary


def test_many_samples_are_no_beam(translator, run, capfd, tmp_path):
    drawn = translator.hypotheses(["a"], Search(samples=1500, count=1500, top_k=2, temperature=0.5))[0]
    assert len(drawn) == 1500 > len({one.text for one in drawn})
    (tmp_path / "in").write_text("a\n")
    code, out, _ = typed(capfd, run, tmp_path / "in", "--samples", 2000, "decoding.max_length=3")
    assert code == 0 and out.count("\n") == 2000


def test_the_best_samples_are_distinct(translator, run, capfd, tmp_path):
    for one in (Search(samples=40, count=6, temperature=0.5), Search(samples=40, count=6, utility="exact")):
        found = translator.hypotheses(["a b"], one)[0]
        assert len({each.text for each in found}) == len(found) > 1
    scores = [
        (each.ended != "end", -each.score) for each in translator.hypotheses(["a b"], Search(samples=9, count=3))[0]
    ]
    assert scores == sorted(scores)
    (tmp_path / "in").write_text("a b c\n")
    code, out, _ = typed(capfd, run, tmp_path / "in", "--sample", "--n-best", 4)
    texts = [line.split("\t")[3] for line in out.splitlines()]
    assert code == 0 and len(texts) == 4 and len(set(filter(None, texts))) == len(list(filter(None, texts)))
    code, _, error = typed(capfd, run, tmp_path / "in", "--samples", 3, "--n-best", 3)
    assert code == 2 and "--samples" in error


@pytest.mark.parametrize("metric", ["meteor:de", "edits", "bleu:char", "chrf"])
def test_a_utility_has_the_same_names_in_python(translator, metric):
    assert isinstance(translator.translate("a b", Search(samples=4, utility=metric)), str)


WRONG = [
    {"beam": "5"}, {"beam": 2.5}, {"beam": True}, {"beam": 0}, {"count": "3"}, {"count": None}, {"count": 0},
    {"length_penalty": "1"}, {"coverage_penalty": None}, {"groups": 0}, {"groups": "2"}, {"diversity": "x"},
    {"samples": "9"}, {"samples": -1}, {"samples": 10**9}, {"temperature": "hot"}, {"top_k": 0}, {"top_k": "1"},
    {"top_p": 2}, {"top_p": "0.5"}, {"seed": 1.5}, {"seed": "x"}, {"seed": None}, {"utility": 3, "samples": 4},
    {"utility": "nothing", "samples": 4}, {"utility": "cider", "samples": 4}, {"utility": "chrf", "beam": 1},
    {"keep": "numbers"}, {"keep": [3]}, {"split": "yes"}, {"split": 1}, {"constraints": {"prefix": "a"}},
    {"constraints": None}, {"full_beam": 1}, {"full_beam": True, "samples": 2}, {"count": 2000},
]  # fmt: skip


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_a_wrong_option_is_refused_in_python(settings):
    with pytest.raises(UsageError):
        Search(**settings)


@pytest.mark.parametrize(
    "settings", [{"prefix": 3}, {"require": "word"}, {"require": [1]}, {"forbid": "word"}, {"only": "word"}], ids=str
)
def test_a_wrong_constraint_is_refused_in_python(settings):
    with pytest.raises(UsageError, match=next(iter(settings))):
        Constraints(**settings)


def test_wrong_arguments_are_refused_in_python(translator):
    for call in (
        lambda: translator.translate("a", beam="5"),
        lambda: translator.translate("a", beam=0),
        lambda: translator.hypotheses(["a"], count="2"),
        lambda: translator.hypotheses(["a"], trees=[]),
        lambda: translator.translate("a", "beam"),
        lambda: translator.translate("a", {"beam": 5}),
    ):
        with pytest.raises(UsageError):
            call()
    assert translator.translate("a", Search(constraints=Constraints(forbid=["b"]), keep=["x"])) is not None


def test_a_page_is_written_even_if_nobody_reads_the_output(run, tmp_path):
    (tmp_path / "in").write_text("a b\n" * 400 + "c\n")
    page = tmp_path / "page.html"
    command = (
        f"{sys.executable} -m regard translate {run} {tmp_path / 'in'} --format jsonl --show-search {page} | head -1"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1 and "Traceback" not in done.stderr
    text = page.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert len(data) == 50 and text.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"beam": 1, "count": 3}, ("`count` (--n-best) is 3", "`beam` (--beam)")),
        ({"beam": 0}, ("`beam` (--beam) is 0. It must be between 1 and 1000.",)),
        ({"samples": 2, "count": 3}, ("`count` (--n-best) is 3", "`samples` (--samples)")),
        ({"samples": 2, "groups": 2}, ("`groups` (--diverse)", "`samples` (--samples)")),
        ({"samples": 2, "full_beam": True}, ("`full_beam` (--full-beam)",)),
        ({"samples": 2, "coverage_penalty": 0.5}, ("`coverage_penalty` (--coverage-penalty)",)),
        ({"utility": "chrf", "beam": 1}, ("`utility` (--mbr)", "`beam` (--beam) is 1")),
        ({"samples": 2, "top_p": 0.0}, ("`top_p` (--top-p) is 0.",)),
        ({"top_k": 0}, ("`top_k` (--top-k) is 0.",)),
        ({"temperature": -1.0}, ("`temperature` (--temperature) is -1.0.",)),
        ({"length_penalty": 11.0}, ("`length_penalty` (--length-penalty) is 11.0. It must be between 0 and 10.",)),
        ({"beam": "5"}, ("The search option `beam` (--beam) is '5' (str).",)),
        ({"temperature": float("nan")}, ("`temperature` (--temperature) is nan.",)),
    ],
)
def test_errors_name_an_option_as_python_and_as_the_command_line_call_it(options, names):
    with pytest.raises(UsageError) as error:
        Search(**options)
    assert all(name in str(error.value) for name in names)
