"""Filters a chunk's batches (MemoryRecords.filterTo): each stays as it is, is written with fewer records, is emptied or goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.engine.cleaner.last_records import LastRecords
from local_log.engine.cleaner.offset_map import OffsetMap
from local_log.engine.segment import BatchFacts
from local_log.formats.chunks import Chunk
from local_log.formats.header_layout import APPEND_TIME, CODEC, CONTROL, TRANSACTIONAL
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.columns import per_record
from local_log.formats.record_batch.header import read_batch_header
from local_log.formats.record_batch.writer import NewBatch, write_batch, write_emptied


@dataclass(frozen=True, slots=True)
class Retention:
    """What one round of cleaning keeps; the round ends before `end_offset`. Tombstones stay for `delete_retention_ms`.

    Messages of magic 0 and 1 have no delete horizon: `keeps_old_tombstones` says whether their segment is too young to lose them.
    """

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    last_records: LastRecords
    end_offset: int
    keeps_old_tombstones: bool = True

    def discards(self, batches: Batches, discardable: Any) -> Any:
        """Whether all records of each batch go. `discardable` is what the transactions allow; a marker waits for its horizon."""
        horizons = batches.delete_horizon_ms
        return discardable & (~batches.is_control | ((horizons >= 0) & (horizons <= self.now_ms)))

    def keeps_empty(self, batches: Batches) -> Any:
        """Whether each batch stays even without records: a producer's last one, and the last one of the round."""
        return self.last_records.are_in(batches) | (batches.last_offset + 1 == self.end_offset)

    def keeps(self, batches: Batches, records: pa.RecordBatch) -> Any:
        """Whether each record stays: the last one of its key, unless it is a tombstone whose time is over."""
        offsets = records.column("offset").to_numpy()
        horizons = batches.delete_horizon_ms
        keeps_tombstones = (horizons < 0) | (horizons > self.now_ms)
        if batches.are_messages:
            keeps_tombstones[:] = self.keeps_old_tombstones
        is_latest = offsets >= self.offsets.latest_of(records.column("key"))
        stays = _is_valid(records.column("value")) | per_record(batches, keeps_tombstones)
        return (is_latest & stays) | (offsets > self.offsets.latest_offset) | per_record(batches, batches.is_control)


def filter_chunk(chunk: Chunk, discardable: Any, retention: Retention) -> tuple[bytes, list[BatchFacts]]:
    """The bytes that stay of a chunk's batches, and the facts of these.

    `discardable` is the mask of `CleanedTransactions`. Raises Corrupt.
    """
    b = chunk.batches
    stays = np.flatnonzero(~retention.discards(b, discardable))
    kept, made = np.zeros(len(b), np.int64), dict[int, bytes]()
    first = 0
    for group, records in chunk.where(stays).records():
        rows = stays[first : first + len(group)]
        first += len(group)
        gone_txn = discardable[rows] & group.is_control
        kept[rows], rewritten = _filter_group(chunk, group, records, gone_txn, retention)
        made.update((int(rows[row]), data) for row, data in rewritten)
    empty = np.flatnonzero((kept == 0) & retention.keeps_empty(b))
    if b.are_messages:
        kept[empty] = b.count[empty]  # a message without records cannot be written; Kafka fails here
    else:
        made.update((row, write_emptied(read_batch_header(chunk.buffer, int(b.positions[row])))) for row in empty.tolist())
    return _assembled(chunk, kept, made)


def _filter_group(
    chunk: Chunk, group: Batches, records: pa.RecordBatch, gone_txn: Any, retention: Retention
) -> tuple[Any, Iterator[tuple[int, bytes]]]:
    """The number of records that stay of each batch, and the bytes of those batches that are written anew, by row.

    A batch with the first tombstone that is seen, or the marker of a transaction that is gone, gets its delete horizon.
    """
    keeps = retention.keeps(group, records)
    kept = _sums(group, keeps)
    tombstones = _sums(group, keeps & ~_is_valid(records.column("value")))
    gets_horizon = ((tombstones > 0) | gone_txn) & (group.delete_horizon_ms < 0)
    is_rewritten = (kept > 0) & ((kept < group.count) | gets_horizon | group.are_messages)
    horizons = np.where(gets_horizon, retention.now_ms + retention.delete_retention_ms, group.delete_horizon_ms)
    records = records.filter(pa.array(keeps & per_record(group, is_rewritten)))
    counts = np.where(is_rewritten, kept, 0)
    return kept, _rewritten(group, records, counts, horizons)


def _rewritten(group: Batches, records: pa.RecordBatch, counts: Any, horizons: Any) -> Iterator[tuple[int, bytes]]:
    """The batches with these numbers of `records`, by row. Offsets, producer, sequence and codec are those of the old ones.

    Messages of magic 0 and 1 become batches of magic 2, whose offsets are those of the records that are left.
    """
    start = 0
    offsets = records.column("offset")
    for row in np.flatnonzero(counts).tolist():
        old, count = group.header[row], int(counts[row])
        attributes = int(old["attributes"])
        new = NewBatch(
            offsets[start].as_py() if group.are_messages else int(old["base_offset"]),
            codec=Codec(attributes & CODEC),
            append_time_ms=int(old["max_timestamp"]) if attributes & APPEND_TIME else None,
            partition_leader_epoch=int(old["partition_leader_epoch"]),
            producer_id=int(old["producer_id"]),
            producer_epoch=int(old["producer_epoch"]),
            base_sequence=int(old["base_sequence"]),
            is_transactional=bool(attributes & TRANSACTIONAL),
            is_control=bool(attributes & CONTROL),
            delete_horizon_ms=int(horizons[row]) if horizons[row] >= 0 else None,
        )
        last_offset = None if group.are_messages else int(group.last_offset[row])
        yield row, write_batch(new, records.slice(start, count), last_offset=last_offset)
        start += count


def _assembled(chunk: Chunk, kept: Any, made: dict[int, bytes]) -> tuple[bytes, list[BatchFacts]]:
    b, view = chunk.batches, memoryview(chunk.buffer)
    parts: list[bytes | memoryview] = []
    facts: list[BatchFacts] = []
    rows = np.flatnonzero(kept)
    stays = np.union1d(rows, np.fromiter(made, np.int64, len(made)))
    columns = (stays, b.positions[stays], b.end[stays], b.last_offset[stays], b.max_timestamp[stays])
    for row, start, end, last_offset, max_timestamp in zip(*(column.tolist() for column in columns), strict=True):
        data = made.get(row)
        if data is not None:
            header = read_batch_header(data)
            last_offset, max_timestamp = header.last_offset, header.max_timestamp
        parts.append(view[start:end] if data is None else data)
        facts.append(BatchFacts(last_offset, max_timestamp, len(parts[-1])))
    return b"".join(parts), facts


def _is_valid(column: Any) -> Any:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _sums(batches: Batches, mask: Any) -> Any:
    """How many records of each batch the mask selects."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])
    ends = np.cumsum(batches.count, dtype=np.int64)
    return sums[ends] - sums[ends - batches.count]
