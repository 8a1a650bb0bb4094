"""Taps: named points inside a model whose values can be recorded or replaced, at no cost when they are not."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

Write = Callable[[Tensor], Tensor]


class Tap(nn.Module):
    """The identity, unless it is watched; its name is its path in the model, such as `decoder.layers.0.states`.

    A tap inside a recurrence is called once per step; `time` is the axis along which its values are concatenated.
    """

    def __init__(self, *, time: int) -> None:
        super().__init__()
        self.time = time
        self.watcher: Write | None = None

    @property
    def watched(self) -> bool:
        """Whether the value is recorded or replaced now."""
        return self.watcher is not None

    def forward(self, value: Tensor) -> Tensor:
        """Return the value, or what the watcher returns for it."""
        return value if self.watcher is None else self.watcher(value)


class Recording(Mapping[str, Tensor]):
    """The values of watched taps by name; values of single steps are concatenated along time."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Tensor]] = {}
        self._time: dict[str, int] = {}

    def add(self, name: str, value: Tensor, time: int) -> None:
        """Add one value of a tap."""
        self._seen.setdefault(name, []).append(value)
        self._time[name] = time

    def __getitem__(self, name: str) -> Tensor:
        values = self._seen[name]
        return values[0] if len(values) == 1 else torch.cat(values, dim=self._time[name])

    def passes(self, name: str) -> list[Tensor]:
        """Return the values of a tap as a list, one per call."""
        return self._seen[name]

    def __contains__(self, name: object) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


def names(model: nn.Module) -> list[str]:
    """Return the names of all taps of a model, in the order of its modules."""
    return [name for name, module in model.named_modules() if isinstance(module, Tap)]


def watched(model: nn.Module) -> list[str]:
    """Return the names of the watched taps of a model."""
    return [name for name, module in model.named_modules() if isinstance(module, Tap) and module.watched]


@contextmanager
def watch(model: nn.Module, *patterns: str, write: Mapping[str, Write] | None = None) -> Iterator[Recording]:
    """Record every tap whose name matches a pattern (`*` for all), and replace values by `write[name](value)`.

    Recorded values include interventions, as the rest of the model sees them; within another `watch`, also those of
    the outer one, which come first. A name in `write` that no tap has raises `KeyError`, so that no intervention is
    silently ignored.
    """
    taps = {name: module for name, module in model.named_modules() if isinstance(module, Tap)}
    writes = dict(write or {})
    unknown = sorted(set(writes) - set(taps))
    if unknown:
        raise KeyError(f"The model has no tap called {', '.join(unknown)}.")
    recording = Recording()
    chosen = [name for name in taps if name in writes or any(fnmatchcase(name, pattern) for pattern in patterns)]
    before = {name: taps[name].watcher for name in chosen}
    try:
        for name in chosen:
            taps[name].watcher = _watcher(name, taps[name].time, recording, before[name], writes.get(name))
        yield recording
    finally:
        for name in chosen:
            taps[name].watcher = before[name]


def _watcher(name: str, time: int, recording: Recording, outer: Write | None, write: Write | None) -> Write:
    def watcher(value: Tensor) -> Tensor:
        value = value if outer is None else outer(value)
        value = value if write is None else write(value)
        recording.add(name, value, time)
        return value

    return watcher
