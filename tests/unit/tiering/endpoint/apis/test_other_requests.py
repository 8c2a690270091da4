from pathlib import Path

import pytest
from archive_fakes import FixedClock, MemoryStore
from asked_endpoint import Endpoint, response_of
from golden_logs import live
from tiered_worlds import World

from local_log.errors import Unavailable
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from remote.manifest.store import load_newest
from tiering.endpoint.apis.context import leader_epoch_of
from tiering.endpoint.apis.kafka_apis import handle
from tiering.endpoint.apis.produce import REASON
from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers
from tiering.endpoint.hosted_logs import RETRY_MS
from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    READING_APIS,
)
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.describe_cluster import DescribeClusterRequest
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tiering.endpoint.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.endpoint.reports import LENGTH_MAX, PER_MINUTE_MAX, Reports


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["some archived dropped"], world.store)


def offsets(endpoint: Endpoint, topic: str, timestamp: int, version: int = 11, level: int = 0) -> list[int]:
    """Offset, timestamp and leader epoch, or the error's code."""
    asked = ListOffsetsPartition(0, timestamp=timestamp)
    request = ListOffsetsRequest(-1, level, (ListOffsetsTopic(topic, (asked,)),))
    found = endpoint.ask(LIST_OFFSETS, version, request).topics[0].partitions[0]
    return [found.error_code] if found.error_code else [found.offset, found.timestamp, found.leader_epoch]


@pytest.mark.parametrize("partition", ["g-txn-0", "g-mixed-0", "g-trimmed-0", "g-epochs-0"])
def test_offsets_by_time_are_those_that_the_broker_answered(endpoint: Endpoint, partition: str) -> None:
    want = live(partition)
    for name, timestamp in {"latest": -1, "earliest": -2, "max_timestamp": -3}.items():
        assert offsets(endpoint, partition[:-2], timestamp) == want[name], name
    for timestamp, *found in want["offset_for_timestamp"]:
        assert offsets(endpoint, partition[:-2], timestamp) == found, timestamp
    assert offsets(endpoint, partition[:-2], -1, level=1)[0] == want["last_stable_offset"]


def test_special_timestamps_are_told_from_the_version_on_that_knows_them(endpoint: Endpoint) -> None:
    for timestamp, first in {-3: 7, -4: 8, -5: 9, -6: 11}.items():
        assert offsets(endpoint, "g-txn", timestamp, first - 1) == [ErrorCode.UNSUPPORTED_VERSION]
        assert len(offsets(endpoint, "g-txn", timestamp, first)) == 3
    assert offsets(endpoint, "g-txn", -7) == [ErrorCode.UNSUPPORTED_VERSION]
    assert offsets(endpoint, "nowhere", -1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_version_0_gives_the_segments_before_a_time(endpoint: Endpoint, world: World) -> None:
    def old(timestamp: int, count: int) -> tuple[int, ...]:
        one = ListOffsetsPartition(0, timestamp=timestamp, max_num_offsets=count)
        request = ListOffsetsRequest(-1, 0, (ListOffsetsTopic("g-txn", (one,)),))
        found: tuple[int, ...] = endpoint.ask(LIST_OFFSETS, 0, request).topics[0].partitions[0].old_style_offsets
        return found

    assert old(-2, 10) == (0,)
    assert old(-1, 1) == (world.log("local alone", "g-txn-0").end_offset(),)
    assert len(old(-1, 100)) > 3
    assert old(-1, 100) == tuple(sorted(old(-1, 100), reverse=True))


def test_the_end_of_each_leader_epoch_is_told_also_where_only_the_archive_has_it(endpoint: Endpoint, world: World) -> None:
    log = world.log("local alone", "g-epochs-0")
    ends = [e.start_offset for e in log.local.leader_epochs[1:]] + [log.local.log_end_offset]

    def end(epoch: int) -> EpochEndOffset:
        one = OffsetForLeaderTopic("g-epochs", (OffsetForLeaderPartition(0, leader_epoch=epoch),))
        answer = endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(-1, (one,)))
        found: EpochEndOffset = answer.topics[0].partitions[0]
        return found

    for entry, end_offset in zip(log.local.leader_epochs, ends, strict=True):
        assert end(entry.epoch) == EpochEndOffset(0, 0, entry.epoch, end_offset)
    assert end(99) == EpochEndOffset(0, 0, -1, -1)


@pytest.mark.parametrize("version", range(14))
def test_metadata_has_all_topics_or_those_asked_for(endpoint: Endpoint, version: int) -> None:
    everything = endpoint.ask(METADATA, version, MetadataRequest(topics=None if version else ()))
    assert [topic.name for topic in everything.topics] == list(endpoint.context.logs.names())
    assert [(b.host, b.port) for b in everything.brokers] == [("broker.test", 9092)]
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="g-txn"), MetadataRequestTopic(name="nowhere")))
    one, none = endpoint.ask(METADATA, version, asked).topics
    assert [(p.partition_index, p.leader_id, p.error_code) for p in one.partitions] == [(0, 1, 0)]
    assert (none.error_code, none.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    if version > 0:
        assert endpoint.ask(METADATA, version, MetadataRequest(topics=())).topics == ()


def test_metadata_by_id_knows_the_topics_that_were_asked_for_by_name(endpoint: Endpoint) -> None:
    named = endpoint.ask(METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(name="g-txn"),))).topics[0]
    assert named.topic_id != ZERO_TOPIC_ID
    ids = (MetadataRequestTopic(named.topic_id, None), MetadataRequestTopic("B" * 21 + "A", None))
    known, unknown = endpoint.ask(METADATA, 12, MetadataRequest(topics=ids)).topics
    assert known == named
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_topics_are_described_a_page_at_a_time(endpoint: Endpoint) -> None:
    cursor, found = None, []
    while True:
        request = DescribeTopicPartitionsRequest(response_partition_limit=4, cursor=cursor)
        page = endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, request)
        assert sum(len(topic.partitions) for topic in page.topics) <= 4
        found += [topic.name for topic in page.topics]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert isinstance(cursor, Cursor)
    assert found == list(endpoint.context.logs.names())


def test_the_cluster_is_this_endpoint_and_topics_have_no_settings(endpoint: Endpoint) -> None:
    cluster = endpoint.ask(DESCRIBE_CLUSTER, 2, DescribeClusterRequest())
    assert [(b.host, b.port) for b in cluster.brokers] == [("broker.test", 9092)]
    topics = tuple(DescribeConfigsResource(2, name, None) for name in ("g-txn", "nowhere"))
    known, unknown = endpoint.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(topics)).results
    assert (known.error_code, known.configs) == (0, ())
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_api_versions_lists_what_is_answered_whichever_version_asks(endpoint: Endpoint) -> None:
    for version in range(5):
        found = endpoint.ask(API_VERSIONS, version, ApiVersionsRequest("test", "1"))
        assert [(one.api_key, one.min_version, one.max_version) for one in found.api_keys] == [
            (api.key, api.first, api.last) for api in READING_APIS.values()
        ]
    newer = b"\0\x12\0\x63" + (99).to_bytes(4, "big") + b"\0\4test\0"
    answer = response_of(API_VERSIONS, 0, b"".join(handle(newer, endpoint.connection, endpoint.context)))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(one.api_key, one.max_version) for one in answer.api_keys] == [(18, 4)]


def test_producers_are_refused_with_the_reason(endpoint: Endpoint) -> None:
    def asked(acks: int) -> ProduceRequest:
        return ProduceRequest(acks=acks, topic_data=(TopicProduceData("g-txn", partition_data=(PartitionProduceData(3),)),))

    for version in range(13):
        found = endpoint.ask(PRODUCE, version, asked(-1)).responses[0].partition_responses[0]
        assert (found.index, found.error_code) == (3, ErrorCode.POLICY_VIOLATION)
        assert found.error_message == (REASON if version >= 8 else None)
    with pytest.raises(InvalidRequest, match="takes no records"):
        endpoint.ask(PRODUCE, 9, asked(0))


def test_producers_that_need_an_id_are_given_one_so_that_they_are_told_the_reason(endpoint: Endpoint) -> None:
    for version in range(6):
        found = endpoint.ask(INIT_PRODUCER_ID, version, InitProducerIdRequest(None, 60_000))
        assert (found.error_code, found.producer_id >= 0, found.producer_epoch) == (0, True, 0)
        of_transactions = endpoint.ask(INIT_PRODUCER_ID, version, InitProducerIdRequest("payments", 60_000))
        assert (of_transactions.error_code, of_transactions.producer_id) == (ErrorCode.POLICY_VIOLATION, -1)
    odd = endpoint.ask(INIT_PRODUCER_ID, 5, InitProducerIdRequest(None, 60_000, producer_id=7))
    assert odd.error_code == ErrorCode.INVALID_REQUEST


def test_what_is_archived_later_is_found_after_a_while(world: World, tmp_path: Path) -> None:
    endpoint = Endpoint(None, world.store)
    names = endpoint.context.logs.names()
    loads = len(world.store.calls)
    first = endpoint.context.logs.topic(names[0])
    assert endpoint.context.logs.topic(names[0]) is first
    asked_once = len(world.store.calls) - loads
    endpoint.clock.now += endpoint.context.logs.archive_ms_max
    again = endpoint.context.logs.topic(names[0])
    assert again is not first
    assert again is not None
    assert first is not None
    assert again.partitions == first.partitions
    assert asked_once > 0


class SilentTiers:
    """Both tiers of a store that does not answer."""

    log_dir = None

    def topics(self) -> tuple[str, ...]:
        raise Unavailable("the store does not answer")

    def found(self, topic: str) -> object:
        raise Unavailable(f"the store does not answer for {topic}")


def test_a_store_that_never_answered_gives_codes_that_clients_retry(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    endpoint.context.logs.names()
    endpoint.context.logs.tiers = SilentTiers()  # type: ignore[assignment]
    answer: MetadataResponse = endpoint.ask(METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name="g-txn"),)))
    assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert offsets(endpoint, "g-txn", -1) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert endpoint.fetch("g-txn", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    page = endpoint.ask(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest())
    assert {topic.error_code for topic in page.topics} == {ErrorCode.LEADER_NOT_AVAILABLE}
    assert "the metadata of g-txn: the store does not answer for g-txn" in endpoint.said


def test_what_was_known_is_served_while_the_store_does_not_answer_and_looked_at_when_it_does(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    logs, tiers = endpoint.context.logs, endpoint.context.logs.tiers
    before = offsets(endpoint, "g-txn", -1)
    first = logs.topic("g-txn")
    logs.tiers = SilentTiers()  # type: ignore[assignment]
    endpoint.clock.now += logs.archive_ms_max
    for _ in range(3):
        assert offsets(endpoint, "g-txn", -1) == before
    assert endpoint.said == [
        "topics are served as they were listed before: the store does not answer",
        "topic g-txn is served as it was before: the store does not answer for g-txn",
    ]
    logs.tiers = tiers
    endpoint.clock.now += RETRY_MS
    again = logs.topic("g-txn")
    assert again is not None
    assert first is not None
    assert again.loaded_ms == endpoint.clock.now
    assert again.partitions == first.partitions


def test_reports_are_limited_and_the_others_counted() -> None:
    clock, said = FixedClock(), list[str]()
    reports = Reports(said.append, clock)
    for number in range(PER_MINUTE_MAX + 5):
        reports(f"message {number}")
    assert len(said) == PER_MINUTE_MAX
    clock.now += 60_000
    reports("later")
    assert said[-1] == "later (5 more messages were not shown)"


def test_reports_are_made_after_a_minute_whatever_the_wall_clock_is_set_to() -> None:
    clock, said = FixedClock(), list[str]()
    reports = Reports(said.append, clock)
    reports("the disk is gone")
    clock.set_by_ms = -3_600_000
    clock.now += 60_000
    reports("the disk is gone")
    assert len(said) == 2


def test_a_long_report_is_cut() -> None:
    said = list[str]()
    Reports(said.append, FixedClock())("x" * LENGTH_MAX + "yz")
    assert said == ["x" * LENGTH_MAX + "…"]


def test_the_same_report_is_made_once_a_minute() -> None:
    clock, said = FixedClock(), list[str]()
    reports = Reports(said.append, clock)
    for _ in range(2):
        for message in ("one", "one", "two", "one"):
            reports(message)
        clock.now += 60_000
    more = "(1 more messages were not shown)"
    assert said == ["one", f"two {more}", f"one {more}", f"two {more}"]


def test_a_partition_that_another_broker_leads_is_refused_and_metadata_names_its_leader(endpoint: Endpoint) -> None:
    brokers = (Broker(1, "broker.test", 9092), Broker(2, "other.test", 9093))
    endpoint.context.cluster.live = LiveBrokers(1, brokers)
    topics = endpoint.ask(METADATA, 12, MetadataRequest(topics=None)).topics
    leaders = {topic.name: topic.partitions[0].leader_id for topic in topics}
    assert set(leaders.values()) == {1, 2}
    for name, leader in leaders.items():
        found = [endpoint.fetch(name, 0).error_code, *offsets(endpoint, name, -1)[:1]]
        refused = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
        assert (found == refused) == (leader == 2), name
    assert [b.port for b in endpoint.ask(DESCRIBE_CLUSTER, 1, DescribeClusterRequest()).brokers] == [9092, 9093]


def behind(world: World) -> tuple[Endpoint, MemoryStore, str, bytes, int]:
    """One of two brokers, the leader of g-txn, which has the manifest before the newest; the newest one, and where it ends."""
    path = world.archived("g-txn-0").archived.manifest.path
    newest = next(meta.key for meta in world.store.list(path.manifests))
    store = MemoryStore()
    for meta in world.store.list(""):
        if meta.key != newest:
            store.put_if_absent(meta.key, world.store.get(meta.key))
    endpoint = Endpoint(None, store)
    brokers = (Broker(1, "broker.test", 9092), Broker(2, "other.test", 9093))
    endpoint.context.cluster.live = LiveBrokers(LiveBrokers(1, brokers).leader_of("g-txn", 0), brokers)
    newest_end = load_newest(world.store, path).manifest.end_offset
    assert endpoint.fetch("g-txn", 0).high_watermark < newest_end
    return endpoint, store, newest, world.store.get(newest), newest_end


def test_an_offset_of_a_newer_manifest_which_another_broker_has_read_is_never_out_of_range(world: World) -> None:
    endpoint, store, newest, body, newest_end = behind(world)
    store.put_if_absent(newest, body)
    assert endpoint.fetch("g-txn", newest_end).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER  # it asks again
    endpoint.clock.now += RETRY_MS
    found = endpoint.fetch("g-txn", newest_end)
    assert (found.error_code, found.high_watermark) == (ErrorCode.NONE, newest_end)
    endpoint.clock.now += RETRY_MS
    assert endpoint.fetch("g-txn", newest_end + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_epoch_never_ends_before_what_another_broker_has_told_so_that_no_consumer_goes_back(world: World) -> None:
    endpoint, store, newest, body, newest_end = behind(world)
    store.put_if_absent(newest, body)
    log = endpoint.context.logs.topic("g-txn")
    assert log is not None
    epoch = leader_epoch_of(log.partitions[0])  # type: ignore[arg-type]

    def end() -> tuple[int, int]:
        asked = OffsetForLeaderTopic("g-txn", (OffsetForLeaderPartition(0, -1, epoch),))
        found = endpoint.ask(OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(-1, (asked,))).topics[0].partitions[0]
        return found.error_code, found.end_offset

    assert end() == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)  # it asks again
    endpoint.clock.now += RETRY_MS
    assert end() == (ErrorCode.NONE, newest_end)
