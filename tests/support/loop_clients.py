"""A client of the compiled loop without a server: what comes back as an event is answered by Python, as a server does."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from asked_endpoint import Endpoint, bytes_of

from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.kafka_apis import handle
from tiering.endpoint.apis.repeated_fetches import KnownFetches, RepeatedFetches
from tiering.endpoint.fetch_loop.loading import answer_ready
from tiering.endpoint.fetch_loop.loop import FetchLoop, Received, Unsent
from tiering.endpoint.fetch_loop.tables import COPIED_MAX
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request

MIXED = "g-mixed"


def at_once(endpoint: Endpoint) -> Context:
    return replace(endpoint.context, may_wait=False)


def the_long_way(endpoint: Endpoint, frame: bytes) -> bytes | None:
    found = handle(frame, endpoint.connection, endpoint.context)
    return b"".join(map(bytes_of, found)) if isinstance(found, list) else None


_clients: dict[int, list["LoopClient"]] = {}


@contextmanager
def fetch_loop(endpoint: Endpoint, copied_max: int = COPIED_MAX) -> Iterator[FetchLoop]:
    compiled = answer_ready(endpoint.said.append)
    assert compiled is not None
    loop = FetchLoop(compiled, at_once(endpoint), copied_max=copied_max)
    try:
        yield loop
    finally:
        for client in _clients.pop(id(loop), []):
            client.close()
        loop.close()


class LoopClient:
    """One connection, closed with its loop. `by_loop` counts the requests that the loop answered, `by_others` the long way's."""

    def __init__(self, endpoint: Endpoint, loop: FetchLoop, known: KnownFetches | None = None) -> None:
        self.endpoint, self.loop, self.by_loop, self.by_others = endpoint, loop, 0, 0
        self.fetches = RepeatedFetches({} if known is None else known)
        self.client, self.server = socket.socketpair()
        _clients.setdefault(id(loop), []).append(self)
        self.client.settimeout(5)
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)  # who asks takes an answer when it is there
        self.server.setblocking(False)
        assert loop.add(self.server.fileno())
        self.arm()

    def arm(self) -> None:
        self.loop.arm(self.server.fileno(), self.endpoint.connection)

    def send(self, frame: bytes) -> None:
        self.client.sendall(len(frame).to_bytes(4, "big") + frame)

    def event(self, frame: bytes, *, may_answer: bool = True) -> Received | Unsent | None:
        """What comes of a request; None if it was answered."""
        self.send(frame)
        return self.loop.run(may_answer=may_answer)

    def answer(self) -> bytes:
        return frame_from(self.client)

    def ask(self, frame: bytes) -> bytes | None:
        """The answer by the loop, or else at once, or the long way."""
        event = self.event(frame)
        if event is None:
            self.by_loop += 1
            return self.answer()
        assert isinstance(event, Received), type(event)
        assert event == Received(self.server.fileno(), len(frame).to_bytes(4, "big") + frame)
        found = self.fetches.answer(frame, self.endpoint.connection, at_once(self.endpoint))
        if found is None:
            self.by_others += 1
            data = the_long_way(self.endpoint, frame)
            if data is not None:
                self.fetches.unlike(frame, 1 << 30)
        else:
            data = b"".join(map(bytes_of, found.parts))
            self.loop.learn(found, self.endpoint.connection)
        self.arm()
        return data

    def close(self) -> None:
        if self.server.fileno() >= 0:
            self.loop.remove(self.server.fileno())
        self.client.close()
        self.server.close()


def frame_from(of: socket.socket) -> bytes:
    """One frame with its size, with others after it."""
    data = bytearray()
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = of.recv(4 - len(data) if len(data) < 4 else 4 + int.from_bytes(data[:4], "big") - len(data))
        assert more, "the connection was closed"
        data += more
    return bytes(data)


def fetch(
    endpoint: Endpoint, offset: int = 0, version: int = 11, topic: str = MIXED, correlation_id: int = 99, max_bytes: int = 1
) -> bytes:
    one = endpoint.topic(topic, version, FetchPartition(0, fetch_offset=offset, partition_max_bytes=max_bytes))
    return write_request(RequestHeader(FETCH, version, correlation_id, "test"), FetchRequest(topics=(one,)))[4:]


def known(endpoint: Endpoint, loop: FetchLoop, *offsets: int) -> LoopClient:
    """A client whose fetch of these offsets the loop answers."""
    client = LoopClient(endpoint, loop)
    for _ in range(4):
        for offset in offsets or (0,):
            client.ask(fetch(endpoint, offset))
    assert client.event(fetch(endpoint, (offsets or (0,))[0])) is None
    client.answer()
    return client


class Counted(tuple[int, ...]):
    def __sub__(self, other: "Counted") -> "Counted":
        return Counted(a - b for a, b in zip(self, other, strict=True))


def counted(endpoint: Endpoint, topic: str) -> Counted:
    found = endpoint.context.metrics.topics().get(topic)
    return Counted((found.bytes_out, found.fetches, found.failed_fetches) if found else (0, 0, 0))
