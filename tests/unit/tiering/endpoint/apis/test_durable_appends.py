"""When producers are answered: at once, or when their records are synced; and what a volume without room takes."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from local_tiers import Host
from logs_at_work import batch_of
from managed import T0
from transacting_endpoint import OWN_ID, TransactingEndpoint
from writing_endpoint import ByHand, WritingEndpoint

from local_log.disk import Space
from local_log.errors import Unreadable
from tiering.endpoint.apis.kafka_apis import Later
from tiering.endpoint.appends.free_room import LOOKED_MS_MAX, CoordinatorsRoom
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.own_logs import OwnLogs
from tiering.endpoint.protocol.api_keys import CREATE_PARTITIONS, CREATE_TOPICS, METADATA, PRODUCE, TXN_OFFSET_COMMIT
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tiering.local_tier.reads import TierReads

ONE = batch_of("a", time=T0)
SYNCED = "sync /a/orders-0/00000000000000000000.log"


@pytest.fixture
def by_hand() -> ByHand:
    return ByHand()


@pytest.fixture
def endpoint(by_hand: ByHand) -> WritingEndpoint:
    found = WritingEndpoint(Host(dirs=("/a",)))
    found.context = replace(found.context, group_commit=GroupCommit(by_hand))
    found.host.disk.calls.clear()
    return found


def sent(endpoint: WritingEndpoint, acks: int = -1) -> Any:
    """The answer, or the Later of it."""
    found = endpoint.ask(PRODUCE, 9, endpoint.asked("orders", {0: (ONE,)}, 9, acks=acks))
    return found if isinstance(found, Later) else code_of(found)


def code_of(response: Any) -> int:
    return int(response.responses[0].partition_responses[0].error_code)


def test_one_sync_acknowledges_all_that_was_appended_before_it(endpoint: WritingEndpoint, by_hand: ByHand) -> None:
    first, second = sent(endpoint), sent(endpoint)
    assert [one.response.done() for one in (first, second)] == [False, False]
    by_hand.run()
    assert [code_of(endpoint.answer_of(one)) for one in (first, second)] == [0, 0]
    assert endpoint.host.disk.calls.count(SYNCED) == 1
    third = sent(endpoint)
    assert not third.response.done()
    by_hand.run()
    assert code_of(endpoint.answer_of(third)) == 0
    assert by_hand.due == []


def test_who_wants_fewer_acks_waits_for_no_sync(endpoint: WritingEndpoint, by_hand: ByHand) -> None:
    assert sent(endpoint, acks=1) == 0
    assert by_hand.due == []
    assert SYNCED not in endpoint.host.disk.calls


@pytest.mark.parametrize("is_synced", [True, False])
def test_what_is_acknowledged_after_a_sync_survives_a_loss_of_power(
    endpoint: WritingEndpoint, by_hand: ByHand, *, is_synced: bool
) -> None:
    for _ in range(3):
        sent(endpoint)
    if is_synced:
        by_hand.run()
    endpoint.host.loses_power()
    endpoint.own(endpoint.host.started())
    assert endpoint.log().log_end_offset == (3 if is_synced else 0)


def test_a_segment_that_was_rolled_meanwhile_is_synced_with_its_name(endpoint: WritingEndpoint, by_hand: ByHand) -> None:
    waiting = [sent(endpoint) for _ in range(30)]
    assert len(endpoint.log().local.segments) > 1
    by_hand.run()
    assert {code_of(endpoint.answer_of(one)) for one in waiting} == {0}
    endpoint.host.loses_power()
    endpoint.own(endpoint.host.started())
    assert endpoint.log().log_end_offset == 30


def test_records_whose_sync_fails_are_not_acknowledged(endpoint: WritingEndpoint, by_hand: ByHand) -> None:
    waiting = sent(endpoint)

    def fail() -> None:
        raise Unreadable("/a: Input/output error")

    endpoint.host.disk.on_call = fail
    by_hand.run()
    assert code_of(endpoint.answer_of(waiting)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "not synced" in endpoint.said[0]


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_many_producers_at_once_are_all_answered_with_fewer_syncs(executor: Executor) -> None:
    endpoint = WritingEndpoint(Host(dirs=("/a",)))
    endpoint.context = replace(endpoint.context, group_commit=GroupCommit(executor))
    with ThreadPoolExecutor(8) as clients:
        found = [*clients.map(lambda _: sent(endpoint), range(100))]
    for one in found:
        if isinstance(one, Later):
            one.response.result(timeout=60)
            assert code_of(endpoint.answer_of(one)) == 0
        else:
            assert one == 0
    assert endpoint.log().log_end_offset == 100


@pytest.mark.parametrize("is_committed", [True, False])
def test_offsets_of_a_transaction_that_ends_after_a_loss_of_power_are_as_those_of_any_other(
    by_hand: ByHand, *, is_committed: bool
) -> None:
    endpoint = TransactingEndpoint()
    endpoint.config = replace(endpoint.config, syncs=True)
    endpoint.own(endpoint.tier)
    endpoint.context = replace(endpoint.context, group_commit=GroupCommit(by_hand))
    producer = endpoint.init()
    of = TxnOffsetCommitRequestTopic("orders", (TxnOffsetCommitRequestPartition(0, 7),))
    asked = TxnOffsetCommitRequest(OWN_ID, "readers", *producer, topics=(of,))
    found = endpoint.ask(TXN_OFFSET_COMMIT, 5, asked)
    assert not found.response.done()
    by_hand.run()
    assert endpoint.answer_of(found).topics[0].partitions[0].error_code == 0
    endpoint.host.loses_power()
    endpoint.own(endpoint.host.started())
    assert not isinstance(endpoint.end(producer, commit=is_committed), ErrorCode)
    assert endpoint.committed() == (7 if is_committed else -1)


class FullDisk:
    """The room that a volume has."""

    def __init__(self, endpoint: WritingEndpoint, usable: int) -> None:
        self.usable = usable
        endpoint.host.disk.space = lambda folder: Space(1 << 40, self.usable)  # type: ignore[method-assign]


def test_a_volume_without_room_takes_nothing_and_is_read(endpoint: WritingEndpoint) -> None:
    endpoint.context = replace(endpoint.context, group_commit=None)
    kept = 128 << 20
    volume = FullDisk(endpoint, kept + 2 * len(ONE))
    assert [sent(endpoint) for _ in range(2)] == [0, 0]
    volume.usable = kept
    assert sent(endpoint) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "storage.min.free.bytes" in endpoint.said[0]
    assert endpoint.log().read(0, 1000).records
    assert endpoint.tier.offline == ()
    volume.usable = kept + len(ONE)
    assert sent(endpoint) == 0


def test_groups_and_new_topics_have_half_of_what_producers_leave_free(endpoint: WritingEndpoint) -> None:
    half = 64 << 20
    volume = FullDisk(endpoint, half)
    endpoint.context = replace(endpoint.context, logs=OwnLogs(TierReads(endpoint.tier, None), endpoint.host.disk))
    room = CoordinatorsRoom(2 * half, endpoint.clock)
    groups = OffsetsTopic.of(endpoint.tier, GroupCoordinatorConfig(offsets_topic_partitions=1), room)
    with pytest.raises(Unreadable, match=r"__consumer_offsets-0: its volume has less than 67108864 bytes free"):
        groups.append("readers", [Record(b"key", b"value")], T0)
    assert create(endpoint, "few") == 0
    volume.usable -= 1
    assert create(endpoint, "more") == more_partitions(endpoint, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
    assert endpoint.ask(METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name="other"),))).topics[0].error_code
    assert {"orders", "few"} <= set(endpoint.tier.topics()), "one that a client looks up is not created, either"
    assert not {"more", "other"} & set(endpoint.tier.topics())
    assert "other cannot be created" in endpoint.said[-1]
    volume.usable = half + (1 << 20)
    endpoint.clock.now += LOOKED_MS_MAX
    assert groups.append("readers", [Record(b"key", b"value")], T0) == 0
    assert endpoint.tier.offline == ()


def create(endpoint: WritingEndpoint, name: str) -> int:
    request = CreateTopicsRequest(topics=(CreatableTopic(name, 1, 1),))
    return int(endpoint.ask(CREATE_TOPICS, 7, request).topics[0].error_code)


def more_partitions(endpoint: WritingEndpoint, name: str) -> int:
    request = CreatePartitionsRequest(topics=(CreatePartitionsTopic(name, 9, None),))
    return int(endpoint.ask(CREATE_PARTITIONS, 3, request).results[0].error_code)


def test_a_volume_is_looked_at_again_after_a_while_since_others_write_to_it(endpoint: WritingEndpoint) -> None:
    endpoint.context = replace(endpoint.context, group_commit=None)
    volume = FullDisk(endpoint, 1 << 40)
    assert sent(endpoint) == 0
    volume.usable = 0
    assert sent(endpoint) == 0
    endpoint.clock.now += LOOKED_MS_MAX
    assert sent(endpoint) == ErrorCode.KAFKA_STORAGE_ERROR
