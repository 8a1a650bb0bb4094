"""The output of a shard: its rows with the translations of its journal, written aside and renamed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile

from regard.bulk.blocks import TranslatedBlock, checksum_of
from regard.bulk.input_files import Shard
from regard.bulk.layouts import Layout, Row
from regard.bulk.output_directory import Finished, OutputDirectory
from regard.bulk.shard_journal import ShardJournal
from regard.foundation import durable
from regard.foundation.errors import RegardError

MEMORY = 1 << 24
"""Bytes of quarantined lines that are held in memory; more are in a temporary file."""


def write_output(directory: OutputDirectory, shard: Shard, layout: Layout, journal: ShardJournal) -> Finished:
    """Write the output and the quarantine of a shard whose blocks are all in its journal; record it as finished."""
    output, quarantine = directory.path / shard.name, directory.quarantine_path(shard)
    output.parent.mkdir(parents=True, exist_ok=True)
    stamp = shard.stamp
    compress = shard.name.endswith(".gz")
    try:
        with SpooledTemporaryFile(MEMORY) as quarantined:
            translations = _Translations(shard, journal, quarantined)

            def make(aside: Path) -> None:
                layout.write(shard.path, aside, translations.next, compress=compress)
                translations.check_end()
                if shard.stamp != stamp:
                    raise translations.changed()

            durable.build(output, make, lambda aside: translations.write_quarantine(quarantine))
    except OSError as error:
        raise RegardError(
            f"{output} cannot be written: {error.strerror or error}. Correct that, then run the same command again; "
            "nothing that was translated is lost."
        ) from error
    counts = translations.lines, translations.quarantined, translations.tokens
    record = Finished(shard.name, str(shard.path), stamp, *counts)
    directory.finish(shard, record)
    journal.remove()
    return record


class _Translations:
    """The translations of a shard, row by row, compared with the rows that are read again."""

    def __init__(self, shard: Shard, journal: ShardJournal, quarantine: SpooledTemporaryFile[bytes]) -> None:
        self._shard, self._quarantine = shard, quarantine
        self._blocks: Iterator[TranslatedBlock] = journal.blocks()
        self._block: TranslatedBlock | None = None
        self._sources: list[str] = []
        self._reasons: dict[int, str] = {}
        self.lines = self.tokens = self.quarantined = 0

    def next(self, row: Row) -> str:
        """Return the translation of the next row."""
        if self._block is None or len(self._sources) == len(self._block.outputs):
            self._check_block()
            self._block = next(self._blocks, None)
            if self._block is None:
                raise self.changed()
            self._sources = []
            self._reasons = {rejection.index: rejection.reason for rejection in self._block.rejected}
            self.tokens += self._block.tokens
        index = len(self._sources)
        self._sources.append(row.source)
        self.lines += 1
        if index in self._reasons:
            fields = {"line": self.lines, "reason": self._reasons[index], "source": row.source or _raw_text(row)}
            self._quarantine.write(json.dumps(fields, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")
            self.quarantined += 1
        return self._block.outputs[index]

    def _check_block(self) -> None:
        if self._block is not None and checksum_of(iter(self._sources)) != self._block.checksum:
            raise self.changed()

    def check_end(self) -> None:
        """Raise if there are more translations than rows."""
        self._check_block()
        complete = self._block is None or len(self._sources) == len(self._block.outputs)
        if not complete or next(self._blocks, None) is not None:
            raise self.changed()

    def changed(self) -> RegardError:
        """Return the error of an input that is not the one that was translated."""
        return RegardError(
            f"{self._shard.path} has changed while it was translated. Run the same command again to translate it from "
            "the start."
        )

    def write_quarantine(self, path: Path) -> None:
        """Write the lines that could not be translated, if there are any."""
        if not self.quarantined:
            path.unlink(missing_ok=True)
            return
        self._quarantine.seek(0)

        def make(aside: Path) -> None:
            with aside.open("wb") as file:
                shutil.copyfileobj(self._quarantine, file)

        durable.build(path, make)


def _raw_text(row: Row) -> str:
    """Return the line of a row that cannot be read."""
    if isinstance(row.content, list):
        return "\t".join(row.content)
    if isinstance(row.content, tuple):
        return str(row.content[0])
    return row.content if isinstance(row.content, str) else ""
