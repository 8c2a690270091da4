"""Offsets of topics that were deleted while nobody could forget them, when a coordinator starts."""

from collections.abc import Sequence

from offsets_kept import Coordinator, MemoryLog

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded, TransactionalProducer, partition_for
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import OffsetAndMetadata, Record, offset_commit_record

ONE, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
TRANSACTION = (partition_for("readers", MemoryLog.partitions), 4)
EXPIRING = {"version": 4, "retention_time_ms": 86_400_000}


def pending(coordinator: Coordinator, offset: int, topic_id: str, *, partition: int = 0) -> None:
    """Adds what an open transaction has committed."""
    kept = OffsetAndMetadata(offset, -1, "", coordinator.clock.now_ms(), topic_id=topic_id)
    record = offset_commit_record(OffsetCommitKey("readers", "orders", partition), kept)
    coordinator.log.kept.append(Loaded(record, len(coordinator.log.kept), TRANSACTION))


def committed(coordinator: Coordinator) -> dict[tuple[str, int], int]:
    """The offsets after a restart, when the transaction has committed."""
    coordinator.log.kept.append(EndOfTransaction(TRANSACTION, is_committed=True))
    coordinator.started()
    return coordinator.offsets()


def test_what_was_committed_for_a_former_topic_of_the_name_is_forgotten_for_good_also_while_it_is_pending() -> None:
    coordinator = Coordinator()
    coordinator.commit(9, topic_id=ONE)
    coordinator.commit(8, topic_id=OTHER, partition=1)
    pending(coordinator, 7, ONE, partition=2)
    pending(coordinator, 6, OTHER, partition=3)
    coordinator.started().forget_former({"orders": OTHER})
    assert coordinator.said == [
        "2 offsets of topics that were deleted are forgotten, one of them that of group readers for orders-0"
    ]
    assert coordinator.log.synced == len(coordinator.log.kept)
    assert committed(coordinator) == {("orders", 1): 8, ("orders", 3): 6}


def test_without_a_topic_only_what_does_not_say_which_one_it_is_of_and_would_expire_is_forgotten() -> None:
    coordinator = Coordinator()
    coordinator.commit(9, topic_id=ONE, **EXPIRING)
    coordinator.commit(8, topic_id=ONE, partition=1)
    coordinator.commit(7, topic_id=ZERO_TOPIC_ID, partition=2)
    coordinator.groups.forget_former({})
    assert len(coordinator.offsets()) == 3, "only what is kept of the first one does not say it"
    coordinator.started().forget_former({"payments": OTHER})
    assert coordinator.offsets() == {("orders", 1): 8, ("orders", 2): 7}


def test_what_is_of_the_topic_or_does_not_say_that_it_is_not_stays() -> None:
    coordinator = Coordinator()
    coordinator.commit(9, topic_id=ONE)
    coordinator.commit(8, topic_id=ONE, partition=1, **EXPIRING)
    coordinator.commit(7, topic_id=ZERO_TOPIC_ID, partition=2)
    before = coordinator.offsets()
    for topic_id in (ONE, ZERO_TOPIC_ID):
        coordinator.started().forget_former({"orders": topic_id})
        assert (coordinator.offsets(), coordinator.said) == (before, [])


def test_an_offset_of_the_topic_is_not_forgotten_with_one_of_the_former_topic() -> None:
    for former, now in ((ONE, OTHER), (OTHER, ONE)):
        coordinator = Coordinator()
        coordinator.commit(5, topic_id=former)
        pending(coordinator, 7, now)
        coordinator.started().forget_former({"orders": OTHER})
        assert coordinator.said == []
        assert committed(coordinator) == {("orders", 0): 7}


class OneGroupFails(MemoryLog):
    """Refuses to forget what the group `bad` has."""

    def append(self, group: str, records: Sequence[Record], now_ms: int, producer: TransactionalProducer | None = None) -> int:
        self.is_broken = group == "bad" and records[0].value is None
        try:
            return super().append(group, records, now_ms, producer)
        finally:
            self.is_broken = False


def test_a_group_whose_offsets_cannot_be_forgotten_keeps_no_other_one_s() -> None:
    coordinator = Coordinator(OneGroupFails())
    for group in ("bad", "good"):
        coordinator.commit(1, group=group, topic_id=ONE)
    coordinator.groups.forget_former({"orders": OTHER})
    assert (coordinator.offsets("bad"), coordinator.offsets("good")) == ({("orders", 0): 1}, {})
    assert coordinator.said == [
        "1 records of group bad cannot be kept: the disk is gone",
        "1 offsets of topics that were deleted are forgotten, one of them that of group good for orders-0",
    ]
