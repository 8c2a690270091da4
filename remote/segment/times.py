"""The least timestamps of a segment, which Kafka's files do not have. A read up to a time needs them to know where to end.

Kafka's time index has the greatest timestamp up to an offset, so it gives the offset where a read from a time starts. The
least-time index has the same format: an entry (T, O) says that no record from offset O on is earlier than T, and both columns
grow. A read of a time range needs only the offsets between the two, also if records are out of order.
"""

from contextlib import suppress
from typing import Any, Final

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.chunks import Chunk
from local_log.formats.compression import Inflater
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.indexes.time import ENTRY, TimeIndex
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.projection import Projection

STEP_BYTES: Final = 256 << 10
"""How far apart entries are at least: 50 KB of them for 1 GB of log."""

UNKNOWN: Final = -(1 << 63)
"""The least timestamp of a batch whose records cannot be read: any."""

_START = np.zeros(1, np.uint64)
_TIMES_ONLY = Projection(key=False, value=False, headers=False)


def least_timestamps(chunk: Chunk) -> Any:
    """The least timestamp of each batch (int64, ms). Records are read only if the batch header does not give it.

    A batch with a valid checksum and malformed records is archived unchanged: its times are UNKNOWN.
    """
    batches = chunk.batches
    least = np.array(batches.max_timestamp, np.int64)
    # Of one record, and of what a broker has stamped, the greatest is the least.
    open_ = (batches.count > 1) & (batches.timestamp_type != TimestampType.LOG_APPEND_TIME)
    if open_.any():
        of = _of_messages if batches.are_messages else _of_batches
        least[open_] = of(chunk.where(open_))
    return least


def _of_batches(chunk: Chunk) -> Any:
    from local_log.formats.kernels import decode as record_kernels

    batches, data = chunk.batches, np.frombuffer(chunk.buffer, np.uint8)
    starts, ends = batches.positions + np.uint64(BATCH_HEADER_BYTES), batches.end
    least = np.full(len(batches), UNKNOWN, np.int64)
    plain = batches.codec == Codec.none
    counts, base = batches.count.astype(np.uint64), batches.base_timestamp
    if plain.any():
        found = np.empty(int(plain.sum()), np.int64)
        record_kernels.least_timestamps(data, starts[plain], ends[plain], counts[plain], base[plain], UNKNOWN, found)
        least[plain] = found
    view, inflate = memoryview(chunk.buffer), Inflater().inflate
    for row in np.flatnonzero(~plain).tolist():
        with suppress(Corrupt):
            section = np.frombuffer(inflate(int(batches.codec[row]), view[int(starts[row]) : int(ends[row])]), np.uint8)
            length = np.array([len(section)], np.uint64)
            one = slice(row, row + 1)
            record_kernels.least_timestamps(section, _START, length, counts[one], base[one], UNKNOWN, least[one])
    return least


def _of_messages(chunk: Chunk) -> Any:
    try:
        return np.concatenate(
            [_least(part, records.column("timestamp").to_numpy()) for part, records in chunk.records(_TIMES_ONLY)]
        )
    except Corrupt:
        return UNKNOWN


def _least(batches: Any, times: Any) -> Any:
    return np.minimum.reduceat(times, np.cumsum(batches.count, dtype=np.int64) - batches.count)


def write_least_time_index(base_offset: int, positions: Any, last_offsets: Any, least: Any) -> bytes:
    """The least-time index of a segment from its batches, in order: byte positions, last offsets, and least timestamps."""
    later = np.minimum.accumulate(least[::-1])[::-1]  # of a batch and all that follow it
    first_offsets = np.concatenate([[base_offset], last_offsets[:-1] + 1])
    # The first batch of every step, and of those only the first that says something new.
    rows = np.flatnonzero(np.diff(positions // STEP_BYTES, prepend=-1))
    known = later[rows]
    rows = rows[np.concatenate([[UNKNOWN], known[:-1]]) < known]
    entries = np.empty(len(rows), ENTRY)
    entries["timestamp"], entries["offset"] = later[rows], first_offsets[rows] - base_offset
    return entries.tobytes()


def passed_by(index: TimeIndex, timestamp_ms: int, end_offset: int) -> int:
    """The offset from which on no record is earlier than `timestamp_ms`, as far as a least-time index says."""
    at = int(np.searchsorted(index.timestamps, timestamp_ms, side="left"))
    return int(index.offsets[at]) if at < len(index.offsets) else end_offset
