"""The guard against endless repetition: a block of tokens said over and over is cut, and its hypothesis ended.

Sane output is out of its reach: a loop is at least four rounds of a block and `PATIENCE` tokens in all, and a source
that repeats itself may be answered in kind.
"""

from collections.abc import Sequence

PATIENCE = 32
"""Tokens that may be spent on saying the same block again before it counts as a loop."""
ROUNDS = 4
LONGEST_BLOCK = 32


def loop_start(tokens: Sequence[int], patience: int = PATIENCE) -> int | None:
    """Return how many tokens are left when the loop at the end is cut to its first round; `None` where there is no loop."""
    count = len(tokens)
    if count < patience:
        return None
    for block in range(1, min(LONGEST_BLOCK, count // ROUNDS) + 1):
        if tokens[-1] != tokens[-1 - block]:
            continue
        again = block  # tokens at the end, each of which equals the one a block later
        while again < count and tokens[-1 - again] == tokens[-1 - again + block]:
            again += 1
        if again >= max(patience, ROUNDS * block):
            return count - again + block
    return None


def patience_for(source: Sequence[int]) -> int:
    """Patience with the output for a source: twice its own longest repetition, and `PATIENCE` beyond."""
    longest = 0
    for block in range(1, min(LONGEST_BLOCK, len(source) // 2) + 1):
        run = 0
        for place in range(block, len(source)):
            run = run + 1 if source[place] == source[place - block] else 0
            if run >= block:
                longest = max(longest, run + block)
    return PATIENCE + 2 * longest
