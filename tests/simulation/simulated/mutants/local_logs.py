"""Faults in the storage engine, and in what keeps and reads a log over both tiers."""

from dataclasses import replace
from typing import Any

from local_log.engine import unified_log
from local_log.engine.cleaner import batch_filter, cleaning, dirty
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.local_log import LocalLog
from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.guarded_disk import GuardedDisk, Offline
from local_log.engine.recovery import loader
from local_log.engine.scan import Scanned
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.primitives import INT64_MAX
from remote.read.log import ArchivedLog
from simulated.mutants.registry import mutant
from tiering.local_tier import local_retention
from tiering.retention.local import Held


@mutant
def follow_a_leader_without_its_epochs() -> None:
    LeaderEpochs.end_offset_for = lambda self, epoch, end: EpochEntry(epoch, end)  # type: ignore[method-assign]


@mutant
def acknowledge_before_the_sync() -> None:
    UnifiedLog.sync_appended = lambda self: None  # type: ignore[method-assign]


@mutant
def flush_without_a_sync() -> None:
    LocalLog.flush = lambda self, offset: None  # type: ignore[method-assign]


@mutant
def flush_without_the_names_of_files() -> None:
    def flush(self: LocalLog, offset: int) -> None:
        for segment in self.segments.between(self.recovery_point, offset):
            segment.sync()

    LocalLog.flush = flush  # type: ignore[method-assign]


@mutant
def roll_without_a_flush() -> None:
    LocalLog._flush_all_of = lambda self, active: None  # type: ignore[method-assign]
    UnifiedLog._flush = lambda self, offset, up_to: self.local.mark_flushed(offset)  # type: ignore[method-assign]


@mutant
def recover_without_checksums() -> None:
    Scanned.first_invalid = lambda self: len(self.batches)  # type: ignore[method-assign]


@mutant
def take_a_crash_for_a_clean_shutdown() -> None:
    consume = DataDir.consume_clean_shutdown_file

    def always(self: DataDir) -> None:
        consume(self)
        self.was_clean = True

    DataDir.consume_clean_shutdown_file = always  # type: ignore[method-assign]


@mutant
def forget_producers_at_a_start() -> None:
    loader.rebuild_producers = lambda *args, **options: None


@mutant
def append_a_duplicate_again() -> None:
    judge = unified_log.judge

    def again(producers: Any, *args: Any) -> Any:
        for producer in producers.producers.values():
            producer.batches.clear()
        return judge(producers, *args)

    unified_log.judge = again
    UnifiedLog._append_one_as_leader = lambda self, *args, **options: None  # type: ignore[method-assign]


@mutant
def go_on_after_a_disk_has_failed() -> None:
    GuardedDisk.fail = lambda self, cause: Offline(self._directory, cause)  # type: ignore[method-assign]


@mutant
def drop_segments_that_are_not_archived() -> None:
    local_retention.held = lambda store, log: Held(INT64_MAX, 0)


@mutant
def start_with_the_high_watermark_of_the_checkpoint() -> None:
    UnifiedLog.become_only_replica = lambda self: None  # type: ignore[method-assign]


@mutant
def note_no_transaction_that_was_aborted() -> None:
    apply = UnifiedLog._apply

    def without(self: UnifiedLog, changes: Any, segment: Any) -> None:
        append, segment.txn_index.append = segment.txn_index.append, lambda txn: None
        try:
            apply(self, changes, segment)
        finally:
            segment.txn_index.append = append

    UnifiedLog._apply = without  # type: ignore[method-assign]


@mutant
def tell_no_reader_of_aborted_transactions_in_the_archive() -> None:
    ArchivedLog.aborted = lambda self, start_offset, end_offset: ()  # type: ignore[method-assign]


@mutant
def clean_beyond_the_last_stable_offset() -> None:
    part = dirty._dirty_part

    def to_the_end(log: Any, now: Any, checkpointed: Any, now_ms: int) -> Any:
        return part(log, now._replace(last_stable=now.end.offset), checkpointed, now_ms)

    dirty._dirty_part = to_the_end


@mutant
def take_aborted_records_for_the_latest_of_their_keys() -> None:
    cleaning._Round._add_aborted = lambda self, transactions, start, end: None


@mutant
def clean_what_is_the_latest_of_its_key() -> None:
    batch_filter.Retention.keeps = lambda self, batches, records: records.column("offset").to_numpy() % 2 == 0


@mutant
def start_a_tiered_log_behind_what_is_archived() -> None:
    held = local_retention.held

    def all_of_it(*args: Any) -> Held:
        found = held(*args)
        return replace(found, log_start_offset=max(found.log_start_offset, found.through + 1))

    local_retention.held = all_of_it
