"""The options of search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

from regard.foundation.errors import UsageError
from regard.search.constraints import Constraints, as_phrases
from regard.search.kept_parts import KEEP, Stretch, find_kept
from regard.search.mbr import Utility, utility_of

MOST_BEAM = 1000
MOST_SAMPLES = 100_000
LIMITS: dict[str, tuple[float, float]] = {
    "length_penalty": (0, 10),
    "beam": (1, MOST_BEAM),
    "count": (1, MOST_SAMPLES),
    "samples": (0, MOST_SAMPLES),
    "temperature": (0, 1000),
    "coverage_penalty": (0, 1000),
    "diversity": (0, 1000),
    "top_k": (1, 2**31 - 1),
    "top_p": (0, 1),
    "groups": (1, MOST_BEAM),
}
"""Minimum and maximum of each numeric option."""
FLAGS = {"count": "--n-best", "groups": "--diverse", "utility": "--mbr"}
"""Command-line flags of options whose names differ."""


def option(name: str) -> str:
    """Return the name of an option for error messages, in Python and on the command line."""
    return f"`{name}` ({FLAGS.get(name, '--' + name.replace('_', '-'))})"


def kept_kinds(values: Sequence[str]) -> tuple[str, ...]:
    """Split values of `keep`: names separated by commas, or regular expressions, which are not split."""
    split = [value.split(",") if set(value.split(",")) <= set(KEEP) else [value] for value in values]
    return tuple(kind for kinds in split for kind in kinds)


@dataclass(frozen=True, kw_only=True)
class Search:
    """Options of search; `None` means the value of the run's configuration."""

    beam: int | None = None
    """Beam width; 1 is greedy search."""
    count: int = 1
    """Hypotheses returned per text, best first, without duplicates; if equal to `samples`, all samples as drawn."""
    full_beam: bool = False
    """Ended hypotheses free their slots instead of keeping them: slower, finds better hypotheses."""
    length_penalty: float | None = None
    """Scores are divided by length to this power."""
    coverage_penalty: float = 0.0
    """Penalty β for source words without attention (Wu et al., 2016)."""
    groups: int = 1
    """Groups of diverse beam search (Vijayakumar et al., 2018)."""
    diversity: float = 0.5
    """Diversity penalty between groups."""
    samples: int = 0
    """Number of samples, drawn instead of beam search; 0 for none."""
    temperature: float = 1.0
    """Sampling: divides logits; below 1 the distribution is sharper."""
    top_k: int | None = None
    """Sampling: draw from the k most probable tokens only."""
    top_p: float | None = None
    """Sampling: draw from the smallest set of tokens with this probability only."""
    seed: int = 0
    """The same seed and text give the same samples, independently of batch and order."""
    utility: str | Utility | None = None
    """Choose among the samples, or else the hypotheses of the beam, by minimum Bayes risk under this metric: a name, as
    `rouge` or `meteor:de`, or a function."""
    constraints: Constraints = field(default_factory=Constraints)
    """Constraints on outputs."""
    keep: tuple[str, ...] = ()
    """What to copy from the source unchanged: urls, numbers, placeholders, or a regular expression."""
    split: bool | None = False
    """Split texts into sentences and join their outputs; `None`: only texts longer than those trained on."""

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
        """Yield for each check whether it fails, and its message."""
        sampled = self.samples > 0
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            yield (
                value is not None and not least <= value <= most,
                f"{option(name)} is {value}. It must be between {least} and {most}.",
            )
        yield (
            not sampled and self.count > MOST_BEAM,
            f"{option('count')} is {self.count}. Without sampling it must be at most {MOST_BEAM}, the widest beam.",
        )
        yield (
            not sampled and self.beam is not None and self.beam < self.count,
            f"{option('count')} is {self.count}. It must be at most {option('beam')}, which is {self.beam}.",
        )
        yield (
            0 < self.samples < self.count,
            f"{option('count')} is {self.count}. It must be at most {option('samples')}, which is {self.samples}.",
        )
        yield self.top_p == 0, f"{option('top_p')} is 0. It must be above 0 and at most 1."
        for name, used in (
            ("groups", self.groups > 1),
            ("full_beam", self.full_beam),
            ("coverage_penalty", self.coverage_penalty != 0),
        ):
            yield (
                sampled and used,
                f"{option(name)} needs a beam, but {option('samples')} draws at random. Use one of them.",
            )
        yield (
            self.utility is not None and not sampled and self.beam == 1,
            f"{option('utility')} chooses among several outputs, but {option('beam')} is 1. Use a beam of 5 or more, "
            f"or draw {option('samples')}.",
        )
        yield (
            bool(self.keep) and self.constraints.only is not None,
            f"{option('keep')} takes text from the source, which {option('only')} may not allow. Use one of them.",
        )
        yield (
            self.split is True and self._of_whole_texts,
            f"{option('prefix')}, {option('require')} and {option('only')} are for whole texts, which "
            f"{option('split')} cuts. Leave one of them out.",
        )

    @property
    def _of_whole_texts(self) -> bool:
        """Whether there are constraints on a text as a whole."""
        given = self.constraints
        begun = given.prefix or given.prefix_tokens
        return bool(begun or given.require or given.only is not None or given.words or given.extra)

    @property
    def splits(self) -> bool | None:
        """Whether to split texts; never with constraints on whole texts."""
        return False if self._of_whole_texts else self.split

    @property
    def as_drawn(self) -> bool:
        """Whether all samples are returned as drawn, duplicates included."""
        return self.samples > 0 and self.utility is None and self.count == self.samples

    def kept(self, source: str) -> list[Stretch]:
        """Return the parts of a source that must be in its output unchanged."""
        return find_kept(source, self.keep)


def _check_type(name: str, value: object, kind: type, expected: str, *, optional: bool = False) -> None:
    """Raise `UsageError` for an option of another type."""
    if value is None and optional:
        return
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(
            f"The search option {option(name)} is {str(value)[:80]!r} ({type(value).__name__}). It must be {expected}"
            f"{' or None' if optional else ''}."
        )
