"""Validation: the loss on all validation examples, and the scores of the model's outputs for them or a sample."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.data.batches import Batches
from regard.data.corpus import Pair
from regard.metrics.scoring import SMALLER_IS_BETTER, Scores
from regard.tasks.judgement import Judgement, Sample
from regard.tasks.task import Task
from regard.training.progress import perplexity
from regard.training.ranks import Ranks

JUDGING_SEED = 5
"""Seed of random choices in validation (which words to mask), so that they are the same every time."""


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The result of one validation."""

    loss: float
    """Mean loss per unit of the task, without smoothing."""
    perplexity: float | None
    """e to the power of the loss, for tasks that report it."""
    judgement: Judgement
    seconds: float

    @property
    def scores(self) -> Scores:
        """The scores of the model's outputs."""
        return self.judgement.scores

    @property
    def samples(self) -> Sequence[Sample]:
        """Some outputs of the model."""
        return self.judgement.samples

    def score(self, metric: str) -> float | None:
        """Return the score by a metric, larger being better; `None` if it is not known or not finite."""
        value = -self.loss if metric == "loss" else self.scores.values.get(metric, math.nan)
        value = -value if metric in SMALLER_IS_BETTER else value
        return value if math.isfinite(value) else None

    def facts(self) -> dict[str, Any]:
        """Return the values for the journal."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            **self.scores.values,
            "seconds": self.seconds,
        }


def validate(
    task: Task,
    model: nn.Module,
    batches: Batches,
    pairs: Sequence[Pair],
    *,
    thorough: bool,
    device: torch.device,
    ranks: Ranks | None = None,
) -> Validation:
    """Validate a model, the ranks sharing the work; neither the model nor any random generator is changed."""
    start = time.monotonic()
    training, random = model.training, torch.get_rng_state()
    model.eval()
    try:
        loss = mean_loss(task, model, batches, device=device, ranks=ranks)
        judgement = judge(task, model, pairs, thorough=thorough, ranks=ranks)
    finally:
        model.train(training)
        torch.set_rng_state(random)
    return Validation(
        loss=loss,
        perplexity=perplexity(loss) if task.output.has_perplexity and math.isfinite(loss) else None,
        judgement=judgement,
        seconds=time.monotonic() - start,
    )


def judge(
    task: Task, model: nn.Module, pairs: Sequence[Pair], *, thorough: bool, ranks: Ranks | None = None
) -> Judgement:
    """Evaluate a model on examples; each rank generates the outputs for some of them."""
    output = task.output
    if ranks is None or ranks.world_size == 1 or not output.grades_lines:
        return output.judge(model, pairs, thorough=thorough)
    sources, _ = output.readable([pair.source for pair in pairs])
    lines = [""] * len(sources)
    mine = ranks.agree(lambda: output.lines(model, sources[ranks.rank :: ranks.world_size], thorough=thorough))
    for rank, found in enumerate(ranks.gather(mine)):
        lines[rank :: ranks.world_size] = found
    return output.grade(lines, pairs)


def take_sample(task: Task, model: nn.Module, pairs: Sequence[Pair]) -> Sample | None:
    """Return the first example with the model's output by the fastest search, if the task has samples.

    Neither the model nor any random generator is changed.
    """
    training, random = model.training, torch.get_rng_state()
    model.eval()
    try:
        samples = task.output.judge(model, pairs[:1], thorough=False).samples
    finally:
        model.train(training)
        torch.set_rng_state(random)
    return samples[0] if samples else None


@torch.no_grad()
def mean_loss(
    task: Task, model: nn.Module, batches: Batches, *, device: torch.device, ranks: Ranks | None = None
) -> float:
    """Return the mean loss of a task over all examples; NaN if there is nothing to predict."""
    ranks = ranks or Ranks()
    random = torch.Generator().manual_seed(JUDGING_SEED)
    nll, count = 0.0, 0.0
    for number, batch in enumerate(batches.once()):
        made = task.training_batch(batch, random, training=False)  # on every rank, since it may draw random numbers
        if number % ranks.world_size == ranks.rank:
            loss = task.output.loss(model, made.to(device))
            nll += loss.nll.item()
            count += loss.tokens
    nll, count = ranks.total([nll, count])
    return nll / count if count else math.nan
