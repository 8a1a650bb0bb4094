"""A run: a directory that is complete, with configuration, tokenizers, weights, metrics and card."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import regard
from regard import durable
from regard.errors import RegardError, UsageError

if TYPE_CHECKING:
    from torch import nn

    from regard.config.run import RunConfig

FORMAT = 1
"""Version of the run directory's layout; a newer one is refused, never guessed at."""


class Run:
    """One run directory: where its parts stand, and what is known about it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def create(cls, directory: Path, config: "RunConfig") -> Self:
        """Make a new run in one act: a directory with its configuration, refused where something stands already."""
        from regard.config.loading import dump

        cls.refuse_occupied(directory)
        exists = directory.is_dir()
        aside = directory if exists else directory.with_name(f".{directory.name}.aside-{os.getpid()}")
        try:
            aside.mkdir(parents=True, exist_ok=exists)
            durable.write(aside / "config.yaml", dump(config))
            info = {
                "format": FORMAT,
                "regard": regard.__version__,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "cell": config.cell,
                "status": "running",
                "step": 0,
                "steps": config.training.steps,
            }
            durable.write(aside / "run.json", json.dumps(info, indent=2, ensure_ascii=False) + "\n")
            if not exists:
                aside.rename(directory)
                durable.flush(directory.parent)
        except OSError as error:
            raise RegardError(
                f"The run {directory} cannot be made: {error.strerror or error}. Choose another place with --run DIR."
            ) from error
        finally:
            if not exists:
                _discard(aside)
        return cls(directory)

    @staticmethod
    def refuse_occupied(directory: Path) -> None:
        """Refuse in a sentence a place where something stands already."""
        if (directory / "run.json").is_file():
            raise UsageError(
                f"There is a run in {directory} already: choose another place (with regard train, --run), or continue "
                f"training with regard train --resume {directory}."
            )
        if directory.is_file() or (directory.is_dir() and any(directory.iterdir())):
            raise UsageError(
                f"{directory} exists and is not an empty directory: choose another place (with regard train, --run)."
            )

    @classmethod
    def open(cls, directory: Path | str) -> Self:
        """An existing run; refuses in a sentence what is none, or comes from a newer Regard."""
        run = cls(Path(directory))
        if not (run.directory / "run.json").is_file():
            raise UsageError(_not_a_run(run.directory))
        version = run.info.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise RegardError(
                f"{run.directory} comes from a newer Regard ({run.info.get('regard', 'unknown')}; run format "
                f"{version}, this one knows {FORMAT}): upgrade with: pip install --upgrade regard"
            )
        return run

    @property
    def name(self) -> str:
        """The run's name: that of its directory."""
        return self.directory.resolve().name

    @property
    def info(self) -> dict[str, Any]:
        """What `run.json` says."""
        try:
            info = json.loads((self.directory / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RegardError(f"{self.directory / 'run.json'} cannot be read ({error}): the run is damaged.") from error
        if not isinstance(info, dict):
            raise RegardError(f"{self.directory / 'run.json'} does not describe a run: the run is damaged.")
        return info

    def note(self, **facts: Any) -> None:
        """Write facts into `run.json`; `None` takes a fact away."""
        info = {key: value for key, value in (self.info | facts).items() if value is not None}
        durable.write(self.directory / "run.json", json.dumps(info, indent=2, ensure_ascii=False) + "\n")

    @property
    def config(self) -> "RunConfig":
        """The run's configuration, fully resolved."""
        from regard.config.loading import load

        return load(self.directory / "config.yaml", [])

    def put_config(self, config: "RunConfig") -> None:
        """Replace the run's configuration."""
        from regard.config.loading import dump

        durable.write(self.directory / "config.yaml", dump(config))

    @property
    def data(self) -> Path:
        """The directory of its token stores."""
        return self.directory / "data"

    @property
    def tokenizers(self) -> Path:
        """The directory of its tokenizers."""
        return self.directory / "tokenizers"

    @property
    def checkpoints(self) -> Path:
        """The directory of its checkpoints."""
        return self.directory / "checkpoints"

    @property
    def metrics(self) -> Path:
        """The file of everything measured, one JSON object a line."""
        return self.directory / "metrics.jsonl"

    @property
    def card(self) -> Path:
        """The page that describes the run."""
        return self.directory / "README.md"

    @property
    def weights(self) -> Path:
        """The weights to use: the final ones, or while there are none those of the newest checkpoint."""
        final = self.directory / "model.safetensors"
        if final.is_file():
            return final
        if self.info.get("status") == "finished":
            raise RegardError(
                f"{final} is gone, and with it what this run has become: copy it back, or train a new run."
            )
        with_pointer = self.checkpoints / "latest"
        if with_pointer.is_file():
            return self.checkpoints / with_pointer.read_text().strip() / "model.safetensors"
        raise RegardError(
            f"The run {self.directory} has no weights yet. Train it further with: "
            f"regard train --resume {self.directory}"
        )

    @property
    def status(self) -> str:
        """`running`, `stopped` or `finished`; a run that was killed has stopped."""
        status = str(self.info.get("status", "stopped"))
        return "stopped" if status == "running" and not self._locked() else status

    def save_weights(self, weights: Mapping[str, Any]) -> Path:
        """Write the final weights in one act, sealed with the fingerprints of the run's tokenizers."""
        from regard.weights import save_weights

        path = self.directory / "model.safetensors"
        try:
            save_weights(path, weights, self._fingerprints())
        except OSError as error:
            raise RegardError(
                f"The final weights could not be written to {path}: {error.strerror or error}. The checkpoints are "
                f"whole; make room and continue with: regard train --resume {self.directory}"
            ) from error
        return path

    def load_weights(self, model: "nn.Module", fingerprints: Mapping[str, str] | None = None) -> None:
        """Put the run's weights into a model; with fingerprints, refuse tokenizers that do not belong to them."""
        from regard.weights import put_weights, read_weights

        path = self.weights
        if fingerprints is not None:
            self._check_tokenizers(fingerprints)
        put_weights(model, read_weights(path, fingerprints), origin=f"The weights in {path}")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for this process; the system lets go of it when the process ends, however it ends."""
        try:
            file = (self.directory / ".lock").open("a")
        except OSError as error:
            raise RegardError(f"The run {self.directory} cannot be written: {error.strerror or error}.") from error
        with file:
            if not _try_lock(file.fileno()):
                raise RegardError(
                    f"Another process is training {self.directory} at this moment: wait for it, "
                    "or choose another --run."
                )
            yield

    def _locked(self) -> bool:
        path = self.directory / ".lock"
        if not path.is_file():
            return False
        with path.open("r") as file:
            return not _try_lock(file.fileno())

    def _fingerprints(self) -> dict[str, str]:
        known = self.info.get("tokenizers") or {}
        try:
            return {side: str(facts["fingerprint"]) for side, facts in known.items()}
        except (AttributeError, KeyError, TypeError) as error:
            raise RegardError(
                f"{self.directory / 'run.json'} does not describe its tokenizers: it is damaged."
            ) from error

    def _check_tokenizers(self, fingerprints: Mapping[str, str]) -> None:
        for side, known in self._fingerprints().items():
            if fingerprints.get(side, known) != known:
                raise RegardError(
                    f"The {side} tokenizer in {self.tokenizers} does not belong to the model of this run: it was "
                    "trained with another one. Put back the tokenizers/ directory that came with it."
                )


def runs_under(directory: Path) -> list[Run]:
    """The runs in a directory (itself included), by name."""
    if (directory / "run.json").is_file():
        return [Run.open(directory)]
    if not directory.is_dir():
        return []
    found = sorted(path.parent for path in directory.glob("*/run.json") if not path.parent.name.startswith("."))
    return [Run(path) for path in found]


def age(created: str) -> float:
    """Seconds since a run was made."""
    return max(0.0, time.time() - datetime.fromisoformat(created).timestamp())


def _not_a_run(directory: Path) -> str:
    siblings = (
        {run.name: run.directory for run in runs_under(directory.parent)} if directory.parent != directory else {}
    )
    import difflib

    near = difflib.get_close_matches(directory.name, siblings, n=3, cutoff=0.4) or list(siblings)[:3]
    hint = f" Runs near it: {', '.join(str(siblings[name]) for name in near)}." if near else ""
    what = "is not a run (it has no run.json)" if directory.exists() else "does not exist"
    return f"{directory} {what}.{hint}"


def _try_lock(handle: int) -> bool:
    """Whether the lock could be had; it is held until the file is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _discard(aside: Path) -> None:
    if aside.is_dir():
        for file in aside.iterdir():
            file.unlink(missing_ok=True)
        aside.rmdir()
