"""Everything that can be asked of a search, in one place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

from regard.foundation.errors import UsageError
from regard.search.constraints import Constraints, as_phrases
from regard.search.kept import KEEP, Stretch, find_kept
from regard.search.mbr import Utility, utility_of

MOST_SAMPLES = 100_000


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
    """Hypotheses given for each text, best first, no text twice; as many as `samples`: all samples, as drawn."""
    full_beam: bool = False
    """An ended hypothesis leaves the beam to another, instead of keeping its slot: slower, finds more."""
    length_penalty: float | None = None
    """Scores are divided by length to this power."""
    coverage_penalty: float = 0.0
    """β of Wu et al. (2016): how much it costs to leave source words unattended."""
    groups: int = 1
    """Groups of the beam that avoid each other (Vijayakumar et al., 2018)."""
    diversity: float = 0.5
    """Diversity penalty between groups."""
    samples: int = 0
    """Outputs drawn at random instead of a beam; 0 is none."""
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    """The same seed and text give the same samples, wherever the text stands."""
    utility: str | Utility | None = None
    """Choose among the samples by minimum Bayes risk under this metric: a name such as `meteor:de`, or a function."""
    constraints: Constraints = field(default_factory=Constraints)
    """What outputs must and must not be."""
    keep: tuple[str, ...] = ()
    """What of the source must stand in the output unchanged: urls, numbers, placeholders, or a regular expression."""
    split: bool | None = False
    """Cut texts into sentences and put their outputs together; `None`: those longer than what was trained on."""

    def __post_init__(self) -> None:
        for name in ("beam", "count", "groups", "samples", "top_k", "seed"):
            _check_type(name, getattr(self, name), Integral, "a whole number", optional=name in ("beam", "top_k"))
        for name in ("length_penalty", "coverage_penalty", "diversity", "temperature", "top_p"):
            _check_type(name, getattr(self, name), Real, "a number", optional=name in ("length_penalty", "top_p"))
        for name in ("full_beam", "split"):
            _check_type(name, getattr(self, name), bool, "True or False", optional=name == "split")
        _check_type("constraints", self.constraints, Constraints, "an object of regard.search.Constraints")
        object.__setattr__(self, "keep", as_phrases("keep", self.keep))
        if self.utility is not None and not callable(self.utility):
            _check_type("utility", self.utility, str, "the name of a metric or a function of two texts")
        for wrong, problem in self._problems():
            if wrong:
                raise UsageError(problem)
        if isinstance(self.utility, str):
            utility_of(self.utility)

    def _problems(self) -> Iterator[tuple[bool, str]]:
        """What cannot be, and what to say of it."""
        width, sampled = self.beam, self.samples > 0
        if self.length_penalty is not None:
            yield (
                not 0 <= self.length_penalty <= 10,
                f"A length penalty of {self.length_penalty:g} is out of reach: use 0 to 10.",
            )
        yield width is not None and not 1 <= width <= 1000, f"A beam of {width} is out of reach: use 1 to 1000."
        yield self.count < 1, f"{self.count} hypotheses cannot be given: ask for at least 1."
        yield (
            not sampled and self.count > 1000,
            f"{self.count} hypotheses cannot be given: a beam, and so an n-best list, is at most 1000 wide.",
        )
        yield (
            not sampled and width is not None and width < self.count,
            f"A beam of {width} cannot give {self.count} hypotheses: ask for at least 1 and at most the beam.",
        )
        yield (
            not 0 <= self.samples <= MOST_SAMPLES,
            f"{self.samples} samples cannot be drawn: use 0 (none) to {MOST_SAMPLES}.",
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
        yield self.groups < 1, f"A beam cannot have {self.groups} groups: use at least 1."
        yield sampled and self.groups > 1, "Diverse groups need a beam, but samples are drawn: use one of them."
        yield sampled and self.full_beam, "A full beam is a beam, but samples are drawn: use one of them."
        yield (
            sampled and self.coverage_penalty != 0,
            "A coverage penalty ranks a beam, but samples are drawn: use one of them.",
        )
        yield (
            self.utility is not None and not sampled,
            "Minimum Bayes risk chooses among samples: draw some (16 or more).",
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
        given = self.constraints
        return bool(given.prefix or given.require or given.only is not None or given.extra)

    @property
    def splits(self) -> bool | None:
        """Whether to cut texts: never where constraints speak of the whole."""
        return False if self._of_whole_texts else self.split

    @property
    def as_drawn(self) -> bool:
        """Whether all samples are given as they were drawn, the same text as often as it came."""
        return self.samples > 0 and self.utility is None and self.count == self.samples

    def kept(self, source: str) -> list[Stretch]:
        """The parts of a source that must stand in its output unchanged."""
        return find_kept(source, self.keep)


def _check_type(name: str, value: object, kind: type, expected: str, *, optional: bool = False) -> None:
    """Refuse an option of another type."""
    if value is None and optional:
        return
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(
            f"The search option `{name}` is {str(value)[:80]!r} ({type(value).__name__}). It must be {expected}"
            f"{' or None' if optional else ''}."
        )
