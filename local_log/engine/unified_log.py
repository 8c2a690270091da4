"""A partition's log with the semantics of Kafka's UnifiedLog: append, roll, truncate, flush and read, with these invariants:

    log start, last stable ≤ high watermark ≤ log end,   recovery point ≤ log end,   log start ≤ local log start

The last stable offset may be below the log start, by a part of a batch, as in Kafka.

Many threads may use a log. Whatever changes it holds its lock, so that one thread at a time is its owner. Reads take the
published offsets, change nothing, and never wait for the lock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local_log.disk import WritableDisk, make_missing_folder
from local_log.engine.append.analyze import AppendInfo, analyze
from local_log.engine.append.fast_path import append_one
from local_log.engine.append.leader import prepare
from local_log.engine.append.leader_fast_path import as_sent, prepare_one
from local_log.engine.append.producer_checks import ProducerChanges, ask_verification, judge
from local_log.engine.config import LogConfig
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.errors import RecordListTooLarge, UnexpectedAppendOffset
from local_log.engine.fetched_range import FetchedRange, range_of
from local_log.engine.folder import LogFolder
from local_log.engine.list_offsets import Bounds, offset_for, offsets_before
from local_log.engine.local_log import Fetched, LocalLog, Slice
from local_log.engine.log_offsets import LogWithOffsets, by_owner
from local_log.engine.memory_records import MemoryBatch
from local_log.engine.offsets import Isolation, LogOffsets, OffsetMetadata
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.state import Origin, Verification
from local_log.engine.recovery.loader import Loader
from local_log.engine.recovery.rebuild import rebuild_producers
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Invalid, OffsetOutOfRange
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import TimestampOffset
from local_log.formats.primitives import INT32_MAX, Buffer

_PREPARED: Final = (Origin.CLIENT, Origin.COORDINATOR)


@dataclass(slots=True)
class UnifiedLog(LogWithOffsets):
    """An open log. `open_log` creates it."""

    _synced_name: int = -1
    """The base offset of the segment whose name `sync_appended` has synced."""

    # Appending

    def append_as_follower(self, records: bytes, leader_epoch: int) -> AppendInfo:
        """Appends a leader's batches unchanged. Raises Refused."""
        with self.lock:  # as `by_owner`, without its cost
            one = self._append_one(records, leader_epoch)
        if one is None:
            return self._append_as_follower(records, leader_epoch)
        if self._is_awaited():
            self.wake_waiters()
        return one

    def _append_one(self, records: bytes, leader_epoch: int) -> AppendInfo | None:
        unstable = self._first_unstable
        if unstable is not None and not self._is_first_unstable(unstable.offset):
            return None
        one = append_one(self.local, self.producers, self.epochs, records, leader_epoch, self.log_start_offset)
        if one is not None and self.is_only_replica:
            if unstable is None:
                self._high_watermark = self.published.publish_end()
            else:
                self._set_high_watermark(self.local.end)
                self.publish()
        return one

    @by_owner
    def _append_as_follower(self, records: bytes, leader_epoch: int) -> AppendInfo:
        info, batches = analyze(records, Origin.REPLICATION, leader_epoch, self.log_start_offset, self.folder.config)
        if info.valid_bytes <= 0:
            return info
        if info.valid_bytes < len(records):
            records = records[: info.valid_bytes]
        if info.first_or_last_offset_of_first_batch < self.log_end_offset:
            raise self._unexpected(info)
        return self._append(records, batches, info, Origin.REPLICATION)

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: Verification | None = None,
    ) -> AppendInfo:
        """Validates a producer's or a coordinator's batches, assigns offsets and this leader epoch, and appends them.

        `verification` is required for a transaction's first batch if transactions are verified (see `producer_checks`).
        A duplicate batch is not appended again: the result has the offsets of the original. Raises Refused.
        """
        if origin in _PREPARED:
            one = self._append_one_as_leader(records, leader_epoch)
            if one is not None:
                return one
        return self._append_as_leader(records, leader_epoch, origin, transaction_version, verification)

    def append_at_once(self, records: Buffer, leader_epoch: int) -> AppendInfo | None:
        """Appends a batch as `append_as_leader`, without waiting for another thread, a new segment or a sync.

        None, without any change, if it would have to wait, or if the batch is none that `leader_fast_path` takes. It need not say
        whose batch it is: those in which a client may do less than a coordinator are none.
        """
        return self._append_one_as_leader(records, leader_epoch, may_wait=False)

    def _append_one_as_leader(self, records: Buffer, leader_epoch: int, *, may_wait: bool = True) -> AppendInfo | None:
        if not self.lock.acquire(may_wait):
            return None
        try:
            prepared = prepare_one(
                records, leader_epoch, self.local.log_end_offset, self.folder.now_ms(), self.folder.config, self.producers
            )
            if prepared is None:
                return None
            one = self._append_one(prepared, leader_epoch)
        finally:
            self.lock.release()
        if one is None:
            return None
        if self._is_awaited():
            self.wake_waiters()
        return as_sent(one, records)

    @by_owner
    def ask_verification(self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool) -> Verification | None:
        """What a transaction's first batch needs; see `producer_checks`. None also if transactions are not verified."""
        if not self.producers.verifies_transactions:
            return None
        return ask_verification(self.producers, producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump)

    @by_owner
    def _append_as_leader(
        self, records: Buffer, leader_epoch: int, origin: Origin, transaction_version: int, verification: Verification | None
    ) -> AppendInfo:
        info, prepared, batches = prepare(
            records,
            origin,
            leader_epoch,
            log_start=self.log_start_offset,
            log_end=self.log_end_offset,
            now_ms=self.folder.now_ms(),
            config=self.folder.config,
        )
        if info.valid_bytes <= 0:
            return info
        if info.first_or_last_offset_of_first_batch < self.log_end_offset:
            raise self._unexpected(info)
        return self._append(prepared, batches, info, origin, transaction_version, verification)

    def _unexpected(self, info: AppendInfo) -> UnexpectedAppendOffset:
        first = info.first_or_last_offset_of_first_batch
        end = self.log_end_offset
        return UnexpectedAppendOffset(f"{self.folder.path}: an append that starts at offset {first}, below the log's end {end}")

    def _append(
        self,
        records: bytes,
        batches: list[MemoryBatch],
        info: AppendInfo,
        origin: Origin,
        transaction_version: int = 0,
        verification: Verification | None = None,
    ) -> AppendInfo:
        self.local.check_open()
        for batch in batches:
            if batch.magic == 2:
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
            elif self.epochs.entries:
                self.epochs.clear()
        if len(records) > self.folder.config.segment_bytes:
            raise RecordListTooLarge(
                f"an append of {len(records)} bytes; segment.bytes allows {self.folder.config.segment_bytes}"
            )
        segment = self._maybe_roll(len(records), info)
        changes = judge(self.producers, records, batches, origin, transaction_version, verification)
        if changes.duplicate is not None:
            first, last, timestamp = changes.duplicate.first_offset, changes.duplicate.last_offset, changes.duplicate.timestamp
            return info._replace(first_offset=first, last_offset=last, log_append_time=timestamp, is_duplicate=True)
        self.local.append(info.last_offset, records, batches)
        self._high_watermark_follows_end()
        self._apply(changes, segment)
        self.producers.map_end_offset = info.last_offset + 1
        if self.is_only_replica:
            self._set_high_watermark(self.local.end)
        else:
            self._update_first_unstable()
        if self.local.unflushed_messages >= self.folder.config.flush_messages:
            self.flush()
        return info

    def _apply(self, changes: ProducerChanges, segment: Segment) -> None:
        for update in changes.updates:
            self.producers.update(update)
        for txn in changes.completed:
            last_stable = self.producers.last_stable_offset(txn)
            if txn.is_aborted:
                segment.txn_index.append(AbortedTxn(txn.first_offset, txn.last_offset, txn.producer_id, last_stable))
            self.producers.complete(txn)

    # Segments

    def _maybe_roll(self, size: int, info: AppendInfo) -> Segment:
        active = self.local.segments.active
        if not active.should_roll(size, info.max_timestamp, info.last_offset, self.folder.config, self.folder.now_ms()):
            return active
        # A message set before magic 2 does not have its first offset: the lowest possible one is used, which is unique, too.
        return self.roll(info.first_offset if info.first_offset >= 0 else info.last_offset - INT32_MAX)

    @by_owner
    def roll(self, expected_offset: int = 0) -> Segment:
        """Creates a segment at the log end offset; flushes the producer snapshot and the earlier segments."""
        segment = self.local.roll(expected_offset)
        self.producers.map_end_offset = segment.base_offset
        snapshot = self.producers.take_snapshot(sync=False)
        self._high_watermark_follows_end()
        if snapshot is not None:
            self.folder.disk.sync(snapshot)
        self._flush(segment.base_offset, segment.base_offset)
        return segment

    @by_owner
    def flush(self, *, also_active: bool = False) -> None:
        """Flushes the log to the device; `also_active` includes an empty active segment."""
        end = self.log_end_offset
        self._flush(end, end + 1 if also_active else end)

    def sync_appended(self) -> None:
        """Has all records that were appended before the call survive a loss of power, while others go on to append.

        The recovery point stays: indexes are synced by `flush` alone, and made anew after a crash. Raises Invalid once closed.
        """
        with self.lock:
            self.local.check_open()
            active = self.local.segments.active  # those before it were synced when it was made
        self.folder.disk.sync(active.log_file)
        if self._synced_name != active.base_offset:
            self.folder.disk.sync_folder(self.folder.path)
            self._synced_name = active.base_offset

    def _flush(self, offset: int, up_to: int) -> None:
        if up_to > self.local.recovery_point:
            self.local.flush(up_to)
            self.local.mark_flushed(offset)

    @by_owner
    def truncate_to(self, offset: int) -> bool:
        """Removes everything from `offset` on; False if the log ends before it. Raises Invalid below 0."""
        if offset < 0:
            raise Invalid(f"{self.folder.path}: cannot truncate to offset {offset}; give 0 or more")
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if self.local.segments.first.base_offset > offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self.published.withdraw(min(offset, self.log_start_offset), self.local.end_at(offset))
        gone = self.local.truncate_to(offset)
        self.folder.delete_snapshots_later(self.producers, gone)
        self.epochs.truncate_from_end(offset)
        self.log_start_offset = min(offset, self.log_start_offset)
        rebuild_producers(self.producers, self.local.segments, self.log_start_offset, offset, clean=False)
        if self._first_unstable is not None and self._first_unstable.offset >= offset:
            self._first_unstable = None  # another batch may get its offset, at another position
        self.folder.disk.sync_folder(self.folder.path)
        self._high_watermark_follows_end()
        return True

    @by_owner
    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Removes everything; the log starts again at `offset`."""
        self.local.check_open()
        self.published.withdraw(offset, OffsetMetadata(offset))
        self.local.truncate_fully_and_start_at(offset)
        self.epochs.clear()
        self.producers.truncate_fully_and_start_at(offset)
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        if self.folder.config.remote_storage_enable:
            self.local_log_start_offset = offset
        rebuild_producers(self.producers, self.local.segments, self.log_start_offset, offset, clean=False)
        self.folder.disk.sync_folder(self.folder.path)
        self.update_high_watermark(self.log_end_offset)

    @by_owner
    def close(self) -> None:
        """Writes what is only in memory. No write is possible afterwards; a second call does nothing."""
        if not self.local.is_closed:
            self.producers.take_snapshot()
            self.local.close()

    # Reading

    def read(
        self, offset: int, size_max: int, isolation: Isolation = Isolation.LOG_END, *, one_batch_at_least: bool = True
    ) -> Fetched:
        """Up to `size_max` bytes of batches from the one with `offset` on; with TXN_COMMITTED also the aborted transactions.

        Raises OffsetOutOfRange below the log start offset and above the log end offset.
        """

        return self.published.undisturbed(lambda now: self._find(now, offset, size_max, isolation, one_batch_at_least).read())

    def fetch(
        self, offset: int, size_max: int, isolation: Isolation = Isolation.LOG_END, *, one_batch_at_least: bool = True
    ) -> FetchedRange:
        """As `read`, but gives the range of the log file instead of its bytes; see `local_log.file_range` for its validity."""

        def query(now: LogOffsets) -> FetchedRange:
            found = self._find(now, offset, size_max, isolation, one_batch_at_least)
            return range_of(found, self.published)

        return self.published.undisturbed(query)

    def _find(self, now: LogOffsets, offset: int, size_max: int, isolation: Isolation, one: bool) -> Slice:
        if not now.log_start <= offset <= now.end.offset:
            raise OffsetOutOfRange(self.folder.path, offset, now.log_start, now.end.offset)
        end = self.published.up_to(now, isolation)
        with_aborted = isolation is Isolation.TXN_COMMITTED
        return self.local.find(offset, size_max, end, one_batch_at_least=one, with_aborted=with_aborted)

    def offset_for(self, timestamp: int) -> TimestampOffset | None:
        """The result of Kafka's ListOffsets for a timestamp; see `list_offsets`."""
        segments, epochs = self.local.segments, self.epochs
        return self.published.undisturbed(lambda now: offset_for(timestamp, self._bounds(now), segments, epochs))

    def offsets_before(self, timestamp: int, count_max: int) -> list[int]:
        """The result of ListOffsets version 0; see `list_offsets`."""
        segments, now_ms = self.local.segments, self.folder.now_ms()
        return self.published.undisturbed(lambda now: offsets_before(timestamp, count_max, self._bounds(now), segments, now_ms))

    def _bounds(self, now: LogOffsets) -> Bounds:
        archived = self.highest_offset_in_archive if self.folder.config.remote_storage_enable else None
        return Bounds(now.log_start, now.local_log_start, now.end.offset, archived)


# Ten parameters: a log manager has each from another source, and a class for them would be used in this call alone.
def open_log(
    disk: WritableDisk,
    path: str,
    config: LogConfig,
    now_ms: Callable[[], int],
    random: Callable[[], float],
    *,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    clean: bool = False,
    producers_of: Callable[[WritableDisk, str, Callable[[], int]], ProducerStateManager] = ProducerStateManager,
    on_progress: Callable[[int, int], None] = lambda segments, left: None,
) -> UnifiedLog:
    """Opens the log in a folder, created if it is missing, and recovers it (see Loader, also for `on_progress`).

    `log_start_offset` and `recovery_point` come from the checkpoints. Raises Corrupt, Invalid, Refused.
    """
    if not disk.exists(path):
        make_missing_folder(disk, path)
    folder = LogFolder(disk, path, config, now_ms, random)
    segments = Segments()
    epochs = LeaderEpochs(disk, path)

    def new_producers() -> ProducerStateManager:
        return producers_of(disk, path, now_ms)

    producers = new_producers()
    loader = Loader(folder, segments, epochs, producers, new_producers, log_start_offset, recovery_point, clean, on_progress)
    loaded = loader.load()
    local = LocalLog(folder, segments, loaded.recovery_point, loaded.log_end_offset)
    start = loaded.log_start_offset
    log = UnifiedLog(folder, local, producers, epochs, start, start, _high_watermark=OffsetMetadata(start))
    log._start(loaded.log_start_offset)
    log.publish()
    return log
