"""A loaded run: a task with its trained model."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.store import TokenStore
from regard.foundation.device import choose_device, keep_freed
from regard.foundation.errors import RegardError, UsageError
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.runs.run import Run
from regard.search import Hypothesis, Search, SearchTree
from regard.tasks.bad_inputs import answer_all
from regard.tasks.generation import TextGenerator
from regard.tasks.inputs import Input
from regard.tasks.outputs import Output
from regard.tasks.outputs.decoded import DecodedOutput
from regard.tasks.results import Nothing, Result
from regard.tasks.task import Task, TaskKind
from regard.tasks.trace import Trace
from regard.text.joined import check_parts
from regard.text.specials import BOS, EOS
from regard.text.tokenizer import Tokenizer

Texts = list[str] | tuple[str, ...]

MISMATCHES = {
    "translate": "is not a translation run",
    "generate": "is not a language model",
    "caption": "is not a captioning run",
    "transcribe": "is not a speech recogniser",
    "predict": "does not predict labels, numbers or tags",
}
"""What is wrong with a run that needs another command, by the command that was tried."""


class LoadedRun:
    """A task with a trained model.

    Sources are texts: the text itself, several with tabs between them, or the names of images.
    """

    def __init__(self, task: Task, model: nn.Module) -> None:
        self.task = task
        self.model: Any = model

    @property
    def config(self) -> RunConfig:
        """The configuration of the run."""
        return self.task.config

    @property
    def input(self) -> Input:
        """The input of the task."""
        return self.task.input

    @property
    def output(self) -> Output[Any]:
        """The output of the task."""
        return self.task.output

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of sources."""
        return self.task.input.tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of generated texts."""
        return self.text_output("a tokenizer of outputs").tokenizer

    @property
    def writes_text(self) -> bool:
        """Whether results are texts that a decoder generates."""
        return isinstance(self.output, DecodedOutput)

    @property
    def translates_text(self) -> bool:
        """Whether the model reads a text and generates another."""
        return self.writes_text and self.config.task.input_kind().encoder and self.input.is_text

    def untrained(self) -> Model | EncoderModel:
        """Return a newly initialised model of the same configuration."""
        return self.task.build()

    # Answers

    @cached_property
    def generator(self) -> TextGenerator:
        """The text generator, for tasks that generate text."""
        return self.text_output("a search").generator(self.model)

    def translate(self, text: Any, search: Search | None = None, *, beam: int | None = None) -> Any:
        """Return the best output as a string for a source, or for each of a list of sources."""
        return self.generator.translate(text, search, beam=beam)

    def hypotheses(
        self,
        texts: Texts,
        search: Search | None = None,
        *,
        beam: int | None = None,
        count: int | None = None,
        trees: Sequence[SearchTree] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses for each source, best first."""
        return self.generator.hypotheses(texts, search, beam=beam, count=count, trees=trees)

    def write(self, sources: Texts, search: Search | None = None) -> list[Result]:
        """Return the best text for each source with its score, and the alternatives of an n-best search."""
        return self.text_output("a text").results(sources, self.hypotheses(sources, search))

    def explain(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with its attention to the source and, for text sources, its word alignment."""
        return self.generator.explain(source, hypothesis)

    @overload
    def predict(self, sources: str) -> Result: ...

    @overload
    def predict(self, sources: Texts) -> list[Result]: ...

    def predict(self, sources: str | Texts) -> Result | list[Result]:
        """Return the result for a source, or for each of a list of sources; an empty source has an empty result.

        A source with another number of texts than the model reads raises an error. If some sources of a list fail,
        `BadInputs` lists them and has the other results.
        """
        if isinstance(sources, str):
            self.check(sources)
            return self.answer([sources])[0]
        return answer_all(self.answer, sources, self.check)

    def check(self, source: str) -> None:
        """Raise an error for a source with another number of texts than the model reads."""
        if isinstance(source, str) and source.strip():
            check_parts(source, self.config.data.train.texts)

    def answer(self, sources: Sequence[str]) -> list[Result]:
        """Return the results for checked sources; an empty source has an empty result."""
        asked = [source for source in sources if source.strip()]
        answers = iter(self.output.answer(self.model, asked) if asked else ())
        return [next(answers) if source.strip() else Nothing(self.output.result) for source in sources]

    # Analyses

    def trace(self, source: str, target: str | None = None) -> Trace:
        """Run the model on a source, with its own answer or another one, and record every tap by its name."""
        if isinstance(source, str) and not self.writes_text:
            check_parts(source, self.config.data.train.texts)
        return self.output.trace(self.model, source, target)

    def trace_hypothesis(self, source: str, hypothesis: Hypothesis) -> Trace:
        """Run the model on a source and an output that search has found."""
        return self.text_output("an output to trace").trace_tokens(self.model, source, hypothesis.tokens)

    def forced(self, source: str, target: str | None = None) -> tuple[Tensor, Tensor]:
        """Return source tokens 1×S and target tokens 1×T with special tokens; by default of the model's own output."""
        if not self.translates_text:
            raise UsageError(
                "This analysis needs a model that reads a text and generates another, such as a translation run."
            )
        ids = self.source_tokenizer.encode_batch([source])[0]
        if target is None:
            best = self.hypotheses([source])[0]
            tokens = list(best[0].tokens) if best else []
        else:
            tokens = self.target_tokenizer.encode_batch([target])[0]
        device = self.model.device
        return torch.tensor([[*ids, EOS]], device=device), torch.tensor([[BOS, *tokens, EOS]], device=device)

    def text_output(self, what: str) -> DecodedOutput:
        """Return the output of a run that generates text; `UsageError` says that another has no `what`."""
        if not isinstance(self.output, DecodedOutput):
            raise UsageError(f"This run does not generate text ({self.config.task.arrow}), so it does not have {what}.")
        return self.output


def load_run(
    directory: Path | str | Run, overrides: Sequence[str] = (), *, verb: str | None = None, step: int | None = None
) -> LoadedRun:
    """Load a trained run on the best available device.

    Args:
        directory: The run directory.
        overrides: Settings as on the command line.
        verb: The command that uses the run; raises `UsageError` if the run's task needs another command.
        step: Load the checkpoint of this step instead of the finished model.
    """
    run = Run.open(directory)
    check_overrides(overrides)
    config = run.load_config(overrides)
    if verb is not None:
        check_verb(run, config, verb)
    keep_freed()
    task = TaskKind.of(config).load(run.tokenizers)
    model = run.load_model(task.build, task.vocabularies.fingerprints, step)
    model = model.to(choose_device(config.training.device)).eval()
    if isinstance(model, Model):
        model = model.optimize_layout()
    task.input.trained_length = trained_length(run) or task.input.trained_length
    return LoadedRun(task, model)


def check_verb(run: Run, config: RunConfig, verb: str) -> None:
    """Raise `UsageError` for a run that needs another command, and name that command."""
    if config.task.verb != verb:
        use = f"regard {config.task.verb} {run.directory}"
        raise UsageError(f"{run.directory} {MISMATCHES[verb]} ({config.task.arrow}: {config.cell}). Use {use}.")


def load_task(run: Run, config: RunConfig) -> Task:
    """Return the task of a trained run with its vocabularies."""
    return TaskKind.of(config).load(run.tokenizers)


def trained_length(run: Run) -> int | None:
    """Return the length in tokens of the longest source of a run's training data, if the data still exist."""
    try:
        return int(TokenStore(run.data / "train").lengths[0].max())
    except (OSError, ValueError, RegardError):
        return None


def check_overrides(overrides: Sequence[str]) -> None:
    """Raise `UsageError` for settings that cannot be changed after training."""
    for override in overrides:
        name = override.partition("=")[0].strip()
        if "=" not in override and Path(override).exists():
            raise UsageError(f"{override} is a file, and here settings are expected. Give it by an option: see --help.")
        if not name.startswith("decoding.") and name not in ("model.positions.ntk", "training.device"):
            raise UsageError(
                f"{name} cannot be changed in a trained run. Only decoding.*, training.device and model.positions.ntk "
                "(for rotary positions) can."
            )
