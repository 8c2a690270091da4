"""One round of cleaning of a log (Kafka's Cleaner): fill the offset map from the dirty part, then rewrite all up to its end.

The log may be used meanwhile: it is read and the new files are written without its lock, which only the swap takes.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from local_log.engine.cleaner.batch_filter import Retention, filter_chunk
from local_log.engine.cleaner.dirty import segments_end
from local_log.engine.cleaner.grouping import group_segments
from local_log.engine.cleaner.last_records import last_records
from local_log.engine.cleaner.swap import CleaningAborted, is_as_before, split, swap
from local_log.engine.cleaner.transactions import CleanedTransactions
from local_log.engine.index_file import OffsetOverflow
from local_log.engine.recovery.segment import index_batches
from local_log.engine.recovery.split import new_cleaned
from local_log.engine.scan import Scanned, scan_any
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Corrupt, LogError
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import SEGMENT_SUFFIXES
from local_log.formats.offset_map import OffsetMap
from local_log.formats.record_batch.projection import Projection

_KEYS = Projection(value=False, headers=False)
_IO_BYTES = 1 << 20

OnIO = Callable[[int], None]
"""Called with the bytes of each read and write. It may wait. It raises CleaningAborted if the round is to end."""


def clean(
    log: UnifiedLog,
    first_dirty_offset: int,
    uncleanable_offset: int,
    offsets: OffsetMap,
    on_io: OnIO = lambda size: None,
    io_bytes: int = _IO_BYTES,
) -> int:
    """Cleans the log up to the end of what fits into the map; returns that offset, where the next round begins.

    The active segment and those from the one with `uncleanable_offset` on stay as they are; it may be the last stable offset at
    most. It reads about `io_bytes` at a time. One round at a time may clean a log. Raises Corrupt, Invalid, CleaningAborted; the
    segments that were replaced before stay cleaned.
    """
    moves = log.published.moves
    end = segments_end(log, min(uncleanable_offset, log.offsets.last_stable))
    if end <= first_dirty_offset:
        return first_dirty_offset
    return _Round(log, first_dirty_offset, end, offsets, on_io, io_bytes, moves).run()


@dataclass(slots=True)
class _Round:
    """A round over `[first_dirty_offset, end)`; parameters as in `clean`. `moves` shows whether others change the log."""

    log: UnifiedLog
    first_dirty_offset: int
    end: int
    offsets: OffsetMap
    on_io: OnIO
    io_bytes: int
    moves: int
    last_indexed: int = 0
    """The position of the last batch of the new segment with an index entry."""

    def run(self) -> int:
        """Cleans; returns where the next round begins. Raises CleaningAborted for any error if the log was changed meanwhile."""
        try:
            return self._clean()
        except LogError as e:
            if isinstance(e, CleaningAborted) or is_as_before(self.log, self.moves):
                raise
            raise _changed(self.log) from e

    def _clean(self) -> int:
        self.fill_map()
        next_dirty = self.offsets.latest_offset + 1
        log, config = self.log, self.log.folder.config
        clean_part = log.local.segments.between(0, self.first_dirty_offset)
        old_tombstones_end_ms = clean_part[-1].modified_ms - config.delete_retention_ms if clean_part else 0
        now_ms, transactions = log.folder.now_ms(), CleanedTransactions()
        for group in group_segments(log.local.segments.between(0, next_dirty), config, self.end):
            with log.lock:
                producers = last_records(log.producers.producers.values())
            retention = Retention(self.offsets, now_ms, config.delete_retention_ms, producers, self.end)
            self._clean_group(group, transactions, retention, old_tombstones_end_ms)
        return next_dirty

    # The offset map

    def fill_map(self) -> None:
        """Puts the keys of the dirty part into the emptied map until it is full; not those of aborted transactions."""
        self.offsets.clear()
        segments = self.log.local.segments
        dirty = segments.between(self.first_dirty_offset, self.end)
        transactions = CleanedTransactions()
        self._add_aborted(transactions, self.first_dirty_offset, self.end)
        ends = [segment.base_offset for segment in dirty[1:]] + [self.end]
        for segment, end in zip(dirty, ends, strict=False):
            for chunk in self._chunks(segment, segment.offset_index.lookup(self.first_dirty_offset)[1]):
                if not self._fill_from(chunk, transactions):
                    return
            self.offsets.covers(end - 1)  # the segment's last offsets may have been compacted

    def _fill_from(self, chunk: Chunk, transactions: CleanedTransactions) -> bool:
        """Whether the keys of the whole chunk fit into the map."""
        b, start, offsets = chunk.batches, self.first_dirty_offset, self.offsets
        is_data = ~b.is_control & ~transactions.discardable(chunk)
        ends = b.last_offset[b.last_offset >= start]
        for _, records in chunk.where(is_data).records(_KEYS):
            of_records = records.column("offset").to_numpy()
            done = offsets.put(records.column("key"), of_records, start)
            if done < len(of_records):
                before = ends[: np.searchsorted(ends, of_records[done])]
                offsets.covers(int(before[-1]) if len(before) else -1)
                return False
        offsets.covers(int(ends[-1]) if len(ends) else -1)
        return True

    def _add_aborted(self, transactions: CleanedTransactions, start_offset: int, end_offset: int) -> None:
        """Adds the aborted transactions up to `end_offset`, from the first one in the segment with `start_offset` on.

        As Kafka does, also those that end before `start_offset`, but none that ends before the log start offset. If the marker of
        an earlier one is not read, its producer's next transaction counts as aborted until its own marker: such records do not
        get into the map. That keeps more records than needed, and none too few.
        """
        local = self.log.local
        transactions.add(local.aborted(local.segments.floor(start_offset), self.log.offsets.log_start, end_offset))

    # The segments

    def _clean_group(
        self, group: list[Segment], transactions: CleanedTransactions, retention: Retention, old_tombstones_end_ms: int
    ) -> None:
        """Cleans consecutive segments into one that replaces them. Its files are as old as those of the last one."""
        folder, reading = self.log.folder, group[0]
        cleaned, self.last_indexed = new_cleaned(folder, reading.base_offset), 0
        try:
            ends = [segment.base_offset for segment in group[1:]] + [group[-1].read_next_offset()]
            for reading, end in zip(group, ends, strict=True):
                self._add_aborted(transactions, reading.base_offset, end)
                is_young = reading.modified_ms > old_tombstones_end_ms
                self._clean_into(cleaned, reading, transactions, replace(retention, keeps_old_tombstones=is_young))
            cleaned.become_inactive()
            cleaned.sync()
            modified = folder.disk.modified_ms(group[-1].log_file)
            for file in (cleaned.path(of) for of in SEGMENT_SUFFIXES[:3]):
                folder.disk.set_modified_ms(file, modified)
            self.on_io(0)
        except LogError as e:
            _discard(cleaned)
            file = reading.log_file
            if isinstance(e, OffsetOverflow) and split(self.log, self.moves, reading) is not None:
                raise CleaningAborted(f"{file}: split, since its offsets were too far apart for one segment") from e
            raise
        moves = swap(self.log, self.moves, cleaned, group)
        if moves is None:
            _discard(cleaned)
            raise _changed(self.log)
        self.moves = moves

    def _clean_into(self, cleaned: Segment, segment: Segment, transactions: CleanedTransactions, retention: Retention) -> None:
        for chunk in self._chunks(segment, 0):
            data = filter_chunk(chunk, transactions.discardable(chunk), retention)
            if data:
                position, (batches, *_) = cleaned.size, scan_any(data, len(data))
                cleaned.append(batches.next_offset - 1, data, [])
                self.last_indexed = index_batches(cleaned, Scanned(position, data, batches), self.last_indexed)
                self.on_io(len(data))
        for txn in transactions.take_kept():
            cleaned.txn_index.append(txn)

    def _chunks(self, segment: Segment, start: int) -> Iterator[Chunk]:
        """The segment's batches from byte `start` on, where one must start. Raises Corrupt, also if the last one is not whole."""

        def read(begin: int, end: int) -> bytes:
            self.on_io(end - begin)
            return segment.read(begin, end - begin)

        position = start
        sizes = {"first_bytes": self.io_bytes, "bytes_max": self.io_bytes}
        for chunk in read_chunks(read, segment.log_file, start, segment.size, **sizes):
            yield chunk
            position = chunk.end
        if position < segment.size:
            raise Corrupt("the segment's last batch is not whole", file=segment.log_file, position=position)


def _discard(cleaned: Segment) -> None:
    with suppress(LogError):  # the error that led here is the one to report; the next start deletes the files, too
        cleaned.close()
        cleaned.delete()


def _changed(log: UnifiedLog) -> CleaningAborted:
    return CleaningAborted(f"{log.folder.path}: segments were truncated or deleted while they were cleaned")
