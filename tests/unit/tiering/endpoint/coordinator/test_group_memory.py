"""What groups take of memory, and what is refused when that is all."""

from typing import Any

import pytest
from group_members import DELAY_MS, GROUP, RANGE, Members, code
from offsets_kept import Coordinator

from local_log.engine.errors import MessageTooLarge
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_memory import MEMBER_BYTES, OFFSET_BYTES
from tiering.endpoint.protocol.errors import ErrorCode

LARGE = {"range": RANGE["range"] + bytes(50_000)}


def test_members_are_refused_beyond_the_memory_of_groups_until_others_have_left() -> None:
    members = Members(groups_bytes_max=105_000)
    [leader] = members.rebalanced(1, protocols=LARGE)
    assert code(members.join(group="other", protocols=LARGE)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "endpoint.groups.max.bytes allows" in members.said[-1]
    again = members.join(leader.member_id, LARGE)
    members.later(DELAY_MS)
    assert code(again) == ErrorCode.NONE, "who is there already, and says no more than before, is not refused"
    members.later(60_000)  # its session is over
    assert code(members.join(group="other", protocols=LARGE)) == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    "large",
    [
        {"group": "g" * 32_000},
        {"group": "€" + "g" * 8_000},
        {"group": "short", "instance_id": "i" * 16_000},
        {"group": "short", "instance_id": "i", "protocols": {f"{number}": b"" for number in range(200)}},
    ],
    ids=["name of a group", "name beyond ASCII", "instance id", "many protocols"],
)
def test_the_texts_and_protocols_that_members_choose_count(large: dict[str, Any]) -> None:
    members = Members(groups_bytes_max=60_000)
    members.join(**large)
    assert code(members.join(**large | {"group": large["group"] + "2"})) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_assignment_for_which_there_is_no_memory_is_refused() -> None:
    members = Members(groups_bytes_max=60_000)
    [leader] = members.rebalanced(1)
    sync = members.sync(leader.member_id, leader.generation_id, {leader.member_id: bytes(60_000)})
    assert code(sync) == ErrorCode.UNKNOWN_SERVER_ERROR
    sync = members.sync(leader.member_id, leader.generation_id, {leader.member_id: bytes(10_000)})
    assert code(sync) == ErrorCode.NONE


def test_offsets_are_refused_beyond_the_memory_of_groups_and_those_that_are_there_go_on() -> None:
    coordinator = Coordinator(groups_bytes_max=MEMBER_BYTES + len(GROUP) + 3 * (OFFSET_BYTES + 10))
    for partition in range(3):
        assert coordinator.commit(1, partition=partition, committed_metadata="x" * 10) == ErrorCode.NONE
    for _ in range(5):
        assert coordinator.commit(2, partition=0, committed_metadata="y" * 10) == ErrorCode.NONE
    for more in ({"partition": 3}, {"partition": 0, "committed_metadata": "x" * 11}, {"partition": 0, "group": "other"}):
        with pytest.raises(GroupError) as refused:
            coordinator.commit(3, **more)
        assert refused.value.code == ErrorCode.POLICY_VIOLATION
    coordinator.started()  # what is kept is loaded, however much it is
    assert coordinator.commit(4, partition=2, committed_metadata="") == ErrorCode.NONE
    assert coordinator.commit(5, partition=0, committed_metadata="x" * 20) == ErrorCode.NONE, "there is room again"


def test_what_is_larger_than_the_topic_allows_is_not_to_be_repeated() -> None:
    coordinator = Coordinator()

    def refuse(*_: object) -> int:
        raise MessageTooLarge("a batch of 2000000 bytes; max.message.bytes allows 1048588")

    coordinator.log.append = refuse
    with pytest.raises(GroupError) as refused:
        coordinator.commit(1)
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
