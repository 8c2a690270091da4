"""What clients are answered about groups, their members and their offsets, who may not ask: the codes of Kafka's KafkaApis."""

from pathlib import Path

import pytest
from asked_by_alice import GROUP_FAILED, MINE, OTHER, TOPIC_FAILED, as_admin, codes, endpoint_of_alice, first_codes, id_of
from asked_endpoint import Endpoint
from tiered_worlds import World

from tiering.endpoint.authorization.acls import Operation
from tiering.endpoint.protocol.api_keys import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest


@pytest.fixture
def endpoint(world: World, tmp_path: Path) -> Endpoint:
    return endpoint_of_alice(world, tmp_path)


@pytest.mark.parametrize("version", range(7))
def test_coordinators_are_told_to_those_who_may_describe_the_group(endpoint: Endpoint, version: int) -> None:
    if version >= 4:
        request = FindCoordinatorRequest(coordinator_keys=("mine-1", "others"))
        found = endpoint.ask(FIND_COORDINATOR, version, request).coordinators
        assert codes(found, "key") == {"mine-1": 0, "others": GROUP_FAILED}
    else:
        assert endpoint.ask(FIND_COORDINATOR, version, FindCoordinatorRequest("mine-1")).error_code == 0
        assert endpoint.ask(FIND_COORDINATOR, version, FindCoordinatorRequest("others")).error_code == GROUP_FAILED


@pytest.mark.parametrize("version", [2, 9, 10])
def test_offsets_are_committed_for_topics_that_the_client_may_read(endpoint: Endpoint, version: int) -> None:
    one = (OffsetCommitRequestPartition(0, 1),)
    ids = {id_of(endpoint, name): name for name in (MINE, OTHER)}
    topics = tuple(OffsetCommitRequestTopic(name, topic_id, one) for topic_id, name in ids.items())
    fields = {"topics": topics, "generation_id_or_member_epoch": -1}
    found = endpoint.ask(OFFSET_COMMIT, version, OffsetCommitRequest("mine", **fields)).topics
    by_name = {one.name or ids[one.topic_id]: one.partitions[0].error_code for one in found}
    assert (by_name[OTHER], by_name[MINE] in (TOPIC_FAILED, GROUP_FAILED)) == (TOPIC_FAILED, False)
    found = endpoint.ask(OFFSET_COMMIT, version, OffsetCommitRequest("others", **fields)).topics
    assert {one.partitions[0].error_code for one in found} == {GROUP_FAILED}


@pytest.mark.parametrize("version", [1, 2, 7, 8, 9, 10])
def test_committed_offsets_are_told_of_topics_and_groups_that_the_client_may_describe(endpoint: Endpoint, version: int) -> None:
    ids = {id_of(endpoint, name): name for name in (MINE, OTHER)}
    if version < 8:
        topics = tuple(OffsetFetchRequestTopic(name, (0,)) for name in (MINE, OTHER))
        found = endpoint.ask(OFFSET_FETCH, version, OffsetFetchRequest("mine", topics))
        assert first_codes(found.topics) == {MINE: 0, OTHER: TOPIC_FAILED}
        found = endpoint.ask(OFFSET_FETCH, version, OffsetFetchRequest("others", topics))
        assert found.topics[0].partitions[0].error_code == GROUP_FAILED if version < 2 else found.error_code == GROUP_FAILED
        return
    asked = tuple(OffsetFetchRequestTopics(name, topic_id, (0,)) for topic_id, name in ids.items())
    groups = (OffsetFetchRequestGroup("others", topics=asked), OffsetFetchRequestGroup("mine", topics=asked))
    mine, others = endpoint.ask(OFFSET_FETCH, version, OffsetFetchRequest(groups=groups)).groups
    by_name = {one.name or ids[one.topic_id]: one.partitions[0].error_code for one in mine.topics}
    assert by_name == {MINE: 0, OTHER: TOPIC_FAILED}
    assert (others.group_id, others.error_code, others.topics) == ("others", GROUP_FAILED, ())


def test_committed_offsets_are_deleted_by_those_who_may_delete_the_group(endpoint: Endpoint) -> None:
    topics = (OffsetDeleteRequestTopic(OTHER, (OffsetDeleteRequestPartition(0),)),)
    assert endpoint.ask(OFFSET_DELETE, 0, OffsetDeleteRequest("mine", topics)).error_code == GROUP_FAILED


def test_members_may_join_and_go_on_only_in_groups_that_they_may_read(endpoint: Endpoint) -> None:
    def asked(group: str) -> list[int]:
        """The codes of a join, a sync, a heartbeat and a departure of one that is no member."""
        join = JoinGroupRequest(group, 10_000, 60_000, "x", None, "consumer", (JoinGroupRequestProtocol("range", b""),))
        sync = SyncGroupRequest(group, 1, "x", None, "consumer", "range")
        leave = endpoint.ask(LEAVE_GROUP, 5, LeaveGroupRequest(group, members=(MemberIdentity("x"),)))
        return [
            endpoint.ask(JOIN_GROUP, 9, join).error_code,
            endpoint.ask(SYNC_GROUP, 5, sync).error_code,
            endpoint.ask(HEARTBEAT, 4, HeartbeatRequest(group, 1, "x")).error_code,
            leave.error_code or leave.members[0].error_code,
        ]

    assert asked("mine-1") == [ErrorCode.UNKNOWN_MEMBER_ID] * 4
    assert asked("theirs") == [GROUP_FAILED] * 4


def test_groups_are_listed_described_and_deleted_by_those_who_may(endpoint: Endpoint) -> None:
    for group in ("mine-1", "theirs"):
        endpoint.context.groups._groups.get_or_create(group)

    def shown() -> list[str]:
        return [one.group_id for one in endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups]

    described = endpoint.ask(DESCRIBE_GROUPS, 6, DescribeGroupsRequest(("theirs", "mine-1"), True)).groups
    assert codes(described, "group_id") == {"mine-1": 0, "theirs": GROUP_FAILED}
    mine = 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert [one.authorized_operations for one in described] == [mine, -(1 << 31)]
    deleted = endpoint.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(("theirs", "mine-1"))).results
    assert codes(deleted, "group_id") == {"mine-1": GROUP_FAILED, "theirs": GROUP_FAILED}
    assert shown() == ["mine-1"]
    as_admin(endpoint)
    assert shown() == ["mine-1", "theirs"]
    deleted = endpoint.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(("theirs",))).results
    assert codes(deleted, "group_id") == {"theirs": 0}
