"""Reads one segment: a `.log` file and the files with the same base offset beside it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from local_log.batch_file import BatchFile
from local_log.disk import Disk
from local_log.errors import Corrupt, NoSuchFile, NotFound, placed
from local_log.file_range import OpenedFile
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX, offset_file
from local_log.formats.header_layout import LOG_OVERHEAD, MAGIC, MESSAGE_SIZE_MIN, OFFSET_LENGTH_MAGIC
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index

if TYPE_CHECKING:
    from local_log.formats.indexes.offset import OffsetIndex
    from local_log.formats.indexes.time import TimeIndex

_FIRST_INDEX_BYTES: Final = 24 << 10
"""Whole entries of both indexes: those of some 12 MB of log with the default index.interval.bytes."""
_ENTRY_BYTES_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of the log in `folder`. `next_base_offset` is the next segment's base offset, None for the active segment."""

    disk: Disk
    folder: str
    base_offset: int
    next_base_offset: int | None

    def path(self, suffix: str) -> str:
        """The file with this suffix. A snapshot is that of the segment's end offset (an active segment has none)."""
        offset = self.next_base_offset if suffix == SNAPSHOT else self.base_offset
        if offset is None:
            raise NoSuchFile(f"{self.folder}: the active segment {self.base_offset} has no producer snapshot yet")
        return f"{self.folder}/{offset_file(offset, suffix)}"

    def size(self) -> int:
        """The log file's current size in bytes."""
        return self.disk.size(self.path(LOG))

    def read(self, suffix: str) -> bytes | None:
        """The content of one of the segment's files, None if it is missing."""
        try:
            return self.disk.read(self.path(suffix))
        except NotFound:
            return None

    def offset_index(self) -> "OffsetIndex":
        """The offset index, empty if the file is missing. Raises Corrupt with the file."""
        from local_log.formats.indexes.offset import read_offset_index  # with numpy, which not every start needs

        with placed(self.path(OFFSET_INDEX)):
            return read_offset_index(self._index(OFFSET_INDEX), self.base_offset)

    def time_index(self) -> "TimeIndex":
        """The time index, empty if the file is missing. Raises Corrupt with the file."""
        from local_log.formats.indexes.time import read_time_index  # with numpy, which not every start needs

        with placed(self.path(TIME_INDEX)):
            return read_time_index(self._index(TIME_INDEX), self.base_offset)

    def _index(self, suffix: str) -> bytes:
        """An index file. Of the active segment's, which is preallocated, the zeros after the entries are mostly not read."""
        if self.next_base_offset is not None:
            return self.read(suffix) or b""
        file, parts, position, size = self.path(suffix), list[bytes](), 0, _FIRST_INDEX_BYTES
        with suppress(NotFound):
            while block := self.disk.read(file, position, position + size):
                parts.append(block)
                if len(block) < size or not any(block[-_ENTRY_BYTES_MAX:]):
                    break
                position, size = position + size, 4 * size
        return b"".join(parts)

    def aborted(self) -> tuple[AbortedTxn, ...]:
        """The transactions whose abort marker is in this segment. Raises Corrupt with the file; NotFound if it was deleted."""
        index = self.read(TXN_INDEX)
        if index is None:
            self.size()  # a broker that deletes a segment renames its log first: one without an index still has it
        with placed(self.path(TXN_INDEX)):
            return read_txn_index(index or b"")

    def last_indexed_offset(self) -> int:
        """The last index entry's offset; the base offset if the index is empty or damaged."""
        try:
            offsets = self.offset_index().offsets
        except Corrupt:
            return self.base_offset
        return int(offsets[-1]) if len(offsets) else self.base_offset

    def chunks(self, start_offset: int | None = None) -> Iterator[Chunk]:
        """The batches from the one with `start_offset` on (a few before it may come first), without checking checksums.

        It stops before an incomplete last batch of the active segment; an inactive segment has none. Raises Corrupt; NotFound if
        the file has been deleted.
        """
        file = self.path(LOG)
        opened = self.disk.open(file)  # once: a broker's cleaner may give the name to another file meanwhile
        size = opened.state().size
        end = start = 0 if start_offset is None or start_offset <= self.base_offset else self.position_of(start_offset, opened)
        for chunk in read_chunks(opened.read_large, file, start, size):
            end = chunk.end
            yield chunk
        if end < size and self.next_base_offset is not None:
            raise Corrupt(f"the last {size - end} bytes of an inactive segment are no whole batch", file=file, position=end)

    def log_file(self) -> "LogFile":
        """The log file, to be opened for fetches."""
        return LogFile(self, self.path(LOG))

    def chunks_from_time(self, timestamp_ms: int) -> Iterator[Chunk]:
        """The batches from the first position on where a record with a timestamp at or after `timestamp_ms` may be."""
        try:
            offset = self.time_index().lookup(timestamp_ms, self.base_offset)
        except Corrupt:
            offset = self.base_offset
        yield from self.chunks(offset)

    def position_of(self, offset: int, opened: OpenedFile) -> int:
        """A position in the opened log file where a batch begins, at or before the batch with `offset`."""
        # An index only saves reading: without a valid one the scan starts at the segment's first byte, with the same result.
        try:
            position = self.offset_index().lookup(offset)
        except Corrupt:
            return 0
        return position if self._has_batch_at(position, offset, opened) else 0

    def _has_batch_at(self, position: int, offset: int, opened: OpenedFile) -> bool:
        """Whether a batch that starts at or below `offset` may be at a position, which the segment's index gave.

        After a truncation the active segment's index file has entries of what was truncated, until others take their place or a
        roll trims it. While a cleaner replaces a segment, its index may be that of the other log file.
        """
        header = opened.read(position, position + OFFSET_LENGTH_MAGIC.size)
        if len(header) < OFFSET_LENGTH_MAGIC.size:
            return False
        size = opened.state().size
        base, length, magic = OFFSET_LENGTH_MAGIC.unpack(header)
        is_batch = 0 <= magic <= MAGIC and MESSAGE_SIZE_MIN[0] <= length <= size - position - LOG_OVERHEAD
        return is_batch and self.base_offset <= int(base) <= offset


@dataclass(frozen=True, slots=True)
class LogFile:
    """A segment's log file by its name, which every fetch opens."""

    segment: Segment
    name: str

    def opened(self, end_offset: int) -> BatchFile:
        """The file, opened, with its batches below `end_offset`. Raises NotFound if it has been deleted."""
        segment = self.segment
        opened = segment.disk.open(self.name)

        def position_of(offset: int) -> int:
            return 0 if offset <= segment.base_offset else segment.position_of(offset, opened)

        return BatchFile(self.name, opened, position_of, end_offset, segment.next_base_offset)
