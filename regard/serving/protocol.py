"""uvicorn's HTTP protocol with limits on the head of a request: its size, and the time in which it must come."""

import json
import select
from http import HTTPStatus
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
        self._is_too_large = False

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
        if self._head_bytes > HEADER_BYTES or len(self.headers) > MOST_HEADERS:
            self._is_too_large = True
            raise ValueError("the head is too large")  # the parser stops, and `send_400_response` is called

    def send_400_response(self, msg: str) -> None:
        """Answer to a request that cannot be read, and close the connection."""
        status, reason = 400, "This is not a request in HTTP/1.1."
        if self._is_too_large:
            status, reason = 431, f"The request has more than {MOST_HEADERS} headers or {HEADER_BYTES:,} bytes of them."
        body = json.dumps({"error": reason}).encode()
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: application/json",
            "access-control-allow-origin: *",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()

    def close_if_late(self, seconds: float) -> None:
        """Close the connection if the head of a request has not come in so many seconds."""
        if self.head_since is not None and self.loop.time() - self.head_since > seconds:
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless a request has come that was not read yet: it would be lost."""
        connection = self.transport.get_extra_info("socket")
        if connection is None or not _has_unread_data(connection.fileno()):
            super().timeout_keep_alive_handler()


def _has_unread_data(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
