"""A worker: a process that holds models and answers batches, one at a time.

It reads one JSON request per line from standard input and writes one JSON reply per line to standard output:

    {"id": 1, "model": {"name": "en-de", "version": 0, "run": "runs/en-de", "engine": "auto"}, "task": "translate",
     "inputs": ["A dog runs."], "options": {"beam": 5}}
    {"id": 1, "outputs": [{"text": "Ein Hund rennt.", …}], "tokens": 4, "memory": 123456789, "models": 1}

A request that fails as a whole gets {"id": 1, "error": "…", "fault": "request" | "server"} instead of outputs. Models
are loaded when they are first asked for; torch is imported only by requests that need it.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.foundation.errors import RegardError
from regard.serving.worker_model import ModelKey, WorkerModel

if TYPE_CHECKING:
    pass


class Interrupted(BaseException):
    """No request waits for what is computed."""


class Worker:
    """The models of one worker, and the loop that answers requests."""

    def __init__(self) -> None:
        self.models: dict[ModelKey, WorkerModel] = {}
        self.is_interruptible = False
        """Whether a computation for the studio runs, which may be given up."""

    def model(self, key: ModelKey) -> WorkerModel:
        """Return the model of a key; other versions of it are dropped."""
        found = self.models.get(key) or WorkerModel(key)
        self.unload(key.name)
        self.models[key] = found
        return found

    def unload(self, name: str) -> None:
        """Drop all versions of a model."""
        self.models = {key: model for key, model in self.models.items() if key.name != name}

    def answer(self, request: Mapping[str, Any], show: Callable[[str], None]) -> dict[str, Any]:
        """Return the reply to a request; `show` sends parts of a streamed output before it."""
        if request["task"] == "unload":
            self.unload(request["model"]["name"])
            return {"outputs": []}
        key = ModelKey(**request["model"])
        if request["task"] == "load":  # next to an older version, which is in use until the new one is asked for
            model = self.models.get(key) or WorkerModel(key)
            model.open(request["options"]["task"])
            self.models[key] = model
            return {"outputs": []}
        model = self.model(key)
        model.open(request["task"])
        operation: Callable[..., list[dict[str, Any]]] = getattr(model, request["task"])
        extra = (show,) if request["task"] in ("stream", "inspect") else ()
        before = model.tokens
        try:
            self.is_interruptible = request["task"] in ("watch", "inspect", "corpus")
            outputs = operation(request["inputs"], request["options"], *extra)
            self.is_interruptible = False
        except Interrupted:
            return {"error": "The request was cancelled.", "fault": "request"}
        except RegardError as error:  # the model is there, so that the input is at fault
            return {"error": _without_path(str(error), key), "fault": "request"}
        finally:
            self.is_interruptible = False
        return {"outputs": outputs, "tokens": model.tokens - before}

    def interrupt(self, *_: object) -> None:
        """Give up what is computed for the studio now, if anything is."""
        if self.is_interruptible:
            self.is_interruptible = False
            raise Interrupted

    def run(self, requests: Any, replies: Any) -> None:
        """Answer requests until the input ends."""
        for line in requests:
            request = json.loads(line)

            def show(text: str) -> None:
                if text:
                    replies.write(json.dumps({"partial": text}) + "\n")
                    replies.flush()

            try:
                reply = self.answer(request, show)
            except RegardError as error:
                reply = {"error": str(error), "fault": "server"}
            except Exception as error:
                message = f"{type(error).__name__}: {str(error)[:300]}"
                print(f"worker {os.getpid()}: {message}", file=sys.stderr, flush=True)
                reply = {"error": "This request failed in the model. The log of the server has the reason."}
                reply["fault"] = "server"
            reply |= {"id": request["id"], "memory": resident_memory(), "models": len(self.models)}
            replies.write(json.dumps(reply, ensure_ascii=False) + "\n")
            replies.flush()


def _without_path(message: str, key: ModelKey) -> str:
    """Return a message for a client with the name of the model instead of the path of its run on the server."""
    return message.replace(key.run, key.name) if os.sep in key.run else message


def resident_memory() -> int:
    """Return the resident memory of this process in bytes; 0 where it cannot be read."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a worker on standard input and output; anything that libraries print goes to standard error."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the front process decides when workers stop
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    worker = Worker()
    signal.signal(signal.SIGUSR1, worker.interrupt)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)
    worker.run(sys.stdin, replies)


if __name__ == "__main__":
    main()
