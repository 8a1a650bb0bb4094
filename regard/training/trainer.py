"""The trainer: a model and its optimizer; each update is a pure function of the state before it."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches, Cursor
from regard.foundation.device import choose_precision, describe
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import put_weights, weights_of
from regard.objectives.objective import Loss
from regard.runs.checkpoints import Checkpoint
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.training import optimizer as optimizers
from regard.training.ahead import Ahead
from regard.training.ema import MovingAverage
from regard.training.gradient_threads import GradientThreads
from regard.training.progress import Progress, Window
from regard.training.ranks import Ranks
from regard.training.schedule import learning_rate
from regard.training.start import Tuning

EXPOSURE_SEED = 1_000_003
"""Offset between the seeds of scheduled sampling and dropout."""


class Trainer:
    """All state that changes from step to step; `snapshot` returns and `restore` loads all of it."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        batches: Batches,
        *,
        device: torch.device,
        ranks: Ranks | None = None,
        threads: GradientThreads | None = None,
        build: Callable[[], nn.Module] | None = None,
    ) -> None:
        self.config = config
        self.training = config.training
        self.task = task
        self.batches = batches
        self.device = device
        self.ranks = ranks or Ranks()
        self.threads = threads or GradientThreads(None if device.type == "cpu" else 1)
        seed = self.training.seed % 2**62  # the range of torch's generators, with room for ranks
        torch.manual_seed(seed)
        self.model: nn.Module = (build or task.build)().to(device)
        torch.manual_seed(seed + self.ranks.rank)  # each rank has its own dropout
        self.random = torch.Generator().manual_seed(seed + EXPOSURE_SEED * (1 + self.ranks.rank))
        _freeze(self.model, self.training.frozen or [])
        self.optimizer = optimizers.build(self.training.optimizer, self.model, self.threads.run)
        self.average = MovingAverage(self.model, self.training.ema) if self.training.ema else None
        self.precision = choose_precision(self.training.precision, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self.machine = f"{describe(device)}, torch {torch.__version__}"
        self.progress = Progress(
            total=self.training.steps, cursor=Cursor(), world_size=self.ranks.world_size, machine=self.machine
        )
        self.rate = 0.0
        self.others_stop = False
        """Whether some rank was asked to stop before the last update."""
        self.tuning = Tuning()
        """When weights that were loaded from another run are trained."""
        self._stream: Ahead[tuple[Batch, Cursor]] | None = None

    def update(self, *, stop: bool = False) -> None:
        """Run one step: compute gradients of `accumulate` batches on every rank, clip and apply them if finite."""
        start = time.monotonic()
        progress, training = self.progress, self.training
        parts = [self._next() for _ in range(training.accumulate)]
        counted = [sum(batch.count for batch in parts), float(stop)]
        total, stops = self.ranks.total(counted, self.device)
        self.others_stop = stops > 0
        progress.step += 1
        self.rate = learning_rate(
            training.schedule,
            training.optimizer.learning_rate or 0.0,
            progress.step,
            training.steps,
            progress.plateau,
        )
        optimizers.set_rate(self.optimizer, self.rate)

        self.model.train()
        self.tuning.apply(self.model, progress.step, training.steps)
        loss, nll = self._backward(parts, 1 / max(1.0, total))
        norm = self._gradient_norm()
        loss_value, nll_value, norm_value = self._numbers(loss, nll, norm)
        if math.isfinite(loss_value) and math.isfinite(norm_value):
            self._apply(norm_value)
            progress.bad_in_row = 0
            window = progress.window
            window.loss += loss_value * total
            window.nll += nll_value
            window.tokens += int(total)
            window.norm = max(window.norm, norm_value)
        else:
            progress.skipped += 1
            progress.bad_in_row += 1
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average:
            self.average.update(progress.step)
        elapsed = time.monotonic() - start
        progress.tokens += int(total)
        progress.window.seconds += elapsed
        progress.update_seconds += elapsed
        progress.seconds += elapsed

    def start_with(self, weights: Mapping[str, Tensor]) -> None:
        """Load weights of another run, before the first step."""
        put_weights(self.model, {**weights_of(self.model), **weights})
        if self.average:
            self.average.put(dict(self.model.named_parameters()))

    def take_window(self) -> Window:
        """Return the sums since the last call, and reset them."""
        window, self.progress.window = self.progress.window, Window()
        return window

    def snapshot(self, *, score: float | None, regular: bool) -> Checkpoint:
        """Return a checkpoint of the current step; every rank must call it."""
        randoms = self._random_states()
        tensors = {f"optimizer/{key}": value for key, value in optimizers.state_of(self.optimizer, self.model).items()}
        if self.average:
            tensors |= {f"average/{name}": tensor for name, tensor in self.average.shadow.items()}
        for name, state in randoms.items():
            tensors |= {
                f"random/{name}/{rank}": part for rank, part in enumerate(self.ranks.gather(state, self.device))
            }
        return Checkpoint(
            step=self.progress.step,
            model=weights_of(self.model),
            training=tensors,
            state={**self.progress.to_json(), "scaler": self.scaler.state_dict()},
            score=score,
            regular=regular,
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint; raises `RegardError` for one that does not fit the run."""
        try:
            self._restore(checkpoint)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise RegardError(
                f"The checkpoint of step {checkpoint.step} does not belong to this run ({error}). Restore the "
                "original, or remove it to continue from an earlier one."
            ) from error

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.scaler.load_state_dict(dict(checkpoint.state["scaler"]))
        progress = Progress.from_json(checkpoint.state, Path("state.json"))
        if progress.world_size != self.ranks.world_size:
            raise RegardError(
                f"This run was trained by {progress.world_size} processes and is resumed by {self.ranks.world_size}. "
                f"Use torchrun --nproc-per-node {progress.world_size} -m regard train --resume RUN."
            )
        self.progress = progress
        put_weights(self.model, checkpoint.model, origin=f"The weights of the checkpoint of step {checkpoint.step}")
        parts: dict[str, dict[str, Tensor]] = {"optimizer": {}, "average": {}, "random": {}}
        for key, tensor in checkpoint.training.items():
            part, name = key.split("/", 1)
            parts[part][name] = tensor
        optimizers.put_state(self.optimizer, self.model, parts["optimizer"])
        if self.average:
            self.average.put(parts["average"])
        self._put_random_states(parts["random"])
        self.close()

    def inference_weights(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        """Return the weights of a checkpoint for inference: their moving average, if there is one."""
        weights = dict(checkpoint.model)
        for key, tensor in checkpoint.training.items():
            if key.startswith("average/"):
                weights[key.removeprefix("average/")] = tensor
        return weights

    def close(self) -> None:
        """Stop the threads that prefetch batches and compute gradients."""
        if self._stream:
            self._stream.close()
            self._stream = None
        self.threads.close()

    def _next(self) -> TrainingBatch:
        """Return the next batch, on the device."""
        if self._stream is None:
            self._stream = Ahead(self.batches.after(self.progress.cursor))
        batch, cursor = next(self._stream)
        self.progress.cursor = cursor
        return self.task.training_batch(batch, self.random, training=True).to(self.device)

    def _backward(self, parts: Sequence[TrainingBatch], scale: float) -> tuple[Tensor, Tensor]:
        """Compute gradients of the mean loss; return that loss and the summed negative log-likelihood of this rank."""

        def loss_fn(batch: TrainingBatch, random: torch.Generator) -> Loss:
            point = TrainingPoint(self.progress.step, self.training.steps, random)
            with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
                return self.task.output.loss(self.model, batch, scale=scale, point=point)

        loss = nll = torch.zeros((), device=self.device)
        for batch in parts:
            if self.threads.size > 1:
                more_loss, more_nll = self.threads.backward(self.model, batch, loss_fn)
            else:
                part = loss_fn(batch, self.random)
                self.scaler.scale(part.smoothed).backward()  # type: ignore[no-untyped-call]
                more_loss, more_nll = part.smoothed.detach(), part.nll
            loss, nll = loss + more_loss, nll + more_nll
        return loss, nll

    def _gradient_norm(self) -> Tensor:
        """Sum the gradients over all ranks, and return the norm of the whole gradient."""
        self.scaler.unscale_(self.optimizer)
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        self.ranks.add_up(gradients)
        if not gradients:
            return torch.zeros((), device=self.device)
        norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        return norm

    def _numbers(self, loss: Tensor, nll: Tensor, norm: Tensor) -> tuple[float, float, float]:
        """Return loss and negative log-likelihood over all ranks, and the norm, with one device synchronisation."""
        loss_value, nll_value, norm_value = torch.stack([loss, nll, norm]).tolist()
        loss_value, nll_value = self.ranks.total([loss_value, nll_value], self.device)
        return loss_value, nll_value, norm_value

    def _apply(self, norm: float) -> None:
        clip = self.training.clip
        if clip and norm > clip:
            gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
            torch._foreach_mul_(gradients, clip / norm)
        self.scaler.step(self.optimizer)

    def _random_states(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state(), "exposure": self.random.get_state()}
        if self.device.type == "cuda":
            states["device"] = torch.cuda.get_rng_state(self.device)
        elif self.device.type == "mps":
            states["device"] = torch.mps.get_rng_state()
        return states

    def _put_random_states(self, states: dict[str, Tensor]) -> None:
        rank = self.ranks.rank
        torch.set_rng_state(states[f"cpu/{rank}"])
        self.random.set_state(states[f"exposure/{rank}"])
        device = states.get(f"device/{rank}")
        if device is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(device, self.device)
        elif device is not None and self.device.type == "mps":
            torch.mps.set_rng_state(device)


def _freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Freeze the parameters whose names match a pattern."""
    parameters = dict(model.named_parameters())
    for pattern in patterns:
        matching = [parameter for name, parameter in parameters.items() if fnmatchcase(name, pattern)]
        if not matching:
            raise UsageError(
                f"training.frozen has {pattern}, which matches no parameter. Names of parameters begin with "
                f"{', '.join(sorted({name.split('.')[0] for name in parameters}))}."
            )
        for parameter in matching:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise UsageError("training.frozen matches all parameters, so that nothing can be trained. Name fewer of them.")
