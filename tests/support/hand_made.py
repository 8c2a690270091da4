"""Record batches of magic 2 and older messages made by hand, so that they can be wrong where a producer's never are."""

import gzip
import struct
import zlib
from collections.abc import Iterable

import crc32c
import lz4.frame
import pyarrow as pa
import snappy
import zstandard

from local_log.formats.batches import decode
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.projection import EVERYTHING, Projection

GZIP, SNAPPY, LZ4, ZSTD = Codec.gzip, Codec.snappy, Codec.lz4, Codec.zstd
APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
COMMIT_KEY, ABORT_KEY = b"\0\0\0\x01", b"\0\0\0\0"

_BEFORE_CRC, _AFTER_CRC = struct.Struct(">qiib"), struct.Struct(">HiqqqhiI")

Header = tuple[bytes, bytes | None]


def decoded(buffer: bytes, batches: Batches, want: Projection = EVERYTHING) -> pa.RecordBatch:
    """What `decode` gives, in one piece."""
    parts = [records for _, records in decode(buffer, batches, want)]
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def varint(number: int) -> bytes:
    """Zigzag, then 7 bits a byte, lowest first."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def field(data: bytes | None) -> bytes:
    """A length and that many bytes; -1 and none for None."""
    return varint(-1) if data is None else varint(len(data)) + data


def body(
    delta: int = 0,
    *,
    timestamp_delta: int = 0,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: Iterable[Header] = (),
) -> bytes:
    """A record without its length."""
    headers = tuple(headers)
    end = varint(len(headers)) + b"".join(field(name) + field(data) for name, data in headers)
    return b"\0" + varint(timestamp_delta) + varint(delta) + field(key) + field(value) + end


def record(delta: int = 0, **fields: object) -> bytes:
    """See `body`."""
    return field(body(delta, **fields))  # type: ignore[arg-type]


def compressed(codec: int, data: bytes) -> bytes:
    """`data` in the framing that producers use most; snappy is one raw block here, see `xerial`."""
    if codec == Codec.gzip:
        return gzip.compress(data, mtime=0)
    if codec == Codec.snappy:
        return bytes(snappy.compress(data))
    if codec == Codec.lz4:
        return bytes(lz4.frame.compress(data))
    if codec == Codec.zstd:
        return zstandard.ZstdCompressor(write_content_size=False).compress(data)
    return data


def xerial(*blocks: bytes) -> bytes:
    """Snappy as Java writes it."""
    parts = [b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)]
    for block in blocks:
        raw = bytes(snappy.compress(block))
        parts.append(struct.pack(">i", len(raw)) + raw)
    return b"".join(parts)


def batch(
    *records: bytes,
    base_offset: int = 0,
    attributes: int = 0,
    count: int | None = None,
    last_delta: int | None = None,
    base_timestamp: int = 1_000,
    max_timestamp: int = 1_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    epoch: int = 0,
    section: bytes | None = None,
) -> bytes:
    """A batch with a sound CRC. `section` replaces the records section as it lies in the log; codec and flags are attributes."""
    made = compressed(attributes & 0x07, b"".join(records)) if section is None else section
    count = len(records) if count is None else count
    last_delta = max(0, len(records) - 1) if last_delta is None else last_delta
    tail = _AFTER_CRC.pack(
        attributes, last_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count & 0xFFFFFFFF
    )
    tail += made
    head = _BEFORE_CRC.pack(base_offset, 9 + len(tail), epoch, 2)
    return head + struct.pack(">I", crc32c.crc32c(tail)) + tail


def message(
    magic: int,
    value: bytes | None = b"value",
    *,
    offset: int = 0,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = 1_000,
    crc_off_by: int = 0,
) -> bytes:
    """A message of magic 0 or 1, with a sound CRC-32 unless it is to be off."""
    time = struct.pack(">q", timestamp) if magic else b""
    tail = struct.pack(">bB", magic, attributes) + time + _sized(key) + _sized(value)
    return struct.pack(">qiI", offset, 4 + len(tail), zlib.crc32(tail) ^ crc_off_by) + tail


def wrapper(magic: int, codec: int, *inner: bytes, section: bytes | None = None, **fields: object) -> bytes:
    """A message that holds messages, compressed; `section` replaces what they are compressed to."""
    made = compressed(codec, b"".join(inner)) if section is None else section
    fields["attributes"] = codec | int(fields.get("attributes", 0))  # type: ignore[call-overload]
    return message(magic, made, **fields)  # type: ignore[arg-type]


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
