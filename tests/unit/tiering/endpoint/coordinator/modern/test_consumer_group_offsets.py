"""Offsets of consumer groups: which member may commit and fetch them, and when they are forgotten."""

from collections.abc import Callable
from typing import Any

import pytest
from consumer_members import SESSION_MS, Consumers, id_of
from offsets_kept import MemoryLog

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.offsets_log import TransactionalProducer
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

WEEK_MS = 7 * 24 * 60 * 60 * 1000


def refused(ask: Callable[[], Any]) -> int:
    with pytest.raises(GroupError) as raised:
        ask()
    return raised.value.code


def commit(group: Consumers, epoch: int, partition: int = 0, member_id: str = "one", **more: Any) -> int:
    said = {"generation_id_or_member_epoch": epoch, "member_id": member_id, "topic_id": id_of("orders")}
    return group.commit(5, partition=partition, **{**said, **more})


def test_a_member_commits_in_its_epoch_and_nobody_else() -> None:
    group = Consumers()
    group.joined("one")
    assert commit(group, 2) == 0
    assert refused(lambda: commit(group, 3)) == ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: commit(group, 2, member_id="two")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: commit(group, -1, member_id="")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: commit(group, 2, version=8)) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(group, 2, committed_metadata="x" * 5_000) == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_member_may_be_an_epoch_behind_for_partitions_that_it_had_then_and_has_still() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two")
    group.settled(one, two)
    mine, other = min(one.has["orders"]), min(two.has["orders"])
    assert one.epoch == 3
    assert commit(group, 2, mine) == 0
    assert refused(lambda: commit(group, 2, other)) == ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: commit(group, 2, other, "two")) == ErrorCode.STALE_MEMBER_EPOCH, "it got that one in epoch 3"
    assert commit(group, 3, other) == 0, "as on a broker, an epoch that is right is enough"


def test_a_partition_that_is_to_be_given_up_may_be_committed_until_it_is() -> None:
    group = Consumers()
    one = group.joined("one")
    group.joined("two")
    group.hear(member_id="one", member_epoch=one.epoch)
    member = group.group.members["one"]
    (revoked,) = member.revoked.values()
    assert commit(group, 2, next(iter(revoked))) == 0


def test_the_offsets_are_told_to_members_in_their_epoch_and_to_administrators() -> None:
    group = Consumers()
    group.joined("one")
    commit(group, 2)

    def fetch(member_id: str | None, epoch: int) -> int:
        topics = (OffsetFetchRequestTopics("orders", partition_indexes=(0,)),)
        asked = OffsetFetchRequestGroup("readers", member_id, epoch, topics)
        return group.groups.fetch_offsets(asked, require_stable=False).topics[0].partitions[0].committed_offset

    assert (fetch("one", 2), fetch(None, -1)) == (5, 5)
    assert refused(lambda: fetch("one", 1)) == ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: fetch("one", -1)) == ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: fetch("two", 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_without_members_is_anybody_s() -> None:
    group = Consumers()
    one = group.joined("one")
    group.gone(one)
    assert commit(group, -1, member_id="") == 0
    assert refused(lambda: commit(group, 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_members_subscribe_are_not_deleted() -> None:
    group = Consumers()
    one = group.joined("one")
    commit(group, 2)
    assert [of.error_code for topic in group.delete(0).topics for of in topic.partitions] == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    group.gone(one)
    assert [of.error_code for topic in group.delete(0).topics for of in topic.partitions] == [0]
    assert group.offsets() == {}


def test_offsets_of_topics_that_nobody_subscribes_expire_and_then_the_group_without_members() -> None:
    group = Consumers({"orders": 1, "payments": 1})
    one = group.joined("one")
    commit(group, 2)
    group.beat(one, subscribed_topic_names=("payments",))
    for _ in range(WEEK_MS // 44_000 // 100 + 1):
        group.later(44_000)
        group.beat(one)
    assert group.offsets() == {("orders", 0): 5}
    group.gone(one)
    group.later(WEEK_MS + 600_000)
    assert (group.offsets(), group.listed()) == ({}, [])
    group.started()
    assert group.listed() == []


def test_a_group_with_members_is_not_forgotten_and_offsets_that_they_read_neither() -> None:
    log = MemoryLog()
    group = Consumers(None, log, consumer_group_session_timeout_ms=2 * WEEK_MS)
    group.joined("one")
    commit(group, 2)
    group.later(WEEK_MS + 600_000)
    assert group.offsets() == {("orders", 0): 5}
    group.later(WEEK_MS + 600_000)
    assert group.listed() == [], "the member has gone, and the offsets are old"


def test_a_group_is_deleted_with_all_that_it_has() -> None:
    group = Consumers()
    one = group.joined("one", regex="orders")
    group.settled(one)
    commit(group, 2)
    assert refused(lambda: group.groups.delete_group("readers")) == ErrorCode.NON_EMPTY_GROUP
    group.gone(one)
    group.groups.delete_group("readers")
    assert (group.listed(), group.offsets()) == ([], {})
    group.started()
    assert (group.listed(), group.offsets()) == ([], {})
    assert refused(lambda: group.groups.delete_group("readers")) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_offsets_alone_becomes_a_consumer_group_and_keeps_them() -> None:
    group = Consumers()
    assert commit(group, -1, member_id="") == 0
    assert group.listed() == [("readers", "classic", "Empty")]
    group.joined("one")
    assert group.listed() == [("readers", "consumer", "Stable")]
    assert group.offsets() == {("orders", 0): 5}
    group.started()
    assert group.listed() == [("readers", "consumer", "Stable")]
    group.later(SESSION_MS)
    group.new()
    assert group.listed() == [("readers", "classic", "PreparingRebalance")]
    assert group.offsets() == {("orders", 0): 5}
    group.started()
    assert group.listed() == [("readers", "classic", "Empty")]


def commit_in_transaction(group: Consumers, epoch: int, partition: int = 0, member_id: str = "one", offset: int = 7) -> int:
    partitions = (TxnOffsetCommitRequestPartition(partition, offset),)
    topics = (TxnOffsetCommitRequestTopic("orders", partitions),)
    request = TxnOffsetCommitRequest("t", "readers", 7, 0, epoch, member_id, None, topics)
    found = group.groups.commit_transactional_offsets(request, {"orders": ZERO_TOPIC_ID}, TransactionalProducer(7, 0))
    return found.topics[0].partitions[0].error_code


def test_a_transaction_commits_for_a_member_in_its_epoch_and_for_no_member_that_it_names_wrongly() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two")
    group.settled(one, two)
    mine, other = min(one.has["orders"]), min(two.has["orders"])
    assert commit_in_transaction(group, 3) == 0
    assert commit_in_transaction(group, 2, mine) == 0, "the partition was its own then"
    assert refused(lambda: commit_in_transaction(group, 2, other)) == ErrorCode.ILLEGAL_GENERATION
    assert refused(lambda: commit_in_transaction(group, 4)) == ErrorCode.ILLEGAL_GENERATION
    assert refused(lambda: commit_in_transaction(group, 3, member_id="nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_in_transaction(group, -1, member_id="") == 0, "older producers name no member"
    del group.topics.made["orders"]
    assert refused(lambda: commit_in_transaction(group, 2, mine)) == ErrorCode.ILLEGAL_GENERATION


def test_offsets_of_a_transaction_that_is_open_are_deleted_with_the_others() -> None:
    group = Consumers()
    one = group.joined("one")
    commit_in_transaction(group, 2)
    group.gone(one)
    assert [of.error_code for topic in group.delete(0).topics for of in topic.partitions] == [0]
    assert group.fetch(0, require_stable=True)["orders", 0][3] == 0
