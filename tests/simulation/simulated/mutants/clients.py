"""Faults in what an endpoint promises to producers, transactions and groups."""

from dataclasses import replace
from typing import Any

from local_log.engine.append import producer_checks
from local_log.engine.producers.state import Producer, ProducerUpdate
from local_log.engine.unified_log import UnifiedLog
from simulated.mutants.registry import mutant
from tiering.endpoint.apis import transaction_offsets
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.coordinator.classic_group import ClassicGroup
from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.modern import consumer_groups
from tiering.endpoint.coordinator.offset_metadata_manager import OffsetMetadataManager
from tiering.endpoint.coordinator.rebalancing import Rebalancing
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import read_key
from tiering.endpoint.transactions import transaction_coordinator as coordinators
from tiering.endpoint.transactions.markers import Markers
from tiering.endpoint.transactions.transaction_coordinator import TransactionCoordinator
from tiering.endpoint.transactions.transaction_state_manager import TransactionStateManager


@mutant
def take_commits_of_former_generations() -> None:
    ClassicGroup.validate_generation = lambda self, generation: None  # type: ignore[method-assign]


@mutant
def assign_the_partitions_of_the_leader_to_all() -> None:
    assign = Rebalancing.assign

    def to_all(self: Rebalancing, group: Any, assignments: Any) -> None:
        first = assignments.get(group.leader_id, b"")
        assign(self, group, dict.fromkeys(assignments, first))

    Rebalancing.assign = to_all  # type: ignore[method-assign]


@mutant
def commit_offsets_of_a_transaction_before_its_marker() -> None:
    write = OffsetMetadataManager._write

    def at_once(self: Any, group: Any, kept: Any, producer: Any = None, **options: Any) -> None:
        write(self, group, kept, producer, **options)
        for key, offset in kept if producer is not None else ():
            self.offsets.replay(key, offset)

    OffsetMetadataManager._write = at_once  # type: ignore[method-assign]


@mutant
def commit_offsets_of_a_transaction_that_is_aborted() -> None:
    end = CommittedOffsets.end_transaction
    CommittedOffsets.end_transaction = lambda self, txn, *, is_committed: end(self, txn, is_committed=True)  # type: ignore[method-assign]


@mutant
def keep_offsets_in_memory_alone() -> None:
    write = Journal.write

    def some(self: Journal, group: str, records: Any, producer: Any = None) -> int:
        if producer is None and all(isinstance(read_key(one.key), OffsetCommitKey) for one in records):
            return 0
        return write(self, group, records, producer)

    Journal.write = some  # type: ignore[method-assign]
    Journal.write_at_once = some  # type: ignore[method-assign]


@mutant
def forget_the_fencing_of_producers() -> None:
    UnifiedLog._append_one_as_leader = lambda self, *args, **options: None  # type: ignore[method-assign]
    producer_checks._check_epoch = lambda *args: None
    ProducerUpdate._check_epoch = lambda *args: None  # type: ignore[method-assign]
    ProducerUpdate._check_sequence = lambda *args: None  # type: ignore[method-assign]
    coordinators._ends_v1 = lambda known, producer: coordinators.ON_END_V1

    def of(self: TransactionCoordinator, transactional_id: str, producer: Any) -> Any:
        self._check()
        return self._states.of(transactional_id)

    TransactionCoordinator._of = of  # type: ignore[method-assign]


@mutant
def begin_a_producer_with_the_epoch_of_the_one_before() -> None:
    begun = TransactionCoordinator._begun

    def same(self: TransactionCoordinator, known: Any, timeout_ms: int, expected: Any, now_ms: int) -> Any:
        if known.producer_epoch < 0:
            return begun(self, known, timeout_ms, expected, now_ms)
        return known._begun(timeout_ms, now_ms)

    TransactionCoordinator._begun = same  # type: ignore[method-assign]


@mutant
def complete_an_abort_as_a_commit() -> None:
    write = Markers.write
    Markers.write = lambda self, partition, marker: write(self, partition, marker._replace(is_committed=True))  # type: ignore[method-assign]


@mutant
def end_a_transaction_before_its_markers() -> None:
    mark = TransactionCoordinator._mark

    def late(self: TransactionCoordinator, prepared: Any) -> Any:
        self._states.put(prepared.completed(self.clock.now_ms()))
        lacking = mark(self, prepared)
        self._states.transactions[prepared.transactional_id] = prepared
        return lacking

    TransactionCoordinator._mark = late  # type: ignore[method-assign]


@mutant
def mark_the_first_partition_alone() -> None:
    written = TransactionCoordinator._write_markers

    def first(self: TransactionCoordinator, prepared: Any) -> Any:
        return written(self, prepared.lacks(sorted(prepared.partitions)[:1]))

    TransactionCoordinator._write_markers = first  # type: ignore[method-assign]


@mutant
def abort_no_transaction_whose_time_is_up() -> None:
    TransactionStateManager.timed_out = lambda self: iter(())  # type: ignore[method-assign]


@mutant
def acknowledge_appends_before_their_sync() -> None:
    def at_once(self: GroupCommit) -> None:
        group, self._next = self._next, None
        assert group is not None
        group.synced.set_result({})

    GroupCommit._sync_next = at_once  # type: ignore[method-assign]


@mutant
def acknowledge_offsets_of_a_transaction_before_their_sync() -> None:
    transaction_offsets.when_synced = lambda found, group, context: found


@mutant
def take_what_a_producer_repeats_for_new() -> None:
    UnifiedLog._append_one_as_leader = lambda self, *args, **options: None  # type: ignore[method-assign]
    Producer.duplicate_of = lambda self, *args: None  # type: ignore[method-assign]
    ProducerUpdate._check_sequence = lambda *args: None  # type: ignore[method-assign]


@mutant
def give_partitions_that_another_member_has() -> None:
    reconciled = consumer_groups.reconciled
    consumer_groups.reconciled = lambda member, facts: reconciled(member, replace(facts, is_owned=lambda *of: False))
