"""The compiled loop: receives requests, finds the batches that they ask for, and sends the answers, without Python.

It knows what `tables` says, and answers only a request that it knows whole, for an offset whose batches it knows. Numbers of
elements are unsigned, as in all kernels.

An answer of up to ANSWER_MAX bytes of batches is read, looked at and sent. A larger one is sent from the mapping of its file,
where spans say which batches were checked; the file is looked at before and after.
"""

from typing import Any, Final

import numpy as np

from local_log.checked_files import SEAL_BYTES
from tiering.endpoint.fetch_loop import libc
from tiering.endpoint.fetch_loop.big_endian import int64, put_uint32, put_uvarint, uint32
from tiering.endpoint.fetch_loop.compiled import from_dtype, njit, types
from tiering.endpoint.fetch_loop.tables import (
    ANSWER,
    ANSWER_MAX,
    ANSWERS_MAX,
    BATCH,
    CHANGED,
    CHANNEL,
    CHANNELS_MAX,
    EVENT_BYTES,
    EVENT_DATA_AT,
    FILE,
    FILES_MAX,
    MAPPED_MAX,
    NO_FILE,
    NO_GROUP,
    NOTHING,
    READY_MAX,
    RECEIVED,
    RECEIVED_MAX,
    REQUEST,
    SEAL_AT,
    SENDS_MAX,
    SENDS_MIN,
    SPAN,
    STATE,
    STRUCTS_MAX,
    UNSENT,
    WAIT_NS,
    WAITS_NS,
)

_UNKNOWN: Final = -1

_0, _1, _2, _3, _4, _8, _12, _16, _24 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 8, 12, 16, 24))
_LENGTH_AT, _MAGIC_AT, _LAST_OFFSET_DELTA_AT, _HEADER_BYTES = (np.uint64(n) for n in (8, 16, 23, 27))
_SEAL_AT, _SEAL_BYTES = np.uint64(SEAL_AT), np.uint64(SEAL_BYTES)
_CORRELATION_ID_AT, _CRC_AT = _8, np.uint64(17)
_STATX_SIZE, _STATX_MODIFIED, _VECTOR, _MESSAGE, _TIME, _POLL, _TIMEOUT, _EMPTY = (
    np.uint64(n) for n in (5, 14, 32, 40, 48, 50, 52, STRUCTS_MAX - 1)
)
"""Where in `Tables.structs` something is."""
_EVENT_BYTES, _EVENT_DATA_AT = np.uint64(EVENT_BYTES), np.uint64(EVENT_DATA_AT)
_CHANNELS_MAX, _RECEIVED_MAX = np.uint64(CHANNELS_MAX), np.uint64(RECEIVED_MAX)

_bytes, _frames = types.Array(types.uint8, 1, "C"), types.Array(types.uint8, 2, "C")


def _rows(dtype: Any, dimensions: int = 1) -> Any:
    return types.Array(from_dtype(dtype), dimensions, "C")


SIGNATURE: Final = types.UniTuple(types.int64, 4)(
    _rows(STATE),
    _rows(CHANNEL),
    _rows(REQUEST),
    _frames,
    _rows(FILE),
    _rows(BATCH, 2),
    _rows(SPAN, 2),
    _rows(ANSWER),
    _bytes,
    _bytes,
    _bytes,
    _bytes,
    types.Array(types.int64, 1, "C"),
)
"""Of `answer_ready`, in the order of `Tables.arguments`."""


@njit(boundscheck=False)
def _now_ns(structs: Any) -> Any:
    libc.clock_gettime(libc.MONOTONIC, structs[_TIME:].ctypes.data)
    return structs[_TIME] * 1_000_000_000 + structs[_TIME + _1]


@njit(boundscheck=False)
def _ready_channel(state: Any, ready: Any) -> Any:
    """The descriptor of a connection that is ready, CHANNELS_MAX if there is none."""
    if state.next >= state.ready:
        state.next = 0
        found = libc.epoll_wait(np.int32(state.epoll), ready.ctypes.data, np.int32(READY_MAX), libc.NOW)
        state.ready = max(found, 0)
        if found <= 0:
            return _CHANNELS_MAX
    at = np.uint64(state.next) * _EVENT_BYTES + _EVENT_DATA_AT
    state.next += 1
    low = np.uint64(ready[at]) | (np.uint64(ready[at + _1]) << _8)
    return low | (np.uint64(ready[at + _2]) << _16) | (np.uint64(ready[at + _3]) << _24)


@njit(boundscheck=False)
def _waits(descriptor: Any, events: Any, state: Any, structs: Any) -> Any:
    """Waits until a descriptor is ready, or anybody else waits for the caller, for WAIT_NS at most. Gives whether either is so."""
    mask, shift = np.int64(0xFFFFFFFF), np.int64(32)
    structs[_POLL] = (np.int64(descriptor) & mask) | (np.int64(events) << shift)
    structs[_POLL + _1] = (state.others & mask) | (np.int64(libc.READABLE) << shift)
    structs[_TIMEOUT], structs[_TIMEOUT + _1] = 0, WAIT_NS
    found = libc.ppoll(structs[_POLL:].ctypes.data, _2, structs[_TIMEOUT:].ctypes.data, _0)
    came = np.int64(48)
    return found > 0 and structs[_POLL] >> came != 0, found > 0 and structs[_POLL + _1] >> came != 0


@njit(boundscheck=False)
def _request_of(received: Any, size: Any, group: Any, requests: Any, count: Any, frames: Any) -> Any:
    """The request that came, which differs from one that is known in its correlation id and its offset alone."""
    for number in range(count):
        one = requests[np.uint64(number)]
        if one.size == size and one.group == group:
            came, known, offset_at = received.ctypes.data, frames[_3 * np.uint64(number)].ctypes.data, np.uint64(one.offset_at)
            after_id, after_offset = _CORRELATION_ID_AT + _4, offset_at + _8
            if (
                libc.memcmp(came, known, _CORRELATION_ID_AT) == 0
                and libc.memcmp(came + after_id, known + after_id, offset_at - after_id) == 0
                and libc.memcmp(came + after_offset, known + after_offset, np.uint64(size) - after_offset) == 0
            ):
                return number
    return _UNKNOWN


@njit(boundscheck=False)
def _file_of(log: Any, offset: Any, files: Any, batches: Any) -> Any:
    for number in range(FILES_MAX):
        file, of_file = files[np.uint64(number)], batches[np.uint64(number)]
        if file.log == log and file.count > 0 and file.start <= offset < of_file[np.uint64(file.count - 1)].next:
            return number
    return _UNKNOWN


@njit(boundscheck=False)
def _first(of_file: Any, count: Any, offset: Any) -> Any:
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
def _taken(of_file: Any, first: Any, count: Any, request: Any) -> Any:
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


# A kernel is given each array: it has no other state.
@njit(boundscheck=False)
def _pack(number: Any, request: Any, size: Any, room: Any, frames: Any, received: Any, answer: Any) -> Any:
    """Writes what comes before the batches, and after `room` bytes what comes after them.

    Gives where the batches begin, and how many bytes the answer will have.
    """
    head, tail = np.uint64(request.head), np.uint64(request.tail)
    start = answer.ctypes.data
    libc.memcpy(start, frames[_3 * np.uint64(number) + _1].ctypes.data, head)
    libc.memcpy(start + _4, received.ctypes.data + _CORRELATION_ID_AT, _4)
    length = np.uint64(size)
    at = put_uvarint(answer, head, length + _1) if request.is_flexible else put_uint32(answer, head, length)
    end = at + length
    libc.memcpy(start + at + np.uint64(room), frames[_3 * np.uint64(number) + _2].ctypes.data, tail)
    put_uint32(answer, _0, end + tail - _4)
    return at, end + tail


# Likewise.
@njit(boundscheck=False)
def _answer(number: Any, requests: Any, frames: Any, files: Any, batches: Any, received: Any, answer: Any) -> Any:
    """Makes the answer to a request that came: how many bytes it has, and its batches. 0 if it cannot be made here."""
    nothing = _0, np.int64(0)
    request = requests[np.uint64(number)]
    offset = int64(received, np.uint64(request.offset_at))
    if offset < request.start or offset >= request.end:
        return nothing
    found = _file_of(request.log, offset, files, batches)
    if found == _UNKNOWN:
        return nothing
    file, of_file = files[np.uint64(found)], batches[np.uint64(found)]
    first = _first(of_file, np.uint64(file.count), offset)
    if of_file[first].first > offset:
        return nothing
    size, last = _taken(of_file, first, np.uint64(file.count), request)
    if size == 0 or size > ANSWER_MAX or size < request.min_bytes:
        return nothing
    at, whole = _pack(number, request, size, size, frames, received, answer)
    position = of_file[first].position
    got = libc.pread(np.int32(file.descriptor), answer.ctypes.data + at, np.uint64(size), position)
    header = at + np.uint64(of_file[last].position - position)
    begins = got == size and int64(answer, at) == of_file[first].first
    ends = got == size and int64(answer, header) == of_file[last].first
    if not (begins and ends and uint32(answer, header + _CRC_AT) == np.uint64(of_file[last].crc)):
        file.count = 0  # it was truncated or written anew
        return nothing
    return whole, size


@njit(boundscheck=False)
def _batch_at(position: Any, file: Any, header: Any) -> Any:
    """The size of the batch at a position, and the offset after it; 0 if there is none of magic 2."""
    got = libc.pread(np.int32(file.descriptor), header.ctypes.data, _HEADER_BYTES, position)
    if got != np.int64(_HEADER_BYTES) or header[_MAGIC_AT] != 2:
        return np.int64(0), np.int64(0)
    following = int64(header, _0) + np.int64(uint32(header, _LAST_OFFSET_DELTA_AT)) + 1
    return np.int64(uint32(header, _LENGTH_AT) + _12), following


@njit(boundscheck=False)
def _start_in(span: Any, offset: Any, file: Any, header: Any) -> Any:
    """Where the batch of an offset, or the first one, begins in a span; not before its end if it is not found."""
    position = span.position
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
    while position < span.end:
        size, _ = _batch_at(position, file, header)
        if size == 0:
            return np.int64(CHANGED), last
        if position + size > limit:
            break
        position, last = position + size, position
    return position, last


@njit(boundscheck=False)
def _mapped_file_of(log: Any, offset: Any, files: Any, spans: Any) -> Any:
    for number in range(FILES_MAX):
        file, of_file = files[np.uint64(number)], spans[np.uint64(number)]
        if file.log == log and file.spans > 0 and file.start <= offset < of_file[np.uint64(file.spans - 1)].next:
            return number
    return _UNKNOWN


@njit(boundscheck=False)
def _is_as_checked(file: Any, structs: Any) -> Any:
    """Whether a file has the size and the time that it had when its spans were checked."""
    path, found = structs[_EMPTY:].ctypes.data, structs.ctypes.data
    if libc.statx(np.int32(file.descriptor), path, libc.EMPTY_PATH, libc.SIZE_AND_MODIFIED, found) != 0:
        return False
    modified_ns = structs[_STATX_MODIFIED] * 1_000_000_000 + (structs[_STATX_MODIFIED + _1] & np.int64(0xFFFFFFFF))
    return structs[_STATX_SIZE] == file.size and modified_ns == file.modified_ns


@njit(boundscheck=False)
def _mapped(request: Any, offset: Any, files: Any, spans: Any, header: Any, structs: Any) -> Any:
    """The file that has the batches of a larger answer: from where to where, and where the last one begins. NO_FILE for none."""
    none = np.int64(NO_FILE), np.int64(0), np.int64(0), np.int64(0)
    number = _mapped_file_of(request.log, offset, files, spans)
    if offset < request.start or number == _UNKNOWN or not _is_as_checked(files[np.uint64(number)], structs):
        return none
    file, of_file = files[np.uint64(number)], spans[np.uint64(number)]
    count = np.uint64(file.spans)
    at = _first(of_file, count, offset)
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


# Likewise.
@njit(boundscheck=False)
def _send_mapped(
    socket: Any, file: Any, position: Any, size: Any, at: Any, whole: Any, answer: Any, until_ns: Any, state: Any, structs: Any
) -> Any:
    """Sends what was packed, and between it what is mapped, until nobody takes it or others wait: how many bytes."""
    start, head, end, left = np.int64(answer.ctypes.data), np.int64(at), np.int64(whole), np.int64(whole)
    structs[_MESSAGE + _2], structs[_MESSAGE + _3] = np.int64(structs[_VECTOR:].ctypes.data), 3
    for sends in range(SENDS_MAX):
        sent = end - left
        of_head, of_file = min(sent, head), min(max(sent - head, 0), size)
        of_tail = sent - of_head - of_file
        structs[_VECTOR], structs[_VECTOR + _1] = start + of_head, head - of_head
        structs[_VECTOR + _2], structs[_VECTOR + _3] = file.mapping + position + of_file, size - of_file
        structs[_VECTOR + _4], structs[_VECTOR + _4 + _1] = start + head + of_tail, end - head - size - of_tail
        taken = libc.sendmsg(socket, structs[_MESSAGE:].ctypes.data, libc.DONTWAIT | libc.NOSIGNAL)
        left -= max(taken, 0)
        if left == 0 or _now_ns(structs) > until_ns:
            break
        is_writable, is_awaited = _waits(socket, libc.WRITABLE, state, structs)
        if not is_writable or (is_awaited and sends >= SENDS_MIN):
            break
    return end - left


@njit(boundscheck=False)
def _reads_seal(file: Any, last: Any, header: Any) -> Any:
    """Reads the seal of an answer's last batch, to be looked at again when it is sent."""
    return libc.pread(np.int32(file.descriptor), header.ctypes.data + _SEAL_AT, _SEAL_BYTES, last) == np.int64(_SEAL_BYTES)


@njit(boundscheck=False)
def _is_sealed(file: Any, last: Any, header: Any) -> Any:
    """Whether the last batch of an answer is the one whose seal was read."""
    got = libc.pread(np.int32(file.descriptor), header.ctypes.data, _SEAL_BYTES, last)
    return got == np.int64(_SEAL_BYTES) and libc.memcmp(header.ctypes.data, header.ctypes.data + _SEAL_AT, _SEAL_BYTES) == 0


# Likewise, and a call of another kernel would have to give all of it back.
@njit(SIGNATURE, cache=True, nogil=True, boundscheck=False)
def answer_ready(
    states: Any,
    channels: Any,
    requests: Any,
    frames: Any,
    files: Any,
    batches: Any,
    spans: Any,
    answers: Any,
    ready: Any,
    received: Any,
    answer: Any,
    header: Any,
    structs: Any,
) -> Any:
    """Answers the connections that are ready, until there are none, the time is over, or the caller has to do something.

    Returns NOTHING, RECEIVED or UNSENT, how many requests were answered, and the socket of the connection that the caller has to
    do something for, with how many bytes came from there: 0 at the end of the stream, less for an error.
    """
    state, done = states[_0], 0
    now_ns = _now_ns(structs)
    until_ns, last_ns = now_ns + state.limit_ns, now_ns + WAITS_NS
    while done < ANSWERS_MAX and now_ns < until_ns:
        channel = _ready_channel(state, ready)
        if channel >= _CHANNELS_MAX and done > 0:
            _waits(state.epoll, libc.READABLE, state, structs)
            until_ns = min(_now_ns(structs) + state.limit_ns, last_ns)
            channel = _ready_channel(state, ready)
        if channel >= _CHANNELS_MAX:
            break
        socket, group = np.int32(channel), channels[channel].group
        count = libc.recv(socket, received.ctypes.data, _RECEIVED_MAX, libc.DONTWAIT)
        began_ns = _now_ns(structs)
        channels[channel].group, whole, size, number = NO_GROUP, _0, np.int64(0), _UNKNOWN
        mapped, position, last, at = np.int64(NO_FILE), np.int64(0), np.int64(0), _0
        if count > 0 and group != NO_GROUP and state.may_answer != 0:
            number = _request_of(received, count, group, requests, state.requests, frames)
            if number != _UNKNOWN:
                one = requests[np.uint64(number)]
                if one.max_bytes > ANSWER_MAX:
                    offset = int64(received, np.uint64(one.offset_at))
                    mapped, position, end, last = _mapped(one, offset, files, spans, header, structs)
                if mapped == NO_FILE:
                    whole, size = _answer(number, requests, frames, files, batches, received, answer)
                elif _reads_seal(files[np.uint64(mapped)], last, header):
                    size = end - position
                    at, whole = _pack(number, one, size, np.int64(0), frames, received, answer)
        if whole == _0:
            return RECEIVED, done, np.int64(channel), count
        answered_ns = _now_ns(structs)
        if mapped == NO_FILE:
            sent = max(libc.send(socket, answer.ctypes.data, whole, libc.DONTWAIT | libc.NOSIGNAL), np.int64(0))
        else:
            file = files[np.uint64(mapped)]
            sent = _send_mapped(socket, file, position, size, at, whole, answer, answered_ns + WAITS_NS, state, structs)
            if sent == np.int64(whole) and not _is_sealed(file, last, header):
                sent = np.int64(CHANGED)
        now_ns = _now_ns(structs)
        if sent != np.int64(whole):
            state.request, state.size, state.whole, state.sent = number, size, np.int64(whole), sent
            state.began_ns, state.answered_ns = began_ns, answered_ns
            state.file, state.position, state.last, state.head = mapped, position, last, np.int64(at)
            return UNSENT, done, np.int64(channel), count
        one = answers[np.uint64(done)]
        one.request, one.size, one.total_ns, one.send_ns = number, size, now_ns - began_ns, now_ns - answered_ns
        done += 1
        channels[channel].group, channels[channel].last_ns = group, now_ns
    return NOTHING, done, 0, 0
