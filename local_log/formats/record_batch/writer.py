"""Writes record batches of magic 2 with the same bytes as Kafka: columns in, one batch out.

Compressed batches have the same bytes as far as the compression libraries agree, see `compression`.
Source: Kafka's MemoryRecordsBuilder, DefaultRecordBatch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Invalid
from local_log.formats.checksum import FEW_BYTES, crc32c, crc32c_for, crc32c_of_few
from local_log.formats.compression import compress
from local_log.formats.header_layout import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    BATCH_SIZE_MIN,
    CODEC,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    LOG_OVERHEAD,
    TRANSACTIONAL,
)
from local_log.formats.header_rows import BATCH_HEADER
from local_log.formats.kernels import constants
from local_log.formats.primitives import INT32_MAX, Buffer
from local_log.formats.record import NO_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, Codec
from local_log.formats.record_batch.columns import HEADERS_TYPE
from local_log.formats.record_batch.header import BatchHeader

NO_PRODUCER = -1

RECORDS = pa.schema(
    [("offset", pa.int64()), ("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS_TYPE)]
)
"""The columns that a batch is written from, as `columns.decode` returns them."""

PROBLEM = {
    constants.OFFSET_NOT_GROWN: "an offset is not above the one before it",
    constants.OFFSET_TOO_FAR: "an offset is not in the 2^31 from the batch's base offset on",
    constants.BAD_TIMESTAMP: "a timestamp is negative and not -1, which stands for none",
}
_HEADER_ROOM = bytes(BATCH_HEADER_BYTES)
_NO_BYTES = np.empty(0, np.uint8)
_NO_ENDS = np.zeros(1, np.int32)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """The header values of a new batch.

    `level` is the codec's, None for Kafka's default. With `append_time_ms` the batch has LogAppendTime: readers use this time for
    every record, though each record keeps its own. `delete_horizon_ms` is when its tombstones and markers may be dropped.
    """

    base_offset: int
    codec: Codec = Codec.none
    level: int | None = None
    append_time_ms: int | None = None
    partition_leader_epoch: int = NO_EPOCH
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon_ms: int | None = None

    @property
    def attributes(self) -> int:
        """The attributes field of the header."""
        return (
            int(self.codec)
            | (0 if self.append_time_ms is None else APPEND_TIME)
            | (TRANSACTIONAL if self.is_transactional else 0)
            | (CONTROL if self.is_control else 0)
            | (0 if self.delete_horizon_ms is None else DELETE_HORIZON)
        )


def write_batch(new: NewBatch, records: pa.RecordBatch, *, last_offset: int | None = None) -> bytes:
    """The bytes of a batch with `records`, whose schema is RECORDS; empty if there are no records.

    Offsets are absolute. A compacted batch keeps its original `last_offset`. Raises Invalid for what Kafka's builder rejects:
    offsets that do not increase, negative timestamps, a transaction without a producer.
    """
    check(new)
    if not records.num_rows:
        return b""
    from local_log.formats.kernels import encode

    offsets, timestamps = int64_of(records.column("offset")), int64_of(records.column("timestamp"))
    base_timestamp = int(timestamps[0]) if new.delete_horizon_ms is None else new.delete_horizon_ms
    buffers, room = _buffers(records)
    out = np.empty(BATCH_HEADER_BYTES + room, np.uint8)
    encode_records: Any = encode.encode_records  # a kernel's type says nothing of unpacked arguments
    status, row, end, latest = encode_records(
        new.base_offset, base_timestamp, offsets, timestamps, *buffers, out, BATCH_HEADER_BYTES
    )
    if status:
        raise Invalid(f"record {row} of the batch from offset {new.base_offset} on: {PROBLEM[status]}")
    section = out.data[BATCH_HEADER_BYTES:end]
    header = BatchHeader(
        base_offset=new.base_offset,
        partition_leader_epoch=new.partition_leader_epoch,
        attributes=new.attributes,
        last_offset_delta=(int(offsets[-1]) if last_offset is None else last_offset) - new.base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=latest if new.append_time_ms is None else new.append_time_ms,
        producer_id=new.producer_id,
        producer_epoch=new.producer_epoch,
        base_sequence=new.base_sequence,
        records_count=records.num_rows,
    )
    return joined(header, section if new.codec == Codec.none else compress(new.codec, section, new.level))


def rewrite_batches(headers: Any, counts: Any, records: pa.RecordBatch) -> tuple[Buffer, Any]:
    """Batches with these `headers`, rows of BATCH_HEADER, and numbers of `records`, at least one for each; and where each ends.

    Sizes, checksums and counts of the headers are computed; so are the base timestamp, unless it is a delete horizon, and the
    greatest timestamp, unless it is that of the append. Raises Invalid as `write_batch`.
    """
    from local_log.formats.kernels import encode

    offsets, timestamps = int64_of(records.column("offset")), int64_of(records.column("timestamp"))
    firsts = np.cumsum(counts) - counts
    has_horizon = (headers["attributes"] & DELETE_HORIZON) != 0
    base_timestamps = np.where(has_horizon, headers["base_timestamp"], timestamps[firsts])
    base_offsets = np.ascontiguousarray(headers["base_offset"], np.int64)
    buffers, room = _buffers(records)
    out = np.empty(len(counts) * BATCH_HEADER_BYTES + room, np.uint8)
    ends, latest = np.empty(len(counts), np.int64), np.empty(len(counts), np.int64)
    encode_batches: Any = encode.encode_batches
    status, row = encode_batches(
        base_offsets, base_timestamps, counts, BATCH_HEADER_BYTES, offsets, timestamps, *buffers, out, ends, latest
    )
    if status:
        raise Invalid(f"record {row} of the batches from offset {base_offsets[0]} on: {PROBLEM[status]}")
    made = headers.astype(BATCH_HEADER)
    made["base_timestamp"], made["records_count"] = base_timestamps, counts
    made["max_timestamp"] = np.where(headers["attributes"] & APPEND_TIME, headers["max_timestamp"], latest)
    codecs = headers["attributes"] & CODEC
    if codecs.any():
        out, ends = _compressed(out, ends, codecs)
    return _sealed(out, ends, made), ends


def _compressed(out: Any, ends: Any, codecs: Any) -> tuple[Any, Any]:
    """The batches with compressed sections, and where each ends; the headers are not written yet."""
    view = out.data
    parts: list[Buffer] = []
    for codec, start, end in zip(codecs.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        section = view[start + BATCH_HEADER_BYTES : end]
        parts += [_HEADER_ROOM, section if codec == Codec.none else compress(Codec(codec), section)]
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    return np.frombuffer(bytearray().join(parts), np.uint8), np.cumsum(sizes)[1::2]


def _sealed(out: Any, ends: Any, headers: Any) -> Buffer:
    """The batches with their headers, whose sizes and checksums this computes."""
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    headers["batch_length"] = ends - starts - LOG_OVERHEAD
    at = starts[:, None] + np.arange(BATCH_HEADER_BYTES)
    out[at] = headers.view(np.uint8).reshape(-1, BATCH_HEADER_BYTES)
    view = memoryview(out)
    crc = crc32c_of_few if ends[-1] < FEW_BYTES * len(ends) else crc32c_for(int(ends[-1]))
    crcs = [crc(view[start + ATTRIBUTES_AT : end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    out[at[:, CRC_AT:ATTRIBUTES_AT]] = np.array(crcs, ">u4").view(np.uint8).reshape(-1, ATTRIBUTES_AT - CRC_AT)
    return view


def _buffers(records: pa.RecordBatch) -> tuple[list[Any], int]:
    """The buffers of keys, values and headers for the kernels, and the number of bytes that the records have at most."""
    keys, values, headers = records.column("key"), records.column("value"), records.column("headers")
    pairs = headers.values
    names, data = pairs.field(0), pairs.field(1)
    buffers = [*binary_buffers(keys), *binary_buffers(values), _ends(headers), *binary_buffers(names)[:2], *binary_buffers(data)]
    room = (
        bytes_of(keys) + bytes_of(values) + bytes_of(names) + bytes_of(data)
        + records.num_rows * constants.RECORD_OVERHEAD_MAX + len(pairs) * constants.HEADER_OVERHEAD_MAX
    )  # fmt: skip
    return buffers, room


def write_emptied(old: BatchHeader) -> bytes:
    """The batch that compaction leaves after it removes all records: a header with the producer's sequence numbers."""
    kept = old.attributes & (TRANSACTIONAL | CONTROL | APPEND_TIME)
    return joined(old._replace(attributes=kept, base_timestamp=NO_TIMESTAMP, records_count=0), b"")


def joined(header: BatchHeader, section: Buffer) -> bytes:
    """The whole batch, with the length and the checksum of this header and section. Raises Invalid if it is too large."""
    length = BATCH_SIZE_MIN + len(section)
    if length > INT32_MAX:
        raise Invalid(f"a batch of {length} bytes; it may have up to {INT32_MAX}")
    unsealed = header._replace(batch_length=length, crc=0).pack()
    crc = crc32c(section, crc32c(unsealed[ATTRIBUTES_AT:]))
    return b"".join((unsealed[:CRC_AT], crc.to_bytes(4, "big"), unsealed[ATTRIBUTES_AT:], section))


def check(new: NewBatch) -> None:
    """Raises Invalid for what Kafka's builder rejects of a producer."""
    if new.producer_id == NO_PRODUCER:
        if new.is_transactional:
            raise Invalid("a transactional batch needs a producer id")
        return
    if new.producer_epoch == NO_EPOCH:
        raise Invalid(f"a batch of producer {new.producer_id} needs a producer epoch")
    if new.base_sequence < 0 and not new.is_control:
        raise Invalid(f"a batch of producer {new.producer_id} needs a sequence number, found {new.base_sequence}")


def int64_of(column: Any) -> Any:
    """The values of an Arrow column of int64."""
    return column.to_numpy()


def _ends(column: Any) -> Any:
    """The offsets buffer of an Arrow column of binary or lists, one longer than its rows."""
    ends = column.buffers()[1]
    return _NO_ENDS if not ends else np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]


def binary_buffers(column: Any) -> tuple[Any, Any, Any, int]:
    """Offsets, bytes, validity bits (empty if there are no nulls) and the bit index of the first row."""
    bits, _, data = column.buffers()
    valid = _NO_BYTES if not bits else np.frombuffer(bits, np.uint8)
    return _ends(column), np.frombuffer(data, np.uint8) if data else _NO_BYTES, valid, column.offset


def bytes_of(column: Any) -> int:
    """The number of bytes of all values of an Arrow column of binary."""
    ends = _ends(column)
    return int(ends[-1]) - int(ends[0])
