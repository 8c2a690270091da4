"""Topics are created, changed and deleted over the protocol, where the endpoint has a log directory of its own."""

from dataclasses import replace
from typing import Any

import pytest
from logs_at_work import batch_of
from managed import T0
from writing_endpoint import WritingEndpoint, allowed

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.protocol.api_keys import (
    ALTER_CONFIGS,
    API_VERSIONS,
    APIS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    READING_APIS,
    Api,
)
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages import alter_configs, incremental_alter_configs
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tiering.endpoint.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tiering.endpoint.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tiering.endpoint.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.settings import read_settings

TOPIC, BROKER = 2, 4
ME = "User:ANONYMOUS"


@pytest.fixture
def endpoint() -> WritingEndpoint:
    return WritingEndpoint()


def versions(api: Api) -> range:
    return range(api.first, api.last + 1)


def create(endpoint: WritingEndpoint, *topics: CreatableTopic, version: int = 7, **more: Any) -> tuple[CreatableTopicResult, ...]:
    found: tuple[CreatableTopicResult, ...] = endpoint.ask(CREATE_TOPICS, version, CreateTopicsRequest(topics, **more)).topics
    return found


def on(*brokers: int, of: int = 0) -> CreatableReplicaAssignment:
    return CreatableReplicaAssignment(of, brokers)


def test_only_who_owns_a_log_directory_offers_to_change_topics(endpoint: WritingEndpoint) -> None:
    offered = endpoint.ask(API_VERSIONS, 3, ApiVersionsRequest("test", "1")).api_keys
    assert [one.api_key for one in offered] == [*APIS]
    assert READING_APIS.keys() < APIS.keys()
    endpoint.context = replace(endpoint.context, local_tier=None)
    offered = endpoint.ask(API_VERSIONS, 3, ApiVersionsRequest("test", "1")).api_keys
    assert [one.api_key for one in offered] == [*READING_APIS]
    with pytest.raises(InvalidRequest, match="which ApiVersions does not offer"):
        create(endpoint, CreatableTopic("new", 1, 1))


def test_a_topic_is_created_in_every_version_and_told_with_its_settings(endpoint: WritingEndpoint) -> None:
    for version in versions(CREATE_TOPICS):
        config = CreatableTopicConfig("retention.ms", "1000")
        [found] = create(endpoint, CreatableTopic(f"t{version}", 3, 1, configs=(config,)), version=version)
        topic = endpoint.tier.topics()[f"t{version}"]
        assert (found.error_code, topic.partitions, topic.config) == (0, (0, 1, 2), {"retention.ms": "1000"})
        assert found.topic_id == (topic.topic_id if version >= 7 else ZERO_TOPIC_ID)
        assert (found.num_partitions, found.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
        told = {one.name: (one.value, one.config_source) for one in found.configs or ()}
        assert ("retention.ms" in told) == (version >= 5)
        if version >= 5:
            assert (told["retention.ms"], told["cleanup.policy"]) == (("1000", 1), ("delete", 5))
            assert "internal.segment.bytes" not in told


def test_settings_of_replicas_are_kept_and_told_and_there_is_one_replica(endpoint: WritingEndpoint) -> None:
    given = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    [found] = create(endpoint, CreatableTopic("new", 1, 1, configs=tuple(CreatableTopicConfig(*one) for one in given.items())))
    assert found.error_code == 0
    told = {one.name: (one.value, one.config_source) for one in found.configs or ()}
    assert told["unclean.leader.election.enable"] == ("true", 1)
    assert told["leader.replication.throttled.replicas"] == ("", 5)
    assert [*told] == sorted(told)
    assert endpoint.tier.topics()["new"].config == given
    assert change(endpoint, ("min.insync.replicas", 0, "2")) == ErrorCode.INVALID_CONFIG
    endpoint.tier.stop()
    endpoint.own(endpoint.host.started())
    assert endpoint.tier.topics()["new"].config == given


def test_a_topic_without_numbers_has_the_default_ones(endpoint: WritingEndpoint) -> None:
    endpoint.context = replace(endpoint.context, settings=read_settings(["num.partitions=4"]))
    [found, other] = create(endpoint, CreatableTopic("four", -1, -1), CreatableTopic("two", -1, -1, (on(1), on(1, of=1))))
    assert (found.error_code, found.num_partitions, other.num_partitions) == (0, 4, 2)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic("orders", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreatableTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST),
        (CreatableTopic("new", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("new", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("new", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("new", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("new", 2, -1, (on(1),)), ErrorCode.INVALID_REQUEST),
        (CreatableTopic("new", -1, 1, (on(1),)), ErrorCode.INVALID_REQUEST),
        (CreatableTopic("new", -1, -1, (on(2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", -1, -1, (on(1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", -1, -1, (on(),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", -1, -1, (on(1), on(1))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", -1, -1, (on(1, of=1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", 1, 1, configs=(CreatableTopicConfig("retention.ms", "x"),)), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("new", 1, 1, configs=(CreatableTopicConfig("retention.ms", None),)), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("new", 1, 1, configs=(CreatableTopicConfig("no.such", "1"),)), ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_topic_that_cannot_be_is_refused_also_if_it_is_only_asked_about(
    endpoint: WritingEndpoint, topic: CreatableTopic, code: ErrorCode
) -> None:
    for more in ({}, {"validate_only": True}):
        [found] = create(endpoint, topic, **more)
        assert (found.error_code, found.num_partitions, found.configs) == (code, -1, ())
        assert found.error_message
    assert [*endpoint.tier.topics()] == ["orders"]


def test_a_topic_that_could_be_is_not_created_where_it_is_only_asked_about(endpoint: WritingEndpoint) -> None:
    [found] = create(endpoint, CreatableTopic("new", 2, 1), validate_only=True)
    assert (found.error_code, found.num_partitions) == (0, 2)
    [twice] = create(endpoint, CreatableTopic("new", 2, 1), CreatableTopic("new", 1, 1))
    assert twice.error_code == ErrorCode.INVALID_REQUEST
    assert [*endpoint.tier.topics()] == ["orders"]


def test_who_creates_a_topic_needs_the_right_and_sees_its_settings_only_with_another(endpoint: WritingEndpoint) -> None:
    everything = endpoint.context
    endpoint.context = allowed(everything, Acl(ResourceType.TOPIC, "mine", ME, Operation.CREATE))
    mine, other = create(endpoint, CreatableTopic("mine", 1, 1), CreatableTopic("other", 1, 1))
    assert (mine.error_code, mine.topic_config_error_code) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (mine.num_partitions, mine.configs) == (-1, ())
    assert other.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    endpoint.context = allowed(everything, Acl(ResourceType.CLUSTER, "kafka-cluster", ME, Operation.CREATE))
    assert create(endpoint, CreatableTopic("other", 1, 1))[0].error_code == 0


def test_a_topic_is_deleted_by_name_or_id(endpoint: WritingEndpoint) -> None:
    for version in versions(DELETE_TOPICS):
        for by_id in (False, True) if version >= 6 else (False,):
            topic = endpoint.tier.create_topic("new")
            state = DeleteTopicState(None, topic.topic_id or "") if by_id else DeleteTopicState("new")
            asked = DeleteTopicsRequest((state,)) if version >= 6 else DeleteTopicsRequest(topic_names=("new",))
            [found] = endpoint.ask(DELETE_TOPICS, version, asked).responses
            assert (found.name, found.error_code) == ("new", 0)
            assert found.topic_id == (topic.topic_id if version >= 6 else ZERO_TOPIC_ID)
            assert "new" not in endpoint.tier.topics()


def test_what_cannot_be_deleted_is_refused(endpoint: WritingEndpoint) -> None:
    topic_id = endpoint.tier.topics()["orders"].topic_id or ""

    def codes(*states: DeleteTopicState) -> list[int]:
        found = endpoint.ask(DELETE_TOPICS, 6, DeleteTopicsRequest(states)).responses
        return [one.error_code for one in found]

    assert codes(DeleteTopicState("nowhere")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(DeleteTopicState(None, "B" * 21 + "A")) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert codes(DeleteTopicState(None)) == [ErrorCode.INVALID_REQUEST]
    assert codes(DeleteTopicState("orders", topic_id)) == [ErrorCode.INVALID_REQUEST]
    assert codes(DeleteTopicState("orders"), DeleteTopicState("orders")) == [ErrorCode.INVALID_REQUEST]
    assert {*codes(DeleteTopicState("orders"), DeleteTopicState(None, topic_id))} == {ErrorCode.INVALID_REQUEST}
    everything = endpoint.context
    endpoint.context = allowed(everything, Acl(ResourceType.TOPIC, "orders", ME, Operation.DESCRIBE))
    assert codes(DeleteTopicState("orders"), DeleteTopicState("hidden")) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
    endpoint.context = allowed(everything, Acl(ResourceType.TOPIC, "orders", ME, Operation.DELETE))
    assert codes(DeleteTopicState("orders")) == [0]


def test_a_topic_gets_more_partitions(endpoint: WritingEndpoint) -> None:
    def codes(*topics: CreatePartitionsTopic, version: int = 3, only: bool = False) -> list[int]:
        found = endpoint.ask(CREATE_PARTITIONS, version, CreatePartitionsRequest(topics, 0, only)).results
        return [one.error_code for one in found]

    for version in versions(CREATE_PARTITIONS):
        assert codes(CreatePartitionsTopic("orders", version + 2, None), version=version) == [0]
    assert codes(CreatePartitionsTopic("orders", 9, None), only=True) == [0]
    assert endpoint.tier.topics()["orders"].partitions == (0, 1, 2, 3, 4)
    mine = CreatePartitionsAssignment((1,))
    assert codes(CreatePartitionsTopic("orders", 6, (mine,))) == [0]
    for topic, code in (
        (CreatePartitionsTopic("nowhere", 2, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (CreatePartitionsTopic("orders", 6, None), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("orders", 1, None), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("orders", 8, (mine,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatePartitionsTopic("orders", 7, (CreatePartitionsAssignment((7,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ):
        assert codes(topic) == [code]
        assert codes(topic, topic) == [ErrorCode.INVALID_REQUEST]
    endpoint.context = allowed(endpoint.context)
    assert codes(CreatePartitionsTopic("orders", 9, None)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_what_coordinators_write_is_not_deleted_under_them_and_keeps_its_partitions(endpoint: WritingEndpoint, name: str) -> None:
    endpoint.tier.create_topic(name, 5)
    [deleted] = endpoint.ask(DELETE_TOPICS, 6, DeleteTopicsRequest((DeleteTopicState(name),))).responses
    [made] = endpoint.ask(CREATE_PARTITIONS, 3, CreatePartitionsRequest((CreatePartitionsTopic(name, 6, None),), 0)).results
    assert deleted.error_code == made.error_code == ErrorCode.POLICY_VIOLATION
    assert len(endpoint.tier.topics()[name].partitions) == 5


def test_records_are_deleted_up_to_an_offset(endpoint: WritingEndpoint) -> None:
    for _ in range(9):
        endpoint.produce(batch_of("a", time=T0))

    def delete(offset: int, topic: str = "orders", number: int = 0, version: int = 2) -> tuple[int, int]:
        asked = DeleteRecordsRequest((DeleteRecordsTopic(topic, (DeleteRecordsPartition(number, offset),)),))
        [found] = endpoint.ask(DELETE_RECORDS, version, asked).topics
        return found.partitions[0].low_watermark, found.partitions[0].error_code

    for version in versions(DELETE_RECORDS):
        assert delete(version + 2, version=version) == (version + 2, 0)
    assert delete(1) == (4, 0)
    assert delete(10) == delete(-2) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert delete(1, number=1) == delete(1, "nowhere") == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert delete(-1) == (9, 0)
    assert endpoint.log().log_start_offset == 9
    endpoint.tier.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    assert delete(0, "compacted") == (-1, ErrorCode.POLICY_VIOLATION)
    endpoint.tier.create_topic("__consumer_offsets")
    assert delete(0, "__consumer_offsets") == (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)
    endpoint.context = allowed(endpoint.context)
    assert delete(9) == (-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def change(
    endpoint: WritingEndpoint, *settings: tuple[str, int, str | None], name: str = "orders", kind: int = TOPIC, **more: Any
) -> int:
    configs = tuple(incremental_alter_configs.AlterableConfig(*one) for one in settings)
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, configs)
    version = more.pop("version", 1)
    asked = incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), **more)
    [found] = endpoint.ask(INCREMENTAL_ALTER_CONFIGS, version, asked).responses
    assert (found.resource_type, found.resource_name, bool(found.error_message)) == (kind, name, bool(found.error_code))
    return int(found.error_code)


def test_settings_of_a_topic_are_changed_one_by_one_and_hold_at_once(endpoint: WritingEndpoint) -> None:
    def own() -> dict[str, str]:
        return dict(endpoint.tier.topics()["orders"].config)

    for version in versions(INCREMENTAL_ALTER_CONFIGS):
        assert change(endpoint, ("max.message.bytes", 0, "100"), version=version) == 0
    assert endpoint.log().folder.config.max_message_bytes == 100
    assert change(endpoint, ("cleanup.policy", 2, "compact"), ("max.message.bytes", 1, None)) == 0
    assert own() == {"cleanup.policy": "delete,compact"}
    assert change(endpoint, ("cleanup.policy", 3, "delete")) == 0
    assert own() == {"cleanup.policy": "compact"}
    assert change(endpoint, ("retention.ms", 0, "5"), validate_only=True) == 0
    for settings, code in (
        ((("retention.ms", 0, "x"),), ErrorCode.INVALID_CONFIG),
        ((("retention.ms", 2, "1"),), ErrorCode.INVALID_CONFIG),
        ((("retention.ms", 0, None),), ErrorCode.INVALID_REQUEST),
        ((("retention.ms", 9, "1"),), ErrorCode.INVALID_REQUEST),
        ((("retention.ms", 0, "1"), ("retention.ms", 0, "2")), ErrorCode.INVALID_REQUEST),
    ):
        assert change(endpoint, *settings) == code
    assert change(endpoint, ("retention.ms", 0, "1"), name="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    of_broker = ("log.retention.ms", 0, "1")
    assert change(endpoint, name="") == change(endpoint, of_broker, name="1", kind=BROKER) == ErrorCode.INVALID_REQUEST
    assert own() == {"cleanup.policy": "compact"}
    endpoint.context = allowed(endpoint.context)
    assert change(endpoint) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert change(endpoint, name="1", kind=BROKER) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_all_settings_of_a_topic_are_replaced(endpoint: WritingEndpoint) -> None:
    endpoint.tier.alter_configs("orders", {"retention.ms": "5", "segment.ms": "7"})
    for version in versions(ALTER_CONFIGS):
        resource = alter_configs.AlterConfigsResource(
            TOPIC, "orders", (alter_configs.AlterableConfig("retention.ms", f"{version}"),)
        )
        [found] = endpoint.ask(ALTER_CONFIGS, version, alter_configs.AlterConfigsRequest((resource,))).responses
        assert found.error_code == 0
        assert endpoint.tier.topics()["orders"].config == {"retention.ms": f"{version}"}


def test_the_settings_of_a_topic_are_told_with_where_they_are_from(endpoint: WritingEndpoint) -> None:
    endpoint.tier.alter_configs("orders", {"max.message.bytes": "100"})
    asked = DescribeConfigsRequest((DescribeConfigsResource(TOPIC, "orders", None),), include_synonyms=True)
    [found] = endpoint.ask(DESCRIBE_CONFIGS, 4, asked).results
    told = {one.name: one for one in found.configs}
    assert (told["max.message.bytes"].value, told["max.message.bytes"].config_source) == ("100", 1)
    assert [(one.value, one.source) for one in told["max.message.bytes"].synonyms] == [("100", 1), ("1048588", 5)]
    assert (told["retention.ms"].value, told["retention.ms"].config_source) == ("600000", 4)  # given to the process
    assert (told["min.cleanable.dirty.ratio"].value, told["preallocate"].value) == ("0.5", "false")
    few = DescribeConfigsRequest((DescribeConfigsResource(TOPIC, "orders", ("segment.ms",)),))
    assert [one.name for one in endpoint.ask(DESCRIBE_CONFIGS, 4, few).results[0].configs] == ["segment.ms"]
