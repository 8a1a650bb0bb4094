"""Builds the index of a run's training examples: written aside, flushed to disk, and renamed when it is complete."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.store import StoreWriter, TokenStore
from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.last_states import count_states, ends_of, fingerprint, longest_target, read_rows, unsuited
from regard.inspection.state_index import (
    DIRECTORY,
    FORMAT,
    HEADER,
    SIDES,
    VERSION,
    IndexedSide,
    IndexHeader,
    StateIndex,
    normalise,
    open_index,
    require_faiss,
)
from regard.inspection.states import BATCH, End, batches
from regard.runs.file_lock import try_lock
from regard.runs.records import seal
from regard.runs.run import Run
from regard.tasks.loaded import LoadedRun

LIMIT = 10_000
"""Examples that are indexed by default: about 130,000 states on each side for captions, 130 MB if they are 256 wide."""

Ids = list[int]


def build_index(
    run: Run,
    loaded: LoadedRun,
    *,
    limit: int = LIMIT,
    seed: int = 1,
    tokens: int = BATCH,
    progress: Progress | None = None,
) -> StateIndex:
    """Index the last layer's states of up to `limit` different training examples, drawn at random if there are more.

    Args:
        run: The run; its index is replaced when the new one is complete.
        loaded: The same run, loaded.
        limit: The largest number of examples.
        seed: The seed of the draw.
        tokens: Padded tokens read at a time; the index does not depend on it, up to rounding.
        progress: Called after each batch.
    """
    if limit < 1 or seed < 0:
        raise UsageError(f"`limit` is {limit} and `seed` is {seed}: they must be at least 1 and 0.")
    if reason := unsuited(loaded):
        raise UsageError(reason)
    require_faiss()
    store = _training_data(run, loaded)
    rows, examples = draw_examples(store, loaded, limit, seed)
    aside = run.directory / f".{DIRECTORY}.aside"
    try:
        with _lock(run):
            shutil.rmtree(aside, ignore_errors=True)  # what a killed process has left
            aside.mkdir()
            sides = _write_states(aside, loaded, examples, tokens, progress)
            with StoreWriter(aside / "examples", max(loaded.task.id_limits)) as writer:
                writer.write([source for source, _ in examples], [target for _, target in examples])
            _write(aside / "examples.rows", np.asarray(rows, dtype="<i8"))
            header = IndexHeader(
                format=FORMAT,
                version=VERSION,
                weights=fingerprint(loaded.model),
                examples=len(examples),
                available=len(store),
                seed=seed,
                sides=sides,
            )
            durable.write(aside / HEADER, json.dumps(seal(asdict(header)), indent=1) + "\n")
            durable.flush(aside)
            shutil.rmtree(run.directory / DIRECTORY, ignore_errors=True)
            aside.rename(run.directory / DIRECTORY)
            durable.flush(run.directory)
    except OSError as error:
        raise RegardError(
            f"The index cannot be written to {run.directory}: {error.strerror or error}. Make it writable, free "
            "some space, or index fewer examples with --limit N."
        ) from error
    return open_index(run.directory)


@contextmanager
def _lock(run: Run) -> Iterator[None]:
    """Let one process at a time build the index of a run; what it leaves aside if it fails is removed."""
    with (run.directory / f".{DIRECTORY}.lock").open("a") as file:
        if not try_lock(file.fileno()):
            raise UsageError(f"Another process is building the index of {run.directory}. Wait until it has finished.")
        try:
            yield
        finally:
            shutil.rmtree(run.directory / f".{DIRECTORY}.aside", ignore_errors=True)


def _training_data(run: Run, loaded: LoadedRun) -> TokenStore:
    """Return the prepared training data of a run, after checking it."""
    path = run.data / "train"
    if not (path / "header.json").is_file():
        raise UsageError(
            f"{run.directory} no longer has its training data ({path} is missing), and an index is made of it. Copy "
            "the data/ directory of the run back, or index a run that has it."
        )
    store = TokenStore(path)
    store.verify(loaded.task.id_limits)
    return store


def draw_examples(store: TokenStore, run: LoadedRun, limit: int, seed: int) -> tuple[list[int], list[tuple[Ids, Ids]]]:
    """Return up to `limit` different examples in their order: their rows in the store, and their ids.

    Of documents only the first window is read. Empty examples are left out.
    """
    longest = longest_target(run)
    order = np.random.default_rng(seed).permutation(len(store)) if len(store) > limit else np.arange(len(store))
    seen: dict[tuple[bytes, bytes], int] = {}
    for row in order.tolist():
        source, target = store[row]
        if len(seen) >= limit:
            break
        if len(source) or len(target):
            seen.setdefault((source.tobytes(), target[:longest].tobytes()), row)
    rows = sorted(seen.values())
    if not rows:
        raise UsageError(f"{store.directory} has no examples to index. Index a run that was trained on some.")
    return rows, [(store[row][0].tolist(), store[row][1][:longest].tolist()) for row in rows]


def _write_states(
    directory: Path,
    run: LoadedRun,
    examples: Sequence[tuple[Ids, Ids]],
    tokens: int,
    progress: Progress | None,
) -> dict[str, IndexedSide]:
    """Write the states of examples and their places, and return the size of each side."""
    ends = ends_of(run.model)
    lengths = {end: np.array([len(example[SIDES[end]]) for example in examples], dtype=np.int64) for end in ends}
    counts = {end: count_states(run, end, lengths[end]) for end in ends}
    starts = {end: np.concatenate([[0], np.cumsum(counts[end])]) for end in ends}
    arrays: dict[End, np.memmap[Any, np.dtype[np.float32]]] = {}
    done = 0
    for places, states in _read(run, examples, tokens):
        if not arrays:
            shapes = {end: (int(starts[end][-1]), states[end][0].shape[1]) for end in ends}
            _check_space(directory, shapes)
            for end, shape in shapes.items():
                arrays[end] = np.memmap(directory / f"{end}.vectors", dtype="<f4", mode="w+", shape=shape)
        for end in ends:
            for example, values in zip(places, states[end], strict=True):
                arrays[end][starts[end][example] : starts[end][example + 1]] = normalise(values)
        done += len(places)
        if progress:
            progress("examples", done, len(examples))
    for end in ends:
        numbers = np.repeat(np.arange(len(examples)), counts[end])
        positions = np.arange(len(numbers)) - starts[end][:-1][numbers]
        _write(directory / f"{end}.places", np.stack([numbers, positions], axis=1).astype("<i4"))
        arrays[end].flush()
        durable.flush(directory / f"{end}.vectors")
    return {end: IndexedSide(vectors=len(arrays[end]), width=arrays[end].shape[1]) for end in ends}


def _read(
    run: LoadedRun, examples: Sequence[tuple[Ids, Ids]], tokens: int
) -> Iterator[tuple[list[int], dict[End, list[NDArray[np.float32]]]]]:
    """Yield batches of examples of similar length, with the states of each on every side."""
    lengths = [max(len(source), len(target)) + 2 for source, target in examples]
    for places in batches(lengths, tokens):
        chosen = [examples[place] for place in places]
        states = read_rows(run, [source for source, _ in chosen], [target for _, target in chosen])
        yield places, {end: [row.numpy() for row in rows] for end, rows in states.items()}


def _check_space(directory: Path, shapes: dict[End, tuple[int, int]]) -> None:
    """Refuse an index that the disk has no room for, before anything is written."""
    needed = sum(4 * states * width for states, width in shapes.values())
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise UsageError(
            f"The index would take {needed / 2**30:.1f} GiB, and the disk of {directory.parent} has "
            f"{free / 2**30:.1f} GiB left. Free some space, or index fewer examples with --limit N."
        )


def _write(path: Path, values: NDArray[np.int64] | NDArray[np.int32]) -> None:
    """Write an array to a file, and wait until it is on the disk."""
    values.tofile(path)
    durable.flush(path)
