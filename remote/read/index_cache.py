"""A cache of the indexes of archived segments, in memory and, below that, in files that survive a restart.

The indexes of a segment are adjacent in its aux object, so one request fetches all of them. The indexes of an encrypted segment
are cached in memory only, because they contain timestamps and producer ids. Kafka's setting for the size of the files is
`remote.log.index.file.cache.total.size.bytes`.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from local_log.errors import Corrupt, placed
from local_log.formats.checksum import crc32c
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index
from remote.keys import PartitionPath
from remote.manifest.segment_entry import (
    ABORTED_LATER,
    LEAST_TIME_INDEX,
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    SegmentEntry,
)
from remote.read.cache_files import CacheFiles
from remote.segment_bytes import SegmentBytes

if TYPE_CHECKING:
    from local_log.formats.indexes.offset import OffsetIndex
    from local_log.formats.indexes.time import TimeIndex

SUFFIX: Final = ".indexes"
FILES_BYTES_MAX: Final = 1 << 30
"""Kafka's default."""
MEMORY_BYTES_MAX: Final = 64 << 20

_INDEXES: Final = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, ABORTED_LATER, LEAST_TIME_INDEX)
_FETCH_LOCKS: Final = 64
_COST_BYTES: Final = 1_000
"""Memory of an entry besides its bytes; parsed indexes count as twice their bytes."""

T = TypeVar("T")


class SegmentIndexes:
    """The indexes of one segment: `body` holds the bytes of its aux object from `start` on. Each index is parsed on first use.

    Every method raises Corrupt, with the position in the aux object, if an index does not match the manifest or cannot be parsed.
    """

    __slots__ = ("_body", "_entry", "_key", "_parsed", "_start")

    def __init__(self, path: PartitionPath, entry: SegmentEntry, body: bytes, start: int) -> None:
        self._entry = entry
        self._key = path.segment(entry.aux_name)
        self._body = body
        self._start = start
        self._parsed: dict[str, object] = {}

    @property
    def size(self) -> int:
        """The size of `body` in bytes."""
        return len(self._body)

    def offsets(self) -> "OffsetIndex":
        """The offset index: offsets and their positions in the log."""
        from local_log.formats.indexes.offset import read_offset_index  # with numpy, which not every start needs

        return self._part(OFFSET_INDEX, lambda body: read_offset_index(body, self._entry.base_offset))

    def times(self) -> "TimeIndex":
        """The time index: the largest timestamp up to each of its offsets."""
        return self._times(TIME_INDEX)

    def least_times(self) -> "TimeIndex":
        """The least-time index (see `remote.segment.times`); empty if the segment has none."""
        return self._times(LEAST_TIME_INDEX)

    def aborted(self) -> tuple[AbortedTxn, ...]:
        """The aborted transactions that have records or their marker in the segment."""
        return self._part(TRANSACTION_INDEX, read_txn_index) + self._part(ABORTED_LATER, read_txn_index)

    def is_of(self, entry: SegmentEntry) -> bool:
        """Whether these are the bytes that this entry names: ids are unique, but a writer could have made one twice."""
        return self._entry is entry or self._entry.aux_ranges == entry.aux_ranges

    def is_valid(self) -> bool:
        """Whether every index has the CRC-32C that the manifest states."""
        return all(self._crc(part) == self._entry.aux_ranges[part].crc32c for part in _present(self._entry))

    def _times(self, part: str) -> "TimeIndex":
        from local_log.formats.indexes.time import read_time_index

        return self._part(part, lambda body: read_time_index(body, self._entry.base_offset))

    def _part(self, part: str, read: Callable[[bytes], T]) -> T:
        """A missing index is parsed from no bytes, so it is empty."""
        if part in self._parsed:
            return self._parsed[part]  # type: ignore[return-value]  # what `read` gave for this part before
        where = self._entry.aux_ranges.get(part)
        if where is None:
            return read(b"")
        found = self._crc(part)
        if found != where.crc32c:
            problem = f"the {part} has CRC-32C {found:08x} where the manifest states {where.crc32c:08x}"
            raise Corrupt(problem, file=self._key, position=where.start)
        with placed(self._key, where.start):
            parsed = read(self._bytes(part))
        self._parsed[part] = parsed
        return parsed

    def _crc(self, part: str) -> int:
        return crc32c(self._bytes(part))

    def _bytes(self, part: str) -> bytes:
        where = self._entry.aux_ranges[part]
        return self._body[where.start - self._start : where.end - self._start]


class IndexCache:
    """Indexes by segment id. Thread-safe; concurrent misses of one segment cause one fetch.

    A hit in memory never waits for a fetch. Damaged indexes are returned to the caller, but not cached.
    """

    def __init__(self, memory_bytes_max: int = MEMORY_BYTES_MAX, files: CacheFiles | None = None) -> None:
        self.memory_bytes_max = memory_bytes_max
        self._files = files
        self._kept: OrderedDict[str, SegmentIndexes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._fetching = [threading.Lock() for _ in range(_FETCH_LOCKS)]

    def get(self, source: SegmentBytes, path: PartitionPath, entry: SegmentEntry) -> SegmentIndexes:
        """The indexes of a segment: from memory, from a file, or from the archive by one request. Raises as SegmentBytes."""
        source.require_encryption(path, entry)
        found = self._in_memory(entry)
        if found is not None:
            return found
        with self._fetching[hash(entry.segment_id) % _FETCH_LOCKS]:
            found = self._in_memory(entry) or self._from_file(path, entry)
            if found is None:
                found = self._fetched(source, path, entry)
                if not found.is_valid():
                    return found
            self._keep_in_memory(entry, found)
            return found

    def remove(self, segment_id: str) -> None:
        """Removes a segment that has left the archive."""
        with self._lock:
            if (found := self._kept.pop(segment_id, None)) is not None:
                self._bytes -= _cost(found)
        if self._files is not None:
            self._files.remove(segment_id)

    def _in_memory(self, entry: SegmentEntry) -> SegmentIndexes | None:
        with self._lock:
            found = self._kept.get(entry.segment_id)
            if found is None or not found.is_of(entry):
                return None
            self._kept.move_to_end(entry.segment_id)
            return found

    def _keep_in_memory(self, entry: SegmentEntry, found: SegmentIndexes) -> None:
        with self._lock:
            before = self._kept.pop(entry.segment_id, None)
            self._kept[entry.segment_id] = found
            self._bytes += _cost(found) - (_cost(before) if before else 0)
            while self._bytes > self.memory_bytes_max and self._kept:
                self._bytes -= _cost(self._kept.popitem(last=False)[1])

    def _from_file(self, path: PartitionPath, entry: SegmentEntry) -> SegmentIndexes | None:
        body = self._files.get(entry.segment_id) if self._files is not None else None
        if body is None:
            return None
        found = SegmentIndexes(path, entry, body, _range(entry)[0])
        return found if found.is_valid() else None

    def _fetched(self, source: SegmentBytes, path: PartitionPath, entry: SegmentEntry) -> SegmentIndexes:
        start, end = _range(entry)
        body = source.aux(path, entry, start, end) if end > start else b""
        found = SegmentIndexes(path, entry, body, start)
        if self._files is not None and body and not entry.is_encrypted and found.is_valid():
            self._files.put(entry.segment_id, body)
        return found


def _present(entry: SegmentEntry) -> tuple[str, ...]:
    return tuple(part for part in _INDEXES if part in entry.aux_ranges)


def _range(entry: SegmentEntry) -> tuple[int, int]:
    """The bytes of the aux object from the first index to the last."""
    ranges = [entry.aux_ranges[part] for part in _present(entry)]
    return min((r.start for r in ranges), default=0), max((r.end for r in ranges), default=0)


def _cost(indexes: SegmentIndexes) -> int:
    return _COST_BYTES + 3 * indexes.size
