"""Endless repetition in finished outputs, cut where the native search would have noticed it."""

from collections.abc import Sequence

from regard.text.loops import loop_start


def first_loop(tokens: Sequence[int], patience: int) -> int | None:
    """Return how many tokens are left when the first loop is cut to its first round; `None` where there is no loop."""
    ends = range(patience, len(tokens) + 1)
    return next((cut for end in ends if (cut := loop_start(tokens[:end], patience)) is not None), None)
