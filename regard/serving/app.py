"""The web application: routes, errors, logs and the checks that every request passes."""

import json
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import regard
from regard.serving.errors import RequestError, overloaded
from regard.serving.libretranslate import LibreTranslate
from regard.serving.requests import read_whole
from regard.serving.service import Service
from regard.serving.v1 import API

MOST_REQUESTS = 2000
"""Requests at once."""
HEALTH = ("/health/live", "/health/ready")
WITHOUT_WORKER = ("/detect", "/suggest")
"""Endpoints that answer without a worker, also in an overload."""
LOG = logging.getLogger("regard.serving")


def make_app(service: Service) -> FastAPI:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="Regard",
        version=regard.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.router.routes.extend(LibreTranslate(service).routes())
    app.include_router(API(service).router())
    app.add_route("/", _studio(service), methods=["GET"], include_in_schema=False)
    app.add_route("/inbox", _inbox(service), methods=["GET"], include_in_schema=False)
    app.add_route("/docs", _docs(app, service), methods=["GET"], include_in_schema=False)
    app.add_route("/metrics", _metrics(service), methods=["GET"], include_in_schema=False)
    app.add_route("/health/live", _live, methods=["GET"], include_in_schema=False)
    app.add_route("/health/ready", _ready(service), methods=["GET"], include_in_schema=False)
    app.add_exception_handler(RequestError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_middleware(Gate, service=service)
    return app


class Gate:
    """The checks before each request, and the log and measures after it.

    Endpoints of LibreTranslate are open to web pages of any origin, as the protocol demands. Those of `/v1` are not:
    they accept requests for the host that the server is reached by, and from pages of its own or listed origins.

    A server that is overloaded refuses requests before they are read: refusing must cost little, because the front
    process shares the cores with the workers. Such requests are counted, but not logged.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        paths = [route.path for route in LibreTranslate(service).routes()] + [
            "/",
            "/docs",
            "/inbox",
            "/metrics",
            *HEALTH,
        ]
        paths += ["/v1/openapi.json", *(getattr(route, "path", "") for route in API(service).router().routes)]
        self.endpoints = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in paths]
        """Patterns of all paths, with their names in logs and measures."""
        self.active = 0
        """Requests that are being answered."""
        self._refusal = _Refusal()
        self._refused = service.measures.requests.labels("refused", "503")
        self._rejected = service.measures.rejected.labels("queue")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        own = scope["path"].startswith("/v1/")
        if scope["method"] == "POST" and self._is_overloaded and self._needs_worker(scope["path"]):
            self._refused.inc()
            self._rejected.inc()
            await self._refusal.send(send, own)
            return
        request = Request(scope, receive)
        started = time.monotonic()
        identity = secrets.token_hex(8)
        status = 500
        is_answered = False
        self.active += 1

        async def send_on(message: Message) -> None:
            nonlocal status, is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                status = message["status"]
                message["headers"] = [*message["headers"], *self._headers(request, identity, own)]
            await send(message)

        try:
            problem = self._problem_of_v1(request) if own else None
            if problem is not None:
                raise problem
            if request.method == "OPTIONS":
                await Response(status_code=204)(scope, receive, send_on)
            else:
                if request.method == "POST":
                    receive = await read_whole(request, self.service.limits)
                await self.app(scope, receive, send_on)
        except RequestError as error:
            await (await _answer_error(request, error))(scope, receive, send_on)
        except Exception as error:
            LOG.exception("request %s failed", identity)
            if not is_answered:
                problem = RequestError(500, f"The server failed ({type(error).__name__}). Its log has the reason.")
                await (await _answer_error(request, problem))(scope, receive, send_on)
        finally:
            self.active -= 1
            self._record(request, identity, status, time.monotonic() - started)

    @property
    def _is_overloaded(self) -> bool:
        return self.service.scheduler.is_overloaded or self.active >= MOST_REQUESTS

    def _needs_worker(self, path: str) -> bool:
        return path not in WITHOUT_WORKER and not path.endswith("/reload")

    def _problem_of_v1(self, request: Request) -> RequestError | None:
        """Return why a request for `/v1` is refused: its host, the web page that sends it, or its key."""
        settings = self.service.settings
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
        allowed = {"localhost", "127.0.0.1", "[::1]", settings.host, *settings.host_names}
        if "*" not in settings.host_names and name.lower() not in {each.lower() for each in allowed}:
            return RequestError(403, "This host name is not accepted. Add it to `host_names` in the settings.")
        origin = request.headers.get("origin")
        if origin and origin not in {f"http://{host}", f"https://{host}", *settings.cors}:
            return RequestError(403, "This web page may not use /v1. Add its origin to `cors` in the settings.")
        try:
            header = request.headers.get("authorization", "")
            key = header[7:] if header.lower().startswith("bearer ") else None
            self.service.keys.check(key, request.client.host if request.client else "")
        except RequestError as error:
            return error
        return None

    def _headers(self, request: Request, identity: str, own: bool) -> list[tuple[bytes, bytes]]:
        headers = [(b"x-request-id", identity.encode()), (b"x-content-type-options", b"nosniff")]
        origin = request.headers.get("origin", "")
        if not own:
            headers += [
                (b"access-control-allow-origin", b"*"),
                (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
                (b"access-control-allow-headers", b"Authorization, Content-Type"),
            ]
        elif origin and origin in self.service.settings.cors:
            headers += [
                (b"access-control-allow-origin", origin.encode("latin-1", "replace")),
                (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
                (b"access-control-allow-headers", b"Authorization, Content-Type"),
                (b"vary", b"Origin"),
            ]
        return headers

    def _record(self, request: Request, identity: str, status: int, seconds: float) -> None:
        path = request.scope["path"]
        endpoint = next((name for pattern, name in self.endpoints if pattern.fullmatch(path)), "unknown")
        self.service.measures.requests.labels(endpoint, str(status)).inc()
        self.service.measures.duration.labels(endpoint).observe(seconds)
        facts = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request": identity,
            "method": request.method,
            "endpoint": endpoint,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
        }
        if self.service.settings.log == "json":
            LOG.info("%s", json.dumps(facts))
        elif self.service.settings.log == "text":
            LOG.info("%s", "{time} {request} {method} {endpoint} {status} {milliseconds} ms".format(**facts))


class _Refusal:
    """The answer of an overloaded server, made once."""

    def __init__(self) -> None:
        error = overloaded()
        self._body = json.dumps({"error": str(error)}).encode()
        self._headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self._body)).encode()),
            (b"retry-after", str(error.retry_after).encode()),
        ]

    async def send(self, send: Send, own: bool) -> None:
        """Send it; `own` is whether the request was for `/v1`, which pages of other origins must not read."""
        headers = self._headers if own else [*self._headers, (b"access-control-allow-origin", b"*")]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
    return JSONResponse({"error": str(error)}, status_code=error.status, headers=headers)


NO_OBJECT = ("json_invalid", "model_attributes_type")
"""Types of pydantic's errors about a body that is not a JSON object."""


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    problem = first["msg"].replace("valid tuple", "valid list")  # JSON has no tuples
    message = "Invalid JSON format" if first["type"] in NO_OBJECT else f"{field}: {problem}".lstrip(": ")
    return JSONResponse({"error": f"Invalid request: {message}"[:500]}, status_code=400)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "There is nothing at this address.", 405: "This address does not answer to this method."}
    message = messages.get(error.status_code, "Invalid request")
    return JSONResponse({"error": message}, status_code=error.status_code, headers=error.headers)


async def _live(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _docs(app: FastAPI, service: Service) -> Any:
    async def docs(request: Request) -> Response:
        from regard.pages import api_page
        from regard.serving.specification import swagger

        models = [
            f"{model.name}: {model.task}" + (f", {model.languages}" if model.languages else "")
            for model in service.catalogue.models.values()
        ]
        return HTMLResponse(
            api_page.render(models, [("LibreTranslate protocol", swagger()), ("Regard's own API", app.openapi())])
        )

    return docs


def _studio(service: Service) -> Any:
    async def studio(request: Request) -> Response:
        from regard.serving.studio import studio_page

        return HTMLResponse(studio_page(list(service.catalogue.models.values()), corpora=service.corpora))

    return studio


def _inbox(service: Service) -> Any:
    async def inbox(request: Request) -> Response:
        from regard.pages import inbox_page

        model = service.catalogue.only(("reply",))
        return HTMLResponse(inbox_page.render(model.name, can_log=service.settings.log_choices))

    return inbox


def _ready(service: Service) -> Any:
    async def ready(request: Request) -> Response:
        is_ready = service.is_ready and not service.is_draining
        return JSONResponse({"status": "ready" if is_ready else "not ready"}, status_code=200 if is_ready else 503)

    return ready


def _metrics(service: Service) -> Any:
    async def metrics(request: Request) -> Response:
        settings = service.settings
        if not settings.metrics:
            raise RequestError(404, "Metrics are turned off.")
        wanted = f"Bearer {settings.metrics_token}"
        if settings.metrics_token and not secrets.compare_digest(
            request.headers.get("authorization", "").encode(), wanted.encode()
        ):
            raise RequestError(403, "The metrics need the server's token.")
        return Response(service.measures.text(), media_type="text/plain; version=0.0.4")

    return metrics
