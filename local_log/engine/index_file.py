"""Writes the offset index and the time index of a segment: append, look up, truncate, preallocate (AbstractIndex).

Entries are kept in memory. A few hundred at a time are written to the file; all of them are when the index is synced, resized or
trimmed. A crash loses the rest, but recovery then rebuilds the index, since the shutdown was not clean. The bytes after the last
entry, preallocated zeros or truncated entries, have no meaning until they are trimmed.

One thread at a time changes an index while others look up. Entries are added at the end of the buffer; what drops entries
replaces the buffer, so that a look-up sees them as they were at one moment.
"""

import struct
import threading
from array import array
from bisect import bisect_right
from typing import ClassVar

import numpy as np

from local_log.disk import WritableDisk
from local_log.errors import Corrupt, Invalid, NotFound
from local_log.formats.indexes.offset import ENTRY as OFFSET_ENTRY
from local_log.formats.indexes.time import ENTRY as TIME_ENTRY
from local_log.formats.primitives import INT32_MAX
from local_log.formats.record import NO_TIMESTAMP

PENDING_BYTES_MAX = 4096
"""Bytes of entries that are not yet written to the file."""

WARM_BYTES = 8192
"""Most lookups are near the end, and read only the last two pages (KAFKA-6432: cold pages are slow)."""


class InvalidOffset(Invalid):
    """An index entry that does not increase. Kafka's InvalidOffsetException."""


class CorruptIndex(Corrupt):
    """An index that does not match its segment: it is rebuilt from the log file."""


class IndexFull(Invalid):
    """An index without room for another entry: the segment must be rolled first."""


class OffsetOverflow(Invalid):
    """An offset below the segment's base offset or more than 2^31-1 above it: the segment cannot contain it."""

    def __init__(self, file: str, base_offset: int, offset: int) -> None:
        super().__init__(f"{file}: offset {offset} is not within 2^31-1 of the base offset {base_offset}")
        self.base_offset = base_offset
        self.offset = offset


def is_relative(offset: int, base_offset: int) -> bool:
    """Whether the offset's distance from the base offset fits into 31 bits."""
    return 0 <= offset - base_offset <= INT32_MAX


class _Index:
    """The common part of offset index and time index: fixed-size entries, in memory and in a file."""

    ENTRY: ClassVar[struct.Struct]
    KEPT: ClassVar[int] = 0
    """Slots that are reserved for the segment's end."""
    KEY, VALUE = 0, 1
    ROW: ClassVar[np.dtype[np.void]]
    KEY_NAME: ClassVar[str]
    KEY_TYPE: ClassVar[str]
    """The type of the keys in an `array`."""

    def __init__(self, disk: WritableDisk, file: str, base_offset: int, size_max: int, *, is_emptied: bool = False) -> None:
        """Reads the file's whole entries, none if `is_emptied`; creates a missing file with the maximum size. Raises Invalid."""
        self._disk = disk
        self.file = file
        self.base_offset = base_offset
        self.size_max = size_max
        try:
            data = b"" if is_emptied else disk.read(file)  # what a crash left is preallocated, 10 MiB by default
            self._entries = bytearray(data[: len(data) // self.ENTRY.size * self.ENTRY.size])
            self.length = disk.size(file) if is_emptied else len(data)
            self._written = len(self._entries)
        except NotFound:
            if size_max < self.ENTRY.size:
                raise Invalid(f"{file}: an index of {size_max} bytes has no room for an entry of {self.ENTRY.size}") from None
            self._entries = bytearray()
            self._written = 0
            self.length = self._rounded(size_max)
            disk.write(file, 0, b"")
            disk.truncate(file, self.length)
        self._full_bytes = self._full()
        self._sorted: tuple[bytearray, array[int], bool] = self._entries, array(self.KEY_TYPE), True
        """The keys of a buffer's first entries, and whether they increase; `_sorting` protects the growth of the array."""
        self._sorting = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries) // self.ENTRY.size

    @property
    def entries_max(self) -> int:
        """The number of entries that the file has room for."""
        return self.length // self.ENTRY.size

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another entry, apart from the slots for the segment's end."""
        return len(self._entries) >= self._full_bytes

    def fields(self, at: int) -> tuple[int, int]:
        """The two numbers of an entry as stored in the file. Raises Invalid if there is no such entry."""
        if not 0 <= at < len(self):
            raise Invalid(f"{self.file}: entry {at} of an index that has {len(self)}")
        return self._fields(self._entries, at)

    def _fields(self, rows: bytearray, at: int) -> tuple[int, int]:
        first, second = self.ENTRY.unpack_from(rows, at * self.ENTRY.size)
        return first, second

    def resize(self, size: int) -> bool:
        """Resizes the file to `size` bytes, rounded down to whole entries; False if it already has that size."""
        self._write_pending()
        size = self._rounded(size)
        if size == self.length:
            return False
        if size < len(self._entries):
            raise Invalid(f"{self.file}: {len(self._entries)} bytes of entries do not fit into {size}")
        self._disk.truncate(self.file, size)
        self.length = size
        self._full_bytes = self._full()
        return True

    def trim(self) -> None:
        """Truncates the file after the last entry."""
        self.resize(len(self._entries))

    def reset(self) -> None:
        """Drops all entries; the file gets the maximum size."""
        self._cut(0)
        self.resize(self.size_max)

    def sync(self) -> None:
        """Writes the entries and flushes them to the device."""
        self._write_pending()
        self._disk.sync(self.file)

    def _cut(self, entries: int) -> None:
        self._entries = self._entries[: entries * self.ENTRY.size]
        self._written = min(self._written, len(self._entries))
        with self._sorting:
            self._sorted = self._entries, array(self.KEY_TYPE), True  # the entries before the cut are kept by nobody

    def _add(self, data: bytes) -> None:
        if len(self._entries) + len(data) > self.length:
            raise IndexFull(f"{self.file}: no room for another entry after {len(self)}")
        self._entries += data
        if len(self._entries) - self._written >= PENDING_BYTES_MAX:
            self._write_pending()

    def _write_pending(self) -> None:
        if self._written < len(self._entries):
            self._disk.write(self.file, self._written, bytes(memoryview(self._entries)[self._written :]))
            self._written = len(self._entries)

    def _at(self, rows: bytearray, key: int) -> int:
        """The index of the last of `rows` whose key, as stored, is at most `key`; -1 if there is none."""
        of, keys, increase = self._sorted
        if of is not rows or len(keys) * self.ENTRY.size < len(rows):
            of, keys, increase = self._sort(rows)
        return bisect_right(keys, key) - 1 if increase else self._slot(rows, key, self.KEY)

    def _sort(self, rows: bytearray) -> "tuple[bytearray, array[int], bool]":
        with self._sorting:
            known = self._sorted if self._sorted[0] is rows else (rows, array(self.KEY_TYPE), True)
            keys, before = known[1], known[1][-1:]
            new = np.frombuffer(rows[len(keys) * self.ENTRY.size :], self.ROW)[self.KEY_NAME]  # a copy: no view may hold `rows`
            grown = array(self.KEY_TYPE, new.astype(self.KEY_TYPE).tobytes())
            increase = known[2] and bool((new[1:] > new[:-1]).all()) and not (before and grown and grown[0] <= before[0])
            keys.extend(grown)  # in place: a concurrent look-up, which has a shorter `rows`, finds the same
            self._sorted = rows, keys, increase
            return self._sorted

    def _slot(self, rows: bytearray, target: int, field: int) -> int:
        """The index of the last of `rows` whose field is at most `target`; -1 if there is none.

        It compares in Kafka's order, so that damaged entries, which are unsorted, give the same result as in Kafka.
        """
        size, unpack = self.ENTRY.size, self.ENTRY.unpack_from
        entries = len(rows) // size
        if not entries:
            return -1
        warm = max(0, entries - 1 - WARM_BYTES // size)
        if unpack(rows, warm * size)[field] < target:
            low, high = warm, entries - 1
        elif unpack(rows)[field] > target:
            return -1
        else:
            low, high = 0, warm
        while low < high:
            middle = (low + high + 1) >> 1
            found = unpack(rows, middle * size)[field]
            if found > target:
                high = middle - 1
            elif found < target:
                low = middle
            else:
                return middle
        return low

    def _full(self) -> int:
        return (self.entries_max - self.KEPT) * self.ENTRY.size

    def _rounded(self, size: int) -> int:
        return size // self.ENTRY.size * self.ENTRY.size


_PAIR = struct.Struct(">ii")
_pair = _PAIR.unpack_from


class OffsetIndexFile(_Index):
    """`.index`: an entry (offset relative to the base offset, position) for every few KB of log."""

    ENTRY = _PAIR
    ROW, KEY_NAME, KEY_TYPE = OFFSET_ENTRY, "offset", "i"

    def __init__(self, disk: WritableDisk, file: str, base_offset: int, size_max: int, *, is_emptied: bool = False) -> None:
        super().__init__(disk, file, base_offset, size_max, is_emptied=is_emptied)
        self.last_offset = self._last()

    def lookup(self, offset: int) -> tuple[int, int]:
        """Offset and position of the greatest entry at or below `offset`; the base offset and 0 if there is none."""
        rows = self._entries
        at = self._at(rows, offset - self.base_offset)
        if at < 0:
            return self.base_offset, 0
        relative, position = self._fields(rows, at)
        return self.base_offset + relative, position

    def positions_around(self, offset: int) -> tuple[int, int]:
        """The positions of the greatest entry at or below `offset` and of the one after it; 0 if there is none.

        The second is also 0 if the first one's offset is `offset`. Otherwise, where batches are larger than the index interval
        and have an entry each, it is mostly that of the offset's own batch.
        """
        rows, key = self._entries, offset - self.base_offset
        at = self._at(rows, key)
        relative, before = _pair(rows, at * _PAIR.size) if at >= 0 else (-1, 0)
        if relative == key or (at + 2) * _PAIR.size > len(rows):
            return before, 0
        return before, _pair(rows, (at + 1) * _PAIR.size)[1]

    def entry(self, at: int) -> tuple[int, int]:
        """Offset and position of an entry. Raises Invalid if there is no such entry."""
        relative, position = self.fields(at)
        return self.base_offset + relative, position

    def upper_bound(self, position: int) -> int | None:
        """The offset of the first entry at or after a position in the log; None after the last.

        The very first entry counts only if it is after the position: Kafka's search has no exact match there.
        """
        rows = self._entries
        entries = len(rows) // self.ENTRY.size
        at = self._slot(rows, position, self.VALUE)
        if at <= 0 or self._fields(rows, at)[self.VALUE] != position:
            at += 1
        return self.base_offset + self._fields(rows, at)[self.KEY] if at < entries else None

    def append(self, offset: int, position: int) -> None:
        """Adds an entry. Raises IndexFull; InvalidOffset unless `offset` is above the last entry's; OffsetOverflow."""
        if self.is_full:
            raise IndexFull(f"{self.file}: no room for another entry after {len(self)}")
        if self._entries and offset <= self.last_offset:
            raise InvalidOffset(f"{self.file}: an entry of offset {offset} after one of {self.last_offset}")
        if not is_relative(offset, self.base_offset):
            raise OffsetOverflow(self.file, self.base_offset, offset)
        self._add(self.ENTRY.pack(offset - self.base_offset, position))
        self.last_offset = offset

    def extend(self, offsets: np.ndarray, positions: np.ndarray) -> None:
        """Adds entries that the caller knows to be increasing. Raises IndexFull."""
        rows = np.empty(len(offsets), OFFSET_ENTRY)
        rows["offset"], rows["position"] = offsets - self.base_offset, positions
        self._add(rows.tobytes())
        self.last_offset = int(offsets[-1])

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or above `offset`."""
        at = self._at(self._entries, offset - self.base_offset)
        keeps = at >= 0 and self.fields(at)[self.KEY] != offset - self.base_offset
        self._cut(at + 1 if keeps else max(at, 0))

    def _cut(self, entries: int) -> None:
        super()._cut(entries)
        self.last_offset = self._last()

    def _last(self) -> int:
        return self.base_offset + (self.fields(len(self) - 1)[self.KEY] if len(self) else 0)


class TimeIndexFile(_Index):
    """`.timeindex`: (timestamp, offset relative to the base): no record before the offset is later than the timestamp."""

    ENTRY = struct.Struct(">qi")
    ROW, KEY_NAME, KEY_TYPE = TIME_ENTRY, "timestamp", "q"
    KEPT = 1

    def __init__(self, disk: WritableDisk, file: str, base_offset: int, size_max: int, *, is_emptied: bool = False) -> None:
        super().__init__(disk, file, base_offset, size_max, is_emptied=is_emptied)
        self.last_entry = self._last()

    def entry(self, at: int) -> tuple[int, int]:
        """Timestamp in ms and offset of an entry. Raises Invalid if there is no such entry."""
        timestamp, relative = self.fields(at)
        return timestamp, self.base_offset + relative

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """The greatest entry at or below a timestamp in ms; -1 and the base offset if there is none."""
        rows = self._entries
        at = self._at(rows, timestamp_ms)
        if at < 0:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self._fields(rows, at)
        return timestamp, self.base_offset + relative

    def maybe_append(self, timestamp_ms: int, offset: int, *, uses_last_slot: bool = False) -> None:
        """Adds an entry if it is later than the last. Raises IndexFull; InvalidOffset and Invalid if offset or time decrease."""
        if not uses_last_slot and self.is_full:
            raise IndexFull(f"{self.file}: no room for another entry after {len(self)}")
        last_timestamp, last_offset = self.last_entry
        if self._entries and offset < last_offset:
            raise InvalidOffset(f"{self.file}: an entry of offset {offset} after one of {last_offset}")
        if self._entries and timestamp_ms < last_timestamp:
            raise Invalid(f"{self.file}: an entry of time {timestamp_ms} after one of {last_timestamp}")
        if timestamp_ms > last_timestamp:
            if not is_relative(offset, self.base_offset):
                raise OffsetOverflow(self.file, self.base_offset, offset)
            self._add(self.ENTRY.pack(timestamp_ms, offset - self.base_offset))
            self.last_entry = timestamp_ms, offset

    def extend(self, timestamps: np.ndarray, offsets: np.ndarray) -> None:
        """Adds entries that the caller knows to be increasing. Raises IndexFull."""
        rows = np.empty(len(offsets), TIME_ENTRY)
        rows["timestamp"], rows["offset"] = timestamps, offsets - self.base_offset
        self._add(rows.tobytes())
        self.last_entry = int(timestamps[-1]), int(offsets[-1])

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or above `offset`."""
        at = self._slot(self._entries, offset - self.base_offset, self.VALUE)
        keeps = at >= 0 and self.fields(at)[self.VALUE] != offset - self.base_offset
        self._cut(at + 1 if keeps else max(at, 0))

    def resize(self, size: int) -> bool:
        """As in the base class; the last entry may be truncated."""
        resized = super().resize(size)
        if resized:
            self.last_entry = self._last()
        return resized

    def _cut(self, entries: int) -> None:
        super()._cut(entries)
        self.last_entry = self._last()

    def _last(self) -> tuple[int, int]:
        return self.entry(len(self) - 1) if len(self) else (NO_TIMESTAMP, self.base_offset)
