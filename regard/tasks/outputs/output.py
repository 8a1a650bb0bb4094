"""The interface of outputs.

Axes: B batch, S source positions.
"""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches, Frame
from regard.data.corpus import Pair
from regard.data.store import TokenStore
from regard.foundation.errors import UsageError
from regard.objectives.objective import Loss
from regard.tasks.inputs import Input
from regard.tasks.judgement import Calibration, Judgement, Usage
from regard.tasks.results import Result, Text
from regard.tasks.trace import Trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.tasks.vocabularies import Vocabularies
from regard.text.joined import TAB
from regard.text.packed_rows import PackedRows
from regard.text.specials import BOS, EOS

Rows = list[list[int]]
M = TypeVar("M", bound=nn.Module)

WHOLE = Frame((BOS,), (EOS,))
"""Frame of a text for models without a decoder: its first token belongs to no word and can represent the text."""


class Output(ABC, Generic[M]):
    """The output of a task: builds the model, computes its loss, produces results and evaluates them."""

    writes_text: ClassVar[bool] = False
    """Whether the target of an example is text that is cleaned and tokenised."""
    has_labels: ClassVar[bool] = False
    """Whether results are labels from a set that is learned from the training data."""
    source_frame: ClassVar[Frame] = WHOLE
    """The special tokens around the source."""
    target_frame: ClassVar[Frame] = Frame()
    """The special tokens around the target in a batch."""
    any_text: ClassVar[bool] = False
    """Whether an example is only a text, so that any text is an example."""
    splits_long_sources: ClassVar[bool] = False
    """Whether a source that is too long for training is split instead of left out."""
    has_perplexity: ClassVar[bool] = True
    """Whether perplexity, e to the power of the loss, is reported."""
    result: ClassVar[type[Result]] = Text
    """The type of results."""
    gives_answers: ClassVar[bool] = True
    """Whether evaluation scores results, one line each, and not only the loss."""
    judged_on_sample: ClassVar[bool] = False
    """Whether evaluation is so slow that validation uses a sample (`training.validation_sample`)."""

    def __init__(self, config: RunConfig, input: Input, vocabularies: Vocabularies) -> None:
        self.config = config
        self.input = input
        self.vocabularies = vocabularies

    @property
    def unit(self) -> str:
        """The unit that the loss is averaged over."""
        return "token"

    @property
    def loss_name(self) -> str:
        """The unit of the loss."""
        return "nats per token"

    # Preparing data

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """Return the settings by which examples are cleaned."""
        return config.data.cleaning

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """Return what is wrong with an example, as the end of a sentence that begins with its place, or `None`."""
        return None

    @classmethod
    def labels_of(cls, pair: Pair) -> list[str]:
        """Return the labels of an example, if the output has labels."""
        return []

    def check(self, pair: Pair, place: str) -> None:
        """Raise an error for an example that does not fit the vocabularies, at a place such as `a.tsv, text 3`."""
        return

    def missing(self, pairs: Sequence[Pair]) -> str | None:
        """Return what the training data has and these examples lack, as the end of a sentence, or `None`."""
        return None

    def remarks(self) -> list[str]:
        """Return notes about the vocabularies, in sentences."""
        return []

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """Return the ids of sources and targets as a store keeps them, without frames."""
        return self.input.encode([pair.source for pair in pairs]), self.targets(pairs)

    def encode_packed(self, pairs: Sequence[Pair]) -> tuple[PackedRows, PackedRows]:
        """Return what `encode` returns, packed."""
        sources, targets = self.encode(pairs)
        return PackedRows.of(sources), PackedRows.of(targets)

    def targets(self, pairs: Sequence[Pair]) -> Rows:
        """Return the ids of targets."""
        return [[] for _ in pairs]

    @property
    def id_limit(self) -> int:
        """One more than the largest id of a target."""
        return 0

    def describe(self) -> str:
        """Return a short description of the vocabulary; may be empty."""
        return ""

    # Training

    @abstractmethod
    def build(self) -> M:
        """Build a model, initialised from torch's global generator."""

    def batches(self, store: TokenStore, *, rank: int, world_size: int) -> Batches | None:
        """Return the batches of one process; `None` if the input makes them."""
        return None

    @abstractmethod
    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return the training batch of the model's `inputs` and its targets; in training with added noise."""

    @abstractmethod
    def loss(self, model: M, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None) -> Loss:
        """Return the loss of a batch times `scale`; without `point`, as in evaluation, the loss without smoothing."""

    @abstractmethod
    def row_losses(self, model: M, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the loss of each row of a batch, and its number of predictions: B and B, on the CPU.

        They sum to the loss and the count of the batch. Intervals over examples are computed from them.
        """

    def calibrate(self, model: M, pairs: Sequence[Pair]) -> Calibration | None:
        """Calibrate the model in place on validation data, for example by a temperature."""
        return None

    # Using a model

    @abstractmethod
    def answer(self, model: M, sources: Sequence[str]) -> Sequence[Result]:
        """Return the model's results in the order of the sources."""

    @abstractmethod
    def trace(self, model: M, source: str, target: str | None = None) -> Trace:
        """Run the model on a source, with its own prediction or another target, and record every tap by name."""

    # Judging

    @property
    def thorough_search(self) -> str:
        """How outputs are found if `judge` is thorough, where that is another way than otherwise."""
        return ""

    def judge(self, model: M, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Evaluate a model on examples; if `thorough` with the configured search, otherwise with the fastest."""
        sources, _ = self.readable([pair.source for pair in pairs])
        return self.grade(self.lines(model, sources, thorough=thorough), pairs)

    @property
    def grades_lines(self) -> bool:
        """Whether `judge` grades one line of output per example, so that processes can share the generation."""
        return type(self).judge is Output.judge

    def readable(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return sources truncated to what the model can read, and how many were; scored sources are never left out."""
        return self.input.shorten(sources)

    def lines(self, model: M, sources: Sequence[str], *, thorough: bool = True) -> list[str]:
        """Return the results of a model, one line each, as the command line prints them."""
        return [answer.line for answer in self.answer(model, sources)]

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Evaluate lines of results, from this model or another system, one for each example."""
        raise UsageError(f"{self.config.task.title} is evaluated by its loss and not by lines of output.")

    def calibrated_loss(self, model: M, pairs: Sequence[Pair]) -> tuple[float, float] | None:
        """Return the mean loss at the fitted temperature, and the temperature; `None` without one."""
        return None

    # Explaining how a run is used

    def usage(self, run: str, example: Pair) -> Usage:
        """Return commands that use a run, with an example."""
        shell = f"printf '%s\\n' {shlex.quote(example.source)} | regard {self.config.task.verb} {shlex.quote(run)}"
        if TAB in example.source and self.input.config.task.input_kind().image:
            parts = " ".join(map(shlex.quote, example.source.split(TAB)))
            shell = f"printf '%s\\t%s\\n' {parts} | regard {self.config.task.verb} {shlex.quote(run)}"
        return Usage(shell=shell, python=python_call(run, example.source))

    def next_command(self, run: str) -> str:
        """Return the command to run next."""
        ending = "tsv" if self.config.data.train.texts > 1 else "txt"
        return f"regard {self.config.task.verb} {run} < in.{ending}"


def python_call(run: str, source: str) -> str:
    """Return Python code that calls a run."""
    parts = source.split(TAB)
    given = repr(tuple(parts)) if len(parts) > 1 else repr(source)
    return f"import regard\n\nmodel = regard.load({run!r})\nmodel({given})"


@torch.inference_mode()
def read_all(
    input: Input, model: nn.Module, sources: Sequence[str], of: Callable[..., Tensor], rows: Rows | None = None
) -> list[Tensor]:
    """Apply `of` to all sources in batches; return one row of its result B×… per source, in order, on the CPU.

    Args:
        input: The input of the task.
        model: The model, whose device is used.
        sources: Raw sources.
        of: Called with the tensors of a batch.
        rows: The ids of the sources, if they are known.
    """
    rows = input.rows(sources) if rows is None else rows
    device = next(model.parameters()).device
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    for group in input.groups(rows, input.config.decoding.batch_tokens):
        tensors = input.collate([sources[place] for place in group], [rows[place] for place in group])
        for place, row in zip(group, of(*(tensor.to(device) for tensor in tensors)).float().cpu(), strict=True):
            found[place] = row
    return found
