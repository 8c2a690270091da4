"""Members in each of their states that join anew, say the same twice, or were written by another broker."""

from consumer_members import Consumers, id_of

from tiering.endpoint.coordinator import consumer_group_messages as messages
from tiering.endpoint.coordinator.modern.member import MemberState
from tiering.endpoint.coordinator.offsets_log import Loaded
from tiering.endpoint.coordinator.records import ConsumerGroupKey, ConsumerGroupValue, read_key, record
from tiering.endpoint.protocol.errors import ErrorCode

ALL = frozenset(range(6))
FULL = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": ("orders",)}


def state(group: Consumers, member_id: str) -> MemberState:
    return group.group.members[member_id].state


def written(group: Consumers, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
    """A record of another broker."""
    group.log.kept.append(Loaded(record(key, value), len(group.log.kept)))


def test_a_member_may_join_anew_with_its_id_in_every_state() -> None:
    group = Consumers()
    one = group.joined("one")
    again = group.joined("one")
    assert (again.code, again.epoch, again.has) == (0, one.epoch, {"orders": ALL})
    two = group.joined("two")
    assert (state(group, "two"), group.joined("two").has) == (MemberState.UNRELEASED_PARTITIONS, {})
    group.hear(member_id="one", member_epoch=one.epoch)
    assert state(group, "one") is MemberState.UNREVOKED_PARTITIONS
    back = group.joined("one")
    assert (state(group, "one"), len(back.has["orders"])) == (MemberState.STABLE, 3), "who joins has nothing any more"
    assert [len(has["orders"]) for has in group.settled(back, two)] == [3, 3]


def test_what_is_said_twice_changes_nothing_more() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two")
    group.beat(two)
    for _ in range(2):
        kept = len(group.log.kept)
        answer = group.hear(member_id="two", member_epoch=two.epoch, topic_partitions=(), **FULL)
        assert answer.assignment is not None
        assert (answer.assignment.topic_partitions, len(group.log.kept)) == ((), kept)
    told = group.hear(member_id="one", member_epoch=one.epoch, topic_partitions=one.owned, **FULL)
    kept = len(group.log.kept)
    assert group.hear(member_id="one", member_epoch=one.epoch, topic_partitions=one.owned, **FULL) == told
    assert (state(group, "one"), len(group.log.kept)) == (MemberState.UNREVOKED_PARTITIONS, kept)
    one.told(told)
    first = group.hear(member_id="one", member_epoch=2, topic_partitions=one.owned, **FULL)
    kept = len(group.log.kept)
    second = group.hear(member_id="one", member_epoch=2, topic_partitions=one.owned, **FULL)
    assert (first, len(group.log.kept)) == (second, kept), "the answer to the first one was lost"
    assert first.member_epoch == 3


def test_static_members_that_nobody_knows_or_that_have_another_id_do_not_leave() -> None:
    group = Consumers()
    one = group.joined("one", instance_id="i")
    for epoch in (-1, -2):
        assert group.gone(one, epoch, instance_id="j").error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert group.hear(member_id="x", member_epoch=epoch, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert group.gone(group.joined("y"), -1, instance_id=None).error_code == 0
    assert group.beat(one, instance_id="i").code == 0


def test_a_new_static_member_begins_an_epoch_and_may_bring_another_subscription_when_it_is_back() -> None:
    group = Consumers({"orders": 2, "payments": 2})
    one = group.joined("one", instance_id="i")
    two = group.joined("two", instance_id="j")
    assert group.group.epoch == 3
    for _ in range(3):
        group.beat(one, instance_id="i")
        group.beat(two, instance_id="j")
    group.gone(two, -2, instance_id="j")
    back = group.joined("three", "payments", instance_id="j")
    assert (group.group.epoch, back.epoch) == (4, 4)
    for _ in range(3):
        group.beat(one, instance_id="i")
        group.beat(back, instance_id="j")
    assert (one.has, back.has) == ({"orders": frozenset({0, 1})}, {"payments": frozenset({0, 1})})


def test_topics_that_an_older_broker_has_written_down_are_deleted_with_the_next_epoch() -> None:
    group = Consumers()
    one = group.joined("one")
    topics = messages.ConsumerGroupPartitionMetadataValue((messages.TopicMetadata(id_of("orders"), "orders", 6),))
    key = messages.ConsumerGroupPartitionMetadataKey("readers")
    written(group, key, topics)
    group.started()
    assert group.beat(one).code == 0
    group.topics.made["orders"] = 7
    group.later(1_000)
    group.beat(one)
    gone = [read_key(found.record.key) for found in group.log.kept if found.record.value is None]
    assert gone == [key]


def test_a_member_in_a_state_of_a_later_broker_gives_up_all_and_joins_anew() -> None:
    group = Consumers()
    one = group.joined("one")
    key = messages.ConsumerGroupCurrentMemberAssignmentKey("readers", "one")
    had = (messages.CurrentTopicPartitions(id_of("orders"), (0, 1)),)
    written(group, key, messages.ConsumerGroupCurrentMemberAssignmentValue(2, 1, 9, had))
    group.started()
    assert state(group, "one") is MemberState.UNKNOWN
    assert group.group.members["one"].assigned == {id_of("orders"): {0: 2, 1: 2}}, "an older broker writes no epochs"
    assert group.hear(member_id="one", member_epoch=2, subscribed_topic_names=()).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    back = group.joined("one")
    assert (back.code, back.has) == (0, {"orders": ALL})
    assert one.has == {"orders": ALL}


def test_records_that_the_cleaner_has_left_of_a_partition_that_changed_hands_are_understood() -> None:
    group = Consumers({"orders": 1})
    one = group.joined("one")
    two = group.joined("two")
    group.settled(one, two)
    group.gone(one)
    group.settled(two)
    last = {found.record.key: found for found in group.log.kept}
    group.log.kept = sorted(last.values(), key=lambda found: found.offset)
    before = group.group
    group.started()
    assert (group.group.members, group.group.owners) == (before.members, before.owners)
    written(group, messages.ConsumerGroupMemberMetadataKey("readers", "nobody"), None)
    written(group, messages.ConsumerGroupCurrentMemberAssignmentKey("readers", "nobody"), None)
    written(group, messages.ConsumerGroupTargetAssignmentMemberKey("no group", "nobody"), None)
    group.started()
    assert group.settled(two) == [{"orders": frozenset({0})}]
    assert [name for name, *_ in group.listed()] == ["readers"]
