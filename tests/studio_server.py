"""The server whose studio is tested: a Transformer, an RNN, a captioner and a classifier."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serving import RunningServer, running_server
from tests.stored_runs import FIXTURES

STORED = FIXTURES / "format-1"
TEXT = "a b c d e"


@contextmanager
def studio_server(directory: Path, transformer: Path, rnn: Path) -> Iterator[RunningServer]:
    """Serve the runs with one worker, on the native engine."""
    named = {"transformer": transformer, "rnn": rnn, "captions": STORED / "captions", "classes": STORED / "classes"}
    runs = [f"{name}={run}" for name, run in named.items()]
    with running_server(directory, *runs, "--workers", "1", "--engine", "native") as running:
        yield running
