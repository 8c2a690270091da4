"""Messages of magic 0 and 1, as Kafka before 0.11 wrote them: told from damage, not read.

    at  bytes  field
     0      8  offset
     8      4  message size, counted from byte 12
    12      4  CRC-32 (not CRC-32C) of everything from byte 16 on
    16      1  magic, 0 or 1
    17      …  attributes, with magic 1 a timestamp, key and value

Everything is big-endian. Source: Kafka's LegacyRecord.
"""

import zlib
from struct import Struct

from local_log.formats.primitives import Buffer

_HEADER = Struct(">qiIb")
_SIZE_OVERHEAD = 12
_CRC_FROM = 16
_SIZE_MIN = 14


def old_message_end(buffer: Buffer, pos: int) -> int | None:
    """Where a message at `pos` ends, perhaps behind the buffer's end; None for what cannot be one."""
    if len(buffer) - pos < _HEADER.size:
        return None
    _, size, _, magic = _HEADER.unpack_from(buffer, pos)
    return pos + _SIZE_OVERHEAD + size if magic in (0, 1) and size >= _SIZE_MIN else None


def is_old_message(buffer: Buffer, pos: int, end: int) -> bool:
    """Whether the bytes `[pos, end)` have the CRC-32 that such a message states, so that they are one and whole."""
    _, _, crc, _ = _HEADER.unpack_from(buffer, pos)
    return zlib.crc32(memoryview(buffer)[pos + _CRC_FROM : end]) == int(crc)
