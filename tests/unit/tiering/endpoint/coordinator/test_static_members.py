"""Static members (KIP-345): one that starts anew takes the place of its former self."""

import pytest
from group_members import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, Members, code, subscription

from tiering.endpoint.protocol.errors import ErrorCode

STICKY = {"sticky": subscription("orders")}
BOTH = {**RANGE, **STICKY}


@pytest.fixture
def members() -> Members:
    return Members()


def test_a_static_member_joins_at_once_with_an_id_made_of_its_name(members: Members) -> None:
    joined = members.join(instance_id="one")
    members.later(DELAY_MS)
    assert joined.result(0).member_id.startswith("one-")
    assert members.described().members[0].group_instance_id == "one"


def test_a_static_follower_that_starts_anew_gets_its_assignment_without_a_rebalance(members: Members) -> None:
    leader, former = members.stable(2, instances=("a", "b"))
    answer = members.join(instance_id="b").result(0)
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 1, leader)
    assert answer.member_id != former
    assert members.state == "Stable"
    assert members.sync(answer.member_id).result(0).assignment == b"1"
    assert members.heartbeat(former, 1, "b") == ErrorCode.FENCED_INSTANCE_ID
    assert members.heartbeat(former, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_starts_anew_is_told_not_to_assign(members: Members) -> None:
    former, follower = members.stable(2, instances=("a", "b"))
    answer = members.join(instance_id="a").result(0)
    assert (answer.leader, answer.skip_assignment) == (answer.member_id, True)
    assert [one.member_id for one in answer.members] == [follower, answer.member_id]
    assert members.state == "Stable"
    old = members.join(instance_id="a", version=8).result(0)
    assert (old.leader, old.skip_assignment, old.members) == (answer.member_id, False, ()), "it takes itself for a follower"
    assert former not in [one.member_id for one in members.described().members]


def test_each_start_gives_another_id(members: Members) -> None:
    members.stable(1, instances=("a",))
    ids = {members.join(instance_id="a").result(0).member_id for _ in range(3)}
    assert len(ids) == 3
    assert len(members.described().members) == 1


def test_another_protocol_of_a_member_that_starts_anew_causes_a_rebalance_if_it_changes_the_choice(members: Members) -> None:
    members.stable(1, instances=("a",), protocols=BOTH)
    kept = members.join("", {**BOTH, "other": b""}, instance_id="a").result(0)
    assert (kept.generation_id, members.state) == (1, "Stable")
    changed = members.join("", STICKY, instance_id="a")
    assert (changed.result(0).generation_id, changed.result(0).protocol_name) == (2, "sticky")


def test_a_member_that_starts_anew_while_the_leader_assigns_causes_a_rebalance(members: Members) -> None:
    first, second = members.rebalanced(2, instances=("a", "b"))
    waiting = members.sync(second.member_id, group_instance_id="b")
    again = members.join(instance_id="b")
    assert code(waiting) == ErrorCode.FENCED_INSTANCE_ID
    assert members.state == "PreparingRebalance"
    assert members.join(first.member_id, instance_id="a").result(0).generation_id == 2
    assert again.result(0).generation_id == 2


def test_a_member_that_starts_anew_while_all_join_takes_the_place_of_the_join_that_waits(members: Members) -> None:
    leader, follower = members.stable(2, instances=("a", "b"))
    waiting = members.join(leader, instance_id="a")
    again = members.join(instance_id="a")
    assert (code(waiting), waiting.result(0).member_id) == (ErrorCode.FENCED_INSTANCE_ID, leader)
    assert not again.done()
    assert members.join(follower, instance_id="b").result(0).leader == again.result(0).member_id


def test_what_is_asked_with_a_former_id_is_fenced(members: Members) -> None:
    leader, former = members.stable(2, instances=("a", "b"))
    members.join(instance_id="b")
    assert code(members.join(former, instance_id="b")) == ErrorCode.FENCED_INSTANCE_ID
    assert code(members.sync(former, group_instance_id="b")) == ErrorCode.FENCED_INSTANCE_ID
    assert members.leave((former, "b")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert code(members.join(leader, instance_id="b")) == ErrorCode.FENCED_INSTANCE_ID, "the id of another one"


def test_a_known_id_with_an_unknown_name_is_unknown(members: Members) -> None:
    leader, _ = members.stable(2, instances=("a", None))
    assert code(members.join(leader, instance_id="nobody")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_with_its_id_joins_like_any_other(members: Members) -> None:
    leader, follower = members.stable(2, instances=("a", "b"))
    assert members.join(follower, instance_id="b").result(0).generation_id == 1
    members.join(leader, instance_id="a")
    assert members.heartbeat(follower, 1, "b") == ErrorCode.REBALANCE_IN_PROGRESS


def test_static_members_that_do_not_join_again_stay_until_their_session_ends(members: Members) -> None:
    leader, follower = members.stable(2, instances=("a", "b"), session_ms=4 * REBALANCE_MS)
    joined = members.join(leader, BOTH, instance_id="a", session_ms=4 * REBALANCE_MS)
    members.later(REBALANCE_MS)
    answer = joined.result(0)
    assert (answer.generation_id, [one.member_id for one in answer.members]) == (2, [leader, follower])


def test_another_member_leads_if_the_leader_does_not_join_again(members: Members) -> None:
    _, follower = members.stable(2, instances=("a", "b"), session_ms=4 * REBALANCE_MS)
    joined = members.join(follower, BOTH, instance_id="b", session_ms=4 * REBALANCE_MS)
    members.later(REBALANCE_MS)
    assert joined.result(0).leader == follower


def test_a_rebalance_that_no_static_member_joins_goes_on_until_their_sessions_end(members: Members) -> None:
    ids = members.stable(2, instances=("a", "b"), session_ms=3 * REBALANCE_MS)
    added = members.new()
    members.leave(members.described().members[-1].member_id)
    assert code(added) == ErrorCode.UNKNOWN_MEMBER_ID
    members.later(2 * REBALANCE_MS)
    assert (members.state, [one.member_id for one in members.described().members]) == ("PreparingRebalance", ids)
    members.later(REBALANCE_MS)
    assert (members.state, members.described().members) == ("Empty", ())


def test_static_members_count_for_the_size_of_their_group() -> None:
    members = Members(group_max_size=1)
    members.stable(1, instances=("a",))
    assert code(members.join(instance_id="b")) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_new_id_that_cannot_be_kept_is_not_given(members: Members) -> None:
    leader, former = members.stable(2, instances=("a", "b"), protocols=BOTH)
    members.log.is_broken = True
    assert code(members.join("", {**BOTH, "other": b""}, instance_id="b")) == ErrorCode.NOT_COORDINATOR
    members.log.is_broken = False
    assert members.heartbeat(former, 1, "b") == 0
    assert members.heartbeat(leader, 1, "a") == 0
    assert members.join(former, BOTH, instance_id="b").result(0).generation_id == 1, "its protocols are the former ones"
    members.kept_alive(SESSION_MS, leader)
    assert [one.member_id for one in members.described().members] == [leader], "it is expected to be heard of under the former id"


def test_a_restart_finds_the_new_id_and_the_assignments(members: Members) -> None:
    leader, _ = members.stable(2, instances=("a", "b"))
    again = members.join(instance_id="b").result(0).member_id
    members.started()
    assert members.heartbeat(again, 1, "b") == 0
    assert members.sync(again, group_instance_id="b").result(0).assignment == b"1"
    assert members.sync(leader, group_instance_id="a").result(0).assignment == b"0"


def test_a_rebalance_timeout_below_0_keeps_the_coordinator_busy_no_longer_than_others(members: Members) -> None:
    static, other = members.stable(2, instances=("a", None))
    joins = [members.join(static, instance_id="a", rebalance_ms=-(1 << 31)), members.join(other, rebalance_ms=-(1 << 31))]
    assert [join.result(0).generation_id for join in joins] == [2, 2]
    members.sync(static, 2, {static: b"all"}, group_instance_id="a")
    members.leave(other)
    for _ in range(3):  # nobody joins, and the static member is waited for again and again
        members.clock.now += 1
        members.groups.tick()
        assert members.state == "PreparingRebalance"
    assert members.heartbeat(static, 2, "a") == ErrorCode.REBALANCE_IN_PROGRESS
