"""Do judges agree more than chance would have them?"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def krippendorff(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's α = 1 − Dₒ/Dₑ for nominal values (Krippendorff, 2011); each unit holds the values it was given.

    Dₒ is the share of disagreeing pairs within units, each value counted once; Dₑ the share if the same values were
    dealt at random. Units with fewer than two values say nothing. `None` where nothing can be said: no pairs, or all
    values alike.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    values = Counter(value for unit in pairable for value in unit)
    count = sum(values.values())
    disagreeing = sum(
        sum(times * (len(unit) - times) for times in Counter(unit).values()) / (len(unit) - 1) for unit in pairable
    )
    by_chance = sum(times * (count - times) for times in values.values())
    return 1 - (count - 1) * disagreeing / by_chance if by_chance else None
