"""Detection of endless repetition: a hypothesis that repeats a block of tokens is cut and ended.

Normal output is not affected: a loop is at least four repetitions of a block and `PATIENCE` tokens in total, and a
repetitive source allows a repetitive output.
"""

from collections.abc import Sequence

PATIENCE = 32
"""Number of repeated tokens from which on a repetition counts as a loop."""
ROUNDS = 4
LONGEST_BLOCK = 32


def loop_start(tokens: Sequence[int], patience: int = PATIENCE) -> int | None:
    """Return the length after cutting the loop at the end to its first repetition; `None` if there is no loop."""
    count = len(tokens)
    if count < patience:
        return None
    for block in range(1, min(LONGEST_BLOCK, count // ROUNDS) + 1):
        if tokens[-1] != tokens[-1 - block]:
            continue
        again = block  # number of final tokens that equal the token one block later
        while again < count and tokens[-1 - again] == tokens[-1 - again + block]:
            again += 1
        if again >= max(patience, ROUNDS * block):
            return count - again + block
    return None


def patience_for(source: Sequence[int]) -> int:
    """Return the patience for the output of a source: twice its longest repetition plus `PATIENCE`."""
    longest = 0
    for block in range(1, min(LONGEST_BLOCK, len(source) // 2) + 1):
        run = 0
        for index in range(block, len(source)):
            run = run + 1 if source[index] == source[index - block] else 0
            if run >= block:
                longest = max(longest, run + block)
    return PATIENCE + 2 * longest
