"""A worker of bulk translation without a model, which starts at once and fails when a line asks for it.

An output is the line in capitals with a checksum of all lines of its chunk: it shows which lines were translated
together. `python -m tests.bulk_worker drive ARGUMENTS` is `regard bulk ARGUMENTS` with such workers.
"""

import contextlib
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

COMMAND = (sys.executable, str(Path(__file__)))
LOG = "BULK_WORKER_LOG"
"""Environment variable: a file to which workers add a line for every chunk that they begin."""
PAUSE = "BULK_WORKER_PAUSE"
"""Environment variable: seconds that a chunk takes."""


def outputs_of(lines: Sequence[str]) -> list[str]:
    """Return what a worker makes of a chunk; an empty line stays empty."""
    mark = zlib.crc32("\n".join(lines).encode())
    return [f"{line.upper()} {mark:08x}" if line.strip() else "" for line in lines]


def translate(lines: Sequence[str]) -> list[str]:
    if any("KILL" in line for line in lines):
        os.kill(os.getpid(), signal.SIGSEGV)
    if any("HANG" in line for line in lines):
        time.sleep(3600)
    if any("FAIL" in line for line in lines):
        raise ValueError("this line fails")
    return outputs_of(lines)


def work() -> None:
    from regard.bulk.line_translator import translate_lines

    sys.stdin.readline()
    print(json.dumps({"ready": True}), flush=True)
    with contextlib.suppress(BrokenPipeError):
        for line in sys.stdin:
            lines = json.loads(line)
            if LOG in os.environ:
                with Path(os.environ[LOG]).open("a") as log:
                    log.write(f"{os.getpid()} {zlib.crc32(line.encode()):08x}\n")
            time.sleep(float(os.environ.get(PAUSE, "0")))
            outputs, reasons = translate_lines(translate, lines)
            tokens = sum(len(text.split()) for text in lines)
            print(json.dumps({"outputs": outputs, "reasons": reasons, "tokens": tokens, "cut": 0}), flush=True)


def drive(arguments: list[str]) -> int:
    from regard.bulk import supervised_worker
    from regard.cli import main

    supervised_worker.COMMAND = COMMAND
    return main(["bulk", *arguments])


if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:
        raise SystemExit(drive(sys.argv[2:]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work()
