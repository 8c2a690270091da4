import socket
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from select import select
from typing import Any

import pytest
from asked_endpoint import Endpoint, response_of
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from logs_to_archive import copy_of, offload_all, set_checkpoint
from loop_clients import LoopClient, fetch_loop, the_long_way
from tiered_worlds import World, batches_of

from local_log.file_range import FileRange
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.os_disk import OsDisk, OsWritableDisk
from remote.store.open import open_store
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers
from tiering.endpoint.fetch_loop import loop as loops
from tiering.endpoint.fetch_loop.known_batches import KnownBatches
from tiering.endpoint.fetch_loop.known_requests import FRESH_MS, IDLE_MS, KnownRequests
from tiering.endpoint.fetch_loop.loop import FetchLoop, Received, Unsent
from tiering.endpoint.fetch_loop.tables import ANSWERS_MAX, READY_MAX
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.reads import Reads
from tiering.read.tiered_log import TieredLog

MIXED = "g-mixed"


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
    assert client.event(fetch(endpoint, *offsets[:1])) is None
    client.answer()
    return client


@pytest.fixture(scope="module")
def endpoints(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Endpoint]:
    """Over the log directory, over it with an archive behind it, and over a folder of segments alone."""
    folder = open_store(str(tmp_path_factory.mktemp("folder")))
    offload_all(world.folders["local alone"], folder)
    return [
        Endpoint(world.folders["local alone"], None),
        Endpoint(world.folders["some archived dropped"], world.store),
        Endpoint(None, folder),
    ]


@pytest.fixture
def loop(endpoints: list[Endpoint]) -> Iterator[FetchLoop]:
    with fetch_loop(endpoints[0]) as found:
        yield found


@pytest.fixture
def changing(world: World, tmp_path: Path) -> Iterator[tuple[Endpoint, FetchLoop, Path]]:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)
    with fetch_loop(endpoint) as found:
        yield endpoint, found, folder


requests = st.fixed_dictionaries(
    {
        "version": st.integers(5, 18),
        "topic": st.sampled_from([MIXED, MIXED, "g-big", "g-txn", "g-compacted", "g-epochs", "g-trimmed"]),
        "client_id": st.sampled_from([None, "", "a client", "ä" * 100]),
        "partition_max_bytes": st.sampled_from([0, 1, 700, 5_000, 1 << 20, (1 << 31) - 1]),
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


class Counted(tuple[int, ...]):
    def __sub__(self, other: "Counted") -> "Counted":
        return Counted(a - b for a, b in zip(self, other, strict=True))


def counted(endpoint: Endpoint, topic: str) -> Counted:
    found = endpoint.context.metrics.topics().get(topic)
    return Counted((found.bytes_out, found.fetches, found.failed_fetches) if found else (0, 0, 0))


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
    assert (found.data, found.asked.size) == (right, len(frame))
    assert found.sent < len(found.data)
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


def test_a_log_that_has_grown_is_no_longer_answered_for_as_it_was(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    end = endpoint.context.logs.topic(MIXED).partitions[0].end_offset()  # type: ignore[union-attr]
    client = known(endpoint, loop)
    endpoint.clock.sleep(0.4)
    assert client.event(fetch(endpoint)) is None
    client.answer()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, f"{MIXED}-0", end - 1)
    endpoint.clock.sleep(1)
    assert client.event(fetch(endpoint)) is not None
    client.arm()
    right = the_long_way(endpoint, fetch(endpoint))
    for _ in range(3):
        assert client.ask(fetch(endpoint)) == right
    assert client.by_loop > 0


def test_a_log_that_is_to_be_looked_at_and_is_the_same_is_answered_for_again(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, _ = changing
    client = known(endpoint, loop)
    endpoint.clock.sleep(1)
    assert client.event(fetch(endpoint)) is not None
    client.arm()
    right = the_long_way(endpoint, fetch(endpoint))
    assert client.event(fetch(endpoint)) is None
    assert client.answer() == right


def test_topics_that_were_fetched_a_while_ago_are_looked_at_before_they_are_fetched_again(
    changing: tuple[Endpoint, FetchLoop, Path],
) -> None:
    class AtOnce(Executor):
        def submit(self, work: Any, *of: Any) -> Any:  # type: ignore[override]
            work(*of)

    endpoint, loop, _ = changing
    endpoint.context.logs.background = AtOnce()  # type: ignore[union-attr]
    client = known(endpoint, loop)
    for _ in range(4 * FRESH_MS // 1000):
        endpoint.clock.sleep(0.6)
        loop.look_at_topics()
    assert client.event(fetch(endpoint)) is not None, "nobody has fetched it for long"
    endpoint.context.logs.topic(MIXED)
    client.arm()
    assert client.event(fetch(endpoint)) is None
    for _ in range(10):
        endpoint.clock.sleep(0.6)
        loop.look_at_topics()
    assert client.event(fetch(endpoint)) is None


def test_a_file_that_was_truncated_and_written_anew_is_not_answered_from(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    client, batches = known(endpoint, loop, 0, 1), batches_of(folder, f"{MIXED}-0")
    (file, *_) = sorted((folder / f"{MIXED}-0").glob("*.log"))
    data = file.read_bytes()
    file.write_bytes(data[: len(batches[0].body) // 2])
    assert client.event(fetch(endpoint)) is not None, "it ends in the batch"
    file.write_bytes(data[:17] + bytes(4) + data[21:])
    client.arm()
    assert client.event(fetch(endpoint)) is not None, "another checksum"
    file.write_bytes(data)
    client.arm()
    for _ in range(3):
        assert client.ask(fetch(endpoint)) == the_long_way(endpoint, fetch(endpoint))


def test_an_answer_of_several_batches_begins_with_the_one_that_is_known(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    batches = batches_of(folder, f"{MIXED}-0")
    request = fetch(endpoint, max_bytes=len(batches[0].body) + len(batches[1].body))
    client = LoopClient(endpoint, loop)
    for _ in range(4):
        client.ask(request)
    assert client.by_loop > 0
    (file, *_) = sorted((folder / f"{MIXED}-0").glob("*.log"))
    with file.open("r+b") as written:  # others that end where the last one begins, which is there again
        written.write((1 << 40).to_bytes(8, "big"))
    assert client.event(request) is not None


def test_a_file_whose_place_another_has_taken_is_forgotten_within_a_second(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    client = known(endpoint, loop)
    (file, *_) = sorted((folder / f"{MIXED}-0").glob("*.log"))
    endpoint.context.reads.forget_recent()
    loop.look()
    assert client.event(fetch(endpoint)) is None, "it is the same"
    right = client.answer()
    cleaned = file.with_suffix(".cleaned")
    cleaned.write_bytes(file.read_bytes())
    cleaned.rename(file)
    assert client.event(fetch(endpoint)) is None, "it is open yet"
    assert client.answer() == right
    endpoint.context.reads.forget_recent()
    loop.look()
    assert client.event(fetch(endpoint)) is not None


def test_more_requests_than_there_is_room_for_do_not_take_the_place_of_those_in_use(
    changing: tuple[Endpoint, FetchLoop, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiering.endpoint.fetch_loop.known_requests.REQUESTS_MAX", 2)
    endpoint, loop, _ = changing
    clients = [LoopClient(endpoint, loop) for _ in range(3)]
    requests = [fetch(endpoint, 0, version) for version in (9, 10, 11)]

    def asked(times: int = 4) -> list[int]:
        before = [one.by_loop for one in clients]
        for _ in range(times):
            for client, request in zip(clients, requests, strict=True):
                assert client.ask(request) == the_long_way(endpoint, request)
        return [one.by_loop - count for one, count in zip(clients, before, strict=True)]

    asked()
    assert asked() == [4, 4, 0]
    endpoint.clock.sleep(IDLE_MS / 1000)
    endpoint.context.logs.topic(MIXED)
    for _ in range(3):
        assert clients[2].ask(requests[2]) == the_long_way(endpoint, requests[2])
    assert clients[2].by_loop > 0, "the others were idle"


def test_the_loop_looks_at_no_more_batches_than_its_answers_are_worth(
    endpoints: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LEARNED_MAX", 1)
    monkeypatch.setattr(loops, "LEARNED_A_SECOND", 2)
    looked = list[int]()
    learn = KnownBatches.learn

    def counted(self: KnownBatches, log: TieredLog, offset: int, sent: FileRange, reads: Reads) -> None:
        looked.append(offset)
        learn(self, log, offset, sent, reads)

    monkeypatch.setattr(KnownBatches, "learn", counted)
    monkeypatch.setattr("tiering.endpoint.fetch_loop.known_batches.LEARNED_BYTES", 1)  # nothing is ever known
    endpoint = endpoints[0]
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        with monkeypatch.context() as patch:
            patch.setattr(KnownRequests, "add", lambda *_: None)  # as of a log that this process writes
            for _ in range(20):
                client.ask(fetch(endpoint))
        assert looked == []
        for _ in range(20):
            assert client.ask(fetch(endpoint)) == the_long_way(endpoint, fetch(endpoint))
        assert len(looked) == 1
        loop.look()
        for _ in range(20):
            client.ask(fetch(endpoint))
        assert len(looked) == 3
        assert client.by_loop == 0


def test_who_may_not_read_any_more_is_not_answered_by_the_loop(endpoints: list[Endpoint], tmp_path: Path) -> None:
    endpoint = Endpoint(None, None)
    path = tmp_path / "acls.json"
    path.write_bytes(write_acls([Acl(ResourceType.TOPIC, MIXED, "User:ANONYMOUS", Operation.READ)]))
    acls = AclFile(OsDisk(), OsWritableDisk(), str(path), endpoint.clock, Authorizer(), endpoint.said.append)
    acls.load()
    endpoint.context = replace(endpoints[0].context, acls=acls)
    with fetch_loop(endpoint) as loop:
        client = known(endpoint, loop)
        other = LoopClient(endpoint, loop)
        loop.arm(other.server.fileno(), replace(endpoint.connection, client_address="192.0.2.2"))
        assert other.event(fetch(endpoint)) is not None, "another address may have other rights"
        acls.change(lambda _: [])
        assert client.event(fetch(endpoint)) is not None
        acls.change(lambda _: [Acl(ResourceType.TOPIC, MIXED, "User:ANONYMOUS", Operation.READ)])
        client.arm()
        for _ in range(3):
            client.ask(fetch(endpoint))
        assert client.by_loop > 0


def test_what_another_broker_leads_is_not_answered_by_the_loop(endpoints: list[Endpoint]) -> None:
    endpoint = Endpoint(None, None)
    endpoint.context = replace(endpoints[0].context, cluster=endpoint.context.cluster)
    with fetch_loop(endpoint) as loop:
        client = known(endpoint, loop)
        endpoint.context.cluster.live = LiveBrokers(1, (Broker(2, "broker.test", 9092),))
        assert client.event(fetch(endpoint)) is not None
