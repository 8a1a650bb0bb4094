"""Run the preprocessing of mail over real and damaged mails, and print what happened as JSON.

`python -m tests.run_mail_fuzzer [--real train.jsonl.gz dev.jsonl.gz] [--fuzzed 1000] [--seed 1]`

Real mails are JSON lines with `email`. A fuzzed mail is a mail of a common client, composed from templates, with bytes
removed, repeated, replaced and inserted, headers and MIME structure included. Every mail is parsed and cleaned; the
program exits with 1 if one raised an error.
"""

import argparse
import gzip
import json
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from regard.reply.letters import split_letter
from regard.reply.mail import parse_mail
from regard.reply.preprocessing import clean_mail
from regard.reply.quotations import remove_quotations
from tests.mail_fuzzer import fuzzed_mails


def real_mails(paths: list[Path]) -> Iterator[bytes]:
    """Yield the mails of JSON lines as messages without headers."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield b"Subject: x\n\n" + json.loads(line)["email"].encode()


def check(content: bytes) -> None:
    """Clean a mail as `regard reply suggest` does; raise if its parts are not those of the mail."""
    text = remove_quotations(parse_mail(content).text)
    letter = split_letter(text)
    clean_mail(text)
    words = set(text.split())
    missing = [word for word in letter.body.split() if word not in words]
    if len(missing) > 2:  # a word at the border of two parts may be cut
        raise AssertionError(f"words that are not in the mail: {missing[:5]}")


def run(name: str, mails: Iterator[bytes]) -> dict[str, object]:
    """Check mails and return their number, the errors and the longest time."""
    count, errors, longest, begin = 0, [], 0.0, time.perf_counter()
    for content in mails:
        count += 1
        start = time.perf_counter()
        try:
            check(content)
        except Exception:
            errors.append(traceback.format_exc(limit=-2))
        longest = max(longest, time.perf_counter() - start)
    seconds = time.perf_counter() - begin
    return {
        "mails": name,
        "count": count,
        "errors": len(errors),
        "first_errors": errors[:3],
        "longest_seconds": round(longest, 3),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", type=Path, nargs="*", default=[])
    parser.add_argument("--fuzzed", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = [run(path.name, real_mails([path])) for path in given.real]
    rows.append(run("fuzzed", fuzzed_mails(given.fuzzed, seed=given.seed)))
    print(json.dumps(rows, indent=2))
    sys.exit(1 if any(row["errors"] for row in rows) else 0)


if __name__ == "__main__":
    main()
