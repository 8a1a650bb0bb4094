"""The contract of an output: what a model answers.

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
from regard.text.specials import BOS, EOS

Rows = list[list[int]]
M = TypeVar("M", bound=nn.Module)

WHOLE = Frame((BOS,), (EOS,))
"""Around a text that is only read: its first token belongs to no word, and can stand for all of them."""


class Output(ABC, Generic[M]):
    """What a model answers: the model itself, its loss, how an answer is produced, and how answers are scored."""

    writes_text: ClassVar[bool] = False
    """Whether the target of an example is text that is cleaned and tokenised."""
    has_labels: ClassVar[bool] = False
    """Whether answers come from a set of labels that is learned from the training data."""
    source_frame: ClassVar[Frame] = WHOLE
    """The special tokens around what is read."""
    target_frame: ClassVar[Frame] = Frame()
    """The special tokens around the target in a batch."""
    any_text: ClassVar[bool] = False
    """Whether an example is a text and nothing else, so that any text is one."""
    splits_long_sources: ClassVar[bool] = False
    """Whether a source that is too long to train on is split, and not left out."""
    unit: ClassVar[str] = "token"
    """What the loss is a mean over."""
    loss_name: ClassVar[str] = "nats per token"
    has_perplexity: ClassVar[bool] = True
    """Whether e to the loss means anything."""
    result: ClassVar[type[Result]] = Text
    """The type of its answers."""
    gives_answers: ClassVar[bool] = True
    """Whether it is judged by the answers it gives, one line each, and not by its loss alone."""
    judged_on_sample: ClassVar[bool] = False
    """Whether judging is so slow that validation takes a sample (`training.validation_sample`)."""

    def __init__(self, config: RunConfig, input: Input, vocabularies: Vocabularies) -> None:
        self.config = config
        self.input = input
        self.vocabularies = vocabularies

    # Preparing data

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """What is asked of an example before it is kept."""
        return config.data.cleaning

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """What is wrong with an example: the end of a sentence that begins with its place, or `None`."""
        return None

    @classmethod
    def labels_of(cls, pair: Pair) -> list[str]:
        """The labels of an example, where there are labels."""
        return []

    def check(self, pair: Pair, place: str) -> None:
        """Refuse an example that does not go with what was learned, at a place such as `a.tsv, text 3`."""
        return

    def missing(self, pairs: Sequence[Pair]) -> str | None:
        """What the training data shows and some examples to judge by do not: the end of a sentence, or `None`."""
        return None

    def remarks(self) -> list[str]:
        """What is odd about what was learned from the training data, in sentences."""
        return []

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The ids of sources and targets as a store keeps them, without frames."""
        return self.input.encode([pair.source for pair in pairs]), self.targets(pairs)

    def targets(self, pairs: Sequence[Pair]) -> Rows:
        """The ids of targets."""
        return [[] for _ in pairs]

    @property
    def id_limit(self) -> int:
        """One more than the largest id of a target."""
        return 0

    def describe(self) -> str:
        """What was learned, in a few words; may be empty."""
        return ""

    # Training

    @abstractmethod
    def build(self) -> M:
        """A model, freshly initialised from torch's global generator."""

    def batches(self, store: TokenStore, *, rank: int, world_size: int) -> Batches | None:
        """The batches of one process, where the output decides how examples are dealt; otherwise the input does."""
        return None

    @abstractmethod
    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """What a batch asks for, besides what the model reads of it (`inputs`); in training with added noise."""

    @abstractmethod
    def loss(self, model: M, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None) -> Loss:
        """The loss of a batch, times `scale`; without a point in training it is the plain loss, as for scoring."""

    @abstractmethod
    def row_losses(self, model: M, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the plain loss of each row of a batch, and how many predictions it asks for: B and B, on the CPU.

        They sum to the loss and the count of the batch: what intervals over examples are made of.
        """

    def calibrate(self, model: M, pairs: Sequence[Pair]) -> Calibration | None:
        """Fit what training leaves open (a temperature, a shift) on validation data, in place."""
        return None

    # Using a model

    @abstractmethod
    def answer(self, model: M, sources: Sequence[str]) -> Sequence[Result]:
        """What the model answers, in the order of the sources."""

    @abstractmethod
    def trace(self, model: M, source: str, target: str | None = None) -> Trace:
        """Run the model on a source, its own answer or another one, and record every tap by its name."""

    # Judging

    def judge(self, model: M, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Let a model answer examples and score the answers; `thorough` as in use, otherwise as quickly as can be."""
        sources, _ = self.readable([pair.source for pair in pairs])
        return self.grade(self.lines(model, sources, thorough=thorough), pairs)

    def readable(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return sources cut to what the model can read, and how many were cut: what is scored is never left out."""
        return self.input.shorten(sources)

    def lines(self, model: M, sources: Sequence[str], *, thorough: bool = True) -> list[str]:
        """What a model answers, one line each, as the command line prints it."""
        return [answer.line for answer in self.answer(model, sources)]

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Score such lines, whoever wrote them, one for each example."""
        raise UsageError(f"{self.config.task.title} is judged by its loss, not by lines that it wrote.")

    def calibrated_loss(self, model: M, pairs: Sequence[Pair]) -> tuple[float, float] | None:
        """Return the mean loss at the temperature of the printed probabilities, and it; `None` without one."""
        return None

    # Explaining how a run is used

    def usage(self, run: str, example: Pair) -> Usage:
        """How a run is used, shown with an example."""
        shell = f"printf '%s\\n' {shlex.quote(example.source)} | regard {self.config.task.verb} {shlex.quote(run)}"
        if TAB in example.source and self.input.config.task.input_kind().image:
            parts = " ".join(map(shlex.quote, example.source.split(TAB)))
            shell = f"printf '%s\\t%s\\n' {parts} | regard {self.config.task.verb} {shlex.quote(run)}"
        return Usage(shell=shell, python=python_call(run, example.source))

    def next_command(self, run: str) -> str:
        """What to type next."""
        ending = "tsv" if self.config.data.train.texts > 1 else "txt"
        return f"regard {self.config.task.verb} {run} < in.{ending}"


def python_call(run: str, source: str) -> str:
    """How a run is called from Python."""
    parts = source.split(TAB)
    given = repr(tuple(parts)) if len(parts) > 1 else repr(source)
    return f"import regard\n\nmodel = regard.load({run!r})\nmodel({given})"


@torch.inference_mode()
def read_all(
    input: Input, model: nn.Module, sources: Sequence[str], of: Callable[..., Tensor], rows: Rows | None = None
) -> list[Tensor]:
    """What `of` makes of each source, in their order: one row each of its result B×…, on the CPU.

    Args:
        input: What is read.
        model: Where the tensors must go.
        sources: Raw sources.
        of: Called with the tensors of a batch.
        rows: The ids of the sources, where they are known already.
    """
    rows = input.rows(sources) if rows is None else rows
    device = next(model.parameters()).device
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    for group in input.groups(rows, input.config.decoding.batch_tokens):
        tensors = input.collate([sources[place] for place in group], [rows[place] for place in group])
        for place, row in zip(group, of(*(tensor.to(device) for tensor in tensors)).float().cpu(), strict=True):
            found[place] = row
    return found
