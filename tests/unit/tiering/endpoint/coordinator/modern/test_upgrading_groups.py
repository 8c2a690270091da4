"""A classic group with members that becomes a consumer group, since a consumer of KIP-848 joins it."""

import sys
from threading import Thread
from typing import Any

import pytest
from consumer_members import id_of
from group_members import subscription as old_subscription
from mixed_members import REJOIN, ClassicConsumer, MixedMembers, assignment, subscription
from offsets_kept import MemoryLog

from tiering.endpoint.coordinator.classic_group import ClassicGroup, Member
from tiering.endpoint.coordinator.config import ConsumerGroupMigrationPolicy
from tiering.endpoint.coordinator.consumer_group_messages import ClassicMemberMetadata, ClassicProtocol
from tiering.endpoint.coordinator.modern.conversion import topics_of
from tiering.endpoint.coordinator.records import read_key, read_value
from tiering.endpoint.protocol.errors import ErrorCode

KEYS = {
    "GroupMetadataKey": "classic",
    "ConsumerGroupMetadataKey": "epoch",
    "ConsumerGroupMemberMetadataKey": "member",
    "ConsumerGroupTargetAssignmentMemberKey": "target",
    "ConsumerGroupTargetAssignmentMetadataKey": "target epoch",
    "ConsumerGroupCurrentMemberAssignmentKey": "current",
}


def written(log: MemoryLog, since: int) -> list[str]:
    """What was written of what kind, a tombstone with a minus."""
    kept: list[Any] = log.kept[since:]
    return [("-" if one.record.value is None else "") + KEYS[type(read_key(one.record.key)).__name__] for one in kept]


def test_members_of_a_classic_group_keep_their_partitions_until_the_new_member_gets_some() -> None:
    group = MixedMembers()
    one, two = group.shared({0, 1, 2}, {3, 4, 5})
    new = group.joined("new")
    assert (new.code, new.epoch, new.has) == (0, 2, {})
    assert group.group_type() == "consumer Reconciling"
    kept = {member.member_id: member.assigned for member in group.group.members.values()}
    assert kept[one.member_id] == {id_of("orders"): dict.fromkeys((0, 1, 2), 1)}
    assert kept[two.member_id] == {id_of("orders"): dict.fromkeys((3, 4, 5), 1)}
    assert [group.beats(member) for member in (one, two)] == [REJOIN, REJOIN]
    assert sorted(len(has["orders"]) for has in group.goes_on(one, two, new)) == [2, 2, 2]
    assert frozenset().union(*(of.has["orders"] for of in (one, two, new))) == frozenset(range(6))
    assert group.group_type() == "consumer Stable"


def test_it_is_written_as_kafka_writes_it_and_found_again_after_a_restart() -> None:
    log = MemoryLog()
    group = MixedMembers(None, log)
    one, two = group.shared({0, 1, 2}, {3, 4, 5}, protocols={"range": subscription("orders", version=3, rack="a")})
    since = len(log.kept)
    group.joined("new")
    first = ["-classic", "member", "member", "epoch", "target", "target", "target epoch", "current", "current"]
    assert written(log, since)[: len(first)] == first
    values: list[Any] = [one.record for one in log.kept[since:]]
    said = read_value(read_key(values[1].key), values[1].value)
    protocol = ClassicProtocol("range", subscription("orders", version=3, rack="a"))
    assert (said.classic_member_metadata, said.rack_id) == (ClassicMemberMetadata(10_000, (protocol,)), "a")
    before = group.group
    group.started()
    assert group.group.members == before.members
    assert (group.group.targets, group.group.epoch) == (before.targets, before.epoch)
    assert [group.beats(member) for member in (one, two)] == [REJOIN, REJOIN]
    group.later(11_000)
    assert list(group.group.members) == ["new"], "their own session timeouts count"


def test_members_that_wait_for_a_rebalance_join_again() -> None:
    group = MixedMembers()
    one, two = group.shared({0, 1, 2}, {3, 4, 5})
    waiting = group.join(one.member_id, {"range": subscription("orders", "payments")})
    assert not waiting.done()
    assert group.joined("new").code == 0
    assert waiting.result(0).error_code == REJOIN
    one.topics = ("orders", "payments")
    group.rejoin(one)
    assert one.generation == 2
    group.goes_on(one, two)
    assert group.group.names["payments"] == 1


def test_members_that_wait_for_their_leader_join_again() -> None:
    group = MixedMembers()
    _, two = group.rebalanced(2, protocols={"range": subscription("orders")})
    waiting = group.sync(two.member_id)
    new = group.joined("new")
    assert waiting.result(0).error_code == REJOIN
    assert new.has == {"orders": frozenset(range(6))} or new.epoch == 2
    assert all(not member.assigned for member in group.group.members.values() if member.member_id != "new")


def refused(group: MixedMembers, why: str) -> None:
    new = group.joined("new")
    assert new.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert new.said == f"Cannot upgrade classic group readers to consumer group because {why}."
    assert group.group_type() == "classic Stable"
    assert "new" not in group.groups._groups.consumers


@pytest.mark.parametrize("policy", [ConsumerGroupMigrationPolicy.DISABLED, ConsumerGroupMigrationPolicy.DOWNGRADE])
def test_a_policy_may_forbid_it(policy: ConsumerGroupMigrationPolicy) -> None:
    group = MixedMembers(consumer_group_migration_policy=policy)
    group.shared({0, 1, 2})
    refused(group, "online upgrade is disabled")


def test_a_group_of_another_protocol_type_stays_what_it_is() -> None:
    group = MixedMembers()
    group.shared({0}, protocol_type="connect")
    refused(group, "the group does not use the consumer embedded protocol")


def test_a_group_of_more_members_than_a_consumer_group_may_have_stays_what_it_is() -> None:
    group = MixedMembers(consumer_group_max_size=1)
    group.shared({0}, {1})
    refused(group, "the group size exceeds the consumer group maximum size")


def test_a_group_whose_members_say_nothing_that_can_be_read_stays_what_it_is() -> None:
    group = MixedMembers()
    group.shared({0}, protocols={"range": b"\xff\xff\x00"})
    refused(group, "the embedded consumer protocol is malformed")


def test_a_group_with_an_assignor_that_keeps_data_of_its_own_stays_what_it_is() -> None:
    group = MixedMembers()
    group.shared({0}, data=assignment(user_data=b"mine", orders={0}))
    why = "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor before "
    refused(group, f"{why}re-attempting the upgrade")


def test_a_group_that_reads_a_topic_without_an_id_stays_what_it_is() -> None:
    group = MixedMembers({"orders": 6, "old": 2})
    group.topics.without_id.add("old")
    group.shared({0, 1, 2}, protocols={"range": subscription("orders", "old")})
    refused(group, "topic old has no id, or cannot be read now")


def test_what_cannot_be_kept_does_not_happen() -> None:
    group = MixedMembers()
    one, two = group.shared({0, 1, 2}, {3, 4, 5})
    group.log.is_broken = True
    assert group.joined("new").code == ErrorCode.NOT_COORDINATOR
    assert group.group_type() == "classic Stable"
    assert [group.beats(member) for member in (one, two)] == [0, 0]


def test_a_static_member_that_comes_back_with_the_other_protocol_takes_its_own_place() -> None:
    group = MixedMembers()
    one, two = group.shared({0, 1, 2}, {3, 4, 5}, instances=("a", "b"))
    new = group.joined("new", instance_id="b")
    assert (new.code, new.epoch, new.has) == (0, 1, {"orders": frozenset({3, 4, 5})}), "nothing changes for anybody"
    assert (group.beats(one), group.beats(two)) == (0, ErrorCode.FENCED_INSTANCE_ID)
    assert set(group.group.members) == {one.member_id, "new"}
    last = group.joined("last", instance_id="a")
    assert (last.code, last.has) == (0, {"orders": frozenset({0, 1, 2})})
    assert [member.classic for member in group.group.members.values()] == [None, None]


def test_partitions_of_who_has_left_are_assigned_if_a_static_member_changes_its_protocol_before_others_have_joined() -> None:
    group = MixedMembers()
    _, two, _ = group.shared({0, 1}, {2, 3}, {4, 5}, instances=("a", "b", "c"))
    assert group.leave(("", "c")) == [0]
    new = group.joined("new", instance_id="a")
    assert [len(has["orders"]) for has in group.goes_on(new, two)] == [3, 3]


def test_partitions_are_assigned_if_a_static_member_changes_its_protocol_before_the_leader_has_assigned() -> None:
    group = MixedMembers()
    _, told = group.rebalanced(2, instances=("a", "b"), protocols={"range": subscription("orders")})
    two = ClassicConsumer(told.member_id, instance_id="b", generation=told.generation_id)
    new = group.joined("new", instance_id="a")
    assert [len(has["orders"]) for has in group.goes_on(new, two)] == [3, 3]


def test_partitions_that_a_topic_has_got_since_are_assigned_when_a_static_member_changes_its_protocol() -> None:
    group = MixedMembers()
    (one,) = group.shared({0, 1, 2, 3, 4, 5}, instances=("a",))
    group.topics.made["orders"] = 8
    assert group.joined("new", instance_id="a").has == {"orders": frozenset(range(8))}
    assert group.beats(one) == ErrorCode.FENCED_INSTANCE_ID


def test_a_classic_member_that_asks_with_its_own_id_changes_its_protocol() -> None:
    group = MixedMembers()
    (one,) = group.shared({0, 1, 2, 3, 4, 5})
    found = group.joined(one.member_id)
    assert (found.code, found.has) == (0, {"orders": frozenset(range(6))})
    assert group.beats(one) == ErrorCode.UNKNOWN_MEMBER_ID
    group.later(11_000)
    assert one.member_id in group.group.members, "it has the session timeout of its protocol now"


def test_a_subscription_of_version_0_is_understood() -> None:
    group = MixedMembers()
    (one,) = group.shared({0, 1, 2, 3, 4, 5}, protocols={"range": old_subscription("orders")})
    new = group.joined("new")
    one.version = 0
    assert [len(has["orders"]) for has in group.goes_on(one, new)] == [3, 3]


def test_members_come_and_go_while_another_thread_looks_for_their_topics() -> None:
    group, interval = ClassicGroup("readers", 0), sys.getswitchinterval()

    def comes(number: int) -> None:
        told = (f"{number}", None, "client", "192.0.2.1", 1, 1, (), assignment(orders={0}))
        group.add(Member(*told), "consumer")

    def come_and_go() -> None:
        for number in range(20, 3_000):
            comes(number)
            group.remove(f"{number - 20}")

    for number in range(20):
        comes(number)
    sys.setswitchinterval(1e-6)
    try:
        thread = Thread(target=come_and_go)
        thread.start()
        while thread.is_alive():
            assert topics_of(group) == {"orders"}
        thread.join()
    finally:
        sys.setswitchinterval(interval)
