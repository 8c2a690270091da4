"""Requests that no client of good sense sends are refused with the errors that a broker has for them."""

from pathlib import Path

import pytest
from asked_endpoint import Endpoint
from golden_logs import broker_logs, metadata_log
from tiered_worlds import World

from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.describe_cluster import DescribeClusterRequest
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, LeaderIdAndEpoch
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["local alone"], None)


def test_names_that_no_topic_can_have_are_told_from_unknown_ones(endpoint: Endpoint) -> None:
    names = ("nowhere", "a b", "..", "x" * 250, "")
    wants = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] + [ErrorCode.INVALID_TOPIC_EXCEPTION] * 4
    metadata = endpoint.ask(METADATA, 12, MetadataRequest(tuple(MetadataRequestTopic(name=name) for name in names)))
    assert [topic.error_code for topic in metadata.topics] == wants
    asked = tuple(DescribeConfigsResource(2, name, None) for name in names)
    assert [one.error_code for one in endpoint.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(asked)).results] == wants


def test_metadata_of_the_first_versions_with_ids_takes_none(endpoint: Endpoint) -> None:
    known = endpoint.context.logs.topic("g-tiny")
    assert known is not None
    by_id, by_name = MetadataRequestTopic(known.id, None), MetadataRequestTopic(name="g-txn")
    refused = endpoint.ask(METADATA, 12, MetadataRequest((by_id, by_name)))
    assert [topic.name for topic in refused.topics] == ["g-tiny"]
    invalid = endpoint.ask(METADATA, 11, MetadataRequest((MetadataRequestTopic(known.id, ""), by_name)))
    assert [topic.error_code for topic in invalid.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_the_log_of_the_controllers_is_no_topic(tmp_path: Path) -> None:
    endpoint = Endpoint(metadata_log(broker_logs(tmp_path, "g-tiny-0")), None)
    assert endpoint.context.logs.tiers.topics() == ("__cluster_metadata", "g-tiny")
    assert [topic.name for topic in endpoint.ask(METADATA, 12, MetadataRequest(None)).topics] == ["g-tiny"]
    named = MetadataRequest((MetadataRequestTopic(name="__cluster_metadata"),))
    assert endpoint.ask(METADATA, 12, named).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_must_say_its_name_and_version(endpoint: Endpoint) -> None:
    for version, name, code in (
        (3, "", ErrorCode.INVALID_REQUEST),
        (4, "a b", ErrorCode.INVALID_REQUEST),
        (2, "", 0),
        (3, "a-1.2", 0),
    ):
        assert endpoint.ask(API_VERSIONS, version, ApiVersionsRequest(name, "1")).error_code == code


@pytest.mark.parametrize(
    ("kind", "code"), [(1, 0), (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_an_endpoint_of_brokers_is_no_controllers(endpoint: Endpoint, kind: int, code: int) -> None:
    found = endpoint.ask(DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=kind))
    assert (found.error_code, len(found.brokers)) == (code, 0 if code else 1)


def test_settings_of_an_unknown_kind_refuse_the_whole_request(endpoint: Endpoint) -> None:
    kinds = ((2, "g-tiny", 0), (4, "1", 0), (4, "", 0), (8, "1", 0), (8, "", 42), (16, "", 42), (32, "group", 0))
    asked = tuple(DescribeConfigsResource(kind, name, None) for kind, name, _ in kinds)
    found = endpoint.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(asked)).results
    assert [one.error_code for one in found] == [code for _, _, code in kinds]
    unknown = (*asked, DescribeConfigsResource(3, "", None))
    assert {one.error_code for one in endpoint.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(unknown)).results} == {42}


@pytest.mark.parametrize("cursor", [Cursor("g-txn", 0), Cursor("g-tiny", -1)])
def test_a_cursor_is_within_what_is_asked_for(endpoint: Endpoint, cursor: Cursor) -> None:
    found = endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest((TopicRequest("g-tiny"),), cursor=cursor))
    assert [(topic.name, topic.error_code) for topic in found.topics] == [("g-tiny", ErrorCode.INVALID_REQUEST)]


def test_offsets_of_a_partition_that_is_asked_for_twice_are_refused_once(endpoint: Endpoint) -> None:
    twice = ListOffsetsTopic("g-tiny", (ListOffsetsPartition(0, timestamp=-1),))
    other = ListOffsetsTopic("g-big", (ListOffsetsPartition(0, timestamp=-1),))
    found = endpoint.ask(LIST_OFFSETS, 7, ListOffsetsRequest(-1, topics=(twice, other, twice))).topics
    assert [(t.name, [p.error_code for p in t.partitions]) for t in found] == [("g-tiny", [42]), ("g-big", [0])]
    assert len(endpoint.ask(LIST_OFFSETS, 0, ListOffsetsRequest(-1, topics=(twice, twice))).topics) == 2


def test_the_latest_offset_has_the_epoch_of_the_next_record(endpoint: Endpoint) -> None:
    asked = ListOffsetsTopic("g-epochs", (ListOffsetsPartition(0, timestamp=-1),))
    found = endpoint.ask(LIST_OFFSETS, 7, ListOffsetsRequest(-1, 1, (asked,))).topics[0].partitions[0]
    described = endpoint.ask(METADATA, 12, MetadataRequest((MetadataRequestTopic(name="g-epochs"),)))
    assert found.leader_epoch == described.topics[0].partitions[0].leader_epoch > 0


def test_an_epoch_before_all_ends_where_the_first_begins(endpoint: Endpoint) -> None:
    asked = tuple(OffsetForLeaderPartition(0, leader_epoch=epoch) for epoch in (-1, -2))
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic("g-epochs", asked),))
    found = endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions
    assert found == (EpochEndOffset(0, 0, -1, -1), EpochEndOffset(0, 0, -2, 0))


@pytest.mark.parametrize("level", [-1, 2])
def test_isolation_levels_are_two(endpoint: Endpoint, level: int) -> None:
    asked = ListOffsetsRequest(-1, level, (ListOffsetsTopic("g-tiny", (ListOffsetsPartition(0, timestamp=-1),)),))
    assert endpoint.ask(LIST_OFFSETS, 7, asked).topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert endpoint.fetch("g-tiny", 0, level=level).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    by_id = FetchRequest(isolation_level=level, topics=(endpoint.topic("g-tiny", 13, FetchPartition(0)),))
    found = endpoint.ask(FETCH, 13, by_id)
    assert (found.error_code, found.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
    unknown = FetchRequest(isolation_level=level, topics=(FetchTopic("nowhere", partitions=(FetchPartition(0),)),))
    assert endpoint.ask(FETCH, 11, unknown).error_code == 0


def test_followers_are_told_that_they_are_none(endpoint: Endpoint) -> None:
    for epoch, code in ((-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        one = endpoint.topic("g-tiny", 11, FetchPartition(0, current_leader_epoch=epoch, partition_max_bytes=100))
        found = endpoint.ask(FETCH, 11, FetchRequest(replica_id=2, topics=(one,)))
        assert found.responses[0].partitions[0].error_code == code


@pytest.mark.parametrize(("version", "leader"), [(15, -1), (16, 1)])
def test_consumers_with_a_former_epoch_are_told_who_leads_now(endpoint: Endpoint, version: int, leader: int) -> None:
    known = endpoint.topic("g-epochs", version, FetchPartition(0, current_leader_epoch=0, partition_max_bytes=100))
    found = endpoint.ask(FETCH, version, FetchRequest(topics=(known,)))
    answer = found.responses[0].partitions[0]
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer.current_leader != LeaderIdAndEpoch()) == (leader >= 0)
    assert [(one.node_id, one.host, one.port) for one in found.node_endpoints] == (
        [(1, "broker.test", 9092)] if leader >= 0 else []
    )


@pytest.mark.parametrize(("replica", "is_told"), [(-1, True), (-2, True), (-3, False)])
def test_all_but_a_replica_in_the_making_are_consumers(endpoint: Endpoint, replica: int, is_told: bool) -> None:
    one = endpoint.topic("g-txn", 11, FetchPartition(0, partition_max_bytes=1 << 30))
    found = endpoint.ask(FETCH, 11, FetchRequest(replica_id=replica, isolation_level=1, topics=(one,)))
    assert (found.responses[0].partitions[0].aborted_transactions is not None) == is_told
