"""Failures of requests, with their HTTP status."""

from regard.foundation.errors import RegardError


class RequestError(RegardError):
    """A request that cannot be answered; the message goes to the client."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds after which the client may try again."""


def overloaded() -> RequestError:
    """Return the error of a queue that is full, or too slow."""
    return RequestError(503, "The server is overloaded: too many requests wait. Try again later.", retry_after=2)


def deadline_passed() -> RequestError:
    """Return the error of a request that waited too long."""
    return RequestError(504, "The server did not get to this request in time. Try again later, or send less text.")
