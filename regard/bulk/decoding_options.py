"""What a worker needs to know: the run, the engine, and the options of its search. All of it is plain JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.search import Search


@dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """Options of search as on the command line of `regard translate`; `None` means the value of the run."""

    beam: int | None = None
    length_penalty: float | None = None
    full_beam: bool = False
    coverage_penalty: float = 0.0
    groups: int = 1
    diversity: float = 0.5
    samples: int = 0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    utility: str | None = None
    prefix: str | None = None
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    length: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    split: bool | None = None

    @property
    def is_plain(self) -> bool:
        """Whether only the beam and the length penalty differ from the defaults, as on the fast path."""
        return self == DecodingOptions(beam=self.beam, length_penalty=self.length_penalty)

    def search(self, run: Any) -> "Search":
        """Return the search of these options; imports torch."""
        from regard.search import Constraints, Search
        from regard.search.options import kept_kinds
        from regard.tasks.lengths import word_limits

        fields = asdict(self)
        given = {name: fields.pop(name) for name in ("prefix", "require", "forbid", "only", "extra")}
        length = fields.pop("length")
        words = None if length is None else word_limits(length, run)
        fields["keep"] = kept_kinds(self.keep)
        return Search(**fields, constraints=Constraints(**given, words=words))


@dataclass(frozen=True)
class Assignment:
    """How a worker translates."""

    run: str
    engine: str
    overrides: tuple[str, ...] = ()
    decoding: DecodingOptions = field(default_factory=DecodingOptions)
    plugins: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the assignment as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Assignment":
        """Return the assignment of a line."""
        fields = json.loads(line)
        given: dict[str, Any] = fields["decoding"]
        given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        lists = tuple(fields["overrides"]), DecodingOptions(**given), tuple(fields["plugins"])
        return cls(fields["run"], fields["engine"], *lists)
