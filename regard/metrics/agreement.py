"""Agreement of judges beyond chance."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def krippendorff(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Return Krippendorff's α = 1 − Dₒ/Dₑ for nominal values (Krippendorff, 2011); a unit is the values of its judges.

    Dₒ is the share of disagreeing pairs within units, each value counted once; Dₑ the expected share if the same values
    were assigned at random. Units with fewer than two values are ignored. `None` if α is undefined: there are no pairs,
    or all values are equal.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    values = Counter(value for unit in pairable for value in unit)
    count = sum(values.values())
    disagreeing = sum(
        sum(times * (len(unit) - times) for times in Counter(unit).values()) / (len(unit) - 1) for unit in pairable
    )
    by_chance = sum(times * (count - times) for times in values.values())
    return 1 - (count - 1) * disagreeing / by_chance if by_chance else None
