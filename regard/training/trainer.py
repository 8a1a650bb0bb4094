"""The trainer: a model and its optimizer; each update is a pure function of the state before it."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches, Cursor
from regard.foundation.device import choose_precision, describe
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import check_weights, put_weights, weights_of
from regard.objectives.objective import Loss
from regard.runs.checkpoints import Checkpoint
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.training import optimizer as optimizers
from regard.training import parallel
from regard.training.ahead import Ahead
from regard.training.ema import MovingAverage
from regard.training.gradient_threads import GradientThreads
from regard.training.progress import Progress, Window
from regard.training.ranks import Ranks
from regard.training.schedule import learning_rate
from regard.training.start import Tuning

EXPOSURE_SEED = 1_000_003
"""Offset between the seeds of scheduled sampling and dropout."""
STEP_SEED = 7_919
"""Offset between the seeds of ranks that continue after different steps."""
SHARED_BATCHES = "shared"
"""In checkpoints: the processes share every batch. Earlier versions gave each process batches of its own."""


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
        divides = device.type == "cpu" and (self.ranks.world_size == 1 or self.training.parallel == "ddp")
        self.threads = threads or GradientThreads(None if divides else 1)
        seed = self.training.seed % 2**62  # the range of torch's generators, with room for ranks
        torch.manual_seed(seed)
        self.model: nn.Module = (build or task.build)().to(device)
        self._seed_ranks(0)
        _freeze(self.model, self.training.frozen or [])
        self._names = list(weights_of(self.model))
        self.parallel = parallel.choose(
            config, parallel.LossModule(task, self.model), self.ranks, threads=self.threads.size
        )
        self.optimizer = optimizers.build(
            self.training.optimizer, self.model, self.threads.run, whole=self.parallel.whole, part=self.parallel.part
        )
        self.average = MovingAverage(self.model, self.training.ema) if self.training.ema else None
        self.precision = choose_precision(self.training.precision, device)
        self.scaler = self.parallel.scaler(enabled=self.precision == torch.float16)
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
        """Run one step: compute gradients of `accumulate` batches, which all ranks share; apply them if finite."""
        start = time.monotonic()
        progress, training = self.progress, self.training
        parts = [self._next() for _ in range(training.accumulate)]
        counted = [sum(batch.count for batch in parts), float(stop)]
        total, stops = self.ranks.total(counted)
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
        with self.ranks.connected():
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
        self._put({**self.weights(), **weights})
        if self.average:
            self.average.put(dict(self.model.named_parameters()))

    def take_window(self) -> Window:
        """Return the sums since the last call, and reset them."""
        window, self.progress.window = self.progress.window, Window()
        return window

    def snapshot(self, *, score: float | None, regular: bool) -> Checkpoint:
        """Return a checkpoint of the current step, if the model is divided with this rank's part of its tensors.

        Every rank must call it.
        """
        randoms, state = self._random_states(), self.model.state_dict()
        tensors = {f"optimizer/{key}": value for key, value in optimizers.state_of(self.optimizer, self.model).items()}
        if self.average:
            tensors |= {f"average/{name}": tensor for name, tensor in self.average.shadow.items()}
        for name, random in randoms.items():
            tensors |= {f"random/{name}/{rank}": part for rank, part in enumerate(self.ranks.gather_tensors(random))}
        return Checkpoint(
            step=self.progress.step,
            model={name: state[name].detach() for name in self._names},
            training=tensors,
            state={**self.progress.to_json(), "scaler": self.scaler.state_dict(), "batches": SHARED_BATCHES},
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
        if progress.world_size > 1 and checkpoint.state.get("batches") != SHARED_BATCHES:
            raise RegardError(
                f"This run was trained by {progress.world_size} processes of an earlier Regard, which divided the data "
                "in another way. Resume it with that version, or start a new run from its weights (model.start_from)."
            )
        others = progress.world_size != self.ranks.world_size
        progress.world_size = self.ranks.world_size
        self.progress = progress
        self._put(checkpoint.model, origin=f"The weights of the checkpoint of step {checkpoint.step}")
        parts: dict[str, dict[str, Tensor]] = {"optimizer": {}, "average": {}, "random": {}}
        for key, tensor in checkpoint.training.items():
            part, name = key.split("/", 1)
            parts[part][name] = tensor
        optimizers.put_state(self.optimizer, self.model, parts["optimizer"], part=self.parallel.part)
        if self.average:
            shadow = self.average.shadow
            self.average.put({name: self.parallel.part(parts["average"][name], shadow[name]) for name in shadow})
        if others:
            self._seed_ranks(progress.step)
        else:
            self._put_random_states(parts["random"])
        self.close()

    def weights(self) -> dict[str, Tensor]:
        """Return the whole weights of the model, each shared tensor once; every rank must call it."""
        state = self.model.state_dict()
        return {name: self.parallel.whole(state[name].detach()) for name in self._names}

    @contextmanager
    def inference_model(self) -> Iterator[nn.Module]:
        """Context with a model of whole, current weights for inference: their moving average, if there is one.

        If the weights are divided among processes, it is a copy, so that every process can use it at its own pace.
        """
        if not self.parallel.is_sharded:
            with self.average.applied() if self.average else nullcontext():
                yield self.model
            return
        weights = self.weights()
        if self.average:
            weights |= {name: self.parallel.whole(tensor) for name, tensor in self.average.shadow.items()}
        yield self.plain_model(weights)

    def plain_model(self, weights: Mapping[str, Tensor]) -> nn.Module:
        """Return a model with given weights: the trained one, or a copy if that is divided among processes."""
        if not self.parallel.is_sharded:
            put_weights(self.model, weights)
            return self.model
        with torch.random.fork_rng():
            model: nn.Module = self.task.build().to(self.device)
        put_weights(model, weights)
        return model

    def _put(self, weights: Mapping[str, Tensor], origin: str = "The weights") -> None:
        """Load whole weights into the model, or into this rank's part of it."""
        if not self.parallel.is_sharded:
            put_weights(self.model, weights, origin=origin)
            return
        state = self.model.state_dict()
        own = {name: state[name] for name in self._names}
        check_weights(own, weights, origin=origin)
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(self.parallel.part(weights[name], tensor))

    def _seed_ranks(self, step: int) -> None:
        """Seed the generators of this rank: each has its own dropout and sampling."""
        seed = self.training.seed % 2**62 + step * STEP_SEED
        torch.manual_seed(seed + self.ranks.rank)
        self.random = torch.Generator().manual_seed(seed + EXPOSURE_SEED * (1 + self.ranks.rank))

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
        made = self.task.training_batch(batch, self.random, training=True).to(self.device)
        return replace(made, count=0) if batch.stands_in else made

    def _backward(self, parts: Sequence[TrainingBatch], scale: float) -> tuple[Tensor, Tensor]:
        """Compute gradients of the mean loss; return that loss and the summed negative log-likelihood of this rank."""

        def loss_fn(batch: TrainingBatch, random: torch.Generator) -> Loss:
            point = TrainingPoint(self.progress.step, self.training.steps, random)
            with self._autocast():
                return self.task.output.loss(self.model, batch, scale=scale if batch.count else 0.0, point=point)

        loss = nll = torch.zeros((), device=self.device)
        for number, batch in enumerate(parts, start=1):
            if self.threads.size > 1:
                more_loss, more_nll = self.threads.backward(self.model, batch, loss_fn)
            else:
                point = TrainingPoint(self.progress.step, self.training.steps, self.random)
                with self.parallel.backward_of(last=number == len(parts)):
                    with self._autocast():
                        more_loss, more_nll = self.parallel.loss(batch, scale if batch.count else 0.0, point)
                    self.scaler.scale(more_loss).backward()  # type: ignore[no-untyped-call]
                more_loss = more_loss.detach()
            loss, nll = loss + more_loss, nll + (more_nll if batch.count else 0)
        return loss, nll

    def _autocast(self) -> AbstractContextManager[None]:
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)

    def _gradient_norm(self) -> Tensor:
        """Sum the gradients over all ranks, and return the norm of the whole gradient."""
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        self.parallel.exchange(gradients)
        self.scaler.unscale_(self.optimizer)
        if not gradients:
            return torch.zeros((), device=self.device)
        return self.parallel.whole(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))

    def _numbers(self, loss: Tensor, nll: Tensor, norm: Tensor) -> tuple[float, float, float]:
        """Return loss and negative log-likelihood over all ranks, and the norm, with one device synchronisation."""
        loss_value, nll_value, norm_value = torch.stack([loss, nll, norm]).tolist()
        loss_value, nll_value = self.ranks.total([loss_value, nll_value])
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
