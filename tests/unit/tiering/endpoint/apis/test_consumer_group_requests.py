"""ConsumerGroupHeartbeat and ConsumerGroupDescribe in both versions, from frame to frame, over topics of a log directory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_endpoint import Endpoint
from offsets_kept import MemoryLog

from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@pytest.fixture
def endpoint(tmp_path: Path) -> Endpoint:
    for number in range(3):
        folder = tmp_path / f"orders-{number}"
        folder.mkdir()
        (folder / f"{0:020d}.log").touch()
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: qySzQBrpTySpQqwiMZxsvA\n")
    return Endpoint(tmp_path, None, MemoryLog(), group_config=GroupCoordinatorConfig(consumer_group_assignment_interval_ms=0))


def heartbeat(endpoint: Endpoint, version: int = 1, **said: Any) -> Any:
    return endpoint.ask(CONSUMER_GROUP_HEARTBEAT, version, ConsumerGroupHeartbeatRequest("readers", **said))


def joined(endpoint: Endpoint, member_id: str = "one", version: int = 1, **said: Any) -> Any:
    first = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
    return heartbeat(endpoint, version, member_id=member_id, **{**first, **said})


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_is_described_and_leaves(endpoint: Endpoint, version: int) -> None:
    found = joined(endpoint, version=version)
    assert (found.error_code, found.member_id, found.member_epoch) == (0, "one", 2)
    (topic,) = found.assignment.topic_partitions
    known = endpoint.context.logs.topic("orders")
    assert known is not None
    assert (topic.topic_id, sorted(topic.partitions)) == (known.id, [0, 1, 2])
    (group,) = endpoint.ask(CONSUMER_GROUP_DESCRIBE, version, ConsumerGroupDescribeRequest(("readers",))).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == ("Stable", 2, 2, "uniform")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == ("one", "test", "/192.0.2.1")
    assert member.assignment == member.target_assignment
    assert [(one.topic_name, sorted(one.partitions)) for one in member.assignment.topic_partitions] == [("orders", [0, 1, 2])]
    assert member.member_type == (1 if version else -1)
    left = heartbeat(endpoint, version, member_id="one", member_epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    (group,) = endpoint.ask(CONSUMER_GROUP_DESCRIBE, version, ConsumerGroupDescribeRequest(("readers",))).groups
    assert (group.group_state, group.members) == ("Empty", ())


def test_a_group_is_listed_with_its_type_and_deleted_when_it_is_empty(endpoint: Endpoint) -> None:
    joined(endpoint)
    for types, count in (((), 1), (("consumer",), 1), (("Classic",), 0), (("share",), 0)):
        found = endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest(types_filter=types)).groups
        assert [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in found] == [
            ("readers", "consumer", "Stable", "consumer")
        ] * count
    (classic,) = endpoint.ask(DESCRIBE_GROUPS, 6, DescribeGroupsRequest(("readers",))).groups
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert classic.error_message == "Group readers is not a classic group."
    assert endpoint.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(("readers",))).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    heartbeat(endpoint, member_id="one", member_epoch=-1)
    assert endpoint.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(("readers",))).results[0].error_code == 0
    assert endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups == ()
    (gone,) = endpoint.ask(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(("readers",))).groups
    assert (gone.error_code, gone.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group readers not found.")


def test_offsets_of_a_member_are_committed_and_fetched_with_its_epoch(endpoint: Endpoint) -> None:
    joined(endpoint)

    def commit(epoch: int, member_id: str = "one", version: int = 9) -> int:
        topic = OffsetCommitRequestTopic("orders", partitions=(OffsetCommitRequestPartition(0, 5),))
        request = OffsetCommitRequest("readers", epoch, member_id, topics=(topic,))
        return endpoint.ask(OFFSET_COMMIT, version, request).topics[0].partitions[0].error_code

    def fetch(epoch: int, member_id: str | None = "one") -> Any:
        topic = OffsetFetchRequestTopics("orders", partition_indexes=(0,))
        asked = OffsetFetchRequestGroup("readers", member_id, epoch, (topic,))
        return endpoint.ask(OFFSET_FETCH, 9, OffsetFetchRequest(groups=(asked,))).groups[0]

    assert commit(2) == 0
    assert [commit(1), commit(3), commit(-1)] == [ErrorCode.STALE_MEMBER_EPOCH] * 3
    assert commit(2, "two") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert fetch(2).topics[0].partitions[0].committed_offset == 5
    assert fetch(-1, None).topics[0].partitions[0].committed_offset == 5
    assert fetch(1).error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(2, "two").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    heartbeat(endpoint, member_id="one", member_epoch=-1)
    assert commit(-1, "") == 0, "a group without members is anybody's"


def test_a_group_without_members_changes_its_type_with_who_joins(endpoint: Endpoint) -> None:
    joined(endpoint)
    protocols = (JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0\xff\xff\xff\xff"),)
    classic = JoinGroupRequest("readers", 10_000, 1_000, protocol_type="consumer", protocols=protocols)
    heartbeat(endpoint, member_id="one", member_epoch=-1)
    unknown = replace(classic, member_id="nobody")
    assert endpoint.ask(JOIN_GROUP, 9, unknown).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert [one.group_type for one in endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups] == ["consumer"]
    assert endpoint.ask(JOIN_GROUP, 9, classic).error_code == ErrorCode.MEMBER_ID_REQUIRED
    types = [one.group_type for one in endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups]
    assert types == ["classic"]
    assert joined(endpoint).member_epoch == 2
    assert [one.group_type for one in endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups] == ["consumer"]
    endpoint.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(("readers",)))


def test_a_classic_member_is_one_of_a_consumer_group_and_told_its_partitions(endpoint: Endpoint) -> None:
    joined(endpoint)
    protocols = (JoinGroupRequestProtocol("range", b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"),)
    classic = JoinGroupRequest("readers", 10_000, 1_000, "mine", protocol_type="consumer", protocols=protocols)
    told = endpoint.ask(JOIN_GROUP, 9, classic)
    assert (told.error_code, told.member_id, told.leader, told.protocol_name) == (0, "mine", "", "range")
    sync = SyncGroupRequest("readers", told.generation_id, "mine", None, "consumer", "range")
    nothing = b"\0\1\0\0\0\0\xff\xff\xff\xff"
    assert endpoint.ask(SYNC_GROUP, 5, sync) == SyncGroupResponse(0, 0, "consumer", "range", nothing), "the first one has all"
    (group,) = endpoint.ask(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(("readers",))).groups
    assert sorted((one.member_id, one.member_type) for one in group.members) == [("mine", 0), ("one", 1)]
    asked = LeaveGroupRequest("readers", "", (MemberIdentity("mine"),))
    assert [one.error_code for one in endpoint.ask(LEAVE_GROUP, 5, asked).members] == [0]


def test_a_classic_group_is_told_to_be_no_consumer_group(endpoint: Endpoint) -> None:
    protocols = (JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0\xff\xff\xff\xff"),)
    endpoint.ask(JOIN_GROUP, 3, JoinGroupRequest("readers", 10_000, 1_000, protocol_type="consumer", protocols=protocols))
    assert heartbeat(endpoint, member_id="one", member_epoch=3).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    (group,) = endpoint.ask(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(("readers",))).groups
    assert group.error_message == "Group readers is not a consumer group."


def test_clients_are_told_that_the_cluster_has_groups_of_kip_848(endpoint: Endpoint) -> None:
    found = endpoint.ask(API_VERSIONS, 4, ApiVersionsRequest("a", "1"))
    (feature,) = (one for one in found.finalized_features if one.name == "group.version")
    assert (feature.min_version_level, feature.max_version_level, found.finalized_features_epoch) == (1, 1, 0)
