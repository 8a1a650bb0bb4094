"""How good the model is by now: its loss on all validation pairs, its translations of some of them."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.data.batches import Batches
from regard.data.corpus import Pair
from regard.evaluation.metrics import Scores, score_text
from regard.models import Model
from regard.training.objective import batch_loss
from regard.training.progress import perplexity
from regard.training.view import Sample

Decode = Callable[[list[str]], list[str]]
"""Raw source sentences → raw translations."""


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One judgement of the model."""

    loss: float
    """Mean negative log-likelihood of a target token, without smoothing."""
    scores: Scores
    samples: Sequence[Sample]
    seconds: float

    def score(self, metric: str) -> float | None:
        """How good the model is by a metric, larger being better; `None` if that cannot be said."""
        value = -self.loss if metric == "loss" else self.scores.values.get(metric, math.nan)
        return value if math.isfinite(value) else None

    def facts(self) -> dict[str, Any]:
        """What goes into the journal."""
        return {
            "loss": self.loss,
            "perplexity": perplexity(self.loss) if math.isfinite(self.loss) else None,
            **self.scores.values,
            "seconds": self.seconds,
        }


def validate(
    model: Model, batches: Batches, pairs: Sequence[Pair], decode: Decode, *, device: torch.device
) -> Validation:
    """Judge a model; neither it nor any random generator is changed."""
    start = time.monotonic()
    training, random = model.training, torch.get_rng_state()
    model.eval()
    try:
        loss = mean_loss(model, batches, device=device)
        outputs = decode([pair.source for pair in pairs])
    finally:
        model.train(training)
        torch.set_rng_state(random)
    scores = score_text(outputs, [pair.target for pair in pairs])
    samples = [
        Sample(source=pair.source, reference=pair.target, output=output)
        for pair, output in zip(pairs, outputs, strict=True)
    ]
    return Validation(loss=loss, scores=scores, samples=samples, seconds=time.monotonic() - start)


@torch.no_grad()
def mean_loss(model: Model, batches: Batches, *, device: torch.device) -> float:
    """Mean negative log-likelihood of a target token over all pairs, each once."""
    nll, tokens = 0.0, 0
    for batch in batches.once():
        states = model.decode(model.encode(batch.source.to(device)), batch.inputs.to(device))
        loss = batch_loss(model, states, batch.outputs.to(device))
        nll += loss.nll.item()
        tokens += loss.tokens
    return nll / max(1, tokens)
