"""SyncGroup: the leader assigns, the others wait for it."""

import pytest
from group_members import GROUP, REBALANCE_MS, Members, code

from tiering.endpoint.coordinator.record_messages import GroupMetadataKey, GroupMetadataValue
from tiering.endpoint.coordinator.records import read_key, read_value
from tiering.endpoint.protocol.errors import ErrorCode


@pytest.fixture
def members() -> Members:
    return Members()


def test_followers_wait_for_the_leader_and_get_what_it_assigns(members: Members) -> None:
    first, second, third = (one.member_id for one in members.rebalanced(3))
    waiting = members.sync(second)
    assert not waiting.done()
    led = members.sync(first, 1, {first: b"a", second: b"b"})
    found = led.result(0)
    assert (found.error_code, found.protocol_type, found.protocol_name, found.assignment) == (0, "consumer", "range", b"a")
    assert waiting.result(0).assignment == b"b"
    assert members.sync(third).result(0).assignment == b"", "the leader has nothing for it"
    assert members.state == "Stable"


def test_what_is_assigned_is_kept_as_kafka_keeps_it(members: Members) -> None:
    (member_id,) = members.stable(1)
    key = read_key(members.log.kept[-1].record.key)
    assert key == GroupMetadataKey(GROUP)
    value = read_value(key, members.log.kept[-1].record.value)
    assert isinstance(value, GroupMetadataValue)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", member_id)
    assert [(one.member_id, one.client_id, one.client_host, one.assignment) for one in value.members] == [
        (member_id, "client", "/192.0.2.1", b"0")
    ]
    assert members.log.kept[-1].record.value[:2] == b"\0\x03"


def test_a_member_that_syncs_again_gets_the_same_assignment(members: Members) -> None:
    leader, follower = members.stable(2)
    assert members.sync(follower).result(0).assignment == b"1"
    assert members.sync(leader, 1, {follower: b"other"}).result(0).assignment == b"0"


def test_unknown_groups_members_and_generations_are_refused(members: Members) -> None:
    assert code(members.sync("somebody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(members.sync("somebody", group="")) == ErrorCode.INVALID_GROUP_ID
    (member_id,) = members.stable(1)
    assert code(members.sync("somebody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(members.sync(member_id, 2)) == ErrorCode.ILLEGAL_GENERATION
    members.leave(member_id)
    assert code(members.sync(member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_another_protocol_than_the_group_s_is_refused_and_none_is_not_compared(members: Members) -> None:
    (member_id,) = members.stable(1)
    assert code(members.sync(member_id, protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(members.sync(member_id, protocol_name="sticky")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(members.sync(member_id, protocol_type="consumer", protocol_name="range")) == 0
    assert code(members.sync(member_id)) == 0


def test_while_members_join_there_is_nothing_to_assign(members: Members) -> None:
    leader, follower = members.stable(2)
    members.join(leader)
    assert code(members.sync(follower)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_cannot_be_kept_makes_all_join_again(members: Members) -> None:
    first, second = (one.member_id for one in members.rebalanced(2))
    waiting = members.sync(second)
    members.log.is_broken = True
    assert code(members.sync(first, 1, {})) == ErrorCode.NOT_COORDINATOR
    assert code(waiting) == ErrorCode.NOT_COORDINATOR
    assert members.state == "PreparingRebalance"
    members.log.is_broken = False
    joins = [members.join(one) for one in (first, second)]
    assert [join.result(0).generation_id for join in joins] == [2, 2]


def test_a_leader_that_fails_before_it_assigns_makes_the_others_join_again(members: Members) -> None:
    leader, follower = (one.member_id for one in members.rebalanced(2))
    waiting = members.sync(follower)
    members.later(10_000)
    assert code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert members.join(follower).result(0).leader == follower
    assert members.heartbeat(leader) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("quiet", [(0,), (1,), (0, 1), (1, 2)])
def test_members_that_do_not_ask_for_their_assignment_in_time_are_out(members: Members, quiet: tuple[int, ...]) -> None:
    ids = [one.member_id for one in members.rebalanced(3)]
    for at, member_id in enumerate(ids):
        if at not in quiet:
            members.sync(member_id, 1, {})
    members.kept_alive(REBALANCE_MS, *ids)
    assert members.state == "PreparingRebalance"
    assert [one.member_id for one in members.described().members] == [one for at, one in enumerate(ids) if at not in quiet]


def test_a_group_whose_members_all_ask_in_time_stays_stable(members: Members) -> None:
    ids = members.stable(3)
    members.kept_alive(3 * REBALANCE_MS, *ids)
    assert members.state == "Stable"
