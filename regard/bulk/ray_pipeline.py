"""The parts of a Ray Data pipeline: a source of blocks, and actors that translate them.

A row is one event as JSON. A read task reads shards as a stream; an actor owns one worker process, the same as on a
single machine, so that a line that kills its worker does not kill the actor.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from regard.bulk.blocks import Block, PendingShard
from regard.bulk.decoding_options import Assignment
from regard.bulk.events import from_json, to_json
from regard.bulk.supervised_worker import SupervisedWorker
from regard.foundation.errors import RegardError

COLUMNS = ("event", "error", "deaths")
"""An event, the message of an error that ends the job, and how often the worker of an actor has died lately."""
MOST_READ_TASKS = 1000
"""Largest number of read tasks; with more shards, a task reads several."""


class ShardSource(Datasource):  # type: ignore[misc]
    """Shards as a source of Ray Data: every row is a block, or the end of a shard."""

    def __init__(self, shards: Sequence[PendingShard]) -> None:
        super().__init__()
        self._shards = shards

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the size of all shards, which is unknown if they are compressed."""
        return None

    def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[ReadTask]:
        """Return the tasks, which read one shard each, or several in turn if there are many."""
        count = min(len(self._shards), MOST_READ_TASKS)
        metadata = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(_read, self._shards[number::count]), metadata) for number in range(count)]


def _read(shards: Sequence[PendingShard]) -> Iterator[pyarrow.Table]:
    for shard in shards:
        for event in shard.read():
            yield _table(event=to_json(event))


def _table(event: str = "", error: str = "", deaths: int = 0) -> pyarrow.Table:
    """Return a table of one row."""
    return pyarrow.table({"event": [event], "error": [error], "deaths": [deaths]})


class BlockTranslator:
    """An actor with one worker process; Ray restarts it if it dies, and gives it its block again."""

    def __init__(self, assignment: str) -> None:
        self._worker = SupervisedWorker(Assignment.from_json(assignment))

    def __call__(self, rows: pyarrow.Table) -> Iterator[pyarrow.Table]:
        """Translate the blocks of a table; other events are passed on."""
        for text in rows.column("event").to_pylist():
            event = from_json(text)
            if not isinstance(event, Block):
                yield _table(event=text)
                continue
            before = self._worker.deaths
            try:
                translated = self._worker.translate(event)
            except RegardError as error:
                yield _table(error=str(error))
                return
            yield _table(event=to_json(translated), deaths=self._worker.deaths - before)
