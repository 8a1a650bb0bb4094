"""Named points inside a model that can be watched or written to, and cost nothing when they are not."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

Write = Callable[[Tensor], Tensor]


class Tap(nn.Module):
    """y = x, unless someone watches; its name is its path in the model, such as `decoder.layers.0.states`.

    A tap inside a recurrence is passed once per step; `time` is the axis along which those values are joined.
    """

    def __init__(self, *, time: int) -> None:
        super().__init__()
        self.time = time
        self.watcher: Write | None = None

    @property
    def watched(self) -> bool:
        """Whether someone reads or writes here now."""
        return self.watcher is not None

    def forward(self, value: Tensor) -> Tensor:
        """The value itself, or what the watcher makes of it."""
        return value if self.watcher is None else self.watcher(value)


class Recording(Mapping[str, Tensor]):
    """What the watched taps of one pass saw, by name; values of one step each are joined along time."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Tensor]] = {}
        self._time: dict[str, int] = {}

    def add(self, name: str, value: Tensor, time: int) -> None:
        """One more value of a tap."""
        self._seen.setdefault(name, []).append(value)
        self._time[name] = time

    def __getitem__(self, name: str) -> Tensor:
        values = self._seen[name]
        return values[0] if len(values) == 1 else torch.cat(values, dim=self._time[name])

    def passes(self, name: str) -> list[Tensor]:
        """The same, each value by itself."""
        return self._seen[name]

    def __contains__(self, name: object) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


def names(model: nn.Module) -> list[str]:
    """The names of all taps of a model, in the order of its modules."""
    return [name for name, module in model.named_modules() if isinstance(module, Tap)]


def watched(model: nn.Module) -> list[str]:
    """The names of the taps of a model that someone reads or writes now."""
    return [name for name, module in model.named_modules() if isinstance(module, Tap) and module.watched]


@contextmanager
def watch(model: nn.Module, *patterns: str, write: Mapping[str, Write] | None = None) -> Iterator[Recording]:
    """Record every tap whose name matches a pattern (`*` for all), and put `write[name](value)` in place of values.

    What is recorded is what the rest of the model sees, interventions included. A name in `write` that no tap has is
    a `KeyError`, so that an intervention is never lost in silence.
    """
    taps = {name: module for name, module in model.named_modules() if isinstance(module, Tap)}
    writes = dict(write or {})
    unknown = sorted(set(writes) - set(taps))
    if unknown:
        raise KeyError(f"no tap is named {', '.join(unknown)}")
    recording = Recording()
    chosen = [name for name in taps if name in writes or any(fnmatchcase(name, pattern) for pattern in patterns)]
    before = {name: taps[name].watcher for name in chosen}
    try:
        for name in chosen:
            taps[name].watcher = _watcher(name, taps[name].time, recording, writes.get(name))
        yield recording
    finally:
        for name in chosen:
            taps[name].watcher = before[name]


def _watcher(name: str, time: int, recording: Recording, write: Write | None) -> Write:
    def watcher(value: Tensor) -> Tensor:
        value = value if write is None else write(value)
        recording.add(name, value, time)
        return value

    return watcher
