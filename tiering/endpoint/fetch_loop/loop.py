"""The compiled loop and the connections that it answers, whose sockets are in an epoll of their own.

A connection belongs to a group of clients that may do the same. While it is in none, which is until it is `armed` and after each
event, its requests come back as events. So whoever handles an event arms the connection when all its requests are answered.
"""

import select
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from local_log.errors import LogError
from local_log.file_range import FileRange
from local_log.formats.primitives import Buffer
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.repeated_fetches import Answer
from tiering.endpoint.fetch_loop.known_batches import KnownBatches
from tiering.endpoint.fetch_loop.known_requests import KnownRequests
from tiering.endpoint.fetch_loop.tables import (
    ANSWER_MAX,
    CHANGED,
    CHANNELS_MAX,
    COPIED_MAX,
    FILES_MAX,
    NO_FILE,
    NO_GROUP,
    NOTHING,
    RECEIVED,
    SEAL_AT,
    Tables,
)
from tiering.endpoint.metrics import Asked, RequestTimes
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.request_context import ConnectionContext

LIMIT_NS: Final = 1_000_000
"""So long one call answers requests; the other sockets wait meanwhile."""
LEARNED_MAX: Final = 1 << 10
"""So many answers more than it has given the loop looks at to know the next ones, at first."""
LEARNED_A_SECOND: Final = 64
"""And in each second in any case."""
ANSWERS_A_LOOK: Final = 4
"""The loop has to answer so many requests for one more look, or the looks would cost more than they save."""
GROUPS_MAX: Final = 1 << 12
"""Of clients that may do the same. Those of others are not answered by the loop."""
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000

AnswerReady = Callable[..., tuple[int, int, int, int]]
"""See `kernel.answer_ready`."""


class Received(NamedTuple):
    """What came over a connection; no bytes if it is at its end or failed, which receiving once more tells."""

    socket: int
    data: bytes


class Unsent(NamedTuple):
    """An answer, which was there at `answered_s`, and of which the socket took `sent` bytes.

    If its file was changed meanwhile, nobody knows which bytes these were, and a look at the range of the file tells of it.
    """

    socket: int
    parts: list[Buffer | FileRange]
    sent: int
    asked: Asked
    answered_s: float


class FetchLoop:
    """For the thread of the sockets. `context` is that of answers that may not wait.

    `others` is a descriptor that can be read while anything waits for this thread, also the connections of the loop.
    """

    def __init__(self, answer_ready: AnswerReady, context: Context, others: int = NO_FILE, copied_max: int = COPIED_MAX) -> None:
        self._answer_ready, self._context = answer_ready, context
        self._tables = Tables()
        self._batches = KnownBatches(self._tables)
        self._requests = KnownRequests(self._tables, self._batches)
        self._epoll = select.epoll()
        self._arguments, self._state = self._tables.arguments, self._tables.state
        self._group_of, self._last_ns = self._tables.channels["group"], self._tables.channels["last_ns"]
        self._groups: dict[tuple[str, str], int] = {}
        self._told_ns = 0
        self._credit = LEARNED_MAX * ANSWERS_A_LOOK
        """How many looks there may be, times ANSWERS_A_LOOK."""
        self._state["epoll"], self._state["others"], self._state["limit_ns"] = self._epoll.fileno(), others, LIMIT_NS
        self._state["copied_max"] = copied_max

    def fileno(self) -> int:
        """Can be read while connections are ready."""
        return self._epoll.fileno()

    def add(self, socket: int) -> bool:
        """Takes a connection, which is not armed; False if its descriptor is too large a number."""
        if socket >= CHANNELS_MAX:
            return False
        self._tables.channels[socket] = (NO_GROUP, 0)
        self._epoll.register(socket, select.EPOLLIN)
        return True

    def remove(self, socket: int) -> None:
        """To be called before it is closed."""
        self._epoll.unregister(socket)
        self._tables.channels[socket] = (NO_GROUP, 0)
        self._state["ready"] = 0  # it may be among them; who is ready is asked again

    def arm(self, socket: int, connection: ConnectionContext) -> None:
        """All requests of a connection are answered, and it is known who the client is."""
        self._group_of[socket] = self._group(connection)

    def run(self, *, may_answer: bool, may_wait: bool = True) -> Received | Unsent | None:
        """Answers requests, unless all are to be events, for LIMIT_NS at most, longer if it `may_wait` for others.

        Gives the event to be handled, None for none.
        """
        if may_answer:
            self._requests.check(self._context)
        self._state["may_answer"], self._state["may_wait"] = may_answer, may_wait
        status, answers, socket, size = self._answer_ready(*self._arguments)
        if answers:
            self._count(answers)
        if status == NOTHING:
            return None
        return Received(socket, bytes(self._tables.received[: max(0, size)])) if status == RECEIVED else self._unsent(socket)

    def learn(self, answer: Answer, connection: ConnectionContext) -> bool:
        """Such a request was answered just now: whether the loop may answer the next ones, as it knows where the batches are."""
        _, sent, *others = answer.parts
        group, is_small = self._group(connection), answer.size <= ANSWER_MAX
        is_of_file = isinstance(sent, FileRange)
        if answer.fetch.alike is None or group == NO_GROUP or (is_small and not is_of_file):
            return False
        if not is_small and any(isinstance(part, FileRange) for part in others):
            return False  # a larger answer is sent from one file
        known = self._requests.add(answer.fetch, group, connection, self._context) if self._credit >= ANSWERS_A_LOOK else None
        if known is None:
            return False
        self._credit -= ANSWERS_A_LOOK
        reads, is_known = self._context.reads, is_small
        try:
            if not is_of_file:
                return self._batches.learn_window(known.log, answer.next_offset, answer.fetch.max_bytes, reads)
            if answer.fetch.max_bytes > ANSWER_MAX:
                is_known |= self._batches.learn_spans(known.log, answer.offset, reads)
            if is_small:
                self._batches.learn(known.log, answer.offset, sent, reads)
        except LogError:
            return False  # who reads it is told
        return is_known

    def look_at_topics(self) -> None:
        """To be called often, so that topics are looked at before a fetch has to wait for it."""
        self._requests.look(self._context)

    def look(self) -> None:
        """To be called every second: files whose place others have taken are forgotten."""
        self._batches.look(self._context.reads)
        self._credit = max(self._credit, LEARNED_A_SECOND * ANSWERS_A_LOOK)

    def answered(self) -> Iterator[tuple[int, int]]:
        """The connections that were answered since this was asked before, and when last, in ms; the longest ago first."""
        found = np.flatnonzero(self._last_ns > self._told_ns)
        for socket in found[np.argsort(self._last_ns[found])].tolist():
            self._told_ns = int(self._last_ns[socket])
            yield socket, self._told_ns // _NS_PER_MS

    def close(self) -> None:
        """When all connections are removed."""
        self._epoll.close()

    def _group(self, connection: ConnectionContext) -> int:
        if self._context.acls is None:
            return 0
        key = str(connection.principal), connection.client_address
        is_full = len(self._groups) >= GROUPS_MAX
        return self._groups.get(key, NO_GROUP) if is_full else self._groups.setdefault(key, len(self._groups))

    def _count(self, answers: int) -> None:
        now_ms = self._context.clock.hi_res_clock_ms()
        self._credit = min(self._credit + answers, LEARNED_MAX * ANSWERS_A_LOOK)
        times, sizes = defaultdict[int, list[tuple[int, int]]](list), defaultdict[int, int](int)
        for request, size, total_ns, send_ns in self._tables.answers[:answers].tolist():
            sizes[request] += size
            times[request].append((total_ns, send_ns))
        for request, size in sizes.items():
            known, of = self._requests.used(request, now_ms), self._context.metrics.of(FETCH.name)
            self._context.metrics.fetched(known.name, len(times[request]), 0, size)
            for total_ns, send_ns in times[request]:
                of.add(known.fetch.version, RequestTimes(known.size, total_ns / _NS_PER_MS, send_ns / _NS_PER_MS))

    def _unsent(self, socket: int) -> Unsent:
        state = self._state[0]
        known = self._requests[int(state["request"])]
        self._context.metrics.fetched(known.name, 1, 0, int(state["size"]))
        asked = Asked(FETCH.name, known.fetch.version, known.size, int(state["began_ns"]) / _NS_PER_S)
        return Unsent(socket, self._parts(state), max(0, int(state["sent"])), asked, int(state["answered_ns"]) / _NS_PER_S)

    def _parts(self, state: Any) -> list[Buffer | FileRange]:
        whole, size, head = int(state["whole"]), int(state["size"]), int(state["head"])
        answer = self._tables.answer
        if state["file"] == NO_FILE:
            return [bytes(answer[:whole])]
        if state["file"] >= FILES_MAX:
            sent = self._batches.windows.sent_of(int(state["file"]), int(state["position"]), size)
            return [bytes(answer[:head]), sent, bytes(answer[head : whole - size])]
        seal = b"" if state["sent"] == CHANGED else bytes(self._tables.header[SEAL_AT:])
        found = self._batches.sent_of(int(state["file"]), int(state["position"]), size, int(state["last"]), seal)
        return [bytes(answer[:head]), found, bytes(answer[head : whole - size])]
