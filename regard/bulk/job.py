"""A bulk job: shards in, outputs and a summary out."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.bulk.blocks import BLOCK_CHUNKS, Event, PendingShard, ShardEnd, TranslatedBlock, UnreadableShard
from regard.bulk.decoding_options import Assignment
from regard.bulk.input_files import Part, Shard, select
from regard.bulk.json_sources import sources_for
from regard.bulk.layouts import LAYOUTS
from regard.bulk.output_directory import OutputDirectory
from regard.bulk.runner import Runner
from regard.bulk.shard_journal import ShardJournal
from regard.bulk.shard_output import write_output
from regard.bulk.supervised_worker import SupervisedWorker
from regard.foundation.errors import RegardError
from regard.runs.manifest import Digest
from regard.runs.run import Run


@dataclass(kw_only=True)
class Progress:
    """What has been done so far."""

    files: int = 0
    """Files of this job."""
    finished: int = 0
    lines: int = 0
    """Lines that were translated now."""
    earlier: int = 0
    """Lines that earlier jobs had translated: of finished files, and of journals."""
    tokens: int = 0
    """Source tokens that were translated now."""
    cut: int = 0
    """Lines that were translated now without their end, which is more than the run reads."""
    quarantined: int = 0
    """Lines that could not be translated, of all files and also of earlier jobs."""
    restarts: int = 0
    seconds: float = 0.0
    bytes: int = 0
    """Bytes of the inputs that were translated now."""
    bytes_left: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Inputs that could not be translated to their end, with the reason."""

    @property
    def seconds_left(self) -> float | None:
        """The expected time until all files are done, by the bytes that are left; `None` at the start."""
        return self.seconds * self.bytes_left / self.bytes if self.bytes else None

    def facts(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        pace = max(self.seconds, 1e-9)
        return {
            "files": self.files,
            "finished": self.finished,
            "lines": self.lines,
            "earlier_lines": self.earlier,
            "cut_lines": self.cut,
            "quarantined": self.quarantined,
            "failed": [{"input": name, "reason": reason} for name, reason in self.failed.items()],
            "worker_restarts": self.restarts,
            "seconds": round(self.seconds, 3),
            "lines_per_second": round(self.lines / pace, 2),
            "tokens_per_second": round(self.tokens / pace, 1),
        }


Report = Callable[[Progress], None]


@dataclass(frozen=True, kw_only=True)
class BulkJob:
    """Which files are translated by which run, how, and to where."""

    shards: Sequence[Shard]
    output: Path
    assignment: Assignment
    part: Part = field(default_factory=Part)
    source_field: str | None = None
    into: str | None = None
    form: str | None = None
    """The layout that the user chose for all files."""
    block_chunks: int = BLOCK_CHUNKS

    def manifest(self) -> dict[str, Any]:
        """Return what all jobs that write to one directory must have in common."""
        options: dict[str, Any] = {"engine": self.assignment.engine, "settings": list(self.assignment.overrides)}
        options |= {"format": self.form, "field": self.source_field, "into": self.into}
        options |= vars(self.assignment.decoding)
        run = Run.open(Path(self.assignment.run))
        return {"run": self.assignment.run, "fingerprint": fingerprint(run), "options": options}

    def run(self, make_runner: Callable[[], Runner], report: Report = lambda progress: None) -> Progress:
        """Translate everything that is not finished yet; return the summary."""
        directory = OutputDirectory(self.output, self.part)
        manifest = self.manifest()
        with directory.locked():
            directory.check_manifest(manifest)
            chosen = select(self.shards, self.part)
            pending = directory.pending(chosen)
            work = _Work(self, directory, pending, report)
            work.progress.files, work.progress.finished = len(chosen), len(chosen) - len(pending)
            names = {shard.name for shard in chosen}
            finished = [record for name, record in directory.finished().items() if name in names]
            work.progress.quarantined += sum(record.quarantined for record in finished)
            work.progress.earlier += sum(record.lines for record in finished)
            if pending:
                check_engine(self.assignment)
                work.run(make_runner())
            return work.progress


class _Work:
    """The shards of a job that are not finished, and what becomes of them."""

    def __init__(self, job: BulkJob, directory: OutputDirectory, shards: Sequence[Shard], report: Report) -> None:
        self._directory, self._shards, self._report = directory, shards, report
        self._chunks = job.block_chunks
        sources = sources_for(Run.open(Path(job.assignment.run)).load_config(job.assignment.overrides))
        self._layouts = [LAYOUTS[shard.layout](job.source_field, job.into, sources) for shard in shards]
        self._journals = [directory.journal(shard, job.block_chunks) for shard in shards]
        self._ends: dict[int, int] = {}
        self._start = time.monotonic()
        self.progress = Progress(bytes_left=sum(shard.stamp[0] for shard in shards))
        for journal in self._journals:
            self.progress.earlier += sum(entry.lines for entry in journal.entries.values())
            self.progress.bytes_left -= sum(entry.extent for entry in journal.entries.values())
            self.progress.quarantined += sum(entry.rejected for entry in journal.entries.values())

    def run(self, runner: Runner) -> None:
        """Translate the shards; those that fail are noted, and the others go on."""
        self._start = time.monotonic()
        try:
            with closing(runner.run([self._pending(number) for number in range(len(self._shards))])) as events:  # type: ignore[type-var]
                for event in events:
                    self.progress.restarts = runner.restarts
                    self._take(event)
                    self.progress.seconds = time.monotonic() - self._start
                    self._report(self.progress)
        finally:
            self.progress.restarts = runner.restarts
            for journal in self._journals:
                journal.close()

    def _pending(self, number: int) -> PendingShard:
        journal = self._journals[number]
        blocks, lines = journal.prefix
        given = number, self._shards[number].path, self._layouts[number], frozenset(journal.entries)
        return PendingShard(*given, skip=lines, skipped_blocks=blocks, block_chunks=self._chunks)

    def _take(self, event: Event) -> None:
        """Keep a translated block, or note the end of a shard; finish the shard if it is complete."""
        number = event.shard
        if number < 0 or self._shards[number].name in self.progress.failed:
            return
        journal = self._journals[number]
        try:
            if isinstance(event, UnreadableShard):
                self._fail(number, event.reason)
            elif isinstance(event, ShardEnd):
                self._ends[number] = event.blocks
            elif event.number not in journal.entries:
                self._add(journal, event)
            if self._ends.get(number) == len(journal.entries):
                self._finish(number, journal)
        except RegardError as error:
            self._fail(number, str(error))
        except OSError as error:
            raise RegardError(
                f"{error.filename or self._directory.path} cannot be written: {error.strerror or error}. Correct that, "
                "then run the same command again; nothing that was translated is lost."
            ) from error

    def _add(self, journal: ShardJournal, block: TranslatedBlock) -> None:
        journal.add(block)
        self.progress.lines += len(block.outputs)
        self.progress.tokens += block.tokens
        self.progress.cut += block.cut
        self.progress.quarantined += len(block.rejected)
        self.progress.bytes += block.extent
        self.progress.bytes_left -= block.extent

    def _finish(self, number: int, journal: ShardJournal) -> None:
        write_output(self._directory, self._shards[number], self._layouts[number], journal)
        del self._ends[number]
        self.progress.finished += 1

    def _fail(self, number: int, reason: str) -> None:
        """Note that a shard failed; its blocks are kept for the next attempt."""
        shard = self._shards[number]
        self._journals[number].close()
        self.progress.failed[shard.name] = reason


def check_engine(assignment: Assignment) -> None:
    """Open the run in a worker, so that a mistake is reported before anything begins; exports the run if needed."""
    worker = SupervisedWorker(assignment, quiet=False)
    worker.start()
    worker.stop()


def fingerprint(run: Run) -> str:
    """Return the hash of what determines translations: configuration, tokenizers and weights."""
    files = [run.directory / "config.yaml", run.weights, *sorted(run.tokenizers.rglob("*"))]
    digests = [(path.name, Digest.of(path).sha256) for path in files if path.is_file()]
    return sha256(repr(digests).encode()).hexdigest()
