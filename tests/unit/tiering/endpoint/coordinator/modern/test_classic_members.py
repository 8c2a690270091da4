"""Members of the classic protocol in a consumer group: they join, ask for their partitions, are heard of and leave."""

from collections.abc import Callable
from typing import Any

import pytest
from consumer_members import Consumer, id_of
from mixed_members import GROUP, REBALANCE_MS, REJOIN, SESSION_MS, ClassicConsumer, MixedMembers, subscription

from tiering.endpoint.coordinator.config import ConsumerGroupMigrationPolicy
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequestGroup

SIX = frozenset(range(6))


def mixed(**config: Any) -> tuple[MixedMembers, Consumer, ClassicConsumer]:
    """A consumer group with a member of each protocol that share six partitions."""
    group = MixedMembers(**config)
    new, old = group.joined("new"), group.came()
    assert [len(has["orders"]) for has in group.goes_on(new, old)] == [3, 3]
    return group, new, old


def refusal(ask: Callable[[], Any]) -> int:
    with pytest.raises(GroupError) as raised:
        ask()
    return raised.value.code


def test_a_classic_member_joins_a_consumer_group_and_gets_partitions_when_others_have_given_them_up() -> None:
    group = MixedMembers()
    new = group.joined("new")
    old = group.came()
    assert (old.generation, old.has) == (3, {}), "the first member has all of them still"
    assert group.beats(old) == 0, "there is nothing to get yet"
    group.beat(new)
    group.beat(new)
    assert group.beats(old) == REJOIN
    group.rejoin(old)
    assert (old.generation, len(old.has["orders"]), new.has["orders"] | old.has["orders"]) == (3, 3, SIX)
    assert group.group_type() == "consumer Stable"


def test_versions_that_give_no_ids_first_join_at_once() -> None:
    group = MixedMembers()
    group.joined("new")
    assert group.came(member_version=3).code == 0


def test_a_full_group_takes_no_classic_member() -> None:
    group = MixedMembers(consumer_group_max_size=1)
    group.joined("new")
    assert group.join("").result(0).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert group.join("new").result(0).error_code == 0, "who is a member may go on with the other protocol"


def test_the_topics_that_a_classic_member_names_count_as_memory() -> None:
    group = MixedMembers(groups_bytes_max=200_000)
    new, old = group.joined("new"), group.came()
    many = {"range": subscription(*map(str, range(3_000)))}
    for member_id in ("mine", old.member_id):
        assert group.join(member_id, many).result(0).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert group.join(old.member_id, old.offers).result(0).error_code == 0
    assert set(group.group.members) == {new.member_id, old.member_id}


def test_all_classic_members_support_one_protocol() -> None:
    group, _, _ = mixed()
    for protocols, kind in (({"sticky": subscription("orders")}, "consumer"), ({}, "consumer"), ({"range": b""}, "connect")):
        found = group.join("", protocols, protocol_type=kind).result(0)
        assert found.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    both = group.came(protocols=("sticky", "range"))
    assert both.code == 0
    assert group.group.members[both.member_id].classic is not None


def test_a_subscription_that_cannot_be_read_is_refused() -> None:
    group, _, _ = mixed()
    assert group.join("mine", {"range": b"\x00"}).result(0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert group.join("mine", {"range": b"\x00"}, instance_id="a").result(0).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_cannot_be_kept_has_not_joined() -> None:
    group = MixedMembers()
    group.joined("new")
    told = group.join("").result(0)
    group.log.is_broken = True
    assert group.join(told.member_id).result(0).error_code == ErrorCode.NOT_COORDINATOR
    assert list(group.group.members) == ["new"]


def test_a_static_member_keeps_its_partitions_when_it_starts_anew() -> None:
    group = MixedMembers()
    new, old = group.joined("new"), group.came(instance_id="a")
    group.goes_on(new, old)
    had, epoch = old.has, group.group.epoch
    again = group.came(instance_id="a")
    assert again.member_id != old.member_id
    assert (again.has, again.generation, group.group.epoch) == (had, epoch, epoch)
    assert group.beats(old) == ErrorCode.FENCED_INSTANCE_ID
    assert group.synced(old).code == ErrorCode.FENCED_INSTANCE_ID
    assert group.rejoin(old).code == ErrorCode.FENCED_INSTANCE_ID
    assert group.join("mine", instance_id="b").result(0).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_subscribes_something_else_begins_an_epoch() -> None:
    group = MixedMembers({"orders": 6, "payments": 2})
    new, old = group.joined("new"), group.came(instance_id="a")
    group.goes_on(new, old)
    epoch = group.group.epoch
    again = group.came("payments", instance_id="a")
    assert group.group.epoch == epoch + 1
    group.goes_on(new, again)
    assert (again.has, new.has) == ({"payments": frozenset({0, 1})}, {"orders": SIX})


def test_a_static_member_of_kip_848_that_comes_back_as_a_classic_one_keeps_its_partitions() -> None:
    group = MixedMembers()
    new, other = group.joined("new", instance_id="a"), group.joined("other")
    group.goes_on(new, other)
    again = group.came(instance_id="a")
    assert again.has == new.has
    assert group.beat(new).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.joined("newer", instance_id="a").has == again.has, "and back: a classic one need not have left"


def test_an_eager_member_that_has_to_give_up_partitions_has_done_so_when_it_joins() -> None:
    group = MixedMembers()
    (old,) = group.shared({0, 1, 2, 3, 4, 5})
    new = group.joined("new")
    assert group.beats(old) == REJOIN
    group.rejoin(old)
    assert (old.generation, len(old.has["orders"])) == (2, 3)
    group.beat(new)
    assert new.has["orders"] | old.has["orders"] == SIX


def test_a_cooperative_member_joins_once_more_when_it_has_given_up_partitions() -> None:
    group = MixedMembers()
    (old,) = group.shared({0, 1, 2, 3, 4, 5}, protocols={"range": subscription("orders", has={"orders": SIX})})
    old.is_cooperative = True
    new = group.joined("new")
    group.rejoin(old)
    assert (old.generation, len(old.has["orders"])) == (1, 3), "it stays in its generation, with what it keeps"
    group.beat(new)
    assert new.has == {}
    assert group.beats(old) == REJOIN
    group.rejoin(old)
    assert old.generation == 2
    group.beat(new)
    assert new.has["orders"] | old.has["orders"] == SIX
    assert group.beats(old) == 0


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_partitions_are_told_in_the_version_of_the_subscription(version: int) -> None:
    group = MixedMembers()
    new, old = group.joined("new"), group.came(version=version)
    group.goes_on(new, old)
    found = group.sync(old.member_id, old.generation).result(0)
    assert (found.assignment[:2], found.protocol_type) == (version.to_bytes(2, "big"), None)
    assert len(old.has["orders"]) == 3


def test_a_later_version_is_answered_in_the_last_one_that_is_known() -> None:
    group = MixedMembers()
    group.joined("new")
    told = group.join("", {"range": b"\x00\x09" + subscription("orders", version=3)[2:]}, version=3).result(0)
    assert group.sync(told.member_id, told.generation_id).result(0).assignment[:2] == b"\x00\x03"


def test_what_is_asked_wrongly_for_partitions_is_refused() -> None:
    group, new, old = mixed()

    def asked(member_id: str, generation: int, **more: Any) -> int:
        return group.sync(member_id, generation, **more).result(0).error_code

    assert asked(old.member_id, old.generation) == 0
    assert asked("nobody", old.generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert asked(old.member_id, old.generation, group_instance_id="a") == ErrorCode.UNKNOWN_MEMBER_ID
    assert asked(new.member_id, new.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert asked(old.member_id, old.generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert asked(old.member_id, old.generation, protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert asked(old.member_id, old.generation, protocol_name="sticky") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    group.joined("third")
    assert asked(old.member_id, old.generation) == REJOIN


def test_heartbeats_of_those_who_are_no_classic_members_in_their_generation_are_refused() -> None:
    group, new, old = mixed()
    assert group.beats(old) == 0
    assert group.heartbeat("nobody", old.generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(old.member_id, old.generation, "a") == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(new.member_id, new.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(old.member_id, old.generation + 1) == ErrorCode.ILLEGAL_GENERATION


def test_a_classic_member_that_is_not_heard_of_for_its_own_session_is_out() -> None:
    group, new, old = mixed()
    group.later(SESSION_MS - 1)
    assert group.beats(old) == 0
    group.beat(new)
    group.later(SESSION_MS - 1)
    assert old.member_id in group.group.members
    group.later(2)
    assert list(group.group.members) == ["new"]
    group.beat(new)
    assert new.has["orders"] == SIX


def test_a_member_that_is_told_to_join_again_and_does_not_is_out_though_it_is_heard_of() -> None:
    group, new, old = mixed()
    third = group.joined("third")
    for _ in range(REBALANCE_MS // 9_000):
        assert group.beats(old) == REJOIN
        group.beat(new)
        group.beat(third)
        group.later(9_000)
    group.later(9_000)
    assert set(group.group.members) == {"new", "third"}


def test_a_member_that_joins_and_does_not_ask_for_its_partitions_is_out_though_it_is_heard_of() -> None:
    group, new, old = mixed()
    group.rejoin(old, syncs=False)
    for _ in range(REBALANCE_MS // 9_000 + 1):
        group.beats(old)
        group.beat(new)
        group.later(9_000)
    assert set(group.group.members) == {"new"}


def test_members_leave_at_once_also_those_of_kip_848_whom_an_administrator_removes() -> None:
    group, _, old = mixed()
    static = group.came(instance_id="a")
    third = group.joined("third", instance_id="b")
    epoch = group.group.epoch
    gone = group.leave(old.member_id, ("", "a"), ("", "b"), "nobody", ("mine", "a"), ("", "c"))
    unknown, fenced = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
    assert gone == [0, 0, 0, unknown, fenced, unknown]
    assert (list(group.group.members), group.group.epoch) == (["new"], epoch + 1)
    assert group.beats(static) == unknown
    assert group.beat(third).code == unknown


def test_nothing_happens_if_nobody_leaves() -> None:
    group, _, _ = mixed()
    epoch = group.group.epoch
    assert group.leave("nobody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert group.group.epoch == epoch


def test_a_group_is_described_with_the_protocol_of_each_member() -> None:
    group, _, old = mixed()
    described = {one.member_id: one for one in group.consumer_described().members}
    assert {name: one.member_type for name, one in described.items()} == {"new": 1, old.member_id: 0}
    assert described[old.member_id].subscribed_topic_names == ("orders",)
    assert group.described().group_state == "Dead", "it is no classic group"


def test_a_classic_member_commits_in_its_generation() -> None:
    group, new, old = mixed()
    mine = {"topic_id": id_of("orders"), "member_id": old.member_id}

    def commit(generation: int, version: int = 9) -> int:
        return group.commit(5, generation_id_or_member_epoch=generation, version=version, **mine)

    assert (commit(old.generation), commit(old.generation, 2)) == (0, 0)
    assert refusal(lambda: commit(old.generation - 1)) == ErrorCode.ILLEGAL_GENERATION
    assert refusal(lambda: commit(old.generation + 1)) == ErrorCode.ILLEGAL_GENERATION
    asked = [OffsetFetchRequestGroup(GROUP, old.member_id, epoch) for epoch in (old.generation, old.generation - 1)]
    assert group.groups.fetch_offsets(asked[0], require_stable=False).error_code == 0
    assert refusal(lambda: group.groups.fetch_offsets(asked[1], require_stable=False)) == ErrorCode.ILLEGAL_GENERATION
    assert new.epoch == old.generation


def test_members_of_both_protocols_go_on_after_a_restart() -> None:
    group, new, old = mixed()
    before = group.group
    group.started()
    assert group.group.members == before.members
    assert (group.beats(old), group.beat(new).code) == (0, 0)
    assert len(group.synced(old).has["orders"]) == 3
    group.later(SESSION_MS + 1)
    assert list(group.group.members) == ["new"]


def test_topics_are_looked_at_before_a_member_is_told_its_partitions() -> None:
    group, _, old = mixed()
    looks = group.topics.looks
    group.rejoin(old)
    assert group.topics.looks == looks + 2, "when it joins, and when it asks"


def test_a_regular_expression_goes_with_the_last_member_that_an_administrator_removes() -> None:
    group = MixedMembers()
    group.joined("new", regex="ord.*", instance_id="a")
    third = group.joined("third")
    assert group.beat(third).code == 0
    assert group.leave(("", "a")) == [0]
    assert (dict(group.group.resolved), dict(group.group.regexes)) == ({}, {})


def test_a_member_is_not_told_to_join_again_before_partitions_are_assigned_anew() -> None:
    group = MixedMembers(consumer_group_assignment_interval_ms=20_000)
    group.clock.now = 1_000_000
    new, old = group.joined("new"), group.came()
    assert (old.generation, old.has, group.group.epoch) == (2, {}, 3)
    assert group.beats(old) == 0
    assert group.synced(old).code == 0, "it would only be told the same"
    group.later(9_000)
    assert group.beats(old) == 0
    group.later(9_000)
    assert group.beats(old) == 0
    group.later(2_000)
    group.beat(new)
    assert group.beats(old) == REJOIN
    assert group.synced(old).code == REJOIN


def test_classic_members_alone_assign_anew_what_one_that_has_gone_had() -> None:
    group = MixedMembers(consumer_group_migration_policy=ConsumerGroupMigrationPolicy.UPGRADE)
    new, old, other = group.joined("new"), group.came(), group.came()
    group.goes_on(new, old, other)
    group.gone(new)
    assert [group.beats(one) for one in (old, other)] == [REJOIN, REJOIN]
    group.goes_on(old, other)
    assert old.has["orders"] | other.has["orders"] == SIX
