"""The integers of Kafka's files: big-endian, zigzag varints; and the bounds check that every reader starts with."""

from local_log.errors import Corrupt

Buffer = bytes | bytearray | memoryview

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1


def need(buffer: Buffer, pos: int, size: int, what: str) -> None:
    """Raises Corrupt at `pos` unless the buffer has `size` more bytes; `what` names the field."""
    left = len(buffer) - pos
    if left < size:
        raise Corrupt(f"{what} takes {size} bytes, {left} are left", position=pos)


def read_uvarint(buffer: Buffer, pos: int, what: str, bytes_max: int = 5) -> tuple[int, int]:
    """An unsigned varint of at most `bytes_max` bytes and the position after it."""
    value = 0
    for i in range(bytes_max):
        need(buffer, pos + i, 1, what)
        byte = buffer[pos + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, pos + i + 1
    raise Corrupt(f"{what}: a varint of more than {bytes_max} bytes", position=pos)


def read_varint(buffer: Buffer, pos: int, what: str) -> tuple[int, int]:
    """A zigzag varint of at most 5 bytes and the position after it."""
    value, pos = read_uvarint(buffer, pos, what)
    return (value >> 1) ^ -(value & 1), pos


def read_varlong(buffer: Buffer, pos: int, what: str) -> tuple[int, int]:
    """A zigzag varint of at most 10 bytes and the position after it."""
    value, pos = read_uvarint(buffer, pos, what, 10)
    return (value >> 1) ^ -(value & 1), pos


def write_uvarint(out: bytearray, value: int) -> None:
    """Appends an unsigned varint. A zigzag varint of a number from 0 on is that of its double."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def next_sequence(sequence: int, by: int) -> int:
    """A producer's sequence number `by` records later; 2^31-1 is followed by 0 (DefaultRecordBatch.incrementSequence).

    It computes as Java does, so that damaged (negative) numbers give the same result.
    """
    wraps = sequence > _int32(INT32_MAX - by)
    return _int32(sequence + by - (1 << 31 if wraps else 0))


def previous_sequence(sequence: int, by: int) -> int:
    """A producer's sequence number `by` records earlier; 0 is preceded by 2^31-1 (DefaultRecordBatch.decrementSequence)."""
    wraps = sequence < by
    return _int32(sequence - by + (1 << 31 if wraps else 0))


def _int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
