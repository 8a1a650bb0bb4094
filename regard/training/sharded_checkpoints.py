"""Checkpoints of a model that is divided among processes: each writes its part while training goes on.

torch.distributed.checkpoint copies the tensors and writes them in another thread, as safetensors. Once all processes
have written, rank 0 completes the checkpoint; until then the one before it is the latest.
"""

from concurrent.futures import Future
from dataclasses import replace
from typing import cast

import torch.distributed as dist
from safetensors import SafetensorError
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_saver import async_save

from regard.foundation.errors import RegardError
from regard.runs.checkpoints import Checkpoint, Checkpoints
from regard.training.ranks import Ranks, time_limit


class ShardedCheckpoints:
    """Writes checkpoints asynchronously, one at a time; every rank calls every method."""

    def __init__(self, checkpoints: Checkpoints, ranks: Ranks) -> None:
        self.checkpoints, self.ranks = checkpoints, ranks
        self._group = dist.new_group(backend="gloo")  # its own, since it is used in another thread
        self._pending: Future[None] | None = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Begin to write a checkpoint, after the one before it is complete."""
        self.finish()
        ranks, step = self.ranks, checkpoint.step

        def begin() -> None:
            try:
                self.checkpoints.begin(step)
            except OSError as error:
                raise self.checkpoints.cannot_save(error, step) from error

        ranks.agree(lambda: begin() if ranks.first else None)
        parts = {"model": checkpoint.model, "training": checkpoint.training}
        tensors = {f"{part}/{name}": tensor for part, some in parts.items() for name, tensor in some.items()}
        place = self.checkpoints.directory / f".aside-{step:08d}"
        writer = HuggingFaceStorageWriter(str(place), save_distributed=True)
        written = cast(Future[None], async_save(tensors, storage_writer=writer, process_group=self._group))
        self._pending = written
        if ranks.first:  # its future is done when all processes have written
            complete: Future[None] = Future()
            header = replace(checkpoint, model={}, training={})
            written.add_done_callback(lambda done: self._commit(done, header, complete))
            self._pending = complete

    def finish(self) -> None:
        """Wait until the checkpoint that is being written is complete."""
        pending, self._pending = self._pending, None

        def wait() -> None:
            if pending is None:
                return
            try:
                pending.result(time_limit())
            except RegardError:
                raise
            except Exception as error:  # whatever the writing thread met
                reason = str(error) or type(error).__name__
                raise RegardError(
                    f"A checkpoint could not be written: {reason}. The one before it is intact."
                ) from error

        self.ranks.agree(wait)

    def _commit(self, written: Future[None], header: Checkpoint, complete: Future[None]) -> None:
        """Complete a checkpoint on rank 0, in the thread that has written it."""
        try:
            written.result()
            self.checkpoints.commit(header)
        except (OSError, SafetensorError) as error:
            complete.set_exception(self.checkpoints.cannot_save(error, header.step))
        except BaseException as error:
            complete.set_exception(error)
        else:
            complete.set_result(None)
