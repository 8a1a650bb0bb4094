"""A worker process: translates chunks of lines, one at a time.

From standard input it reads its assignment, and then JSON lists of lines, one per line. To standard output it writes
JSON replies: {"ready": true} or {"error": "…", "usage": false} to the assignment, and to each list {"outputs": ["…"],
"reasons": {"3": "…"}, "tokens": 4711, "cut": 0}, where `cut` counts lines that are
longer than the run reads. It ends when its input ends, so also when the process that started it is killed.
"""

import contextlib
import json
import os
import signal
import sys
from typing import Any

from regard.bulk.decoding_options import Assignment
from regard.bulk.line_translator import LineTranslator, translate_lines
from regard.foundation.errors import RegardError, UsageError


def main() -> None:
    """Run a worker on standard input and output; anything that libraries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides when workers stop
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)

    def reply(fields: dict[str, Any]) -> None:
        stream.write(json.dumps(fields, ensure_ascii=False) + "\n")
        stream.flush()

    assignment = sys.stdin.readline()
    if not assignment:  # the process that started this one has been killed
        return
    try:
        translator = LineTranslator(Assignment.from_json(assignment))
    except RegardError as error:
        reply({"error": str(error), "usage": isinstance(error, UsageError)})
        return
    with contextlib.suppress(BrokenPipeError):  # likewise
        reply({"ready": True})
        for line in sys.stdin:
            before = translator.tokens
            lines = json.loads(line)
            outputs, reasons = translate_lines(translator.translate, lines)
            cut = translator.count_cut([text for index, text in enumerate(lines) if index not in reasons])
            reply({"outputs": outputs, "reasons": reasons, "tokens": translator.tokens - before, "cut": cut})


if __name__ == "__main__":
    main()
