"""Blocks: consecutive lines of a shard that one worker translates, and what becomes of them.

A block is a fixed number of chunks, cut as `regard translate` cuts a file. The lines of a chunk are translated
together. So the outputs do not depend on who translates a block, nor on what was interrupted before, and they equal
those of `regard translate`.
"""

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.bulk.layouts import Layout, Row
from regard.data.lines import CHUNK, CHUNK_CHARACTERS
from regard.foundation.errors import RegardError

BLOCK_CHUNKS = 4
"""Chunks of a block: about 2,000 lines, seconds of work."""
MOST_REJECTED = 0.5
"""A shard is unreadable if more than this share of the lines of its first block cannot be read."""


@dataclass(frozen=True)
class Rejection:
    """A line that is not translated."""

    index: int
    """Its index in the block."""
    reason: str


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a shard."""

    shard: int
    number: int
    chunks: list[list[str]]
    """The sources; empty texts for lines that cannot be read."""
    checksum: int
    extent: int
    """Bytes of the input file that it covers, approximately if the file is compressed."""
    rejected: list[Rejection]

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return sum(map(len, self.chunks))


@dataclass(frozen=True)
class TranslatedBlock:
    """The outputs of a block, with an empty one for each rejected line."""

    shard: int
    number: int
    outputs: list[str]
    rejected: list[Rejection]
    checksum: int
    extent: int
    tokens: int
    cut: int = 0
    """Lines that are longer than the run reads; a journal does not have it."""


@dataclass(frozen=True)
class ShardEnd:
    """All blocks of a shard have been read."""

    shard: int
    blocks: int
    """The number of its blocks, including those that were translated earlier."""


@dataclass(frozen=True)
class UnreadableShard:
    """A shard that cannot be read to its end."""

    shard: int
    reason: str


ReadEvent = Block | ShardEnd | UnreadableShard
Event = TranslatedBlock | ShardEnd | UnreadableShard


@dataclass(frozen=True)
class PendingShard:
    """A shard to be translated, except for the blocks that are done."""

    number: int
    path: Path
    layout: Layout
    done: Collection[int]
    """Numbers of the blocks that are done."""
    skip: int
    """Lines of those that are done from the first on without a gap."""
    skipped_blocks: int
    """The number of those blocks."""
    block_chunks: int = BLOCK_CHUNKS

    def read(self) -> Iterator[ReadEvent]:
        """Yield the blocks that are not done, then the end of the shard; or that it is unreadable."""
        number = self.skipped_blocks
        try:
            for block in self._blocks():
                number = block.number + 1
                if block.number not in self.done:
                    yield block
        except RegardError as error:
            yield UnreadableShard(self.number, str(error))
        else:
            yield ShardEnd(self.number, number)

    def _blocks(self) -> Iterator[Block]:
        number, start = self.skipped_blocks, 0
        chunks: list[list[Row]] = [[]]
        characters = 0
        for row in self.layout.rows(self.path, self.skip):
            if row.is_header:
                continue
            if len(chunks[-1]) >= CHUNK or characters > CHUNK_CHARACTERS:
                if len(chunks) == self.block_chunks:
                    yield self._block(number, chunks, start)
                    number, start, chunks = number + 1, chunks[-1][-1].position, []
                chunks.append([])
                characters = 0
            chunks[-1].append(row)
            characters += len(row.source)
        if chunks[-1]:
            yield self._block(number, chunks, start)

    def _block(self, number: int, chunks: list[list[Row]], start: int) -> Block:
        rows = [row for chunk in chunks for row in chunk]
        rejected = [Rejection(index, row.problem) for index, row in enumerate(rows) if row.problem]
        filled = sum(bool(row.source.strip() or row.problem) for row in rows)
        if number == 0 and len(rejected) > MOST_REJECTED * filled:
            raise RegardError(
                f"{self.path} cannot be read: {len(rejected):,} of its first {len(rows):,} lines are wrong. "
                f"Line {rejected[0].index + 1:,}: {rejected[0].reason}"
            )
        sources = [[row.source for row in chunk] for chunk in chunks]
        checksum = checksum_of(source for chunk in sources for source in chunk)
        return Block(self.number, number, sources, checksum, max(rows[-1].position - start, 0), rejected)


def checksum_of(sources: Iterator[str]) -> int:
    """Return the checksum of the sources of a block."""
    checksum = 0
    for source in sources:
        checksum = zlib.crc32(source.encode() + b"\n", checksum)
    return checksum
