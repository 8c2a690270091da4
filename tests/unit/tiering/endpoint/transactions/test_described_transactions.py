"""DescribeTransactions and ListTransactions: what clients are told of transactional ids; and who may ask for what."""

from dataclasses import replace
from pathlib import Path

import pytest
from transacting_endpoint import OWN_ID, TransactingEndpoint

from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.protocol.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tiering.endpoint.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    TopicData,
)
from tiering.endpoint.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tiering.endpoint.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tiering.endpoint.request_context import KafkaPrincipal

ALICE = "User:alice"
DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.fixture
def at() -> TransactingEndpoint:
    return TransactingEndpoint()


def described(at: TransactingEndpoint, *own_ids: str) -> tuple[DescribedTransaction, ...]:
    return at.ask(DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(own_ids)).transaction_states


def listed(at: TransactingEndpoint, **wanted: object) -> dict[str, str]:
    found = asked(at, **wanted)
    assert found.error_code == 0
    return {one.transactional_id: one.transaction_state for one in found.transaction_states}


def asked(at: TransactingEndpoint, **wanted: object) -> ListTransactionsResponse:
    found: ListTransactionsResponse = at.ask(LIST_TRANSACTIONS, 2, ListTransactionsRequest(**wanted))  # type: ignore[arg-type]
    return found


def test_a_transactional_id_is_described_with_its_open_transaction(at: TransactingEndpoint) -> None:
    producer = at.init(timeout_ms=5_000)
    at.clock.now += 7
    at.write(producer, 0)
    now_ms = at.clock.now_ms()
    open_one = DescribedTransaction(0, OWN_ID, "Ongoing", 5_000, now_ms, *producer, (TopicData("orders", (0,)),))
    none = DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "none")
    assert described(at, OWN_ID, "none", "") == (open_one, none, DescribedTransaction(ErrorCode.INVALID_REQUEST))
    at.end(producer, commit=True)
    [ended] = described(at, OWN_ID)
    assert (ended.transaction_state, ended.topics, ended.producer_epoch) == ("CompleteCommit", (), 1)


def test_ids_are_listed_by_state_producer_duration_and_pattern(at: TransactingEndpoint) -> None:
    producer = at.init()
    other = at.init("shop-2")
    at.write(producer, 0)
    both = {OWN_ID: "Ongoing", "shop-2": "Empty"}
    assert listed(at) == both
    assert listed(at, state_filters=("Ongoing", "PrepareAbort")) == {OWN_ID: "Ongoing"}
    assert listed(at, producer_id_filters=(other[0],)) == {"shop-2": "Empty"}
    at.clock.now += 50
    assert listed(at, duration_filter=49, state_filters=("Ongoing",)) == {OWN_ID: "Ongoing"}
    assert listed(at, duration_filter=50, state_filters=("Ongoing",)) == {}
    assert listed(at, transactional_id_pattern="shop") == {OWN_ID: "Ongoing"}
    assert listed(at, transactional_id_pattern="shop.*") == listed(at, transactional_id_pattern="") == both


def test_states_that_there_are_not_are_told(at: TransactingEndpoint) -> None:
    at.init()
    found = asked(at, state_filters=("Nowhere", "Nowhere"))
    assert (found.unknown_state_filters, found.transaction_states) == (("Nowhere",), ())


@pytest.mark.parametrize("pattern", ["(", "a)(b", "*", r"(?=x)"])
def test_a_pattern_that_is_none_of_re2_is_refused(at: TransactingEndpoint, pattern: str) -> None:
    assert asked(at, transactional_id_pattern=pattern).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_takes_no_more_time_than_the_ids_are_long(at: TransactingEndpoint) -> None:
    at.init("a" * 40 + "b")
    assert listed(at, transactional_id_pattern="(a+)+") == {}


def test_brokers_add_and_verify_partitions_of_several_transactions(at: TransactingEndpoint) -> None:
    shop, bank = at.init(), at.init("bank")
    topics = (AddPartitionsToTxnTopic("orders", (0,)),)
    request = AddPartitionsToTxnRequest(
        (
            AddPartitionsToTxnTransaction(OWN_ID, *shop, False, topics),
            AddPartitionsToTxnTransaction("bank", *bank, True, topics),
        )
    )
    found = at.ask(ADD_PARTITIONS_TO_TXN, 5, request).results_by_transaction
    codes = {one.transactional_id: one.topic_results[0].results_by_partition[0].partition_error_code for one in found}
    assert codes == {OWN_ID: 0, "bank": ErrorCode.TRANSACTION_ABORTABLE}


def only(at: TransactingEndpoint, tmp_path: Path, *acls: Acl) -> None:
    """From now on alice asks, who may do this and no more."""
    path = tmp_path / "acls.json"
    path.write_bytes(write_acls(list(acls)))
    file = AclFile(OsDisk(), OsWritableDisk(), str(path), at.clock, Authorizer(), at.said.append)
    file.load()
    at.context = replace(at.context, acls=file)
    at.connection = replace(at.connection, principal=KafkaPrincipal("alice"))


def test_what_a_client_may_not_do_is_refused_by_kafka_s_error_codes(at: TransactingEndpoint, tmp_path: Path) -> None:
    producer = at.init()
    only(at, tmp_path)
    assert [at.init(), at.add(producer)["orders"], at.add_group(producer), at.end(producer, commit=True)] == [DENIED] * 4
    assert at.commit_offset(producer, 5) is DENIED
    assert at.init(None) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert described(at, OWN_ID)[0].error_code == DENIED
    assert listed(at) == {}
    marker = WritableTxnMarker(*producer, False, (WritableTxnMarkerTopic("orders", (0,)),))
    found = at.ask(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest((marker,))).markers[0].topics[0].partitions[0]
    assert found.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert at.ask(ADD_PARTITIONS_TO_TXN, 4, AddPartitionsToTxnRequest()).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_with_the_right_to_its_id_a_producer_writes_to_its_topics_and_reads_for_its_groups(
    at: TransactingEndpoint, tmp_path: Path
) -> None:
    at.tier.create_topic("secret")
    own_id = Acl(ResourceType.TRANSACTIONAL_ID, OWN_ID, ALICE, Operation.WRITE)
    topic = Acl(ResourceType.TOPIC, "orders", ALICE, Operation.WRITE)
    only(at, tmp_path, own_id, topic)
    producer = at.init()
    failed, left = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert at.add(producer, "orders", "secret") == {"orders": left, "secret": failed}
    assert at.add(producer) == {"orders": ErrorCode.NONE}
    assert at.init(None) == (producer[0] + 1, 0), "who may write to some topic may be idempotent"
    assert at.add_group(producer) is at.commit_offset(producer, 5) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    group = Acl(ResourceType.GROUP, "readers", ALICE, Operation.READ)
    only(at, tmp_path, own_id, topic, group)
    assert at.add_group(producer) is ErrorCode.NONE
    assert at.commit_offset(producer, 5) is failed
    [found] = described(at, OWN_ID)
    assert (found.transaction_state, [one.topic for one in found.topics]) == ("Ongoing", ["orders"])
    assert listed(at) == {OWN_ID: "Ongoing"}
