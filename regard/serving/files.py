"""Translated files, kept for download in a private directory until they expire."""

import re
import shutil
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from regard.serving.errors import RequestError


class _Kept(NamedTuple):
    path: Path
    name: str
    expires: float


class TranslatedFiles:
    """Files by the name under which they can be downloaded; paths never come from a request."""

    def __init__(self, *, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._directory: Path | None = None
        self._files: dict[str, _Kept] = {}

    def add(self, name: str, content: bytes) -> str:
        """Keep a file, and return the name for its download: a random one with the original name after it."""
        self.remove_expired()
        while len(self._files) >= self.most:
            self._remove(next(iter(self._files)))
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="regard-files-"))  # readable for this user only
        plain = re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).name)[-100:].lstrip(".") or "file"
        identity = uuid.uuid4().hex
        path = self._directory / identity
        path.write_bytes(content)
        self._files[f"{identity}.{plain}"] = _Kept(path, plain, time.monotonic() + self.seconds)
        return f"{identity}.{plain}"

    def get(self, key: str) -> tuple[str, bytes]:
        """Return the name and the content of a file."""
        self.remove_expired()
        if key not in self._files:
            raise RequestError(404, "There is no such file; it may have expired. Translate it again.")
        kept = self._files[key]
        return kept.name, kept.path.read_bytes()

    def remove_expired(self) -> None:
        """Delete files whose time is over."""
        now = time.monotonic()
        for key in [key for key, kept in self._files.items() if kept.expires <= now]:
            self._remove(key)

    def _remove(self, key: str) -> None:
        self._files.pop(key).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Delete all files."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._files.clear()
