import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

import pytest
from asked_endpoint import Endpoint, response_of
from loop_clients import frame_from, the_long_way
from served_endpoint import served
from tiered_worlds import World
from users_file import PASSWORDS, sasl_listener, user_file

from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.fetch_loop.loading import answer_ready
from tiering.endpoint.fetch_loop.loop import AnswerReady, FetchLoop
from tiering.endpoint.fetch_loop.tables import CHANGED, UNSENT
from tiering.endpoint.fetches_at_once import UNKNOWN_MAX, FetchesAtOnce
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.socket_server import SocketServer
from tiering.endpoint.protocol.api_keys import FETCH, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request

MIXED, BIG, NONE = "g-mixed", "g-big", "g-codec-none"


class CountedLoop:
    """The compiled loop, with how many requests it answered."""

    def __init__(self) -> None:
        self.answers = self.calls = self.unsent = 0
        self.compiled = answer_ready(print)  # the first time it takes seconds

    def load(self) -> AnswerReady:
        compiled = self.compiled
        assert compiled is not None

        def run(*tables: Any) -> tuple[int, int, int, int]:
            found = compiled(*tables)
            self.answers += found[1]
            self.unsent += found[0] == UNSENT
            self.calls += 1
            return found

        return run


def connected(address: tuple[str, int]) -> socket.socket:
    found = socket.create_connection(address)
    found.settimeout(20)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def fetch(endpoint: Endpoint, topic: str, offset: int, max_bytes: int = 1, correlation_id: int = 99) -> bytes:
    one = endpoint.topic(topic, 11, FetchPartition(0, fetch_offset=offset, partition_max_bytes=max_bytes))
    return write_request(RequestHeader(FETCH, 11, correlation_id, "test"), FetchRequest(topics=(one,)))


def test_clients_of_all_kinds_get_their_answers_in_order_beside_the_loop(world: World) -> None:
    endpoint, counted, random = Endpoint(world.folders["local alone"], None), CountedLoop(), Random(1)
    metadata = write_request(RequestHeader(METADATA, 9, 99, "test"), MetadataRequest(topics=()))
    small = [fetch(endpoint, MIXED, offset) for offset in range(6)]
    bulk = fetch(endpoint, BIG, 0, 1 << 30)
    right = {request: the_long_way(endpoint, request[4:]) for request in (*small, bulk)}
    fetches = endpoint.context.metrics.topics()[MIXED].fetches
    asked = 0
    with served(endpoint, load=counted.load) as address, ExitStack() as closing:
        clients = [closing.enter_context(connected(address)) for _ in range(20)]
        reader = closing.enter_context(connected(address))
        for number in range(300):
            if number % 50 == 0:
                reader.sendall(bulk)  # it reads nothing of it yet
            for client in random.sample(clients, 5):
                requests = random.choices(small, k=random.choice([1, 1, 1, 1, 2, 3]))
                asked += len(requests)
                whole = b"".join(requests)
                cut = random.choice([len(whole)] * 5 + [3, len(whole) - 1])
                client.sendall(whole[:cut])
                client.sendall(whole[cut:])
                assert [frame_from(client) for _ in requests] == [right[request] for request in requests]
            if number % 30 == 0:
                clients[0].sendall(metadata)
                assert frame_from(clients[0])[4:8] == metadata[8:12]
            if number % 100 == 99:
                gone = clients.pop()
                gone.sendall(small[0])
                asked += 1
                gone.close()
        for _ in range(6):
            assert frame_from(reader) == right[bulk]
    assert counted.answers > 500
    assert endpoint.context.metrics.topics()[MIXED].fetches - fetches == asked
    assert endpoint.context.metrics.apis[FETCH.name].requests[11] >= asked - 3, "those that are gone get no answer perhaps"
    assert endpoint.said == []


@pytest.mark.parametrize(("topic", "max_bytes"), [(MIXED, 5_000), (NONE, 100_000)])
def test_a_client_that_reads_nothing_of_its_answers_gets_all_of_them_later(
    endpoint: Endpoint, topic: str, max_bytes: int
) -> None:
    counted, request = CountedLoop(), fetch(endpoint, topic, 0, max_bytes)
    right, asked = the_long_way(endpoint, request[4:]), 0
    with served(endpoint, load=counted.load) as address, connected(address) as client:
        while not counted.unsent:  # the sockets take some hundred answers
            before, deadline = counted.calls, time.monotonic() + 5
            client.sendall(request)
            asked += 1
            while counted.calls == before:
                assert time.monotonic() < deadline
                time.sleep(0)
        for _ in range(asked):
            assert frame_from(client) == right
    assert endpoint.said == []


def test_a_client_is_closed_whose_answer_may_be_wrong_since_its_file_was_changed_while_it_was_sent(endpoint: Endpoint) -> None:
    class Changing(CountedLoop):
        """A loop that finds out that the file was changed when an answer was not taken whole, which no test can bring about."""

        def load(self) -> AnswerReady:
            load = super().load()

            def run(*tables: Any) -> tuple[int, int, int, int]:
                found = load(*tables)
                if found[0] == UNSENT:
                    tables[0]["sent"] = CHANGED
                return found

            return run

    counted, request = Changing(), fetch(endpoint, NONE, 0, 100_000)
    right, got = the_long_way(endpoint, request[4:]), bytearray()
    with served(endpoint, load=counted.load) as address, connected(address) as client:
        deadline = time.monotonic() + 20
        while not counted.answers:  # else Python's answers fill the socket, which are not those of the loop
            assert time.monotonic() < deadline
            client.sendall(request)
            assert frame_from(client) == right
        asked = 0
        while not endpoint.said and asked < 1_000:
            client.sendall(request)
            asked += 1
            time.sleep(0.005)
        with suppress(ConnectionResetError):
            while more := client.recv(1 << 20):
                got += more
    assert right is not None
    assert (right * asked).startswith(got)
    (said,) = endpoint.said
    assert "the log has been truncated meanwhile; fetch again" in said


def test_a_connection_that_asks_for_what_the_loop_does_not_know_is_left_to_python_until_it_asks_for_small_batches(
    endpoint: Endpoint,
) -> None:
    counted, bulk, small = CountedLoop(), fetch(endpoint, BIG, 0, 1 << 20), fetch(endpoint, MIXED, 0)
    with served(endpoint, load=counted.load) as address, connected(address) as client:
        found = []
        for request in (bulk, bulk, small, bulk, bulk, small, bulk):
            for _ in range(3 * UNKNOWN_MAX):
                client.sendall(request)
                assert frame_from(client)
            client.sendall(bulk)  # when it is answered, all before it is counted
            assert frame_from(client)
            found.append((counted.calls, counted.answers))
    (calls, answers) = zip(*found, strict=True)
    assert (calls[0], calls[3]) == (calls[1], calls[4]), "the loop does not even receive"
    assert answers[0] == answers[1] == 0 < answers[2] == answers[3] == answers[4] < answers[5] == answers[6]


def test_a_connection_that_the_loop_answers_is_not_idle(endpoint: Endpoint) -> None:
    core = SocketServer(SocketServerConfig(idle_ms_max=1_000))
    sent: list[Any] = []
    fetches = FetchesAtOnce(core, endpoint.context, sent.append, lambda *_: None, sent.append)
    fetches.tick()

    class Answered:
        def answered(self) -> list[tuple[int, int]]:
            return [(5, 900), (7, 950)]

        def look(self) -> None:
            pass

    class Channel:
        number = 1

    for number in (1, 2):
        core.accepted(number, "192.0.2.1", 0)
    fetches.loop, fetches._channels[7] = Answered(), Channel()  # type: ignore[assignment]
    fetches.tick()
    assert [action.connection for action in core.tick(1_500)] == [2]
    assert [action.connection for action in core.tick(1_950)] == [1]


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["local alone"], None)


def authenticated(address: tuple[str, int], name: str) -> socket.socket:
    found = connected(address)
    token = f"\0{name}\0{PASSWORDS[name]}".encode()
    for request in (
        write_request(RequestHeader(SASL_HANDSHAKE, 1, 1, "test"), SaslHandshakeRequest("PLAIN")),
        write_request(RequestHeader(SASL_AUTHENTICATE, 0, 2, "test"), SaslAuthenticateRequest(token)),
    ):
        found.sendall(request)
        assert frame_from(found)[8:10] == bytes(2), "no error"
    return found


@pytest.mark.parametrize(("max_reauth_ms", "by_loop"), [(0, True), (3_600_000, False)])
def test_clients_that_have_authenticated_get_from_the_loop_what_they_may_read(
    endpoint: Endpoint, tmp_path: Path, max_reauth_ms: int, by_loop: bool
) -> None:
    path, counted, request = tmp_path / "acls.json", CountedLoop(), fetch(endpoint, MIXED, 0)
    right = the_long_way(endpoint, request[4:])
    path.write_bytes(write_acls([Acl(ResourceType.TOPIC, MIXED, "User:alice", Operation.READ)]))
    acls = AclFile(OsDisk(), OsWritableDisk(), str(path), endpoint.clock, Authorizer(), endpoint.said.append)
    acls.load()
    endpoint.context = replace(endpoint.context, acls=acls)
    listener = sasl_listener(user_file(tmp_path))
    assert listener.sasl is not None
    listener = replace(listener, sasl=replace(listener.sasl, max_reauth_ms=max_reauth_ms))
    with (
        served(endpoint, listener, load=counted.load) as address,
        authenticated(address, "alice") as alice,
        authenticated(address, "bob") as bob,
        connected(address) as stranger,
    ):
        for _ in range(20):
            alice.sendall(request)
            assert frame_from(alice) == right
            bob.sendall(request)
            answer = response_of(FETCH, 11, frame_from(bob)).responses[0].partitions[0]
            assert (answer.error_code, answer.records) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
        stranger.sendall(request)
        assert stranger.recv(1) == b""
    assert (counted.answers > 0) == by_loop


@pytest.mark.parametrize("failing", ["look", "run", "learn", "answered"])
def test_a_loop_that_fails_is_given_up_and_its_clients_are_answered_without_it(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr("tiering.endpoint.server.TICK_S", 0.01)
    request = fetch(endpoint, MIXED, 0)
    right = the_long_way(endpoint, request[4:])
    with served(endpoint) as address, connected(address) as client:
        client.sendall(request)
        assert frame_from(client) == right
        monkeypatch.setattr(FetchLoop, failing, fail)
        deadline = time.monotonic() + 5
        while not endpoint.said and time.monotonic() < deadline:
            client.sendall(request)
            assert frame_from(client) == right
    (said,) = endpoint.said
    assert said == (
        "fetches are answered without the compiled loop from now on: a bug: RuntimeError: nobody thought of it; please report it"
    )


def test_without_a_compiled_loop_the_answers_are_the_same(endpoint: Endpoint) -> None:
    request = fetch(endpoint, MIXED, 0)
    right = the_long_way(endpoint, request[4:])
    with served(endpoint, load=lambda: None) as address, connected(address) as client:
        for _ in range(5):
            client.sendall(request)
            assert frame_from(client) == right
