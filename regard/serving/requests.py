"""Reading requests: bodies within limits, and parameters from JSON, forms and query strings."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.datastructures import UploadFile
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from regard.serving.errors import RequestError
from regard.serving.settings import Limits

Result = TypeVar("Result")

DEEPEST = 20
"""Levels of nested arrays and objects in JSON."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request; raises `RequestError` if it is too large or comes too slowly."""
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > limits.body:
        raise too_large(limits)
    body = bytearray()

    async def read() -> None:
        async for chunk in request.stream():
            body.extend(chunk)
            if len(body) > limits.body:
                raise too_large(limits)

    try:
        await asyncio.wait_for(read(), limits.read_seconds)
    except TimeoutError:
        raise RequestError(408, "The request was not received in time. Send it again.") from None
    except ClientDisconnect:
        raise RequestError(400, "The connection was closed before the request was complete.") from None
    return bytes(body)


async def read_whole(request: Request, limits: Limits) -> Receive:
    """Read the body of a request within the limits; return what the application receives it from again."""
    body: bytes | None = await read_body(request, limits)

    async def receive() -> Message:
        nonlocal body
        if body is None:
            return await request.receive()
        message = {"type": "http.request", "body": body, "more_body": False}
        body = None
        return message

    return receive


def too_large(limits: Limits) -> RequestError:
    """Return the error of a body that is too large."""
    return RequestError(413, f"The request is larger than {limits.body:,} bytes. Send less at a time.")


def read_json(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; raises `RequestError` if it is not one."""
    try:
        content = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise RequestError(400, "Invalid JSON format") from None
    if not isinstance(content, dict) or _depth(content) > DEEPEST:
        raise RequestError(400, "Invalid JSON format")
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _depth(content: Any) -> int:
    """Return how deeply arrays and objects are nested, up to just above the limit."""
    level, depth = [content], 0
    while level and depth <= DEEPEST:
        level = [
            item
            for holder in level
            if isinstance(holder, dict | list)
            for item in (holder.values() if isinstance(holder, dict) else holder)
        ]
        depth += 1
    return depth


async def read_parameters(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the parameters of a request: those of a JSON object, otherwise of a form and the query string."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return read_json(body)
    parameters: dict[str, Any] = dict(request.query_params)
    if not body:
        return parameters

    async def stream() -> Any:
        yield body

    try:
        if kind == "multipart/form-data":
            parser = MultiPartParser(request.headers, stream(), max_files=1, max_fields=50, max_part_size=limits.body)
            form = await parser.parse()
        else:
            form = await FormParser(request.headers, stream()).parse()
    except (MultiPartException, ValueError, KeyError, UnicodeError, AssertionError):
        raise RequestError(400, "Invalid request: the form cannot be read") from None
    parameters |= {name: value for name, value in form.multi_items() if isinstance(value, str | UploadFile)}
    return parameters


def text_parameter(parameters: dict[str, Any], name: str) -> str:
    """Return a parameter that must be a non-empty text."""
    value = parameters.get(name)
    if value is None or value == "":
        raise RequestError(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise RequestError(400, f"Invalid request: {name} must be a string")
    return clean(value)


def clean(text: str) -> str:
    """Return a text without the surrogates that JSON can contain, which have no UTF-8 form."""
    return text.encode("utf-8", "replace").decode("utf-8") if any("\ud800" <= c <= "\udfff" for c in text) else text


def clean_data(data: Any) -> Any:
    """Return JSON data with all its texts, and the names of its fields, cleaned."""
    if isinstance(data, str):
        return clean(data)
    if isinstance(data, dict):
        return {clean(str(name)): clean_data(value) for name, value in data.items()}
    return [clean_data(value) for value in data] if isinstance(data, list) else data


async def unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of some work, which is cancelled if the client closes the connection first."""

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(wait_for_disconnect())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise RequestError(499, "The client closed the connection.")
    finally:
        task.cancel()
        gone.cancel()
