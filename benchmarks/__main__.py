"""`python -m benchmarks [PART …]`: what `make bench` and `regard bench` call."""

import argparse
import importlib
import sys
import time
from pathlib import Path

from benchmarks.environments import VERSIONS
from benchmarks.options import Options
from benchmarks.places import RESULTS, say

PARTS = {
    "train": "training",
    "decode": "decoding",
    "startup": "startup",
    "memory": "memory",
    "growth": "growth",
    "plan": "plan",
    "serve": "serving",
    "store": "store",
}
"""Every part, and the module that measures it."""
ON_REQUEST = ("store",)
"""Parts that take so long that they are measured only by name."""


def main() -> int:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all but store by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="", help="only these, by commas")
    parser.add_argument("--models", default="", help="only these of train and memory, by commas")
    parser.add_argument("--run", type=Path, help="whose weights decode")
    parser.add_argument("--quick", action="store_true", help="a smoke run: small models, made-up text")
    given = parser.parse_args()
    named = [name for name in given.peers.split(",") if name]
    for wrong in [name for name in given.parts if name not in PARTS]:
        parser.error(f"no part is called {wrong}: {', '.join(PARTS)}")
    for wrong in [name for name in named if name not in (*VERSIONS, "none")]:
        parser.error(f"no peer is called {wrong}: {', '.join(VERSIONS)}, or none")
    options = Options(
        rounds=given.rounds or 1,
        quick=given.quick,
        peers=named,
        models=[name for name in given.models.split(",") if name],
        run=given.run,
        threads=1 if given.quick else 2,
    )
    failed = False
    for name in given.parts or [name for name in PARTS if name not in ON_REQUEST]:
        start = time.monotonic()
        try:
            print(importlib.import_module(f"benchmarks.{PARTS[name]}").measure(options), flush=True)
        except Exception as error:
            if len(given.parts) == 1:
                raise
            failed = True
            say(f"{name} failed ({type(error).__name__}: {error}); the other parts go on.")
        place = RESULTS / "quick" if given.quick else RESULTS
        say(f"{name}: {(time.monotonic() - start) / 60:.1f} minutes; {place / name}.md\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
