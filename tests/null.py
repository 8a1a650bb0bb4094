"""How many false positives chance explains."""

from math import comb


def most_by_chance(simulations: int, share: float = 0.05, risk: float = 0.001) -> int:
    """Return the count that false positives of tests at level `share` exceed with a probability below `risk`."""
    tail, count = 1.0, 0
    while tail > risk:
        tail -= comb(simulations, count) * share**count * (1 - share) ** (simulations - count)
        count += 1
    return count - 1
