"""One writable segment: its log file, its three indexes and their cached state (LogSegment).

Indexes are opened at their first use: a log of ten thousand segments opens only those of the last one.
"""

import struct
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from local_log.disk import WritableDisk, Writer
from local_log.engine.config import LogConfig
from local_log.engine.find import Found, batch_with, find_batch
from local_log.engine.index_file import OffsetIndexFile, OffsetOverflow, TimeIndexFile, is_relative
from local_log.engine.memory_records import BatchFacts
from local_log.engine.scan import Scanned, scan_file
from local_log.engine.txn_index_file import TxnIndexFile
from local_log.errors import Invalid, NotFound
from local_log.file_range import OpenedFile
from local_log.formats.filenames import DELETED, LOG, OFFSET_INDEX, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX, offset_file
from local_log.formats.header_layout import BATCH_RANGE
from local_log.formats.primitives import INT32_MAX
from local_log.formats.record import NO_TIMESTAMP

_SEARCH_WINDOW_BYTES = 64 << 10
"""An index entry is at most a few KB before the batch that is looked up."""

DUE: Final = struct.Struct("=qqqq")
"""The pending index entry of one batch: its last offset and position, the greatest timestamp so far and its offset."""
_DUE_MAX: Final = 1024
"""The maximum number of pending entries; adding them to the indexes together is cheaper."""


Tail = tuple[LogConfig, Writer, int, int, int, int, int]
"""The limits of the fast path (see `append_one`), valid while the log has the settings in the first item:

settings, log file writer, maximum size with the batch, maximum timestamp, lower bound (exclusive) and maximum of the last
offset, maximum bytes of pending index entries. A tuple, since unpacking one is fast.
"""


class Segment:
    """A segment in `folder`. `suffix` is appended to the names of its files while they are temporary."""

    # Seven parameters: folder and base offset, disk, settings and clock, and two that only some segments have.
    def __init__(
        self,
        disk: WritableDisk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        now_ms: Callable[[], int],
        *,
        suffix: str = "",
        jitter_ms: int = 0,
    ) -> None:
        """Opens the segment, or creates it if there is no log file."""
        self._disk = disk
        self.folder = folder
        self.base_offset = base_offset
        self.suffix = suffix
        self._index_bytes = config.segment_index_bytes
        self.interval = config.index_interval_bytes
        self._now_ms = now_ms
        self._jitter_ms = jitter_ms
        self._created_ms = now_ms()
        self.since_entry = 0
        self._first_timestamp: int | None = None
        self.latest: tuple[int, int] | None = None
        """The value of `max_timestamp`, once it is computed."""
        self._offset_index: OffsetIndexFile | None = None
        self._time_index: TimeIndexFile | None = None
        self._opening = threading.Lock()
        self.tail: Tail | None = None
        self.due = bytearray()
        self.log_file = self.path(LOG)
        try:
            self.size = disk.size(self.log_file)
        except NotFound:
            self.size = 0
            disk.write(self.log_file, 0, b"")
            if config.preallocate:
                disk.truncate(self.log_file, config.initial_file_bytes)
        self.txn_index = TxnIndexFile(disk, self.path(TXN_INDEX), base_offset)

    def path(self, of: str) -> str:
        """The path of the segment's file with this suffix."""
        return f"{self.folder}/{offset_file(self.base_offset, of)}{self.suffix}"

    @property
    def offset_index(self) -> OffsetIndexFile:
        """The offset index with all entries, for the log's writer; the first use opens it, or creates it."""
        self.write_due_entries()
        return self._offsets()

    def _offsets(self, *, is_emptied: bool = False) -> OffsetIndexFile:
        if self._offset_index is None:
            with self._opening:  # a reader and the writer may need it first at the same time
                if self._offset_index is None:
                    file, size = self.path(OFFSET_INDEX), self._index_bytes
                    self._offset_index = OffsetIndexFile(self._disk, file, self.base_offset, size, is_emptied=is_emptied)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndexFile:
        """The time index with all entries, for the log's writer; the first use opens it, or creates it."""
        self.write_due_entries()
        return self._times()

    def _times(self, *, is_emptied: bool = False) -> TimeIndexFile:
        if self._time_index is None:
            with self._opening:
                if self._time_index is None:
                    file, size = self.path(TIME_INDEX), self._index_bytes
                    self._time_index = TimeIndexFile(self._disk, file, self.base_offset, size, is_emptied=is_emptied)
        return self._time_index

    # Queries

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The greatest timestamp so far in ms, -1 for none, and the last offset of its batch."""
        return self.latest or self._times().last_entry

    @property
    def largest_timestamp(self) -> int:
        """The greatest timestamp in ms; if there is none, when the file was last written."""
        timestamp = self.max_timestamp[0]
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        """When the log file was last written, in ms since 1970."""
        return self._disk.modified_ms(self.log_file)

    def should_roll(self, size: int, max_timestamp: int, last_offset: int, config: LogConfig, now_ms: int) -> bool:
        """Whether an append of `size` bytes, with these greatest timestamp and offset, needs a new segment."""
        return (
            self.size > config.segment_bytes - size
            or (self.size > 0 and self._waited(now_ms, max_timestamp) > config.max_segment_ms - self._jitter_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not is_relative(last_offset, self.base_offset)
        )

    def _waited(self, now_ms: int, timestamp: int) -> int:
        if self._first_timestamp is None:
            first = next(self.scan(0), None)
            self._first_timestamp = None if first is None else int(first.batches.max_timestamp[0])
        if self._first_timestamp is not None and self._first_timestamp >= 0:
            return timestamp - self._first_timestamp
        return now_ms - self._created_ms

    def scan(self, start: int, end: int | None = None, window: int = _SEARCH_WINDOW_BYTES) -> Iterator[Scanned]:
        """The batches from byte `start` on. Raises Corrupt."""
        end = self.size if end is None else min(end, self.size)
        return scan_file(self._read_range, self.log_file, start, end, window)

    def translate(self, offset: int, from_position: int = 0) -> Found | None:
        """The batch that contains `offset`, else the first one after it; None after the last batch. Raises Corrupt."""
        size = self.size
        is_in_index = size and not self.due
        before, following = self._offsets().positions_around(offset) if is_in_index else (self.position_of(offset), 0)
        if following - before > 2 * self.interval and following > from_position:
            found = batch_with(self._read_range(following, following + BATCH_RANGE.size), offset, following, size)
            if found is not None:
                return found
        return find_batch(self._read_range, self.log_file, offset, max(before, from_position), size)

    def position_of(self, offset: int) -> int:
        """The position of the last indexed batch that ends at or below `offset`, 0 if there is none. It changes nothing."""
        if not self.size:
            return 0
        due = self.due  # taken before the index, which its entries move to
        at = bisect_right(range(len(due) // DUE.size), offset, key=lambda row: DUE.unpack_from(due, row * DUE.size)[0])
        return int(DUE.unpack_from(due, (at - 1) * DUE.size)[1]) if at else self._offsets().lookup(offset)[1]

    def indexed_offset_from(self, position: int) -> int | None:
        """The offset of the first index entry at or after a position (see `upper_bound`). It changes nothing."""
        due, index = self.due, self._offsets()
        found = index.upper_bound(position)
        skipped = int(not len(index))
        rows = () if found is not None else DUE.iter_unpack(bytes(due))
        after = (row[0] for at, row in enumerate(rows) if row[1] > position or (row[1] == position and at >= skipped))
        return next(after, found)

    def offset_before(self, timestamp_ms: int) -> int:
        """An offset before which all records are earlier than a time, the base offset if unknown. It changes nothing.

        It ignores entries that are not yet in the index: the result may be lower than possible.
        """
        return self._times().lookup(timestamp_ms)[1]

    def _read_range(self, start: int, end: int) -> bytes:
        return self._disk.read(self.log_file, start, end)

    def read_next_offset(self) -> int:
        """The offset after the last batch; the base offset if the segment is empty. Raises Corrupt."""
        found = self.translate(self.offset_index.last_offset)
        following = self.base_offset
        if found is not None:
            for scanned in self.scan(found.position):
                following = int(scanned.batches.last_offset[-1]) + 1
        return following

    def has_overflow(self) -> bool:
        """Whether the last offset is too far above the base offset for the index."""
        following = self.read_next_offset()
        return following > self.base_offset and not is_relative(following - 1, self.base_offset)

    def open(self) -> OpenedFile:
        """The log file, to be read."""
        return self._disk.open(self.log_file)

    def read(self, position: int, size: int) -> bytes:
        """`size` bytes of the log file from `position` on."""
        return self._disk.read(self.log_file, position, position + size)

    # Commands

    def append(self, last_offset: int, records: bytes, batches: list[BatchFacts]) -> None:
        """Writes batches at the end. Raises OffsetOverflow before the write, Invalid and IndexFull after it."""
        position, index = self.size, self.offset_index  # the first append opens or creates the offset index
        if not is_relative(last_offset, self.base_offset):
            raise OffsetOverflow(self.log_file, self.base_offset, last_offset)
        if len(records) > INT32_MAX - position:
            raise Invalid(f"{self.log_file}: {len(records)} bytes more than {position} do not fit into a segment")
        self._disk.write(self.log_file, position, records)
        self.size += len(records)
        for batch in batches:
            if batch.max_timestamp > self.max_timestamp[0]:
                self.latest = batch.max_timestamp, batch.last_offset
            if self.since_entry > self.interval:
                index.append(batch.last_offset, position)
                self.time_index.maybe_append(*self.max_timestamp)
                self.since_entry = 0
            position += batch.size
            self.since_entry += batch.size

    def find_tail(self, config: LogConfig, offset_max: int) -> Tail | None:
        """The limits for the fast path, which may append up to `offset_max`; a flush is due after that.

        None if the fast path must not be used: the time of the segment's first batch is unknown, or an index is full or not
        open.
        """
        self.write_due_entries()
        index, times, first = self._offset_index, self._time_index, self._first_timestamp
        if index is None or times is None or first is None or first < 0 or not self.size or index.is_full or times.is_full:
            return None
        room = min(_DUE_MAX, index.entries_max - len(index), times.entries_max - times.KEPT - len(times))
        self.tail = (
            config,
            self._disk.writer(self.log_file),
            config.segment_bytes,
            first + config.max_segment_ms - self._jitter_ms,
            max(index.last_offset, times.last_entry[1] - 1),
            min(self.base_offset + INT32_MAX, offset_max),
            room * DUE.size,
        )
        return self.tail

    def write_due_entries(self) -> None:
        """Adds the pending index entries. It also resets the fast path's limits, since the caller may change the indexes."""
        self.tail = None
        index, times = self._offset_index, self._time_index
        if not self.due or index is None or times is None:
            return
        offsets, positions, timestamps, of_timestamps = np.frombuffer(self.due, np.int64).reshape(-1, 4).T
        index.extend(offsets, positions)
        grown = timestamps > times.last_entry[0]
        grown[1:] &= timestamps[1:] > timestamps[:-1]
        if grown.any():
            times.extend(timestamps[grown], of_timestamps[grown])
        self.due = bytearray()  # only now: a reader finds each entry in one of both

    def become_inactive(self) -> None:
        """Writes the last time index entry and trims the preallocated files."""
        self.time_index.maybe_append(*self.max_timestamp, uses_last_slot=True)
        self.offset_index.trim()
        self.time_index.trim()
        self._trim_log()

    def truncate_to(self, offset: int) -> int:
        """Removes the batch that contains `offset` and all after it; returns the number of bytes."""
        found = self.translate(offset)
        for index in (self.offset_index, self.time_index, self.txn_index):
            index.truncate_to(offset)
        self.resize_indexes(self._index_bytes)
        dropped = 0 if found is None else self.cut(found.position)
        if self.size == 0:
            self._created_ms = self._now_ms()
            self._first_timestamp = None
        self.since_entry = 0
        if self.max_timestamp[0] >= 0:
            self.latest = self._read_max_timestamp()
        return dropped

    def cut(self, size: int) -> int:
        """Sets the log file's size to `size` bytes; returns the number of bytes removed."""
        lost = self.size - size
        if size < self._disk.size(self.log_file):
            self._disk.truncate(self.log_file, size)
            self._disk.sync(self.log_file)  # or a crash could restore what was cut, with the epochs of its replacement
        self.size = size
        return lost

    def _read_max_timestamp(self) -> tuple[int, int]:
        timestamp, offset = last = self.time_index.last_entry
        best, best_offset = NO_TIMESTAMP, -1
        for scanned in self.scan(self.offset_index.lookup(offset)[1]):
            row = int(np.argmax(scanned.batches.max_timestamp))
            if int(scanned.batches.max_timestamp[row]) > best:
                best, best_offset = int(scanned.batches.max_timestamp[row]), int(scanned.batches.last_offset[row])
        return (best, best_offset) if best > timestamp else last

    def begin_recovery(self) -> None:
        """Drops all entries of the indexes, of which no file that is not open yet is read, and the greatest timestamp."""
        self.due = bytearray()
        for index in (self._offsets(is_emptied=True), self._times(is_emptied=True), self.txn_index):
            index.reset()
        self.latest = NO_TIMESTAMP, self.base_offset

    def note_timestamp(self, timestamp: int, offset: int) -> None:
        """Sets the greatest timestamp that a recovery has found."""
        self.latest = timestamp, offset

    def sync(self) -> None:
        """Flushes the log and its indexes to the device."""
        self._disk.sync(self.log_file)
        for index in (self.offset_index, self.time_index, self.txn_index):
            index.sync()

    def hide_offset_index(self) -> None:
        """Moves the offset index to a file that the next start deletes; a segment without an index is recovered then."""
        self._disk.delete(self.path(OFFSET_INDEX))
        self._disk.sync_folder(self.folder)
        hidden = self.path(OFFSET_INDEX) + DELETED
        self._offset_index = OffsetIndexFile(self._disk, hidden, self.base_offset, self._index_bytes)

    def show_offset_index(self) -> None:
        """Renames the offset index back, once everything that was recovered is on the device."""
        self.sync()
        self._disk.sync_folder(self.folder)
        index = self.offset_index
        self._disk.rename(index.file, self.path(OFFSET_INDEX))
        index.file = self.path(OFFSET_INDEX)

    def resize_indexes(self, size: int) -> None:
        """Resizes both indexes to `size` bytes."""
        self.offset_index.resize(size)
        self.time_index.resize(size)

    def rename(self, suffix: str) -> None:
        """Changes the suffix of all the segment's files; missing ones are ignored."""
        names = [(self.path(of), of) for of in SEGMENT_SUFFIXES]
        self.suffix = suffix
        for old, of in names:
            if of == LOG or self._disk.exists(old):
                self._disk.rename(old, self.path(of))
        self._moved()

    def moved_to(self, folder: str) -> None:
        """Uses the new path of a renamed log folder."""
        self.folder = folder
        self._moved()

    def _moved(self) -> None:
        self.tail = None
        self.log_file = self.path(LOG)
        self.txn_index.file = self.path(TXN_INDEX)
        for index, of in ((self._offset_index, OFFSET_INDEX), (self._time_index, TIME_INDEX)):
            if index is not None:
                index.file = self.path(of)

    def delete(self) -> None:
        """Deletes all the segment's files."""
        for of in SEGMENT_SUFFIXES:
            self._disk.delete(self.path(of))

    def close(self) -> None:
        """Writes what is only in memory and trims the preallocated files."""
        self.write_due_entries()
        if self.latest is not None:
            with suppress(Invalid):  # as in Kafka: the index then lacks one entry
                self.time_index.maybe_append(*self.latest, uses_last_slot=True)
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.trim()
                index.sync()
        self.txn_index.sync()
        self._trim_log()
        self._disk.sync(self.log_file)

    def _trim_log(self) -> None:
        if self._disk.size(self.log_file) > self.size:
            self._disk.truncate(self.log_file, self.size)
