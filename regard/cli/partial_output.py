"""Output that grows line by line, survives an interruption, and is whole when it has its name."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TextIO

from regard.foundation import display
from regard.foundation.errors import UsageError


@contextmanager
def writing(output: Path | None, call: str, rows: int) -> Iterator[tuple[TextIO, int]]:
    """Where output goes (`None` is standard output), and how many lines of input it holds already.

    A file is written beside its place as `OUT.partial` and renamed when it is whole; what an interruption leaves is
    continued by the same `call`, known by `OUT.partial.call`. Each line of input gives `rows` of output.
    """
    if output is None:
        yield sys.stdout, 0
        return
    if output.exists() and not output.is_file():  # a device or a pipe, such as /dev/null: never put a file in its place
        with output.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream, 0
        return
    output = output.resolve()  # behind a link stands the file that is replaced
    partial = output.with_name(f"{output.name}.partial")
    note = output.with_name(f"{output.name}.partial.call")
    mark = sha256(call.encode()).hexdigest()
    done = 0
    if partial.exists():
        if not note.exists() or note.read_text() != mark:
            raise UsageError(f"{partial} is left from another command: finish that one, or delete the file.")
        done = whole_lines(partial, rows)
        if done:
            display.note(f"{partial} holds {done:,} lines already: continuing after them.")
    note.write_text(mark)
    try:
        with partial.open("a", encoding="utf-8", newline="\n") as stream:
            yield stream, done
    except BaseException:
        count = whole_lines(partial, rows)
        if count:
            display.note(f"{partial} holds {count:,} lines: the same command continues after them.")
        else:
            partial.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
        raise
    from regard.foundation import durable

    durable.flush(partial)
    partial.replace(output)
    note.unlink(missing_ok=True)


def whole_lines(path: Path, rows: int) -> int:
    """Return how many inputs a partial output covers, `rows` lines each; what is behind the last whole one is cut off."""
    count, end, place = 0, 0, 0
    with path.open("r+b") as file:
        for line in file:
            place += len(line)
            if not line.endswith(b"\n"):
                break
            count += 1
            if count % rows == 0:
                end = place
        file.truncate(end)
    return count // rows
