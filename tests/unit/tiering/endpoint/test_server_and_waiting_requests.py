"""Fetches that wait for records and members that wait for others: when they are answered, and that they hold up nobody."""

import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from select import select

import pytest
from asked_endpoint import Endpoint, response_of
from logs_to_archive import copy_of, set_checkpoint
from raw_clients import connected, frame_from, metadata
from served_endpoint import served
from tiered_worlds import World

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from tiering.endpoint.apis import kafka_apis
from tiering.endpoint.apis.context import Context
from tiering.endpoint.hosted_logs import HostedLogs
from tiering.endpoint.protocol.api_keys import FETCH, JOIN_GROUP, METADATA
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.requests import RequestHeader, write_request


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["some archived dropped"], world.store)


def test_a_fetch_at_the_end_waits_as_long_as_it_may(endpoint: Endpoint) -> None:
    one = endpoint.topic("g-tiny", 11, FetchPartition(0, fetch_offset=1, partition_max_bytes=1 << 20))
    waits = FetchRequest(max_wait_ms=150, min_bytes=1, topics=(one,))
    with served(endpoint) as address, connected(address) as client:
        client.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), waits))
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(20)
        assert response_of(FETCH, 11, frame_from(client)).responses[0].partitions[0].records == ()


def test_fetches_that_wait_and_clients_that_leave_hold_up_no_requests(endpoint: Endpoint) -> None:
    one = endpoint.topic("g-tiny", 11, FetchPartition(0, fetch_offset=1, partition_max_bytes=1 << 20))
    waits = write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(one,)))
    with served(endpoint, request_threads=1) as address, connected(address) as waiting, connected(address) as other:
        waiting.sendall(waits)
        for _ in range(3):
            with connected(address) as left:
                left.sendall(metadata(1))
        other.sendall(metadata(1))
        assert response_of(METADATA, 1, frame_from(other)).topics


def test_fetches_that_wait_look_at_their_logs_together_and_wake_when_one_has_news(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiering.endpoint.delayed_fetches.POLL_S", 0.02)
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    end = world.log("local alone", "g-trimmed-0").end_offset()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-trimmed-0", end - 500)
    endpoint, answer, look = Endpoint(folder, None), kafka_apis.answer_fetch, HostedLogs.topic
    asked, looks = list[str](), list[str]()

    def answered(waiting: kafka_apis.Waits, context: Context, *, may_wait: bool) -> object:
        asked.append(waiting.request.topics[0].topic)
        return answer(waiting, context, may_wait=may_wait)

    def looked(self: HostedLogs, name: str) -> object:
        looks.append(name)
        return look(self, name)

    def look_on() -> None:
        looks.clear()
        while looks.count("g-tiny") < 3:
            time.sleep(0.01)

    monkeypatch.setattr(kafka_apis, "answer_fetch", answered)
    monkeypatch.setattr(HostedLogs, "topic", looked)
    with served(endpoint) as address, ExitStack() as clients:
        waiting: dict[str, list[socket.socket]] = {"g-trimmed": [], "g-tiny": []}
        for topic, offset in (("g-trimmed", end - 500), ("g-tiny", 1)):
            assert endpoint.context.logs.topic(topic)
            one = endpoint.topic(topic, 11, FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20))
            request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(one,))
            for _ in range(5):
                client = clients.enter_context(connected(address))
                client.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), request))
                waiting[topic].append(client)
        while min(asked.count(topic) for topic in waiting) < 5:
            time.sleep(0.01)
        before = -1
        while before != len(asked):
            before = len(asked)
            look_on()
        assert len(asked) < 40
        asked.clear()
        assert abs(looks.count("g-trimmed") - looks.count("g-tiny")) <= 1
        set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-trimmed-0", end)
        endpoint.clock.sleep(1)
        for client in waiting["g-trimmed"]:
            assert response_of(FETCH, 11, frame_from(client)).responses[0].partitions[0].records
        assert "g-tiny" not in asked


def test_stopping_closes_what_waits(endpoint: Endpoint) -> None:
    one = endpoint.topic("g-tiny", 11, FetchPartition(0, fetch_offset=1, partition_max_bytes=1 << 20))
    waits = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(one,))
    with served(endpoint) as address:
        idle, waiting = connected(address), connected(address)
        waiting.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), waits))
        idle.sendall(metadata(1))
        frame_from(idle)
    assert idle.recv(1) == b""
    assert response_of(FETCH, 11, frame_from(waiting)).error_code == 0
    assert waiting.recv(1) == b""
    idle.close()
    waiting.close()


def test_any_number_of_requests_that_hang_hold_up_no_others(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def answer(frame: bytes, *_: object) -> object:
        def by_thread() -> list[bytes]:
            if frame[:2] == b"\0\2":
                assert goes_on.wait(20)
            return [frame]

        return by_thread

    monkeypatch.setattr("tiering.endpoint.server.handle_at_once", answer)
    limits = {"request_threads": 2, "archive_threads": 2}
    with served(endpoint, **limits) as address, ExitStack() as clients, connected(address) as other:
        hanging = [clients.enter_context(connected(address)) for _ in range(20)]
        for number, client in enumerate(hanging):
            client.sendall(b"\0\0\0\x03\0\2" + bytes([number]))
        other.settimeout(5)
        for _ in range(3):
            other.sendall(b"\0\0\0\x02\0\3")
            assert other.recv(2) == b"\0\3"
        hanging.pop().close()
        goes_on.set()
        assert [client.recv(3)[2] for client in hanging] == list(range(19))


def join(client_id: str = "test") -> bytes:
    """Of a new member, in a version that asks for no id first."""
    protocols = (JoinGroupRequestProtocol("range", b""),)
    request = JoinGroupRequest("readers", 10_000, 60_000, protocol_type="consumer", protocols=protocols)
    return write_request(RequestHeader(JOIN_GROUP, 3, 99, client_id), request)


def test_who_joins_a_group_waits_for_others_and_holds_up_nobody(endpoint: Endpoint) -> None:
    with served(endpoint, request_threads=1) as address, connected(address) as first, connected(address) as second:
        first.sendall(join())
        with connected(address) as gone:
            gone.sendall(join())
        second.sendall(metadata(12))
        assert len(response_of(METADATA, 12, frame_from(second)).topics) == 15
        while not select([first], [], [], 0.2)[0]:  # the first rebalance waits for more members as long as some come
            endpoint.clock.now += 3_000
        answer = response_of(JOIN_GROUP, 3, frame_from(first))
        assert (answer.error_code, answer.generation_id) == (0, 1)


def test_who_waits_for_an_answer_that_cannot_be_written_is_closed(endpoint: Endpoint) -> None:
    with served(endpoint) as address, connected(address) as client:
        client.sendall(join("c" * 32_767))  # the id of the member begins with it
        while not select([client], [], [], 0.2)[0]:
            endpoint.clock.now += 3_000
        assert client.recv(1) == b""
    assert "32767 are the most" in endpoint.said[0]


def test_who_waits_for_others_is_answered_when_the_endpoint_stops(endpoint: Endpoint) -> None:
    with served(endpoint) as address:
        client = connected(address)
        client.sendall(join())
        while not endpoint.context.groups.describe_group("readers", 6).members:
            pass
    assert response_of(JOIN_GROUP, 3, frame_from(client)).error_code == 16
    client.close()
