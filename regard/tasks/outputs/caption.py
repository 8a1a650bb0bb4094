"""Captions: texts about images, with several references.

Axes: B batch, T target positions, S positions of an image.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import torch
from torch import Tensor

from regard.config.task import Captioning
from regard.data.corpus import Pair
from regard.data.scenes import SCENE, is_true, parse
from regard.metrics.scoring import score_text
from regard.models import Model
from regard.nn import taps
from regard.objectives.objective import Loss
from regard.search.steps import SOURCE_ATTENTION
from regard.tasks.judgement import Judgement, Sample, Table, Usage
from regard.tasks.outputs.output import python_call
from regard.tasks.outputs.text import TextOutput
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.specials import PAD

METRICS = ("bleu", "meteor", "cider", "exact")
_WATCHING = Lock()
"""Gradient threads share one model, and its taps can be watched by one of them at a time."""


class CaptionOutput(TextOutput):
    """Loss −log P(caption | image), token by token; evaluated by the captions of a sample of images.

    With a fixed vector it is Show and Tell (Vinyals et al., 2015); with attention to the positions of the image it is
    Show, Attend and Tell (Xu et al., 2015), with their doubly stochastic penalty as an option.
    """

    def loss(
        self, model: Model, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Return the cross-entropy of the caption; in training smoothed, with the penalty on attention."""
        weight = self.config.task.doubly_stochastic if isinstance(self.config.task, Captioning) else 0.0
        if point is None or not weight:
            return super().loss(model, batch, scale=scale, point=point)
        with _WATCHING, taps.watch(model, SOURCE_ATTENTION) as seen:
            loss = super().loss(model, batch, scale=scale, point=point)
        layers = [seen[name] for name in seen if seen[name].shape[1]]  # B×H×T×S each
        asked = batch["outputs"] != PAD  # B×T
        penalty = (
            torch.stack([unevenness(weights.mean(1), asked) for weights in layers]).mean(0).sum() if layers else 0.0
        )
        return loss._replace(smoothed=loss.smoothed + weight * scale * penalty)

    def lines(self, model: Model, sources: Sequence[str], *, thorough: bool = True) -> list[str]:
        """Return captions by the configured beam or greedily; each distinct image is captioned once."""
        names = list(dict.fromkeys(sources))
        by_name = dict(zip(names, super().lines(model, names, thorough=thorough), strict=True))
        return [by_name[name] for name in sources]

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare the caption of each image with all its references, and for generated scenes with the scene itself."""
        references: dict[str, list[str]] = {}
        captions: dict[str, str] = {}
        for line, pair in zip(lines, pairs, strict=True):
            references.setdefault(pair.source, []).append(pair.target)
            captions.setdefault(pair.source, line)
        scores = score_text(list(captions.values()), list(references.values()), METRICS)
        scores = replace(scores, sentences=len(pairs))
        if captions and all(name.startswith(SCENE) for name in captions):
            right = [is_true(line, parse(name)) for name, line in captions.items()]
            scores = replace(scores, values={**scores.values, "true": 100 * sum(right) / len(right)})
        samples = [
            Sample(source=name, reference=references[name][0], output=line, others=references[name][1:])
            for name, line in captions.items()
        ]
        orders = {f"BLEU-{n}": scores.details["bleu"][f"bleu-{n}"] for n in range(1, 5)} if captions else {}
        shorter = Table(
            title="BLEU by orders", head=tuple(orders), rows=[tuple(f"{score:.1f}" for score in orders.values())]
        )
        return Judgement(scores=scores, samples=samples, tables=[shorter] if captions else [])

    def usage(self, run: str, example: Pair) -> Usage:
        """Caption the example."""
        return Usage(
            shell=f"regard caption {shlex.quote(run)} {shlex.quote(example.source)}",
            python=python_call(run, example.source),
        )

    def next_command(self, run: str) -> str:
        """Caption an image."""
        return f"regard caption {run} picture.png -o page.html"


def unevenness(weights: Tensor, asked: Tensor) -> Tensor:
    """Return Σ_s (1 − Σ_t α_ts)² of weights B×T×S at target positions `asked` B×T (Xu et al., 2015, equation 14): B."""
    total = (weights * asked[:, :, None]).sum(1)  # B×S
    return (1 - total).square().sum(1)
