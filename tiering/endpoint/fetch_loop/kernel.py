"""The compiled loop: receives requests, finds the batches that they ask for, and sends the answers, without Python.

It knows what `tables` says, and answers only a request that it knows whole, for an offset whose batches it knows. Numbers of
elements are unsigned, as in all kernels.

An answer of up to ANSWER_MAX bytes of batches is read, looked at and sent. A larger one is sent from the mapping of its file,
where spans say which batches were checked, and the file is looked at before and after, or from a window of the cache. What a file
has of it after COPIED_MAX bytes is sent by `sendfile`.
"""

from typing import Any, Final

import numpy as np

from tiering.endpoint.fetch_loop import libc
from tiering.endpoint.fetch_loop.big_endian import int64, put_uint32, put_uvarint, uint32
from tiering.endpoint.fetch_loop.compiled import from_dtype, njit, types
from tiering.endpoint.fetch_loop.lookup import UNKNOWN, batches_from, file_of, first_after, is_sealed, mapped_batches, reads_seal
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
    IN_MEMORY,
    NO_FILE,
    NO_GROUP,
    NOTHING,
    READY_MAX,
    RECEIVED,
    RECEIVED_MAX,
    REQUEST,
    SENDS_MAX,
    SENDS_MIN,
    SPAN,
    STATE,
    UNSENT,
    WAIT_NS,
    WAITS_NS,
)

_0, _1, _2, _3, _4, _8, _16, _24 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 8, 16, 24))
_CORRELATION_ID_AT, _CRC_AT = _8, np.uint64(17)
_VECTOR, _MESSAGE, _TIME, _POLL, _TIMEOUT, _POSITION = (np.uint64(n) for n in (32, 40, 48, 50, 52, 54))
"""Where in `Tables.structs` something is, after what `lookup` has there."""
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
    """Waits for WAIT_NS at most until a descriptor is ready, or anybody else waits for the caller. Gives whether either is so."""
    mask, shift = np.int64(0xFFFFFFFF), np.int64(32)
    structs[_POLL] = (np.int64(descriptor) & mask) | (np.int64(events) << shift)
    structs[_POLL + _1] = (state.others & mask) | (np.int64(libc.READABLE) << shift)
    structs[_TIMEOUT], structs[_TIMEOUT + _1] = 0, WAIT_NS
    found = libc.ppoll(structs[_POLL:].ctypes.data, _2, structs[_TIMEOUT:].ctypes.data, _0)
    came = np.int64(48)
    is_awaited = state.may_wait == 0 or (found > 0 and structs[_POLL + _1] >> came != 0)
    return found > 0 and structs[_POLL] >> came != 0, is_awaited


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
    return UNKNOWN


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
    found = file_of(request.log, offset, files, batches)
    if found == UNKNOWN:
        return nothing
    file, of_file = files[np.uint64(found)], batches[np.uint64(found)]
    first = first_after(of_file, np.uint64(file.count), offset)
    if of_file[first].first > offset:
        return nothing
    size, last = batches_from(of_file, first, np.uint64(file.count), request)
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


# Likewise.
@njit(boundscheck=False)
def _send_mapped(
    socket: Any, file: Any, position: Any, size: Any, at: Any, whole: Any, answer: Any, until_ns: Any, state: Any, structs: Any
) -> Any:
    """Sends what was packed, and between it what is mapped, until nobody takes it or others wait: how many bytes.

    Of a file's bytes those after `copied_max` are sent by `sendfile`.
    """
    start, head, end, left = np.int64(answer.ctypes.data), np.int64(at), np.int64(whole), np.int64(whole)
    copied = size if file.descriptor == IN_MEMORY else min(size, state.copied_max)
    more = libc.MORE if copied < size else libc.NONE
    structs[_MESSAGE + _2], structs[_MESSAGE + _3] = np.int64(structs[_VECTOR:].ctypes.data), 3
    for sends in range(SENDS_MAX):
        sent = end - left
        of_head, of_file = min(sent, head), min(max(sent - head, 0), size)
        of_tail = sent - of_head - of_file
        if copied <= of_file < size:
            structs[_POSITION] = position + of_file
            from_there = structs[_POSITION:].ctypes.data
            taken = libc.sendfile(socket, np.int32(file.descriptor), from_there, np.uint64(size - of_file))
        else:
            mapped = max(copied - of_file, 0)
            structs[_VECTOR], structs[_VECTOR + _1] = start + of_head, head - of_head
            structs[_VECTOR + _2], structs[_VECTOR + _3] = file.mapping + position + of_file, mapped
            structs[_VECTOR + _4] = start + head + of_tail
            structs[_VECTOR + _4 + _1] = end - head - size - of_tail if of_file + mapped == size else 0
            flags = libc.DONTWAIT | libc.NOSIGNAL | (more if of_file < copied else libc.NONE)
            taken = libc.sendmsg(socket, structs[_MESSAGE:].ctypes.data, flags)
        left -= max(taken, 0)
        if left == 0 or _now_ns(structs) > until_ns:
            break
        is_writable, is_awaited = _waits(socket, libc.WRITABLE, state, structs)
        if not is_writable or (is_awaited and sends >= SENDS_MIN):
            break
    return end - left


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
    state, done, is_large = states[_0], 0, False
    now_ns = _now_ns(structs)
    until_ns, last_ns = now_ns + state.limit_ns, now_ns + WAITS_NS
    while done < ANSWERS_MAX and now_ns < until_ns:
        channel = _ready_channel(state, ready)
        if channel >= _CHANNELS_MAX and is_large and state.may_wait != 0:
            _waits(state.epoll, libc.READABLE, state, structs)
            until_ns = min(_now_ns(structs) + state.limit_ns, last_ns)
            channel = _ready_channel(state, ready)
        if channel >= _CHANNELS_MAX:
            break
        socket, group = np.int32(channel), channels[channel].group
        count = libc.recv(socket, received.ctypes.data, _RECEIVED_MAX, libc.DONTWAIT)
        began_ns = _now_ns(structs)
        channels[channel].group, whole, size, number = NO_GROUP, _0, np.int64(0), UNKNOWN
        mapped, position, last, at = np.int64(NO_FILE), np.int64(0), np.int64(0), _0
        if count > 0 and group != NO_GROUP and state.may_answer != 0:
            number = _request_of(received, count, group, requests, state.requests, frames)
            if number != UNKNOWN:
                one = requests[np.uint64(number)]
                if one.max_bytes > ANSWER_MAX:
                    offset = int64(received, np.uint64(one.offset_at))
                    mapped, position, end, last = mapped_batches(one, offset, files, spans, header, structs)
                if mapped == NO_FILE:
                    whole, size = _answer(number, requests, frames, files, batches, received, answer)
                elif reads_seal(files[np.uint64(mapped)], last, header):
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
            if sent == np.int64(whole) and not is_sealed(file, last, header):
                sent = np.int64(CHANGED)
        now_ns = _now_ns(structs)
        if sent != np.int64(whole):
            state.request, state.size, state.whole, state.sent = number, size, np.int64(whole), sent
            state.began_ns, state.answered_ns = began_ns, answered_ns
            state.file, state.position, state.last, state.head = mapped, position, last, np.int64(at)
            return UNSENT, done, np.int64(channel), count
        one = answers[np.uint64(done)]
        one.request, one.size, one.total_ns, one.send_ns = number, size, now_ns - began_ns, now_ns - answered_ns
        done, is_large = done + 1, mapped != NO_FILE
        channels[channel].group, channels[channel].last_ns = group, now_ns
    return NOTHING, done, 0, 0
