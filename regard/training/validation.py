"""How good the model is by now: its loss on all validation examples, its answers to them or to some of them."""

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

JUDGING_SEED = 5
"""Where judging needs chance (which words to mask), it is the same every time."""


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One judgement of the model."""

    loss: float
    """Mean loss of what is asked for, as the task counts it, without smoothing."""
    perplexity: float | None
    """e to the loss, where that means something."""
    judgement: Judgement
    seconds: float

    @property
    def scores(self) -> Scores:
        """How good the model's answers are."""
        return self.judgement.scores

    @property
    def samples(self) -> Sequence[Sample]:
        """Some of its answers."""
        return self.judgement.samples

    def score(self, metric: str) -> float | None:
        """How good the model is by a metric, larger being better; `None` if that cannot be said."""
        value = -self.loss if metric == "loss" else self.scores.values.get(metric, math.nan)
        value = -value if metric in SMALLER_IS_BETTER else value
        return value if math.isfinite(value) else None

    def facts(self) -> dict[str, Any]:
        """What goes into the journal."""
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
) -> Validation:
    """Judge a model; neither it nor any random generator is changed."""
    start = time.monotonic()
    training, random = model.training, torch.get_rng_state()
    model.eval()
    try:
        loss = mean_loss(task, model, batches, device=device)
        judgement = task.output.judge(model, pairs, thorough=thorough)
    finally:
        model.train(training)
        torch.set_rng_state(random)
    return Validation(
        loss=loss,
        perplexity=perplexity(loss) if task.output.has_perplexity and math.isfinite(loss) else None,
        judgement=judgement,
        seconds=time.monotonic() - start,
    )


@torch.no_grad()
def mean_loss(task: Task, model: nn.Module, batches: Batches, *, device: torch.device) -> float:
    """The mean loss of a task over all examples, each once; not a number where they ask for nothing."""
    random = torch.Generator().manual_seed(JUDGING_SEED)
    nll, count = 0.0, 0
    for batch in batches.once():
        loss = task.output.loss(model, task.training_batch(batch, random, training=False).to(device))
        nll += loss.nll.item()
        count += loss.tokens
    return nll / count if count else math.nan
