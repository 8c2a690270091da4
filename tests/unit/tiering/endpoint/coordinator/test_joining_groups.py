"""JoinGroup: who becomes a member, what the members are told, and when."""

import pytest
from group_members import DELAY_MS, GROUP, RANGE, REBALANCE_MS, SESSION_MS, Members, code, subscription

from tiering.endpoint.coordinator.record_messages import GroupMetadataKey, GroupMetadataValue
from tiering.endpoint.coordinator.records import read_key, read_value
from tiering.endpoint.protocol.errors import ErrorCode

TWO = {"range": subscription("orders"), "sticky": subscription("orders")}


@pytest.fixture
def members() -> Members:
    return Members()


def test_a_new_member_is_given_an_id_and_joins_with_it(members: Members) -> None:
    told = members.join().result(0)
    assert (told.error_code, told.member_id[:7]) == (ErrorCode.MEMBER_ID_REQUIRED, "client-")
    assert members.state == "Empty"
    joined = members.join(told.member_id)
    assert members.state == "PreparingRebalance"
    members.later(DELAY_MS)
    answer = joined.result(0)
    assert (answer.error_code, answer.generation_id, answer.leader, answer.member_id) == (0, 1, told.member_id, told.member_id)
    assert (answer.protocol_type, answer.protocol_name, answer.skip_assignment) == ("consumer", "range", False)
    assert [(one.member_id, one.metadata) for one in answer.members] == [(told.member_id, RANGE["range"])]
    assert members.state == "CompletingRebalance"


def test_a_new_member_of_an_old_client_joins_without_an_id(members: Members) -> None:
    joined = members.join(version=3)
    members.later(DELAY_MS)
    assert joined.result(0).member_id == joined.result(0).leader


def test_the_leader_alone_is_told_of_all_members(members: Members) -> None:
    first, second, third = members.rebalanced(3)
    assert {one.leader for one in (first, second, third)} == {first.member_id}
    assert [one.member_id for one in first.members] == [one.member_id for one in (first, second, third)]
    assert second.members == third.members == ()
    assert {one.generation_id for one in (first, second, third)} == {1}


def test_a_new_group_is_kept_as_empty_and_not_made_if_it_cannot_be_kept(members: Members) -> None:
    members.log.is_broken = True
    assert code(members.join()) == ErrorCode.NOT_COORDINATOR
    assert members.state == "Dead"
    members.log.is_broken = False
    members.join()
    key = read_key(members.log.kept[0].record.key)
    assert key == GroupMetadataKey(GROUP)
    assert read_value(key, members.log.kept[0].record.value) == GroupMetadataValue("", 0, None, None, members.clock.now_ms(), ())


def test_an_id_that_nobody_was_given_is_unknown(members: Members) -> None:
    assert code(members.join("somebody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert members.state == "Dead", "no group is made for it"
    members.stable(1)
    assert code(members.join("somebody")) == ErrorCode.UNKNOWN_MEMBER_ID
    members.leave(*[one.member_id for one in members.described().members])
    assert members.state == "Empty"
    assert code(members.join("somebody")) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("session_ms", "group", "expected"), [(5_999, "g", 26), (1_800_001, "g", 26), (6_000, "", 24)])
def test_sessions_out_of_range_and_groups_without_a_name_are_refused(
    members: Members, session_ms: int, group: str, expected: int
) -> None:
    assert code(members.join(group=group, session_ms=session_ms)) == expected


def test_protocols_of_no_type_or_none_at_all_are_refused(members: Members) -> None:
    assert code(members.join(protocol_type="")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(members.join("", {})) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = members.join("", {}).result(0)
    assert (refused.protocol_type, refused.protocol_name, refused.member_id) == (None, None, "")


def test_a_member_that_shares_no_protocol_with_all_others_is_refused(members: Members) -> None:
    (member_id,) = members.stable(1)
    assert code(members.join("", {"sticky": b""})) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(members.join("", RANGE, protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(members.join(member_id, {"sticky": b""})) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert members.state == "Stable"


def test_the_protocol_is_the_one_of_most_votes_among_those_that_all_support(members: Members) -> None:
    sticky = {"sticky": TWO["sticky"], "range": TWO["range"]}
    joins = [members.new(one) for one in (sticky, TWO, TWO, {**TWO, "other": b""})]
    members.later(4 * DELAY_MS)
    assert {join.result(0).protocol_name for join in joins} == {"range"}
    assert code(members.join("", {"other": b""})) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_first_rebalance_waits_for_more_members_as_long_as_some_come(members: Members) -> None:
    first = members.new()
    members.later(DELAY_MS - 1)
    second = members.new()
    members.later(1)
    assert not first.done(), "a second one has come: so there may be a third one"
    members.later(DELAY_MS - 1)
    assert not first.done()
    members.later(1)
    assert (code(first), code(second)) == (0, 0)


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout(members: Members) -> None:
    first = members.new(rebalance_ms=2 * DELAY_MS)
    for _ in range(2):
        assert not first.done()
        members.later(DELAY_MS - 1)
        members.new(rebalance_ms=2 * DELAY_MS)
        members.later(1)
    assert first.done()


def test_without_a_delay_a_group_begins_at_once() -> None:
    members = Members(group_initial_rebalance_delay_ms=0)
    joined = members.new()
    members.later(0)
    assert code(joined) == 0


def test_a_group_takes_no_more_members_than_its_size(members: Members) -> None:
    members = Members(group_max_size=2)
    ids = members.stable(2)
    assert code(members.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    again = [members.join(one) for one in ids]
    assert [code(join) for join in again] == [0, 0]
    members.leave(ids[0])
    assert code(members.join()) == ErrorCode.MEMBER_ID_REQUIRED


def test_while_members_join_only_those_count_that_have() -> None:
    members = Members(group_max_size=2)
    told = [members.join().result(0).member_id for _ in range(3)]
    joins = [members.join(one) for one in told]
    assert code(joins[2]) == ErrorCode.GROUP_MAX_SIZE_REACHED
    members.later(2 * DELAY_MS)
    assert [code(join) for join in joins[:2]] == [0, 0]


def test_a_rebalance_of_an_overfull_group_keeps_those_who_join_first() -> None:
    members = Members()
    ids = members.stable(3)
    members.config = Members(group_max_size=2).config
    members.started()
    assert members.state == "PreparingRebalance", "the limit is lower now"
    joins = [members.join(one) for one in ids]
    assert code(joins[2]) == ErrorCode.GROUP_MAX_SIZE_REACHED
    members.later(REBALANCE_MS)
    assert [code(join) for join in joins[:2]] == [0, 0]


def test_a_member_that_joins_again_unchanged_is_told_the_same_without_a_rebalance(members: Members) -> None:
    first, second = members.rebalanced(2)
    assert members.join(first.member_id).result(0) == first, "it has not received the first answer"
    assert members.join(second.member_id).result(0) == second
    assert members.state == "CompletingRebalance"
    members.sync(first.member_id, 1, {})
    again = members.join(second.member_id).result(0)
    assert (again.error_code, again.generation_id, again.members) == (0, 1, ())
    assert members.state == "Stable"


def test_a_member_with_another_subscription_causes_a_rebalance_in_every_state(members: Members) -> None:
    other = {"range": subscription("payments")}
    first, second = members.rebalanced(2)
    waiting = members.sync(second.member_id)
    again = members.join(second.member_id, other)
    assert code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert (members.state, again.done()) == ("PreparingRebalance", False)
    assert members.join(first.member_id).result(0).generation_id == 2
    assert code(again) == 0
    members.sync(first.member_id, 2, {})
    members.join(second.member_id, RANGE)
    assert members.state == "PreparingRebalance"


def test_a_leader_that_joins_again_causes_a_rebalance_of_a_stable_group(members: Members) -> None:
    leader, follower = members.stable(2)
    joined = members.join(leader)
    assert members.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    members.join(follower)
    assert joined.result(0).generation_id == 2


def test_an_id_that_was_given_is_waited_for_until_its_session_ends(members: Members) -> None:
    (leader,) = members.stable(1)
    members.join()
    rejoined = members.join(leader)
    assert not rejoined.done(), "somebody else has an id to join with"
    members.later(SESSION_MS)
    assert (code(rejoined), rejoined.result(0).generation_id) == (0, 2)


def test_a_given_id_that_joins_completes_the_rebalance(members: Members) -> None:
    (leader,) = members.stable(1)
    told = members.join().result(0).member_id
    rejoined = members.join(leader)
    added = members.join(told)
    assert (code(rejoined), code(added)) == (0, 0)


def test_members_that_do_not_join_again_in_time_are_out(members: Members) -> None:
    first, second, third = members.stable(3)
    joined = members.join(second, TWO)
    members.kept_alive(REBALANCE_MS, first, third)
    answer = joined.result(0)
    assert (answer.generation_id, answer.leader, [one.member_id for one in answer.members]) == (2, second, [second])
    assert members.heartbeat(first, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_member_whose_join_waits_too_long_is_out_and_told_to_join_anew(members: Members) -> None:
    leader = members.stable(1, session_ms=600_000, rebalance_ms=600_000)[0]
    added = members.new(rebalance_ms=600_000)
    members.later(300_000)
    assert code(added) == ErrorCode.UNKNOWN_MEMBER_ID
    assert [one.member_id for one in members.described().members] == [leader]


def test_every_rebalance_is_another_generation(members: Members) -> None:
    (leader,) = members.stable(1)
    for generation in (2, 3, 4):
        assert members.join(leader).result(0).generation_id == generation
        members.sync(leader, generation, {})


def test_a_group_that_everybody_has_left_begins_anew_with_its_next_generation(members: Members) -> None:
    members.leave(*members.stable(2))
    assert members.state == "Empty"
    assert members.rebalanced(1)[0].generation_id == 3
