"""One registry of analyses: commands, reports, `explain` and the docs follow from the declarations in the folders."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest

import regard
from regard import extensions, inspection
from regard.cli import main
from regard.config import plugins
from regard.foundation import display
from regard.foundation.errors import RegardError, UsageError
from regard.inspection import analyses, registry
from regard.inspection.options import Option
from regard.inspection.result import Result
from regard.inspection.table_result import TableResult
from tests.stored_runs import FIXTURES
from tests.test_inspect_results import source_of

RUNS = FIXTURES / "format-1"
TRANSFORMER, CLASSES = RUNS / "translation-transformer", RUNS / "classes"
BUILT_IN = registry.built_in()


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_entry_is_complete(name):
    found = registry.get(name)
    assert found.name == name and found.help.endswith(".") and found.question and found.works_on
    assert all(
        line.startswith(f"regard inspect {name} ") for line in found.examples.strip().split("\n\n")[0].splitlines()
    )
    described = json.loads(json.dumps(found.to_json(), default=str))
    assert all(one["help"] and one["type"] for one in described["options"])
    assert found.report or found.left_out or found.needs != "run" or name == "all"


def test_the_docs_have_the_table_of_the_registry():
    page = (Path(__file__).parent.parent / "docs/inspection.md").read_text(encoding="utf-8")
    assert registry.as_markdown() in page, f"docs/inspection.md should have this table:\n{registry.as_markdown()}"
    assert all(f"\n## {name.capitalize()}\n" in page for name in BUILT_IN)


def test_help_lists_every_analysis_with_a_whole_sentence(capsys):
    with _ended():
        main(["inspect", "--help"])
    listed = capsys.readouterr().out.partition("Commands:")[2].partition("Examples:")[0]
    for name in BUILT_IN:
        [line] = [line for line in listed.splitlines() if line.split()[:1] == [name]]
        assert "..." not in line and line.split(maxsplit=1)[1]


class _ended:
    """Help ends by itself, by an exit or not."""

    def __enter__(self):
        return self

    def __exit__(self, kind, *more):
        return kind in (None, SystemExit)


@pytest.mark.parametrize("name", BUILT_IN)
def test_options_of_the_command_are_those_of_the_declaration(name, capsys):
    with _ended():
        main(["inspect", name, "--help"])
    shown = capsys.readouterr().out
    flags = set(re.findall(r"^ +(?:-o, )?(--[a-z-]+)", shown, re.MULTILINE)) - {"--help", "--json", "--output"}
    found = registry.get(name)
    generic = {"--target"} if found.needs != "run" else set()
    assert flags == {one.flag for one in found.options if isinstance(one.declared, Option)} | generic


def modules_after(code):
    """The modules of analyses, and torch, that are loaded after some code has run in a new process."""
    names = "(one for one in sys.modules if one.startswith(('regard.inspection', 'torch')))"
    ending = f"import sys; print(*{names}, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{ending}"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


FORKS = """
import json, os, sys
import regard.evaluation.likelihood, regard.training.loop  # most of what analyses need
assert not [one for one in sys.modules if one.startswith("regard.inspection")]
for code in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        exec(code)
        print(json.dumps([one for one in sys.modules if one.startswith("regard.inspection.analyses.")]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_importing_one_analysis_imports_one():
    names = sorted(set(BUILT_IN) - {"all"})
    forms = ("import regard.inspection.analyses.{}.compute", "from regard import inspection; inspection.{}")
    codes = [form.format(name) for name in names for form in forms]
    command = [sys.executable, "-c", FORKS, json.dumps(codes)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    folders = [sorted({one.split(".")[3] for one in json.loads(line)}) for line in printed]
    assert dict(zip(codes, folders, strict=True)) == {form.format(name): [name] for name in names for form in forms}


def test_a_command_imports_its_own_analysis_only():
    run = [str(TRANSFORMER), "a b c"]
    loaded = modules_after(f"from regard.cli import main; main(['inspect', 'attention', *{run!r}])")
    folders = {one.split(".")[3] for one in loaded if one.startswith("regard.inspection.analyses.")}
    assert folders == {"attention"}


def test_help_imports_no_computation():
    code = "from regard.cli import main\ntry: main(['inspect', '--help'])\nexcept SystemExit: pass"
    loaded = modules_after(code)
    assert not [one for one in loaded if one == "torch" or one.endswith((".compute", ".result"))]
    assert {one.split(".")[3] for one in loaded if one.startswith("regard.inspection.analyses.")} == set(BUILT_IN)


FOLDER = '''
"""`tally`: how many tokens there are."""

from typing import Annotated

from regard.inspection.options import Option
from regard.inspection.registry import Analysis


def tally(trace, least: Annotated[int, Option("Count only tokens of this many letters.", minimum=1)] = 1):
    """Count the tokens of a source."""
    from regard.inspection.analyses.tally import compute

    return compute.tally(trace, least)


ANALYSIS = Analysis(inspect=tally, question="how many tokens?", works_on="every model")
'''
COMPUTE = """
from regard.inspection.table_result import TableResult


def tally(trace, least=1):
    return TableResult("Tokens", ("tokens",), [(sum(len(one) >= least for one in trace.source.tokens),)])
"""


@pytest.fixture
def tally(tmp_path, monkeypatch):
    """A new analysis: a folder, and nothing else."""
    (tmp_path / "tally").mkdir()
    (tmp_path / "tally/__init__.py").write_text(FOLDER)
    (tmp_path / "tally/compute.py").write_text(COMPUTE)
    monkeypatch.setattr(analyses, "__path__", [*analyses.__path__, str(tmp_path)])
    yield "tally"
    for name in [one for one in sys.modules if one.startswith("regard.inspection.analyses.tally")]:
        del sys.modules[name]


def test_adding_an_analysis_touches_its_folder_and_nothing_else(tally, capsys):
    assert main(["inspect", "tally", str(TRANSFORMER), "a b c", "--least", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["head"] == ["tokens"]
    assert main(["inspect", "tally", str(TRANSFORMER), "a b c", "--least", "0"]) == 2
    capsys.readouterr()
    with _ended():
        main(["inspect", "--help"])
    assert "How many tokens?" in capsys.readouterr().out
    model = regard.load(TRANSFORMER)
    assert model.explain("a b c", "tally", least=99).rows == [(0,)]
    assert inspection.tally(model.trace("a b c")).rows == model.explain("a b c", "tally").rows
    assert "tally" in inspection.report(TRANSFORMER, "a b c").results
    assert "| [`tally`](#tally) RUN TEXT | how many tokens? | every model |" in registry.as_markdown()
    assert "tally" in dir(inspection)


@pytest.fixture
def extension():
    """Analyses of an extension, which are forgotten afterwards."""
    known = dict(registry.EXTENSIONS)
    yield
    registry.EXTENSIONS.clear()
    registry.EXTENSIONS.update(known)


def test_an_extension_declares_options_in_its_signature(extension, capsys):
    @extensions.analysis("longest-tokens")
    def longest(
        trace,
        most: Annotated[int, Option("How many are shown.", minimum=1)] = 3,
        order: Literal["long", "short"] = "long",
        *,
        secret: object = None,
    ) -> Result:
        """Show the longest tokens."""
        tokens = sorted(trace.source.tokens, key=len, reverse=order == "long")
        return TableResult("Longest tokens", ("token", "letters"), [(one, len(one)) for one in tokens[:most]])

    run = str(TRANSFORMER)
    for words in (["longest-tokens"], ["custom", "longest-tokens"]):
        assert main(["inspect", *words, run, "a b c", "--most", "1", "--order", "short", "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["rows"]) == 1
    assert main(["inspect", "longest-tokens", run, "a b c", "--order", "wide"]) == 2
    assert main(["inspect", "longest-tokens", run, "a b c", "--secret", "x"]) == 2
    with _ended():
        main(["inspect", "longest-tokens", "--help"])
    shown = capsys.readouterr().out
    assert "Show the longest tokens." in shown and "How many are shown." in shown
    assert len(regard.load(TRANSFORMER).explain("a b c", "longest-tokens", most=2).rows) == 2
    assert "longest-tokens" in inspection.report(run, "a b c").results
    described = registry.get("longest-tokens").to_json()["options"]
    assert [one["name"] for one in described] == ["most", "order"] and described[1]["choices"] == ["long", "short"]


def test_names_are_checked(extension):
    for name in ("attention", "all", "custom", "two words", "", "--x"):
        with pytest.raises(ValueError, match="choose another"):
            extensions.analysis(name)(lambda trace: TableResult("x", (), []))


def test_options_that_every_command_has_cannot_be_declared_again(extension):
    for name in ("target", "source", "run", "output"):
        scope = {}
        exec(f"def mine(trace, {name}: str = ''): ...", scope)
        with pytest.raises(ValueError, match=f"option `{name}`"):
            extensions.analysis("mine")(scope["mine"])  # it has no module
    assert "__main__" in plugins.loaded()


def test_a_required_option_leaves_an_analysis_out_of_reports(extension, capsys):
    @extensions.analysis("nth-token")
    def nth(trace, number: int) -> Result:
        """Show one token."""
        return TableResult("Token", ("token",), [(trace.source.tokens[number],)])

    assert main(["inspect", "nth-token", str(TRANSFORMER), "a b", "--number", "0"]) == 0
    assert main(["inspect", "nth-token", str(TRANSFORMER), "a b"]) == 2
    assert "--number" in capsys.readouterr().err
    assert "--number" in inspection.report(TRANSFORMER, "a b").left_out["nth-token"]


@pytest.mark.parametrize("name", [path.name for path in sorted(RUNS.iterdir()) if path.is_dir()])
def test_where_attention_applies_it_is_found(name):
    run = regard.load(RUNS / name)
    trace = run.trace(source_of(name))
    for analysis, compute in (("attention", inspection.attention), ("heads", None)):
        reason = registry.get(analysis).applies(run.loaded)
        has = bool(trace.matching("*.weights"))
        assert (reason is None) == has
        if reason and compute:
            with pytest.raises(UsageError, match=re.escape(reason)):
                compute(trace)


def test_an_analysis_returns_a_result(extension, capsys):
    extensions.analysis("nothing")(lambda trace: None)
    assert main(["inspect", "nothing", str(TRANSFORMER), "a b"]) == 1
    assert "returned an object of type NoneType" in capsys.readouterr().err
    with pytest.raises(RegardError, match="must return"):
        regard.load(TRANSFORMER).explain("a b", "nothing")


def test_an_extension_that_fails_does_not_take_the_report_with_it(extension):
    extensions.analysis("broken")(lambda trace: trace.source.tokens[1000])
    report = inspection.report(TRANSFORMER, "a b")
    assert "IndexError" in report.left_out["broken"] and "attention" in report.results


@pytest.mark.parametrize("name", [one for one in BUILT_IN if registry.get(one).needs == "run"])
def test_an_analysis_that_needs_a_run_is_no_explanation(name):
    with pytest.raises(UsageError, match="There is no explanation"):
        regard.load(TRANSFORMER).explain("a b", name)


def test_what_does_not_apply_is_refused_in_one_sentence_everywhere(capsys):
    assert main(["inspect", "contributions", str(CLASSES), "w0 w1"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    reason = registry.get("contributions").applies(regard.load(CLASSES).loaded)
    assert reason.endswith(".") and reason[:-1] in told and "regard inspect all shows what applies" in told
    assert inspection.report(CLASSES, "w0 w1").left_out["contributions"] == reason
    with pytest.raises(UsageError, match=re.escape(reason[:-1])):
        regard.load(CLASSES).explain("w0 w1", "contributions")


def test_an_unknown_analysis_is_refused(capsys):
    assert main(["inspect", "magic", str(TRANSFORMER), "a"]) == 2
    assert "No such command 'magic'" in capsys.readouterr().err
    assert main(["inspect", "custom", "magic", str(TRANSFORMER), "a"]) == 2
    assert main(["inspect", "custom"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(AttributeError, match="magic"):
        inspection.magic  # noqa: B018


def test_a_corpus_and_a_source_exclude_each_other(tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("a b c\n" * 30)
    corpus = ["--corpus", str(tmp_path / "texts.txt")]
    run = str(TRANSFORMER)
    assert main(["inspect", "identify", run]) == 2 and "one of the two" in capsys.readouterr().err
    assert main(["inspect", "identify", run, "a b", *corpus]) == 2 and "one of the two" in capsys.readouterr().err
    for more in (["--target", "a b"], ["--exact"]):
        assert main(["inspect", "identify", run, *corpus, *more]) == 2
        assert "--target and --exact go with one source text" in " ".join(capsys.readouterr().err.split())


def test_a_bar_is_drawn_only_by_analyses_that_report_progress(monkeypatch, capsys):
    """Pruning shows its training itself, and two live displays cannot be drawn at once."""
    assert not registry.get("prune").reports_progress and registry.get("attribute").reports_progress
    opened = []
    real = display.bar
    monkeypatch.setattr(display, "bar", lambda: opened.append(True) or real())
    assert main(["inspect", "attention", str(TRANSFORMER), "a b"]) == 0 and not opened
    assert main(["inspect", "attribute", str(TRANSFORMER), "a b"]) == 0 and opened


def test_options_of_both_forms_are_shared(tmp_path, monkeypatch, capsys):
    def tally(trace, least: int = 1, most: int = 9) -> Result:
        """Count tokens."""
        return TableResult("One", ("least", "most"), [(least, most)])

    def tally_corpus(run, corpus: Path, least: int = 1) -> Result:
        return TableResult("Many", ("least",), [(least,)])

    entry = registry.Analysis(tally, question="", works_on="", inspect_corpus=tally_corpus)
    monkeypatch.setitem(registry.EXTENSIONS, "tally", entry)
    run, corpus = str(TRANSFORMER), ["--corpus", str(tmp_path)]
    assert main(["inspect", "tally", run, "a b", "--least", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[3, 9]]
    assert main(["inspect", "tally", run, *corpus, "--least", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[4]]
    assert main(["inspect", "tally", run, *corpus, "--most", "4"]) == 2
