"""A consumer group that becomes a classic one again, since only members of the classic protocol are left."""

from typing import Any

import pytest
from consumer_members import Consumer
from mixed_members import REBALANCE_MS as CLASSIC_MS
from mixed_members import REJOIN, ClassicConsumer, MixedMembers, assigned, subscription
from mixed_members import SESSION_MS as CLASSIC_SESSION_MS

from tiering.endpoint.coordinator.config import ConsumerGroupMigrationPolicy
from tiering.endpoint.protocol.errors import ErrorCode

SIX = frozenset(range(6))


def mixed(instance: str | None = None, **config: Any) -> tuple[MixedMembers, Consumer, ClassicConsumer]:
    """A consumer group with a member of each protocol that share six partitions."""
    group = MixedMembers(**config)
    new, old = group.joined("new", instance_id=instance), group.came()
    group.goes_on(new, old)
    return group, new, old


def rebalances(group: MixedMembers, old: ClassicConsumer) -> None:
    """The group is a classic one whose only member is told to join, leads, and assigns."""
    assert group.group_type() == "classic PreparingRebalance"
    assert group.beats(old) == REJOIN
    told = group.join(old.member_id, old.offers).result(0)
    assert (told.leader, told.generation_id, told.protocol_name) == (old.member_id, old.generation + 1, "range")
    assert group.sync(old.member_id, told.generation_id, {old.member_id: b"all"}).result(0).assignment == b"all"
    assert group.group_type() == "classic Stable"


def test_the_last_member_of_kip_848_leaves() -> None:
    group, new, old = mixed()
    assert group.gone(new).error_code == 0
    described = group.described()
    assert [(one.member_id, assigned(one.member_assignment)) for one in described.members] == [(old.member_id, old.has)]
    rebalances(group, old)
    assert group.beat(new).code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_last_member_of_kip_848_is_not_heard_of_any_more() -> None:
    group, _, old = mixed()
    for _ in range(6):
        group.later(CLASSIC_SESSION_MS - 1)
        assert group.beats(old) in (0, REJOIN)
    rebalances(group, old)


def test_the_last_member_of_kip_848_does_not_give_up_what_it_is_to_give_up() -> None:
    group, new = MixedMembers(), None
    new = group.joined("new")
    old = group.came()
    for _ in range(4):
        group.hear(member_id="new", member_epoch=new.epoch, topic_partitions=new.owned)
        group.beats(old)
        group.later(9_000)
    assert group.group_type() == "classic PreparingRebalance"


def test_an_administrator_removes_the_last_members_of_kip_848() -> None:
    group, _, old = mixed()
    assert group.leave("new") == [0]
    rebalances(group, old)


def test_it_is_found_again_after_a_restart() -> None:
    group, new, old = mixed()
    group.gone(new)
    group.started()
    assert [assigned(one.member_assignment) for one in group.described().members] == [old.has]
    rebalances(group, old)


def test_members_that_do_not_come_back_after_a_restart_are_out() -> None:
    group, new, _ = mixed()
    group.gone(new)
    group.started()
    group.later(CLASSIC_SESSION_MS + 1)
    assert group.group_type() == "classic Empty"


def test_a_static_member_that_comes_back_as_a_classic_one_changes_nothing_for_the_others() -> None:
    group, new, old = mixed(instance="a")
    again = group.came(instance_id="a")
    assert group.group_type() == "classic Stable"
    assert (again.has, again.generation) == (new.has, old.generation)
    assert [group.beats(one) for one in (old, again)] == [0, 0]
    group.started()
    assert [assigned(one.member_assignment) for one in group.described().members] == [old.has, again.has]


def test_a_static_member_that_comes_back_with_another_subscription_causes_a_rebalance() -> None:
    group, _, old = mixed(instance="a")
    told = group.join("", ClassicConsumer("", ("payments",)).offers, instance_id="a").result(0)
    assert told.error_code == 0
    assert group.group_type() == "classic PreparingRebalance"
    waiting = group.join(told.member_id, ClassicConsumer("", ("payments",)).offers, instance_id="a")
    assert group.beats(old) == REJOIN
    assert group.join(old.member_id, old.offers).result(0).generation_id == old.generation + 1
    assert waiting.result(0).error_code == 0


def test_a_static_member_that_comes_back_before_others_have_their_partitions_causes_a_rebalance() -> None:
    group, _, old = mixed(instance="a")
    waiting = group.came()
    assert waiting.has == {}, "the others have all of them still"
    again = group.came(instance_id="a")
    assert again.code == REJOIN
    assert group.group_type() == "classic PreparingRebalance"
    assert [group.beats(one) for one in (waiting, again)] == [REJOIN, REJOIN]
    assert group.beats(old) == ErrorCode.ILLEGAL_GENERATION, "it has not come to the group's last epoch"
    group.started()
    assert group.group_type() == "classic PreparingRebalance"


@pytest.mark.parametrize("policy", [ConsumerGroupMigrationPolicy.DISABLED, ConsumerGroupMigrationPolicy.UPGRADE])
def test_a_policy_may_forbid_it(policy: ConsumerGroupMigrationPolicy) -> None:
    group, new, old = mixed(consumer_group_migration_policy=policy)
    group.gone(new)
    assert group.group_type() == "consumer Assigning"
    group.goes_on(old)
    assert old.has == {"orders": SIX}


def test_a_group_of_more_members_than_a_classic_group_may_have_stays_what_it_is() -> None:
    group = MixedMembers(group_max_size=1)
    new, old, other = group.joined("new"), group.came(), group.came()
    group.goes_on(new, old, other)
    group.gone(new)
    assert group.group_type().startswith("consumer")
    assert group.goes_on(old, other) != []
    assert old.has["orders"] | other.has["orders"] == SIX


def test_a_group_without_members_stays_what_it_is() -> None:
    group, new, old = mixed()
    assert group.leave(old.member_id, "new") == [0, 0]
    assert group.group_type() == "consumer Empty"
    assert group.beat(new).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_what_cannot_be_kept_is_tried_again() -> None:
    group, _, old = mixed()
    group.log.is_broken = True
    for _ in range(6):
        group.later(CLASSIC_SESSION_MS - 1)
        group.beats(old)
    assert group.group_type().startswith("consumer")
    group.log.is_broken = False
    for _ in range(6):
        group.later(CLASSIC_SESSION_MS - 1)
        group.beats(old)
    rebalances(group, old)


def test_a_group_goes_down_and_up_as_often_as_members_come_and_go() -> None:
    group, new, old = mixed()
    for round_ in range(3):
        group.gone(new)
        assert group.join(old.member_id, old.offers).result(0).error_code == 0
        new = group.joined(f"new {round_}")
        assert group.group_type().startswith("consumer")
        group.rejoin(old)
        group.goes_on(new, old)
        assert new.has["orders"] | old.has["orders"] == SIX
        group.later(CLASSIC_SESSION_MS - 1)
        assert group.beats(old) == 0
        group.beat(new)
    for _ in range(CLASSIC_MS // CLASSIC_SESSION_MS + 2):
        group.later(CLASSIC_SESSION_MS - 1)
        assert group.beats(old) == 0, "no time of a former life of the group has passed meanwhile"
        group.beat(new)


def test_a_target_assignment_that_is_not_made_yet_is_taken_as_it_was() -> None:
    group, new, old = mixed(instance="a", consumer_group_assignment_interval_ms=1_000_000)
    assert old.has == {}, "partitions have been assigned before it came, and are not soon again"
    assert group.join("", old.offers, instance_id="a").result(0).error_code == 0
    assert group.group_type() == "classic PreparingRebalance", "they share the partitions themselves now"
    assert [assigned(one.member_assignment) for one in group.described().members] == [{}, new.has]
    assert group.beats(old) == ErrorCode.ILLEGAL_GENERATION, "it had not come to the group's last epoch"


def test_a_regular_expression_goes_with_the_member_that_had_it() -> None:
    group = MixedMembers()
    new = group.joined("new", regex="ord.*", instance_id="a")
    group.beat(new)
    old = group.came()
    group.goes_on(new, old)
    assert group.group.resolved.keys() == {"ord.*"}
    told = group.join("", old.offers, instance_id="a").result(0)
    assert told.error_code == 0
    assert group.group_type() == "classic PreparingRebalance", "it subscribes by name now"
    group.started()
    assert group.group_type() == "classic PreparingRebalance"


def test_a_member_leaves_though_a_classic_one_has_said_nothing_that_can_be_read_for_their_common_protocol() -> None:
    group, new, old = mixed()
    odd = {"other": subscription("orders"), "range": b""}
    told = group.join("mine", odd).result(0)
    assert told.error_code == 0
    assert group.gone(new).error_code == 0
    assert group.group_type() == "classic PreparingRebalance"
    given = {one.member_id: one.member_assignment for one in group.described().members}
    assert (given["mine"], len(assigned(given[old.member_id])["orders"])) == (b"", 2)
