"""What the compiled loop knows, as arrays: connections, the requests that they repeat, and batches that answer them.

All sizes are limits. The system gives an array its memory only where it is written.
"""

import platform
from typing import Any, Final

import numpy as np

from local_log.checked_files import SEAL_BYTES

CHANNELS_MAX: Final = 1 << 16
"""A connection has the row of its descriptor. Those with larger ones are not answered by the loop."""
REQUESTS_MAX: Final = 64
FILES_MAX: Final = 32
WINDOWS_MAX: Final = 8
"""Of the cache, in rows after those of files."""
BATCHES_MAX: Final = 1 << 14
"""Of one file, 32 bytes each: 16 MiB for all files."""
SPANS_MAX: Final = 1 << 14
"""Of one file or window, 40 bytes each: 25 MiB for all, and about 1 GiB of a file."""
RECEIVED_MAX: Final = 64 << 10
ANSWER_MAX: Final = 32 << 10
"""Bytes of batches in an answer that is read."""
MAPPED_MAX: Final = 16 << 20
"""Bytes of batches in an answer that is sent from memory, or from the mapping of its file."""
COPIED_MAX: Final = 4 << 20
"""Bytes of such an answer that are copied from the mapping; what comes after them is sent by `sendfile`.

On one host who receives what was copied has it in the processor's cache, so it goes faster; but `sendfile` takes half of the time
of this processor. Short answers are to come soon, and long ones to leave room for others.
"""
PART_MAX: Final = 1 << 11
"""Bytes of a request, of what comes before the batches of an answer, and of what comes after them."""
SIZE_MAX: Final = 8
"""Bytes that the size of the batches takes in an answer."""
ANSWERS_MAX: Final = 512
"""So many requests are answered by one call."""
SENDS_MIN: Final = 4
"""So often the socket is given what is left of one larger answer even if others wait."""
SENDS_MAX: Final = 64
"""And so often if nobody does."""
WAIT_NS: Final = 5_000_000
"""So long the loop waits for the next request after a larger answer, or until a socket takes more of one.

After a small one it does not: to wait for less than a tick of the system costs more than Python does.
"""
WAITS_NS: Final = 10_000_000
"""So long one call takes at most in which nobody but its connections and timers wait."""
READY_MAX: Final = 256
"""So many connections at most are ready when it is asked which are."""
NOTHING: Final = 0
"""No connection is ready, or the time is over."""
RECEIVED: Final = 1
"""The caller is to handle what came over a connection, which is in no group any more."""
UNSENT: Final = 2
"""The socket did not take the whole answer to a request; it is in no group any more."""
NO_GROUP: Final = -1
NO_LOG: Final = -1
NO_FILE: Final = -1
IN_MEMORY: Final = -2
"""The descriptor of a window."""
NO_REQUEST: Final = -2
"""The group of a request that is not answered now."""
CHANGED: Final = -1
"""Instead of how much was sent: the file was changed meanwhile, and nobody knows what was sent."""
SEAL_AT: Final = 32
"""Where in `Tables.header` the seal of an answer's last batch is: its header up to its checksum."""

_IS_PACKED: Final = platform.machine() in ("x86_64", "AMD64")
EVENT_BYTES: Final = 12 if _IS_PACKED else 16
"""The size of Linux's struct epoll_event; the descriptor is its data."""
EVENT_DATA_AT: Final = 4 if _IS_PACKED else 8
STRUCTS_MAX: Final = 64
"""Words of 8 bytes; the last one is always 0."""


def _record(*names: str) -> "np.dtype[Any]":
    return np.dtype([(name, "i8") for name in names], align=True)


STATE: Final = _record(
    "epoll",
    "others",  # what can be read while anybody waits for the caller, or NO_FILE
    "may_answer",  # 0 if all requests are to be handled by the caller
    "may_wait",  # 0 if others wait for the caller whom no descriptor tells of
    "limit_ns",
    "copied_max",  # bytes of a larger answer from a file that are copied
    "ready",  # how many connections the last epoll_wait gave
    "next",  # which of them is next
    "requests",  # rows of requests that are in use
    "request",  # the one whose answer could not be sent whole
    "size",  # of its batches
    "whole",  # of all of it
    "sent",  # as far as it was, or CHANGED
    "file",  # the batches are in this one and not in `Tables.answer`, or NO_FILE
    "position",  # from there on
    "last",  # where the last one begins
    "head",  # how many bytes come before them
    "began_ns",
    "answered_ns",
)
CHANNEL: Final = _record(
    "group",  # of clients that may fetch the same, NO_GROUP if its requests are to be handled by the caller
    "last_ns",  # when it was last answered
)
REQUEST: Final = _record(
    "group",
    "log",
    "size",
    "offset_at",
    "start",  # the log start offset
    "end",  # the high watermark
    "max_bytes",
    "min_bytes",
    "head",  # how many bytes come before the size of the batches
    "tail",  # how many come after the batches
    "is_flexible",
)
FILE: Final = _record(
    "log",
    "descriptor",
    "start",  # the first offset that is read from it, as far as that is known
    "count",  # of its batches
    "spans",
    "size",  # of the file when its spans were checked
    "modified_ns",
    "mapping",  # the address of its first byte, or where that of a window's segment would be
)
BATCH: Final = np.dtype(
    [("first", "i8"), ("next", "i8"), ("position", "i8"), ("size", "u4"), ("crc", "u4")],
    align=True,
)
SPAN: Final = _record("position", "end", "first", "next", "last")
"""See `checked_spans.Span`; of a window each batch is one."""
ANSWER: Final = _record("request", "size", "total_ns", "send_ns")


class Tables:
    """All of them; `arguments` are those of the loop."""

    def __init__(self) -> None:
        self.state = np.zeros(1, STATE)
        self.channels = np.zeros(CHANNELS_MAX, CHANNEL)
        self.requests = np.zeros(REQUESTS_MAX, REQUEST)
        self.frames = np.zeros((3 * REQUESTS_MAX, PART_MAX), np.uint8)
        """Of each request its bytes, those before the size of the batches in its answer, and those after them."""
        self.files = np.zeros(FILES_MAX + WINDOWS_MAX, FILE)
        self.batches = np.zeros((FILES_MAX, BATCHES_MAX), BATCH)
        self.spans = np.zeros((FILES_MAX + WINDOWS_MAX, SPANS_MAX), SPAN)
        self.answers = np.zeros(ANSWERS_MAX, ANSWER)
        self.ready = np.zeros(READY_MAX * EVENT_BYTES, np.uint8)
        self.received = np.zeros(RECEIVED_MAX, np.uint8)
        self.answer = np.zeros(ANSWER_MAX + 2 * PART_MAX + SIZE_MAX, np.uint8)
        self.header = np.zeros(SEAL_AT + SEAL_BYTES, np.uint8)
        """Of a batch, and a seal."""
        self.structs = np.zeros(STRUCTS_MAX, np.int64)
        """What the system is given and gives."""
        self.channels["group"] = NO_GROUP
        self.files["log"] = NO_LOG
        known = (self.state, self.channels, self.requests, self.frames, self.files, self.batches, self.spans)
        self.arguments: Final = (*known, self.answers, self.ready, self.received, self.answer, self.header, self.structs)
