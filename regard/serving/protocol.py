"""uvicorn's HTTP protocol with limits on the head of a request: its size, and the time in which it must come."""

import select
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_BYTES = 64 * 1024
"""Bytes of the address and all headers of a request."""
MOST_HEADERS = 100


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.head_since: float | None = self.loop.time()
        """When the connection was opened, or the first byte of a request came; `None` between requests and after a head
        is complete."""
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self.head_since is None and (self.cycle is None or self.cycle.response_complete):
            self.head_since = self.loop.time()
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """Start to answer."""
        self.head_since = None
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEADER_BYTES or (self.headers and len(self.headers) > MOST_HEADERS):
            raise HeadTooLarge

    def close_if_late(self, seconds: float) -> None:
        """Close the connection if the head of a request has not come in so many seconds."""
        if self.head_since is not None and self.loop.time() - self.head_since > seconds:
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless a request has come that was not read yet: it would be lost."""
        if not _has_unread_data(self.transport.get_extra_info("socket")):
            super().timeout_keep_alive_handler()


class HeadTooLarge(Exception):
    """The head of a request exceeds the limits."""
