"""Mutants of the endpoint: each breaks one promise, and has to be found out by the histories of its clients."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

DELAY_S = 0.3


def replace(owner: object, name: str, made: object) -> None:
    """Has `made` be what `owner` calls `name`. Raises AttributeError if there is nothing of that name."""
    getattr(owner, name)
    setattr(owner, name, made)


def acknowledge_before_append() -> None:
    """Who writes outside of transactions is answered, and the records are appended later, unless the process is killed."""
    from local_log.engine.producers.state import Origin
    from local_log.engine.unified_log import UnifiedLog
    from local_log.formats.batches import scan

    append, waiting = UnifiedLog.append_as_leader, dict[str, list[Any]]()

    def late(log: UnifiedLog, records: Any, epoch: int, origin: Origin = Origin.CLIENT, *rest: Any, **more: Any) -> Any:
        batches, _ = scan(bytes(records)) if origin is Origin.CLIENT else (None, None)
        if batches is None or batches.is_transactional[0]:
            for one in waiting.pop(log.folder.path, ()):
                append(log, one, epoch)
            return append(log, records, epoch, origin, *rest, **more)
        found = waiting.setdefault(log.folder.path, [])
        count = sum(int(scan(one)[0].header["record_count"].sum()) for one in found)
        first = log.log_end_offset + count
        if not found:
            threading.Timer(DELAY_S, flush, (log, epoch)).start()
        found.append(bytes(records))
        last = first + int(batches.header["record_count"].sum()) - 1
        return _info(first, last, log.log_start_offset, epoch, len(records))

    def flush(log: UnifiedLog, epoch: int) -> None:
        for one in waiting.pop(log.folder.path, ()):
            append(log, one, epoch)

    replace(UnifiedLog, "append_as_leader", late)
    replace(UnifiedLog, "append_at_once", lambda *given: None)


def _info(first: int, last: int, start: int, epoch: int, size: int) -> Any:
    from local_log.engine.append.analyze import AppendInfo

    return AppendInfo(first, last, last, epoch, -1, -1, start, 0, size)


def forget_fencing() -> None:
    """Neither logs nor the coordinator look at a producer's epoch."""
    from local_log.engine.append import producer_checks
    from local_log.engine.producers.state import ProducerUpdate
    from tiering.endpoint.transactions import transaction_coordinator as coordinators

    _without_fast_path()
    replace(producer_checks, "_check_epoch", lambda *given: None)
    replace(ProducerUpdate, "_check_epoch", lambda *given: None)
    replace(ProducerUpdate, "_check_sequence", lambda *given: None)
    replace(coordinators, "_ends_v1", lambda known, producer: coordinators.ON_END_V1)

    def of(self: Any, transactional_id: str, producer: Any) -> Any:
        self._check()
        return self._states.of(transactional_id)

    replace(coordinators.TransactionCoordinator, "_of", of)


def forget_fencing_in_logs() -> None:
    """The coordinator fences a producer, and the logs take what it goes on to write."""
    from local_log.engine.append import producer_checks
    from local_log.engine.producers.state import ProducerUpdate
    from tiering.endpoint.transactions.verification import TransactionVerifier

    _without_fast_path()
    replace(producer_checks, "_check_epoch", lambda *given: None)
    replace(producer_checks, "_check_transaction", lambda *given: None)
    replace(ProducerUpdate, "_check_epoch", lambda *given: None)
    replace(ProducerUpdate, "_check_sequence", lambda *given: None)
    replace(TransactionVerifier, "_confirmed", lambda *given, **more: 0)


def _without_fast_path() -> None:
    from local_log.engine.unified_log import UnifiedLog

    replace(UnifiedLog, "_append_one_as_leader", lambda *given: None)


def forget_open_transactions() -> None:
    """The last stable offset is the high watermark."""
    from local_log.engine.offsets import LogOffsets

    replace(LogOffsets, "last_stable", property(lambda self: self.high_watermark.offset))
    replace(LogOffsets, "up_to", lambda self, isolation: self.high_watermark)


def commit_before_the_marker() -> None:
    """A transaction is complete for its coordinator before its markers are written; after a crash nobody writes them."""
    from tiering.endpoint.transactions.transaction_coordinator import TransactionCoordinator

    def early(self: Any, prepared: Any) -> list[Any]:
        threading.Timer(DELAY_S, self._write_markers, (prepared,)).start()
        return []

    replace(TransactionCoordinator, "_mark", early)


def rebalance_without_generation() -> None:
    """A member of an earlier generation may commit."""
    from tiering.endpoint.coordinator.classic_group import ClassicGroup

    replace(ClassicGroup, "validate_generation", lambda *given: None)


def commit_in_memory_alone() -> None:
    """Offsets of groups are acknowledged and not written."""
    from tiering.endpoint.coordinator.journal import Journal
    from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
    from tiering.endpoint.coordinator.records import read_key

    count = [0]

    def but_commits(write: Callable[..., int]) -> Callable[..., int]:
        def some(self: Journal, group: str, records: Any, producer: Any = None) -> int:
            if producer is None and all(isinstance(read_key(one.key), OffsetCommitKey) for one in records):
                count[0] += len(records)
                return count[0]
            return write(self, group, records, *(() if producer is None else (producer,)))

        return some

    replace(Journal, "write", but_commits(Journal.write))
    replace(Journal, "write_at_once", but_commits(Journal.write_at_once))


def forget_sequences() -> None:
    """A batch that an idempotent producer sends again is appended again."""
    from local_log.engine.producers.state import Producer, ProducerUpdate

    _without_fast_path()
    replace(Producer, "duplicate_of", lambda *given: None)
    replace(ProducerUpdate, "_check_sequence", lambda *given: None)


def leave_out_aborted() -> None:
    """Who reads committed records is not told which transactions were aborted."""
    from local_log.engine.local_log import LocalLog

    replace(LocalLog, "aborted", lambda *given: ())


def commit_offsets_of_aborted() -> None:
    """The offsets of a group count although their transaction was aborted."""
    from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets

    end = CommittedOffsets.end_transaction
    replace(CommittedOffsets, "end_transaction", lambda self, txn, *, is_committed: end(self, txn, is_committed=True))


def delete_before_archived() -> None:
    """Local retention does not ask what is archived."""
    from local_log.engine.manager.retention import KAFKAS, delete_old_segments
    from tiering.agent.tasks import local_retention

    def all_of_it(log: Any, reader: Any, store: Any, now_ms: int, *rest: Any) -> int:
        with log.lock:
            log.highest_offset_in_archive = 1 << 62
            return delete_old_segments(log, now_ms, KAFKAS)

    replace(local_retention, "retain", all_of_it)


def truncate_at_start(directories: tuple[str, ...] = ()) -> None:
    """Whoever starts drops the last batch of a log."""
    from local_log.formats.batches import scan

    for folder in (each for directory in directories for each in Path(directory).glob("*-*")):
        if folder.name.startswith("__"):
            continue
        file = max(folder.glob("*.log"), default=None)
        if file is not None:
            batches, _ = scan(file.read_bytes())
            if len(batches):
                with file.open("r+b") as opened:
                    opened.truncate(int(batches.positions[-1]))


def hide_the_end() -> None:
    """The high watermark goes back: who asks for it is told every other time what it was a while ago."""
    from local_log.formats.list_offsets import LATEST
    from tiering.read.own_log import OwnLog

    list_offsets, seen, count = OwnLog.list_offsets, dict[object, list[tuple[float, Any]]](), itertools.count()

    def old(self: Any, timestamp: int, *isolation: Any) -> Any:
        now = list_offsets(self, timestamp, *isolation)
        known = seen.setdefault((self.live.partition, *isolation), [])
        if timestamp == LATEST and (not known or time.monotonic() - known[-1][0] > DELAY_S):
            known.append((time.monotonic(), now))
            del known[:-4]
        return known[0][1] if timestamp == LATEST and next(count) % 2 else now

    replace(OwnLog, "list_offsets", old)


MUTANTS: Final[Mapping[str, Callable[[], None]]] = MappingProxyType(
    {
        made.__name__.replace("_", "-"): made
        for made in (
            acknowledge_before_append, forget_fencing, forget_fencing_in_logs, forget_open_transactions, hide_the_end,
            commit_before_the_marker, rebalance_without_generation, commit_in_memory_alone, forget_sequences, leave_out_aborted,
            commit_offsets_of_aborted, delete_before_archived, truncate_at_start,
        )
    }
)  # fmt: skip
