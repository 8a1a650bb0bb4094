"""Endless repetition in finished outputs, cut where the native search would have noticed it."""

from collections.abc import Sequence

SHORTEST = 32
"""Fewer tokens are never a loop (`regard.search.guards.PATIENCE`), and need not be looked at."""


def first_loop(tokens: Sequence[int], patience: int) -> int | None:
    """How many tokens are left when the first loop is cut to its first round; `None` where there is no loop."""
    from regard.search.guards import loop_start

    ends = range(patience, len(tokens) + 1)
    return next((cut for end in ends if (cut := loop_start(tokens[:end], patience)) is not None), None)


def repeats(tokens: Sequence[int]) -> bool:
    """Whether a block of tokens is said four times in a row: without that there is no loop, and no need to look."""
    for block in range(1, min(SHORTEST, len(tokens) // 4) + 1):
        run = 0
        for place in range(block, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - block] else 0
            if run >= 3 * block:
                return True
    return False


def without_loops(tokens: list[int], source: list[int]) -> list[int]:
    """An output without its loop, if it has one."""
    if len(tokens) < SHORTEST or not repeats(tokens):
        return tokens
    from regard.search.guards import patience_for

    return tokens[: first_loop(tokens, patience_for(source))]
