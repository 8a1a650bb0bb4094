"""Starting a run from another: which of its weights are loaded, and when they are trained."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.config.start import refuse_differences, takes_image_encoder, tokenizer_sides
from regard.config.training import Tune
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import format_shape, weights_of
from regard.runs.run import Run
from regard.training.summary import short

TARGET_VECTORS = "decoder.embedding.weight"
VECTORS = ("source_embedding.weight", "_source_embedding.weight", TARGET_VECTORS)
"""Names of the source embeddings in models of different tasks; with a shared vocabulary they are the target's."""


class Start:
    """Another run to start from; raises an error if it does not fit."""

    def __init__(self, config: RunConfig, directory: Path) -> None:
        self.config = config
        self.run = Run.open(directory)
        self.other = self.run.config
        self.part = "picture." if takes_image_encoder(type(config.task), self.other.task) else "encoder."
        """Prefix of the weights that are required: the encoder, or only the image encoder."""
        refuse_differences(config)
        own, known = config.model.encoder, self.other.model.encoder
        if self.part == "encoder." and own is not None and known is not None and own.kind != known.kind:
            raise UsageError(
                f"model.start_from names {directory}, whose encoder is of kind `{known.kind}`, but the encoder of this "
                f"run is of kind `{own.kind}`. Name a run with the same kind of encoder."
            )

    @classmethod
    def of(cls, config: RunConfig) -> Self | None:
        """Return the run that a configuration starts from, if any."""
        return cls(config, Path(config.model.start_from)) if config.model.start_from else None

    def weights_for(self, model: nn.Module) -> dict[str, Tensor]:
        """Return the weights of the other run for a model, by the model's names; other weights stay unchanged."""
        there, own = self.run.read_weights(), weights_of(model)
        if self.part == "picture.":
            encoder = {name: tensor for name, tensor in there.items() if name.startswith("encoder.")}
            there = {name.replace("encoder.", self.part, 1): tensor for name, tensor in encoder.items()}
        taken: dict[str, Tensor] = {}
        for name, tensor in own.items():
            found = self._found(name, there)
            if found is None:
                continue
            if found.shape != tensor.shape:
                raise RegardError(
                    self._misfit(name, f"is {format_shape(found.shape)} there and {format_shape(tensor.shape)}")
                )
            taken[name] = found
        part = self.part
        lost = [name for name in there if name.startswith(part) and name not in taken]
        if lost and any(name.startswith(part) for name in own):
            raise RegardError(self._misfit(lost[0], "is there and not"))
        missing = [name for name in own if name.startswith(part) and name not in taken]
        if missing and any(name.startswith(part) for name in there):
            raise RegardError(self._misfit(missing[0], "is not there but"))
        if not any(name.startswith((part, "decoder.layers.")) for name in taken):
            raise UsageError(
                f"model.start_from names {self.run.directory} ({self.other.task.arrow}: {self.other.cell}), which has "
                f"no part that this model ({self.config.cell}) can load. Name another run."
            )
        return taken

    def _found(self, name: str, there: Mapping[str, Tensor]) -> Tensor | None:
        """Return the tensor of the other run for one of this model's, or `None`."""
        if self.part == "picture.":
            return there.get(name)
        if name in VECTORS:
            return self._vectors(name, there)
        if name.startswith(("encoder.", "decoder.")):
            return there.get(name)
        return there.get(name) if self._same_answers() else None

    def _vectors(self, name: str, there: Mapping[str, Tensor]) -> Tensor | None:
        """Return the embeddings for the tokenizer that a side takes from the other run; `None` if it has its own."""
        source, target = tokenizer_sides(self.config)
        side = target if name == TARGET_VECTORS else source
        if side is None:
            return None
        names = (TARGET_VECTORS, *VECTORS) if side == "target" else VECTORS
        return next((there[name] for name in names if name in there), None)

    def _same_answers(self) -> bool:
        """Return whether both runs predict tokens for the same task; labels may differ."""
        task = self.config.task
        return task.kind == self.other.task.kind and task.output_kind().tokens

    def _misfit(self, name: str, how: str) -> str:
        return (
            f"{self.run.directory}, which model.start_from names, does not fit: {name} {how} here. Give model the "
            f"sizes it has in {self.run.directory / 'config.yaml'} ({self.other.cell}, width {self.other.model.width})."
        )


@dataclass(frozen=True)
class Tuning:
    """When weights that were loaded from another run are trained.

    `all`: from the first step. `fresh`: never. `gradual`: layers are unfrozen one by one from the top, evenly over the
    first half of training, the token embeddings last (Howard and Ruder, 2018).
    """

    kind: Tune = "all"
    taken: Sequence[str] = ()

    def frozen(self, step: int, steps: int) -> set[str]:
        """Return the names of the weights that are frozen in a step."""
        if self.kind == "all":
            return set()
        if self.kind == "fresh":
            return set(self.taken)
        depths = sorted({_depth(name) for name in self.taken}, reverse=True)
        thawed = set(depths[: 2 * step * len(depths) // max(1, steps)])
        return {name for name in self.taken if _depth(name) not in thawed}

    def apply(self, model: nn.Module, step: int, steps: int) -> None:
        """Freeze and unfreeze the parameters of a model for a step."""
        if self.kind == "all":
            return
        frozen = self.frozen(step, steps)
        for name, parameter in model.named_parameters():
            if name in self.taken:
                parameter.requires_grad_(name not in frozen)


def facts_of(model: nn.Module, taken: Iterable[str]) -> dict[str, str]:
    """Return for each part of a model how many parameters were loaded and how many are new."""
    known = set(taken)
    counts: dict[str, list[int]] = {}
    for name, tensor in weights_of(model).items():
        part = "embeddings" if name in VECTORS else ".".join(name.split(".")[: 3 if ".layers." in name else 1])
        counts.setdefault(part, [0, 0])[name not in known] += tensor.numel()
    words = {part: _words(*numbers) for part, numbers in counts.items()}
    return {part: text for part, text in words.items() if text}


def _words(taken: int, fresh: int) -> str:
    parts = [f"{short(taken)} taken"] if taken else []
    return ", ".join([*parts, *([f"{short(fresh)} fresh"] if fresh else [])])


def _depth(name: str) -> int:
    """Return the depth of a weight: 0 for embeddings, from 1 for layers, and the largest for what follows them."""
    parts = name.split(".")
    if "layers" in parts:
        return 1 + int(parts[parts.index("layers") + 1])
    return 0 if name in VECTORS or "entrance" in parts else 1 << 20
