"""The settings of a server, from `serving.yaml` and the command line."""

import hmac
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.foundation.errors import UsageError
from regard.serving.errors import RequestError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(_Section):
    """One model."""

    run: str
    """Directory of a trained run; relative paths start at the settings file."""
    name: str | None = None
    """Its name in requests; by default that of the directory."""
    languages: str | None = None
    """Its languages as `en-de`; by default those of the run."""
    engine: str | None = None
    """Its engine; by default that of the server."""


class Limits(_Section):
    """What a request may ask for, and how long it may take."""

    characters: int = Field(default=100_000, ge=1)
    """Characters of all texts of a request."""
    batch: int = Field(default=1_000, ge=1)
    """Texts of a request."""
    body: int = Field(default=2_000_000, ge=1_000)
    """Bytes of a request, files included."""
    alternatives: int = Field(default=9, ge=0, le=99)
    """Alternatives per text."""
    queue: int = Field(default=2_000, ge=1)
    """Sentences that may wait; more are refused with status 503."""
    wait: float = Field(default=5.0, gt=0)
    """Seconds for which a request may be expected to wait; otherwise it is refused with status 503."""
    seconds: float = Field(default=60.0, gt=0)
    """Time for a request, waiting included; then it is dropped with status 504."""
    read_seconds: float = Field(default=20.0, gt=0)
    """Time for a client to send its request."""
    cache: int = Field(default=10_000, ge=0)
    """Sentences whose outputs are kept."""
    memory: int | None = Field(default=None, ge=1)
    """Bytes of memory of all workers, above which idle models are unloaded; none by default."""
    idle_seconds: float = Field(default=300.0, ge=0)
    """Time after which an unused model counts as idle."""
    files: int = Field(default=100, ge=1)
    """Translated files that are kept for download."""
    file_seconds: float = Field(default=600.0, gt=0)
    """Time for which a translated file can be downloaded."""


class KeySettings(_Section):
    """An API key."""

    key: str = Field(min_length=8)
    per_minute: int | None = Field(default=None, ge=1)
    """Requests per minute; none: no limit."""


class ServingSettings(_Section):
    """The settings of a server."""

    models: tuple[ModelSettings, ...] = ()
    host: str = "127.0.0.1"
    port: int = Field(default=5000, ge=0, le=65535)
    engine: str = "auto"
    """The engine of translation models: native, ctranslate2, ctranslate2-int8 or auto."""
    workers: int | None = Field(default=None, ge=1, le=256)
    """Worker processes; by default one per core."""
    threads: int = Field(default=1, ge=1)
    """Threads of each worker."""
    limits: Limits = Limits()
    keys: tuple[KeySettings, ...] = ()
    keys_file: str | None = None
    """A file with one API key per line, or `key requests-per-minute`."""
    keys_only: bool = False
    """Whether requests without a key are refused."""
    per_minute: int | None = Field(default=None, ge=1)
    """Requests per minute of a client without a key; none: no limit."""
    cors: tuple[str, ...] = ()
    """Web origins, such as https://example.org, that may use `/v1`; by default only pages of the server itself."""
    host_names: tuple[str, ...] = ()
    """Names in the Host header that are accepted for `/v1`, besides the address itself; `*` accepts all."""
    certificate: str | None = None
    """PEM file with the TLS certificate; needs `private_key`."""
    private_key: str | None = None
    metrics: bool = True
    """Whether `/metrics` is offered."""
    metrics_token: str | None = None
    """If given, `/metrics` needs the header `Authorization: Bearer TOKEN`."""
    log: Literal["text", "json", "none"] = "text"
    log_choices: bool = False
    """Whether chosen replies are logged in their bundle (`/v1/reply/choice`), to improve the ranking."""
    shutdown_seconds: float = Field(default=30.0, ge=0)
    """Time to finish requests after SIGTERM."""


def read_settings(path: Path) -> ServingSettings:
    """Return the settings of a YAML file; raises `UsageError` with the field and the problem."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}. Name an existing file.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        where = f" (line {error.problem_mark.line + 1})" if getattr(error, "problem_mark", None) else ""  # type: ignore[union-attr]
        raise UsageError(f"{path} is not valid YAML{where}. Correct it.") from None
    if not isinstance(content, Mapping):
        raise UsageError(f"{path} must be a mapping with settings such as `models:` and `port:`.")
    settings = settings_from(content, str(path))
    base = path.parent
    models = tuple(model.model_copy(update={"run": str(base / model.run)}) for model in settings.models)
    files = {
        name: str(base / value)
        for name in ("keys_file", "certificate", "private_key")
        if (value := getattr(settings, name)) is not None
    }
    return settings.model_copy(update={"models": models, **files})


def settings_from(content: Mapping[str, Any], name: str) -> ServingSettings:
    """Return the settings of a mapping, called `name` in errors."""
    try:
        return ServingSettings.model_validate(dict(content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = "There is no such setting" if first["type"] == "extra_forbidden" else str(first["msg"])
        raise UsageError(f"{name}: {field}: {problem}. See docs/serving.md for the settings.") from None


class Keys:
    """The API keys of a server, and how often each client may call."""

    def __init__(self, settings: ServingSettings) -> None:
        self.keys_only = settings.keys_only
        self.per_minute = settings.per_minute
        self._keys = {key.key: key.per_minute for key in settings.keys}
        if settings.keys_file is not None:
            self._keys |= _read_keys(Path(settings.keys_file))
        for word in os.environ.get("REGARD_API_KEYS", "").split(","):
            if word.strip():
                self._keys.setdefault(word.strip(), None)
        if self.keys_only and not self._keys:
            raise UsageError("keys_only needs API keys. Give some with keys, keys_file or REGARD_API_KEYS.")
        self._calls: dict[str, tuple[float, float]] = {}

    @property
    def exist(self) -> bool:
        """Whether there are any keys."""
        return bool(self._keys)

    def check(self, key: object, client: str) -> None:
        """Count a request of a key, or of a client without one; raises `RequestError` if it is not allowed."""
        if key is not None and not isinstance(key, str):
            raise RequestError(403, "Invalid API key")
        if not key:
            if self.keys_only:
                raise RequestError(400, "Please contact the server operator to get an API key")
            self._count(f"client {client}", self.per_minute)
            return
        if not self._keys:
            self._count(f"client {client}", self.per_minute)
            return
        known = None
        for candidate in self._keys:  # all are compared, so that the time says nothing
            if hmac.compare_digest(candidate.encode(), key.encode("utf-8", "surrogatepass")):
                known = candidate
        if known is None:
            raise RequestError(403, "Invalid API key")
        self._count(f"key {known}", self._keys[known])

    def _count(self, who: str, per_minute: int | None) -> None:
        """Take a call from a bucket that refills by `per_minute` calls a minute."""
        if per_minute is None:
            return
        now = time.monotonic()
        if len(self._calls) > 10_000:  # forget clients whose buckets are full again
            self._calls = {name: call for name, call in self._calls.items() if now - call[1] < 60}
        left, last = self._calls.get(who, (float(per_minute), now))
        left = min(float(per_minute), left + (now - last) * per_minute / 60)
        if left < 1:
            wait = int((1 - left) * 60 / per_minute) + 1
            raise RequestError(429, f"Slowdown: {per_minute} requests per minute are allowed.", retry_after=wait)
        self._calls[who] = left - 1, now


def _read_keys(path: Path) -> dict[str, int | None]:
    """Return the keys of a file, one per line, each with its requests per minute if the line has a second word."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The keys in {path} cannot be read ({type(error).__name__}). Name a text file.") from None
    keys: dict[str, int | None] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) > 2 or (len(words) == 2 and not words[1].isdigit()) or len(words[0]) < 8:
            raise UsageError(
                f"{path}, line {number}: a line has a key of 8 or more characters and, if wanted, its requests per "
                "minute."
            )
        keys[words[0]] = int(words[1]) if len(words) == 2 else None
    return keys
