"""Detection of endless repetition in finished outputs, with the rule of the native search."""

from collections.abc import Sequence

from regard.text.loops import loop_start


def first_loop(tokens: Sequence[int], patience: int) -> int | None:
    """Return the length after cutting the first loop to its first repetition; `None` if there is no loop."""
    ends = range(patience, len(tokens) + 1)
    return next((cut for end in ends if (cut := loop_start(tokens[:end], patience)) is not None), None)
