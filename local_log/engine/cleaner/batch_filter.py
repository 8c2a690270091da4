"""Filters a chunk's batches (MemoryRecords.filterTo): each stays as it is, is written with fewer records, is emptied or goes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.engine.cleaner.last_records import LastRecords
from local_log.formats.chunks import Chunk
from local_log.formats.header_layout import APPEND_TIME, CODEC, CONTROL, DELETE_HORIZON, MAGIC, TRANSACTIONAL
from local_log.formats.header_rows import BATCH_HEADER
from local_log.formats.offset_map import OffsetMap
from local_log.formats.primitives import Buffer
from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.columns import per_record
from local_log.formats.record_batch.header import read_batch_header
from local_log.formats.record_batch.writer import rewrite_batches, write_emptied

_NO_BYTES: Buffer = b""


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


def filter_chunk(chunk: Chunk, discardable: Any, retention: Retention) -> bytes:
    """The bytes of the batches that stay of a chunk; `discardable` is the mask of `CleanedTransactions`. Raises Corrupt."""
    b = chunk.batches
    stays = np.flatnonzero(~retention.discards(b, discardable))
    kept, first = np.zeros(len(b), np.int64), 0
    written = _Written()
    for group, records in chunk.where(stays).records():
        rows = stays[first : first + len(group)]
        first += len(group)
        kept[rows] = _filter_group(group, records, discardable[rows] & group.is_control, retention, (rows, written))
    empty = np.flatnonzero((kept == 0) & retention.keeps_empty(b))
    if b.are_messages:
        kept[empty] = b.count[empty]  # a message without records cannot be written; Kafka fails here
    else:
        for row in empty.tolist():
            made = write_emptied(read_batch_header(chunk.buffer, int(b.positions[row])))
            written.add(np.array([row]), made, np.array([len(made)]))
    return written.merged_into(chunk, kept)


def _filter_group(
    group: Batches, records: pa.RecordBatch, gone_txn: Any, retention: Retention, to: "tuple[Any, _Written]"
) -> Any:
    """The number of records that stay of each batch. Batches that are written anew go `to` these rows of what is written.

    A batch with the first tombstone that is seen, or the marker of a transaction that is gone, gets its delete horizon.
    """
    keeps = retention.keeps(group, records)
    kept = _sums(group, keeps)
    tombstones = _sums(group, keeps & ~_is_valid(records.column("value")))
    gets_horizon = ((tombstones > 0) | gone_txn) & (group.delete_horizon_ms < 0)
    is_rewritten = (kept > 0) & ((kept < group.count) | gets_horizon | group.are_messages)
    if is_rewritten.any():
        records = records.filter(pa.array(keeps & per_record(group, is_rewritten)))
        horizon = retention.now_ms + retention.delete_retention_ms
        counts = kept[is_rewritten]
        rows, written = to
        headers = _headers(group[is_rewritten], records, counts, np.where(gets_horizon[is_rewritten], horizon, NO_TIMESTAMP))
        written.add(rows[is_rewritten], *rewrite_batches(headers, counts, records))
    return kept


def _headers(old: Batches, records: pa.RecordBatch, counts: Any, new_horizons: Any) -> Any:
    """The headers with which batches are written anew: those of the old ones, with a delete horizon where there is a new one.

    Messages of magic 0 and 1 become batches of magic 2, whose offsets are those of the records that are left.
    """
    headers = old.header.astype(BATCH_HEADER.newbyteorder("="))
    gets_horizon = new_horizons != NO_TIMESTAMP
    headers["attributes"] &= CODEC | APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON
    headers["attributes"] |= np.where(gets_horizon, DELETE_HORIZON, 0).astype(np.uint16)
    headers["base_timestamp"] = np.where(gets_horizon, new_horizons, headers["base_timestamp"])
    if old.are_messages:
        offsets = records.column("offset").to_numpy()
        ends = np.cumsum(counts)
        headers["base_offset"], headers["magic"] = offsets[ends - counts], MAGIC
        headers["last_offset_delta"] = offsets[ends - 1] - headers["base_offset"]
    return headers


class _Written:
    """The batches of a chunk that are written anew, in any order."""

    def __init__(self) -> None:
        self._rows: list[Any] = []
        self._buffers: list[Buffer] = []
        self._starts: list[Any] = []
        self._ends: list[Any] = []
        self._size = 0

    def add(self, rows: Any, made: Buffer, ends: Any) -> None:
        """Adds batches that follow each other in `made`: their rows in the chunk, and where they end in it."""
        self._rows.append(rows)
        self._buffers.append(made[: ends[-1]])
        self._starts.append(self._size + np.concatenate([np.zeros(1, np.int64), ends[:-1]]))
        self._ends.append(self._size + ends)
        self._size += int(ends[-1])

    def merged_into(self, chunk: Chunk, kept: Any) -> bytes:
        """The chunk's batches that keep records, and these in the places of theirs."""
        b = chunk.batches
        from local_log.formats.kernels.encode import gather

        starts, ends = b.positions.astype(np.int64), b.end.astype(np.int64)
        are_new, made = np.zeros(len(b), np.bool_), _NO_BYTES
        if self._rows:
            rows = np.concatenate(self._rows)
            are_new[rows] = True
            starts[rows], ends[rows] = np.concatenate(self._starts), np.concatenate(self._ends)
            made = self._buffers[0] if len(self._buffers) == 1 else b"".join(self._buffers)
        stays = np.flatnonzero((kept > 0) | are_new)
        starts, ends = starts[stays], ends[stays]
        out = np.empty(int((ends - starts).sum()), np.uint8)
        gather(np.frombuffer(chunk.buffer, np.uint8), np.frombuffer(made, np.uint8), are_new[stays], starts, ends, out)
        return out.tobytes()


def _is_valid(column: Any) -> Any:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _sums(batches: Batches, mask: Any) -> Any:
    """How many records of each batch the mask selects."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])
    ends = np.cumsum(batches.count, dtype=np.int64)
    return sums[ends] - sums[ends - batches.count]
