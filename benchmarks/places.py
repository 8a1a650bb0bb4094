"""Where the benchmarks read and write."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = HERE / "programs"
REQUIREMENTS = HERE / "peers"
ENVIRONMENTS = HERE / ".peers"
"""An environment for each peer; may be deleted at any time."""
CACHE = HERE / ".cache"
"""Corpora, runs and logs; may be deleted at any time."""
RESULTS = HERE / "results"
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"


def say(text: str) -> None:
    """A line on the way, apart from the results."""
    print(text, file=sys.stderr, flush=True)
