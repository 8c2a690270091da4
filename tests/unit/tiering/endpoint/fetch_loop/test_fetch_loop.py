import socket
from select import select
from typing import Any

import pytest
from asked_endpoint import Endpoint, bytes_of, response_of
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from loop_clients import MIXED, LoopClient, counted, fetch, fetch_loop, known, the_long_way

from tiering.endpoint.fetch_loop import loop as loops
from tiering.endpoint.fetch_loop.loop import FetchLoop, Received, Unsent
from tiering.endpoint.fetch_loop.tables import ANSWERS_MAX, READY_MAX
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request

NONE = "g-codec-none"


requests = st.fixed_dictionaries(
    {
        "version": st.integers(5, 18),
        "topic": st.sampled_from([MIXED, MIXED, "g-big", NONE, "g-txn", "g-compacted", "g-epochs", "g-trimmed"]),
        "client_id": st.sampled_from([None, "", "a client", "ä" * 100]),
        "partition_max_bytes": st.sampled_from([0, 1, 700, 5_000, 40_000, 100_000, 1 << 20, (1 << 31) - 1]),
        "max_bytes": st.sampled_from([0, 1, 700, 1 << 20]),
        "min_bytes": st.sampled_from([0, 1, 600, 1 << 30]),
        "max_wait_ms": st.sampled_from([0, 500]),
        "epoch": st.sampled_from([-1, 0, 1, 7]),
        "session": st.booleans(),
        "trailing": st.sampled_from([b"", b"librdkafka"]),
    }
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), requests, st.integers(0, 2))
def test_the_loop_gives_the_bytes_that_all_requests_get_and_counts_the_same(
    endpoints: list[Endpoint], data: st.DataObject, asks: dict[str, Any], place: int
) -> None:
    endpoint, topic, version = endpoints[place], asks["topic"], asks["version"]
    hosted = endpoint.context.logs.topic(topic)
    end = hosted.partitions[0].end_offset() if hosted else 10  # type: ignore[union-attr]
    epoch = asks["epoch"] if version >= 9 else -1
    offsets = data.draw(st.lists(st.integers(-1, end + 1), min_size=1, max_size=4))
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        for offset in [0, 0, *offsets, *offsets, *offsets]:
            partition = FetchPartition(
                0, fetch_offset=offset, partition_max_bytes=asks["partition_max_bytes"], current_leader_epoch=epoch
            )
            message = FetchRequest(
                topics=(endpoint.topic(topic, version, partition),),
                max_bytes=asks["max_bytes"],
                min_bytes=asks["min_bytes"],
                max_wait_ms=asks["max_wait_ms"],
            )
            correlation_id = data.draw(st.integers(-(1 << 31), (1 << 31) - 1))
            header = RequestHeader(FETCH, version, correlation_id, asks["client_id"])
            frame = write_request(header, message)[4:] + asks["trailing"]
            before = counted(endpoint, topic)
            right = the_long_way(endpoint, frame)
            between, by_loop = counted(endpoint, topic), client.by_loop
            assert client.ask(frame) == right
            if client.by_loop > by_loop:
                assert counted(endpoint, topic) - between == between - before
        event(f"{min(client.by_loop, 3)} or more by the loop")


@pytest.mark.parametrize("version", range(5, 19))
def test_fetches_that_are_like_those_before_are_answered_by_the_loop_with_their_own_ids(
    endpoints: list[Endpoint], loop: FetchLoop, version: int
) -> None:
    endpoint, client = endpoints[0], LoopClient(endpoints[0], loop)
    for number in range(12):
        offset, frame = number % 4, fetch(endpoint, number % 4, version, correlation_id=99)
        right = the_long_way(endpoint, frame)
        assert client.ask(frame) == right is not None, offset
        assert response_of(FETCH, version, right).responses[0].partitions[0].records
    assert client.by_loop >= 6
    other = LoopClient(endpoint, loop)
    assert other.ask(frame) == right
    assert other.by_loop == 1, "another connection needs not be known"
    requests = endpoint.context.metrics.apis[FETCH.name].requests[version]
    assert other.event(fetch(endpoint, 3, version)[:-1] + b"!") is not None
    assert endpoint.context.metrics.apis[FETCH.name].requests[version] == requests


def test_what_is_not_one_whole_request_that_is_known_comes_back_as_it_came(endpoints: list[Endpoint], loop: FetchLoop) -> None:
    client = known(endpoints[0], loop)
    frame = fetch(endpoints[0])
    whole = len(frame).to_bytes(4, "big") + frame
    for data in (whole[:3], whole[:-1], whole + whole, whole[:-1] + b"!", b"GET / HTTP/1.1\r\n\r\n"):
        client.client.sendall(data)
        assert loop.run(may_answer=True) == Received(client.server.fileno(), data)
        client.send(frame)
        assert loop.run(may_answer=True) == Received(client.server.fileno(), whole), "it is not armed"
        client.arm()
    assert client.event(frame, may_answer=False) == Received(client.server.fileno(), whole)
    client.arm()
    assert client.event(fetch(endpoints[0], 1 << 40)) is not None, "an offset that there is not"


def test_a_client_that_is_gone_is_an_event_without_bytes(endpoints: list[Endpoint], loop: FetchLoop) -> None:
    client = known(endpoints[0], loop)
    client.client.close()
    assert loop.run(may_answer=True) == Received(client.server.fileno(), b"")
    client.close()
    assert loop.run(may_answer=True) is None


def test_what_the_socket_does_not_take_of_an_answer_is_given_back(endpoints: list[Endpoint], loop: FetchLoop) -> None:
    client = known(endpoints[0], loop)
    frame, taken = fetch(endpoints[0]), 0
    client.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    right, before = the_long_way(endpoints[0], frame), counted(endpoints[0], MIXED)
    while (found := client.event(frame)) is None:
        taken += 1
    assert isinstance(found, Unsent)
    assert right is not None
    assert (b"".join(map(bytes_of, found.parts)), found.asked.size) == (right, len(frame))
    assert found.sent < len(right)
    after = counted(endpoints[0], MIXED)
    for _ in range(taken):
        assert client.answer() == right
    assert client.client.recv(found.sent, socket.MSG_WAITALL) == right[: found.sent]
    assert (after - before)[1] == taken + 1, "it is counted although it is not sent"


def test_more_connections_than_fit_into_one_call_are_all_answered_in_calls_of_limited_length(
    endpoints: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LIMIT_NS", 200_000)
    endpoint, frame = endpoints[0], fetch(endpoints[0])
    with fetch_loop(endpoint) as loop:
        first = known(endpoint, loop)
        clients = [first, *(LoopClient(endpoint, loop) for _ in range(max(READY_MAX, ANSWERS_MAX) + 10))]
        for one in clients:
            one.send(frame)
        calls = 0
        while select([loop], [], [], 0)[0]:
            assert loop.run(may_answer=True) is None
            calls += 1
        assert calls > 1
        assert {one.answer() for one in clients} == {the_long_way(endpoint, frame)}
        assert [socket for socket, _ in loop.answered()] == [one.server.fileno() for one in clients]
        assert list(loop.answered()) == [], "they are told once"
        first.send(frame)
        loop.run(may_answer=True)
        assert [socket for socket, _ in loop.answered()] == [first.server.fileno()]


def test_a_connection_that_is_closed_while_it_is_ready_is_not_received_from(
    endpoints: list[Endpoint], loop: FetchLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [LoopClient(endpoints[0], loop) for _ in range(3)]
    for one in clients:
        one.client.sendall(b"?")
    first = loop.run(may_answer=True)
    assert first is not None
    (gone,) = [one for one in clients[1:] if one is not clients[2]]
    number = gone.server.fileno()
    gone.close()
    a, b = socket.socketpair()
    pair = [one for one in (a, b) if one.fileno() == number]
    for one in (a, b):
        one.sendall(b"of another")
    last = loop.run(may_answer=True)
    assert last == Received(clients[2].server.fileno(), b"?")
    assert loop.run(may_answer=True) is None
    assert pair, "the number was given away again"
    assert a.recv(100) == b.recv(100) == b"of another"
    for one in (a, b):
        one.close()
