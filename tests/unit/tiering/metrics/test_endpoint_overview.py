"""The JSON from which the page for people shows an endpoint's clients, groups, transactions and topics."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from asked_endpoint import Endpoint
from logs_at_work import batch_of
from offsets_kept import MemoryLog
from raw_clients import connected, frame_from
from served_endpoint import serving
from tiered_worlds import World
from transacting_endpoint import OWN_ID, TransactingEndpoint

from tiering.endpoint.hosted_logs import HostedLogs
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.protocol.api_keys import METADATA, OFFSET_COMMIT
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.server_status import CLIENT_ID_MAX, ConnectedClient, ServerStatus, client_id_in
from tiering.metrics.endpoint_overview import ROWS_MAX, STALE_MS_MAX, EndpointOverview
from tiering.metrics.open_transactions import LATE_MS_MAX
from tiering.read.tiered_log import TieredLog

STATUS = ServerStatus(3, 4096, 100.0, is_stopping=False)


def overview(endpoint: Endpoint, *clients: ConnectedClient) -> dict[str, Any]:
    return EndpointOverview(endpoint.context, STATUS, SocketServerConfig(), clients, 1_700_000_000_000).row()


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def commit(endpoint: Endpoint, group: str, offset: int, topic: str = "orders", number: int = 0) -> None:
    partition = OffsetCommitRequestPartition(number, offset, committed_metadata="")
    request = OffsetCommitRequest(group, topics=(OffsetCommitRequestTopic(topic, partitions=(partition,)),))
    assert endpoint.ask(OFFSET_COMMIT, 8, request).topics[0].partitions[0].error_code == 0


@pytest.fixture
def own() -> TransactingEndpoint:
    one = TransactingEndpoint()
    for number in range(10):
        one.produce(batch_of(str(number)))
    return one


def test_groups_are_told_with_their_lag_the_largest_first(own: TransactingEndpoint) -> None:
    own.tier.create_topic("more")
    commit(own, "slow", 2)
    commit(own, "fast", 10)
    commit(own, "fast", 0, "more")
    slow, fast = rows(overview(own)["groups"])
    committed_ms = own.clock.now_ms()
    assert slow == {
        "group": "slow", "type": "classic", "state": "Empty", "members": 0, "lag": 8, "partitions": 1, "unknown": 0,
        "worst": "orders-0", "worst_lag": 8, "committed_ms": committed_ms,
    }  # fmt: skip
    assert (fast["group"], fast["lag"], fast["partitions"]) == ("fast", 0, 2)


def test_of_a_topic_that_is_no_more_the_lag_is_not_known(own: TransactingEndpoint) -> None:
    own.tier.create_topic("former")
    commit(own, "readers", 0, "former")
    commit(own, "readers", 7)
    own.tier.delete_topic("former")
    (group,) = rows(overview(own)["groups"])
    assert (group["lag"], group["unknown"]) == (3, 1)


def test_an_open_transaction_hangs_when_nobody_ends_it(own: TransactingEndpoint) -> None:
    producer = own.init(timeout_ms=5_000)
    own.write(producer, 0)
    (found,) = rows(overview(own)["transactions"])
    began_ms = own.clock.now_ms()
    assert found == {
        "transactional_id": OWN_ID, "producer_id": producer[0], "state": "Ongoing", "since_ms": began_ms, "timeout_ms": 5_000,
        "partitions": ["orders-0"], "partition_count": 1, "hangs": "",
    }  # fmt: skip
    own.clock.now += 5_000 + LATE_MS_MAX + 1
    (found,) = rows(overview(own)["transactions"])
    assert "longer than its timeout" in found["hangs"]
    own.end(producer, commit=True)
    assert rows(overview(own)["transactions"]) == []


def test_a_transaction_that_no_transactional_id_has_hangs_and_comes_first(own: TransactingEndpoint) -> None:
    own.write(own.init(), 0)
    own.tier.create_topic("more")
    written_ms = own.clock.now_ms()
    left = batch_of("left", offset=0, producer=4_711, epoch=0, sequence=0, transactional=True, time=written_ms)
    own.log("more").append_as_follower(left, 0)
    assert [found["transactional_id"] for found in rows(overview(own)["transactions"])] == [OWN_ID], "it may have just begun"
    own.clock.now += LATE_MS_MAX + 1
    hangs, _ = rows(overview(own)["transactions"])
    assert (hangs["transactional_id"], hangs["producer_id"], hangs["partitions"]) == (None, 4_711, ["more-0"])
    assert (hangs["since_ms"], hangs["timeout_ms"]) == (written_ms, None)
    assert "kafka-transactions abort" in hangs["hangs"]


def test_topics_are_told_with_what_was_read_and_written(own: TransactingEndpoint) -> None:
    own.fetch("orders", 0)
    (topic,) = rows(overview(own)["topics"])
    assert (topic["topic"], topic["messages_in"]) == ("orders", 10)
    assert topic["bytes_in"] == topic["bytes_out"] > 500


def test_connections_of_one_client_are_one_row_and_of_many_the_rest_is_counted(own: TransactingEndpoint) -> None:
    app = ConnectedClient("app", "192.0.2.1", "User:alice")
    others = [ConnectedClient(f"one-{at}", "192.0.2.2", "User:ANONYMOUS") for at in range(ROWS_MAX + 5)]
    clients = overview(own, app, app, *others)["clients"]
    assert clients["count"] == ROWS_MAX + 6
    found = rows(clients)
    assert len(found) == ROWS_MAX
    assert found[0] == {"client_id": "app", "address": "192.0.2.1", "principal": "User:alice", "connections": 2}


class Later(Executor):
    """Does what it is given when it is told to."""

    def __init__(self) -> None:
        self.due: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        self.due.append(partial(fn, *args, **options))
        return Future()


def test_nobody_waits_for_topics_that_have_to_be_looked_at_for_the_lag(world: World) -> None:
    endpoint, later = Endpoint(world.folders["local alone"], None, MemoryLog()), Later()
    commit(endpoint, "readers", 2, "g-txn")
    logs = endpoint.context.logs
    assert isinstance(logs, HostedLogs)
    endpoint.context = replace(endpoint.context, logs=HostedLogs(logs.tiers, endpoint.clock, background=later))
    for _ in range(2):
        (group,) = rows(overview(endpoint)["groups"])
        assert (group["lag"], group["unknown"]) == (0, 1), "it has just started"
    (look,) = later.due
    look()
    topic = endpoint.context.logs.known()["g-txn"]
    log = topic.partitions[0]
    assert isinstance(log, TieredLog)
    (group,) = rows(overview(endpoint)["groups"])
    assert (group["lag"], group["unknown"]) == (log.end_offset() - 2, 0)
    endpoint.clock.set_by_ms = 3_600_000  # of the wall clock, by which nobody says when it was looked at
    for passed_ms in (2_000, STALE_MS_MAX - 2_000):
        endpoint.clock.now += passed_ms
        overview(endpoint)
    assert later.due == [look], "that is recent enough"
    endpoint.clock.now += 1
    (group,) = rows(overview(endpoint)["groups"])
    assert group["lag"] == log.end_offset() - 2, "as it was last seen"
    assert len(later.due) == 2, "it is looked at again"


def test_where_nothing_is_written_there_are_no_transactions(world: World) -> None:
    found = overview(Endpoint(world.folders["local alone"], None))
    assert (found["transactions"]["rows"], found["is_written"], found["state"]) == ([], False, "running")


def test_a_client_is_known_by_what_it_called_itself(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    with serving(endpoint) as (server, address), connected(address) as client, connected(address):
        client.sendall(write_request(RequestHeader(METADATA, 1, 99, "a client"), MetadataRequest(topics=())))
        frame_from(client)
        told = server.clients
    assert told[0] == ConnectedClient("a client", "127.0.0.1", "User:ANONYMOUS")
    assert told[1:] in ((), (ConnectedClient("", "127.0.0.1", "User:ANONYMOUS"),)), "who has just come may not be there yet"


def test_a_client_id_is_kept_in_part_and_what_is_none_is_empty() -> None:
    head = b"\0\3\0\1\0\0\0\1"
    assert client_id_in(head + b"\0\2ab...") == "ab"
    assert client_id_in(head + b"\xff\xff...") == ""
    assert client_id_in(head + b"\x7f\xff" + b"a" * 40_000) == "a" * CLIENT_ID_MAX
    assert client_id_in(head + b"\0\2\xff\xfe") == "\ufffd\ufffd"
    assert [client_id_in(head[:size]) for size in range(9)] == [""] * 9
