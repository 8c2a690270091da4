"""What clients are answered that may not ask: the codes of Kafka's KafkaApis, and nothing that tells what there is."""

from dataclasses import replace
from pathlib import Path

import pytest
from asked_by_alice import (
    GROUP_FAILED,
    MINE,
    NOWHERE,
    OTHER,
    READS,
    TOPIC_FAILED,
    as_admin,
    codes,
    endpoint_of_alice,
    first_codes,
    id_of,
)
from asked_endpoint import Endpoint, bytes_of, response_of
from tiered_worlds import World

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.apis.authorized import RULES
from tiering.endpoint.apis.kafka_apis import Waits, answer_fetch, handle
from tiering.endpoint.authorization.acl_file import write_acls
from tiering.endpoint.authorization.acls import Operation
from tiering.endpoint.protocol.api_keys import (
    APIS,
    DELETE_GROUPS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_cluster import DescribeClusterRequest
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tiering.endpoint.protocol.messages.describe_producers import DescribeProducersRequest
from tiering.endpoint.protocol.messages.describe_producers import TopicRequest as TopicOfProducers
from tiering.endpoint.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request


@pytest.fixture
def endpoint(world: World, tmp_path: Path) -> Endpoint:
    return endpoint_of_alice(world, tmp_path)


@pytest.mark.parametrize("version", range(14))
def test_metadata_hides_other_topics_and_refuses_them_by_name(endpoint: Endpoint, version: int) -> None:
    everything = endpoint.ask(METADATA, version, MetadataRequest(topics=None if version else ()))
    assert [topic.name for topic in everything.topics] == [MINE]
    asked = tuple(MetadataRequestTopic(name=name) for name in (MINE, OTHER, NOWHERE))
    named = endpoint.ask(METADATA, version, MetadataRequest(topics=asked)).topics
    assert codes(named) == {MINE: 0, OTHER: TOPIC_FAILED, NOWHERE: TOPIC_FAILED}
    assert {topic.topic_id for topic in named if topic.error_code} == {ZERO_TOPIC_ID}
    assert len(as_admin(endpoint).ask(METADATA, version, MetadataRequest(topics=None if version else ())).topics) == 15


def test_metadata_by_id_refuses_other_topics_without_their_names(endpoint: Endpoint) -> None:
    topic_id = id_of(endpoint, OTHER)
    (found,) = endpoint.ask(METADATA, 13, MetadataRequest(topics=(MetadataRequestTopic(topic_id, None),))).topics
    assert (found.error_code, found.name, found.topic_id, found.partitions) == (TOPIC_FAILED, None, topic_id, ())


def test_no_topic_is_opened_for_who_may_not_ask_about_it(endpoint: Endpoint) -> None:
    part = ListOffsetsPartition(0, timestamp=-1)
    requests = (
        (METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(name=OTHER),))),
        (DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest((TopicRequest(OTHER),))),
        (LIST_OFFSETS, 7, ListOffsetsRequest(topics=(ListOffsetsTopic(OTHER, (part,)),))),
        (FETCH, 12, FetchRequest(topics=(endpoint.topic(OTHER, 12, FetchPartition(0)),))),
        (PRODUCE, 9, ProduceRequest(topic_data=(TopicProduceData(OTHER, partition_data=(PartitionProduceData(),)),), acks=1)),
    )
    for api, version, message in requests:
        endpoint.ask(api, version, message)
        assert not endpoint.context.logs.known(), api.name
    as_admin(endpoint).ask(*requests[0])
    assert endpoint.context.logs.known().keys() == {OTHER}


def test_topics_are_described_to_those_who_may(endpoint: Endpoint) -> None:
    everything = endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest())
    assert [topic.name for topic in everything.topics] == [MINE]
    assert everything.topics[0].topic_authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE
    asked = tuple(TopicRequest(name) for name in (MINE, OTHER, NOWHERE))
    named = endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest(asked))
    assert codes(named.topics) == {MINE: 0, OTHER: TOPIC_FAILED, NOWHERE: TOPIC_FAILED}


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_a_fetch_reads_what_the_client_may_read(endpoint: Endpoint, version: int) -> None:
    asked = tuple(endpoint.topic(name, version, FetchPartition(0, partition_max_bytes=1 << 20)) for name in (MINE, OTHER))
    found = endpoint.ask(FETCH, version, FetchRequest(max_bytes=1 << 30, topics=asked)).responses
    mine, other = (one.partitions[0] for one in found)
    assert (mine.error_code, bool(mine.records)) == (0, True)
    assert (other.error_code, other.records) == (TOPIC_FAILED, ())


def test_what_a_client_asks_for_and_may_not_do_is_told_as_kafka_tells_it(endpoint: Endpoint) -> None:
    audit: list[str] = []
    endpoint.context = replace(endpoint.context, audit=audit.append)
    endpoint.fetch(MINE, 0)
    endpoint.fetch(OTHER, 0)
    endpoint.ask(HEARTBEAT, 4, HeartbeatRequest("theirs", 1, "me"))
    endpoint.ask(DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest())
    assert audit == [
        f"Principal = User:alice is Denied operation = {operation} from host = 192.0.2.1 on resource = {resource} "
        f"for request = {api}"
        for operation, resource, api in (
            ("READ", f"Topic:LITERAL:{OTHER}", "Fetch"),
            ("READ", "Group:LITERAL:theirs", "Heartbeat"),
            ("DESCRIBE", "Cluster:LITERAL:kafka-cluster", "DescribeLogDirs"),
        )
    ]
    denied = {("READ", "TOPIC"): 1, ("READ", "GROUP"): 1, ("DESCRIBE", "CLUSTER"): 1}
    assert endpoint.context.metrics.denied.all() == denied


def test_what_a_list_leaves_out_was_not_asked_for(endpoint: Endpoint) -> None:
    endpoint.ask(METADATA, 9, MetadataRequest(topics=None, include_topic_authorized_operations=True))
    endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest())
    endpoint.ask(LIST_GROUPS, 4, ListGroupsRequest())
    mine = OffsetForLeaderTopic(MINE, (OffsetForLeaderPartition(0, -1, 0),))
    endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(topics=(mine,)))
    assert endpoint.context.metrics.denied.all() == {}


def test_a_fetch_that_waits_gets_nothing_once_the_client_may_read_no_longer(endpoint: Endpoint, tmp_path: Path) -> None:
    """Although nobody else asks meanwhile, so that nobody else looks at the file."""
    topic = endpoint.topic(MINE, 12, FetchPartition(0, partition_max_bytes=1 << 20))
    asked = FetchRequest(max_wait_ms=1 << 30, min_bytes=1 << 30, max_bytes=1 << 30, topics=(topic,))
    waiting = handle(write_request(RequestHeader(FETCH, 12, 99, None), asked)[4:], endpoint.connection, endpoint.context)
    assert isinstance(waiting, Waits)
    (tmp_path / "acls.json").write_bytes(write_acls([]))
    endpoint.clock.sleep(2)
    found = answer_fetch(waiting, endpoint.context, may_wait=True)
    assert isinstance(found, list)
    (partition,) = response_of(FETCH, 12, b"".join(map(bytes_of, found))).responses[0].partitions
    assert (partition.error_code, partition.records) == (TOPIC_FAILED, ())


def test_one_who_may_describe_may_not_read(endpoint: Endpoint) -> None:
    endpoint.context.acls.change(lambda _: [replace(READS, operation=Operation.DESCRIBE)])  # type: ignore[union-attr]
    assert endpoint.fetch(MINE, 0).error_code == TOPIC_FAILED
    assert endpoint.ask(METADATA, 9, MetadataRequest(topics=None)).topics


def test_a_fetch_by_name_of_a_topic_that_is_not_there_tells_nothing(endpoint: Endpoint) -> None:
    topic = FetchTopic(NOWHERE, partitions=(FetchPartition(0, partition_max_bytes=1),))
    assert endpoint.ask(FETCH, 11, FetchRequest(topics=(topic,))).responses[0].partitions[0].error_code == TOPIC_FAILED


@pytest.mark.parametrize("version", range(12))
def test_offsets_are_told_of_what_the_client_may_describe(endpoint: Endpoint, version: int) -> None:
    one = (ListOffsetsPartition(0, timestamp=-1, max_num_offsets=1),)
    asked = ListOffsetsRequest(-1, 0, tuple(ListOffsetsTopic(name, one) for name in (OTHER, MINE, NOWHERE)))
    found = endpoint.ask(LIST_OFFSETS, version, asked).topics
    assert first_codes(found) == {MINE: 0, OTHER: TOPIC_FAILED, NOWHERE: TOPIC_FAILED}


def test_epochs_are_told_of_what_the_client_may_describe(endpoint: Endpoint) -> None:
    one = (OffsetForLeaderPartition(0, leader_epoch=0),)
    asked = OffsetForLeaderEpochRequest(-1, tuple(OffsetForLeaderTopic(name, one) for name in (OTHER, MINE, NOWHERE)))
    found = endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 4, asked).topics
    assert first_codes(found, name="topic") == {MINE: 0, OTHER: TOPIC_FAILED, NOWHERE: TOPIC_FAILED}


def test_who_may_not_write_is_told_so_before_the_reason_of_this_endpoint(endpoint: Endpoint) -> None:
    asked = ProduceRequest(acks=1, topic_data=(TopicProduceData(MINE, partition_data=(PartitionProduceData(0),)),))
    assert first_codes(endpoint.ask(PRODUCE, 9, asked).responses, "partition_responses") == {MINE: TOPIC_FAILED}
    found = as_admin(endpoint).ask(PRODUCE, 9, asked).responses
    assert first_codes(found, "partition_responses") == {MINE: ErrorCode.POLICY_VIOLATION}


def test_settings_are_told_to_those_who_may_describe_them(endpoint: Endpoint) -> None:
    kinds = ((2, MINE), (4, "1"), (32, "mine"))
    asked = DescribeConfigsRequest(tuple(DescribeConfigsResource(kind, name, None) for kind, name in kinds))
    found = endpoint.ask(DESCRIBE_CONFIGS, 4, asked).results
    assert codes(found, "resource_type") == {2: TOPIC_FAILED, 4: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 32: GROUP_FAILED}
    assert codes(as_admin(endpoint).ask(DESCRIBE_CONFIGS, 4, asked).results, "resource_type")[2] == 0


def test_the_cluster_tells_what_the_client_may_do(endpoint: Endpoint) -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert endpoint.ask(DESCRIBE_CLUSTER, 2, asked).cluster_authorized_operations == 0
    operations = as_admin(endpoint).ask(DESCRIBE_CLUSTER, 2, asked).cluster_authorized_operations
    assert operations == sum(1 << one for one in (5, 7, 8, 9, 10, 11, 12))
    assert endpoint.ask(DESCRIBE_CLUSTER, 2, DescribeClusterRequest()).cluster_authorized_operations == -(1 << 31)


def test_metadata_tells_what_the_client_may_do_if_it_asks(endpoint: Endpoint) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=MINE),), include_topic_authorized_operations=True)
    mine, everything = 1 << Operation.READ | 1 << Operation.DESCRIBE, sum(1 << one for one in (3, 4, 5, 6, 7, 8, 10, 11))
    for version in (8, 13, 8):
        assert endpoint.ask(METADATA, version, asked).topics[0].topic_authorized_operations == mine
    assert as_admin(endpoint).ask(METADATA, 13, asked).topics[0].topic_authorized_operations == everything
    unasked = replace(asked, include_topic_authorized_operations=False)
    assert endpoint.ask(METADATA, 13, unasked).topics[0].topic_authorized_operations == -(1 << 31)
    cluster = replace(asked, include_cluster_authorized_operations=True)
    assert endpoint.ask(METADATA, 10, cluster).cluster_authorized_operations == sum(1 << one for one in (5, 7, 8, 9, 10, 11, 12))


def test_every_api_has_a_rule() -> None:
    assert APIS.keys() - RULES.keys() == set()


def test_log_directories_and_producers_are_described_to_those_who_may(endpoint: Endpoint) -> None:
    asked = DescribeProducersRequest(tuple(TopicOfProducers(name, (0,)) for name in ("g-txn", "g-trimmed")))

    def described() -> tuple[int, int, list[int]]:
        dirs = endpoint.ask(DESCRIBE_LOG_DIRS, 5, DescribeLogDirsRequest(topics=None))
        producers = endpoint.ask(DESCRIBE_PRODUCERS, 0, asked).topics
        return dirs.error_code, len(dirs.results), sorted(one.partitions[0].error_code for one in producers)

    assert described() == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0, [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
    as_admin(endpoint)
    assert described() == (0, 1, [0, 0])


def test_what_is_wrong_with_a_request_is_told_before_who_may_not_ask(endpoint: Endpoint) -> None:
    """As by a broker."""
    unnamed = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic("", (OffsetForLeaderPartition(0),)),))
    assert endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 4, unnamed).topics[0].partitions[0].error_code == TOPIC_FAILED
    kinds = DescribeConfigsRequest(tuple(DescribeConfigsResource(kind, "g-trimmed", None) for kind in (2, 3)))
    assert [one.error_code for one in endpoint.ask(DESCRIBE_CONFIGS, 4, kinds).results] == [ErrorCode.INVALID_REQUEST] * 2
    assert endpoint.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest("x", -1)).error_code == ErrorCode.INVALID_REQUEST
    wrong = DescribeProducersRequest(tuple(TopicOfProducers(name, (0,)) for name in ("..", "g-trimmed")))
    told = [one.partitions[0].error_code for one in endpoint.ask(DESCRIBE_PRODUCERS, 0, wrong).topics]
    assert told == [ErrorCode.INVALID_TOPIC_EXCEPTION, TOPIC_FAILED]
    sync = SyncGroupRequest("others", 1, "m", protocol_type=None)
    codes = [endpoint.ask(SYNC_GROUP, version, sync).error_code for version in (4, 5)]
    assert codes == [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    deleted = endpoint.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(("others", "others"))).results
    assert [one.group_id for one in deleted] == ["others"]


def test_a_cursor_may_be_at_a_topic_that_the_client_may_not_describe(endpoint: Endpoint) -> None:
    asked = DescribeTopicPartitionsRequest((TopicRequest(MINE), TopicRequest(OTHER)), 10, Cursor(OTHER, 0))
    found = endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, asked).topics
    assert sorted((one.name, one.error_code) for one in found) == [(OTHER, TOPIC_FAILED), (MINE, 0)]
