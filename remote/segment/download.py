"""Downloads an archived segment: all of its log or a range of batches, and its other files, with every byte verified."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from local_log.errors import Corrupt, placed
from local_log.formats import filenames
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import CHUNK_BYTES, Chunk, read_chunks
from local_log.formats.indexes.transaction import read_txn_index, write_txn_index
from local_log.formats.primitives import Buffer
from remote.keys import PartitionPath
from remote.manifest.segment_entry import OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TRANSACTION_INDEX, AuxRange, SegmentEntry
from remote.segment.index_rebuild import rebuilt_indexes
from remote.segment.stitch import Link
from remote.segment_bytes import SegmentBytes

PART_BYTES = 16 << 20

_SUFFIXES = {
    OFFSET_INDEX: filenames.OFFSET_INDEX,
    TIME_INDEX: filenames.TIME_INDEX,
    TRANSACTION_INDEX: filenames.TXN_INDEX,
    PRODUCER_SNAPSHOT: filenames.SNAPSHOT,
}


def file_names(entry: SegmentEntry) -> Mapping[str, str]:
    """The names of the files that the parts of the aux object were, by part; a snapshot is named after where the segment ends."""
    bases = {part: entry.end_offset if part == PRODUCER_SNAPSHOT else entry.base_offset for part in _SUFFIXES}
    return {part: filenames.offset_file(bases[part], suffix) for part, suffix in _SUFFIXES.items()}


def read_part(source: SegmentBytes, path: PartitionPath, entry: SegmentEntry, part: str) -> bytes:
    """One part of the aux object, nothing where the segment has none. Raises Corrupt, Unavailable, Invalid."""
    where = entry.aux_ranges.get(part)
    if where is None:
        return b""
    return verified(source.aux(path, entry, where.start, where.end), part, where, path.segment(entry.aux_name))


def verified(body: bytes, part: str, where: AuxRange, key: str) -> bytes:
    """The same bytes. Raises Corrupt where they are not those that the manifest states."""
    found = crc32c(body)
    if found != where.crc32c:
        problem = f"the {part} has CRC-32C {found:08x} where the manifest states {where.crc32c:08x}"
        raise Corrupt(problem, file=key, position=where.start)
    return body


def whole_log(source: SegmentBytes, path: PartitionPath, entry: SegmentEntry) -> Iterator[Buffer]:
    """The log file in parts, and after the last of them Corrupt where they are not what was archived. Raises Unavailable."""
    found = 0
    for start in range(0, entry.log_size, PART_BYTES):
        part = source.log(path, entry, start, min(entry.log_size, start + PART_BYTES))
        found = crc32c(part, found)
        yield part
    _check_crc(found, path, entry)


def _check_crc(found: int, path: PartitionPath, entry: SegmentEntry) -> None:
    if found != entry.log_crc32c:
        key = path.segment(entry.log_name)
        raise Corrupt(f"the segment has CRC-32C {found:08x} where the manifest states {entry.log_crc32c:08x}", file=key)


@dataclass(slots=True)
class CutLog:
    """The batches of a link's segment that lie in its range. What it says of them holds once `parts` has come to its end."""

    source: SegmentBytes
    path: PartitionPath
    link: Link
    size: int = 0
    crc32c: int = 0
    end_offset: int = 0
    """The offset after the last batch that is kept; where the link starts when none is."""
    _columns: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def parts(self) -> Iterator[Buffer]:
        """The batches that are kept, in order. Raises Corrupt, after the last too; Unavailable, Invalid."""
        entry, key = self.link.entry, self.path.segment(self.link.entry.log_name)
        self.size = self.crc32c = 0
        self.end_offset = self.link.start
        self._columns.clear()
        read = partial(self.source.log, self.path, entry)
        reached = found = 0
        for chunk in read_chunks(read, key, 0, entry.log_size, first_bytes=CHUNK_BYTES):
            chunk.check()
            reached = chunk.end
            found = crc32c(memoryview(chunk.buffer)[: chunk.end - chunk.position], found)
            kept = self._kept(chunk)
            if len(kept):
                yield kept
        if reached < entry.log_size:
            raise Corrupt(f"no whole batch where {entry.log_size - reached} bytes of them should be", file=key, position=reached)
        _check_crc(found, self.path, entry)

    def _kept(self, chunk: Chunk) -> Buffer:
        batches = chunk.batches
        torn = np.flatnonzero((batches.base_offset < self.link.start) & (batches.last_offset >= self.link.start))
        if len(torn):
            row = int(torn[0])
            raise Corrupt(
                f"the batch of offsets {batches.base_offset[row]} to {batches.last_offset[row]} begins in the segment before, "
                f"which ends at {self.link.start}: these are not the same log's; restore to before that offset",
                file=chunk.file,
                position=chunk.position + int(batches.positions[row]),
            )
        kept = batches[(batches.base_offset >= self.link.start) & (batches.last_offset < self.link.end)]
        if not len(kept):
            return b""
        start, end = int(kept.positions[0]), int(kept.end[-1])
        part = memoryview(chunk.buffer)[start:end]
        self._columns.append((kept.positions.astype(np.int64) - start + self.size, kept.last_offset, kept.max_timestamp))
        self.size += len(part)
        self.crc32c = crc32c(part, self.crc32c)
        self.end_offset = int(kept.last_offset[-1]) + 1
        return part

    def files(self) -> Mapping[str, bytes]:
        """The files that belong beside what is kept, by name: indexes of it, and the snapshot where its end is kept."""
        entry = self.link.entry
        if not self._columns:
            return {}
        rebuilt = rebuilt_indexes(self.link.start, *map(np.concatenate, zip(*self._columns, strict=True)))
        body = read_part(self.source, self.path, entry, TRANSACTION_INDEX)
        with placed(self.path.segment(entry.aux_name), entry.aux_ranges[TRANSACTION_INDEX].start if body else 0):
            aborted = read_txn_index(body)
        kept = write_txn_index(t for t in aborted if self.link.start <= t.last_offset < self.end_offset)
        files = {filenames.OFFSET_INDEX: rebuilt.offset_index, filenames.TIME_INDEX: rebuilt.time_index}
        named = {filenames.offset_file(self.link.start, suffix): body for suffix, body in files.items()}
        if kept:
            named[filenames.offset_file(self.link.start, filenames.TXN_INDEX)] = kept
        if self.link.end == entry.end_offset and PRODUCER_SNAPSHOT in entry.aux_ranges:
            named[file_names(entry)[PRODUCER_SNAPSHOT]] = read_part(self.source, self.path, entry, PRODUCER_SNAPSHOT)
        return named
