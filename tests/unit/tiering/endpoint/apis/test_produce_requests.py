"""Produce where the endpoint has a log directory of its own."""

from dataclasses import replace
from typing import Any

import pytest
from asked_endpoint import bytes_of, response_of
from hand_made import ZSTD, message
from logs_at_work import batch_of, values_of
from managed import T0
from writing_endpoint import WritingEndpoint, allowed

from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Unreadable
from local_log.formats.filenames import TopicPartition
from tiering.endpoint.apis.kafka_apis import Throttled, handle
from tiering.endpoint.apis.single_appends import append_one
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.brokers.live_brokers import Broker, Cluster, LiveBrokers
from tiering.endpoint.protocol.api_keys import PRODUCE
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.local_tier.local_tier import LocalTier

ALL = tuple(range(PRODUCE.first, PRODUCE.last + 1))
ONE = batch_of("a", time=T0)
"""A batch of one record."""


@pytest.fixture
def endpoint() -> WritingEndpoint:
    return WritingEndpoint()


def test_records_are_appended_in_every_version(endpoint: WritingEndpoint) -> None:
    for offset, version in enumerate(ALL):
        found = endpoint.produce(ONE, version=version)
        assert (found.error_code, found.base_offset, found.log_append_time_ms) == (0, offset, -1)
        assert found.log_start_offset == (0 if version >= 5 else -1)
    assert values_of(endpoint.log().read(0, 1 << 20).records) == [(offset, "a") for offset in ALL]


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_messages_of_clients_before_0_11_become_record_batches(endpoint: WritingEndpoint, version: int, magic: int) -> None:
    sent = message(magic, offset=0, value=b"a", timestamp=T0) + message(magic, offset=1, value=b"b", timestamp=T0)
    assert endpoint.produce(sent, version=version).base_offset == 0
    [one] = endpoint.batches()
    assert (one.magic, one.records_count, one.max_timestamp) == (2, 2, T0 if magic else -1)
    assert [value for _, value in values_of(endpoint.log().read(0, 1 << 20).records)] == ["a", "b"]


def test_who_wants_no_acknowledgement_gets_none_and_its_connection_ends_upon_an_error(endpoint: WritingEndpoint) -> None:
    def sent(records: bytes, topic: str = "orders") -> object:
        asked = endpoint.asked(topic, {0: (records,)}, 9, acks=0)
        frame = write_request(RequestHeader(PRODUCE, 9, 99, "test"), asked)[4:]
        return handle(frame, endpoint.connection, endpoint.context)

    assert sent(ONE) == []
    assert endpoint.log().log_end_offset == 1
    with pytest.raises(InvalidRequest, match="UNKNOWN_TOPIC_OR_PARTITION"):
        sent(ONE, "nowhere")
    with pytest.raises(InvalidRequest, match="CRC"):
        sent(damaged(ONE))


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes((data[-1] ^ 1,))


def test_other_acks_are_refused_and_nothing_is_appended(endpoint: WritingEndpoint) -> None:
    for acks in (2, -2):
        assert endpoint.produce(ONE, acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert endpoint.produce(ONE, acks=1).error_code == 0
    assert endpoint.log().log_end_offset == 1


def refusals(limits: dict[str, str], *records: bytes | None, **more: object) -> list[ErrorCode]:
    endpoint = WritingEndpoint()
    endpoint.tier.alter_configs("orders", limits)
    return [ErrorCode(endpoint.produce(one, **more).error_code) for one in records]  # type: ignore[arg-type]


def produced(producer: int = 7, epoch: int = 0, sequence: int = 0, **more: bool) -> bytes:
    return batch_of("a", time=T0, producer=producer, epoch=epoch, sequence=sequence, **more)


@pytest.mark.parametrize(
    ("limits", "sent", "expected"),
    [
        ({}, [damaged(ONE)], ErrorCode.CORRUPT_MESSAGE),
        ({}, [ONE[:16] + b"\x05" + ONE[17:]], ErrorCode.CORRUPT_MESSAGE),
        ({"max.message.bytes": "70"}, [batch_of("x" * 100, time=T0)], ErrorCode.MESSAGE_TOO_LARGE),
        ({"internal.segment.bytes": "100"}, [batch_of("x" * 100, time=T0)], ErrorCode.RECORD_LIST_TOO_LARGE),
        ({"message.timestamp.before.max.ms": "1000"}, [batch_of("a", time=T0 - 2000)], ErrorCode.INVALID_TIMESTAMP),
        ({"cleanup.policy": "compact"}, [ONE], ErrorCode.INVALID_RECORD),
        ({}, [None], ErrorCode.INVALID_RECORD),
        ({}, [b""], ErrorCode.INVALID_RECORD),
        ({}, [ONE + ONE], ErrorCode.INVALID_RECORD),
        ({}, [message(1, value=b"a", timestamp=T0)], ErrorCode.INVALID_RECORD),
        ({}, [batch_of("a", offset=3, time=T0)], ErrorCode.INVALID_RECORD),
        ({}, [produced(), produced(sequence=5)], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ({}, [produced(epoch=3), produced(epoch=2)], ErrorCode.INVALID_PRODUCER_EPOCH),
        ({}, [produced(transactional=True)], ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_what_a_log_refuses_is_told_by_its_code(limits: dict[str, str], sent: list[bytes], expected: ErrorCode) -> None:
    *before, last = refusals(limits, *sent)
    assert last is expected
    assert {*before} <= {ErrorCode.NONE}


def test_a_record_that_is_refused_is_named(endpoint: WritingEndpoint) -> None:
    endpoint.tier.alter_configs("orders", {"cleanup.policy": "compact"})
    found = endpoint.produce(batch_of("a", "b", time=T0, keys=(b"k", None)))
    [one] = found.record_errors
    assert (one.batch_index, found.log_start_offset, found.base_offset) == (1, 0, -1)
    assert "no key" in one.batch_index_error_message
    assert one.batch_index_error_message in found.error_message


def test_zstd_needs_version_7(endpoint: WritingEndpoint) -> None:
    sent = batch_of("a", time=T0, codec=ZSTD)
    assert endpoint.produce(sent, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert endpoint.produce(sent, version=7).error_code == 0


def test_a_duplicate_is_answered_with_the_offset_of_its_original(endpoint: WritingEndpoint) -> None:
    assert endpoint.produce(produced()).base_offset == 0
    assert endpoint.produce(produced(sequence=1)).base_offset == 1
    again = endpoint.produce(produced())
    assert (again.error_code, again.base_offset) == (0, 0)
    assert endpoint.log().log_end_offset == 2


def test_a_producer_goes_on_after_a_restart_and_its_duplicates_are_known(endpoint: WritingEndpoint) -> None:
    assert endpoint.produce(produced()).base_offset == 0
    endpoint.tier.stop()
    endpoint.own(endpoint.host.started())
    assert endpoint.produce(produced()).base_offset == 0
    assert endpoint.produce(produced(sequence=1)).base_offset == 1
    assert endpoint.produce(produced(sequence=3)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_time_of_an_append_is_told_where_the_topic_has_it(endpoint: WritingEndpoint) -> None:
    endpoint.tier.alter_configs("orders", {"message.timestamp.type": "LogAppendTime"})
    assert endpoint.produce(batch_of("a", time=T0 - 5)).log_append_time_ms == T0
    assert endpoint.batches()[0].max_timestamp == T0


def test_topics_and_partitions_that_there_are_not_are_told_apart(endpoint: WritingEndpoint) -> None:
    assert endpoint.produce(ONE, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert endpoint.produce(ONE, number=1, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = TopicProduceData(topic_id="B" * 21 + "A", partition_data=(PartitionProduceData(0, (ONE,)),))
    found = endpoint.ask(PRODUCE, 13, ProduceRequest(None, 1, 1000, (unknown,))).responses[0]
    assert (found.topic_id, found.partition_responses[0].error_code) == ("B" * 21 + "A", ErrorCode.UNKNOWN_TOPIC_ID)


def test_nobody_but_admin_clients_appends_to_internal_topics(endpoint: WritingEndpoint) -> None:
    endpoint.tier.create_topic("__consumer_offsets")
    assert endpoint.produce(ONE, "__consumer_offsets").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_of_a_partition_that_is_asked_for_twice_the_last_records_are_appended(endpoint: WritingEndpoint) -> None:
    twice = tuple(PartitionProduceData(0, (batch_of(value, time=T0),)) for value in "ab")
    asked = ProduceRequest(None, 1, 1000, (TopicProduceData("orders", partition_data=twice),))
    assert len(endpoint.ask(PRODUCE, 9, asked).responses[0].partition_responses) == 1
    assert values_of(endpoint.log().read(0, 1000).records) == [(0, "b")]


def test_a_disk_that_fails_is_a_storage_error(endpoint: WritingEndpoint) -> None:
    def fail() -> None:
        raise Unreadable("/a: Input/output error")

    endpoint.host.disk.on_call = fail
    for _ in range(2):
        assert endpoint.produce(ONE).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "Input/output error" in endpoint.said[0]


def test_bytes_and_records_are_counted_by_topic(endpoint: WritingEndpoint) -> None:
    two = batch_of("a", "b", time=T0)
    for sent in (two, damaged(ONE), batch_of("a", offset=1, time=T0)):
        endpoint.produce(sent)
    found = endpoint.context.metrics.topics()["orders"]
    assert (found.messages_in, found.bytes_in, found.produces, found.failed_produces) == (2, len(two), 3, 1)


def test_records_reach_the_log_without_a_copy(endpoint: WritingEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    given, append = list[Any](), UnifiedLog.append_as_leader

    def noted(log: UnifiedLog, records: Any, leader_epoch: int, **more: Any) -> Any:
        given.append(records)
        return append(log, records, leader_epoch, **more)

    monkeypatch.setattr(UnifiedLog, "append_as_leader", noted)
    frame = write_request(RequestHeader(PRODUCE, 9, 99, "test"), endpoint.asked("orders", {0: (ONE,)}, 9))[4:]
    handle(frame, endpoint.connection, endpoint.context)
    [one] = given
    assert isinstance(one, memoryview)
    assert one.obj is frame


def test_who_writes_needs_the_right_to_the_topic_and_to_its_transactions(endpoint: WritingEndpoint) -> None:
    everything = endpoint.context
    endpoint.tier.create_topic("others")
    writes = Acl(ResourceType.TOPIC, "orders", "User:ANONYMOUS", Operation.WRITE)
    payments = Acl(ResourceType.TRANSACTIONAL_ID, "payments", "User:ANONYMOUS", Operation.WRITE)
    endpoint.context = allowed(everything, writes)
    for version in (9, 13):
        assert endpoint.produce(ONE, version=version).error_code == 0
        assert endpoint.produce(ONE, "others", version=version).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    sent = produced(transactional=True)
    refused = endpoint.produce(sent, transactional_id="payments")
    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    endpoint.context = allowed(everything, writes, payments)
    assert endpoint.produce(sent, transactional_id="payments").error_code == 0
    assert endpoint.produce(produced(8)).error_code == 0  # idempotent producers need no right to the cluster


def test_a_producer_above_its_quota_is_told_to_wait_and_its_records_are_kept(endpoint: WritingEndpoint) -> None:
    quotas = ClientQuotas(rates={("ANONYMOUS", None): 1})
    endpoint.context = replace(endpoint.context, quotas=quotas)
    frame = write_request(RequestHeader(PRODUCE, 9, 99, "test"), endpoint.asked("orders", {0: (ONE,)}, 9))[4:]

    def throttle_ms() -> int:
        found = handle(frame, endpoint.connection, endpoint.context)
        return found.throttle_ms if isinstance(found, Throttled) else 0

    assert throttle_ms() == 0  # what may be fetched is another quota
    quotas.producers.rates = {("ANONYMOUS", None): len(ONE)}
    for _ in range(10):
        assert throttle_ms() == 0
    assert throttle_ms() == 1000
    assert throttle_ms() == 2000
    assert endpoint.log().log_end_offset == 13
    endpoint.clock.now += 12_000
    assert throttle_ms() == 0
    unanswered = write_request(RequestHeader(PRODUCE, 9, 99, "test"), endpoint.asked("orders", {0: (ONE,)}, 9, acks=0))[4:]
    quotas.producers.rates = {("ANONYMOUS", None): 1}
    found = handle(unanswered, endpoint.connection, endpoint.context)
    assert isinstance(found, Throttled)
    assert (found.parts, found.throttle_ms > 0) == ([], True)


def test_who_does_not_lead_a_partition_tells_who_does(endpoint: WritingEndpoint) -> None:
    brokers = Broker(1, "broker.test", 9092), Broker(2, "other.test", 9092)
    live = LiveBrokers(1, brokers)
    endpoint.tier.create_partitions("orders", 20)
    number = next(number for number in range(20) if not live.leads("orders", number))
    endpoint.context = replace(endpoint.context, cluster=Cluster(live))
    for version in ALL:
        found = endpoint.ask(PRODUCE, version, endpoint.asked("orders", {number: (ONE,)}, version))
        [answer] = found.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.current_leader.leader_id == (2 if version >= 10 else -1)
        assert [one.host for one in found.node_endpoints] == (["other.test"] if version >= 10 else [])


def test_a_log_that_is_closed_meanwhile_is_led_by_nobody_here(endpoint: WritingEndpoint) -> None:
    endpoint.log().close()
    assert endpoint.produce(ONE).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("is_at_once", [True, False])
def test_what_is_for_a_deleted_topic_is_not_appended_to_one_of_its_name(
    endpoint: WritingEndpoint, monkeypatch: pytest.MonkeyPatch, is_at_once: bool
) -> None:
    log = LocalTier.log

    def in_another_life(tier: LocalTier, partition: TopicPartition) -> UnifiedLog:
        monkeypatch.undo()
        tier.delete_topic("orders")
        tier.create_topic("orders")
        for _ in range(2):  # with which all is known that an append at once needs
            endpoint.produce(ONE)
        return log(tier, partition)

    frame = write_request(RequestHeader(PRODUCE, 13, 99, "test"), endpoint.asked("orders", {0: (ONE,)}, 13))[4:]
    monkeypatch.setattr(LocalTier, "log", in_another_life)
    if is_at_once:
        assert append_one(frame, endpoint.context, {}) is None
    else:
        parts: Any = handle(frame, endpoint.connection, endpoint.context)
        [topic] = response_of(PRODUCE, 13, b"".join(map(bytes_of, parts))).responses
        assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert endpoint.log().log_end_offset == 2
