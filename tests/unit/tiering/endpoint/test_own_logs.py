"""The endpoint on log directories of its own: what is appended is there at once, over both tiers, until it is deleted."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from asked_endpoint import bytes_of
from hand_made import batch, record
from local_tiers import ORDERS, SMALL, Host, produce
from managed import T0
from own_endpoint import OwnEndpoint

from local_log.formats.batches import scan
from local_log.formats.header_layout import TRANSACTIONAL
from local_log.formats.list_offsets import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED
from local_log.log_reader import open_log
from remote import archive
from remote.errors import Unavailable
from tiering.endpoint.apis.kafka_apis import Waits, handle
from tiering.endpoint.apis.repeated_fetches import repeated
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import AclIndex, Authorizer
from tiering.endpoint.delayed_fetches import DelayedFetch, DelayedFetches
from tiering.endpoint.protocol.api_keys import (
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages import describe_log_dirs as log_dirs
from tiering.endpoint.protocol.messages import describe_producers as producers
from tiering.endpoint.protocol.messages import offset_for_leader_epoch as epochs
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.settings import DEFAULTS
from tiering.local_tier.local_retention import retain
from tiering.local_tier.local_tier import LocalTier
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan

TIERED = {**SMALL, "remote.storage.enable": "true", "retention.ms": "-1", "local.retention.bytes": "0"}


def offsets_in(found: PartitionData) -> list[int]:
    data = b"".join(map(bytes_of, found.records or ()))
    return [] if not data else scan(data)[0].base_offset.tolist()


def listed(endpoint: OwnEndpoint, timestamp: int, version: int = 9) -> int:
    topic = ListOffsetsTopic("orders", (ListOffsetsPartition(0, timestamp=timestamp, max_num_offsets=100),))
    return endpoint.ask(LIST_OFFSETS, version, ListOffsetsRequest(topics=(topic,))).topics[0].partitions[0]


def offloaded(tier: LocalTier, store: MemoryStore, ids: CountingIds) -> None:
    """What is inactive goes up, and leaves the disk."""
    archive.create_archive(store, FixedClock(), ids)
    log = tier.log(ORDERS)
    reader = open_log(log.folder.disk, log.folder.path, ORDERS, log.log_start_offset, log.high_watermark)
    done = offload(plan(reader, store), OffloadRun(store, FixedClock(), ids, "source", lambda _: None))
    assert [one.error for one in done if one.error] == []
    assert retain(log, reader, store, T0) > 0


def test_a_record_can_be_fetched_as_soon_as_it_is_appended() -> None:
    tier = Host().started()
    tier.create_topic("orders", 2)
    endpoint = OwnEndpoint(tier)
    assert endpoint.ask(METADATA, 12, MetadataRequest(topics=None)).topics[0].topic_id == tier.topic("orders").topic_id
    for end in range(3):
        found = endpoint.fetch("orders", end, version=13)
        assert (found.error_code, found.high_watermark, offsets_in(found)) == (ErrorCode.NONE, end, [])
        produce(tier, ORDERS, 1)
        found = endpoint.fetch("orders", end, version=13)
        assert (found.high_watermark, found.log_start_offset, offsets_in(found)) == (end + 1, 0, [end])
    assert offsets_in(endpoint.fetch("orders", 0)) == [0, 1, 2]
    assert offsets_in(endpoint.fetch("orders", 0, version=2)) == [0, 1, 2]  # in messages of clients before 0.11
    assert endpoint.fetch("orders", 4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (listed(endpoint, LATEST).offset, listed(endpoint, EARLIEST).offset) == (3, 0)
    assert listed(endpoint, LATEST, 0).old_style_offsets == (3, 0)


def test_an_answer_is_as_large_as_it_may_be_and_has_one_batch_at_least() -> None:
    tier = Host().started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 5)
    endpoint = OwnEndpoint(tier)
    sizes = [sum(len(bytes_of(part)) for part in endpoint.fetch("orders", 0, most).records or ()) for most in (1, 400, 1 << 20)]
    whole = len(tier.log(ORDERS).read(0, 1 << 20).records)
    assert sizes == [whole // 5, 400, whole]
    two = [FetchPartition(0, fetch_offset=0, partition_max_bytes=1)] * 2
    asked = FetchRequest(topics=(FetchTopic("orders", partitions=tuple(two)),))
    assert len(endpoint.ask(FETCH, 11, asked).responses[0].partitions[0].records) == 1


def test_fetches_that_are_alike_are_answered_in_short_with_what_is_there_by_now() -> None:
    tier = Host().started()
    tier.create_topic("orders")
    endpoint = OwnEndpoint(tier)
    at_once = replace(endpoint.context, may_wait=False)
    asked = (FetchTopic("orders", partitions=(FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20),)),)
    message = FetchRequest(max_wait_ms=500, min_bytes=1, session_epoch=-1, topics=asked)
    frame = write_request(RequestHeader(FETCH, 11, 99, "test"), message)[4:]
    fetch = repeated(frame, 1 << 20)
    assert fetch is not None
    assert fetch.answer(frame, endpoint.connection, at_once) is None  # it waits
    for count in range(1, 4):
        produce(tier, ORDERS, 1)
        short, whole = fetch.answer(frame, endpoint.connection, at_once), handle(frame, endpoint.connection, endpoint.context)
        assert short is not None
        assert isinstance(whole, list)
        data = b"".join(map(bytes_of, short.parts))
        assert data == b"".join(map(bytes_of, whole))
        assert scan(data[-len(bytes_of(short.parts[1])) :])[0].base_offset.tolist() == list(range(count))


def test_old_offsets_come_from_the_archive_and_new_ones_need_no_store() -> None:
    host, store = Host(settings=TIERED), MemoryStore()
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 40)
    offloaded(tier, store, host.ids)
    endpoint = OwnEndpoint(tier, store)
    found, offset = [], 0
    while offset < 40:
        of_fetch = offsets_in(endpoint.fetch("orders", offset, 700))
        found += of_fetch
        offset = of_fetch[-1] + 1
    assert found == list(range(40))
    local = listed(endpoint, EARLIEST_LOCAL).offset
    assert 0 < local <= listed(endpoint, LATEST_TIERED).offset + 1 <= 40
    assert listed(endpoint, EARLIEST).offset == 0
    assert endpoint.fetch("orders", 0, level=1).aborted_transactions == ()
    assert endpoint.fetch("orders", 3, version=2).records
    assert listed(endpoint, LATEST, 0).old_style_offsets[-1] == 0

    class Down(MemoryStore):
        def list(self, *args: object, **options: object) -> object:  # type: ignore[override]
            raise Unavailable("the store is down")

    alone = OwnEndpoint(tier, Down())
    assert offsets_in(alone.fetch("orders", local)) != []
    assert alone.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "the store is down" in alone.said[-1]


@pytest.mark.parametrize("other", [MemoryStore(), None])
def test_what_only_the_archive_has_is_not_skipped_where_there_is_none_or_another_one(other: MemoryStore | None) -> None:
    host = Host(settings=TIERED)
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 40)
    offloaded(tier, MemoryStore(), host.ids)
    endpoint = OwnEndpoint(tier, other)
    local = listed(endpoint, EARLIEST_LOCAL).offset
    assert (listed(endpoint, EARLIEST).offset, offsets_in(endpoint.fetch("orders", local))[0]) == (0, local)
    asked = [endpoint.fetch("orders", offset, level=level) for offset in (0, local - 1) for level in (0, 1)]
    asked += [endpoint.fetch("orders", 0, version=2), listed(endpoint, T0)]
    assert [one.error_code for one in asked] == [ErrorCode.KAFKA_STORAGE_ERROR] * len(asked)
    assert f"lacks offsets [0, {local}): the archive has nothing of this partition" in endpoint.said[0]


def test_topics_are_known_as_they_are_made_grown_and_deleted() -> None:
    tier = Host().started()
    endpoint = OwnEndpoint(tier)
    assert endpoint.ask(METADATA, 12, MetadataRequest(topics=None)).topics == ()

    def described() -> object:
        return endpoint.ask(METADATA, 12, MetadataRequest((MetadataRequestTopic(name="orders"),), False)).topics[0]

    former = tier.create_topic("orders").topic_id
    assert [one.partition_index for one in described().partitions] == [0]
    tier.create_partitions("orders", 3)
    assert [(one.partition_index, one.leader_id) for one in described().partitions] == [(0, 1), (1, 1), (2, 1)]
    assert endpoint.logs.topic_by_id(former).name == "orders"
    tier.delete_topic("orders")
    assert described().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert endpoint.logs.topic_by_id(former) is None
    assert endpoint.logs.reads._logs == {}  # nothing of it stays open
    tier.create_topic("orders")
    assert described().topic_id != former


def test_a_topic_is_described_once_until_its_partitions_or_its_disk_change() -> None:
    tier = Host(dirs=("/a",)).started()
    tier.create_topic("orders")
    endpoint = OwnEndpoint(tier)

    def described() -> list[tuple[int, int]]:
        found = endpoint.ask(METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))).topics[0]
        return [(one.leader_id, one.error_code) for one in found.partitions]

    one = [(endpoint.context.cluster.live.node_id, 0)]
    assert described() == one
    known = endpoint.logs.known()["orders"].described
    kept = {**known}
    assert described() == one
    assert len(kept) == 1
    assert all(known[of] is found for of, found in kept.items())
    tier.create_partitions("orders", 2)
    assert described() == 2 * one
    tier._manager.directories[0].disk.fail("its cable is out")  # type: ignore[attr-defined]
    assert described() == 2 * [(-1, ErrorCode.LEADER_NOT_AVAILABLE)]
    assert endpoint.logs.known()["orders"].described == {}, "it may be back at any time"


def test_a_topic_that_a_client_asks_for_is_created_if_that_is_wanted() -> None:
    tier = Host().started()
    endpoint = OwnEndpoint(tier)
    endpoint.configure("num.partitions=3")

    def asked(name: str, version: int = 12, **more: bool) -> int:
        return endpoint.ask(METADATA, version, MetadataRequest((MetadataRequestTopic(name=name),), **more)).topics[0].error_code

    assert asked("orders", allow_auto_topic_creation=False) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert tier.topics() == {}
    assert [asked("orders"), asked("orders")] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert len(tier.topic("orders").partitions) == 3
    assert [asked("clicks", 1), asked("clicks", 1)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert [asked("a.b"), asked("a_b"), asked("a b")] == [3, 3, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert asked("__transaction_state") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    endpoint.configure("auto.create.topics.enable=false")
    assert asked("payments") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(tier.topics()) == ["a.b", "clicks", "orders"]
    authorizer = Authorizer(AclIndex([Acl(ResourceType.TOPIC, "payments", "User:*", Operation.DESCRIBE)]))
    acls: Any = SimpleNamespace(authorizer=authorizer, look=lambda: None)
    endpoint.context = replace(endpoint.context, settings=DEFAULTS, acls=acls)
    assert asked("payments") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert endpoint.said == []


def test_epochs_producers_and_directories_are_those_of_the_open_logs() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    endpoint = OwnEndpoint(tier, None, host.disk)
    produce(tier, ORDERS, 3)
    asked = epochs.OffsetForLeaderTopic("orders", (epochs.OffsetForLeaderPartition(0, leader_epoch=0),))
    found = endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 3, epochs.OffsetForLeaderEpochRequest(topics=(asked,)))
    assert (found.topics[0].partitions[0].leader_epoch, found.topics[0].partitions[0].end_offset) == (0, 3)
    tier.log(ORDERS).append_as_leader(
        batch(record(), producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL, max_timestamp=T0), 0
    )
    wanted = producers.DescribeProducersRequest(topics=(producers.TopicRequest("orders", (0,)),))
    (state,) = endpoint.ask(DESCRIBE_PRODUCERS, 0, wanted).topics[0].partitions[0].active_producers
    assert (state.producer_id, state.current_txn_start_offset) == (7, 3)
    for may_wait in (True, False):  # what is committed is known at once, too
        endpoint.context = replace(endpoint.context, may_wait=may_wait)
        found = endpoint.fetch("orders", 0, level=1)
        assert (found.error_code, found.aborted_transactions) == (ErrorCode.NONE, ())
    endpoint.context = replace(endpoint.context, may_wait=True)
    assert (found.high_watermark, found.last_stable_offset, offsets_in(found)) == (4, 3, [0, 1, 2])
    sizes = {
        (place.log_dir, one.partition_index): one.partition_size
        for place in endpoint.ask(DESCRIBE_LOG_DIRS, 1, log_dirs.DescribeLogDirsRequest(None)).results
        for topic in place.topics
        for one in topic.partitions
    }
    assert sizes == {("/a", 0): len(tier.log(ORDERS).read(0, 1 << 20).records), ("/b", 1): 0}


def waiting(endpoint: OwnEndpoint, offset: int, min_bytes: int = 1) -> Waits:
    """A fetch that waits for the offset."""
    asked = (FetchTopic("orders", partitions=(FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20),)),)
    message = FetchRequest(max_wait_ms=60_000, min_bytes=min_bytes, topics=asked)
    found = handle(write_request(RequestHeader(FETCH, 11, 99, "test"), message)[4:], endpoint.connection, endpoint.context)
    assert isinstance(found, Waits)
    return found


@pytest.mark.parametrize("change", ["append", "delete", "truncate"])
def test_a_fetch_that_waits_is_woken_once_by_what_happens_to_its_log(change: str) -> None:
    tier = Host().started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 2)
    endpoint = OwnEndpoint(tier)
    woken: list[int] = []

    def happens() -> None:
        if change == "append":
            produce(tier, ORDERS, 2)
        elif change == "delete":
            tier.delete_topic("orders")
        else:
            tier.log(ORDERS).truncate_to(1)

    async def asked() -> None:
        found, loop = asyncio.Event(), asyncio.get_running_loop()
        delayed = DelayedFetches(endpoint.logs, pool, lambda number: (woken.append(number), found.set()))
        delayed.wait(3, DelayedFetch(waiting(endpoint, 2), loop.time() + 60))
        delayed.wait(4, DelayedFetch(waiting(endpoint, 2), loop.time() + 60))
        delayed.remove(4)
        await asyncio.sleep(0)
        assert woken == []
        await loop.run_in_executor(pool, happens)
        await asyncio.wait_for(found.wait(), 20)
        await asyncio.sleep(0)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(asked())
    assert woken == [3]


def test_a_fetch_whose_records_came_before_it_began_to_wait_is_woken_at_once() -> None:
    tier = Host().started()
    tier.create_topic("orders")
    endpoint = OwnEndpoint(tier)
    request = waiting(endpoint, 0)
    produce(tier, ORDERS, 1)

    async def asked() -> None:
        found, loop = asyncio.Event(), asyncio.get_running_loop()
        DelayedFetches(endpoint.logs, pool, lambda number: found.set()).wait(3, DelayedFetch(request, loop.time() + 60))
        await asyncio.wait_for(found.wait(), 20)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(asked())


@pytest.mark.parametrize(("offset", "appends"), [(2, 3), (1, 1)])
def test_a_fetch_that_wants_many_bytes_is_woken_when_they_are_there(offset: int, appends: int) -> None:
    """One that has found some is woken by each append, since they count as well."""
    tier = Host(settings={}).started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 2)
    size = len(tier.log(ORDERS).read(0, 1 << 20).records) // 2
    endpoint, woken = OwnEndpoint(tier), list[str]()
    request = waiting(endpoint, offset, 3 * size)
    endpoint.logs.watch(request.seen, lambda: woken.append("now"), request.least_bytes)
    for number in range(1, 6):
        produce(tier, ORDERS, 1)
        assert len(woken) == (number >= appends)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_fetch_that_wants_many_bytes_is_woken_if_the_log_is_gone_first(is_cancelled: bool) -> None:
    tier = Host().started()
    tier.create_topic("orders")
    endpoint, woken = OwnEndpoint(tier), list[str]()
    request = waiting(endpoint, 0, 1 << 20)
    cancel = endpoint.logs.watch(request.seen, lambda: woken.append("now"), request.least_bytes)
    produce(tier, ORDERS, 1)
    assert woken == []
    if is_cancelled:
        cancel()
    tier.delete_topic("orders")
    assert woken == ([] if is_cancelled else ["now"])
