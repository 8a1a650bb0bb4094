"""A trained run, ready to use: one object for every task.

import regard

model = regard.load("runs/en-de")
model("A dog runs.")                        # Text('Ein Hund rennt.', score=-0.41)
regard.load("runs/sentiment")("so good")    # Label('positive', probability=0.981)
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from regard.config.run import RunConfig
from regard.data.corpus import Pair
from regard.data.pictures import in_memory
from regard.data.sounds import sounds_in_memory
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.search import Hypothesis, Search
from regard.tasks.bad_inputs import answer_all
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.results import Result
from regard.tasks.trace import Trace
from regard.text.joined import TAB
from regard.text.records import format_record

if TYPE_CHECKING:
    from regard.evaluation.evaluation import Evaluation
    from regard.evaluation.judged import Judged
    from regard.foundation.progress import Progress
    from regard.inspection.changes import Change
    from regard.inspection.registry import Analysis
    from regard.inspection.watched import Watched


class Model:
    """A trained run of any task.

    An input is a text; a tuple of two texts where the task reads two (`(context, question)`, `(premise, hypothesis)`);
    a record as a dictionary, a list of triples or JSON text; an image as a path, PIL image or array; a tuple of image
    and question; a sound as a path, an array of samples at the rate of the model, a tuple of samples and their rate,
    or the bytes of a file. A list of inputs gives a list of results.
    """

    def __init__(self, run: Run, loaded: LoadedRun) -> None:
        self.run = run
        self.loaded = loaded

    def __repr__(self) -> str:
        return f"<regard model {self.run.directory}: {self.config.task.arrow}, {self.config.cell}>"

    @property
    def config(self) -> RunConfig:
        """The configuration of the run."""
        return self.loaded.config

    @property
    def model(self) -> nn.Module:
        """The torch module."""
        module: nn.Module = self.loaded.model
        return module

    @property
    def task(self) -> str:
        """The kind of task, such as `translation` or `classification`."""
        return self.config.task.kind

    def __call__(self, inputs: Any, search: Search | None = None, **options: Any) -> Any:
        """Return the result for an input, or for each of a list of inputs.

        Args:
            inputs: One input or a list of inputs; see the class.
            search: Options of search, for tasks that generate text.
            options: Fields of `Search`, such as `beam=8` or `count=3`, as a short form.

        Returns:
            A `Text`, `Label`, `Number`, `Tags` or `FilledText`; a list of them for a list of inputs.

        Raises:
            BadInputs: Some inputs of a list fail, such as damaged images. The error lists them with reasons, and has
                the results for the others.
        """
        with self._in_memory() as keep:
            if not isinstance(inputs, list) or self._is_record(inputs):
                text = self._as_text(inputs, keep, "The input")
                self.loaded.check(text)
                return self._answer([text], search, options)[0]
            texts = [self._as_text(one, keep, f"inputs[{index}]") for index, one in enumerate(inputs)]
            return answer_all(lambda some: self._answer(some, search, options), texts, self.loaded.check, inputs=inputs)

    def translate(self, text: Any, search: Search | None = None, **options: Any) -> Any:
        """Return generated texts as plain strings: one for one input, a list for a list of inputs."""
        self._writing("translate")
        found = self(text, search, **options)
        return [result.line for result in found] if isinstance(found, list) else found.line

    def hypotheses(self, inputs: Sequence[Any], search: Search | None = None, **options: Any) -> list[list[Hypothesis]]:
        """Return the best hypotheses for each input of a list, best first; for tasks that generate text."""
        opened, search_options = self._writing("hypotheses"), _with(search, options)
        if isinstance(inputs, str) or not isinstance(inputs, Sequence):
            raise UsageError("`hypotheses` takes a list of inputs, but this is a single input. Write [input].")

        def find(some: list[str]) -> list[list[Hypothesis]]:
            found: list[list[Hypothesis]] = opened.hypotheses(some, search_options)
            return found

        with self._in_memory() as keep:
            texts = [self._as_text(one, keep, f"inputs[{index}]") for index, one in enumerate(inputs)]
            return answer_all(find, texts, self.loaded.check, inputs=inputs)

    def trace(self, source: Any, target: str | None = None) -> Trace:
        """Run the model on one input and record every activation by name."""
        if target is not None and not isinstance(target, str):
            raise UsageError(f"The target is of type {type(target).__name__}. It must be a text.")
        with self._in_memory() as keep:
            return self.loaded.trace(self._as_text(source, keep, "The input"), target)

    def watch(
        self,
        source: Any,
        *,
        changes: "Sequence[Change]" = (),
        prefix: Sequence[int] = (),
        search: Search | None = None,
        top: int = 10,
        **options: Any,
    ) -> "Watched":
        """Watch the model answer one input, as it is or changed: `model.watch("A dog runs.", changes=[ScaleHead(…)])`.

        Args:
            source: One input.
            changes: What is changed inside the model; see `regard.inspection.changes`.
            prefix: Tokens that the output begins with.
            search: Options of search, for tasks that generate text.
            top: Candidates that are kept for each prediction.
            options: Fields of `Search` as a short form.

        Returns:
            Each prediction with its candidates, the search, and where the model looked; to show or save.
        """
        from regard.inspection.watching import watch

        if not self.loaded.writes_text and (search is not None or options):
            raise UsageError(f"This run does not generate text ({self.config.task.arrow}) and takes no search options.")
        with self._in_memory() as keep:
            text = self._as_text(source, keep, "The input")
            found = watch(self.loaded, text, changes=changes, prefix=prefix, search=_with(search, options), top=top)
        return found.named(self.run.directory)

    def explain(
        self,
        source: Any = None,
        how: str | None = None,
        target: str | None = None,
        *,
        corpus: Path | str | None = None,
        progress: "Progress | None" = None,
        **options: Any,
    ) -> Any:
        """Explain the prediction for one input, or for a corpus, by an analysis of `regard.inspection`.

        Args:
            source: One input; leave it out with a corpus.
            how: The name of an analysis of one input (see docs/inspection.md), built in or of an extension; by default
                `attention`, or `attribute` for a model without attention.
            target: The output to explain; by default the model's own.
            corpus: A file of inputs, for analyses that average over many: `explain(how="lens", corpus="dev.en")`.
            progress: Called with what is done, how many steps of it, and of how many.
            options: Passed to the analysis.

        Returns:
            A result to show or save.
        """
        from regard.inspection import registry
        from regard.inspection.result import Result as Explanation

        if how is None:
            has_attention = registry.attention_applies(self.loaded)
            how = "attention" if has_attention else "attribute"
        analysis = registry.get(how) if isinstance(how, str) else None
        if corpus is not None:
            return self._explain_corpus(analysis, source, how, target, corpus, {**options, "progress": progress})
        if analysis is None or analysis.needs == "run":
            names = ", ".join(analysis.name for analysis in registry.explanations())
            raise UsageError(f"There is no explanation {how!r}. Use {names}.")
        if source is None:
            raise UsageError("There is nothing to explain. Give an input, or a file of inputs as `corpus`.")
        analysis.check_options(options)
        analysis.check(self.loaded)
        run = registry.InspectedRun(self.run.directory, analysis, self.loaded)
        with self._in_memory() as keep:
            text = self._as_text(source, keep, "The input")
            trace, traced = self.trace(text, target), registry.TracedInput(run, text, target)
            found = analysis.explain(trace, traced=traced, progress=progress, **options)
        return found.named(self.run.directory) if isinstance(found, Explanation) else found

    def _explain_corpus(
        self,
        analysis: "Analysis | None",
        source: Any,
        how: str,
        target: str | None,
        corpus: Path | str,
        options: dict[str, Any],
    ) -> Any:
        """Explain the predictions for a corpus."""
        from regard.inspection.registry import InspectedRun, every_analysis

        if source is not None or target is not None:
            raise UsageError('Give an input or a corpus, not both. Write explain(how="lens", corpus="dev.en").')
        if analysis is None or analysis.inspect_corpus is None:
            names = ", ".join(analysis.name for analysis in every_analysis() if analysis.inspect_corpus is not None)
            raise UsageError(f"There is no explanation {how!r} of a corpus. Use {names}.")
        analysis.check_options({name: value for name, value in options.items() if name != "progress"}, corpus=True)
        run = InspectedRun(self.run.directory, analysis, self.loaded)
        return analysis.call(analysis.inspect_corpus, run, corpus=corpus, **options).named(self.run.directory)

    def evaluate(
        self, data: Sequence[tuple[Any, str]] | None = None, *, metrics: Sequence[str] | None = None
    ) -> "Evaluation | Judged":
        """Score the model on (input, reference) pairs; by default on the run's own test or validation data.

        Args:
            data: Pairs of an input and its reference answer.
            metrics: Metrics of text, for translation; by default those of `regard evaluate`.
        """
        if metrics is not None and self.config.task.output != "text":
            raise UsageError(
                f"This run is not a translation run ({self.config.task.arrow}) and has its own metrics. Leave out "
                "`metrics`."
            )
        if data is None:
            return self._evaluate_own(metrics)
        with self._in_memory() as keep:
            return self._evaluate(self._pairs(data, keep), metrics)

    def _evaluate(self, pairs: Sequence[Pair], metrics: Sequence[str] | None) -> "Evaluation | Judged":
        output = self.config.task.output
        if output == "document":
            from regard.evaluation.evaluation import evaluate_texts

            return evaluate_texts(self.loaded, [pair.source for pair in pairs])
        if output == "text":
            from regard.evaluation.evaluation import default_metrics, evaluate_run, with_references

            sources, references = with_references(self.config, pairs)
            names = default_metrics(self.config, references) if metrics is None else metrics
            return evaluate_run(self.loaded, sources, references, names)
        from regard.evaluation.judged import judge_run

        return judge_run(self.loaded.task, self.model, pairs)

    def _evaluate_own(self, metrics: Sequence[str] | None) -> "Evaluation | Judged":
        """Score the model on the run's own data, with the linear baseline for comparison if there is one."""
        from regard.evaluation.judged import Judged
        from regard.tasks.preparation import is_prepared, prepare
        from regard.training.baseline import stored_baseline

        if not is_prepared(self.run.directory):
            raise UsageError(f"{self.run.directory} no longer has its data. Give (input, reference) pairs.")
        prepared = prepare(self.config, self.run.directory)
        found = self._evaluate(prepared.test_pairs or prepared.validation_pairs, metrics)
        if not isinstance(found, Judged):
            return found
        return replace(found, baseline=stored_baseline(self.run.info, "test" if prepared.test_pairs else "validation"))

    def _pairs(self, data: Sequence[tuple[Any, str]], keep: Any) -> list[Pair]:
        """Convert (input, reference) pairs to those of tasks; errors name the index of a pair."""
        if not isinstance(data, Sequence) or isinstance(data, str) or not data:
            raise UsageError(
                "The data to evaluate is not a list of pairs, or is empty. Give a list of (input, reference) pairs."
            )
        task, pairs = self.loaded.task, []
        for index, given in enumerate(data):
            name = f"data[{index}]"
            example: Any = (given, "") if task.output.any_text and isinstance(given, str) else given
            if not isinstance(example, tuple | list) or len(example) != 2:
                raise UsageError(f"{name} is not a pair. Write (input, reference).")
            source, reference = self._as_text(example[0], keep, f"The input of {name}"), example[1]
            if not isinstance(reference, str | Real):
                raise UsageError(f"The reference of {name} is of type {type(reference).__name__}. It must be a text.")
            try:
                self.loaded.check(source)
            except RegardError as error:
                raise UsageError(f"{name}: {error}") from None
            pair = Pair(source, str(reference))
            if problem := task.kind.problem(pair):
                raise UsageError(f"{name} {problem}")
            task.check(pair, name)
            pairs.append(pair)
        return pairs

    def _answer(self, texts: list[str], search: Search | None, options: Mapping[str, Any]) -> list[Result]:
        if self.loaded.writes_text:
            return self.loaded.write(texts, _with(search, options))
        if search is not None or options:
            raise UsageError(
                f"This run does not generate text ({self.config.task.arrow}) and takes no search options. Leave them "
                "out."
            )
        return self.loaded.answer(texts)

    def _writing(self, what: str) -> LoadedRun:
        """Return the loaded run; raises `UsageError` if it does not generate text."""
        if not self.loaded.writes_text:
            raise UsageError(
                f"This run does not generate text ({self.config.task.arrow}), so it has no `{what}`. Call the model."
            )
        return self.loaded

    def _in_memory(self) -> AbstractContextManager[Callable[[object], str]]:
        """Return a context manager whose function registers images or sounds in memory and returns their names."""
        return sounds_in_memory() if self.config.task.input_kind().sound else in_memory()

    def _is_record(self, given: object) -> bool:
        """Return whether a list is one record of triples, and not a list of inputs."""
        if not self.config.task.input_kind().record or not isinstance(given, list | tuple) or not given:
            return False
        return all(isinstance(item, list | tuple) and item and isinstance(item[0], str) for item in given)

    def _as_text(self, given: Any, keep: Any, name: str) -> str:
        """Convert one input, called `name` in errors, to a text: parts are joined by tabs, objects become names."""
        reads = self.config.task.input_kind()
        if reads.record and not isinstance(given, str):
            return format_record(given)
        parts = given if isinstance(given, tuple) and not reads.sound else (given,)
        objects = reads.image or reads.sound
        expected = self.config.data.train.texts
        if isinstance(given, tuple) and not reads.sound and len(parts) != expected:
            wanted = "one input" if expected == 1 else f"{expected} parts in a tuple"
            raise UsageError(f"{name} is a tuple of {len(parts)}, but this run reads {wanted} at a time.")
        names = []
        for index, part in enumerate(parts):
            if isinstance(part, str) or (isinstance(part, Path) and objects and index == 0):
                names.append(str(part))
            elif objects and index == 0:
                try:
                    names.append(keep(part))
                except RegardError as error:
                    raise UsageError(f"{name} cannot be read: {error}") from None
            else:
                wanted = f"{name} is of type {type(part).__name__}. It must be a text."
                if objects and index:
                    wanted = f"{name} has a question of type {type(part).__name__}. Give (image, text)."
                raise UsageError(wanted)
        return TAB.join(names)


def load(run: Path | str | Run, overrides: Sequence[str] | str = (), *, step: int | None = None) -> Model:
    """Load a trained run of any task.

    Args:
        run: The run directory.
        overrides: Settings such as "decoding.beam=3".
        step: Load the checkpoint of this step instead of the finished model.
    """
    opened = Run.open(run)
    return Model(opened, load_run(opened, [overrides] if isinstance(overrides, str) else overrides, step=step))


def train(config: Mapping[str, Any] | RunConfig | Path | str, run: Path | str, overrides: Sequence[str] = ()) -> Model:
    """Train a configuration in a new run directory, and load the run.

    Args:
        config: A YAML file, the name of a recipe, a mapping or a `RunConfig`.
        run: The new directory.
        overrides: Settings as on the command line.
    """
    from regard.training.loop import train as train_run

    train_run(resolve_config(config, overrides), Path(run))
    return load(run)


def resolve_config(config: Mapping[str, Any] | RunConfig | Path | str, overrides: Sequence[str] = ()) -> RunConfig:
    """Return the resolved configuration of a YAML file, a recipe or a mapping; a `RunConfig` is returned unchanged."""
    from regard.config.loading import from_mapping
    from regard.config.loading import load as load_config
    from regard.recipes import configuration_file

    if isinstance(config, RunConfig):
        if overrides:
            raise UsageError("A RunConfig takes no overrides. Give overrides with a file or a mapping.")
        return config
    if isinstance(config, Mapping):
        return from_mapping(config, overrides)
    return load_config(configuration_file(str(config)), overrides)


def _with(search: Search | None, options: Mapping[str, Any]) -> Search:
    if search is not None and not isinstance(search, Search):
        raise UsageError(
            f"The search is of type {type(search).__name__}. It must be a regard.search.Search; or use keywords."
        )
    try:
        return replace(search or Search(), **options)
    except TypeError:
        known = ", ".join(Search.__dataclass_fields__)
        raise UsageError(f"Some of {', '.join(options)} are not search options. The options are {known}.") from None
