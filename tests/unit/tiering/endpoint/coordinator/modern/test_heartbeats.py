"""Members of consumer groups: who gets which partitions when, who is refused, and who is removed."""

import tracemalloc

import pytest
from consumer_members import REBALANCE_MS, SESSION_MS, Consumer, Consumers, id_of

from tiering.endpoint.coordinator.group_memory import consumer_group_size
from tiering.endpoint.coordinator.modern.member import MemberState
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import TopicPartitions

ALL = frozenset(range(6))


def test_the_first_member_gets_all_partitions_at_once() -> None:
    group = Consumers()
    one = group.joined("one")
    assert (one.code, one.epoch, one.has) == (0, 2, {"orders": ALL})
    assert group.latest is not None
    assert group.latest.heartbeat_interval_ms == 5_000
    assert group.group.state == "Stable"
    group.beat(one, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=("orders",))
    assert group.latest.assignment is not None, "a full request is answered with all"
    assert group.hear(member_id="one", member_epoch=2).assignment is None, "and one that says nothing new with nothing new"


def test_a_second_member_gets_partitions_only_after_the_first_has_given_them_up() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two")
    assert (two.epoch, two.has) == (3, {}), "the other one still has them"
    assert group.group.members["two"].state is MemberState.UNRELEASED_PARTITIONS
    assert group.group.state == "Reconciling"
    asked = group.hear(member_id="one", member_epoch=2)
    assert asked.member_epoch == 2, "it stays in its epoch"
    assert asked.assignment is not None
    kept = asked.assignment.topic_partitions
    assert len(kept[0].partitions) == 3
    assert group.beat(two).has == {}, "it was told to give them up, and has not said that it has"
    one.told(group.hear(member_id="one", member_epoch=2, topic_partitions=kept))
    one.has = {"orders": frozenset(kept[0].partitions)}
    assert group.beat(two).has == {"orders": ALL - set(kept[0].partitions)}
    assert group.settled(one, two) == [{"orders": frozenset(kept[0].partitions)}, {"orders": ALL - set(kept[0].partitions)}]
    assert group.group.state == "Stable"


def test_members_converge_however_many_come_and_go() -> None:
    group = Consumers({"orders": 7, "payments": 4})
    members = [group.joined(str(number), "orders", "payments") for number in range(5)]
    found = group.settled(*members)
    assert sorted(sum(map(len, has.values())) for has in found) == [2, 2, 2, 2, 3]
    group.gone(members[0])
    found = group.settled(*members[1:])
    assert sorted(sum(map(len, has.values())) for has in found) == [2, 3, 3, 3]
    assert {(t, n) for has in found for t, numbers in has.items() for n in numbers} == {
        *(("orders", n) for n in range(7)),
        *(("payments", n) for n in range(4)),
    }


def test_a_member_that_is_not_heard_of_is_removed_and_its_partitions_are_assigned_to_others() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two")
    group.settled(one, two)
    group.later(SESSION_MS - 1)
    group.beat(two)
    group.later(1)
    assert set(group.group.members) == {"two"}
    assert group.settled(two) == [{"orders": ALL}]
    assert group.beat(one).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert one.said == "Member one is not a member of group readers."


def test_a_member_that_gives_nothing_up_in_time_is_removed() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two")
    group.hear(member_id="one", member_epoch=one.epoch)
    for _ in range(3):
        group.later(REBALANCE_MS // 3 - 1)
        group.hear(member_id="one", member_epoch=one.epoch)
        group.beat(two)
    assert set(group.group.members) == {"one", "two"}
    group.later(3)
    assert set(group.group.members) == {"two"}
    assert group.settled(two) == [{"orders": ALL}]


def test_a_heartbeat_with_another_epoch_is_fenced_but_for_the_one_whose_answer_was_lost() -> None:
    group = Consumers()
    one = group.joined("one")
    two = group.joined("two")
    group.settled(one, two)
    assert group.hear(member_id="two", member_epoch=4).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert group.hear(member_id="one", member_epoch=1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert (group.group.members["one"].previous_epoch, one.epoch) == (2, 3)
    one.epoch = 2
    assert (group.beat(one).code, one.epoch) == (0, 3), "the answer with epoch 3 was lost"
    assert group.said == []


def test_the_former_epoch_is_accepted_from_who_has_no_more_than_its_partitions() -> None:
    group = Consumers()
    one = group.joined("one")
    group.joined("one", "orders", "payments")  # it joins anew: the answer with epoch 3 is lost
    assert (group.group.members["one"].previous_epoch, group.group.members["one"].epoch) == (2, 3)
    assert group.hear(member_id="one", member_epoch=2).error_code == ErrorCode.FENCED_MEMBER_EPOCH, "it does not say what it has"
    other = (TopicPartitions(id_of("payments"), (0,)),)
    assert group.hear(member_id="one", member_epoch=2, topic_partitions=other).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert (group.beat(one).code, one.epoch) == (0, 3)


def test_a_new_topic_and_more_partitions_are_assigned_at_a_later_heartbeat() -> None:
    group = Consumers({"orders": 2})
    one = group.joined("one", "orders", "payments")
    assert one.has == {"orders": frozenset({0, 1})}
    group.topics.made["payments"] = 3
    looks = group.topics.looks
    assert group.beat(one).has == {"orders": frozenset({0, 1})}, "topics are looked at once a second"
    assert group.topics.looks == looks
    group.later(1_000)
    assert group.beat(one).has == {"orders": frozenset({0, 1}), "payments": frozenset({0, 1, 2})}
    assert one.epoch == 3
    group.topics.made["orders"] = 4
    group.later(1_000)
    assert group.beat(one).has["orders"] == frozenset(range(4))
    del group.topics.made["payments"]
    group.later(1_000)
    assert group.settled(one) == [{"orders": frozenset(range(4))}], "a topic that is gone is given up"


def test_partitions_are_assigned_anew_once_in_the_interval() -> None:
    group = Consumers(consumer_group_assignment_interval_ms=1_000)
    one, two = group.joined("one"), group.joined("two")
    assert (two.epoch, group.group.state) == (2, "Assigning")
    group.settled(one, two)
    assert (one.has, two.has) == ({"orders": ALL}, {})
    group.later(1_000)
    assert [len(has["orders"]) for has in group.settled(one, two)] == [3, 3]


def test_partitions_are_assigned_anew_although_the_clock_is_set_back() -> None:
    group = Consumers(consumer_group_assignment_interval_ms=1_000)
    one, two = group.joined("one"), group.joined("two")
    group.settled(one, two)
    group.clock.set_by_ms = -3_600_000
    assert [len(has["orders"]) for has in group.settled(one, two)] == [3, 3]


def test_a_subscription_that_changes_gives_up_what_it_no_longer_names_at_once() -> None:
    group = Consumers({"orders": 2, "payments": 2})
    one = group.joined("one", "orders", "payments")
    answer = group.hear(member_id="one", member_epoch=one.epoch, subscribed_topic_names=("payments",))
    assert answer.assignment is not None
    assert [of.topic_id for of in answer.assignment.topic_partitions] == [id_of("payments")]
    one.told(answer)
    assert group.settled(one) == [{"payments": frozenset({0, 1})}]


def test_members_may_subscribe_different_topics() -> None:
    group = Consumers({"orders": 4, "payments": 4})
    one, two = group.joined("one", "orders"), group.joined("two", "orders", "payments")
    assert group.settled(one, two) == [{"orders": frozenset(range(4))}, {"payments": frozenset(range(4))}]


def test_the_assignor_is_the_one_that_most_members_name() -> None:
    group = Consumers({"orders": 4, "payments": 4})
    both = ("orders", "payments")
    one, two = group.joined("a", *both, server_assignor="range"), group.joined("b", *both)
    low, high = frozenset({0, 1}), frozenset({2, 3})
    assert group.settled(one, two) == [{"orders": low, "payments": low}, {"orders": high, "payments": high}]
    unknown = group.hear(member_id="a", member_epoch=one.epoch, server_assignor="sticky")
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert unknown.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_a_static_member_that_leaves_for_a_while_gets_its_partitions_back_under_another_id() -> None:
    group = Consumers()
    one, two = group.joined("one", instance_id="i"), group.joined("two")
    group.settled(one, two)
    had, epoch = one.has, group.group.epoch
    assert group.joined("again", instance_id="i").code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert group.gone(one, -2, instance_id="i").member_epoch == -2
    assert group.settled(two) == [two.has], "nobody gets them meanwhile"
    back = group.joined("again", instance_id="i")
    assert (back.has, group.group.epoch) == (had, epoch), "without another epoch of the group"
    assert set(group.group.members) == {"two", "again"}
    assert group.beat(one, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert group.beat(Consumer("x", 1), instance_id="j").code == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.gone(back, -1, instance_id="i").error_code == 0
    assert group.settled(two) == [{"orders": ALL}]


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    group = Consumers()
    one = group.joined("one", instance_id="i")
    group.gone(one, -2, instance_id="i")
    group.later(SESSION_MS)
    assert group.group.members == {}
    assert group.group.state == "Empty"


def test_a_group_has_no_more_members_than_it_may() -> None:
    group = Consumers(consumer_group_max_size=1)
    one = group.joined("one")
    two = group.joined("two")
    assert (two.code, two.said) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert group.beat(one).code == 0


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"topic_partitions": (TopicPartitions(),)}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_what_is_wrong(said: dict[str, object], message: str) -> None:
    first = {"member_id": "one", "rebalance_timeout_ms": 1, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
    found = Consumers().hear(**{**first, **said})
    assert (found.error_code, found.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_version_0_gives_a_member_its_id() -> None:
    group = Consumers()
    answer = group.hear(0, rebalance_timeout_ms=1, subscribed_topic_names=("orders",), topic_partitions=())
    assert answer.error_code == 0
    assert list(group.group.members) == [answer.member_id]
    assert answer.member_id


def test_a_group_that_is_not_there_is_made_only_by_who_joins() -> None:
    group = Consumers()
    assert group.hear(member_id="one", member_epoch=1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert group.hear(member_id="one", member_epoch=-1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert group.listed() == []


def test_a_log_that_refuses_leaves_the_group_as_it_was() -> None:
    group = Consumers()
    one = group.joined("one")
    before = group.group
    group.log.is_broken = True
    assert group.joined("two").code == ErrorCode.NOT_COORDINATOR
    assert group.gone(one).error_code == ErrorCode.NOT_COORDINATOR
    group.later(SESSION_MS)
    assert group.group is before
    group.log.is_broken = False
    group.later(SESSION_MS)
    assert group.group.members == {}, "it is tried again"


def test_members_go_on_after_a_restart() -> None:
    group = Consumers()
    one, two = group.joined("one"), group.joined("two", instance_id="i")
    group.settled(one, two)
    before = group.group
    group.started()
    assert (group.group.members, group.group.targets, group.group.owners) == (before.members, before.targets, before.owners)
    assert (group.group.epoch, group.group.assignment_epoch, group.group.names) == (3, 3, before.names)
    assert group.settled(one, two) == [one.has, two.has]
    assert group.group.epoch == 3
    group.later(SESSION_MS)
    assert group.group.members == {}


def test_without_a_log_groups_live_in_memory() -> None:
    group = Consumers()
    group.log = None
    group.started()
    one, two = group.joined("one"), group.joined("two")
    assert [len(has["orders"]) for has in group.settled(one, two)] == [3, 3]


def test_topics_are_compared_again_after_the_log_has_refused() -> None:
    group = Consumers({"orders": 1})
    one = group.joined("one")
    group.topics.made["orders"] = 2
    group.later(1_000)
    group.log.is_broken = True
    assert group.beat(one).code == ErrorCode.NOT_COORDINATOR
    group.log.is_broken = False
    assert group.settled(one) == [{"orders": frozenset({0, 1})}]


def test_members_are_refused_where_there_is_no_memory_for_more_and_those_that_are_there_go_on() -> None:
    group = Consumers({"orders": 1}, groups_bytes_max=100_000)
    one = group.joined("one", "orders", regex="x" * 30_000)
    assert one.code == 0
    assert group.joined("two", "orders", regex="y" * 30_000).code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "endpoint.groups.max.bytes allows" in group.said[-1]
    assert group.beat(one).code == 0
    group.gone(one)
    group.later(1_000)
    assert group.joined("two", "orders", regex="y" * 30_000).code == 0


def test_partitions_take_memory_in_each_group_that_reads_them() -> None:
    group = Consumers({"orders": 1_000}, groups_bytes_max=1_500_000)
    codes = [group.joined("one", group_id=f"group {number}").code for number in range(4)]
    assert codes == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_a_group_of_members_that_share_many_partitions_takes_the_memory_that_it_is_said_to_take() -> None:
    group = Consumers({"orders": 2_000})
    tracemalloc.start()
    try:
        members = [group.joined(f"member {number}") for number in range(50)]
        group.settled(*members, rounds=3)
        members.clear()
        group.log.kept.clear()
        group.latest = None
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < consumer_group_size(group.group)


def test_a_member_that_joins_again_as_another_static_one_gives_its_former_name_back() -> None:
    for epoch in (-1, -2):
        group = Consumers()
        one, two = group.joined("one", instance_id="i"), group.joined("two")
        group.settled(one, two)
        again = group.joined("one", instance_id="j")
        assert (again.code, again.has) == (0, one.has)
        assert group.group.static_members == {"j": "one"}
        group.gone(again, epoch, instance_id="j")
        third = group.joined("third", instance_id="i")
        assert (third.code, set(group.group.members) - {"one"}) == (0, {"two", "third"})
        group.started()
        assert group.group.static_members == ({"i": "third"} if epoch == -1 else {"i": "third", "j": "one"})
