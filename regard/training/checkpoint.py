"""Everything a run needs to go on as if it had never stopped, on the disk.

A checkpoint is a directory `step-00000500` of tensors and one JSON file; nothing is pickled. It is written aside,
flushed and renamed, and the pointer `latest` moves last: a kill at any moment leaves the checkpoint before it whole.
"""

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from regard import durable
from regard.errors import RegardError
from regard.weights import write_tensors

FORMAT = 1
"""Version of the checkpoint layout; a newer one is refused, never guessed at."""

MODEL, TRAINING, STATE, LATEST = "model.safetensors", "training.safetensors", "state.json", "latest"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run after a step."""

    step: int
    model: Mapping[str, Tensor]
    """The weights, each shared tensor once."""
    training: Mapping[str, Tensor]
    """Optimizer, moving average and random generators."""
    state: Mapping[str, Any]
    """Cursor, schedule, counters, best score: plain JSON."""
    score: float | None = None
    """How good the validation at this very step was (larger is better), if there was one."""
    regular: bool = True
    """Whether the step is one where checkpoints are always taken; an interruption or a new best may fall between."""


class Damaged(Exception):
    """A checkpoint that is not as it was written."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(
        self,
        directory: Path,
        *,
        keep_last: int = 2,
        keep_best: int = 1,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.directory = directory
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.warn = warn

    def steps(self) -> list[int]:
        """The steps there are checkpoints of, ascending."""
        return sorted(
            int(path.name.removeprefix("step-"))
            for path in self.directory.glob("step-*")
            if path.name.removeprefix("step-").isdecimal()
        )

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step stands."""
        return self.directory / f"step-{step:08d}"

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint in one act, move the pointer to it, and remove those no longer kept."""
        aside = self.directory / f".aside-{checkpoint.step:08d}"
        target = self.path(checkpoint.step)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            _remove(aside)
            aside.mkdir()
            _write(aside, checkpoint)
            durable.flush(aside)
            _remove(target)
            aside.rename(target)
            durable.flush(self.directory)
            durable.write(self.directory / LATEST, f"{target.name}\n")
        except (OSError, SafetensorError) as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise RegardError(self._cannot_save(error)) from error
        self._prune(checkpoint.step)
        return target

    def load(self, step: int) -> Checkpoint:
        """Read the checkpoint of a step, every byte checked; raises `Damaged` with what is wrong."""
        return _read(self.path(step))

    def latest(self) -> Checkpoint | None:
        """The newest whole checkpoint (`None` if none was ever written); of a damaged one a word is said."""
        steps = self.steps()
        pointed = self._pointed()
        if pointed in steps:
            steps = steps[: steps.index(pointed) + 1]
        for step in reversed(steps):
            try:
                return self.load(step)
            except Damaged as damage:
                self.warn(f"The checkpoint of step {step} is damaged ({damage}): going back to the one before it.")
        if steps or pointed is not None:
            raise RegardError(
                f"No checkpoint in {self.directory} is whole. Remove that directory to start this run anew from its "
                "configuration, or put back a copy of it."
            )
        return None

    def clean(self) -> None:
        """Remove what a kill in the middle of writing or removing has left."""
        for leftover in self.directory.glob(".*-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def forget_after(self, step: int) -> None:
        """Drop the checkpoints of a future that a run has gone back behind."""
        if self.path(step).exists():
            durable.write(self.directory / LATEST, f"{self.path(step).name}\n")
        for later in self.steps():
            if later > step:
                _remove(self.path(later))

    def last_regular(self, count: int, *, up_to: int) -> list[int]:
        """The newest regular steps, at most `count` of them, ascending."""
        regular = [step for step in self.steps() if step <= up_to and _header(self.path(step)).get("regular")]
        return regular[-count:]

    def _pointed(self) -> int | None:
        try:
            name = (self.directory / LATEST).read_text().strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        number = name.removeprefix("step-")
        return int(number) if number.isdecimal() else None

    def _prune(self, now: int) -> None:
        """Keep the newest regular checkpoints, the best ones, and the one that `latest` names."""
        steps = self.steps()
        headers = {step: _header(self.path(step)) for step in steps}
        scored = [step for step in steps if headers[step].get("score") is not None]
        best = sorted(scored, key=lambda step: (-headers[step]["score"], step))[: self.keep_best]
        kept = {now, *best, *self.last_regular(self.keep_last, up_to=now)}
        for step in steps:
            if step not in kept:
                _remove(self.path(step))

    def _cannot_save(self, error: Exception) -> str:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        reason = "the disk is full" if full else getattr(error, "strerror", None) or str(error)
        remedy = "Free some space" if full else "Make the directory writable"
        good = self._pointed()
        kept = (
            f"the checkpoint of step {good} stands in {self.path(good)}" if good is not None else "none was yet written"
        )
        return (
            f"The checkpoint could not be written to {self.directory}: {reason}. Nothing earlier was lost: {kept}. "
            f"{remedy}, then continue with: regard train --resume {self.directory.parent}"
        )


def _write(directory: Path, checkpoint: Checkpoint) -> None:
    for name, tensors in ((MODEL, checkpoint.model), (TRAINING, checkpoint.training)):
        write_tensors(directory / name, tensors)
        durable.flush(directory / name)
    content: dict[str, Any] = {
        "format": FORMAT,
        "step": checkpoint.step,
        "score": checkpoint.score,
        "regular": checkpoint.regular,
        "state": dict(checkpoint.state),
        "checksums": {name: _checksum(directory / name) for name in (MODEL, TRAINING)},
    }
    content["checksum"] = _seal(content)
    (directory / STATE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    durable.flush(directory / STATE)


def _read(directory: Path) -> Checkpoint:
    content = _header(directory)
    if not content:
        raise Damaged(f"{STATE} is missing or cannot be read")
    if content.get("format", 0) > FORMAT:
        raise RegardError(
            f"{directory} was written by a newer Regard (checkpoint format {content['format']}, this one knows "
            f"{FORMAT}): upgrade with: pip install --upgrade regard"
        )
    if content.pop("checksum", None) != _seal(content):
        raise Damaged(f"{STATE} was changed")
    for name, checksum in content["checksums"].items():
        if not (directory / name).is_file():
            raise Damaged(f"{name} is missing")
        if _checksum(directory / name) != checksum:
            raise Damaged(f"{name} is truncated or changed")
    return Checkpoint(
        step=content["step"],
        model=load_file(directory / MODEL),
        training=load_file(directory / TRAINING),
        state=content["state"],
        score=content["score"],
        regular=content["regular"],
    )


def _header(directory: Path) -> dict[str, Any]:
    """The content of `state.json`, or nothing if it cannot be read."""
    try:
        content = json.loads((directory / STATE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _remove(directory: Path) -> None:
    """Remove a checkpoint such that a kill in the middle leaves no half of it under its name."""
    if directory.exists():
        doomed = directory.with_name(f".doomed-{directory.name.lstrip('.')}")
        shutil.rmtree(doomed, ignore_errors=True)
        directory.rename(doomed)
        shutil.rmtree(doomed)
