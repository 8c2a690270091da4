"""Heartbeats and sessions: who is heard of stays, who is not is out, and leaves."""

import threading
from time import monotonic

import pytest
from group_members import DELAY_MS, GROUP, SESSION_MS, Members, code, subscription
from offsets_kept import MemoryLog

from local_log.errors import Invalid
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import OffsetAndMetadata, offset_commit_record
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.settings import read_settings

HOUR_MS = 3_600_000


@pytest.fixture
def members() -> Members:
    return Members()


def test_a_member_is_told_whether_it_is_to_join_again(members: Members) -> None:
    first, second = (one.member_id for one in members.rebalanced(2))
    assert members.heartbeat(first) == 0, "while the leader assigns"
    members.sync(first, 1, {})
    assert members.heartbeat(second) == 0
    members.join(first)
    assert members.heartbeat(second) == ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_of_unknown_groups_members_and_generations_are_refused(members: Members) -> None:
    assert members.heartbeat("somebody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert members.heartbeat("somebody", group="") == ErrorCode.INVALID_GROUP_ID
    (member_id,) = members.stable(1)
    assert members.heartbeat("somebody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert members.heartbeat(member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    members.leave(member_id)
    assert members.heartbeat(member_id) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_not_heard_of_for_its_session_is_out(members: Members) -> None:
    (member_id,) = members.stable(1)
    members.later(SESSION_MS - 1)
    assert members.heartbeat(member_id) == 0
    members.later(SESSION_MS - 1)
    assert members.state == "Stable"
    members.later(1)
    assert (members.state, members.heartbeat(member_id)) == ("Empty", ErrorCode.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
def test_sessions_are_as_long_as_before_when_the_wall_clock_is_set(members: Members, by_ms: int) -> None:
    (member_id,) = members.stable(1)
    members.clock.set_by_ms = by_ms
    members.later(SESSION_MS - 1)
    assert members.heartbeat(member_id) == 0
    members.later(SESSION_MS)
    assert members.state == "Empty"


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
def test_rebalances_end_as_before_when_the_wall_clock_is_set_meanwhile(members: Members, by_ms: int) -> None:
    join = members.new()
    members.clock.set_by_ms = by_ms
    members.later(DELAY_MS - 1)
    assert not join.done()
    members.later(1)
    assert join.result(0).generation_id == 1


def test_the_others_join_again_when_one_is_out(members: Members) -> None:
    _, follower = members.stable(2)
    members.later(SESSION_MS - 1)
    members.heartbeat(follower)
    members.later(1)
    assert members.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = members.join(follower).result(0)
    assert (answer.leader, [one.member_id for one in answer.members]) == (follower, [follower])


def test_a_member_that_is_not_heard_of_while_all_join_is_out_and_the_others_go_on(members: Members) -> None:
    leader, follower = members.stable(2)
    joined = members.join(leader)
    members.later(SESSION_MS)
    assert [one.member_id for one in joined.result(0).members] == [leader]
    assert members.heartbeat(follower) == ErrorCode.UNKNOWN_MEMBER_ID


def test_whose_request_waits_needs_no_heartbeat(members: Members) -> None:
    leader, follower = members.stable(2, rebalance_ms=5 * SESSION_MS)
    joined = members.join(leader, rebalance_ms=5 * SESSION_MS)
    members.kept_alive(4 * SESSION_MS, follower)
    assert not joined.done()
    assert len(members.described().members) == 2


def test_a_commit_counts_as_a_heartbeat(members: Members) -> None:
    (member_id,) = members.stable(1)
    for offset in range(5):
        members.later(SESSION_MS - 1)
        assert members.commit(offset, generation_id_or_member_epoch=1, member_id=member_id) == 0
    assert members.offsets() == {("orders", 0): 4}


def commit_error(members: Members, **more: object) -> int:
    with pytest.raises(GroupError) as raised:
        members.commit(1, **more)
    return raised.value.code


def test_only_members_of_the_generation_commit_for_a_group_that_has_members(members: Members) -> None:
    (member_id,) = members.stable(1, instances=("a",))
    mine = {"generation_id_or_member_epoch": 1, "member_id": member_id}
    assert commit_error(members) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(members, **{**mine, "member_id": "somebody"}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(members, **{**mine, "generation_id_or_member_epoch": 2}) == ErrorCode.ILLEGAL_GENERATION
    assert commit_error(members, **mine, group_instance_id="b") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(members, **{**mine, "member_id": "x"}, group_instance_id="a") == ErrorCode.FENCED_INSTANCE_ID
    assert members.commit(7, **mine, group_instance_id="a") == 0
    members.leave(member_id)
    assert members.commit(8) == 0, "an administrator, once nobody is there"
    assert commit_error(members, **mine) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_former_assignment_is_committed_while_members_join_and_not_before_the_next_is_known(members: Members) -> None:
    leader, follower = members.stable(2)
    members.join(leader)
    assert members.commit(5, generation_id_or_member_epoch=1, member_id=follower) == 0
    members.join(follower)
    assert commit_error(members, generation_id_or_member_epoch=2, member_id=follower) == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_leave_and_the_others_join_again(members: Members) -> None:
    leader, follower = members.stable(2)
    assert members.leave(leader) == [0]
    assert members.heartbeat(leader) == ErrorCode.UNKNOWN_MEMBER_ID
    assert members.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    assert members.join(follower).result(0).leader == follower


def test_a_group_that_all_leave_is_empty_and_so_kept(members: Members) -> None:
    ids = members.stable(2)
    assert members.leave(*ids) == [0, 0]
    assert members.state == "Empty"
    members.started()
    assert (members.state, members.described().protocol_type) == ("Empty", "consumer")


def test_who_leaves_an_unknown_group_or_is_no_member_is_told(members: Members) -> None:
    with pytest.raises(GroupError) as raised:
        members.leave("somebody")
    assert raised.value.code == ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(GroupError) as raised:
        members.leave("somebody", group="")
    assert raised.value.code == ErrorCode.INVALID_GROUP_ID
    ids = members.stable(2)
    assert members.leave("somebody", ids[0]) == [ErrorCode.UNKNOWN_MEMBER_ID, 0]


def test_an_administrator_removes_static_members_by_their_names(members: Members) -> None:
    ids = members.stable(3, instances=("a", "b", "c"))
    assert members.leave(("", "a"), ("", "nobody"), (ids[1], "b"), (ids[1], "c"), ("", None)) == [
        0,
        ErrorCode.UNKNOWN_MEMBER_ID,
        0,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert [one.group_instance_id for one in members.described().members] == ["c"]


def test_a_member_that_leaves_while_it_waits_is_told_that_it_is_unknown(members: Members) -> None:
    first, second = (one.member_id for one in members.rebalanced(2))
    syncing = members.sync(second)
    members.leave(second)
    assert code(syncing) == ErrorCode.UNKNOWN_MEMBER_ID
    joining = members.join(first)
    assert code(joining) == 0
    added = members.new()
    members.leave(members.described().members[-1].member_id)
    assert code(added) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_was_given_can_leave_before_anybody_joins_with_it(members: Members) -> None:
    (leader,) = members.stable(1)
    told = members.join().result(0).member_id
    joined = members.join(leader)
    assert not joined.done()
    assert members.leave(told) == [0]
    assert joined.result(0).generation_id == 2
    assert code(members.join(told)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_after_a_restart_members_go_on_and_are_out_if_they_do_not(members: Members) -> None:
    leader, follower = members.stable(2)
    members.commit(12, generation_id_or_member_epoch=1, member_id=leader)
    members.started()
    assert (members.state, members.offsets()) == ("Stable", {("orders", 0): 12})
    assert members.heartbeat(leader) == 0
    assert members.sync(follower).result(0).assignment == b"1"
    members.kept_alive(SESSION_MS, leader)
    assert [one.member_id for one in members.described().members] == [leader]


def test_a_group_without_a_log_lives_in_memory() -> None:
    members = Members()
    members.groups = type(members.groups)(members.config, None, members.clock, members.groups.ids, members.said.append)
    leader, follower = members.stable(2)
    assert members.heartbeat(follower) == 0
    assert commit_error(members, generation_id_or_member_epoch=1, member_id=leader) == ErrorCode.POLICY_VIOLATION
    members.leave(leader, follower)
    members.groups.delete_group(GROUP)
    assert members.state == "Dead"


def test_when_it_stops_all_that_waits_is_answered_and_nothing_more_is_begun(members: Members) -> None:
    first, second = (one.member_id for one in members.rebalanced(2))
    joining, syncing = members.new(group="others"), members.sync(second)
    members.groups.stop()
    assert [code(joining), code(syncing)] == [ErrorCode.NOT_COORDINATOR] * 2
    assert code(members.join()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert members.heartbeat(first) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_offsets_of_topics_that_members_read_are_neither_deleted_nor_expired(members: Members) -> None:
    members = Members(offsets_retention_ms=1)
    (member_id,) = members.stable(1)
    members.commit(5, generation_id_or_member_epoch=1, member_id=member_id)
    assert members.delete(0).topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    members.kept_alive(600_000, member_id)
    assert members.offsets() == {("orders", 0): 5}
    members.join(member_id, {"range": subscription("payments")})
    members.sync(member_id, 2, {})
    assert members.delete(7).topics[0].partitions[0].error_code == 0
    members.kept_alive(600_000, member_id, generation=2)
    assert members.offsets() == {}


def test_offsets_of_a_group_that_members_left_expire_when_it_has_been_empty_long_enough() -> None:
    members = Members(offsets_retention_ms=1_200_000)
    (member_id,) = members.stable(1)
    members.commit(5, generation_id_or_member_epoch=1, member_id=member_id)
    members.kept_alive(3_000_000, member_id)
    members.leave(member_id)
    members.later(1_100_000)
    assert members.offsets() == {("orders", 0): 5}
    members.later(700_000)
    assert (members.offsets(), members.state) == ({}, "Dead"), "and the group with them"
    members.started()
    assert members.state == "Dead"


def test_offsets_of_a_group_that_is_no_consumers_are_not_deleted_while_it_has_members(members: Members) -> None:
    (member_id,) = members.stable(1, protocol_type="connect")
    with pytest.raises(GroupError) as raised:
        members.delete(0)
    assert raised.value.code == ErrorCode.NON_EMPTY_GROUP
    members.leave(member_id)
    assert members.delete(0).error_code == 0


def test_a_group_whose_subscriptions_make_no_sense_is_taken_to_read_everything(members: Members) -> None:
    (member_id,) = members.stable(1, protocols={"range": b"\0\0\0\0\0\x09"})
    members.commit(5, generation_id_or_member_epoch=1, member_id=member_id)
    assert members.delete(0).topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_groups_are_listed_by_state_and_type_in_whatever_case(members: Members) -> None:
    members.stable(1)
    members.commit(1, group="simple")

    def listed(*states: str, types: tuple[str, ...] = ()) -> list[tuple[str, str, str, str]]:
        found = members.groups.list_groups(ListGroupsRequest(states, types)).groups
        return [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in found]

    stable, simple = (GROUP, "consumer", "Stable", "classic"), ("simple", "", "Empty", "classic")
    assert listed() == listed("stable ", "EMPTY") == listed(types=("Classic",)) == [stable, simple]
    assert listed("Empty") == [simple]
    assert listed("Dead") == listed(types=("consumer",)) == []


def test_a_group_is_described_with_its_members_and_with_their_subscriptions_while_it_is_stable(members: Members) -> None:
    first, _ = (one.member_id for one in members.rebalanced(2))
    found = members.described()
    assert (found.protocol_data, [one.member_metadata for one in found.members]) == ("", [b"", b""])
    members.sync(first, 1, {first: b"a"})
    found = members.described()
    assert (found.error_code, found.group_state, found.protocol_type, found.protocol_data) == (0, "Stable", "consumer", "range")
    one = found.members[0]
    assert (one.member_id, one.client_id, one.client_host) == (first, "client", "/192.0.2.1")
    assert (one.member_metadata, one.member_assignment) == (subscription("orders"), b"a")


def test_a_group_that_is_not_there_is_dead_and_since_version_6_an_error(members: Members) -> None:
    assert (members.described().error_code, members.described().group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert members.described().error_message == f"Group {GROUP} not found."
    old = members.groups.describe_group(GROUP, 5)
    assert (old.error_code, old.error_message, old.group_state) == (0, None, "Dead")


def delete_error(members: Members, group: str = GROUP) -> int:
    try:
        members.groups.delete_group(group)
    except GroupError as e:
        return e.code
    return 0


def test_a_group_is_deleted_with_its_offsets_when_it_has_no_members(members: Members) -> None:
    assert delete_error(members) == ErrorCode.GROUP_ID_NOT_FOUND
    (member_id,) = members.stable(1)
    members.commit(5, generation_id_or_member_epoch=1, member_id=member_id)
    assert delete_error(members) == ErrorCode.NON_EMPTY_GROUP
    members.leave(member_id)
    assert delete_error(members) == 0
    assert (members.state, members.offsets()) == ("Dead", {})
    members.started()
    assert (members.state, members.offsets()) == ("Dead", {})


def test_timers_of_a_group_that_was_deleted_do_nothing(members: Members) -> None:
    members.join()
    assert delete_error(members) == 0
    members.later(2 * SESSION_MS)
    assert members.state == "Dead"


def test_a_group_that_is_deleted_and_cannot_be_is_still_there(members: Members) -> None:
    members.commit(1)
    assert isinstance(members.log, MemoryLog)
    members.log.is_broken = True
    assert delete_error(members) == ErrorCode.NOT_COORDINATOR
    assert members.offsets() == {("orders", 0): 1}


def test_offsets_of_a_group_do_not_expire_while_its_members_join() -> None:
    members = Members(offsets_retention_ms=1)
    leader, _ = members.stable(2, rebalance_ms=1_800_000, session_ms=1_800_000)
    members.commit(5, generation_id_or_member_epoch=1, member_id=leader)
    members.join(leader, {"range": subscription("payments")}, rebalance_ms=1_800_000, session_ms=1_800_000)
    members.later(1_200_000)
    assert (members.state, members.offsets()) == ("PreparingRebalance", {("orders", 0): 5})


def test_pending_offsets_of_a_group_that_is_deleted_are_forgotten_with_it(members: Members) -> None:
    key = OffsetCommitKey(GROUP, "orders", 1)
    record = offset_commit_record(key, OffsetAndMetadata(7, -1, "", members.clock.now_ms()))
    members.log.kept.append(Loaded(record, 0, 4))
    members.started()
    assert delete_error(members) == 0
    members.log.kept.append(EndOfTransaction((0, 4), is_committed=True))
    members.started()
    assert members.offsets() == {}


def test_one_thread_at_most_waits_to_do_what_is_due(members: Members) -> None:
    until = monotonic() + 10
    with members.groups._lock:  # as who writes to a slow disk holds it
        threads = [threading.Thread(target=members.groups.tick, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        while sum(thread.is_alive() for thread in threads) > 1:
            threads[0].join(0.01)
            assert monotonic() < until, "all of them wait"
    for thread in threads:
        thread.join()


def test_the_settings_of_groups_are_those_that_the_endpoint_is_given() -> None:
    assert GroupCoordinatorConfig.of(read_settings(())) == GroupCoordinatorConfig(), "Kafka's defaults"
    given = ("group.max.size=3", "offsets.retention.minutes=2", "group.initial.rebalance.delay.ms=0")
    config = GroupCoordinatorConfig.of(read_settings(given))
    assert (config.group_max_size, config.offsets_retention_ms, config.group_initial_rebalance_delay_ms) == (3, 120_000, 0)
    with pytest.raises(Invalid, match=r"group.max.session.timeout.ms=5: expected 6000 or more"):
        GroupCoordinatorConfig.of(read_settings(("group.max.session.timeout.ms=5",)))
