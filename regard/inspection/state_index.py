"""An index of the last layer's states of training examples, in the directory `index/` of a run.

`index.json` describes it. For each side of the model, `SIDE.vectors` has the states (N×D, float32, each of length 1),
and `SIDE.places` the example and the position of each (N×2, int32). `examples/` is a token store with the examples, and
`examples.rows` has the row of each in the run's training data (int64). Nothing in it is unpickled.

Search is exhaustive and exact: `faiss` (Douze et al., 2024) computes all inner products, which are cosines here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from regard.data.store import TokenStore
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.installation import install_command
from regard.inspection.last_states import count_states, fingerprint
from regard.inspection.states import End
from regard.runs.records import DamagedFile, read_record
from regard.tasks.loaded import LoadedRun

DIRECTORY, HEADER = "index", "index.json"
FORMAT, VERSION = "regard state index", 1

Vectors = NDArray[np.float32]
Places = NDArray[np.int32]

MORE = 4
"""How many times as many vectors are asked for as examples, at first: several tokens of one example may be near."""


@dataclass(frozen=True, kw_only=True)
class IndexedSide:
    """The size of one side of an index."""

    vectors: int
    width: int
    layer: Literal["last"] = "last"


@dataclass(frozen=True, kw_only=True)
class IndexHeader:
    """The content of `index.json`."""

    format: str
    version: int
    weights: str
    """Hash of the weights of the model whose states these are."""
    examples: int
    available: int
    """Examples of the run's training data."""
    seed: int
    sides: dict[str, IndexedSide]


class Match(NamedTuple):
    """The token of an indexed example whose state is near to another state."""

    example: int
    position: int
    """Counted from 0, special tokens included."""
    similarity: float
    """The cosine of the two states."""


def require_faiss() -> Any:
    """Return the module `faiss`; raises an error that names the command to install it."""
    try:
        import faiss
    except ImportError:
        raise RegardError(
            f"An index of states needs faiss (extra `index`). Install it with `{install_command('index')}`."
        ) from None
    return faiss


class StateIndex:
    """An index that was built by `regard index`, mapped into memory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self.header = read_record(directory / HEADER, IndexHeader, sealed=True)
        except DamagedFile as error:
            raise _damaged(directory, str(error).rstrip(".")) from None
        if self.header.format != FORMAT or self.header.version > VERSION:
            raise _damaged(directory, "it is of another format, or of a newer Regard")
        self.examples = TokenStore(directory / "examples")
        self._vectors: dict[str, Vectors] = {}
        self._places: dict[str, Places] = {}
        try:
            self.rows = np.fromfile(directory / "examples.rows", dtype="<i8")
            for side, size in self.header.sides.items():
                shape = (size.vectors, size.width)
                self._vectors[side] = _map(directory / f"{side}.vectors", np.dtype("<f4"), shape)
                self._places[side] = _map(directory / f"{side}.places", np.dtype("<i4"), (size.vectors, 2))
        except (OSError, ValueError) as error:
            raise _damaged(directory, str(error)) from None
        count = self.header.examples
        if len(self.examples) != count or len(self.rows) != count or not set(self.header.sides) <= set(SIDES):
            raise _damaged(directory, "its counts do not agree")
        for side, places in self._places.items():
            if not len(places) or (places < 0).any() or (places[:, 0] >= count).any():
                raise _damaged(directory, f"{side}.places has places that no example has")
        self._fits = False

    def check(self, run: LoadedRun) -> None:
        """Refuse a model with other weights than those that the states are of, and examples that it cannot have."""
        if self.header.weights != fingerprint(run.model):
            raise UsageError(
                f"{self.directory} was built with other weights than those of this model. Build it again with: "
                f"regard index {self.directory.parent}"
            )
        if self._fits:
            return
        self.examples.verify(run.task.id_limits)
        for side, places in self._places.items():
            counts = count_states(run, cast(End, side), self.examples.lengths[SIDES[side]])
            if (places[:, 1] >= counts[places[:, 0]]).any():
                raise _damaged(self.directory, f"{side}.places has places that no example has")
        self._fits = True

    def vectors(self, side: End) -> Vectors:
        """Return the states of a side, N×D; each has length 1."""
        if side not in self._vectors:
            has = " and ".join(self._vectors)
            raise UsageError(f"The index of this run has no {side} states: the model has {has} states only.")
        return self._vectors[side]

    def places(self, side: End) -> Places:
        """Return the example and the position of each state of a side, N×2."""
        self.vectors(side)
        return self._places[side]

    def search(self, side: End, states: Vectors, count: int) -> list[list[Match]]:
        """Return for each of some states Q×D the `count` nearest examples, each with its nearest token, best first."""
        faiss, vectors, places = require_faiss(), self.vectors(side), self.places(side)
        asked = np.ascontiguousarray(normalise(states))  # Q×D
        if asked.shape[1] != vectors.shape[1]:
            raise _damaged(self.directory, f"its {side} states have {vectors.shape[1]} numbers, not {asked.shape[1]}")
        wanted = min(count, len(np.unique(places[:, 0])))
        found: list[list[Match]] = [[] for _ in asked]
        left, most = list(range(len(asked))), min(MORE * count, len(vectors))
        while left:
            near, rows = faiss.knn(asked[left], vectors, most, metric=faiss.METRIC_INNER_PRODUCT)  # Q×most
            if not np.isfinite(near).all() or (rows < 0).any():
                raise _damaged(self.directory, f"{side}.vectors has values that are not finite")
            for query, similarities, chosen in zip(left, near.tolist(), places[rows].tolist(), strict=True):
                found[query] = _best_of_each(similarities, chosen)[:wanted]
            left = [query for query in left if len(found[query]) < wanted]
            most = min(MORE * most, len(vectors))
        return found


SIDES: dict[str, int] = {"encoder": 0, "decoder": 1}
"""The sides of a model, and which of source and target its tokens are in a token store."""


def _best_of_each(similarities: Sequence[float], places: Sequence[Sequence[int]]) -> list[Match]:
    """Return the nearest token of each example, best first; equal ones in the order of the training data."""
    matches = (Match(place[0], place[1], value) for value, place in zip(similarities, places, strict=True))
    best: dict[int, Match] = {}
    for match in sorted(matches, key=lambda match: (-match.similarity, match.example, match.position)):
        best.setdefault(match.example, match)
    return list(best.values())


def normalise(states: NDArray[Any]) -> Vectors:
    """Return states …×D scaled to length 1."""
    values = np.asarray(states, dtype=np.float32)
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    scaled: Vectors = values / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def open_index(run: Path | str) -> StateIndex:
    """Return the index of a run; it is opened once in a process, and again after it was rebuilt."""
    directory = Path(run) / DIRECTORY
    path = directory / HEADER
    if not path.is_file():
        raise UsageError(f"{run} has no index of its training examples. Build it once with `regard index {run}`.")
    return _open(directory, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _open(directory: Path, changed: int) -> StateIndex:
    """Open an index; `changed` is the time of its header."""
    return StateIndex(directory)


def _map(path: Path, dtype: "np.dtype[Any]", shape: tuple[int, int]) -> NDArray[Any]:
    """Map a file into memory as an array of a given shape."""
    expected = dtype.itemsize * shape[0] * shape[1]
    if path.stat().st_size != expected:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes instead of {expected:,}")
    return np.memmap(path, dtype=dtype, mode="r", shape=shape) if expected else np.zeros(shape, dtype)


def _damaged(directory: Path, why: str) -> RegardError:
    return RegardError(
        f"{directory} is not an index of states, or is damaged ({why}). Build it again with: "
        f"regard index {directory.parent}"
    )
