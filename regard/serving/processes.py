"""Worker processes, as the front process sees them."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_REPLY = 256 * 1024 * 1024
"""Bytes of one reply; an inspection of a long text is the longest."""


INTERRUPT = signal.SIGUSR1
"""The signal that interrupts a computation for the studio."""


class WorkerDied(Exception):
    """The worker process ended, or did not answer in time and was stopped, before it answered."""


class WorkerProcess:
    """One worker process, which answers one request at a time."""

    def __init__(self, *, threads: int, timeout: float) -> None:
        self.threads, self.timeout = threads, timeout
        self.memory = 0
        """Resident memory in bytes after its last reply."""
        self.models = 0
        """Models that it holds."""
        self.lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._requests = 0

    @property
    def pid(self) -> int | None:
        """The id of the process, if it runs."""
        return self._process.pid if self.is_alive and self._process else None

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process, if it does not run."""
        if self.is_alive:
            return
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads), "TOKENIZERS_PARALLELISM": "false"}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "regard.serving.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            limit=LONGEST_REPLY,
            start_new_session=True,  # Ctrl-C in the terminal is for the front process, which lets workers finish
        )

    async def call(self, request: Mapping[str, Any], show: Callable[[str], None] | None = None) -> dict[str, Any]:
        """Send a request and return the reply; raises `WorkerDied`. `show` gets the texts that come before it."""
        async with self.lock:
            await self.start()
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            self._requests += 1
            line = json.dumps({**request, "id": self._requests}) + "\n"
            try:
                process.stdin.write(line.encode())
                await process.stdin.drain()
                while True:
                    answer = await asyncio.wait_for(process.stdout.readline(), self.timeout)
                    reply: dict[str, Any] = json.loads(answer)
                    if "partial" not in reply:
                        break
                    if show is not None:
                        show(reply["partial"])
            except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError) as error:
                await self.kill()
                raise WorkerDied from error
            except asyncio.CancelledError:
                await self.kill()  # its reply would be taken for that of the next request
                raise
            self.memory, self.models = reply.get("memory", 0), reply.get("models", 0)
            return reply

    def interrupt(self) -> None:
        """Ask the process to give up what it computes for the studio; its reply is then an error."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(INTERRUPT)

    async def kill(self) -> None:
        """Stop the process at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def stop(self, timeout: float = 5.0) -> None:
        """Close the worker's input, after which it ends; stop it if it does not."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), timeout)
        except TimeoutError:
            await self.kill()
