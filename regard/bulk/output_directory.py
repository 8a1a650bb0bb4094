"""The output directory of a bulk job: its manifest, its lock, and the shards that are finished.

    translated/a.jsonl.gz                        one output for each input
    translated/a.jsonl.gz.quarantine.jsonl       its lines that could not be translated, if any
    translated/.bulk/manifest.json               run, fingerprint and options
    translated/.bulk/finished/HASH.json          one record for each finished shard: input, size, date, lines
    translated/.bulk/journals/HASH.jsonl         blocks of a shard that is not finished

Jobs that divide the shards among them (`--shard I/N`) need no communication: each writes records of its own shards.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.bulk.input_files import QUARANTINE, STATE, Part, Shard
from regard.bulk.shard_journal import ShardJournal
from regard.foundation import durable
from regard.foundation.display import note
from regard.foundation.errors import RegardError, UsageError
from regard.runs.file_lock import try_lock

FORMAT = 1


@dataclass(frozen=True)
class Finished:
    """The record of a finished shard."""

    output: str
    input: str
    stamp: tuple[int, int]
    """Size and modification time of the input."""
    lines: int
    quarantined: int
    tokens: int


class OutputDirectory:
    """The output directory of one job."""

    def __init__(self, path: Path, part: Part) -> None:
        self.path, self._part = path, part
        self._state = path / STATE

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory: for this job alone, or together with the other parts of `--shard`."""
        self._make()
        divided = self._part.of > 1
        own = f"part-{self._part.number}-of-{self._part.of}.lock"
        with self._lock("job.lock", shared=divided), self._lock(own if divided else "job.lock", held=not divided):
            yield

    def _make(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file, but the outputs need a directory. Name another with -o.")
        try:
            for name in ("finished", "journals"):
                (self._state / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror or error}.") from error

    @contextmanager
    def _lock(self, name: str, *, shared: bool = False, held: bool = False) -> Iterator[None]:
        if held:
            yield
            return
        handle = os.open(self._state / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if not try_lock(handle, shared=shared):
                raise RegardError(
                    f"Another job is writing to {self.path}. Wait for it, stop it, or name another directory with -o. "
                    "Several jobs can divide the files of one directory with --shard I/N."
                )
            yield
        finally:
            os.close(handle)

    def check_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest of a new directory; refuse a directory with another one."""
        path = self._state / "manifest.json"
        wanted = json.loads(json.dumps({"format": FORMAT, **manifest}))
        if not path.exists():
            durable.write(path, json.dumps(wanted, indent=1, ensure_ascii=False) + "\n")
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(known, dict):
                raise ValueError("not an object")
        except (OSError, ValueError) as error:
            raise RegardError(f"{path} is damaged ({error}). Name another directory with -o.") from error
        remedy = f"Name another directory with -o, or delete {self.path} if its outputs are not needed."
        if known.get("format") != FORMAT:
            raise UsageError(f"{self.path} was written by another version of Regard. {remedy}")
        if known.get("fingerprint") != wanted["fingerprint"]:
            raise UsageError(
                f"{self.path} has translations by another run: {known.get('run')}, which is not {wanted['run']} as it "
                f"is now (fingerprints {str(known.get('fingerprint'))[:8]} and {wanted['fingerprint'][:8]}). {remedy}"
            )
        before, now = known.get("options", {}), wanted["options"]
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if changed:
            pairs = "; ".join(f"{name} was {before.get(name)!r}, now {now.get(name)!r}" for name in changed)
            raise UsageError(f"{self.path} was begun with other options: {pairs}. {remedy}")

    def finished(self) -> dict[str, Finished]:
        """Return the records of finished shards, by the names of their outputs."""
        found: dict[str, Finished] = {}
        for path in sorted((self._state / "finished").glob("*.json")):
            try:
                fields = json.loads(path.read_text(encoding="utf-8"))
                record = Finished(**fields | {"stamp": tuple(fields["stamp"])})
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise RegardError(f"{path} is damaged ({error}). Delete it to translate that file again.") from error
            found[record.output] = record
        return found

    def pending(self, shards: Sequence[Shard]) -> list[Shard]:
        """Return the shards that are not finished; refuse one whose input has changed since, or a foreign file."""
        finished = self.finished()
        pending: list[Shard] = []
        for shard in shards:
            output = self.path / shard.name
            record = finished.get(shard.name)
            if record is None:
                if output.exists() and not self._journal_path(shard).exists():
                    raise UsageError(
                        f"{output} exists, but this job did not write it. Move it away, or name another directory with "
                        "-o."
                    )
                pending.append(shard)
            elif record.stamp != shard.stamp:
                raise UsageError(
                    f"{shard.path} is not the file that was translated to {output}: its size or date differs. Delete "
                    f"{output} and {self._record_path(shard)} to translate it again, or name another directory with -o."
                )
            elif not output.exists():
                note(f"{output} is missing, so {shard.path} is translated again.")
                self._record_path(shard).unlink(missing_ok=True)
                pending.append(shard)
        return pending

    def journal(self, shard: Shard, block_chunks: int) -> ShardJournal:
        """Return the journal of a shard that is to be translated, and remove what a killed job left of its output."""
        for path in (self.path / shard.name, self.quarantine_path(shard)):
            durable.remove_leftovers(path)
        head = {"input": str(shard.path), "stamp": list(shard.stamp), "chunks": block_chunks}
        return ShardJournal(self._journal_path(shard), head)

    def finish(self, shard: Shard, record: Finished) -> None:
        """Record that a shard is finished; its output must be in its place."""
        durable.write(self._record_path(shard), json.dumps(asdict(record), ensure_ascii=False) + "\n")

    def quarantine_path(self, shard: Shard) -> Path:
        """Return the file of the lines of a shard that could not be translated."""
        return self.path / f"{shard.name}{QUARANTINE}"

    def _record_path(self, shard: Shard) -> Path:
        return self._state / "finished" / f"{_key(shard)}.json"

    def _journal_path(self, shard: Shard) -> Path:
        return self._state / "journals" / f"{_key(shard)}.jsonl"


def _key(shard: Shard) -> str:
    """Return a file name for the state of a shard: short, and different for every output."""
    return sha256(shard.name.encode(errors="surrogateescape")).hexdigest()[:16]
