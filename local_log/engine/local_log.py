"""A log as a sequence of segments, without high watermark, producers or leader epochs (Kafka's LocalLog)."""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from local_log.engine.find import Found
from local_log.engine.folder import LogFolder
from local_log.engine.memory_records import BatchFacts, MemoryBatch
from local_log.engine.offsets import OffsetMetadata
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Invalid, NotFound, OffsetOutOfRange
from local_log.formats.filenames import SEGMENT_SUFFIXES, offset_file
from local_log.formats.indexes.transaction import AbortedTxn

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time


class Fetched(NamedTuple):
    """The result of a read: batches from the offset on, the last perhaps incomplete; aborted transactions if asked."""

    start: OffsetMetadata
    records: bytes
    first_batch_is_cut: bool = False
    aborted: tuple[AbortedTxn, ...] | None = None


class Slice(NamedTuple):
    """Where the batches of a read lie: `size` bytes from `start` on, in the log file of `segment`; None if there are none."""

    start: OffsetMetadata
    segment: Segment | None = None
    size: int = 0
    first_batch_is_cut: bool = False
    aborted: tuple[AbortedTxn, ...] | None = None

    def read(self) -> Fetched:
        """The batches."""
        records = b"" if self.segment is None else self.segment.read(self.start.position, self.size)
        return Fetched(self.start, records, self.first_batch_is_cut, self.aborted)


class LocalLog:
    """Appends to the active segment, rolls, truncates and reads. All offsets below `recovery_point` are flushed."""

    def __init__(self, folder: LogFolder, segments: Segments, recovery_point: int, log_end_offset: int) -> None:
        self.folder = folder
        self.segments = segments
        self.recovery_point = recovery_point
        self.last_flush_ms = folder.now_ms()
        self.is_closed = False
        self.on_removed: Callable[[], None] = lambda: None
        """Called when no new query finds removed segments any more, before their files are renamed."""
        self.end_values: tuple[int, int, int] = log_end_offset, segments.active.base_offset, segments.active.size
        """The values of `end`: one tuple, which other threads read; a plain one, since every append makes one."""

    @property
    def end(self) -> OffsetMetadata:
        """The log end offset with its segment and position."""
        return OffsetMetadata._make(self.end_values)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.end_values[0]

    @property
    def unflushed_messages(self) -> int:
        """The number of offsets that may not be flushed."""
        return self.log_end_offset - self.recovery_point

    def append(self, last_offset: int, records: bytes, batches: list[MemoryBatch]) -> None:
        """Writes batches to the active segment. Raises Invalid if the log is closed, as all writes do."""
        self.check_open()
        active = self.segments.active
        active.append(last_offset, records, [BatchFacts(b.last_offset, b.max_timestamp, b.size) for b in batches])
        self.end_values = last_offset + 1, active.base_offset, active.size

    def move_end(self, offset: int) -> None:
        """Sets the offset of the next record."""
        active = self.segments.active
        self.end_values = offset, active.base_offset, active.size
        self.recovery_point = min(self.recovery_point, offset)

    def flush(self, offset: int) -> None:
        """Flushes everything below `offset` to the device, including the names of new files."""
        if self.recovery_point > offset:
            return
        flushed = self.segments.between(self.recovery_point, offset)
        for segment in flushed:
            segment.sync()
        if any(s.base_offset >= self.recovery_point for s in flushed):
            with suppress(NotFound):  # the folder was renamed and deleted: a log that is being deleted needs no flush
                self.folder.disk.sync_folder(self.folder.path)

    def mark_flushed(self, offset: int) -> None:
        """Records that everything below `offset` is flushed."""
        self.check_open()
        if offset > self.recovery_point:
            self.recovery_point = offset
            self.last_flush_ms = self.folder.now_ms()

    def roll(self, expected_offset: int) -> Segment:
        """Creates a segment at the log end offset, or at `expected_offset` if that is higher. Raises Invalid."""
        self.check_open()
        base = max(expected_offset, self.log_end_offset)
        active = self.segments.active
        if base in self.segments:
            if active.base_offset != base or active.size:
                raise Invalid(f"{self.folder.path}: a segment of offset {base} is there already; none can be rolled there")
            # KAFKA-6388: an empty segment whose index is full would be rolled again and again.
            new = self._replace(active, base)
        elif base < active.base_offset:
            raise Invalid(f"{self.folder.path}: cannot roll at {base}, below the last segment's {active.base_offset}")
        else:
            for of in SEGMENT_SUFFIXES:
                self.folder.disk.delete(f"{self.folder.path}/{offset_file(base, of)}")
            active.become_inactive()
            self._flush_all_of(active)
            new = self.folder.segment(base)
            self.segments.add(new)
        self.move_end(self.log_end_offset)
        return new

    def _flush_all_of(self, active: Segment) -> None:
        # Recovery takes the next segment's file as proof that this segment is complete and does not check its indexes, also if
        # its last batches were flushed before. The indexes have been trimmed since, so they must be flushed now.
        if self.recovery_point < self.log_end_offset:
            self.flush(self.log_end_offset)
            self.mark_flushed(self.log_end_offset)
        else:
            active.sync()

    def end_at(self, offset: int) -> OffsetMetadata:
        """The end of the log after a truncation to `offset`."""
        segment = self.segments.floor(offset)
        assert segment is not None
        found = segment.translate(offset)
        return OffsetMetadata(offset, segment.base_offset, segment.size if found is None else found.position)

    def truncate_to(self, offset: int) -> list[Segment]:
        """Removes everything from `offset` on; returns the deleted segments."""
        self.check_open()
        gone = [s for s in self.segments if s.base_offset > offset]
        self.remove(gone[::-1])  # from the last on: a crash in between leaves no gap
        self.segments.active.truncate_to(offset)
        self.move_end(offset)
        return gone

    def truncate_fully_and_start_at(self, offset: int) -> list[Segment]:
        """Removes everything; the log starts again at `offset`. Returns the deleted segments."""
        self.check_open()
        gone = list(self.segments)
        self.remove(gone[::-1])
        self.segments.add(self.folder.segment(offset))
        self.move_end(offset)
        return gone

    def remove(self, gone: list[Segment]) -> None:
        """Removes segments; their files are deleted later."""
        self.segments.remove(*(s.base_offset for s in gone))
        self.on_removed()
        self.folder.delete_later(gone)
        if gone:
            self.folder.disk.sync_folder(self.folder.path)

    def _replace(self, old: Segment, base_offset: int) -> Segment:
        self.remove([old])  # renames its files before files with the same names are created
        new = self.folder.segment(base_offset)
        self.segments.add(new)
        return new

    def close(self) -> None:
        """Writes what the segments have only in memory. No write is possible afterwards; a second call does nothing."""
        if not self.is_closed:
            self.is_closed = True
            self.segments.close()
            self.folder.disk.sync_folder(self.folder.path)
            self.folder.disk.release(self.folder.path)

    def check_open(self) -> None:
        """Raises Invalid if the log is closed."""
        if self.is_closed:
            raise Invalid(f"{self.folder.path}: the log is closed; open it anew")

    # Reading

    def locate(self, offset: int) -> OffsetMetadata:
        """An offset's segment and position. Raises OffsetOutOfRange."""
        return self.find(offset, 1, self.end).start

    def read(
        self, offset: int, size_max: int, end: OffsetMetadata, *, one_batch_at_least: bool = False, with_aborted: bool = False
    ) -> Fetched:
        """Up to `size_max` bytes of batches from the one with `offset` on, none after `end`. Raises OffsetOutOfRange."""
        return self.find(offset, size_max, end, one_batch_at_least=one_batch_at_least, with_aborted=with_aborted).read()

    def find(
        self, offset: int, size_max: int, end: OffsetMetadata, *, one_batch_at_least: bool = False, with_aborted: bool = False
    ) -> Slice:
        """As `read`, without reading the batches, except for what their headers say of the first one."""
        segment = self.segments.floor(offset)
        if offset > self.log_end_offset or segment is None:
            first = self.segments.base_offsets[:1] or (self.log_end_offset,)
            raise OffsetOutOfRange(self.folder.path, offset, first[0], self.log_end_offset)
        aborted = () if with_aborted else None
        if offset == end.offset:
            return Slice(end, aborted=aborted)
        if offset > end.offset:
            return Slice(self.locate(offset), aborted=aborted)
        while segment is not None:
            found = segment.translate(offset)
            if found is not None:
                return self._slice(segment, offset, found, size_max, end, one=one_batch_at_least, aborted=with_aborted)
            segment = self.segments.higher(segment.base_offset)
        return Slice(self.end, aborted=aborted)

    # `find` split in two: the first three parameters are its request, the others what it has found.
    def _slice(
        self,
        segment: Segment,
        offset: int,
        found: Found,
        size_max: int,
        end: OffsetMetadata,
        *,
        one: bool,
        aborted: bool,
    ) -> Slice:
        base, position, size = found
        start = _tuple(OffsetMetadata, (base, segment.base_offset, position))
        wanted = max(size_max, size) if one else size_max
        is_cut = 0 < wanted < size
        if segment.base_offset < end.segment_base:
            wanted = min(wanted, segment.size - position)
        elif segment.base_offset == end.segment_base and not end.is_offset_only:
            wanted = min(wanted, end.position - position)
        else:
            wanted, is_cut = 0, False
        wanted = max(0, wanted)
        transactions = self._aborted_of(segment, offset, start, wanted) if aborted else None
        return _tuple(Slice, (start, segment if wanted else None, wanted, is_cut, transactions))

    def _aborted_of(self, segment: Segment, offset: int, start: OffsetMetadata, size: int) -> tuple[AbortedTxn, ...]:
        end = segment.indexed_offset_from(start.position + size)
        if end is None:
            following = self.segments.higher(segment.base_offset)
            end = self.log_end_offset if following is None else following.base_offset
        return self.aborted(segment, offset, end)

    def aborted(self, segment: Segment | None, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in `[start_offset, end_offset)`, from `segment` on."""
        found: list[AbortedTxn] = []
        while segment is not None:
            for txn in segment.txn_index.all():
                if txn.last_offset >= start_offset and txn.first_offset < end_offset:
                    found.append(txn)
                if txn.last_stable_offset >= end_offset:
                    return tuple(found)
            segment = self.segments.higher(segment.base_offset)
        return tuple(found)
