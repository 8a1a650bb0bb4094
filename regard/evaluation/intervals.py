"""How far a share can be trusted."""

from math import sqrt

Z = 1.959964
"""Standard deviations around the mean that hold 95 % of a normal distribution."""


def wilson(successes: float, count: int, z: float = Z) -> tuple[float, float]:
    """The interval of a binomial share: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n) (Wilson, 1927)."""
    if not count:
        return 0.0, 1.0
    share = successes / count
    middle = share + z * z / (2 * count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    whole = 1 + z * z / count
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)
