"""What was aborted is aborted in a restored log, also where the transaction index of the broker's log did not say so."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import MemoryStore
from logs_to_archive import local_logs, offload_all, path_of
from owned_logs import OwnedLog
from restored_logs import plans, run_soundly
from scrubbed import findings

from local_log.formats.control import ControlType
from local_log.formats.transactions import control_types
from local_log.log_reader import LogReader
from local_log.os_disk import OsWritableDisk
from remote.manifest.entries import Entries
from remote.manifest.model import Gap
from remote.manifest.segment_entry import PRODUCER_SNAPSHOT, AuxRange, SegmentEntry
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.segment_bytes import StoredBytes
from tiering.read.tiered_log import Isolation, TieredLog
from tiering.restore.plan import plan_restore
from tiering.restore.run import restore
from tiering.restore.target import open_target

BEGAN, MARKED = 16, 42
NEXT_BEGUN = 69
"""After it lie the last record of the next transaction, and its marker."""


def archived(
    folder: Path,
    start: int,
    transactions: Iterable[bool],
    *,
    before: int = 8,
    is_flushed: bool = False,
    is_committed: bool = False,
) -> MemoryStore:
    """The archive of a log that was recovered, without snapshots, from a log start offset after a transaction's first records.

    Their segments were archived then, as they lay in the folder still. Each transaction that follows is aborted or committed.
    """
    log = OwnedLog(str(folder), MemoryStore())
    log.fill(before)
    log.offload()
    log.transaction(7, 2, commit=None)
    log.fill(12)
    log.end_transaction(7, commit=is_committed)
    log.fill(12)
    for number, commit in enumerate(transactions):
        log.transaction(7, 3, sequence=2 + 3 * number, commit=commit)
        log.fill(4)
    log.log.maybe_increment_log_start_offset(start)
    log.log.close()
    for snapshot in folder.glob("orders-0/*.snapshot"):
        snapshot.unlink()
    log.log = log.opened(start=start, point=log.log.log_end_offset if is_flushed else 0)
    log.offload()
    return log.store  # type: ignore[return-value]  # the one that it was given


def _without_snapshot(entry: SegmentEntry) -> dict[str, AuxRange]:
    return {part: place for part, place in entry.aux_ranges.items() if part != PRODUCER_SNAPSHOT}


def read(log: LogReader) -> set[int]:
    return committed(TieredLog(log, None), log.log_start_offset)


def committed(log: TieredLog, start: int, end: int | None = None) -> set[int]:
    records = log.read(start, end, isolation=Isolation.read_committed)
    return {offset for batch in records for offset in batch.column("offset").to_pylist()}


@pytest.mark.parametrize("start", [17, 20, 30, 41, 42])
def test_a_restored_log_gives_no_aborted_records(tmp_path: Path, start: int) -> None:
    store = archived(tmp_path / "log", start, (True, False, True))
    assert findings(store, deep=True) == []
    run_soundly(store, str(tmp_path / "to"))
    assert read(local_logs(tmp_path / "to")["orders-0"]).isdisjoint({BEGAN, BEGAN + 1})


def test_aborts_are_archived_whole_of_a_segment_in_the_middle_of_which_the_log_starts(tmp_path: Path) -> None:
    """Its snapshot knows the transaction from the log start offset on only."""
    assert findings(archived(tmp_path / "log", 15, (), before=7, is_flushed=True), deep=True) == []


def test_nor_do_archives_that_are_made_of_it(tmp_path: Path) -> None:
    store = archived(tmp_path / "log", 30, (True, False))
    run_soundly(store, str(tmp_path / "to"))
    again = MemoryStore()
    offload_all(tmp_path / "to", again)
    assert findings(again, deep=True) == []


@pytest.mark.parametrize(
    ("commit", "then", "ends"),
    [(False, (), ControlType.ABORT), (False, (True,), ControlType.COMMIT), (True, (False,), ControlType.ABORT)],
    ids=["aborted", "aborted, and the next one committed", "committed, and the next one aborted"],
)
def test_a_transaction_ends_as_it_did_whose_marker_was_in_a_gap(
    tmp_path: Path, commit: bool, then: tuple[bool, ...], ends: ControlType
) -> None:
    """The log's producers are known from before the gap on: no later segment has a snapshot of them."""
    store = archived(tmp_path / "log", 17, then, is_committed=commit)
    [plan] = plans(store)
    entries = [replace(e, aux_ranges=_without_snapshot(e)) for e in plan.manifest.entries]
    [lost] = [entry for entry in entries if entry.base_offset <= MARKED < entry.end_offset]
    kept = tuple(entry for entry in entries if entry is not lost and (not then or entry.end_offset <= NEXT_BEGUN))
    gap = Gap(lost.base_offset, lost.end_offset, "lost", 0)
    shorter = plan_restore(Entries(replace(plan.manifest, entries=kept, gaps=(gap,)), plan.entries.pages), None, {})
    with open_target(OsWritableDisk(), str(tmp_path / "to")) as target:
        assert not [done.error for done in restore([shorter], StoredBytes(store), target, 1) if done.error]
    log = local_logs(tmp_path / "to")["orders-0"]
    assert [kind for chunk in log.segments[-1].chunks(0) for kind in control_types(chunk).values()] == [ends]
    assert log.last_stable_offset == log.log_end_offset > MARKED
    found = read(log)
    assert {BEGAN, BEGAN + 1} & found == ({BEGAN, BEGAN + 1} if commit else set())
    assert {NEXT_BEGUN - 2, NEXT_BEGUN - 1} & found == ({NEXT_BEGUN - 2, NEXT_BEGUN - 1} if then == (True,) else set())


@pytest.mark.parametrize(("commit", "then"), [(True, False), (False, True), (False, False), (True, True)])
def test_archives_that_are_made_of_a_log_with_a_marker_in_a_gap_have_what_was_committed(
    tmp_path: Path, *, commit: bool, then: bool
) -> None:
    """The next marker of the producer ends its next transaction, and says nothing of the one whose marker is not there."""
    store = archived(tmp_path / "log", 17, (then, then), is_committed=commit)
    [plan] = plans(store)
    [lost] = [entry for entry in plan.manifest.entries if entry.base_offset <= MARKED < entry.end_offset]
    kept = tuple(entry for entry in plan.manifest.entries if entry is not lost)
    gap = Gap(lost.base_offset, lost.end_offset, "lost", 0)
    gapped = plan_restore(Entries(replace(plan.manifest, entries=kept, gaps=(gap,)), plan.entries.pages), None, {})
    with open_target(OsWritableDisk(), str(tmp_path / "to")) as target:
        assert not [done.error for done in restore([gapped], StoredBytes(store), target, 1) if done.error]
    log = local_logs(tmp_path / "to")["orders-0"]
    again = MemoryStore()
    offload_all(tmp_path / "to", again)
    newest = load_newest(again, path_of(log))
    assert newest is not None
    assert findings(again, deep=True) == []
    archive = TieredLog(None, ArchivedLog(again, newest.manifest))
    around = committed(archive, log.log_start_offset, lost.base_offset) | committed(archive, lost.end_offset)
    for found in (read(log), around):
        assert {BEGAN, BEGAN + 1} & found == ({BEGAN, BEGAN + 1} if commit else set())
        assert {NEXT_BEGUN - 2, NEXT_BEGUN - 1} & found == ({NEXT_BEGUN - 2, NEXT_BEGUN - 1} if then else set())


@pytest.mark.parametrize("start", [17, 30, 42])
def test_nor_does_one_whose_archive_ends_before_the_marker(tmp_path: Path, start: int) -> None:
    store = archived(tmp_path / "log", start, ())
    [plan] = plans(store)
    kept = tuple(entry for entry in plan.manifest.entries if entry.end_offset <= MARKED)
    shorter = plan_restore(Entries(replace(plan.manifest, entries=kept), plan.entries.pages), None, {})
    with open_target(OsWritableDisk(), str(tmp_path / "to")) as target:
        assert not [done.error for done in restore([shorter], StoredBytes(store), target, 1) if done.error]
    log = local_logs(tmp_path / "to")["orders-0"]
    assert log.last_stable_offset == log.log_end_offset > BEGAN + 1
    assert read(log).isdisjoint({BEGAN, BEGAN + 1})
