"""Whether the archive holds a local segment byte for byte, wherever the borders of its own segments are.

    local     |--------|--------|--------|---···        a directory that was adopted from another replica
    archive  |------|---------|----|-------|            rolled at other offsets
    compared   part    whole   whole

Batches with equal offsets have equal bytes, so an archived segment that lies in the log is compared by its size and CRC-32C,
which the manifest has: its offsets are read from the local log, and nothing from the store. Of one that reaches beyond the log,
mostly the first, the common part is read from the store, too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from local_log.disk import has_content
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import Chunk
from local_log.formats.filenames import LOG
from local_log.log_reader import LogReader
from local_log.ranges import Range, uncovered
from local_log.segment_reader import Segment
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.read.context import Decoder, ReadContext
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore


@dataclass(slots=True)
class SameRecords:
    """Compares segments of `log` with the archive of `manifest` in `store`, from the offset `start` on.

    It raises what reading either raises: Corrupt, NotFound, Unreadable, Unavailable, NoKey for an encrypted segment of which a
    part is needed.
    """

    log: LogReader
    store: ObjectStore
    manifest: Manifest
    start: int
    decoded: Decoder
    _entries: Entries = field(init=False)
    _compared: dict[str, bool] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._entries = Entries.of(self.store, self.manifest)

    def hold(self, segment: Segment, end: int) -> bool:
        """Whether archived segments hold all batches of a local one that ends at `end`; those below `start` do not count."""
        entries = list(self._entries.overlapping(segment.base_offset, end))
        if any(self._is_file_of(entry, segment) for entry in entries):
            return True
        missing: tuple[Range, ...] = ((max(self.start, segment.base_offset), end),)
        same: list[Range] = []
        for entry in entries:
            first, last = self._common(entry, end)
            if any(first < b and last > a for a, b in missing) and self._is_same(entry, first, last):
                same = sorted([*same, (first, last)])
                missing = uncovered(same, max(self.start, segment.base_offset), end)
        return not any(next(_inside(segment.chunks(a), a, b), None) is not None for a, b in missing)

    def _is_file_of(self, entry: SegmentEntry, segment: Segment) -> bool:
        is_at = entry.base_offset == segment.base_offset
        return is_at and has_content(segment.disk, segment.path(LOG), entry.log_size, entry.log_crc32c)

    def _common(self, entry: SegmentEntry, end: int) -> Range:
        """The offsets of an entry that are compared: all where the log has all, else those up to `end`."""
        first = self.log.segments[0].base_offset
        if first <= entry.base_offset and entry.end_offset <= self.log.log_end_offset:
            return entry.base_offset, entry.end_offset
        return max(entry.base_offset, first, self.manifest.log_start_offset), min(entry.end_offset, end)

    def _is_same(self, entry: SegmentEntry, first: int, last: int) -> bool:
        if (first, last) != (entry.base_offset, entry.end_offset):
            alone = replace(self.manifest, entries=(entry,), pages=())
            archived = ArchivedLog(self.store, alone, reading=ReadContext(self.decoded)).chunks(first, last)
            return _content(_inside(archived, first, last)) == self._local(first, last)
        if entry.segment_id not in self._compared:
            self._compared[entry.segment_id] = self._local(first, last) == (entry.log_size, entry.log_crc32c)
        return self._compared[entry.segment_id]

    def _local(self, first: int, last: int) -> tuple[int, int]:
        overlapping = (s for s in self.log.segments if s.next_base_offset is None or s.next_base_offset > first)
        chunks = (chunk for s in overlapping if s.base_offset < last for chunk in s.chunks(first))
        return _content(_inside(chunks, first, last))


def _inside(chunks: Iterable[Chunk], first: int, last: int) -> Iterator[Chunk]:
    """The chunks with only the batches that have offsets of `[first, last)`."""
    for chunk in chunks:
        if chunk.batches.base_offset[0] >= last:
            return
        mask = (chunk.batches.last_offset >= first) & (chunk.batches.base_offset < last)
        if mask.any():
            yield chunk.where(mask)


def _content(chunks: Iterable[Chunk]) -> tuple[int, int]:
    """The size and the CRC-32C of their batches, which follow one another."""
    size, crc = 0, 0
    for chunk in chunks:
        body = memoryview(chunk.buffer)[int(chunk.batches.positions[0]) : int(chunk.batches.end[-1])]
        size, crc = size + len(body), crc32c(body, crc)
    return size, crc
