"""A run: a self-contained directory with configuration, tokenizers, weights, metrics and card."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import regard
from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.runs.containment import check_contained
from regard.runs.file_lock import try_lock
from regard.runs.manifest import ABSENT, Digest, Manifest
from regard.runs.records import read_json
from regard.runs.run_info import FORMAT, read_info, write_info

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.config.run import RunConfig

    M = TypeVar("M", bound=nn.Module)


class Run:
    """One run directory: the paths of its parts, and its recorded facts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._configs: dict[tuple[str, ...], RunConfig] = {}

    @classmethod
    def create(cls, directory: Path, config: "RunConfig") -> Self:
        """Create a new run atomically: a directory with its configuration; raises if the directory is in use."""
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
            Manifest({"config.yaml": [Digest.of(aside / "config.yaml")]}).save(aside)
            write_info(aside, info)
            if not exists:
                aside.rename(directory)
                durable.flush(directory.parent)
        except OSError as error:
            raise RegardError(
                f"The run {directory} cannot be created: {error.strerror or error}. Choose another directory with "
                "--run DIR."
            ) from error
        finally:
            if not exists:
                _discard(aside)
        return cls(directory)

    @staticmethod
    def refuse_occupied(directory: Path) -> None:
        """Raise if a directory is not empty."""
        if (directory / "run.json").is_file():
            raise UsageError(
                f"There is already a run in {directory}. Choose another place (with regard train, --run), or resume "
                f"training with regard train --resume {directory}."
            )
        if directory.is_file() or (directory.is_dir() and any(directory.iterdir())):
            raise UsageError(
                f"{directory} exists and is not an empty directory. Choose another place (with regard train, --run)."
            )

    @classmethod
    def open(cls, directory: "Path | str | Run") -> "Run":
        """Open an existing run after quick checks; raises if it is not a run, damaged, or from a newer Regard.

        A run that is already open is returned unchanged, so that functions can take either.
        """
        if isinstance(directory, Run):
            return directory
        run = cls(Path(directory))
        if not (run.directory / "run.json").is_file():
            raise UsageError(_not_a_run(run.directory))
        check_contained(run.directory)
        run._manifest().check_quickly(run.directory)
        return run

    def verify(self) -> None:
        """Compare every file with the manifest, and every checkpoint with its checksums."""
        check_contained(self.directory)
        manifest = self._manifest()
        manifest.check(self.directory)
        if self.checkpoints.is_dir():
            from regard.runs.checkpoints import Checkpoints, Damaged

            checkpoints = Checkpoints(self.checkpoints)
            for step in checkpoints.steps():
                try:
                    checkpoints.load(step)
                except Damaged as damage:
                    raise RegardError(f"{checkpoints.path(step)} is damaged: {damage}.") from None

    def accept_changes(self) -> list[str]:
        """Update the manifest to the current files; return the names of those that had changed."""
        check_contained(self.directory)
        self._upgrade()
        manifest = Manifest.load(self.directory)
        names = [name for name in manifest.files if (self.directory / name).is_file()]
        now = {name: [Digest.of(self.directory / name)] for name in names}
        changed = [name for name, known in manifest.files.items() if now.get(name, [None])[0] not in known]
        Manifest(now).save(self.directory)
        content = read_json(self.directory / "run.json")
        if isinstance(content, dict):
            write_info(self.directory, content | {"format": FORMAT})
        return changed

    def record(self, *folders: str) -> None:
        """Add the files of some folders to the manifest; entries that exist are kept."""
        manifest = self._manifest()
        added = [manifest.add_folder(self.directory, folder) for folder in folders]
        if any(added):
            manifest.save(self.directory)

    def check(self, folder: str) -> None:
        """Compare the files of a folder with the manifest."""
        manifest = self._manifest()
        manifest.check(self.directory, manifest.under(folder))

    def remove_leftovers(self) -> None:
        """Remove temporary files that a killed process has left."""
        for leftover in self.directory.rglob(".*.aside"):
            if leftover.is_file():
                leftover.unlink(missing_ok=True)

    def _upgrade(self) -> None:
        """Create the manifest of a run of the first format, which had none, from its current files."""
        manifest = Manifest.load(self.directory)
        for name in ("config.yaml", "model.safetensors"):
            if (self.directory / name).is_file():
                manifest.files.setdefault(name, [Digest.of(self.directory / name)])
        for folder in ("tokenizers", "data"):
            manifest.add_folder(self.directory, folder)
        manifest.save(self.directory)

    def _manifest(self) -> Manifest:
        return Manifest.load(self.directory, demanded=self.info["format"] > 1)

    def _replace(self, name: str, make: Callable[[Path], object]) -> None:
        """Replace a file of the manifest so that the run stays valid even if the process is killed."""
        manifest, path = self._manifest(), self.directory / name
        known = [Digest.of(path) if path.is_file() else ABSENT]

        def announce(aside: Path) -> None:
            manifest.files[name] = [*known, Digest.of(aside)]
            manifest.save(self.directory)

        durable.build(path, make, announce)
        manifest.files[name] = manifest.files[name][-1:]
        manifest.save(self.directory)

    @property
    def name(self) -> str:
        """The run's name: that of its directory."""
        return self.directory.resolve().name

    @property
    def info(self) -> dict[str, Any]:
        """The content of `run.json`, with checked types."""
        return read_info(self.directory)

    def note(self, **facts: Any) -> None:
        """Write facts into `run.json`; `None` removes a fact."""
        known = self.info
        if known["format"] == 1:
            self._upgrade()
        info = known | {"format": FORMAT} | facts
        write_info(self.directory, {key: value for key, value in info.items() if value is not None})

    @property
    def config(self) -> "RunConfig":
        """The run's configuration, fully resolved."""
        return self.load_config()

    def load_config(self, overrides: Sequence[str] = ()) -> "RunConfig":
        """Return the run's configuration with some settings changed; the extensions that it needs must be loaded."""
        from regard.config.loading import load

        key = tuple(overrides)
        if key not in self._configs:
            self._configs[key] = load(self.directory / "config.yaml", overrides, of_run=True)
        return self._configs[key]

    def put_config(self, config: "RunConfig") -> None:
        """Replace the run's configuration."""
        from regard.config.loading import dump

        content = dump(config).encode()
        self._replace("config.yaml", lambda aside: aside.write_bytes(content))
        self._configs.clear()

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
        """The file of all measurements, one JSON object per line."""
        return self.directory / "metrics.jsonl"

    @property
    def card(self) -> Path:
        """The page that describes the run."""
        return self.directory / "README.md"

    @property
    def weights(self) -> Path:
        """The weights to use: the final ones, or those of the newest checkpoint if there are none."""
        final = self.directory / "model.safetensors"
        if final.is_file():
            return final
        if self.info.get("status") == "finished":
            raise RegardError(
                f"{final} is missing: the final weights of this run are lost. Restore the file, or train a new run."
            )
        if self.checkpoints.is_dir():
            from regard.runs.checkpoints import Checkpoints

            newest = Checkpoints(self.checkpoints).latest_weights()
            if newest is not None and newest[0].is_dir():
                raise RegardError(
                    f"The run {self.directory} is not finished, and its checkpoints are divided among processes. "
                    f"Finish it with regard train --resume {self.directory}, or open a checkpoint in Python: "
                    "regard.load(run, step=N)."
                )
            if newest is not None:
                return newest[0]
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
        """Write the final weights atomically, with the fingerprints of the run's tokenizers."""
        from regard.foundation.weights import write_tensors

        path = self.directory / "model.safetensors"
        facts = {"tokenizers": self._fingerprints()}
        try:
            self.record("tokenizers")
            self._replace(path.name, lambda aside: write_tensors(aside, weights, facts))
        except OSError as error:
            raise RegardError(
                f"The final weights could not be written to {path}: {error.strerror or error}. The checkpoints are "
                f"intact. Free some space, then resume with: regard train --resume {self.directory}"
            ) from error
        return path

    def read_weights(self, fingerprints: Mapping[str, str] | None = None) -> "dict[str, Tensor]":
        """Return the run's weights by name, after comparing the file with the manifest."""
        from regard.foundation.weights import read_weights

        path = self.weights
        if path.parent == self.directory:
            self._manifest().check(self.directory, [path.name])
        return read_weights(path, fingerprints)

    def load_model(self, build: "Callable[[], M]", fingerprints: Mapping[str, str], step: int | None = None) -> "M":
        """Build a model and load the run's weights, or those of the checkpoint of a step.

        Raises `RegardError` if the tokenizers do not belong to the weights.
        """
        from regard.foundation.weights import build_to_fit, put_weights

        self._check_tokenizers(fingerprints)
        weights, origin = (
            (self.read_weights(fingerprints), f"The weights in {self.weights}")
            if step is None
            else (self._checkpoint_weights(step), f"The checkpoint of step {step:,} in {self.checkpoints}")
        )
        model = build_to_fit(build, sum(tensor.numel() for tensor in weights.values()), origin)
        put_weights(model, weights, origin=origin)
        return model

    @property
    def checkpoint_steps(self) -> list[int]:
        """The steps of the checkpoints that are kept, ascending."""
        from regard.runs.checkpoints import Checkpoints

        return Checkpoints(self.checkpoints).steps()

    def _checkpoint_weights(self, step: int) -> "Mapping[str, Tensor]":
        from regard.runs.checkpoints import Checkpoints, Damaged

        if step not in self.checkpoint_steps:
            kept = ", ".join(f"{one:,}" for one in self.checkpoint_steps) or "none"
            raise RegardError(f"{self.directory} has no checkpoint of step {step:,}. Those that are kept: {kept}.")
        try:
            return Checkpoints(self.checkpoints).load(step).model
        except Damaged as damage:
            raise RegardError(f"The checkpoint of step {step:,} in {self.checkpoints} is damaged: {damage}.") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run for this process; the system releases the lock when the process ends for any reason."""
        try:
            path = self.directory / ".lock"
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise RegardError(f"The run {self.directory} cannot be written: {error.strerror or error}.") from error
        with os.fdopen(handle, "a") as file:
            if not try_lock(file.fileno()):
                raise RegardError(
                    f"Another process is training {self.directory}. Wait for it, or choose another --run."
                )
            yield

    def _locked(self) -> bool:
        path = self.directory / ".lock"
        if not path.is_file():
            return False
        with path.open("r") as file:
            return not try_lock(file.fileno())

    def _fingerprints(self) -> dict[str, str]:
        return {side: facts["fingerprint"] for side, facts in (self.info.get("tokenizers") or {}).items()}

    def _check_tokenizers(self, fingerprints: Mapping[str, str]) -> None:
        for side, known in self._fingerprints().items():
            if fingerprints.get(side, known) != known:
                raise RegardError(
                    f"The {side} tokenizer in {self.tokenizers} does not belong to the model of this run, which was "
                    "trained with another one. Restore the tokenizers/ directory of the run."
                )


def runs_under(directory: Path) -> list[Run]:
    """Return the runs in a directory (itself included), by name."""
    if (directory / "run.json").is_file():
        return [Run(directory)]
    if not directory.is_dir():
        return []
    found = sorted(path.parent for path in directory.glob("*/run.json") if not path.parent.name.startswith("."))
    return [Run(path) for path in found]


def age(created: str) -> float:
    """Return the seconds since a run was created."""
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


def _discard(aside: Path) -> None:
    if aside.is_dir():
        for file in aside.iterdir():
            file.unlink(missing_ok=True)
        aside.rmdir()
