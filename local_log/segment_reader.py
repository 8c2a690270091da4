"""One segment: a `.log` file and the files beside it that bear its base offset."""

from collections.abc import Iterator
from dataclasses import dataclass

from local_log.disk import Disk
from local_log.errors import Corrupt, NoSuchFile, NotFound, placed
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX, offset_file
from local_log.formats.indexes.offset import OffsetIndex, read_offset_index
from local_log.formats.indexes.time import TimeIndex, read_time_index
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of the log in `folder`. `next_base_offset` is where the next segment starts, None for the active segment."""

    disk: Disk
    folder: str
    base_offset: int
    next_base_offset: int | None

    def path(self, suffix: str) -> str:
        """The file with this suffix; a snapshot is the one taken where the segment ends (there is none for an active one)."""
        offset = self.next_base_offset if suffix == SNAPSHOT else self.base_offset
        if offset is None:
            raise NoSuchFile(f"{self.folder}: the active segment {self.base_offset} has no producer snapshot yet")
        return f"{self.folder}/{offset_file(offset, suffix)}"

    def size(self) -> int:
        """Bytes of the log file now."""
        return self.disk.size(self.path(LOG))

    def read(self, suffix: str) -> bytes | None:
        """A whole file of the segment, None where it does not have one."""
        try:
            return self.disk.read(self.path(suffix))
        except NotFound:
            return None

    def offset_index(self) -> OffsetIndex:
        """Raises Corrupt, placed in the file; an index that is missing is empty."""
        with placed(self.path(OFFSET_INDEX)):
            return read_offset_index(self.read(OFFSET_INDEX) or b"", self.base_offset)

    def time_index(self) -> TimeIndex:
        """Raises Corrupt, placed in the file; an index that is missing is empty."""
        with placed(self.path(TIME_INDEX)):
            return read_time_index(self.read(TIME_INDEX) or b"", self.base_offset)

    def aborted(self) -> tuple[AbortedTxn, ...]:
        """The transactions whose abort marker lies in this segment. Raises Corrupt, placed in the file."""
        with placed(self.path(TXN_INDEX)):
            return read_txn_index(self.read(TXN_INDEX) or b"")

    def last_indexed_offset(self) -> int:
        """The last entry's offset, the base offset where the index is empty or unsound."""
        try:
            offsets = self.offset_index().offsets
        except Corrupt:
            return self.base_offset
        return int(offsets[-1]) if len(offsets) else self.base_offset

    def chunks(self, start_offset: int | None = None) -> Iterator[Chunk]:
        """The batches from the one with `start_offset` on (a few before it may come first), checksums unchecked.

        Stops before the torn tail of an active segment; an inactive one has none. Raises Corrupt, NotFound when the file has
        gone.
        """
        file, size = self.path(LOG), self.size()
        end = start = 0 if start_offset is None or start_offset <= self.base_offset else self._position_of(start_offset)
        for chunk in read_chunks(lambda a, b: self.disk.read_large(file, a, b), file, start, size):
            end = chunk.end
            yield chunk
        if end < size and self.next_base_offset is not None:
            raise Corrupt(f"the last {size - end} bytes of an inactive segment are no whole batch", file=file, position=end)

    def chunks_from_time(self, timestamp_ms: int) -> Iterator[Chunk]:
        """The batches from where the first record as late as `timestamp_ms` can lie on."""
        try:
            offset = self.time_index().lookup(timestamp_ms, self.base_offset)
        except Corrupt:
            offset = self.base_offset
        yield from self.chunks(offset)

    def _position_of(self, offset: int) -> int:
        # An index only saves reading: without a sound one the answer is the same, from the segment's first byte on.
        try:
            return self.offset_index().lookup(offset)
        except Corrupt:
            return 0
