"""Ray Data: actors on this machine, or on the cluster of RAY_ADDRESS.

Ray reads blocks only as fast as they are translated (back-pressure), restarts actors that die, and gives their blocks
to others. Reading happens on the machine of the driver, so that only the run must be at the same path everywhere.
"""

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import Any

from regard.bulk.blocks import Block, Event, PendingShard
from regard.bulk.decoding_options import Assignment
from regard.bulk.events import from_json
from regard.bulk.runner import core_count
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

OBJECT_STORE = 256 << 20
"""Bytes of shared memory for blocks on the way, of a Ray that is started here."""
READERS = 2
"""Shards that are read at the same time."""
BLOCKS_PER_ACTOR = 2
"""Blocks that an actor has at the same time: one that it translates, and the next."""

CONNECT_SECONDS = 10.0
"""Seconds to wait for the cluster of RAY_ADDRESS."""


class RayRunner:
    """Actors of Ray Data."""

    def __init__(self, assignment: Assignment, workers: int | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # or its processes write to the terminal
        if "RAY_ADDRESS" not in os.environ:
            os.environ.setdefault("RAY_worker_niceness", "0")  # as local processes; Ray's own default is 15
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or it listens on all addresses, on Linux too
        try:
            import_module("ray.data")
        except ImportError:
            raise RegardError(f"--on ray needs Ray. Install it: {install_command('ray')}") from None
        self._assignment, self._workers = assignment, workers
        self.restarts = 0
        """How often the worker process of an actor has been restarted; restarts of actors are not counted."""

    def run(self, shards: Sequence[PendingShard]) -> Iterator[Event]:
        """Yield the translated blocks of all shards, and how each shard ends."""
        from ray.exceptions import RayError

        with _connected(self._workers or core_count()) as ray:
            rows = self._dataset(ray, shards).iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
            try:
                for table in rows:
                    for row in table.to_pylist():
                        yield self._event(row)
            except RayError as error:
                raise RegardError(
                    f"Ray stopped ({str(error).strip().splitlines()[-1][:300]}). Run the same command again to resume; "
                    "its logs are in /tmp/ray/session_latest/logs."
                ) from error

    def _event(self, row: dict[str, Any]) -> Event:
        if row["error"]:
            raise RegardError(row["error"])
        self.restarts += row["deaths"]
        event = from_json(row["event"])
        assert not isinstance(event, Block)
        return event

    def _dataset(self, ray: Any, shards: Sequence[PendingShard]) -> Any:
        """Return the pipeline: read tasks, then actors."""
        from regard.bulk.ray_pipeline import BlockTranslator, ShardSource

        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        context.target_max_block_size = 1  # every row is a block of its own, for any actor
        dataset = ray.data.read_datasource(
            ShardSource(shards),
            override_num_blocks=len(shards),
            num_cpus=0.01,
            concurrency=min(READERS, len(shards)),
            label_selector={"ray.io/node-id": ray.get_runtime_context().get_node_id()},
        )
        workers = self._workers or max(int(ray.cluster_resources().get("CPU", 2)) - 1, 1)
        return dataset.map_batches(
            BlockTranslator,
            fn_constructor_args=[self._assignment.to_json()],
            batch_size=None,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=BLOCKS_PER_ACTOR),
            num_cpus=1,
        )


@contextmanager
def _connected(workers: int) -> Iterator[Any]:
    """Connect to the cluster of RAY_ADDRESS, or start Ray on this machine, reachable from it only."""
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors are exceptions, too
    handler = signal.getsignal(signal.SIGTERM)
    address = os.environ.get("RAY_ADDRESS")
    local: dict[str, Any] = {
        "num_cpus": workers + 1,  # one for reading
        "num_gpus": 0,
        "object_store_memory": OBJECT_STORE,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
    }
    try:
        if address and re.fullmatch(r"[\w.-]+:\d+", address):  # Ray itself would try for minutes
            host, _, port = address.partition(":")
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        with _silent_errors():
            ray.init(address=address or "local", **quiet, **({} if address else local))
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0][:300]
        if address:
            raise RegardError(
                f"There is no Ray cluster at RAY_ADDRESS={address}, or it needs a token ({reason}). Start it, set "
                "RAY_AUTH_MODE=token if `ray start` reported that it uses token authentication, or unset RAY_ADDRESS."
            ) from error
        raise RegardError(f"Ray could not be started on this machine ({reason}). Use --on processes.") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray replaces it
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123
        try:
            yield ray  # Ray prints pages on every actor that dies, to standard output, until its threads have ended
        finally:
            ray.shutdown()


@contextmanager
def _silent_errors() -> Iterator[None]:
    """Discard what the libraries of Ray write to standard error; its failures are exceptions."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
