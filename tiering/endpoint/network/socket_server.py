"""The state machine of all connections: which bytes are read, which request is next, who is closed and why.

    RECEIVING --a whole request is there--> READY --take_request--> HANDLING --answered--> SENDING --sent--+
        ^                                                                                                  |
        +----------------------------- or READY again, if the next request is there ----------------------+

One request of a connection is answered at a time, so answers have the order of the requests; the next ones wait in the
connection's buffer, and when that is full, in the client's. Requests that are ready wait in one queue, a connection at most once:
each has its turn. Whoever owns the sockets says what happened and does what is answered.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from local_log.file_range import FileRange
from local_log.formats.primitives import Buffer
from tiering.endpoint.network.actions import Action, Close, Id, Pause, Resume
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.connection_quotas import ConnectionQuotas
from tiering.endpoint.network.memory_pool import MemoryPool
from tiering.endpoint.network.receive import SIZE_BYTES, Receive
from tiering.endpoint.network.send import Send
from tiering.endpoint.network.turns import Turns
from tiering.endpoint.protocol.errors import InvalidRequest

_KIND_BYTES = 2


class State(Enum):
    """What a connection waits for; see the drawing above."""

    RECEIVING = auto()
    READY = auto()
    HANDLING = auto()
    SENDING = auto()


@dataclass(slots=True)
class _Connection:
    ip: str
    receive: Receive
    began_ms: int
    """When the request that is being received began to arrive."""
    unauthenticated_since_ms: int | None = None
    """When it was accepted, None if nobody asks the client who it is, or it has said so."""
    state: State = State.RECEIVING
    is_paused: bool = False
    held: int = 0
    """Bytes of the pool: of the request, or of its answer."""
    kind: bytes = b""
    """Of its request, the key of its API: requests of one kind that take long do not hold up others."""
    waiting: int = 0
    """Those of them that are held while the request waits."""
    progressed_ms: int = 0
    """When bytes of the answer last went."""


@dataclass(slots=True)
class SocketServer:
    """All connections. The time is given with every event."""

    config: SocketServerConfig
    is_draining: bool = False
    _connections: dict[Id, _Connection] = field(default_factory=dict)
    _last_ms: OrderedDict[Id, int] = field(default_factory=OrderedDict)
    """When a byte last came or went, the longest ago first."""
    _ready: deque[Id] = field(default_factory=deque)
    _again: deque[Id] = field(default_factory=deque)
    """Those whose fetches waited, and are to be answered now."""
    _waiting: int = 0
    """Bytes of the pool that requests hold which wait."""
    _arriving: int = 0
    """Bytes that are in no request yet, of all connections."""
    _turns: Turns = field(init=False)
    _quotas: ConnectionQuotas = field(init=False)
    _pool: MemoryPool = field(init=False)

    def __post_init__(self) -> None:
        config = self.config
        self._quotas = ConnectionQuotas(
            config.connections_max, config.connections_per_ip_max, config.connections_per_ip_overrides
        )
        self._pool = MemoryPool(self.config.queued_bytes_max)
        self._turns = Turns(config)

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def memory_used(self) -> int:
        """Bytes of all requests and answers."""
        return self._pool.used + self._arriving

    def accepted(self, connection: Id, ip: str, now_ms: int, *, authenticates: bool = False) -> list[Action]:
        """A new connection: closed again if there are too many. One that `authenticates` may send little before it has."""
        refusal = "this endpoint is about to stop" if self.is_draining else self._quotas.refusal(ip)
        if refusal:
            return [Close(connection, refusal)]
        self._quotas.add(ip)
        bytes_max = self.config.unauthenticated_bytes_max if authenticates else self.config.request_bytes_max
        self._connections[connection] = _Connection(ip, Receive(bytes_max), now_ms, now_ms if authenticates else None)
        self._last_ms[connection] = now_ms
        return []

    def authenticated(self, connection: Id) -> None:
        """It is known who the client is."""
        one = self._connections[connection]
        one.unauthenticated_since_ms = None
        one.receive.allow(self.config.request_bytes_max)

    def received(self, connection: Id, data: bytes, now_ms: int) -> list[Action]:
        """Bytes came."""
        one = self._active(connection, now_ms)
        if one.state is State.RECEIVING and not len(one.receive):
            one.began_ms = now_ms
        one.receive.add(data)
        self._arriving += len(data)
        if one.state is State.RECEIVING:
            return self._look_for_request(connection, one) + self._relieve()
        return self._paused(connection, one, len(one.receive) > self.config.ahead_bytes_max) + self._relieve()

    def at_once(self, connection: Id, data: bytes) -> bytes | None:
        """The request, if `data` that came now is a whole one that may be answered before anything else is done.

        That is if no other request has its turn first, and there is memory. Say what came of it: `answered_at_once` when it is
        answered and all of the answer sent, `begin_at_once` when there is an answer to be sent, else `received` with the data.
        """
        if not (self.may_answer_at_once and self.is_idle(connection)):
            return None
        return data[SIZE_BYTES:] if int.from_bytes(data[:SIZE_BYTES], "big") == len(data) - SIZE_BYTES else None

    @property
    def may_answer_at_once(self) -> bool:
        """Whether no request has its turn before one that comes now, and there is memory."""
        return not (self._ready or self._again) and self._pool.has_room

    def is_idle(self, connection: Id) -> bool:
        """Whether the connection's requests are all answered, and nothing of another one has come."""
        one = self._connections[connection]
        return one.state is State.RECEIVING and not len(one.receive)

    def answered_at_once(self, connection: Id, now_ms: int) -> None:
        """A request came, was answered, and all of the answer was sent."""
        self._active(connection, now_ms).began_ms = now_ms

    def begin_at_once(self, connection: Id, size: int, now_ms: int) -> None:
        """A request of so many bytes came, and is to be answered now by `answered`, as after `take_request`."""
        one = self._active(connection, now_ms)
        one.began_ms, one.state = now_ms, State.HANDLING
        self._turns.begin(connection, one.kind)
        self._hold(one, size)

    def take_request(self) -> tuple[Id, bytes] | None:
        """The request whose turn it is, None if there is none, or too many are being answered, or too much memory is in use.

        Answer it with `answered`, or say that it `waits`.
        """
        if not self._ready or not self._may_begin:
            return None
        connection = self._ready.popleft()
        one = self._connections[connection]
        one.state = State.HANDLING
        before = len(one.receive)
        frame = one.receive.take()
        one.kind = frame[:_KIND_BYTES]
        self._turns.begin(connection, one.kind)
        self._arriving -= before - len(one.receive)
        self._hold(one, len(frame) + min(len(frame) * self.config.parsed_ratio, self.config.queued_bytes_max))
        return connection, frame

    def waits(self, connection: Id, size: int = 0) -> bool:
        """The request, a fetch, waits for records, and holds so many bytes: nobody is busy with it until it is taken again.

        False if those that wait hold half of the memory: it is to be answered now with what there is.
        """
        self._turns.end(connection)
        one = self._connections.get(connection)
        if one is None:
            return False
        self._hold(one, size - one.held)
        one.waiting = size
        self._waiting += size
        return self._waiting <= self.config.queued_bytes_max // 2

    def ask_again(self, connection: Id) -> None:
        """The answer to a request that waits is to be looked for once more: `take_again` gives it when it may begin."""
        self._again.append(connection)

    def take_again(self) -> Id | None:
        """The request that waited whose turn it is, None if there is none, or as for `take_request`."""
        # What they hold themselves is given back only when they are answered.
        while self._again and self._pool.used - self._waiting < self._pool.size and self._turns.has_thread:
            connection = self._again.popleft()
            if connection in self._connections:
                one = self._connections[connection]
                self._turns.begin(connection, one.kind)
                self._waits_no_longer(one)
                return connection
        return None

    def _waits_no_longer(self, one: _Connection) -> None:
        self._waiting -= one.waiting
        one.waiting = 0

    def asks_archive(self, connection: Id) -> None:
        """The request needs the archive, which may take its time: `take_for_archive` gives it when it may ask."""
        self._turns.wait_for_archive(connection)

    def take_for_archive(self) -> Id | None:
        """The request that may ask the archive now, None if there is none, or as for `take_request`."""
        return self._turns.next_for_archive(self._connections) if self._pool.has_room else None

    def asks_thread(self, connection: Id) -> bool:
        """The request needs a thread: whether it may have one now. If not, `take_for_thread` gives it when it may."""
        return not self._turns.wait_for_thread(connection)

    def take_for_thread(self) -> Id | None:
        """The request that may have a thread after all, None if there is none, or as for `take_request`."""
        return self._turns.next_for_thread(self._connections) if self._pool.has_room else None

    def look(self) -> None:
        """To be called at intervals: what takes longer than one of them, as with a store that hangs, holds up others no more."""
        self._turns.look()

    @property
    def _may_begin(self) -> bool:
        return self._pool.has_room and self._turns.has_thread

    def answered(self, connection: Id, parts: Iterable[Buffer | FileRange]) -> Send | None:
        """The answer to the connection's request, to be sent; None if the connection is closed meanwhile."""
        self._turns.end(connection)
        one = self._connections.get(connection)
        if one is None:
            return None
        assert one.state is State.HANDLING
        one.state = State.SENDING
        one.progressed_ms = self._last_ms[connection]
        send = Send(parts)
        self._waits_no_longer(one)
        self._hold(one, send.buffered - one.held)
        return send

    def progressed(self, connection: Id, now_ms: int) -> None:
        """Bytes of the answer were sent."""
        self._active(connection, now_ms).progressed_ms = now_ms

    def sent(self, connection: Id, now_ms: int) -> list[Action]:
        """All of the answer was sent."""
        one = self._active(connection, now_ms)
        assert one.state is State.SENDING
        self._hold(one, -one.held)
        one.state, one.began_ms = State.RECEIVING, now_ms
        if self.is_draining:
            return self._close(connection)
        actions = self._look_for_request(connection, one)
        if one.state is State.RECEIVING and connection in self._connections:
            actions += self._paused(connection, one, False)
        return actions

    def refuse(self, connection: Id, reason: str) -> list[Action]:
        """Closes a connection whose request has no answer."""
        self._turns.end(connection)
        return self._close(connection, reason)

    def closed(self, connection: Id) -> None:
        """The client is gone, or the socket failed."""
        self._forget(connection)

    def tick(self, now_ms: int) -> list[Action]:
        """Closes what is idle, takes too long to send a request, or reads nothing of its answer while others need the memory."""
        idle: list[Id] = []
        for connection, last_ms in self._last_ms.items():
            if now_ms - last_ms < self.config.idle_ms_max:
                break
            if self._connections[connection].state in (State.RECEIVING, State.SENDING):
                idle.append(connection)
        slow = [c for c, one in self._connections.items() if self._is_slow(one, now_ms)]
        unknown = [c for c, one in self._connections.items() if self._is_unauthenticated(one, now_ms)]
        actions: list[Action] = []
        for connection in idle:
            actions += self._close(connection)
        for connection in unknown:
            if connection in self._connections:
                limit = self.config.authentication_ms_max
                actions += self._close(connection, f"the client has not authenticated within {limit} ms")
        for connection in slow:
            if connection in self._connections:
                actions += self._close(connection, f"a request takes longer than {self.config.receive_ms_max} ms to arrive")
        return actions + self._make_room(now_ms)

    def drain(self) -> list[Action]:
        """Accepts nothing more; closes what waits for a request now, and everything else when it is answered."""
        self.is_draining = True
        waiting = [c for c, one in self._connections.items() if one.state is State.RECEIVING]
        return [action for c in waiting for action in self._close(c)]

    def _look_for_request(self, connection: Id, one: _Connection) -> list[Action]:
        try:
            is_whole = one.receive.is_whole()
        except InvalidRequest as e:
            return self._close(connection, str(e))
        if is_whole:
            one.state = State.READY
            self._ready.append(connection)
        return []

    def _relieve(self) -> list[Action]:
        """Closes the connection with the most bytes of an unfinished request while all of them hold too much; strangers first."""
        actions: list[Action] = []
        while self._arriving > self.config.queued_bytes_max:
            most = max(self._connections, key=self._to_close_first)
            actions += self._close(most, "the requests that arrive together are larger than queued.max.request.bytes")
        return actions

    def _make_room(self, now_ms: int) -> list[Action]:
        """Closes those who hold the most and take nothing of it, while requests wait for the memory."""
        if not (self._ready or self._again) or self._pool.has_room:
            return []
        limit, sending = self.config.stalled_ms_max, [c for c, one in self._connections.items() if one.state is State.SENDING]
        stalled = [c for c in sending if now_ms - self._connections[c].progressed_ms >= limit]
        actions: list[Action] = []
        for connection in sorted(stalled, key=lambda c: self._connections[c].held, reverse=True):
            if self._pool.has_room:
                break
            actions += self._close(
                connection, f"the client takes nothing of its answer for {limit} ms, and others wait for the memory"
            )
        return actions

    def _paused(self, connection: Id, one: _Connection, pause: bool) -> list[Action]:
        if one.is_paused == pause:
            return []
        one.is_paused = pause
        return [Pause(connection) if pause else Resume(connection)]

    def _is_slow(self, one: _Connection, now_ms: int) -> bool:
        waits = one.state is State.RECEIVING and len(one.receive) > 0
        return waits and now_ms - one.began_ms >= self.config.receive_ms_max

    def _is_unauthenticated(self, one: _Connection, now_ms: int) -> bool:
        since_ms = one.unauthenticated_since_ms
        return since_ms is not None and now_ms - since_ms >= self.config.authentication_ms_max

    def _to_close_first(self, connection: Id) -> tuple[bool, int]:
        one = self._connections[connection]
        size = len(one.receive)
        return size > 0 and one.unauthenticated_since_ms is not None, size

    def _active(self, connection: Id, now_ms: int) -> _Connection:
        self._last_ms[connection] = now_ms
        self._last_ms.move_to_end(connection)
        return self._connections[connection]

    def _hold(self, one: _Connection, count: int) -> None:
        one.held += count
        if count >= 0:
            self._pool.take(count)
        else:
            self._pool.release(-count)

    def _close(self, connection: Id, reason: str = "") -> list[Action]:
        self._forget(connection)
        return [Close(connection, reason)]

    def _forget(self, connection: Id) -> None:
        one = self._connections.pop(connection, None)
        if one is not None:
            del self._last_ms[connection]
            self._arriving -= len(one.receive)
            self._quotas.remove(one.ip)
            self._hold(one, -one.held)
            self._waits_no_longer(one)
            if one.state is State.READY:
                self._ready.remove(connection)
