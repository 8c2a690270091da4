"""A batch found by offset: the log file read header by header from where the index says, as Kafka reads it (FileRecords).

A look-up is a few headers, so they are taken one by one: columns would cost more than the headers.
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from local_log.errors import Corrupt, placed
from local_log.formats.header_layout import (
    CODEC,
    LAST_OFFSET_DELTA_AT,
    LOG_OVERHEAD,
    MAGIC,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_SIZE_MIN,
    OFFSET_LENGTH_MAGIC,
)
from local_log.formats.messages.magic_0_1 import first_offset
from local_log.formats.primitives import Buffer

_WINDOW_BYTES = 2048
_LAST_OFFSET_DELTA = Struct(">i")
_PADDING = bytes(LAST_OFFSET_DELTA_AT + _LAST_OFFSET_DELTA.size)


class Found(NamedTuple):
    """Where a batch lies: its base offset, its byte in the log file, its bytes."""

    offset: int
    position: int
    size: int


def find_batch(read: Callable[[int, int], Buffer], file: str, offset: int, position: int, end: int) -> Found | None:
    """The batch that holds `offset`, else the first that starts above it; None where there is none before byte `end`.

    `read(start, end)` gives bytes of `file`; a batch starts at `position`. Raises Corrupt, placed in the file.
    """
    before: Found | None = None
    last = -1
    start = window_end = position
    window = b""
    while position + OFFSET_LENGTH_MAGIC.size < end:
        at = position - start
        if not window or (position + len(_PADDING) > window_end and window_end < end):
            read_now = read(position, min(position + _WINDOW_BYTES, end))
            if len(read_now) < OFFSET_LENGTH_MAGIC.size:
                break  # the file has become shorter meanwhile
            start, at, window = position, 0, bytes(read_now) + _PADDING  # a header may end with the file
            window_end = position + len(read_now)
        base, size, magic = OFFSET_LENGTH_MAGIC.unpack_from(window, at)
        if size < MESSAGE_SIZE_MIN[0]:
            raise Corrupt("a batch's size is below that of the smallest message", file=file, position=position)
        if position + LOG_OVERHEAD + size > end:
            break
        found = Found(base, position, LOG_OVERHEAD + size)
        if magic < MAGIC and window[at + MESSAGE_ATTRIBUTES_AT] & CODEC:
            found = found._replace(offset=_first_inner(read, file, found))
        if found.offset == offset:
            return found
        if found.offset > offset:
            return before if before is not None and last >= offset else found
        before, last = found, base
        if magic >= MAGIC:
            last += _LAST_OFFSET_DELTA.unpack_from(window, at + LAST_OFFSET_DELTA_AT)[0]
        position += found.size
    return before if before is not None and last >= offset else None


def _first_inner(read: Callable[[int, int], Buffer], file: str, wrapper: Found) -> int:
    """The first offset in a compressed message, which itself says only its last."""
    with placed(file, wrapper.position):
        return first_offset(read(wrapper.position, wrapper.position + wrapper.size), 0, wrapper.size)
