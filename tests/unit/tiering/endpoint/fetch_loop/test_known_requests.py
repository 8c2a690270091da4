from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_endpoint import Endpoint
from logs_to_archive import set_checkpoint
from loop_clients import MIXED, LoopClient, fetch, fetch_loop, known, the_long_way

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers
from tiering.endpoint.fetch_loop.known_requests import FRESH_MS, IDLE_MS
from tiering.endpoint.fetch_loop.loop import FetchLoop


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
