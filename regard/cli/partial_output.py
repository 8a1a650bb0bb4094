"""Output that is written line by line, survives an interruption, and gets its name when it is complete."""

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
    """Open the output (`None` is standard output); yields it and the number of input lines that it already covers.

    A file is written as `OUT.partial` and renamed when it is complete. After an interruption the same `call`, recorded
    in `OUT.partial.call`, continues it. Each line of input gives `rows` lines of output.
    """
    if output is None:
        yield sys.stdout, 0
        return
    if output.exists() and not output.is_file():  # a device or a pipe, such as /dev/null, is not replaced
        with output.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream, 0
        return
    output = output.resolve()  # replace the file that a link points to
    partial = output.with_name(f"{output.name}.partial")
    note = output.with_name(f"{output.name}.partial.call")
    mark = sha256(call.encode()).hexdigest()
    done = 0
    if partial.exists():
        if not note.exists() or note.read_text() != mark:
            raise UsageError(f"{partial} is left from another command. Finish that command, or delete the file.")
        done = whole_lines(partial, rows)
        if done:
            display.note(f"{partial} already has {done:,} lines. Continuing after them.")
    note.write_text(mark)
    try:
        with partial.open("a", encoding="utf-8", newline="\n") as stream:
            yield stream, done
    except BaseException:
        count = whole_lines(partial, rows)
        if count:
            display.note(f"{partial} has {count:,} lines. The same command continues after them.")
        else:
            partial.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
        raise
    from regard.foundation import durable

    durable.flush(partial)
    partial.replace(output)
    note.unlink(missing_ok=True)


def whole_lines(path: Path, rows: int) -> int:
    """Return the number of inputs that a partial output covers, `rows` lines each; an incomplete one is cut off."""
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
