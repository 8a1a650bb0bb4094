"""What every measured program shares with the one that measures it: commands come in as lines, answers go out as lines.

Standard library only: this runs in the environment of every peer.
"""

import json
import os
import sys
import time


def answer(**facts):
    """One line to whoever measures; standard output is the program's own."""
    line = json.dumps(facts) + "\n"
    os.write(int(os.environ["BENCH_ANSWERS"]), line.encode())


def command():
    """The next order; when there are no more, the program ends at once."""
    line = sys.stdin.readline()
    if not line:
        sys.stdout.flush()
        os._exit(0)
    return json.loads(line)


def loaded():
    """Say that all is in memory, and wait for the turn to warm up: two at once would wait for each other's threads."""
    answer(loaded=True)
    command()


class Pace:
    """A training that pauses between rounds: `tick` stands before every update, with the tokens learnt so far."""

    def __init__(self, warmup):
        self.left, self.loaded = warmup, False
        self.order = None
        self.updates = self.tokens = self.start = 0

    def tick(self, tokens):
        """Count an update that is done; where a round is full, report it and wait for the next."""
        now = time.perf_counter()
        if self.order is None:
            if not self.loaded:
                self.loaded = True
                loaded()
            self.left -= 1
            if self.left >= 0:
                return
        else:
            self.updates += 1
            seconds = now - self.start
            if seconds < self.order["seconds"] or self.updates < self.order["updates"]:
                return
            answer(seconds=seconds, updates=self.updates, tokens=tokens - self.tokens)
        if self.order is None:
            answer(ready=True)
        self.order = command()
        self.updates, self.tokens, self.start = 0, tokens, time.perf_counter()
