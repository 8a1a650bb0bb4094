"""One process of a training on random text with torch's DDP and gloo: `RANK PROCESSES MEETING TOKENS UPDATES`.

The first process prints the median seconds of an update as JSON. All processes together compute batches of TOKENS.
"""

import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, distributed, nn

from benchmarks.processes import CONFIG, LENGTHS, VOCABULARY
from regard.config.loading import from_mapping
from regard.data.batches import Cursor
from regard.data.random_text import RandomText
from regard.tasks.task import Task, TaskKind
from regard.tasks.training_batch import TrainingBatch
from regard.tasks.vocabularies import Vocabularies


class LossModule(nn.Module):
    """The loss of a model as a module, which DDP can wrap."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task, self.model = task, task.build()

    def forward(self, batch: TrainingBatch) -> Tensor:
        """Return the mean loss of a batch."""
        return self.task.output.loss(self.model, batch, scale=1 / batch.count).smoothed


def main(rank: int, processes: int, meeting: str, tokens: int, updates: int) -> None:
    """Train, and print the seconds of an update."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
    known: Any = {side: SimpleNamespace(size=VOCABULARY) for side in ("source", "target")}
    task = Task(TaskKind.of(from_mapping(CONFIG)), Vocabularies(**known))
    module: nn.Module = LossModule(task)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)
    if processes > 1:
        module = nn.parallel.DistributedDataParallel(module)
    random = torch.Generator().manual_seed(rank)
    batches = iter(RandomText((VOCABULARY, VOCABULARY), LENGTHS, tokens // processes).after(Cursor()))
    times = []
    for _ in range(updates):
        batch, _ = next(batches)
        distributed.barrier()
        start = time.perf_counter()
        module(task.training_batch(batch, random, training=True)).backward()
        optimizer.step()
        optimizer.zero_grad()
        distributed.barrier()
        times.append(time.perf_counter() - start)
    if rank == 0:
        kept = sorted(times[2:])
        print(json.dumps({"seconds": kept[len(kept) // 2]}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
