import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from random import Random  # noqa: TID251  # seeded

import pytest
from asked_endpoint import Endpoint, response_of
from golden_logs import live
from logs_to_archive import copy_of
from random_messages import random_message
from raw_clients import connected, frame_from, frame_from_exactly, metadata
from served_endpoint import served
from tiered_worlds import World, batches_of

from local_log.file_range import FileRange
from local_log.os_disk import OsDisk
from tiering.endpoint.protocol.api_keys import APIS, FETCH, METADATA
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.request_context import ANONYMOUS, ConnectionContext


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["some archived dropped"], world.store)


def test_requests_that_come_together_are_answered_in_their_order(endpoint: Endpoint) -> None:
    with served(endpoint) as address, connected(address) as client:
        client.sendall(b"".join(map(metadata, range(14))))
        rest = b""
        for version in range(14):
            while len(rest) < 4 or len(rest) < 4 + int.from_bytes(rest[:4], "big"):
                rest += client.recv(1 << 20)
            size = 4 + int.from_bytes(rest[:4], "big")
            one, rest = rest[:size], rest[size:]
            assert len(response_of(METADATA, version, one).topics) == 15


def test_many_fetches_that_come_together_are_answered_in_their_order(endpoint: Endpoint) -> None:
    count = 1_500  # more than calls may be nested
    with served(endpoint) as address, connected(address) as client:
        one = endpoint.topic("g-tiny", 11, FetchPartition(0, partition_max_bytes=1))
        for _ in range(2):  # the second time they are answered at once
            client.sendall(
                b"".join(write_request(RequestHeader(FETCH, 11, n, "t"), FetchRequest(topics=(one,))) for n in range(count))
            )
            found = b""
            size = len(frame := frame_from_exactly(client))
            while len(found) < size * (count - 1):
                found += client.recv(1 << 20)
            whole = frame + found
            numbers = [int.from_bytes(whole[at + 4 : at + 8], "big") for at in range(0, len(whole), size)]
            assert numbers == list(range(count))
    assert endpoint.said == []


@pytest.mark.parametrize("topic", ["g-mixed", "g-big"])  # small batches, and those of 600 KB
def test_fetches_that_are_like_those_before_are_answered_as_they_were_and_counted(world: World, topic: str) -> None:
    endpoint, answers = Endpoint(world.folders["local alone"], None), list[bytes]()
    one = endpoint.topic(topic, 12, FetchPartition(0, partition_max_bytes=1))
    request = write_request(RequestHeader(FETCH, 12, 99, "test"), FetchRequest(topics=(one,)))
    with served(endpoint) as address, connected(address) as client, connected(address) as other:
        for _ in range(6):
            client.sendall(request)
            other.sendall(request)
            answers += [frame_from(client), frame_from(other)]
    assert set(answers) == {answers[0]}
    assert response_of(FETCH, 12, answers[0]).responses[0].partitions[0].records
    metrics = endpoint.context.metrics
    assert metrics.apis["Fetch"].requests == {12: 12}
    assert metrics.topics()[topic].fetches == 12


def test_a_slow_reader_gets_all_of_a_large_answer_and_holds_up_nobody(endpoint: Endpoint, world: World) -> None:
    one = endpoint.topic("g-big", 11, FetchPartition(0, partition_max_bytes=1 << 30))
    request = write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(topics=(one,)))
    with served(endpoint) as address, connected(address) as slow, connected(address) as quick:
        slow.sendall(request)
        quick.sendall(metadata(9))
        assert response_of(METADATA, 9, frame_from(quick)).topics
        answer = response_of(FETCH, 11, frame_from(slow)).responses[0].partitions[0]
    sent = b"".join(answer.records)
    assert len(sent) > 1 << 20, "more than the sockets hold"
    assert sent == b"".join(b.body for b in batches_of(world.folders["local alone"], "g-big-0"))


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\0\0\0\x0a" + b"\x7f" * 10, b"\0\0\0\0"]
)
def test_what_is_no_request_closes_its_connection_and_no_other(endpoint: Endpoint, data: bytes) -> None:
    with served(endpoint) as address, connected(address) as other, connected(address) as client:
        client.sendall(data)
        assert client.recv(10) == b""
        other.sendall(metadata(1))
        assert response_of(METADATA, 1, frame_from(other)).topics
    assert any("closed the connection of 127.0.0.1" in message for message in endpoint.said)


def test_mutated_requests_are_answered_or_closed_and_others_are_served_meanwhile(endpoint: Endpoint) -> None:
    random = Random(18)
    frames = [
        write_request(RequestHeader(api, version, 99, "test"), random_message(api.request, version, random))
        for api in APIS.values()
        for version in range(api.first, api.last + 1)
    ]
    with served(endpoint) as address, connected(address) as other:
        for frame in frames:
            data = bytearray(frame)
            for _ in range(random.randrange(4)):
                place = random.randrange(len(data))
                data[place : place + random.randrange(4)] = random.randbytes(random.randrange(4))
            with connected(address) as client:
                client.sendall(data)
                client.settimeout(0.01)
                with suppress(TimeoutError, ConnectionError):
                    client.recv(100)
            other.sendall(metadata(1))
            assert response_of(METADATA, 1, frame_from(other)).topics
    assert [message for message in endpoint.said if "a bug" in message] == []


def test_requests_are_handed_on_with_who_sent_them(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ConnectionContext] = []

    def answer(frame: bytes, connection: ConnectionContext, context: object) -> list[bytes]:
        seen.append(connection)
        return [b"!"]

    monkeypatch.setattr("tiering.endpoint.server.handle_at_once", answer)
    with served(endpoint) as address, connected(address) as one, connected(address) as other:
        for client in (one, other, one):
            client.sendall(b"\0\0\0\x01x")
            assert client.recv(1) == b"!"
        assert [(c.client_address, c.client_port, c.principal) for c in seen] == [
            (*client.getsockname(), ANONYMOUS) for client in (one, other, one)
        ]
    assert seen[0].connection_id == seen[2].connection_id != seen[1].connection_id


def test_further_connections_than_allowed_are_closed_and_the_first_live_on(endpoint: Endpoint) -> None:
    with served(endpoint, connections_max=1) as address, connected(address) as first:
        first.sendall(metadata(1))
        frame_from(first)
        with connected(address) as second:
            assert second.recv(1) == b""
        first.sendall(metadata(1))
        assert frame_from(first)


def test_a_client_that_does_not_read_gives_way_to_others(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiering.endpoint.server.TICK_S", 0.05)
    monkeypatch.setattr(
        "tiering.endpoint.server.handle_at_once", lambda frame, connection, context: [bytes(64 << 20 if len(frame) > 50 else 10)]
    )
    limits = {"queued_bytes_max": 1 << 20, "stalled_ms_max": 100}
    with served(endpoint, **limits) as address, connected(address) as stalled, connected(address) as other:
        stalled.sendall(b"\0\0\0\x64" + bytes(100))
        stalled.recv(1)
        other.sendall(b"\0\0\0\x01x")
        assert other.recv(10) == bytes(10)
    assert "takes nothing of its answer" in endpoint.said[0]


def test_a_file_that_is_shorter_than_its_range_closes_the_connection(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"short")

    class Trusting:
        def is_unchanged(self, seen: object) -> bool:
            return True

    ranges = [FileRange(OsDisk().open(str(tmp_path / "file")), 0, 10, Trusting(), None)]
    monkeypatch.setattr("tiering.endpoint.server.handle_at_once", lambda frame, connection, context: ranges)
    with served(endpoint) as address, connected(address) as client:
        client.sendall(b"\0\0\0\x01x")
        assert client.recv(5, socket.MSG_WAITALL) == b"short"
        assert client.recv(1) == b""
    assert "ends before position 5" in endpoint.said[0]


class Failing:
    def is_unchanged(self, seen: object) -> bool:
        raise RuntimeError("nobody thought of it")


@pytest.mark.parametrize("by_thread", [False, True])
@pytest.mark.parametrize("fails_when", ["the answer is taken", "it is sent"])
def test_an_answer_that_cannot_be_handled_closes_its_connection_and_is_told(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_thread: bool, fails_when: str
) -> None:
    (tmp_path / "file").write_bytes(bytes(10))
    broken = FileRange(OsDisk().open(str(tmp_path / "file")), 0, 10, Failing(), None) if fails_when == "it is sent" else object()
    fine = [b"!"]

    def answer(frame: bytes, *_: object) -> object:
        parts = [broken] if frame == b"x" else fine
        return (lambda: parts) if by_thread else parts

    monkeypatch.setattr("tiering.endpoint.server.handle_at_once", answer)
    with served(endpoint, request_threads=1) as address, connected(address) as other:
        for _ in range(3):
            with connected(address) as client:
                client.settimeout(5)
                client.sendall(b"\0\0\0\x01x")
                assert client.recv(1) == b""
        other.sendall(b"\0\0\0\x01y")
        assert other.recv(1) == b"!"
    assert [message.count("a bug: ") for message in endpoint.said] == [1, 1, 1]


def test_a_log_that_is_truncated_under_a_slow_reader_closes_its_connection(world: World, tmp_path: Path) -> None:
    endpoint = Endpoint(copy_of(world.folders["local alone"], tmp_path / "logs"), None)
    one = endpoint.topic("g-big", 11, FetchPartition(0, partition_max_bytes=1 << 30))
    with served(endpoint) as address, connected(address) as client, connected(address) as other:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 10)
        client.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(topics=(one,))))
        size = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
        for file in (tmp_path / "logs" / "g-big-0").glob("*.log"):
            os.truncate(file, 0)
        received = 0
        with suppress(ConnectionError):
            while more := client.recv(1 << 20):
                received += len(more)
        assert received < size
        other.sendall(metadata(1))
        assert response_of(METADATA, 1, frame_from(other)).topics
    assert "the log has been truncated meanwhile; fetch again" in endpoint.said[0]


def test_files_that_are_deleted_under_a_slow_reader_are_sent_to_their_end(world: World, tmp_path: Path) -> None:
    endpoint = Endpoint(copy_of(world.folders["local alone"], tmp_path / "logs"), None)
    one = endpoint.topic("g-big", 11, FetchPartition(0, partition_max_bytes=1 << 30))
    with served(endpoint) as address, connected(address) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        client.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(topics=(one,))))
        first = client.recv(1)
        shutil.rmtree(tmp_path / "logs" / "g-big-0")
        answer = response_of(FETCH, 11, frame_from(client, first)).responses[0].partitions[0]
    assert b"".join(answer.records) == b"".join(b.body for b in batches_of(world.folders["local alone"], "g-big-0"))


def test_a_consumer_of_librdkafka_reads_both_tiers_from_start_to_end(endpoint: Endpoint) -> None:
    import confluent_kafka

    with served(endpoint) as (host, port):
        for level in ("read_uncommitted", "read_committed"):
            consumer = confluent_kafka.Consumer(
                {
                    "bootstrap.servers": f"{host}:{port}",
                    "group.id": "unused",
                    "enable.auto.commit": False,
                    "isolation.level": level,
                    "enable.partition.eof": True,
                    "check.crcs": True,
                    "fetch.wait.max.ms": 10,
                    "auto.offset.reset": "error",
                }
            )
            topics = ("g-txn", "g-compacted-txn", "g-trimmed", "g-codec-zstd")
            starts = {topic: live(f"{topic}-0")["earliest"][0] for topic in topics}
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, start) for topic, start in starts.items()])
            found: dict[str, list[int]] = {topic: [] for topic in topics}
            ended = 0
            while ended < len(topics):
                message = consumer.poll(20)
                assert message is not None
                error = message.error()
                if error is None:
                    found[message.topic()].append(message.offset())
                else:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    ended += 1
            consumer.close()
            for topic in topics:
                want = live(f"{topic}-0")
                assert len(found[topic]) == want[f"{level}_count"], topic
                if level == "read_committed":
                    assert found[topic] == want["read_committed_offsets"], topic
    assert endpoint.said == []
