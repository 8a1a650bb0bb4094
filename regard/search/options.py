"""Everything that can be asked of a search, in one place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from regard.errors import UsageError
from regard.search.constraints import Constraints
from regard.search.mbr import METRICS, Utility

KEEP = {
    "urls": r"(?:https?://|www\.)[^\s<>\"']*[^\s<>\"'.,;:!?)\]]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "numbers": r"(?<![\w.,])\d+(?:[.,:]\d+)*(?![\w])",
    "placeholders": r"\{\{?\w+\}?\}|%\(\w+\)[sd]|%[sd]\b|<[^<>\s]+>|\$\{\w+\}",
}
"""What `keep` knows by name; anything else is a regular expression."""


def kept_kinds(values: Sequence[str]) -> tuple[str, ...]:
    """What to keep, as it is typed: names with commas between them, or regular expressions as they are."""
    split = [value.split(",") if set(value.split(",")) <= set(KEEP) else [value] for value in values]
    return tuple(kind for kinds in split for kind in kinds)


@dataclass(frozen=True, kw_only=True)
class Search:
    """How outputs are looked for; what is `None` is as the run's configuration says."""

    beam: int | None = None
    """Hypotheses followed; 1 is greedy."""
    count: int = 1
    """Hypotheses given for each text, best first."""
    length_penalty: float | None = None
    """Scores are divided by length to this power."""
    coverage_penalty: float = 0.0
    """β of Wu et al. (2016): how much it costs to leave source words unattended."""
    groups: int = 1
    """Groups of the beam that avoid each other (Vijayakumar et al., 2018)."""
    diversity: float = 0.5
    """How much they do."""
    samples: int = 0
    """Outputs drawn at random instead of a beam; 0 is none."""
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    """The same seed and text give the same samples, wherever the text stands."""
    utility: str | Utility | None = None
    """Choose among the samples by minimum Bayes risk under this metric."""
    constraints: Constraints = field(default_factory=Constraints)
    """What outputs must and must not be."""
    keep: tuple[str, ...] = ()
    """What of the source must stand in the output unchanged: urls, numbers, placeholders, or a regular expression."""
    split: bool | None = False
    """Cut texts into sentences and put their outputs together; `None`: those longer than what was trained on."""

    def __post_init__(self) -> None:
        for wrong, problem in self._problems():
            if wrong:
                raise UsageError(problem)

    def _problems(self) -> Iterator[tuple[bool, str]]:
        """What cannot be, and what to say of it."""
        width, sampled = self.beam, self.samples > 0
        yield (
            self.length_penalty is not None and not 0 <= self.length_penalty <= 10,
            f"A length penalty of {self.length_penalty:g} is out of reach: use 0 to 10."
            if self.length_penalty is not None
            else "",
        )
        yield width is not None and not 1 <= width <= 1000, f"A beam of {width} is out of reach: use 1 to 1000."
        yield self.count < 1, f"{self.count} hypotheses cannot be given: ask for at least 1."
        yield (
            not sampled and width is not None and width < self.count,
            f"A beam of {width} cannot give {self.count} hypotheses: ask for at least 1 and at most the beam.",
        )
        yield (
            0 < self.samples < self.count,
            f"{self.samples} samples cannot give {self.count} hypotheses: draw more.",
        )
        yield (
            not 0 <= self.temperature <= 1000,
            f"A temperature of {self.temperature:g} means nothing: 0 is the likeliest token, 1 the model itself.",
        )
        for name, value in (("coverage penalty", self.coverage_penalty), ("diversity", self.diversity)):
            yield not 0 <= value <= 1000, f"A {name} of {value:g} is out of reach: use 0 to 1000."
        yield self.top_k is not None and self.top_k < 1, "top-k is how many tokens may be drawn: at least 1."
        yield (
            self.top_p is not None and not 0 < self.top_p <= 1,
            "top-p is a share of probability: above 0 and at most 1.",
        )
        yield sampled and self.groups > 1, "Diverse groups need a beam, but samples are drawn: use one of them."
        yield (
            sampled and self.coverage_penalty != 0,
            "A coverage penalty ranks a beam, but samples are drawn: use one of them.",
        )
        yield bool(self.utility) and not sampled, "Minimum Bayes risk chooses among samples: draw some (16 or more)."
        yield (
            isinstance(self.utility, str) and self.utility not in METRICS,
            f"There is no utility `{self.utility}`: choose from {', '.join(METRICS)}.",
        )
        yield (
            bool(self.keep) and self.constraints.only is not None,
            "What is kept from the source cannot be had from a list of allowed outputs: drop one.",
        )
        yield (
            self.split is True and self._of_whole_texts,
            "A prefix, required phrases and allowed outputs are for whole texts, which splitting cuts: drop one.",
        )

    @property
    def _of_whole_texts(self) -> bool:
        """Whether constraints speak of a text as a whole."""
        return bool(self.constraints.prefix or self.constraints.require or self.constraints.only is not None)

    @property
    def splits(self) -> bool | None:
        """Whether to cut texts: never where constraints speak of the whole."""
        return False if self._of_whole_texts else self.split

    def kept(self, source: str) -> list[str]:
        """The stretches of a source that must stand in its output unchanged."""
        found: list[str] = []
        for name in self.keep:
            try:
                found += [match[0] for match in re.finditer(KEEP.get(name, name), source) if match[0].strip()]
            except re.error as error:
                raise UsageError(
                    f"`{name}` is neither {', '.join(KEEP)} nor a regular expression that can be read ({error})."
                ) from None
        return [one for one in dict.fromkeys(found) if not any(one != other and one in other for other in found)]
