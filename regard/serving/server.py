"""Runs the application on uvicorn: signals, time-outs, TLS."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from regard.foundation.errors import RegardError, UsageError
from regard.serving.app import make_app
from regard.serving.errors import RequestError
from regard.serving.protocol import Protocol
from regard.serving.service import Service
from regard.serving.settings import ServingSettings

if sys.platform == "win32":
    from asyncio import run as run_loop
else:
    from uvloop import run as run_loop

BACKLOG = 2048
"""Connections that may wait to be accepted."""


class Server(uvicorn.Server):
    """A uvicorn server that finishes its requests after SIGTERM or SIGINT, and stops at once after a second signal."""

    def __init__(self, config: uvicorn.Config, service: Service, announce: Callable[[int], None]) -> None:
        super().__init__(config)
        self.service = service
        self.announce = announce

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal; signals are handled here, so that a finished shutdown exits with 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(self._reload()))
        await self._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and announce the port."""
        await super().startup(sockets)
        if self.started and self.servers:
            self.announce(self.servers[0].sockets[0].getsockname()[1])

    async def on_tick(self, counter: int) -> bool:
        """Do what is due ten times a second: once a second, close connections whose requests do not come."""
        if counter % 10 == 0:
            for connection in list(self.server_state.connections):
                assert isinstance(connection, Protocol)
                connection.close_if_late(self.service.limits.read_seconds)
        return await super().on_tick(counter)

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # a second signal
        self.should_exit = True
        self.service.is_draining = True

    async def _reload(self) -> None:
        for name in list(self.service.catalogue.models):
            try:
                model = await self.service.reload(name)
                print(f"Reloaded {name}, version {model.version}.", file=sys.stderr, flush=True)
            except RequestError as error:
                print(f"{name} was not reloaded: {error}", file=sys.stderr, flush=True)


def run_server(service: Service, settings: ServingSettings, announce: Callable[[int], None]) -> None:
    """Serve until the process is told to stop; `announce` is called with the port when requests are accepted."""
    if bool(settings.certificate) != bool(settings.private_key):
        raise UsageError("TLS needs both `certificate` and `private_key`. Give both, or neither.")
    logging.getLogger("regard.serving").setLevel(logging.INFO if settings.log != "none" else logging.ERROR)
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    try:
        config = uvicorn.Config(
            make_app(service),
            host=settings.host,
            port=settings.port,
            http=Protocol,
            ws="none",
            backlog=BACKLOG,
            lifespan="on",
            log_level="warning",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=int(settings.shutdown_seconds),
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.private_key,
        )
        server = Server(config, service, announce)
        run_loop(server.serve([_bind(settings)]))
    except OSError as error:
        raise RegardError(f"The server cannot start: {error.strerror or error}.") from None
    if not server.started:
        raise RegardError("The server could not start. The messages above say why.")


def _bind(settings: ServingSettings) -> socket.socket:
    """Return a listening socket; raises `RegardError` if the port is taken."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
    except OSError as error:
        raise RegardError(
            f"The server cannot listen on {settings.host}:{settings.port} ({error.strerror or error}). Stop the other "
            "program, or choose another port with --port."
        ) from None
    return bound


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
