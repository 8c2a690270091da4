"""Decodes the messages of magic 0 and 1 that `message_set` has scanned to Arrow columns."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32
from local_log.formats.header_layout import MAGIC_AT, MESSAGE_CRC_AT
from local_log.formats.kernels.constants import DONE
from local_log.formats.messages.magic_0_1 import held_set, read_message
from local_log.formats.messages.message_set import PROBLEM
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs
from local_log.formats.record_batch.columns import Binary, grouped, joined, no_headers, per_record, record_batch
from local_log.formats.record_batch.projection import EVERYTHING, Projection


def decode_messages(buffer: Buffer, batches: Batches, want: Projection = EVERYTHING) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """As `columns.decode`, for batches of `scan_messages`. It also checks the checksums of inner messages."""
    check_crcs(buffer, batches)
    if batches.codec.any():
        for group, sets in grouped(_message_sets(buffer, batches), batches):
            yield group, _decode(*joined(sets), group, want)
    else:
        yield batches, _decode(np.frombuffer(buffer, np.uint8), batches.positions, batches.end, batches, want)


def _message_sets(buffer: Buffer, batches: Batches) -> Iterator[Buffer]:
    """The message set of each batch: a wrapper's inner messages, else the message itself."""
    view = memoryview(buffer)
    columns = (batches.codec, batches.positions, batches.end)
    for codec, start, end in zip(*(column.tolist() for column in columns), strict=True):
        try:
            yield view[start:end] if codec == Codec.none else held_set(read_message(buffer, start)[0])
        except Corrupt as e:
            raise Corrupt(e.problem, position=start) from e


def _decode(data: Any, starts: Any, ends: Any, batches: Batches, want: Projection) -> pa.RecordBatch:
    """Decodes message sets in `data`."""
    from local_log.formats.kernels import messages as kernels

    counts = batches.count.astype(np.uint64)
    rows, size = int(counts.sum()), int((ends - starts).sum())
    offsets, timestamps = np.empty(rows, np.int64), np.empty(rows, np.int64)
    messages_at, messages_end = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
    keys, values = Binary.make(rows, size, wanted=want.key), Binary.make(rows, size, wanted=want.value)
    status, failed, key_bytes, value_bytes, null_keys, null_values = kernels.decode_messages(
        data, starts, ends, counts, np.ascontiguousarray(batches.base_offset),
        batches.timestamp_type == TimestampType.LOG_APPEND_TIME, np.ascontiguousarray(batches.max_timestamp),
        want.key, want.value,
        offsets, timestamps, keys.ends, keys.data, keys.valid, values.ends, values.data, values.valid,
        messages_at, messages_end,
    )  # fmt: skip
    if status != DONE:
        raise Corrupt(PROBLEM[status], position=int(batches.positions[failed]))
    _check_inner_crcs(data, messages_at, messages_end, offsets, batches)
    columns: dict[str, Any] = {}
    if want.key:
        columns["key"] = keys.array(rows, key_bytes, null_keys)
    if want.value:
        columns["value"] = values.array(rows, value_bytes, null_values)
    if want.headers:
        columns["headers"] = no_headers(rows)
    return record_batch(offsets, timestamps, columns, batches, want)


def _check_inner_crcs(data: Any, starts: Any, ends: Any, offsets: Any, batches: Batches) -> None:
    """Checks the inner checksums: the wrapper's covers only what the producer sent, which may have been damaged before."""
    inner = np.flatnonzero(per_record(batches, batches.codec))
    stated = data[starts[inner][:, None] + np.arange(MESSAGE_CRC_AT, MAGIC_AT, dtype=np.uint64)].view(">u4")[:, 0]
    view = memoryview(data)
    for row, start, end, crc in zip(*(c.tolist() for c in (inner, starts[inner], ends[inner], stated)), strict=True):
        if crc32(view[start + MAGIC_AT : end]) != crc:
            batch = int(np.searchsorted(np.cumsum(batches.count), row, side="right"))
            raise Corrupt(
                f"the inner message of offset {offsets[row]} does not have the CRC-32 {crc:08x} that it states",
                position=int(batches.positions[batch]),
            )
