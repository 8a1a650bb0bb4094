"""Translation servers with the same model, each a process of its own: Regard, and those that it is compared with."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.argos import write_package
from benchmarks.environments import Unavailable, interpreter
from benchmarks.options import Options
from benchmarks.places import CACHE, PROGRAMS, ROOT
from benchmarks.worker import peak_of, pinned, surroundings

REGARD, LIBRETRANSLATE, PLAIN, LITSERVE = "Regard", "LibreTranslate 1.9", "FastAPI + CTranslate2", "LitServe 0.2"
PATIENCE = 90.0
"""Seconds in which a server must answer its first request."""
BEAM = 5


@dataclass
class Server:
    """A server, which runs while the context is open."""

    name: str
    command: list[str]
    """`PORT` stands for the port."""
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.port = _free_port()
        log = CACHE / "logs" / f"serve-{self.name.split()[0]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = pinned([part.replace("PORT", str(self.port)) for part in self.command])
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**surroundings(1), **self.environment},
                cwd=ROOT,
                start_new_session=True,
            )
        until = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
                self.__exit__(None, None, None)
                raise Unavailable(f"it did not start: {lines[-1][:200] if lines else 'without a message'}")
            time.sleep(0.2)
        return self

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = json.dumps({"q": "A dog runs.", "source": "en", "target": "de"})
        try:
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def peak(self) -> float:
        """Return the most bytes that all processes of the server have held."""
        assert self.process is not None
        return peak_of(self.process.pid)

    def pause(self) -> None:
        """Stop the processes of the server until `resume`, so that they take no time from others."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the server run again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process is not None:
            self.resume()
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            self._signal(signal.SIGKILL)
            self.process.wait()


def regard_server(run: Path, engine: str = "ctranslate2") -> Server:
    """Return `regard serve` with two workers and no cache."""
    settings = CACHE / "served" / "serving.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("limits: {cache: 0}\n")
    command = [sys.executable, "-m", "regard", "serve", f"model={run}", "--languages", "en-de", "--engine", engine]
    return Server(REGARD, [*command, "--workers", "2", "--port", "PORT", "--config", str(settings)])


def servers(options: Options, run: Path) -> tuple[dict[str, Server], dict[str, str]]:
    """Return the servers that can run a model, and why others cannot."""
    from regard.formats.to_ctranslate2 import export_ctranslate2
    from regard.runs.run import Run

    place = CACHE / "served"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    opened = Run.open(run)
    export_ctranslate2(opened, place / "float32", None)
    tokenizer = run / "tokenizers" / "shared.json"
    settings: dict[str, Any] = {"model": str(place / "float32"), "tokenizer": str(tokenizer), "beam": BEAM}
    settings |= {"penalty": opened.config.decoding.length_penalty}
    given = json.dumps(settings)[:-1] + ', "port": PORT}'
    found, failed = {REGARD: regard_server(run)}, {}
    if "none" not in options.peers:
        found[PLAIN] = Server(PLAIN, [sys.executable, str(PROGRAMS / "serve_fastapi.py"), given])
    if options.wants("litserve"):
        try:
            found[LITSERVE] = Server(
                LITSERVE, [str(interpreter("litserve")), str(PROGRAMS / "serve_litserve.py"), given]
            )
        except Unavailable as error:
            failed[LITSERVE] = str(error)
    if options.wants("libretranslate"):
        try:
            found[LIBRETRANSLATE] = _libretranslate(place, tokenizer)
        except Unavailable as error:
            failed[LIBRETRANSLATE] = str(error)
    return found, failed


def _libretranslate(place: Path, tokenizer: Path) -> Server:
    """Return LibreTranslate with the model as its only package, in a home of its own and without the network.

    It looks for an index of packages and for the models of its default sentence splitter when it starts; local files
    take their places. Sentences are split by spaCy's rules instead.
    """
    python = interpreter("libretranslate")
    home = place / "libretranslate"
    package = home / "packages" / "en_de"
    write_package(place / "float32", tokenizer, package, source="en", target="de")
    code = f"import spacy; spacy.blank('en').to_disk({str(package / 'spacy')!r})"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"spaCy fails: {done.stderr.strip().splitlines()[-1]}")
    index = json.dumps([json.loads((package / "metadata.json").read_text()) | {"links": []}])
    files = {home / "index" / "index.json": index, home / "data" / "argos-translate" / "index.json": index}
    files |= {home / "data" / "argos-translate" / "minisbd" / f"{code}.onnx": "" for code in ("en", "de")}
    files |= {home / "cache" / "argos-translate" / "spacy" / "senter" / "model": ""}
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    environment = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "ARGOS_PACKAGES_DIR": str(home / "packages"),
        "ARGOS_PACKAGE_INDEX": f"file://{home / 'index'}/",
        "ARGOS_CHUNK_TYPE": "SPACY",
        "ARGOS_BEAM_SIZE": str(BEAM),
        "ARGOS_INTER_THREADS": "2",
        "ARGOS_INTRA_THREADS": "1",
        "ARGOS_COMPUTE_TYPE": "float32",
        "PYTHONPATH": "",
    }
    command = [str(python), str(python.with_name("libretranslate")), "--port", "PORT", "--load-only", "en,de"]
    return Server(LIBRETRANSLATE, [*command, "--disable-web-ui", "--disable-files-translation"], environment)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
