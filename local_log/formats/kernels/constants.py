"""What kernels return and which sizes they work with, apart from them: numba takes a third of a second to load.

Whoever calls a kernel imports it where it is called, so that a command that reads no batch does without.
"""

from typing import Final

DONE: Final = 0
TORN: Final = 1
BAD_LENGTH: Final = 2
BAD_MAGIC: Final = 3
BAD_VARINT: Final = 4
RECORD_PAST_BATCH: Final = 5
FIELD_PAST_RECORD: Final = 6
BYTES_LEFT_OVER: Final = 7
BAD_HEADER_COUNT: Final = 8
ROOM: Final = 9
"""The statuses. DONE is success, another is the first error."""

BLOCK_BYTES: Final = 64
"""Bytes are copied in blocks of this size, so a destination needs as many spare bytes at its end."""

STEP_BYTES: Final = 1 << 18
"""The decoder prefetches the bytes that the checksum reads next, this far ahead."""

OFFSET_NOT_GROWN: Final = 1
OFFSET_TOO_FAR: Final = 2
BAD_TIMESTAMP: Final = 3
"""The statuses of what encodes records."""

RECORD_OVERHEAD_MAX: Final = 36
"""Bytes of a record without key, value and headers: length 5, attributes 1, timestamp 10, offset 5, three counts of 5."""

HEADER_OVERHEAD_MAX: Final = 10

NO_KEY: Final = 1
TIME_OUT_OF_RANGE: Final = 2
TIME_OF_APPEND: Final = 3
"""What the validation of records finds wrong with one of them, by a topic's rules."""

ENTRY_WORDS: Final = 3
"""Of 8 bytes, of an entry of the offset map."""
