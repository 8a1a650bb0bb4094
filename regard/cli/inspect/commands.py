"""Generates the commands of `regard inspect` from the registry of analyses."""

import inspect
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from regard.cli.help import grouped
from regard.cli.inspect.output import AsJson, Output, check, show
from regard.inspection.options import Option, Parameter
from regard.inspection.registry import Analysis, InspectedRun, TracedInput, every_analysis, get

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.result import Result

Run = Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")]
SOURCE = "The source text, or the name of a picture{}."
Second = Annotated[
    str | None, typer.Argument(help="The second text of a pair, or the question about a picture.", metavar="[SECOND]")
]
Target = Annotated[
    str | None,
    typer.Option("--target", help="A target that the model reads, instead of its own output.", metavar="TEXT"),
]


class AnalysisGroup(TyperGroup):
    """A group whose commands are the analyses; the declaration of an analysis is imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all analyses."""
        return [analysis.name for analysis in every_analysis()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of an analysis, or None."""
        found = get(cmd_name)
        return None if found is None else command_of(found)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the analyses with their questions; nothing is built for that, so that help is fast."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(analysis.name, _capitalise(analysis.question) or analysis.help) for analysis in every_analysis()]
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; `custom NAME` is the earlier name of an extension's analysis."""
        return super().resolve_command(ctx, args[1:] if args[0] == "custom" and len(args) > 1 else args)


def command_of(analysis: Analysis) -> Any:
    """Return the command that runs an analysis."""

    def command(**given: Any) -> None:
        run_command(analysis, given)

    alternatives = analysis.inspect_corpus is not None  # a source or a corpus: neither is required by itself
    options = [_typer_parameter(option, optional=alternatives) for option in analysis.options]
    parameters = [_parameter("run", Run), *_subject(analysis), *options]
    parameters += [_parameter("output", Output, None), _parameter("as_json", AsJson, False)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = analysis.description
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(analysis.name, epilog=_epilog(analysis), cls=grouped({}))(command)
    return get_command(app)


def run_command(analysis: Analysis, given: dict[str, Any]) -> None:
    """Run an analysis with what the command line gives, and show what it finds."""
    from regard.foundation.display import bar

    output, as_json = given.pop("output"), given.pop("as_json")
    check(output, pictures=analysis.pictures)
    directory = given.pop("run")
    run = InspectedRun(directory, analysis)
    with bar() if analysis.reports_progress else nullcontext() as progress:  # pruning draws its training itself
        found = _find(analysis, run, given, progress=progress, brief=output is None and not as_json)
    for line in found.messages(saved=output is not None):
        print(line, file=sys.stderr)
    show(found, output, as_json, directory)


def _find(
    analysis: Analysis, run: InspectedRun, given: dict[str, Any], *, progress: "Progress | None", brief: bool
) -> "Result":
    """Call the analysis with what it needs."""
    from regard.foundation.errors import UsageError

    corpus = given.get("corpus") if analysis.inspect_corpus is not None else None
    if (
        analysis.needs != "run"
        and analysis.inspect_corpus is not None
        and (given["source"] is None) == (corpus is None)
    ):
        raise UsageError("Give a source text, or a --corpus of many: one of the two.")
    if corpus is not None:
        return _find_corpus(analysis, run, given, progress=progress, brief=brief)
    own = {parameter.name for parameter in analysis.parameters}
    for parameter in analysis.corpus_parameters:
        if parameter.name not in own and parameter.name != "corpus" and given[parameter.name] != parameter.default:
            raise UsageError(f"{parameter.flag} goes with a --corpus. Give one, or leave the option out.")
    options = {name: value for name, value in given.items() if name in own}
    if analysis.needs == "run":
        return analysis.call(analysis.inspect, run, progress=progress, brief=brief, **options)
    source, second, target = given["source"], given.get("second"), given["target"]
    text = run.text(source, second)
    trace, traced = run.loaded.trace(text, target), TracedInput(run, text, target)
    return analysis.call(analysis.inspect, trace, traced=traced, progress=progress, brief=brief, **options)


def _find_corpus(
    analysis: Analysis, run: InspectedRun, given: dict[str, Any], *, progress: "Progress | None", brief: bool
) -> "Result":
    """Call the analysis of a corpus; options of a single input are refused."""
    from regard.foundation.errors import UsageError

    assert analysis.inspect_corpus is not None
    both = {parameter.name for parameter in analysis.corpus_parameters}
    alone = [parameter for parameter in analysis.parameters if parameter.name not in both]
    if given.get("target") is not None or any(given[parameter.name] != parameter.default for parameter in alone):
        flags = [
            parameter.flag if isinstance(parameter.declared, Option) else parameter.name.upper() for parameter in alone
        ]
        flags = flags if "target" in {parameter.name for parameter in alone} else ["--target", *flags]
        raise UsageError(f"{' and '.join(flags)} go with one source text, not with a --corpus.")
    rest = {name: value for name, value in given.items() if name in both}
    return analysis.call(analysis.inspect_corpus, run, progress=progress, brief=brief, **rest)


def _subject(analysis: Analysis) -> list[inspect.Parameter]:
    """Return the parameters that say which input is inspected."""
    if analysis.needs == "run":
        return []
    optional = analysis.inspect_corpus is not None
    argument = typer.Argument(help=SOURCE.format("; or use --corpus" if optional else ""))
    source = Annotated[str | None, argument] if optional else Annotated[str, argument]
    found = [_parameter("source", source, None) if optional else _parameter("source", source)]
    if analysis.needs == "input":
        found.append(_parameter("second", Second, None))
    found.append(_parameter("target", Target, None))
    return found


def _typer_parameter(parameter: Parameter, *, optional: bool) -> inspect.Parameter:
    """Return an option of an analysis as Typer reads it; with `optional`, one that may always be left out."""
    declared = parameter.declared
    if isinstance(declared, Option):
        more: dict[str, Any] = {} if declared.minimum is None else {"min": declared.minimum}
        info: Any = typer.Option(parameter.flag, help=declared.help, metavar=declared.metavar, **more)
    else:
        info = typer.Argument(help=declared.help, metavar=declared.metavar)
    if optional and parameter.required:
        return _parameter(parameter.name, Annotated[parameter.type | None, info], None)
    return _parameter(parameter.name, Annotated[parameter.type, info], parameter.default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _epilog(analysis: Analysis) -> str | None:
    """Return the examples for the help of a command; a backspace keeps the lines of a paragraph as they are."""
    examples, *paragraphs = inspect.cleandoc(analysis.examples).split("\n\n")
    if not examples:
        return None
    shown = "\n".join(["Examples:", *(f"  {line}" for line in examples.splitlines())])
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in (shown, *paragraphs)) + "\n"
