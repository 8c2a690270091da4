"""Where the batches of an answer are, for compiled code: in which file or window, from where to where.

Who changes it has to save `kernel`, too: the compiled code is kept until that file is another.
"""

from typing import Any, Final

import numpy as np

from local_log.checked_files import SEAL_BYTES
from tiering.endpoint.fetch_loop import libc
from tiering.endpoint.fetch_loop.big_endian import int64, uint32
from tiering.endpoint.fetch_loop.compiled import njit
from tiering.endpoint.fetch_loop.tables import (
    CHANGED,
    FILES_MAX,
    IN_MEMORY,
    MAPPED_MAX,
    NO_FILE,
    SEAL_AT,
    STRUCTS_MAX,
    WINDOWS_MAX,
)

UNKNOWN: Final = -1

_0, _1, _12 = (np.uint64(n) for n in (0, 1, 12))
_LENGTH_AT, _MAGIC_AT, _LAST_OFFSET_DELTA_AT, _HEADER_BYTES = (np.uint64(n) for n in (8, 16, 23, 27))
_SEAL_AT, _SEAL_BYTES = np.uint64(SEAL_AT), np.uint64(SEAL_BYTES)
_STATX_SIZE, _STATX_MODIFIED, _EMPTY = (np.uint64(n) for n in (5, 14, STRUCTS_MAX - 1))
"""Where in `Tables.structs` something is."""


@njit(boundscheck=False)
def file_of(log: Any, offset: Any, files: Any, batches: Any) -> Any:
    """The file whose batches are known and have an offset, UNKNOWN if there is none."""
    for number in range(FILES_MAX):
        file, of_file = files[np.uint64(number)], batches[np.uint64(number)]
        if file.log == log and file.count > 0 and file.start <= offset < of_file[np.uint64(file.count - 1)].next:
            return number
    return UNKNOWN


@njit(boundscheck=False)
def first_after(of_file: Any, count: Any, offset: Any) -> Any:
    """The first batch or span that ends after an offset."""
    low, high = _0, count
    while low < high:
        middle = (low + high) >> _1
        if of_file[middle].next <= offset:
            low = middle + _1
        else:
            high = middle
    return low


@njit(boundscheck=False)
def batches_from(of_file: Any, first: Any, count: Any, request: Any) -> Any:
    """How many bytes the answer has from a batch on, and its last batch. 0 bytes if it depends on a batch that is unknown."""
    at, size = first, np.int64(of_file[first].size)
    while size < request.max_bytes and of_file[at].next < request.end:
        following = at + _1
        if following >= count or of_file[following].position != of_file[at].position + np.int64(of_file[at].size):
            return np.int64(0), at
        if size + np.int64(of_file[following].size) > request.max_bytes:
            break
        size, at = size + np.int64(of_file[following].size), following
    return size, at


@njit(boundscheck=False)
def _batch_at(position: Any, file: Any, header: Any) -> Any:
    """The size of the batch at a position of a file, and the offset after it; 0 if there is none of magic 2."""
    got = libc.pread(np.int32(file.descriptor), header.ctypes.data, _HEADER_BYTES, position)
    if got != np.int64(_HEADER_BYTES) or header[_MAGIC_AT] != 2:
        return np.int64(0), np.int64(0)
    following = int64(header, _0) + np.int64(uint32(header, _LAST_OFFSET_DELTA_AT)) + 1
    return np.int64(uint32(header, _LENGTH_AT) + _12), following


@njit(boundscheck=False)
def _start_in(span: Any, offset: Any, file: Any, header: Any) -> Any:
    """Where the batch of an offset, or the first one, begins in a span; not before its end if it is not found."""
    position = span.position
    if file.descriptor == IN_MEMORY:
        return position
    while span.first < offset and position < span.end:
        size, following = _batch_at(position, file, header)
        if size == 0:
            return span.end
        if following > offset:
            return position
        position += size
    return position


@njit(boundscheck=False)
def _end_in(span: Any, limit: Any, file: Any, header: Any) -> Any:
    """The end of the batches of a span up to `limit`, and where the last one of them begins. CHANGED if it is not found."""
    position, last = span.position, np.int64(CHANGED)
    while file.descriptor != IN_MEMORY and position < span.end:
        size, _ = _batch_at(position, file, header)
        if size == 0:
            return np.int64(CHANGED), last
        if position + size > limit:
            break
        position, last = position + size, position
    return position, last


@njit(boundscheck=False)
def _mapped_file_of(log: Any, offset: Any, files: Any, spans: Any) -> Any:
    for number in range(FILES_MAX + WINDOWS_MAX):
        file, of_file = files[np.uint64(number)], spans[np.uint64(number)]
        if file.log == log and file.spans > 0 and file.start <= offset < of_file[np.uint64(file.spans - 1)].next:
            return number
    return UNKNOWN


@njit(boundscheck=False)
def _is_as_checked(file: Any, structs: Any) -> Any:
    """Whether a file has the size and the time that it had when its spans were checked. A window stays as it is."""
    if file.descriptor == IN_MEMORY:
        return True
    path, found = structs[_EMPTY:].ctypes.data, structs.ctypes.data
    if libc.statx(np.int32(file.descriptor), path, libc.EMPTY_PATH, libc.SIZE_AND_MODIFIED, found) != 0:
        return False
    modified_ns = structs[_STATX_MODIFIED] * 1_000_000_000 + (structs[_STATX_MODIFIED + _1] & np.int64(0xFFFFFFFF))
    return structs[_STATX_SIZE] == file.size and modified_ns == file.modified_ns


@njit(boundscheck=False)
def mapped_batches(request: Any, offset: Any, files: Any, spans: Any, header: Any, structs: Any) -> Any:
    """The file that has the batches of a larger answer: from where to where, and where the last one begins. NO_FILE for none."""
    none = np.int64(NO_FILE), np.int64(0), np.int64(0), np.int64(0)
    number = _mapped_file_of(request.log, offset, files, spans)
    if offset < request.start or number == UNKNOWN or not _is_as_checked(files[np.uint64(number)], structs):
        return none
    file, of_file = files[np.uint64(number)], spans[np.uint64(number)]
    count = np.uint64(file.spans)
    at = first_after(of_file, count, offset)
    one = of_file[at]
    start = _start_in(one, offset, file, header)
    limit = start + request.max_bytes
    if one.first > offset or start >= one.end or one.end > limit or one.next > request.end:
        return none
    end, last, following = one.end, one.last, one.next
    while following < request.end:
        at += _1
        if at >= count or of_file[at].position != end or of_file[at].next > request.end:
            return none
        one = of_file[at]
        if one.end > limit:
            cut, before = _end_in(one, limit, file, header)
            if cut == CHANGED:
                return none
            if cut > end:
                end, last = cut, before
            break
        end, last, following = one.end, one.last, one.next
    if end - start > MAPPED_MAX or end - start < request.min_bytes:
        return none
    return np.int64(number), start, end, last


@njit(boundscheck=False)
def reads_seal(file: Any, last: Any, header: Any) -> Any:
    """Reads the seal of an answer's last batch, to be looked at again when it is sent."""
    if file.descriptor == IN_MEMORY:
        return True
    return libc.pread(np.int32(file.descriptor), header.ctypes.data + _SEAL_AT, _SEAL_BYTES, last) == np.int64(_SEAL_BYTES)


@njit(boundscheck=False)
def is_sealed(file: Any, last: Any, header: Any) -> Any:
    """Whether the last batch of an answer is the one whose seal was read."""
    if file.descriptor == IN_MEMORY:
        return True
    got = libc.pread(np.int32(file.descriptor), header.ctypes.data, _SEAL_BYTES, last)
    return got == np.int64(_SEAL_BYTES) and libc.memcmp(header.ctypes.data, header.ctypes.data + _SEAL_AT, _SEAL_BYTES) == 0
