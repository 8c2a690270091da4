"""Transactions over the wire, down to the logs: what readers of committed records are given, also after a restart."""

import pytest
from asked_endpoint import Endpoint
from local_tiers import Host
from logs_at_work import batch_of
from transacting_endpoint import OWN_ID, SMALL, V1, TransactingEndpoint

from local_log.formats.filenames import PRODUCER_IDS
from tiering.endpoint.coordinator.offsets_log import partition_for
from tiering.endpoint.protocol.api_keys import API_VERSIONS, DELETE_TOPICS, FIND_COORDINATOR, WRITE_TXN_MARKERS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tiering.endpoint.transactions.opening import OF_BROKERS
from tiering.endpoint.transactions.producer_id_manager import BLOCK
from tiering.endpoint.transactions.transaction_log import NAME

NONE = ErrorCode.NONE


@pytest.fixture
def at() -> TransactingEndpoint:
    return TransactingEndpoint()


def test_the_coordinator_of_every_transactional_id_is_this_broker(at: TransactingEndpoint) -> None:
    found = at.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=(OWN_ID,))).coordinators[0]
    assert (found.error_code, found.node_id, found.host) == (0, 1, "broker.test")


@pytest.mark.parametrize(("version", "least"), [(3, 1), (4, 0)])
def test_producers_are_told_the_transaction_version_where_there_are_transactions(
    at: TransactingEndpoint, version: int, least: int
) -> None:
    found = at.ask(API_VERSIONS, version, ApiVersionsRequest("test", "1"))
    supported = {one.name: (one.min_version, one.max_version) for one in found.supported_features}
    finalized = {one.name: (one.min_version_level, one.max_version_level) for one in found.finalized_features}
    assert supported == {"group.version": (least, 1), "transaction.version": (least, 2)}
    assert finalized == {"group.version": (1, 1), "transaction.version": (2, 2)}
    assert found.finalized_features_epoch == 0
    reading = Endpoint(None, None).ask(API_VERSIONS, version, ApiVersionsRequest("test", "1"))
    assert [one.name for one in (*reading.supported_features, *reading.finalized_features)] == ["group.version"] * 2


def test_the_topic_is_made_once_with_the_settings_of_kafka_s(at: TransactingEndpoint) -> None:
    config = {"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "1048576"}
    assert at.tier.topics()[NAME].config == config
    assert at.tier.topics()[NAME].partitions == (0, 1)
    at.restart()
    assert at.tier.topics()[NAME].config == config


def test_what_is_committed_is_seen_what_is_aborted_is_not_and_what_is_open_is_waited_for(at: TransactingEndpoint) -> None:
    producer = at.init()
    for sequence in (0, 1):
        assert at.write(producer, sequence) is NONE
    assert at.seen() == []
    producer = at.end(producer, commit=True)
    assert at.seen() == ["0", "1"]
    assert at.write(producer, 0) is NONE
    producer = at.end(producer, commit=False)
    assert at.seen() == ["0", "1"]
    at.write(producer, 0)
    assert at.seen() == ["0", "1"]
    at.end(producer, commit=True)
    assert at.seen() == ["0", "1", "0"]


def test_a_client_that_adds_partitions_itself_writes_only_to_those(at: TransactingEndpoint) -> None:
    producer = at.init()
    assert at.write(producer, 0, version=V1) is ErrorCode.TRANSACTION_ABORTABLE
    assert at.write(producer, 0, version=V1 - 1) is ErrorCode.INVALID_TXN_STATE
    assert at.add(producer) == {"orders": NONE}
    assert at.write(producer, 0, version=V1) is NONE
    assert at.end(producer, commit=True, version=4) == (-1, -1)
    assert at.seen() == ["0"]
    assert at.write(producer, 1, version=V1) is ErrorCode.TRANSACTION_ABORTABLE


def test_a_batch_of_a_fenced_producer_begins_no_transaction(at: TransactingEndpoint) -> None:
    former = at.init()
    producer = at.init()
    assert at.write(former, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert at.write(producer, 0) is NONE
    assert at.write((9, 0), 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert at.log().log_end_offset == 1


def test_a_late_batch_of_a_transaction_that_has_timed_out_begins_no_other(at: TransactingEndpoint) -> None:
    producer = at.init(timeout_ms=1)
    at.write(producer, 0)
    at.clock.now += 10_000
    at.context.transactions.tick()
    assert at.seen() == []
    assert at.log().last_stable_offset == at.log().log_end_offset == 2
    assert at.write(producer, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transactional_batch_without_a_transactional_id_is_refused(at: TransactingEndpoint) -> None:
    sent = batch_of("x", producer=7, epoch=0, sequence=0, transactional=True)
    assert at.produce(sent).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert at.log().log_end_offset == 0


def test_a_batch_without_a_producer_belongs_to_no_transaction_whatever_it_says(at: TransactingEndpoint) -> None:
    assert at.produce(batch_of("x", transactional=True), transactional_id=OWN_ID).error_code == NONE
    assert at.log().last_stable_offset == at.log().log_end_offset == 1


def test_a_producer_that_is_fenced_is_told_so_before_its_batch_is_looked_at(at: TransactingEndpoint) -> None:
    producer = at.init()
    at.write(producer, 0)
    at.init()
    late = batch_of("late", producer=producer[0], epoch=producer[1], sequence=1, transactional=True)
    answer = at.produce(late, transactional_id=OWN_ID)
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def test_idempotent_producers_need_no_coordinator(at: TransactingEndpoint) -> None:
    producer_id, epoch = at.init(None)
    sent = batch_of("x", producer=producer_id, epoch=epoch, sequence=0)
    assert [at.produce(sent).base_offset, at.produce(sent).base_offset] == [0, 0]


def test_partitions_that_there_are_not_keep_the_others_out(at: TransactingEndpoint) -> None:
    producer = at.init()
    unknown, left = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert at.add(producer, "orders", "none") == {"orders": left, "none": unknown}
    assert at.add(producer) == {"orders": NONE}


def test_old_clients_are_told_that_they_are_fenced_by_the_error_that_they_know(at: TransactingEndpoint) -> None:
    former = at.init()
    at.init()
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert [at.add(former, version=version)["orders"] for version in (1, 2)] == [old, new]
    assert [at.add_group(former, version=version) for version in (1, 2)] == [old, new]
    assert [at.end(former, commit=True, version=version) for version in (1, 2)] == [old, new]
    named = {"producer_id": 9, "producer_epoch": 0}
    assert [at.init(version=version, **named) for version in (3, 4)] == [old, new]
    assert at.init(producer_id=9) is ErrorCode.INVALID_REQUEST


def test_offsets_of_a_transaction_count_when_it_has_committed(at: TransactingEndpoint) -> None:
    producer = at.init()
    assert at.commit_offset(producer, 5) is NONE
    assert (at.committed(), at.committed(stable=True)) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    producer = at.end(producer, commit=True)
    assert (at.committed(), at.committed(stable=True)) == (5, 5)
    at.commit_offset(producer, 9)
    at.end(producer, commit=False)
    assert at.committed(stable=True) == 5
    at.restart()
    assert at.committed(stable=True) == 5


def test_a_client_that_adds_its_group_commits_only_then(at: TransactingEndpoint) -> None:
    producer = at.init()
    assert at.commit_offset(producer, 5, version=4) is ErrorCode.TRANSACTION_ABORTABLE
    assert at.commit_offset(producer, 5, version=3) is ErrorCode.INVALID_TXN_STATE
    assert at.add_group(producer) is NONE
    assert at.commit_offset(producer, 5, version=3) is NONE
    at.end(producer, commit=True, version=4)
    assert at.committed() == 5


def test_a_commit_names_topics_that_there_are_and_a_generation_of_its_group(at: TransactingEndpoint) -> None:
    producer = at.init()
    assert at.commit_offset(producer, 5, topic="none") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert at.commit_offset(producer, 5, generation_id=3, member_id="m") is ErrorCode.ILLEGAL_GENERATION
    assert at.commit_offset(producer, 5, group="") is ErrorCode.INVALID_GROUP_ID
    at.init()
    assert at.commit_offset(producer, 5) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_are_given_no_id_that_a_broker_gives_who_gets_the_directory_later(at: TransactingEndpoint) -> None:
    assert at.init()[0] > OF_BROKERS
    assert at.init(own_id=None)[0] > OF_BROKERS


def test_a_restart_goes_on_with_open_transactions_and_gives_new_ids(at: TransactingEndpoint) -> None:
    producer = at.init()
    at.write(producer, 0)
    at.commit_offset(producer, 5)
    at.restart()
    assert (at.seen(), at.committed(stable=True)) == ([], ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert at.write(producer, 1) is NONE
    at.end(producer, commit=True)
    assert (at.seen(), at.committed(stable=True)) == (["0", "1"], 5)
    assert at.init("other") == (producer[0] + BLOCK, 0)
    assert at.host.disk.exists(f"/a/{PRODUCER_IDS}")


def test_without_its_file_ids_begin_after_those_of_the_logs(at: TransactingEndpoint) -> None:
    at.produce(batch_of("x", producer=2 * OF_BROKERS, epoch=0, sequence=0))
    at.tier.stop()
    at.own(at.host.started())
    assert 2 * OF_BROKERS < at.init(None)[0] <= 2 * OF_BROKERS + BLOCK


def test_what_was_committed_of_a_topic_that_is_deleted_is_forgotten_also_while_it_is_pending(at: TransactingEndpoint) -> None:
    at.tier.create_topic("kept")
    producer = at.init()
    for topic in ("orders", "kept"):
        at.commit_offset(producer, 5, topic=topic)
    producer = at.end(producer, commit=True)
    at.commit_offset(producer, 9)
    at.commit_offset(producer, 9, "others")
    asked = DeleteTopicsRequest((DeleteTopicState("orders"),))
    assert at.ask(DELETE_TOPICS, 6, asked).responses[0].error_code == NONE
    at.tier.create_topic("orders")
    for _ in range(2):
        assert (at.committed(stable=True), at.committed("others", stable=True), at.committed(topic="kept")) == (-1, -1, 5)
        at.restart()
    at.end(producer, commit=True)
    assert (at.committed(stable=True), at.committed("others", stable=True)) == (-1, -1)


def test_a_topic_that_another_command_makes_anew_has_nothing_of_the_former_one_s_transactions(at: TransactingEndpoint) -> None:
    producer = at.init()
    at.commit_offset(producer, 5)
    producer = at.end(producer, commit=True)
    at.commit_offset(producer, 9, "others")
    assert at.committed() == 5
    at.tier.delete_topic("orders")
    at.tier.create_topic("orders")
    at.restart()
    at.end(producer, commit=True)
    assert (at.committed(), at.committed("others")) == (-1, -1)
    at.restart()
    assert (at.committed(), at.committed("others")) == (-1, -1)


def test_ids_that_expire_are_forgotten_many_at_once(at: TransactingEndpoint) -> None:
    for number in range(20):
        at.init(f"id-{number}")
    batches = sum(len(at.batches(NAME, number)) for number in range(at.config.state_partitions))
    at.host.now = at.clock.now = at.clock.now + at.config.id_expiration_ms
    assert at.context.transactions is not None
    at.context.transactions.tick()
    assert at.context.transactions.all() == ()
    after = sum(len(at.batches(NAME, number)) for number in range(at.config.state_partitions))
    assert after - batches == at.config.state_partitions
    at.restart()
    assert at.context.transactions.all() == ()


def test_a_directory_that_fails_keeps_no_ids_of_another_one_from_being_forgotten() -> None:
    at = TransactingEndpoint(Host(settings=SMALL))
    assert at.context.transactions is not None
    folders = [at.log(NAME, number).folder.path for number in range(at.config.state_partitions)]
    assert folders == [f"/a/{NAME}-0", f"/b/{NAME}-1"]
    of = [next(f"id-{n}" for n in range(20) if partition_for(f"id-{n}", 2) == number) for number in (0, 1)]
    for own_id in reversed(of):
        at.init(own_id)
    at.host.now = at.clock.now = at.clock.now + at.config.id_expiration_ms
    with at.host.failing_writes("/b"):
        at.context.transactions.tick()
    assert [one.transactional_id for one in at.context.transactions.all()] == [of[1]]
    assert at.said[-1].startswith("1 transactional ids that have expired cannot be forgotten: /b: this log directory is offline")


def test_an_administrator_ends_what_hangs_in_a_partition(at: TransactingEndpoint) -> None:
    producer = at.init()
    at.write(producer, 0)
    topics = (WritableTxnMarkerTopic("orders", (0, 7)),)
    marker = WritableTxnMarker(*producer, False, topics, coordinator_epoch=0)
    found = at.ask(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest((marker,))).markers[0]
    codes = [one.error_code for one in found.topics[0].partitions]
    assert (found.producer_id, codes) == (producer[0], [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
    assert at.log().last_stable_offset == at.log().log_end_offset
    at.end(producer, commit=False)
    found = at.ask(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest((marker,))).markers[0]
    assert found.topics[0].partitions[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
