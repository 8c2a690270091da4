"""The positions of the fields in record batches and messages, from their first byte. All code that reads headers uses these.

A record batch, magic 2 (KIP-98):

    at  bytes  field
     0      8  base offset
     8      4  batch length, counted from byte 12
    12      4  partition leader epoch
    16      1  magic, 2
    17      4  CRC-32C of everything from byte 21 on
    21      2  attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is a delete horizon
    23      4  last offset delta
    27      8  base timestamp
    35      8  max timestamp
    43      8  producer id
    51      2  producer epoch
    53      4  base sequence
    57      4  number of records
    61      …  records, compressed together when the codec says so

A message, magic 0 and 1, which Kafka wrote before 0.11 (KIP-31, KIP-32):

    at  bytes  field
     0      8  offset
     8      4  message size, counted from byte 12
    12      4  CRC-32 (not CRC-32C) of everything from byte 16 on
    16      1  magic, 0 or 1
    17      1  attributes: bits 0-2 codec (never zstd), 3 timestamp type (magic 1)
    18      8  timestamp in ms, with magic 1 only
     …      4  key length, -1 for null, then the key
     …      4  value length, -1 for null, then the value

Everything is big-endian. Offset, size and magic lie in the same place in both. Source: Kafka's Records, DefaultRecordBatch,
LegacyRecord.
"""

from struct import Struct
from typing import Final

LENGTH_AT: Final = 8
LOG_OVERHEAD: Final = 12
"""Bytes of offset and size, which the size does not include."""
MAGIC_AT: Final = 16

OFFSET_LENGTH: Final = Struct(">qi")
OFFSET_LENGTH_MAGIC: Final = Struct(">qi4xb")

CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
"""Bits of the attributes. Kafka ignores other bits, and clears them when it writes the attributes."""

# A record batch

MAGIC: Final = 2
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
"""The start of the bytes that the checksum covers."""
LAST_OFFSET_DELTA_AT: Final = 23
BATCH_HEADER_BYTES: Final = 61
BATCH_SIZE_MIN: Final = BATCH_HEADER_BYTES - LOG_OVERHEAD
"""The length field of a batch without records."""

BATCH_FIELDS: Final = Struct(">qiibIHiqqqhii")
BATCH_RANGE: Final = Struct(">qi4xb6xi")
"""Base offset, length, magic, last offset delta: the fields that a look-up needs."""
APPEND_FIELDS: Final = Struct(">qiibIhi8xqqhi")
"""The fields that the fast path of an append needs."""

# A message

MESSAGE_CRC_AT: Final = 12
MESSAGE_ATTRIBUTES_AT: Final = 17
MESSAGE_TIMESTAMP_AT: Final = 18
MESSAGE_SIZE_MIN: Final = (14, 22)
"""The least value of the size field for magic 0 and magic 1: a message without key and value."""
MESSAGE_BYTES_MIN: Final = LOG_OVERHEAD + MESSAGE_SIZE_MIN[0]

MESSAGE_FIELDS: Final = Struct(">qiIbB")
