"""One round of cleaning of a log (Kafka's Cleaner): fill the offset map from the dirty part, then rewrite all up to its end."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from local_log.engine.cleaner.batch_filter import Retention, filter_chunk
from local_log.engine.cleaner.dirty import segments_end
from local_log.engine.cleaner.grouping import group_segments
from local_log.engine.cleaner.last_records import last_records
from local_log.engine.cleaner.offset_map import OffsetMap
from local_log.engine.cleaner.transactions import CleanedTransactions
from local_log.engine.recovery.split import new_cleaned, replace_segments
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Corrupt, LogError
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import SEGMENT_SUFFIXES
from local_log.formats.record_batch.columns import Projection

_KEYS = Projection(value=False, headers=False)


def clean(log: UnifiedLog, first_dirty_offset: int, uncleanable_offset: int, offsets: OffsetMap, delete_retention_ms: int) -> int:
    """Cleans the log up to the end of what fits into the map; returns that offset, where the next round begins.

    The active segment and those from the one with `uncleanable_offset` on stay as they are; it may be the last stable offset at
    most. The log is the caller's alone meanwhile. Raises Corrupt, Invalid; the segments that were replaced before stay cleaned.
    """
    round_end = segments_end(log, uncleanable_offset)
    if round_end <= first_dirty_offset:
        return first_dirty_offset
    fill_map(log, first_dirty_offset, round_end, offsets)
    end = offsets.latest_offset + 1
    producers = last_records(log.producers.producers.values())
    retention = Retention(offsets, log.folder.now_ms(), delete_retention_ms, producers, round_end)
    transactions = CleanedTransactions()
    clean_part = log.local.segments.between(0, first_dirty_offset)
    old_tombstones_end_ms = clean_part[-1].modified_ms - delete_retention_ms if clean_part else 0
    for group in group_segments(log.local.segments.between(0, end), log.folder.config, round_end):
        _clean_group(log, group, transactions, retention, old_tombstones_end_ms)
    return end


def fill_map(log: UnifiedLog, start_offset: int, end_offset: int, offsets: OffsetMap) -> None:
    """Puts the keys of `[start_offset, end_offset)` into the emptied map until it is full; not those of aborted transactions."""
    offsets.clear()
    segments = log.local.segments
    dirty = segments.between(start_offset, end_offset)
    transactions = CleanedTransactions()
    _add_aborted(log, transactions, start_offset, end_offset)
    ends = [segment.base_offset for segment in dirty[1:]] + [end_offset]
    for segment, end in zip(dirty, ends, strict=False):
        for chunk in _chunks(segment, segment.offset_index.lookup(start_offset)[1]):
            if not _fill_from(chunk, transactions, start_offset, offsets):
                return
        offsets.covers(end - 1)  # the segment's last offsets may have been compacted


def _fill_from(chunk: Chunk, transactions: CleanedTransactions, start_offset: int, offsets: OffsetMap) -> bool:
    """Whether the keys of the whole chunk fit into the map."""
    b = chunk.batches
    is_data = ~b.is_control & ~transactions.discardable(chunk)
    ends = b.last_offset[b.last_offset >= start_offset]
    for _, records in chunk.where(is_data).records(_KEYS):
        of_records = records.column("offset").to_numpy()
        done = offsets.put(records.column("key"), of_records, start_offset)
        if done < len(of_records):
            before = ends[: np.searchsorted(ends, of_records[done])]
            offsets.covers(int(before[-1]) if len(before) else -1)
            return False
    offsets.covers(int(ends[-1]) if len(ends) else -1)
    return True


def _add_aborted(log: UnifiedLog, transactions: CleanedTransactions, start_offset: int, end_offset: int) -> None:
    """Adds the aborted transactions up to `end_offset`, from the first one in the segment with `start_offset` on.

    As Kafka does, also those that end before `start_offset`, but none that ends before the log start offset. If the marker of
    an earlier one is not read, its producer's next transaction counts as aborted until its own marker: such records do not get
    into the map. That keeps more records than needed, and none too few.
    """
    transactions.add(log.local.aborted(log.local.segments.floor(start_offset), log.log_start_offset, end_offset))


def _clean_group(
    log: UnifiedLog, group: list[Segment], transactions: CleanedTransactions, retention: Retention, old_tombstones_end_ms: int
) -> None:
    """Cleans consecutive segments into one that replaces them. Its files are as old as those of the last one."""
    folder = log.folder
    cleaned = new_cleaned(folder, group[0].base_offset)
    try:
        ends = [segment.base_offset for segment in group[1:]] + [group[-1].read_next_offset()]
        for segment, end in zip(group, ends, strict=True):
            _add_aborted(log, transactions, segment.base_offset, end)
            of_segment = replace(retention, keeps_old_tombstones=segment.modified_ms > old_tombstones_end_ms)
            for chunk in _chunks(segment, 0):
                data, facts = filter_chunk(chunk, transactions.discardable(chunk), of_segment)
                if facts:
                    cleaned.append(facts[-1].last_offset, data, facts)
            for txn in transactions.take_kept():
                cleaned.txn_index.append(txn)
        cleaned.become_inactive()
        cleaned.sync()
        modified = folder.disk.modified_ms(group[-1].log_file)
        for file in (cleaned.path(of) for of in SEGMENT_SUFFIXES[:3]):
            folder.disk.set_modified_ms(file, modified)
    except LogError:
        cleaned.close()
        cleaned.delete()
        raise
    folder.delete_snapshots_later(log.producers, replace_segments(folder, log.local.segments, [cleaned], group))


def _chunks(segment: Segment, start: int) -> Iterator[Chunk]:
    """The segment's batches from byte `start` on, where one must start. Raises Corrupt, also for a last one that is not whole."""
    position = start
    for chunk in read_chunks(lambda s, e: segment.read(s, e - s), segment.log_file, start, segment.size):
        yield chunk
        position = chunk.end
    if position < segment.size:
        raise Corrupt("the segment's last batch is not whole", file=segment.log_file, position=position)
