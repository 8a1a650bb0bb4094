"""The registry of analyses, from which commands, reports, `model.explain` and the list in the docs are generated.

Each folder of `regard/inspection/analyses` is one analysis; its `__init__.py` declares it:

    ANALYSIS = Analysis(
        inspect=lens,                       # an annotated function; its docstring is the help of the command
        question="what would each layer have predicted?",
        works_on="every decoder",
        order=40,
        examples='regard inspect lens RUN "A dog runs."',
    )

A declaration imports neither torch nor its own computation, so help is fast and importing one analysis imports one.
"""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.foundation.errors import RegardError, UsageError
from regard.inspection import analyses
from regard.inspection.options import Argument, Parameter, keywords_of, parameters_of
from regard.inspection.requirements import SEE_ALL, Requirement, any_run

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.result import Result
    from regard.tasks.loaded import LoadedRun
    from regard.tasks.trace import Trace

Needs = Literal["input", "translation", "run"]
"""What an analysis is given: the trace of one input, the trace of one translated text, or the run alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """One entry of the registry."""

    inspect: Callable[..., "Result"]
    """Computes the result from a `trace` (or, if it needs a run, from an `InspectedRun`) and its options.

    Three more parameters are supplied if the function has them: `progress`, `brief` (true if only the table will be
    shown, so that what it does not show need not be computed), and `traced`, what the trace was made of (`TracedInput`;
    None if the caller has nothing but a trace).
    """
    question: str
    """What it answers, for the docs."""
    works_on: str
    """Which models it applies to, for the docs."""
    order: int = 1000
    """Its place in help and in reports; those of extensions come last."""
    needs: Needs = "input"
    examples: str = ""
    """Command lines, for help."""
    applies: Requirement = any_run
    """Why it does not apply to a run, or None if it does."""
    inspect_corpus: Callable[..., "Result"] | None = None
    """The same question about many texts: a function of an `InspectedRun`, a `corpus` (a file) and options.

    The command then takes a source or `--corpus`, and a report has a part `NAME-corpus` if it is given a corpus.
    """
    report: "Callable[[ReportInput], Result] | None" = None
    """How a report calls it; by default with the trace of the report, if it needs one."""
    left_out: str = ""
    """Why it is never part of a report, if that is so."""
    pictures: bool = True
    """Whether its result can be drawn."""
    given_name: str = ""
    """Its name, if that is not the name of the function."""

    @property
    def name(self) -> str:
        """What the command is called."""
        return self.given_name or self.inspect.__name__

    @property
    def description(self) -> str:
        """The help of the command: the docstring of its function."""
        return inspect.getdoc(self.inspect) or ""

    @property
    def help(self) -> str:
        """The help in one line."""
        return self.description.split("\n\n", maxsplit=1)[0].replace("\n", " ")

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The options and arguments of `inspect`."""
        return parameters_of(self.inspect)

    @cached_property
    def corpus_parameters(self) -> list[Parameter]:
        """The options of `inspect_corpus`, if there is one."""
        return [] if self.inspect_corpus is None else parameters_of(self.inspect_corpus)

    @property
    def options(self) -> list[Parameter]:
        """The options and arguments of `inspect_corpus` and of `inspect`, each once."""
        own = {parameter.name: parameter for parameter in self.parameters}
        return [*(parameter for parameter in self.corpus_parameters if parameter.name not in own), *own.values()]

    @property
    def reports_progress(self) -> bool:
        """Whether it calls a function that draws a progress bar."""
        functions = [function for function in (self.inspect, self.inspect_corpus) if function is not None]
        return any("progress" in inspect.signature(function).parameters for function in functions)

    def to_json(self) -> dict[str, Any]:
        """Describe the analysis as plain data, for programs that offer it."""
        return {
            "name": self.name,
            "help": self.help,
            "question": self.question,
            "needs": self.needs,
            "corpus": self.inspect_corpus is not None,
            "options": [option.to_json() for option in self.options],
        }

    def check(self, run: "LoadedRun") -> None:
        """Refuse a run that the analysis does not apply to."""
        if reason := self.applies(run):
            raise UsageError(reason if "regard inspect" in reason else f"{reason[:-1]}: {SEE_ALL}")

    def check_options(self, options: dict[str, Any], *, corpus: bool = False) -> None:
        """Refuse keywords that the analysis does not have, of one input or of a corpus."""
        function = self.inspect_corpus if corpus and self.inspect_corpus is not None else self.inspect
        names = keywords_of(function)
        if names is None:
            return
        for name in options:
            if name not in names:
                raise UsageError(f"{name!r} is not an option of {self.name}: it has {', '.join(names) or 'none'}.")

    def explain(
        self,
        trace: "Trace",
        *,
        traced: "TracedInput | None" = None,
        progress: "Progress | None" = None,
        **options: Any,
    ) -> "Result":
        """Inspect one trace."""
        return self.call(self.inspect, trace, traced=traced, progress=progress, **options)

    def call(
        self,
        function: Callable[..., "Result"],
        subject: Any,
        *,
        traced: "TracedInput | None" = None,
        progress: "Progress | None" = None,
        brief: bool = False,
        **options: Any,
    ) -> "Result":
        """Call a function of the analysis with what it takes, and check what it returns."""
        from regard.inspection.result import Result

        taken = inspect.signature(function).parameters
        supplied = {"traced": traced, "progress": progress, "brief": brief}
        more = {name: value for name, value in supplied.items() if name in taken and name not in options}
        found = function(subject, **options, **more)
        if not isinstance(found, Result):
            raise RegardError(
                f"The analysis {self.name} returned an object of type {type(found).__name__}, but it must return a "
                "regard.inspection.result.Result. Correct the extension."
            )
        return found


class InspectedRun:
    """The run that an analysis looks into; it is opened, and checked, when it is first needed."""

    def __init__(self, path: Path | str, analysis: Analysis, loaded: "LoadedRun | None" = None) -> None:
        self.path, self.analysis, self._loaded = Path(path), analysis, loaded

    @cached_property
    def loaded(self) -> "LoadedRun":
        """The open run; an error if the analysis does not apply to it."""
        opened = self._loaded or open_run(self.path)
        self.analysis.check(opened)
        return opened

    def text(self, source: str, second: str | None) -> str:
        """Return a source, or a pair of sources as one text; an error for runs that read no second text."""
        if second is None:
            return source
        kind = self.loaded.config.task.input_kind()
        if not kind.text:
            raise UsageError(f"This run reads {kind.reads} one at a time, without a second text. Leave out `{second}`.")
        return f"{source}\t{second}"


@dataclass(frozen=True, eq=False, repr=False)
class TracedInput:
    """What a trace was made of, for analyses that need more of a run than one trace."""

    run: InspectedRun
    source: str
    target: str | None
    """The target that was given; None if the trace is of the run's own output."""


@dataclass(frozen=True, eq=False, repr=False)
class ReportInput:
    """What a report gives to each analysis."""

    run: InspectedRun
    trace: "Trace"
    source: str
    target: str
    """What the run answered, as people write it."""
    asked: str | None
    """The target that was given instead of the run's own answer."""
    corrupted: str | None
    """A second source, for patching."""
    corpus: Path | None
    sentences: int
    """How many sentences of the corpus are read at most."""
    progress: "Progress | None"

    def required_corpus(self) -> Path:
        """Return the corpus, or refuse the analysis for want of one."""
        if self.corpus is None:
            raise UsageError("It needs a corpus: give one with --corpus FILE (CoNLL-U).")
        return self.corpus


def open_run(path: Path | str) -> "LoadedRun":
    """Open a run of any task."""
    from regard.runs.run import Run
    from regard.tasks.loaded import load_run

    return load_run(Run.open(path))


RESERVED = ("run", "source", "second", "target", "output", "as_json", "json", "help")
"""Parameters that the command of every analysis has."""

EXTENSIONS: dict[str, Analysis] = {}
"""The analyses that extensions have added, by name."""


def attention_applies(run: "LoadedRun") -> bool:
    """Return whether the model of a run has attention that can be shown."""
    return _load_declaration("attention").applies(run) is None


def built_in() -> list[str]:
    """Return the names of the analyses that come with Regard: the folders of `regard/inspection/analyses`."""
    return [module.name for module in pkgutil.iter_modules(analyses.__path__) if module.ispkg]


def get(name: str) -> Analysis | None:
    """Return the analysis of a name, or None; imports the declaration of no other."""
    if name in EXTENSIONS:
        return EXTENSIONS[name]
    return _load_declaration(name) if name in built_in() else None


def _load_declaration(name: str) -> Analysis:
    """Return what a folder declares."""
    found: Analysis = import_module(f"{analyses.__name__}.{name}").ANALYSIS
    return found


def every_analysis() -> Iterator[Analysis]:
    """Yield all analyses in the order of help and reports."""
    yield from sorted(map(_load_declaration, built_in()), key=lambda analysis: (analysis.order, analysis.name))
    yield from EXTENSIONS.values()


def explanations() -> list[Analysis]:
    """Return the analyses of one input: those that `model.explain` offers."""
    return [analysis for analysis in every_analysis() if analysis.needs != "run"]


def register(name: str, function: Callable[..., "Result"]) -> None:
    """Add an analysis of one trace, for extensions."""
    if name in built_in() or name == "custom" or not re.fullmatch(r"\w[\w-]*", name):
        raise ValueError(f"an analysis cannot be called {name!r}: choose another name, of letters, digits and hyphens")
    for parameter in parameters_of(function):
        if parameter.name in RESERVED:
            raise ValueError(
                f"the analysis {name} has an option `{parameter.name}`, which every analysis has: rename it"
            )
    if name in EXTENSIONS and EXTENSIONS[name].inspect.__module__ != function.__module__:
        raise ValueError(f"the name {name!r} is taken: choose another")
    EXTENSIONS[name] = Analysis(function, question="", works_on="", given_name=name)


def as_markdown() -> str:
    """Return the table of analyses for docs/inspection.md."""
    rows = ["| command | question | works on |", "|---|---|---|"]
    for analysis in every_analysis():
        if analysis.name not in EXTENSIONS:
            link = f"[`{analysis.name}`](#{analysis.name})"
            rows.append(f"| {link} {_usage(analysis)} | {analysis.question} | {analysis.works_on} |")
    return "\n".join(rows)


def _usage(analysis: Analysis) -> str:
    """Return how a command is called, without options that may be left out."""
    if analysis.needs != "run":
        return "RUN TEXT, or RUN --corpus FILE" if analysis.inspect_corpus else "RUN TEXT"
    words = ["RUN"]
    for parameter in analysis.parameters:
        if isinstance(parameter.declared, Argument):
            words.append(parameter.name.upper() if parameter.required else f"[{parameter.name.upper()}]")
        elif parameter.required:
            words.append(f"{parameter.flag} {parameter.declared.metavar or parameter.name.upper()}")
    return " ".join(words) + (", or RUN --corpus FILE" if analysis.inspect_corpus else "")
