"""The compiled loop: receives requests, finds the batches that they ask for, and sends the answers, without Python.

It knows what `tables` says, and answers only a request that it knows whole, for an offset whose batches it knows. It calls the
system by the symbols of the C library, which the linker of the compiled code finds in every process on Linux. Positions are
unsigned, as in all kernels.
"""

from typing import Any, Final

import numpy as np
from numba import from_dtype, njit, types

from tiering.endpoint.fetch_loop.tables import (
    ANSWER,
    ANSWER_MAX,
    ANSWERS_MAX,
    BATCH,
    CHANNEL,
    CHANNELS_MAX,
    EVENT_BYTES,
    EVENT_DATA_AT,
    FILE,
    FILES_MAX,
    NO_GROUP,
    NOTHING,
    READY_MAX,
    RECEIVED,
    RECEIVED_MAX,
    REQUEST,
    STATE,
    UNSENT,
)

_UNKNOWN: Final = -1

_int, _long, _size, _ssize = types.int32, types.int64, types.uintp, types.intp


def _of_libc(name: str, *signature: Any) -> Any:
    return types.ExternalFunction(name, signature[-1](*signature[:-1]))


_recv = _of_libc("recv", _int, _size, _size, _int, _ssize)
_send = _of_libc("send", _int, _size, _size, _int, _ssize)
_pread = _of_libc("pread", _int, _size, _size, _long, _ssize)
_epoll_wait = _of_libc("epoll_wait", _int, _size, _int, _int, _int)
_clock_gettime = _of_libc("clock_gettime", _int, _size, _int)
_memcmp = _of_libc("memcmp", _size, _size, _size, _int)
_memcpy = _of_libc("memcpy", _size, _size, _size, _size)
_MONOTONIC, _NOW = np.int32(1), np.int32(0)
_DONTWAIT, _NOSIGNAL = np.int32(0x40), np.int32(0x4000)

_0, _1, _2, _3, _4, _7, _8, _12, _127 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 7, 8, 12, 127))
_16, _24, _128 = (np.uint64(n) for n in (16, 24, 128))
_CORRELATION_ID_AT, _CRC_AT = _8, np.uint64(17)
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
    _rows(ANSWER),
    _bytes,
    _bytes,
    _bytes,
)
"""Of `answer_ready`, in the order of `Tables.arguments`."""


@njit(boundscheck=False)
def _uint32(data: Any, at: Any) -> Any:
    high = (np.uint64(data[at]) << _24) | (np.uint64(data[at + _1]) << _16)
    return high | (np.uint64(data[at + _2]) << _8) | np.uint64(data[at + _3])


@njit(boundscheck=False)
def _int64(data: Any, at: Any) -> Any:
    return np.int64((_uint32(data, at) << np.uint64(32)) | _uint32(data, at + _4))


@njit(boundscheck=False)
def _put_uint32(data: Any, at: Any, value: Any) -> Any:
    data[at], data[at + _1] = np.uint8(value >> _24), np.uint8(value >> _16)
    data[at + _2], data[at + _3] = np.uint8(value >> _8), np.uint8(value)
    return at + _4


@njit(boundscheck=False)
def _put_uvarint(data: Any, at: Any, value: Any) -> Any:
    while value > _127:
        data[at] = np.uint8(value | _128)
        at, value = at + _1, value >> _7
    data[at] = np.uint8(value)
    return at + _1


@njit(boundscheck=False)
def _now_ns(time: Any) -> Any:
    _clock_gettime(_MONOTONIC, time.ctypes.data)
    return time[0] * 1_000_000_000 + time[1]


@njit(boundscheck=False)
def _ready_channel(state: Any, ready: Any) -> Any:
    """The descriptor of a connection that is ready, CHANNELS_MAX if there is none."""
    if state.next >= state.ready:
        state.next = 0
        found = _epoll_wait(np.int32(state.epoll), ready.ctypes.data, np.int32(READY_MAX), _NOW)
        state.ready = max(found, 0)
        if found <= 0:
            return _CHANNELS_MAX
    at = np.uint64(state.next) * _EVENT_BYTES + _EVENT_DATA_AT
    state.next += 1
    low = np.uint64(ready[at]) | (np.uint64(ready[at + _1]) << _8)
    return low | (np.uint64(ready[at + _2]) << _16) | (np.uint64(ready[at + _3]) << _24)


@njit(boundscheck=False)
def _request_of(received: Any, size: Any, group: Any, requests: Any, count: Any, frames: Any) -> Any:
    """The request that came, which differs from one that is known in its correlation id and its offset alone."""
    for number in range(count):
        one = requests[np.uint64(number)]
        if one.size == size and one.group == group:
            came, known, offset_at = received.ctypes.data, frames[_3 * np.uint64(number)].ctypes.data, np.uint64(one.offset_at)
            after_id, after_offset = _CORRELATION_ID_AT + _4, offset_at + _8
            if (
                _memcmp(came, known, _CORRELATION_ID_AT) == 0
                and _memcmp(came + after_id, known + after_id, offset_at - after_id) == 0
                and _memcmp(came + after_offset, known + after_offset, np.uint64(size) - after_offset) == 0
            ):
                return number
    return _UNKNOWN


@njit(boundscheck=False)
def _file_of(log: Any, offset: Any, files: Any, batches: Any) -> Any:
    for number in range(FILES_MAX):
        file, of_file = files[np.uint64(number)], batches[np.uint64(number)]
        if file.log == log and file.count > 0 and of_file[_0].first <= offset < of_file[np.uint64(file.count - 1)].next:
            return number
    return _UNKNOWN


@njit(boundscheck=False)
def _first(of_file: Any, count: Any, offset: Any) -> Any:
    """The first batch that ends after an offset."""
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


@njit(boundscheck=False)
def _pack(number: Any, request: Any, size: Any, frames: Any, received: Any, answer: Any) -> Any:
    """Writes what comes before the batches; where these begin, and how many bytes the answer will have."""
    head, tail = np.uint64(request.head), np.uint64(request.tail)
    start = answer.ctypes.data
    _memcpy(start, frames[_3 * np.uint64(number) + _1].ctypes.data, head)
    _memcpy(start + _4, received.ctypes.data + _CORRELATION_ID_AT, _4)
    length = np.uint64(size)
    at = _put_uvarint(answer, head, length + _1) if request.is_flexible else _put_uint32(answer, head, length)
    end = at + np.uint64(size)
    _memcpy(start + end, frames[_3 * np.uint64(number) + _2].ctypes.data, tail)
    _put_uint32(answer, _0, end + tail - _4)
    return at, end + tail


# A kernel is given each array: it has no other state.
@njit(boundscheck=False)
def _answer(number: Any, requests: Any, frames: Any, files: Any, batches: Any, received: Any, answer: Any) -> Any:
    """Makes the answer to a request that came: how many bytes it has, and its batches. 0 if it cannot be made here."""
    nothing = _0, np.int64(0)
    request = requests[np.uint64(number)]
    offset = _int64(received, np.uint64(request.offset_at))
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
    at, whole = _pack(number, request, size, frames, received, answer)
    position = of_file[first].position
    got = _pread(np.int32(file.descriptor), answer.ctypes.data + at, np.uint64(size), position)
    header = at + np.uint64(of_file[last].position - position)
    begins = got == size and _int64(answer, at) == of_file[first].first
    ends = got == size and _int64(answer, header) == of_file[last].first
    if not (begins and ends and _uint32(answer, header + _CRC_AT) == np.uint64(of_file[last].crc)):
        file.count = 0  # it was truncated or written anew
        return nothing
    return whole, size


# Likewise, and a call of another kernel would have to give all of it back.
@njit(SIGNATURE, cache=True, nogil=True, boundscheck=False)
def answer_ready(
    states: Any,
    channels: Any,
    requests: Any,
    frames: Any,
    files: Any,
    batches: Any,
    answers: Any,
    ready: Any,
    received: Any,
    answer: Any,
) -> Any:
    """Answers the connections that are ready, until there are none, the time is over, or the caller has to do something.

    Returns NOTHING, RECEIVED or UNSENT, how many requests were answered, and the socket of the connection that the caller has to
    do something for, with how many bytes came from there: 0 at the end of the stream, less for an error.
    """
    state, time, done = states[_0], np.empty(2, np.int64), 0
    now_ns = _now_ns(time)
    until_ns = now_ns + state.limit_ns
    while done < ANSWERS_MAX and now_ns < until_ns:
        channel = _ready_channel(state, ready)
        if channel >= _CHANNELS_MAX:
            break
        socket, group = np.int32(channel), channels[channel].group
        count = _recv(socket, received.ctypes.data, _RECEIVED_MAX, _DONTWAIT)
        began_ns = _now_ns(time)
        channels[channel].group, whole, size, number = NO_GROUP, _0, np.int64(0), _UNKNOWN
        if count > 0 and group != NO_GROUP and state.may_answer != 0:
            number = _request_of(received, count, group, requests, state.requests, frames)
            if number != _UNKNOWN:
                whole, size = _answer(number, requests, frames, files, batches, received, answer)
        if whole == _0:
            return RECEIVED, done, np.int64(channel), count
        answered_ns = _now_ns(time)
        sent = _send(socket, answer.ctypes.data, whole, _DONTWAIT | _NOSIGNAL)
        now_ns = _now_ns(time)
        if sent != np.int64(whole):
            state.request, state.size, state.whole, state.sent = number, size, np.int64(whole), max(sent, 0)
            state.began_ns, state.answered_ns = began_ns, answered_ns
            return UNSENT, done, np.int64(channel), count
        one = answers[np.uint64(done)]
        one.request, one.size, one.total_ns, one.send_ns = number, size, now_ns - began_ns, now_ns - answered_ns
        done += 1
        channels[channel].group, channels[channel].last_ns = group, now_ns
    return NOTHING, done, 0, 0
