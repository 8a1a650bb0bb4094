"""Checkpoints: the complete state of a run on disk, from which training resumes exactly.

A checkpoint is a directory `step-00000500` of tensors and one JSON file; nothing is pickled. It is written to a
temporary directory, flushed and renamed, and the pointer `latest` is updated last. If the process is killed at any
moment, the previous checkpoint stays complete. The tensors are in two files, or, if processes wrote their parts of the
model, in files `shard-…` of torch.distributed.checkpoint.
"""

import errno
import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.weights import write_tensors
from regard.runs.records import DamagedFile, parse, read_file, read_json, seal, unseal

FORMAT, WHOLE = 2, 1
"""Versions of the checkpoint layout: 2 has its tensors in shards, 1 in two whole files. Newer ones are rejected."""

_NAME = re.compile(r"step-[0-9]{8,12}")
_SHARD = re.compile(r"shard-[0-9a-z-]+\.safetensors")
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
    """Validation score at this step (larger is better), if there was a validation."""
    regular: bool = True
    """Whether the step is a multiple of `checkpoint_every`; interruptions and new best scores give other steps."""


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The content of `state.json`; tensors are in the files that `checksums` names."""

    format: int
    step: int
    score: float | None
    regular: bool
    state: dict[str, Any]
    checksums: dict[str, str]


class Damaged(Exception):
    """A checkpoint is damaged or was changed."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(
        self,
        directory: Path,
        *,
        keep_last: int = 2,
        keep_best: int = 1,
        warn: Callable[[str], None] = lambda text: None,
        check_state: Callable[[Mapping[str, Any], Path], object] = lambda state, path: None,
    ) -> None:
        self.directory = directory
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.warn = warn
        self._warned: set[int] = set()
        self.check_state = check_state
        """`check_state` raises `DamagedFile` for a state from which the run cannot be resumed."""

    def steps(self) -> list[int]:
        """Return the steps that have checkpoints, ascending."""
        return sorted(
            int(path.name.removeprefix("step-")) for path in self.directory.glob("step-*") if _NAME.fullmatch(path.name)
        )

    def path(self, step: int) -> Path:
        """Return the directory of the checkpoint of a step."""
        return self.directory / f"step-{step:08d}"

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint atomically, update the pointer, and remove those that are no longer kept."""
        try:
            aside = self.begin(checkpoint.step)
            for name, tensors in ((MODEL, checkpoint.model), (TRAINING, checkpoint.training)):
                write_tensors(aside / name, tensors)
        except (OSError, SafetensorError) as error:
            raise self.cannot_save(error, checkpoint.step) from error
        return self.commit(checkpoint)

    def begin(self, step: int) -> Path:
        """Return an empty directory for the tensors of a checkpoint, which `commit` completes."""
        aside = self._aside(step)
        self.directory.mkdir(parents=True, exist_ok=True)
        _remove(aside)
        aside.mkdir()
        return aside

    def commit(self, checkpoint: Checkpoint) -> Path:
        """Complete a checkpoint whose tensors are written: it appears under its name, and the pointer is updated."""
        aside, target = self._aside(checkpoint.step), self.path(checkpoint.step)
        try:
            _write_header(aside, checkpoint)
            durable.flush(aside)
            _remove(target)
            aside.rename(target)
            durable.flush(self.directory)
            durable.write(self.directory / LATEST, f"{target.name}\n")
        except (OSError, SafetensorError) as error:
            raise self.cannot_save(error, checkpoint.step) from error
        self._prune(checkpoint.step)
        return target

    def cannot_save(self, error: Exception, step: int) -> RegardError:
        """Return the error for a checkpoint that cannot be written, after removing what was written of it."""
        shutil.rmtree(self._aside(step), ignore_errors=True)
        return RegardError(self._cannot_save(error))

    def _aside(self, step: int) -> Path:
        return self.directory / f".aside-{step:08d}"

    def load(self, step: int) -> Checkpoint:
        """Read the checkpoint of a step, checking all files; raises `Damaged` with the reason."""
        return _read(self.path(step), self.check_state)

    def latest(self) -> Checkpoint | None:
        """Return the newest intact checkpoint, or `None` if none was written; warns about damaged ones."""
        for step in self._candidates():
            try:
                return self.load(step)
            except Damaged as damage:
                self._warn_damaged(step, damage)
        self._refuse_if_any()
        return None

    def latest_weights(self) -> tuple[Path, int] | None:
        """Return where the weights of the newest intact checkpoint are, and how many bytes they have at most."""
        for step in self._candidates():
            try:
                directory = self.path(step)
                header = _read_header(directory)
                names = [MODEL] if MODEL in header.checksums else list(header.checksums)
                for name in names:
                    _check_file(directory, name, header)
                found = directory / MODEL if MODEL in names else directory
                return found, sum((directory / name).stat().st_size for name in names)
            except Damaged as damage:
                self._warn_damaged(step, damage)
        self._refuse_if_any()
        return None

    def _candidates(self) -> Iterator[int]:
        """Yield the steps to try, newest first, from the one that the pointer names."""
        steps = self.steps()
        pointed = self._pointed()
        if pointed in steps:
            steps = steps[: steps.index(pointed) + 1]
        return reversed(steps)

    def _warn_damaged(self, step: int, damage: Damaged) -> None:
        if step not in self._warned:
            self.warn(f"The checkpoint of step {step} is damaged ({damage}). Using the one before it.")
        self._warned.add(step)

    def _refuse_if_any(self) -> None:
        if self.steps() or self._pointed() is not None:
            raise RegardError(
                f"No checkpoint in {self.directory} is intact. Remove that directory to start this run again from its "
                "configuration, or restore a copy of it."
            )

    def clean(self) -> None:
        """Remove incomplete directories that a killed process has left."""
        for leftover in self.directory.glob(".*-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def forget_after(self, step: int) -> None:
        """Remove the checkpoints after a step to which a run has returned."""
        if self.path(step).exists():
            durable.write(self.directory / LATEST, f"{self.path(step).name}\n")
        for later in self.steps():
            if later > step:
                _remove(self.path(later))

    def last_regular(self, count: int, *, up_to: int) -> list[int]:
        """Return the newest regular steps, at most `count` of them, ascending."""
        headers = self._headers()
        return [step for step, header in headers.items() if step <= up_to and header.regular][-count:]

    def _pointed(self) -> int | None:
        try:
            name = read_file(self.directory / LATEST, largest=100).decode().strip()
        except (DamagedFile, UnicodeDecodeError):
            return None
        return int(name.removeprefix("step-")) if _NAME.fullmatch(name) else None

    def _headers(self) -> dict[int, _Header]:
        """Return the headers that can be read, by step, ascending."""
        found = {}
        for step in self.steps():
            try:
                found[step] = _read_header(self.path(step))
            except Damaged:
                continue
        return found

    def _prune(self, now: int) -> None:
        """Keep the newest regular checkpoints, the best ones, and the one that `latest` names."""
        scores = {step: header.score for step, header in self._headers().items() if header.score is not None}
        best = sorted(scores, key=lambda step: (-scores[step], step))[: self.keep_best]
        kept = {now, *best, *self.last_regular(self.keep_last, up_to=now)}
        for step in self.steps():
            if step not in kept:
                _remove(self.path(step))

    def _cannot_save(self, error: Exception) -> str:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        reason = "the disk is full" if full else getattr(error, "strerror", None) or str(error)
        remedy = "Free some space" if full else "Make the directory writable"
        good = self._pointed()
        kept = (
            f"the checkpoint of step {good} is in {self.path(good)}"
            if good is not None
            else "none has been written yet"
        )
        return (
            f"The checkpoint could not be written to {self.directory}: {reason}. Nothing earlier was lost: {kept}. "
            f"{remedy}, then resume with: regard train --resume {self.directory.parent}"
        )


def _write_header(directory: Path, checkpoint: Checkpoint) -> None:
    """Write `state.json`, with the checksums of all files of tensors."""
    files = sorted(directory.glob("*.safetensors"))
    for file in files:
        durable.flush(file)
    content: dict[str, Any] = {
        "format": WHOLE if (directory / MODEL).exists() else FORMAT,
        "step": checkpoint.step,
        "score": checkpoint.score,
        "regular": checkpoint.regular,
        "state": dict(checkpoint.state),
        "checksums": {file.name: _checksum(file) for file in files},
    }
    (directory / STATE).write_text(json.dumps(seal(content), indent=2) + "\n", encoding="utf-8")
    durable.flush(directory / STATE)


def _read(directory: Path, check_state: Callable[[Mapping[str, Any], Path], object]) -> Checkpoint:
    header = _read_header(directory)
    shards = [name for name in header.checksums if _SHARD.fullmatch(name)]
    for name in shards or (MODEL, TRAINING):
        _check_file(directory, name, header)
    try:
        check_state(header.state, directory / STATE)
        tensors = (
            _read_shards(directory) if shards else {name: load_file(directory / name) for name in (MODEL, TRAINING)}
        )
    except (DamagedFile, SafetensorError, OSError, ValueError) as error:
        raise Damaged(str(error)) from None
    return Checkpoint(
        step=header.step,
        model=tensors[MODEL],
        training=tensors[TRAINING],
        state=header.state,
        score=header.score,
        regular=header.regular,
    )


def _read_shards(directory: Path) -> dict[str, dict[str, Tensor]]:
    """Return the whole tensors of a checkpoint whose parts are in several files, by file and name."""
    import torch
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import load

    metadata = HuggingFaceStorageReader(str(directory)).read_metadata().state_dict_metadata
    whole = {
        name: torch.empty(entry.size, dtype=entry.properties.dtype)
        for name, entry in metadata.items()
        if isinstance(entry, TensorStorageMetadata)
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about loading without other processes, which is intended
            load(whole, storage_reader=HuggingFaceStorageReader(str(directory)), no_dist=True)
    except CheckpointException as error:
        raise ValueError(str(error)) from None
    files = {"model": MODEL, "training": TRAINING}
    tensors: dict[str, dict[str, Tensor]] = {MODEL: {}, TRAINING: {}}
    for key, tensor in whole.items():
        part, name = key.split("/", 1)
        tensors[files[part]][name] = tensor
    return tensors


def _read_header(directory: Path) -> _Header:
    """Read `state.json`, checking its checksum and types."""
    path = directory / STATE
    try:
        content = read_json(path)
        version = content.get("format") if isinstance(content, dict) else None
        if isinstance(version, int) and version > FORMAT:
            raise RegardError(
                f"{directory} was written by a newer Regard (checkpoint format {version}, this one reads up to "
                f"{FORMAT}). Upgrade Regard."
            )
        header = parse(_Header, unseal(content, path, demanded=True), path)
    except DamagedFile as error:
        raise Damaged(str(error)) from None
    if path.parent.name != f"step-{header.step:08d}":
        raise Damaged(f"{STATE} is of step {header.step}")
    return header


def _check_file(directory: Path, name: str, header: _Header) -> None:
    """Compare a file of tensors with its checksum."""
    if not (directory / name).is_file():
        raise Damaged(f"{name} is missing")
    if _checksum(directory / name) != header.checksums.get(name):
        raise Damaged(f"{name} is truncated or changed")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(directory: Path) -> None:
    """Remove a checkpoint; it is renamed first, so that a killed process leaves no incomplete one under its name."""
    if directory.exists():
        doomed = directory.with_name(f".doomed-{directory.name.lstrip('.')}")
        shutil.rmtree(doomed, ignore_errors=True)
        directory.rename(doomed)
        shutil.rmtree(doomed)
