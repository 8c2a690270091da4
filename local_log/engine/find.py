"""Finds a batch by offset: reads headers from the index's position on, as Kafka does (FileRecords.searchForOffsetFromPosition).

A lookup reads only a few headers, so it reads them one by one: building columns would cost more.
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from local_log.errors import Corrupt, placed
from local_log.formats.header_layout import (
    BATCH_RANGE,
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

_tuple = tuple.__new__  # as the named tuple's constructor, in a third of its time
_WINDOW_BYTES = 2048
_LAST_OFFSET_DELTA = Struct(">i")
_PADDING = bytes(LAST_OFFSET_DELTA_AT + _LAST_OFFSET_DELTA.size)


class Found(NamedTuple):
    """A batch's place: its base offset, its position in the log file, and its size in bytes."""

    offset: int
    position: int
    size: int


def find_batch(read: Callable[[int, int], Buffer], file: str, offset: int, position: int, end: int) -> Found | None:
    """The batch that contains `offset`, else the first one after it; None if there is none before byte `end`.

    `read(start, end)` returns bytes of `file`; a batch starts at `position`. Raises Corrupt with the file and the position.
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
                break  # the file was truncated meanwhile
            start, at, window = position, 0, bytes(read_now) + _PADDING  # the header may be the file's last bytes
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
            if last >= offset:
                return found
        position += found.size
    return before if before is not None and last >= offset else None


def batch_with(head: Buffer, offset: int, position: int, end: int) -> Found | None:
    """The record batch at `position`, if it contains `offset` and ends at or before byte `end`; `head` has its first bytes."""
    if len(head) < BATCH_RANGE.size:
        return None
    base, size, magic, delta = BATCH_RANGE.unpack_from(head)
    is_it = base <= offset <= base + delta and magic >= MAGIC and MESSAGE_SIZE_MIN[0] <= size <= end - position - LOG_OVERHEAD
    return _tuple(Found, (base, position, LOG_OVERHEAD + size)) if is_it else None


def _first_inner(read: Callable[[int, int], Buffer], file: str, wrapper: Found) -> int:
    """The first offset in a compressed message; the wrapper has only the last one."""
    with placed(file, wrapper.position):
        return first_offset(read(wrapper.position, wrapper.position + wrapper.size), 0, wrapper.size)
