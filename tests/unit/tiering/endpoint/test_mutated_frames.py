"""Frames as no client sends them, in memory: each is answered or closes its connection, in bounded memory, beside good clients.

MUTATED_FRAMES says how many; the whole proof takes 100,000.
"""

import os
import resource
import socket
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random  # noqa: TID251  # seeded
from typing import Any

import pytest
from asked_by_wire import Wire
from asked_endpoint import Endpoint, bytes_of, response_of
from mutated_frames import good_frame, mutated, pieces
from served_endpoint import served
from tiered_worlds import World

from tiering.endpoint.apis.kafka_apis import Waits, answer_fetch, handle
from tiering.endpoint.network.actions import Action, Close
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.socket_server import SocketServer
from tiering.endpoint.protocol.api_keys import METADATA, PRODUCE
from tiering.endpoint.protocol.errors import InvalidRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.requests import RequestHeader, write_request

FRAMES = int(os.environ.get("MUTATED_FRAMES", "1000"))
CONFIG = SocketServerConfig(request_bytes_max=1 << 20, queued_bytes_max=4 << 20, receive_ms_max=1000, idle_ms_max=10_000)
FETCH_BYTES = 100_000
ASKED = write_request(RequestHeader(METADATA, 9, 99, "good"), MetadataRequest((MetadataRequestTopic(name="g-tiny"),)))
pytestmark = pytest.mark.slow
GOOD = -1
"""The number of the connection of a client that asks for metadata between all others."""


@dataclass
class Played:
    """The state machine of connections, with an endpoint that answers at once, and a clock that goes on by hand."""

    endpoint: Endpoint
    core: SocketServer = field(default_factory=lambda: SocketServer(CONFIG))
    now_ms: int = 0
    closed: dict[Any, str] = field(default_factory=dict)
    answers: dict[Any, list[bytes]] = field(default_factory=dict)

    def send(self, connection: int, parts: Sequence[bytes]) -> None:
        """Bytes of a client, as they come; whatever is whole is answered."""
        for part in parts:
            self.now_ms += 1
            if connection in self.closed:
                return
            self.do(self.core.received(connection, part, self.now_ms))
            while (taken := self.core.take_request()) is not None:
                self.answer(*taken)

    def answer(self, connection: Any, frame: bytes) -> None:
        """As the server does, but that what waits for records is asked again at once, for the last time."""
        try:
            found = handle(frame, self.endpoint.connection, self.endpoint.context)
            if isinstance(found, Waits):
                self.core.waits(connection)
                self.core.asked_again(connection)
                found = answer_fetch(found, self.endpoint.context, may_wait=False)
            assert not isinstance(found, Waits)
        except InvalidRequest as e:
            self.do(self.core.refuse(connection, str(e)))
            return
        data = b"".join(map(bytes_of, found))
        if data:
            assert int.from_bytes(data[:4], "big") == len(data) - 4
        else:  # to a Produce that wants no acknowledgement, with no partition for which it could be refused
            assert frame[:2] == PRODUCE.key.to_bytes(2, "big")
        self.answers.setdefault(connection, []).append(data)
        send = self.core.answered(connection, found)
        assert send is not None
        send.advance(send.left)
        self.do(self.core.sent(connection, self.now_ms))

    def do(self, actions: list[Action]) -> None:
        """Notes who is closed, and why."""
        self.closed |= {action.connection: action.reason for action in actions if isinstance(action, Close)}


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    found = Endpoint(world.folders["some archived dropped"], world.store)
    found.configure(f"fetch.max.bytes={FETCH_BYTES}")
    return found


def test_any_frame_is_answered_or_closes_its_connection_and_good_clients_are_served(endpoint: Endpoint) -> None:
    played, random = Played(endpoint), Random(18)
    assert played.core.accepted(GOOD, "192.0.2.9", 0) == []
    played.send(GOOD, [ASKED])
    want = played.answers[GOOD][0]
    for number in range(FRAMES):
        assert played.core.accepted(number, "192.0.2.1", played.now_ms) == []
        parts = pieces(mutated(good_frame(random), random), random)
        played.send(number, parts)
        played.send(GOOD, [ASKED])
        assert played.answers.pop(GOOD) == [want] * (1 + (number == 0)), number
        assert played.core.memory_used <= CONFIG.queued_bytes_max
        if number not in played.closed and number not in played.answers:  # it does not end: the client is closed in a while
            played.now_ms += CONFIG.receive_ms_max
            played.do(played.core.tick(played.now_ms))
            assert number in played.closed or not parts, number
        played.answers.pop(number, None)
        if played.closed.pop(number, None) is None:
            played.core.closed(number)
    assert len(played.core) == 1
    assert response_of(METADATA, 9, want).topics[0].name == "g-tiny"


def test_what_a_frame_takes_in_memory_is_bounded_by_its_size(endpoint: Endpoint) -> None:
    played, random = Played(endpoint), Random(4)
    for number in range(max(200, FRAMES // 50)):
        frame = mutated(good_frame(random), random)
        played.core.accepted(number, "192.0.2.1", played.now_ms)
        tracemalloc.start()
        played.send(number, [frame])
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken < (1 << 20) + 100 * len(frame), (number, len(frame))
        played.answers.clear()


def test_any_frame_over_a_socket_is_answered_or_closes_its_connection_and_others_are_served(endpoint: Endpoint) -> None:
    random = Random(5)
    with served(endpoint, receive_ms_max=1000) as (host, port):
        good = Wire(f"{host}:{port}")
        before = peak_bytes()
        for _ in range(max(40, FRAMES // 50)):
            with socket.create_connection((host, port)) as client, suppress(ConnectionError):
                for part in pieces(mutated(good_frame(random), random), random):
                    client.sendall(part)
                client.settimeout(0.01)
                with suppress(TimeoutError):
                    client.recv(1 << 16)
            found = good.ask(METADATA, 9, MetadataRequest((MetadataRequestTopic(name="g-tiny"),)))
            assert found.topics[0].name == "g-tiny"
        good.close()
        assert peak_bytes() - before < 64 << 20
    assert [message for message in endpoint.said if "a bug" in message] == []


def peak_bytes() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
