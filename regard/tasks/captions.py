"""image → m: an encoder looks at a picture, a decoder writes about it.

Axes: B batch, S places of a picture, T target positions, H rows and W columns of pixels.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config.shape import Captions as Settings
from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.data.pictured import Captioned
from regard.data.pictures import as_floats
from regard.data.scenes import SCENE, is_true, parse
from regard.metrics.scoring import score_text
from regard.models import Model
from regard.nn import taps
from regard.objectives.objective import Loss
from regard.search.steps import SOURCE_ATTENTION
from regard.tasks.captioner import Captioner
from regard.tasks.reading import predicting
from regard.tasks.task import Course, Judgement, Lesson, Sample, Table, Usage
from regard.tasks.translation import Translation
from regard.text.specials import PAD

WRITTEN = ("bleu", "meteor", "cider", "exact")
_WATCHING = Lock()
"""Threads that learn side by side share one model, and its taps can be watched by one at a time."""


class Captioning(Translation):
    """−log P(caption | picture), word by word; judged by the captions of a sample of pictures.

    By one vector it is Show and Tell (Vinyals et al., 2015); by attention to the places of the picture it is Show,
    Attend and Tell (Xu et al., 2015), with their doubly stochastic penalty as an option.
    """

    title = "A model that captions pictures"

    @property
    def settings(self) -> Settings:
        """The section of this shape."""
        assert isinstance(self.config.shape, Settings)
        return self.config.shape

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Pixels B×3×H×W for a source, decoder inputs B×T and outputs B×T, in learning augmented and exposed."""
        text = super().lesson(batch, random, learning=learning)
        assert batch.pictures is not None
        pixels = as_floats(batch.pictures)
        if learning:
            pixels = moved(pixels, self.settings.shift, random)
            pixels = mirrored(pixels, random) if self.settings.flip else pixels
        return Lesson({**text.tensors, "source": pixels}, text.count)

    def loss(self, model: Model, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """Cross-entropy of the caption; in learning smoothed, and with the penalty on where attention looked."""
        if course is None or not self.settings.doubly_stochastic:
            return super().loss(model, lesson, scale=scale, course=course)
        with _WATCHING, taps.watch(model, SOURCE_ATTENTION) as seen:
            loss = super().loss(model, lesson, scale=scale, course=course)
        layers = [seen[name] for name in seen if seen[name].shape[1]]  # B×H×T×S each
        asked = lesson["outputs"] != PAD  # B×T
        penalty = torch.stack([unevenness(one.mean(1), asked) for one in layers]).mean(0).sum() if layers else 0.0
        return loss._replace(smoothed=loss.smoothed + self.settings.doubly_stochastic * scale * penalty)

    def written(self, model: Model, texts: Sequence[str], *, thorough: bool = True) -> list[str]:
        """Captions of pictures, by the configured beam or greedily; of the same picture the same."""
        form = self.form
        assert isinstance(form, Captioned)
        look = lambda name: form.pixels([name])[0].numpy()  # noqa: E731
        captioner = Captioner(model, self.config, form.target, look=look)
        names = list(dict.fromkeys(texts))
        found = captioner.translate(names, beam=None if thorough else 1)
        by_name = dict(zip(names, found, strict=True))
        return [by_name[name] for name in texts]

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare the caption of each picture with all of its references, and where it can be told, with the truth."""
        references: dict[str, list[str]] = {}
        said: dict[str, str] = {}
        for line, pair in zip(lines, pairs, strict=True):
            references.setdefault(pair.source, []).append(pair.target)
            said.setdefault(pair.source, line)
        scores = score_text(list(said.values()), list(references.values()), WRITTEN)
        scores = replace(scores, sentences=len(pairs))
        if said and all(name.startswith(SCENE) for name in said):
            right = [is_true(line, parse(name)) for name, line in said.items()]
            scores = replace(scores, values={**scores.values, "true": 100 * sum(right) / len(right)})
        samples = [Sample(source=name, reference=references[name][0], output=line) for name, line in said.items()]
        orders = {f"BLEU-{n}": scores.details["bleu"][f"bleu-{n}"] for n in range(1, 5)} if said else {}
        shorter = Table(
            title="BLEU by orders", head=tuple(orders), rows=[tuple(f"{one:.1f}" for one in orders.values())]
        )
        return Judgement(scores=scores, samples=samples, tables=[shorter] if said else [])

    def usage(self, place: str, example: Pair) -> Usage:
        """Caption the example."""
        return Usage(
            shell=f"regard caption {shlex.quote(place)} {shlex.quote(example.source)}",
            python=predicting(place, example.source),
        )

    def next_command(self, place: str) -> str:
        """Caption a picture."""
        return f"regard caption {place} picture.png -o page.html"


def unevenness(weights: Tensor, asked: Tensor) -> Tensor:
    """Σ_s (1 − Σ_t α_ts)² of weights B×T×S at the positions asked for B×T (Xu et al., 2015, equation 14): B."""
    total = (weights * asked[:, :, None]).sum(1)  # B×S
    return (1 - total).square().sum(1)


def moved(pixels: Tensor, most: int, random: torch.Generator) -> Tensor:
    """Pictures B×3×H×W, each moved by up to `most` pixels each way; what moves in repeats the edge."""
    if not most:
        return pixels
    _, _, high, wide = pixels.shape
    padded = F.pad(pixels, (most,) * 4, mode="replicate")
    corners = torch.randint(0, 2 * most + 1, (len(pixels), 2), generator=random).tolist()
    return torch.stack(
        [one[:, y : y + high, x : x + wide] for one, (y, x) in zip(padded, corners, strict=True)]
    )  # B×3×H×W


def mirrored(pixels: Tensor, random: torch.Generator) -> Tensor:
    """Pictures B×3×H×W, half of them with left and right exchanged."""
    chosen = torch.rand(len(pixels), generator=random) < 0.5
    return torch.where(chosen[:, None, None, None], pixels.flip(3), pixels)
