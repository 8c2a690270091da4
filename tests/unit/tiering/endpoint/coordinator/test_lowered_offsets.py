"""Offsets beyond the ends of logs that have lost records, when a coordinator starts."""

from managed import T0
from offsets_kept import Coordinator

from tiering.endpoint.coordinator.offset_metadata_manager import LogEnd
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded, partition_for
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import OffsetAndMetadata, offset_commit_record

ONE, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def test_offsets_beyond_the_ends_of_logs_that_have_lost_records_are_set_to_these_for_good() -> None:
    coordinator = Coordinator()
    for number, offset in enumerate((9, 5, 9)):
        coordinator.commit(offset, partition=number, committed_leader_epoch=3, committed_metadata="of ours")
    ends = {0: LogEnd(ONE, 7), 1: LogEnd(ONE, 7)}
    coordinator.started().lower_offsets(lambda topic, partition: ends.get(partition))
    assert coordinator.offsets() == {("orders", 0): 7, ("orders", 1): 5, ("orders", 2): 9}
    assert coordinator.fetch(0, 1) == {("orders", 0): (7, -1, "of ours", 0), ("orders", 1): (5, 3, "of ours", 0)}
    assert coordinator.said == [
        "group readers: 1 of its offsets were beyond the ends of their logs, which have lost records, and are set to these, "
        "that of orders-0 to 7"
    ]
    assert coordinator.log.synced == len(coordinator.log.kept)
    coordinator.started()
    assert coordinator.offsets()["orders", 0] == 7


def test_offsets_of_an_open_transaction_are_set_to_the_ends_of_their_logs_before_it_is_committed() -> None:
    coordinator = Coordinator()
    coordinator.commit(5)
    transaction = (partition_for("readers", coordinator.log.partitions), 4)
    for number, offset in enumerate((9, 6)):
        record = offset_commit_record(OffsetCommitKey("readers", "orders", number), OffsetAndMetadata(offset, -1, "", T0))
        coordinator.log.kept.append(Loaded(record, len(coordinator.log.kept), transaction))
    coordinator.started().lower_offsets(lambda topic, partition: LogEnd(ONE, 7))
    assert coordinator.offsets() == {("orders", 0): 5}
    assert coordinator.said == [
        "group readers: 1 of its offsets in an open transaction of producer 4 were beyond the ends of their logs, which have "
        "lost records, and are set to these, that of orders-0 to 7"
    ]
    assert coordinator.log.synced == len(coordinator.log.kept)
    coordinator.log.kept.append(EndOfTransaction(transaction, is_committed=True))
    coordinator.started()
    assert coordinator.offsets() == {("orders", 0): 7, ("orders", 1): 6}


def test_offsets_of_a_former_topic_of_the_same_name_are_not_compared_with_the_end_of_the_new_one() -> None:
    coordinator = Coordinator()
    coordinator.commit(9, topic_id=OTHER)
    coordinator.groups.lower_offsets(lambda topic, partition: LogEnd(ONE, 7))
    assert (coordinator.offsets(), coordinator.said) == ({("orders", 0): 9}, [])
