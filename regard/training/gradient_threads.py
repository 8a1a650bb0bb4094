"""Threads that compute gradients: each takes some rows of a batch, and their gradients are summed.

On a CPU the matrices of a small model are too small to divide among cores, which would mostly wait for each other. It
is faster to give each core its own rows. The result is the same: the loss is a sum over rows, gradients are added in
the order of the shares, and each share has its own seed from the trainer's generator, so that a run can be resumed bit
for bit.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor, nn

from regard.nn.dropout import drawn_from
from regard.objectives.objective import Loss
from regard.tasks.training_batch import TrainingBatch

LARGEST = 4
"""Maximum number of shares: more threads would wait for Python's lock. On larger machines each uses several cores."""

Found = TypeVar("Found")
LossFunction = Callable[[TrainingBatch, torch.Generator], Loss]
"""Computes the loss of a share of a batch; the generator is used for scheduled sampling."""


class GradientThreads:
    """A pool of threads, one for each share: as many as torch's threads, up to four."""

    def __init__(self, size: int | None = None) -> None:
        self.threads = torch.get_num_threads()
        self.size = min(LARGEST, self.threads) if size is None else size
        self._pool: ThreadPoolExecutor | None = None

    def backward(self, model: nn.Module, batch: TrainingBatch, loss_fn: LossFunction) -> tuple[Tensor, Tensor]:
        """Add the gradients of a batch to those of the model; return its loss and summed negative log-likelihood."""
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        shares = batch.shares(self.size)
        seeds = torch.randint(
            2**62, (len(shares), 2)
        ).tolist()  # from the global generator, whose state checkpoints contain
        found = self.run(
            [partial(_gradients, loss_fn, *share, parameters) for share in zip(shares, seeds, strict=True)]
        )
        for _, gradients in found:
            _add(parameters, gradients)
        loss = torch.stack([loss.smoothed.detach() for loss, _ in found]).sum()
        return loss, torch.stack([loss.nll for loss, _ in found]).sum()

    def run(self, calls: Sequence[Callable[[], Found]]) -> list[Found]:
        """Return what each call returns; every thread takes the next call as soon as it is free."""
        numbers = count()
        found: dict[int, Found] = {}

        def take() -> None:
            while (number := next(numbers)) < len(calls):
                found[number] = calls[number]()

        torch.set_num_threads(self._each)
        try:
            others = [self._others().submit(take) for _ in range(min(self.size, len(calls)) - 1)]
            take()
            for other in others:
                other.result()
        finally:
            torch.set_num_threads(self.threads)
        return [found[number] for number in range(len(calls))]

    def close(self) -> None:
        """End the threads."""
        if self._pool:
            self._pool.shutdown()
            self._pool = None

    @property
    def _each(self) -> int:
        """The number of torch threads of each share."""
        return max(1, self.threads // self.size)

    def _others(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.size - 1, "learning", initializer=_begin, initargs=(self._each,))
        return self._pool


def _begin(threads: int) -> None:
    """Set torch's per-thread settings."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def _gradients(
    loss_fn: LossFunction, share: TrainingBatch, seeds: Sequence[int], parameters: Sequence[nn.Parameter]
) -> tuple[Loss, Sequence[Tensor | None]]:
    """Return the loss of a share and its gradients, computed with its own random generators."""
    drops, exposes = (torch.Generator().manual_seed(seed) for seed in seeds)
    with drawn_from(drops):
        loss = loss_fn(share, exposes)
    gradients = torch.autograd.grad(loss.smoothed, parameters, allow_unused=True)
    return loss, gradients


def _add(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Add gradients to the existing ones."""
    there = [
        (parameter.grad, gradient)
        for parameter, gradient in zip(parameters, gradients, strict=True)
        if parameter.grad is not None and gradient is not None
    ]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if parameter.grad is None and gradient is not None:
            parameter.grad = gradient
    if there:
        torch._foreach_add_([mine for mine, _ in there], [more for _, more in there])
