"""The contract of a shape: all that a run must know of what goes into its model and what comes out.

The trainer, checkpoints, validation, views, cards and curves are written against it, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches
from regard.data.corpus import Pair
from regard.data.form import Form
from regard.data.store import TokenStore
from regard.foundation.errors import UsageError
from regard.metrics.scoring import Scores
from regard.objectives.objective import Loss
from regard.tasks.results import Result, Text
from regard.tasks.trace import Trace

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Lesson:
    """A batch as it is to be learnt from: its tensors by name, the first axis of each B.

    Inspection knows some by their names: `source`, what is read (tokens B×S, or pixels); where a decoder writes,
    `inputs` B×T, what it has read, and `outputs` B×T, what it is to say.
    """

    tensors: Mapping[str, Tensor]
    count: int
    """How many answers are asked for: what the loss is a mean over."""

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def to(self, device: torch.device) -> Self:
        """The same on a device."""
        return replace(self, tensors={name: tensor.to(device) for name, tensor in self.tensors.items()})

    def shares(self, number: int) -> list[Self]:
        """Its rows in parts that are as even as can be, none empty; the count stays that of the whole."""
        number = min(number, len(next(iter(self.tensors.values()))))
        cut = {name: tensor.tensor_split(number) for name, tensor in self.tensors.items()}
        return [replace(self, tensors={name: parts[i] for name, parts in cut.items()}) for i in range(number)]


@dataclass(frozen=True)
class Course:
    """Where in its training a model stands when it is given a lesson, and whence randomness comes."""

    step: int
    steps: int
    random: torch.Generator


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One example and what the model makes of it."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table for people, such as a confusion matrix."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """How good a model's answers to some examples are."""

    scores: Scores
    samples: Sequence[Sample]
    """The first examples, not chosen."""
    tables: Sequence[Table] = ()
    """What no single number says."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What was fitted on validation data after training."""

    note: str
    """In a few words."""
    warning: str | None = None
    """Why the result is to be taken with care, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """How a finished run is used, for its card."""

    shell: str
    python: str


class Shape(ABC, Generic[M]):
    """What a run of one shape is made of."""

    title: ClassVar[str]
    """What its models are called."""
    unit: ClassVar[str] = "token"
    """What the loss is a mean over."""
    loss_name: ClassVar[str] = "nats per token"
    perplexity: ClassVar[bool] = True
    """Whether e to the loss means anything."""
    answers: ClassVar[bool] = True
    """Whether it is judged by lines that it writes (`written`, `grade`), and not by what it thinks of texts."""
    result: ClassVar[type[Result]] = Text
    """What it answers a text with."""
    sampled: ClassVar[bool] = False
    """Whether judging is so slow that validation looks at a sample (`training.validation_sample`) only."""

    def __init__(self, config: RunConfig, form: Form) -> None:
        self.config, self.form = config, form

    @abstractmethod
    def build(self) -> M:
        """A model, freshly initialised from torch's global generator."""

    def batches(self, store: TokenStore, *, rank: int = 0, world_size: int = 1, learning: bool = False) -> Batches:
        """The batches of one process."""
        return self.form.batches(self.config, store, rank=rank, world_size=world_size, learning=learning)

    @abstractmethod
    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """What is asked of a batch: in learning with the damage that training does on purpose."""

    @abstractmethod
    def loss(self, model: M, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """The loss of a lesson, times `scale`; without a course, plain: as a judge sees it."""

    @abstractmethod
    def row_losses(self, model: M, lesson: Lesson) -> tuple[Tensor, Tensor]:
        """Return the plain loss of each row of a lesson, and how many answers it asks for: B and B, on the CPU.

        They sum to the loss and the count of the lesson: what intervals over examples are made of.
        """

    def judge(self, model: M, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Let a model answer examples and score the answers; `thorough` as in use, otherwise as quickly as can be."""
        texts, _ = self.readable([pair.source for pair in pairs])
        return self.grade(self.written(model, texts, thorough=thorough), pairs)

    def readable(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Return texts cut to what the model can read, and how many were cut: what is scored is never left out."""
        return list(texts), 0

    def written(self, model: M, texts: Sequence[str], *, thorough: bool = True) -> list[str]:
        """What a model says of texts, a line each, as its verb writes it."""
        return [answer.line for answer in self.answer(model, texts)]

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Score such lines, whoever wrote them, one for each example."""
        raise UsageError(f"{self.title} is judged by what it thinks of texts, not by lines that it wrote.")

    def settle(self, model: M, pairs: Sequence[Pair]) -> "Settled | None":
        """Fit what training leaves open (a temperature, a shift) on validation data, in place; what was done."""
        return None

    def calibrated_loss(self, model: M, pairs: Sequence[Pair]) -> tuple[float, float] | None:
        """Return the mean loss at the temperature of the printed probabilities, and it; `None` without one."""
        return None

    def answer(self, model: M, texts: Sequence[str]) -> Sequence[Result]:
        """What the model says of texts, in their order; a shape whose answers are texts has verbs of its own."""
        raise UsageError(f"{self.title} writes text, and predicts no labels: {self.next_command('RUN')}")

    def trace(self, model: M, text: str, answer: str | None = None) -> Trace:
        """Watch the model answer a text, or ask it for another answer: every tap by its name."""
        raise UsageError(f"{self.title} is traced by what it writes.")

    @abstractmethod
    def usage(self, place: str, example: Pair) -> Usage:
        """How a run at a place is used, shown with an example."""

    @abstractmethod
    def next_command(self, place: str) -> str:
        """What to type next."""
