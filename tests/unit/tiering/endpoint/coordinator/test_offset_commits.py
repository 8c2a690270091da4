"""Commits, fetches and deletions of offsets by consumers that are no members of a group."""

from collections.abc import Callable, Sequence

import pytest
from archive_fakes import CountingIds
from hypothesis import given, settings
from hypothesis import strategies as st
from managed import T0
from offsets_kept import Coordinator, MemoryLog

from local_log.engine.errors import MessageTooLarge
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_coordinator import REFUSED, GroupCoordinator
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded, TransactionalProducer
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey, OffsetCommitValue
from tiering.endpoint.coordinator.records import NO_EXPIRY, OffsetAndMetadata, Record, offset_commit_record, record
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest

DAY_MS = 24 * 60 * 60 * 1000
ONE, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def code_of(ask: Callable[[], object]) -> int:
    """Of the error that it raises."""
    with pytest.raises(GroupError) as raised:
        ask()
    return raised.value.code


def pending(coordinator: Coordinator, offset: int, producer_id: int, *, partition: int = 0, group: str = "readers") -> None:
    """Adds what a transaction of a broker's has committed."""
    key = OffsetCommitKey(group, "orders", partition)
    record = offset_commit_record(key, OffsetAndMetadata(offset, -1, "", coordinator.clock.now_ms()))
    coordinator.log.kept.append(Loaded(record, len(coordinator.log.kept), (0, producer_id)))


def ended(coordinator: Coordinator, producer_id: int, *, is_committed: bool) -> None:
    """Adds a transaction's marker."""
    coordinator.log.kept.append(EndOfTransaction((0, producer_id), is_committed))


def test_a_group_is_told_what_it_has_committed_and_minus_one_for_the_rest(coordinator: Coordinator) -> None:
    assert coordinator.commit(100, committed_leader_epoch=7, committed_metadata="by hand") == ErrorCode.NONE
    assert coordinator.commit(5, partition=2) == ErrorCode.NONE
    assert coordinator.fetch(0, 1, 2) == {
        ("orders", 0): (100, 7, "by hand", 0),
        ("orders", 1): (-1, -1, "", 0),
        ("orders", 2): (5, -1, "", 0),
    }
    assert coordinator.offsets() == {("orders", 0): 100, ("orders", 2): 5}
    assert coordinator.offsets("others") == {}


def test_the_last_commit_counts_also_if_it_goes_back(coordinator: Coordinator) -> None:
    for offset in (10, 90, 40):
        coordinator.commit(offset)
    assert coordinator.offsets() == {("orders", 0): 40}


def test_a_group_without_a_name_may_commit_and_fetch(coordinator: Coordinator) -> None:
    assert coordinator.commit(3, group="") == ErrorCode.NONE
    assert coordinator.offsets("") == {("orders", 0): 3}


def test_a_restart_finds_every_offset_with_all_that_was_committed_with_it(coordinator: Coordinator) -> None:
    coordinator.commit(1, committed_leader_epoch=2, committed_metadata="größe ✓", topic_id=ONE)
    coordinator.commit(8, group="others")
    before = coordinator.fetch(0), coordinator.offsets("others")
    coordinator.started()
    assert (coordinator.fetch(0), coordinator.offsets("others")) == before


def test_what_the_log_refuses_is_not_committed_and_the_client_looks_for_the_coordinator_again(coordinator: Coordinator) -> None:
    coordinator.commit(1)
    coordinator.log.is_broken = True
    assert code_of(lambda: coordinator.commit(2)) == ErrorCode.NOT_COORDINATOR
    assert code_of(lambda: coordinator.delete(0)) == ErrorCode.NOT_COORDINATOR
    assert coordinator.offsets() == {("orders", 0): 1}
    assert coordinator.said[0] == "1 records of group readers cannot be kept: the disk is gone"


def test_metadata_that_is_too_long_is_refused_and_the_other_partitions_are_committed() -> None:
    coordinator = Coordinator(offset_metadata_max=4)
    assert coordinator.commit(1, committed_metadata="✓✓✓✓") == ErrorCode.NONE
    assert coordinator.commit(2, committed_metadata="12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert (
        coordinator.commit(3, committed_metadata="🙂🙂🙂") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    )  # two characters each in Java
    assert coordinator.offsets() == {("orders", 0): 1}


def test_a_generation_of_a_group_without_members_is_refused_by_the_code_of_the_version(coordinator: Coordinator) -> None:
    assert code_of(lambda: coordinator.commit(1, generation_id_or_member_epoch=4)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: coordinator.commit(1, version=8, generation_id_or_member_epoch=4)) == ErrorCode.ILLEGAL_GENERATION
    coordinator.commit(1)
    asked = {"generation_id_or_member_epoch": 4, "member_id": "somebody"}
    assert code_of(lambda: coordinator.commit(2, **asked)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_a_topic_that_was_created_anew_are_not_told(coordinator: Coordinator) -> None:
    coordinator.commit(70, topic_id=ONE)
    assert coordinator.fetch(0, topic_id=ONE)["orders", 0][0] == 70
    assert coordinator.fetch(0, topic_id=OTHER)["orders", 0] == (-1, -1, "", 0)
    assert coordinator.fetch(0)["orders", 0][0] == 70  # whoever does not know the id is told


def test_deleted_offsets_are_gone_also_after_a_restart_and_the_others_stay(coordinator: Coordinator) -> None:
    coordinator.commit(1)
    coordinator.commit(2, partition=1)
    deleted = coordinator.delete(0, 5).topics[0]
    assert [(one.partition_index, one.error_code) for one in deleted.partitions] == [(0, 0), (5, 0)]
    assert len(coordinator.log.kept) == 3, "nothing is written for an offset that was not there"
    assert coordinator.offsets() == {("orders", 1): 2}
    coordinator.started()
    assert coordinator.offsets() == {("orders", 1): 2}


def test_nothing_is_deleted_of_a_group_that_is_not_there_or_has_no_name(coordinator: Coordinator) -> None:
    assert code_of(lambda: coordinator.delete(0)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: coordinator.delete(0, group="")) == ErrorCode.INVALID_GROUP_ID
    coordinator.commit(1)
    coordinator.delete(0)
    assert coordinator.delete(0).error_code == ErrorCode.NONE, "it is there until expired offsets are looked for"
    coordinator.clock.now += 600_000
    coordinator.groups.tick()
    assert code_of(lambda: coordinator.delete(0)) == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_expire_when_their_retention_has_passed_since_their_commit() -> None:
    coordinator = Coordinator(offsets_retention_ms=7 * DAY_MS)
    coordinator.commit(1)
    coordinator.clock.now += 6 * DAY_MS
    coordinator.commit(2, partition=1)
    coordinator.clock.now += DAY_MS - 1
    coordinator.groups.tick()
    assert coordinator.offsets() == {("orders", 0): 1, ("orders", 1): 2}
    coordinator.clock.now += 600_000
    coordinator.groups.tick()
    assert coordinator.offsets() == {("orders", 1): 2}
    coordinator.started()
    assert coordinator.offsets() == {("orders", 1): 2}


def test_expiry_is_looked_for_every_ten_minutes(coordinator: Coordinator) -> None:
    coordinator.commit(1, version=4, retention_time_ms=1000)
    coordinator.clock.now += 599_999
    coordinator.groups.tick()
    assert coordinator.offsets() == {("orders", 0): 1}
    coordinator.clock.now += 1
    coordinator.groups.tick()
    assert coordinator.offsets() == {}


class SmallBatches(MemoryLog):
    """Takes no more than a topic of a broker does."""

    def append(self, group: str, records: Sequence[Record], now_ms: int, producer: TransactionalProducer | None = None) -> int:
        if sum(len(one.key) + len(one.value or b"") for one in records) > 1 << 20:
            raise MessageTooLarge("more than max.message.bytes")
        return super().append(group, records, now_ms, producer)


def test_a_group_of_more_offsets_than_fit_in_a_batch_expires_and_is_deleted_as_any_other() -> None:
    for forgets in ("expiry", "deletion", "topic"):
        coordinator, group = Coordinator(SmallBatches()), "g" * 10_000
        for number in range(120):
            assert coordinator.commit(number, group=group, partition=number) == ErrorCode.NONE
        coordinator.commit(1)
        if forgets == "topic":
            coordinator.groups.forget_topic("orders", ONE)
        elif forgets == "deletion":
            coordinator.groups.delete_group(group)
        else:
            coordinator.clock.now += 8 * DAY_MS
            coordinator.groups.tick()
        assert coordinator.said == []
        for groups in (coordinator.groups, coordinator.started()):
            left = {one.group_id for one in groups.list_groups(ListGroupsRequest()).groups}
            assert left == {"expiry": set(), "deletion": {"readers"}, "topic": {group, "readers"}}[forgets]
            assert coordinator.offsets(group) == {}
            assert bool(coordinator.offsets()) == (forgets == "deletion")


def test_what_cannot_be_forgotten_of_one_group_keeps_no_other_group() -> None:
    coordinator = Coordinator(OneGroupFails())
    for group in ("bad", "good"):
        coordinator.commit(1, group=group)
    coordinator.log.is_broken = True
    coordinator.clock.now += 8 * DAY_MS
    coordinator.groups.tick()
    assert (coordinator.offsets("bad"), coordinator.offsets("good")) == ({("orders", 0): 1}, {})
    coordinator.groups.forget_topic("orders", ONE)
    assert coordinator.offsets("bad") == {("orders", 0): 1}
    assert len(coordinator.said) == 2


class OneGroupFails(MemoryLog):
    """`is_broken` refuses the group `bad`."""

    def append(self, group: str, records: Sequence[Record], now_ms: int, producer: TransactionalProducer | None = None) -> int:
        before, self.is_broken = self.is_broken, self.is_broken and group == "bad"
        try:
            return super().append(group, records, now_ms, producer)
        finally:
            self.is_broken = before


def test_offsets_of_another_topic_of_the_name_outlive_the_deletion(coordinator: Coordinator) -> None:
    for number, topic_id in enumerate((ONE, OTHER, ZERO_TOPIC_ID)):
        coordinator.commit(number, partition=number, topic_id=topic_id)
    coordinator.groups.forget_topic("orders", ONE)
    coordinator.groups.forget_topic("payments", OTHER)
    assert coordinator.offsets() == {("orders", 1): 1}
    coordinator.started()
    assert coordinator.offsets() == {("orders", 1): 1}


def test_a_retention_time_of_the_client_counts_for_its_offsets_also_after_a_restart(coordinator: Coordinator) -> None:
    coordinator.commit(1, version=4, retention_time_ms=30 * DAY_MS)
    coordinator.commit(2, version=4, partition=1, retention_time_ms=-1)
    coordinator.clock.now += 8 * DAY_MS
    coordinator.started()
    coordinator.clock.now += 600_000
    coordinator.groups.tick()
    assert coordinator.offsets() == {("orders", 0): 1}


def test_an_expiry_that_cannot_be_written_is_tried_again(coordinator: Coordinator) -> None:
    coordinator.commit(1)
    coordinator.log.is_broken = True
    coordinator.clock.now += 8 * DAY_MS
    coordinator.groups.tick()
    assert coordinator.offsets() == {("orders", 0): 1}
    coordinator.log.is_broken = False
    coordinator.clock.now += 600_000
    coordinator.groups.tick()
    assert coordinator.offsets() == {}


def test_offsets_of_an_open_transaction_are_unstable_until_its_marker_is_there(coordinator: Coordinator) -> None:
    coordinator.commit(1)
    pending(coordinator, 50, producer_id=4)
    coordinator.started()
    assert coordinator.fetch(0, require_stable=True)["orders", 0] == (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert coordinator.fetch(1, require_stable=True)["orders", 1] == (-1, -1, "", 0)
    assert coordinator.fetch(0)["orders", 0][0] == 1
    ended(coordinator, 4, is_committed=True)
    coordinator.started()
    assert coordinator.fetch(0, require_stable=True)["orders", 0][0] == 50


def test_offsets_of_an_aborted_transaction_are_forgotten(coordinator: Coordinator) -> None:
    coordinator.commit(1)
    pending(coordinator, 50, producer_id=4)
    pending(coordinator, 60, producer_id=5, partition=1)
    ended(coordinator, 4, is_committed=False)
    ended(coordinator, 9, is_committed=True)
    coordinator.started()
    assert coordinator.fetch(0, 1, require_stable=True) == {
        ("orders", 0): (1, -1, "", 0),
        ("orders", 1): (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT),
    }


def test_a_commit_after_that_of_a_transaction_counts_whenever_the_transaction_ends(coordinator: Coordinator) -> None:
    pending(coordinator, 50, producer_id=4)
    coordinator.started()
    coordinator.commit(70)
    ended(coordinator, 4, is_committed=True)
    coordinator.started()
    assert coordinator.offsets() == {("orders", 0): 70}


def test_of_two_transactions_the_later_record_counts_whichever_ends_first(coordinator: Coordinator) -> None:
    pending(coordinator, 50, producer_id=4)
    pending(coordinator, 60, producer_id=5)
    ended(coordinator, 5, is_committed=True)
    ended(coordinator, 4, is_committed=True)
    coordinator.started()
    assert coordinator.offsets() == {("orders", 0): 60}


def test_a_deletion_takes_pending_offsets_along(coordinator: Coordinator) -> None:
    pending(coordinator, 50, producer_id=4)
    coordinator.started()
    coordinator.delete(0)
    ended(coordinator, 4, is_committed=True)
    coordinator.started()
    assert coordinator.offsets() == {}


def test_records_of_other_kinds_of_groups_are_left_alone(coordinator: Coordinator) -> None:
    coordinator.commit(1)
    coordinator.log.kept.append(Loaded(Record(b"\0\x0b\0\x01g", b"\0\0"), 1))
    coordinator.started()
    assert coordinator.offsets() == {("orders", 0): 1}


def test_without_a_log_commits_are_refused_and_whoever_runs_the_endpoint_is_told_once() -> None:
    coordinator = Coordinator()
    coordinator.groups = GroupCoordinator(coordinator.config, None, coordinator.clock, CountingIds(), coordinator.said.append)
    coordinator.groups.load()
    for _ in range(2):
        assert code_of(lambda: coordinator.commit(1)) == ErrorCode.POLICY_VIOLATION
    assert coordinator.fetch(0) == {("orders", 0): (-1, -1, "", 0)}
    assert code_of(lambda: coordinator.delete(0)) == ErrorCode.GROUP_ID_NOT_FOUND
    coordinator.groups.tick()
    assert coordinator.said == [f"group readers: {REFUSED}"]


def test_offsets_of_an_open_transaction_are_unstable_also_when_all_are_asked_for(
    coordinator: Coordinator,
) -> None:
    coordinator.commit(1)
    pending(coordinator, 50, producer_id=4)
    coordinator.started()
    assert coordinator.fetch(require_stable=True) == {("orders", 0): (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)}


def test_groups_and_offsets_with_pending_ones_do_not_expire() -> None:
    coordinator = Coordinator(offsets_retention_ms=1)
    coordinator.commit(1)
    pending(coordinator, 50, producer_id=4)
    pending(coordinator, 60, producer_id=5, group="others")
    coordinator.started()
    coordinator.clock.now += 600_000
    coordinator.groups.tick()
    assert coordinator.offsets() == {("orders", 0): 1}
    ended(coordinator, 4, is_committed=False)
    ended(coordinator, 5, is_committed=True)
    coordinator.started()
    assert (coordinator.offsets(), coordinator.offsets("others")) == ({("orders", 0): 1}, {("orders", 0): 60})


@settings(deadline=None, max_examples=100)
@given(
    group=st.text(max_size=40),
    topic=st.text(max_size=40),
    numbers=st.tuples(st.integers(0, 1 << 30), st.integers(0, 1 << 62), st.integers(-1, 1 << 30)),
    metadata=st.text(max_size=300),
    expires_ms=st.sampled_from((NO_EXPIRY, T0)),
    topic_id=st.sampled_from((ZERO_TOPIC_ID, ONE, OTHER)),
)
def test_the_bytes_of_a_commit_are_those_of_its_fields(
    group: str, topic: str, numbers: tuple[int, int, int], metadata: str, expires_ms: int, topic_id: str
) -> None:
    number, offset, epoch = numbers
    key, kept = OffsetCommitKey(group, topic, number), OffsetAndMetadata(offset, epoch, metadata, T0, expires_ms, topic_id)
    value = OffsetCommitValue(offset, epoch, metadata, T0, expires_ms, topic_id)
    assert offset_commit_record(key, kept) == record(key, value, 4 if expires_ms == NO_EXPIRY else 1)
