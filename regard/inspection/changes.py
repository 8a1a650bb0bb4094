"""Changes to a model for one input: heads switched off or scaled, attention directed or frozen, activations replaced.

    model = regard.load("runs/en-de")
    model.watch("A dog runs.", changes=[ScaleHead("decoder.layers.0.source_attention", head=2, by=0.0)])

A change is plain data: JSON (`change_from`, `to_json`) and Python (`repr`) describe it completely, so that the studio,
the service and a script mean the same. Positions are tokens, counted from 0: of the source in an encoder, of the output
in a decoder, where position t is the prediction of output token t.

Axes: B batch, H heads, T positions that are computed now, S positions that are looked at, D width, K head width.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import combinations
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from regard.foundation.errors import UsageError
from regard.inspection.interventions import attentions, scale_head
from regard.models.parts import Entrance
from regard.nn import taps
from regard.nn.attention import Attention
from regard.nn.taps import Write
from regard.tasks.trace import Trace

MOST_CHANGES = 200
MOST_FACTOR = 1000.0
ENDS = ("encoder", "decoder")

Claim = tuple[str, int | None, int | None]
"""What a change decides: a tap, a head (None for all) and a position (None for all)."""


class Around(Protocol):
    """What changes may need to know: the unchanged pass, and passes over other sources."""

    @property
    def unchanged(self) -> Trace:
        """The pass of the model over the same source and its own output, without changes."""

    def other(self, source: str, /) -> Trace:
        """The pass of the model over another source and its own output, without changes."""


class Change(Protocol):
    """One change."""

    kind: ClassVar[str]

    @property
    def first(self) -> int:
        """The first output position that can differ."""

    def claims(self, model: nn.Module, /) -> list[Claim]:
        """What the change decides; two changes that decide the same contradict each other."""

    def writes(self, model: nn.Module, around: Around, /) -> dict[str, Write]:
        """Functions for `taps.watch`, for one pass over the source and the output, or one search."""


@dataclass(frozen=True)
class ScaleHead:
    """What a head finds is multiplied by a number; 0 switches the head off."""

    kind: ClassVar[str] = "scale-head"
    first: ClassVar[int] = 0
    attention: str
    """The path of the attention, such as `decoder.layers.0.source_attention`."""
    head: int
    by: float = 0.0

    def claims(self, model: nn.Module) -> list[Claim]:
        """The outputs of the head."""
        check_head(model, self.attention, self.head)
        if not abs(self.by) <= MOST_FACTOR:  # also of NaN
            raise UsageError(f"A head cannot be multiplied by {self.by:g}. Use at most {MOST_FACTOR:g}.")
        return [(f"{self.attention}.head_outputs", self.head, None)]

    def writes(self, model: nn.Module, around: Around) -> dict[str, Write]:
        """Multiply the outputs of the head."""
        return scale_head(self.attention, self.head, self.by)


@dataclass(frozen=True)
class Attend:
    """At one position an attention looks at one token only: its weight is 1 there and 0 elsewhere."""

    kind: ClassVar[str] = "attend"
    position: int
    """Who looks."""
    to: int
    """What is looked at."""
    attention: str | None = None
    """The path of the attention; by default every attention from the decoder to the source."""
    head: int | None = None
    """By default all heads."""

    @property
    def first(self) -> int:
        """The position; in an encoder, the start of the output."""
        return 0 if self.attention is not None and self.attention.startswith("encoder") else self.position

    def _paths(self, model: nn.Module) -> list[str]:
        if self.attention is not None:
            check_head(model, self.attention, self.head)
            return [self.attention]
        found = [path for path in attentions(model) if path.endswith("source_attention")]
        if not found:
            raise UsageError("This model has no attention to the source. Name the attention that is to change.")
        for path in found:
            check_head(model, path, self.head)
        return found

    def claims(self, model: nn.Module) -> list[Claim]:
        """The weights at the position."""
        for path in self._paths(model):
            if path.startswith("decoder") and not path.endswith("source_attention") and self.to > self.position:
                raise UsageError(f"Position {self.position} of {path} cannot look at {self.to}, which comes later.")
        return [(f"{path}.weights", self.head, self.position) for path in self._paths(model)]

    def writes(self, model: nn.Module, around: Around) -> dict[str, Write]:
        """Replace the weights at the position."""
        return {f"{path}.weights": self._write(path) for path in self._paths(model)}

    def _write(self, path: str) -> Write:
        def change(rows: Tensor, position: int) -> Tensor:  # B×H×S
            if position != self.position:
                return rows
            if not 0 <= self.to < rows.shape[-1]:
                raise UsageError(
                    f"Position {self.position} of {path} cannot look at {self.to}: it sees 0 to {rows.shape[-1] - 1}."
                )
            new = rows.clone()
            chosen = new if self.head is None else new[:, self.head : self.head + 1]
            chosen.zero_()
            chosen[..., self.to] = 1.0
            return new

        return _by_position(change)


@dataclass(frozen=True)
class Freeze:
    """An attention looks where it looked in the unchanged pass, whatever else is changed."""

    kind: ClassVar[str] = "freeze"
    first: ClassVar[int] = 0
    attention: str
    head: int | None = None
    """By default all heads."""

    def claims(self, model: nn.Module) -> list[Claim]:
        """The weights at every position."""
        check_head(model, self.attention, self.head)
        return [(f"{self.attention}.weights", self.head, None)]

    def writes(self, model: nn.Module, around: Around) -> dict[str, Write]:
        """Replace the weights at all positions that the unchanged pass had."""
        name = f"{self.attention}.weights"
        frozen = around.unchanged.activations[name]  # H×T×S
        if around.unchanged.parts:
            raise UsageError("Attention cannot be frozen in a model that encodes two texts separately.")

        def change(rows: Tensor, position: int) -> Tensor:  # B×H×S
            if position >= frozen.shape[1]:  # the output has become longer
                return rows
            held = frozen[:, position, : rows.shape[-1]].to(rows)
            new = rows.clone()
            if self.head is None:
                new[:] = held
            else:
                new[:, self.head] = held[self.head]
            return new

        return {name: _by_position(change)}


@dataclass(frozen=True)
class Overwrite:
    """An activation at one position becomes that of another source, at one of its positions."""

    kind: ClassVar[str] = "overwrite"
    tap: str
    """The name of the tap, such as `encoder.layers.1.states`."""
    position: int
    source: str
    """The other source; in a decoder its own output is read."""
    source_position: int | None = None
    """By default the same position."""

    @property
    def first(self) -> int:
        """The position; in an encoder, the start of the output."""
        return self.position if self.tap.startswith("decoder") else 0

    def claims(self, model: nn.Module) -> list[Claim]:
        """The tap at the position."""
        return [(self.tap, None, self.position)]

    def writes(self, model: nn.Module, around: Around) -> dict[str, Write]:
        """Replace the value at the position."""
        found = around.other(self.source).activations.get(self.tap)
        if found is None or found.dim() not in (2, 3) or self.tap.endswith((".weights", ".scores")):
            raise UsageError(f"{self.tap} does not have a vector for each position. Choose states or head outputs.")
        at = self.position if self.source_position is None else self.source_position
        if not 0 <= at < found.shape[-2]:
            raise UsageError(f'"{self.source[:80]}" has positions 0 to {found.shape[-2] - 1} at {self.tap}, not {at}.')
        value = found[..., at, :]  # D or H×K

        def change(rows: Tensor, position: int) -> Tensor:  # B×D or B×H×K
            return value.to(rows).expand_as(rows) if position == self.position else rows

        return {self.tap: _by_position(change)}


@dataclass(frozen=True)
class RemovePositions:
    """The encoder, the decoder or both do without positions: no position vectors, and no distances in attention."""

    kind: ClassVar[str] = "remove-positions"
    first: ClassVar[int] = 0
    end: str | None = None
    """`encoder` or `decoder`; by default both."""

    def claims(self, model: nn.Module) -> list[Claim]:
        """Positions are not a tap; each end has a name of its own."""
        if self.end is not None and self.end not in ENDS:
            raise UsageError(f"There is no end {self.end!r} of a model. Use encoder or decoder.")
        if not self._holders(model):
            raise UsageError(f"The {self.end or 'model'} has no positions that could be removed.")
        return [(f"{end}.positions", None, None) for end in ENDS if self.end in (None, end)]

    def writes(self, model: nn.Module, around: Around) -> dict[str, Write]:
        """Nothing: positions are parts of the model, which `removed` takes out."""
        return {}

    def _holders(self, model: nn.Module) -> list[tuple[nn.Module, str]]:
        found: list[tuple[nn.Module, str]] = []
        for path, module in model.named_modules():
            if self.end is None or path.startswith(self.end):
                if isinstance(module, Entrance) and module.places is not None:
                    found.append((module, "places"))
                if isinstance(module, Attention) and module.distances is not None:
                    found.append((module, "distances"))
        return found

    @contextmanager
    def removed(self, model: nn.Module) -> Iterator[None]:
        """Take positions out of the model, and put them back."""
        holders = self._holders(model)
        parts = [getattr(module, name) for module, name in holders]
        try:
            for module, name in holders:
                setattr(module, name, None)
            yield
        finally:
            for (module, name), part in zip(holders, parts, strict=True):
                setattr(module, name, part)


KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (ScaleHead, Attend, Freeze, Overwrite, RemovePositions)}


def change_from(data: Mapping[str, Any]) -> Change:
    """Return the change that JSON describes: its `kind`, and its fields by name."""
    given = dict(data)
    kind = KINDS.get(str(given.pop("kind", "")))
    if kind is None:
        raise UsageError(f"There is no change of the kind {data.get('kind')!r}. Use {', '.join(KINDS)}.")
    types = {field.name: field.type for field in fields(kind)}
    for name, value in given.items():
        wanted: Any = types.get(name, ())
        wanted = int | float if wanted is float else wanted
        if isinstance(value, bool) or not isinstance(value, wanted):
            raise UsageError(f"The change {kind.kind} has no {name} {str(value)[:80]!r}. It takes {', '.join(types)}.")
    try:
        change: Change = kind(**given)
    except TypeError:
        raise UsageError(f"The change {kind.kind} is incomplete. It takes {', '.join(types)}.") from None
    return change


def to_json(change: Change) -> dict[str, Any]:
    """Return a change as plain data."""
    assert isinstance(change, tuple(KINDS.values()))
    given: Any = change
    return {"kind": change.kind, **asdict(given)}


def check(model: nn.Module, changes: Sequence[Change]) -> None:
    """Raise `UsageError` if a change does not fit the model, or two contradict each other."""
    if len(changes) > MOST_CHANGES:
        raise UsageError(f"These are {len(changes)} changes. Make at most {MOST_CHANGES} at once.")
    known = set(taps.names(model))
    claims = [change.claims(model) for change in changes]
    for own in claims:
        for tap, _, _ in own:
            if tap not in known and not tap.endswith(".positions"):
                raise UsageError(f"This model has no tap {tap}.")
    for (one, ones), (two, twos) in combinations(zip(changes, claims, strict=True), 2):
        if any(_overlap(first, second) for first in ones for second in twos):
            raise UsageError(f"{one} and {two} contradict each other. Undo one of them.")


def check_reached(changes: Sequence[Change], trace: Trace) -> None:
    """Raise `UsageError` if a change is at a position that the source, or the output, does not have."""
    for change in changes:
        if isinstance(change, Attend | Overwrite):
            name = change.tap if isinstance(change, Overwrite) else change.attention or "decoder"
            side, noun = (trace.source, "source") if name.startswith("encoder") else (trace.target, "output")
            side = trace.target if trace.reads_only and len(trace.target) > 1 and noun == "output" else side
            if not 0 <= change.position < max(len(side), len(trace.source) if trace.reads_only else 0):
                raise UsageError(
                    f"There is no position {change.position}: the {noun} has positions 0 to {len(side) - 1}."
                )


def _overlap(one: Claim, two: Claim) -> bool:
    return one[0] == two[0] and all(a is None or b is None or a == b for a, b in zip(one[1:], two[1:], strict=True))


@contextmanager
def applied(model: nn.Module, changes: Sequence[Change], around: Around) -> Iterator[None]:
    """Change a model for one pass over one source, or for one search; afterwards it is as before."""
    check(model, changes)
    merged: dict[str, list[Write]] = {}
    for change in changes:
        for name, write in change.writes(model, around).items():
            merged.setdefault(name, []).append(write)
    with ExitStack() as stack:
        for change in changes:
            if isinstance(change, RemovePositions):
                stack.enter_context(change.removed(model))
        stack.enter_context(taps.watch(model, write={name: _chain(writes) for name, writes in merged.items()}))
        yield


def check_head(model: nn.Module, attention: str, head: int | None) -> None:
    """Raise `UsageError` if a model has no such attention, or the attention no such head."""
    found = attentions(model)
    if attention not in found:
        raise UsageError(f"This model has no attention {attention}. It has {', '.join(found) or 'none'}.")
    heads = found[attention].heads
    if head is not None and not 0 <= head < heads:
        raise UsageError(f"{attention} has no head {head}. It has heads 0 to {heads - 1}.")


def _chain(writes: Sequence[Write]) -> Write:
    def write(value: Tensor) -> Tensor:
        for one in writes:
            value = one(value)
        return value

    return write


def _by_position(change: Callable[[Tensor, int], Tensor]) -> Write:
    """Return a write that changes the rows …×T×n of a tap by their positions, which a search computes one at a time."""
    done = 0

    def write(was: Tensor) -> Tensor:
        nonlocal done
        new = was
        for row in range(was.shape[-2]):
            old = was[..., row, :]
            changed = change(old, done + row)
            if changed is not old:
                new = was.clone() if new is was else new
                new[..., row, :] = changed
        done += was.shape[-2]
        return new

    return write
