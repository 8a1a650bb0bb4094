"""How processes share the training of one model: each computes the gradients of its rows of a batch.

- alone: one process, or processes whose gradients are summed after the backward pass (`Shared`);
- DDP: every process has the whole model; gradients are summed during the backward pass (Li et al., 2020);
- FSDP2: parameters, gradients and optimizer state are divided among the processes; each layer's parameters are gathered
  when it is computed (Rajbhandari et al., 2020; Zhao et al., 2023).

The loss of a batch is a sum over its rows, so that all of them compute the same update up to rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import signature
from typing import TYPE_CHECKING, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket

from regard.config.run import RunConfig
from regard.models.encoders import TransformerEncoderLayer
from regard.models.transformer_decoder import TransformerDecoderLayer
from regard.objectives.objective import Loss
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.training.ranks import Ranks

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


class LossModule(nn.Module):
    """The loss of a batch as one call of a module, which is what DDP and FSDP2 attach to."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(self, batch: TrainingBatch, scale: float, point: TrainingPoint) -> tuple[Tensor, Tensor]:
        """Return the smoothed loss times `scale`, and the summed negative log-likelihood."""
        loss: Loss = self.task.output.loss(self.model, batch, scale=scale, point=point)
        return loss.smoothed, loss.nll


class Shared:
    """One process; or several, whose gradients are summed after the backward pass."""

    name = "one sum after the backward pass"
    is_sharded = False

    def __init__(self, module: LossModule, ranks: Ranks) -> None:
        self.module: nn.Module = module
        self.ranks = ranks

    def loss(self, batch: TrainingBatch, scale: float, point: TrainingPoint) -> tuple[Tensor, Tensor]:
        """Return the smoothed loss times `scale`, and the summed negative log-likelihood, of this process's rows."""
        smoothed, nll = self.module(batch, scale, point)
        return smoothed, nll

    def backward_of(self, *, last: bool) -> AbstractContextManager[None]:
        """Context of a backward pass; gradients are exchanged in the `last` one of an update."""
        return nullcontext()

    def exchange(self, gradients: Sequence[Tensor]) -> None:
        """Sum the gradients over all processes, if the backward pass has not done so."""
        self.ranks.add_up(gradients)

    def scaler(self, *, enabled: bool) -> torch.amp.GradScaler:
        """Return the scaler of losses in half precision; all processes use the same scale."""
        return torch.amp.GradScaler(self.ranks.device.type, enabled=enabled)

    def whole(self, tensor: Tensor) -> Tensor:
        """Return all of a tensor of which this process may hold a part; every process must call it."""
        return tensor

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """Return the part of a whole tensor that this process holds of `like`."""
        return tensor


class Ddp(Shared):
    """torch's DistributedDataParallel: gradients are summed in buckets while the backward pass goes on."""

    name = "DDP"

    def __init__(self, module: LossModule, ranks: Ranks) -> None:
        super().__init__(module, ranks)
        kind: Callable[..., nn.parallel.DistributedDataParallel] = nn.parallel.DistributedDataParallel
        newer = "forward_sync_buffers" in signature(kind).parameters
        self._wrapped = kind(
            module,
            device_ids=[ranks.device] if ranks.device.type == "cuda" else None,
            find_unused_parameters=True,  # frozen layers, and parts that a batch does not use
            **{"forward_sync_buffers" if newer else "broadcast_buffers": False},  # buffers are constant
        )
        self._wrapped.register_comm_hook(None, _sum_bucket)
        self.module = self._wrapped

    @contextmanager
    def backward_of(self, *, last: bool) -> Iterator[None]:
        """Context of a backward pass; gradients are exchanged in the `last` one of an update."""
        with nullcontext() if last else self._wrapped.no_sync():
            yield

    def exchange(self, gradients: Sequence[Tensor]) -> None:
        """Do nothing: the backward pass has summed the gradients."""


class Fsdp(Shared):
    """torch's FSDP2 (`fully_shard`): every Transformer layer is a unit, all other parameters are another."""

    name = "FSDP2"
    is_sharded = True

    def __init__(self, module: LossModule, ranks: Ranks, *, layers: bool) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        super().__init__(module, ranks)
        mesh = init_device_mesh(ranks.device.type, (ranks.world_size,))
        kinds = (TransformerEncoderLayer, TransformerDecoderLayer) if layers else ()
        units: list[nn.Module] = [child for child in module.modules() if isinstance(child, kinds)]
        for unit in units:
            fully_shard(unit, mesh=mesh)
        fully_shard(module, mesh=mesh, reshard_after_forward=False)
        self._sharded = cast("FSDPModule", module)
        for unit in (*units, module):
            sharded = cast("FSDPModule", unit)
            sharded.set_gradient_divide_factor(1.0)  # the loss is divided by the predictions of all processes
            sharded.set_force_sum_reduction_for_comms(True)

    @contextmanager
    def backward_of(self, *, last: bool) -> Iterator[None]:
        """Context of a backward pass; gradients are exchanged in the `last` one of an update."""
        self._sharded.set_requires_gradient_sync(last)
        yield

    def exchange(self, gradients: Sequence[Tensor]) -> None:
        """Do nothing: the backward pass has summed the gradients."""

    def scaler(self, *, enabled: bool) -> torch.amp.GradScaler:
        """Return a scaler that agrees with those of the other processes on whether a gradient is finite."""
        from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

        return ShardedGradScaler(self.ranks.device.type, enabled=enabled)

    def whole(self, tensor: Tensor) -> Tensor:
        """Return all of a tensor of which this process may hold a part; every process must call it."""
        from torch.distributed.tensor import DTensor

        if not isinstance(tensor, DTensor):
            return tensor
        with self.ranks.connected():
            return tensor.full_tensor()

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """Return the part of a whole tensor that this process holds of `like`."""
        from torch.distributed.tensor import DTensor, distribute_tensor

        if not isinstance(like, DTensor) or tensor.shape != like.shape:
            return tensor
        # Every process has the whole tensor, so that none of it is sent.
        return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def choose(config: RunConfig, module: LossModule, ranks: Ranks, *, threads: int) -> Shared:
    """Return how processes share the training: as `training.parallel` says.

    Threads that share a batch within a process compute gradients themselves, which DDP does not see; these are summed
    after the backward pass.
    """
    if ranks.world_size == 1:
        return Shared(module, ranks)
    if config.training.parallel == "fsdp":
        # Scheduled sampling may run layers step by step, outside their forward pass.
        return Fsdp(module, ranks, layers=config.training.exposure.scheduled_sampling.kind == "none")
    return Ddp(module, ranks) if threads == 1 else Shared(module, ranks)


def _sum_bucket(_: None, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    """Sum a bucket of gradients over all processes; DDP by itself would divide by their number."""
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    assert work is not None
    future: torch.futures.Future[list[Tensor]] = work.get_future()
    return future.then(lambda done: done.value()[0])
