"""Segments below the log start offset, which lie in the folder until the broker deletes them, and are archived while they do."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock
from logs_at_work import batch_of
from logs_to_archive import path_of
from owned_logs import OwnedLog
from replaced import records as records_of
from small_logs import NOW, follow, marker, records

from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.producers.state import Origin
from local_log.formats.checkpoints import EpochEntry, write_epochs, write_offsets
from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, PARTITION_METADATA, TOPICS
from local_log.formats.partition_metadata import write_topic_id
from local_log.formats.producer_snapshot import read_producer_snapshot, write_producer_snapshot
from remote.manifest.losses import lost_ranges
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from tiering.offload.below_log_start import committed_from
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.offload.plan import Action

IDS = CountingIds("b")


def archived(log: OwnedLog, source: str = "source") -> Manifest:
    """The manifest after an offload that refuses nothing."""
    run = OffloadRun(log.store, FixedClock(), IDS, source, lambda _: None)
    errors = [done.error for done in offload(plan(log.reader, log.store), run) if done.error]
    assert errors == []
    newest = load_newest(log.store, path_of(log.reader))
    assert newest is not None
    return newest.manifest


def with_an_open_transaction(folder: Path) -> tuple[OwnedLog, int]:
    """A log of which something is archived, and then the offset at which a transaction has begun, and much more."""
    log = OwnedLog(str(folder))
    log.fill(8)
    archived(log)
    began = log.log.log_end_offset
    log.transaction(1, 1, commit=None)
    log.fill(12)
    return log, began


def test_records_of_an_open_transaction_wait_also_where_the_log_starts_after_them(tmp_path: Path) -> None:
    log, began = with_an_open_transaction(tmp_path)
    log.log.maybe_increment_log_start_offset(began + 9)
    assert log.log.last_stable_offset == log.log.log_start_offset == began + 9
    assert 0 < archived(log).end_offset <= began


def test_what_waited_below_the_log_start_and_was_deleted_then_is_told_as_lost(tmp_path: Path) -> None:
    log, began = with_an_open_transaction(tmp_path)
    end = archived(log).end_offset
    log.log.maybe_increment_log_start_offset(began + 9)
    assert lost_ranges(archived(log)) == ()
    log.log.maybe_increment_log_start_offset(began + 20)
    delete_old_segments(log.log, NOW)
    assert log.reader.segments[0].base_offset > began + 9
    assert [(loss.start, loss.end) for loss in lost_ranges(archived(log))] == [(end, began + 20)]


def test_what_waits_below_the_log_start_of_one_replica_is_not_lost_for_another(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path / "one"))
    log.fill(4)
    log.transaction(1, 1, commit=None)
    log.fill(12)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    other, start = OwnedLog(str(tmp_path / "other"), log.store), log.log.log_end_offset - 8
    archived(log)
    log.log.maybe_increment_log_start_offset(start)
    end = archived(log).end_offset
    archived(other, "other")
    other.log.maybe_increment_log_start_offset(start)
    delete_old_segments(other.log, NOW)
    assert other.reader.segments[0].base_offset > end
    assert lost_ranges(archived(other, "other")) == ()


@pytest.mark.parametrize("goes_on", [True, False])
def test_they_wait_after_a_recovery_that_knows_nothing_of_their_transaction(tmp_path: Path, *, goes_on: bool) -> None:
    log, began = with_an_open_transaction(tmp_path)
    start = began + 10
    if goes_on:
        log.transaction(1, 1, sequence=1, commit=None)
    log.log.maybe_increment_log_start_offset(start)
    log.log.close()
    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        if int(snapshot.stem) > start:
            snapshot.unlink()
    log.log = log.opened(start=start)
    log.fill(4)
    assert log.log.last_stable_offset > start
    assert archived(log).end_offset <= began
    log.end_transaction(1, commit=False)
    log.fill(8)
    assert archived(log).end_offset > start


def test_they_do_not_wait_once_their_transaction_has_ended_though_no_snapshot_knows_its_producer(tmp_path: Path) -> None:
    log, began = with_an_open_transaction(tmp_path)
    log.end_transaction(1, commit=False)
    start = began + 9
    log.log.maybe_increment_log_start_offset(start)
    for _ in range(40):
        log.fill(1)
    log.log.close()
    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        known = read_producer_snapshot(snapshot.read_bytes())
        snapshot.write_bytes(write_producer_snapshot(tuple(one for one in known if one.producer_id != 1)))
    log.log = log.opened(start=start, point=log.log.log_end_offset)
    assert all(one.producer_id != 1 for one in log.reader.newest_producers())
    assert log.reader.transactions_begun_before(start)
    assert archived(log).end_offset > start


def test_all_records_of_an_aborted_transaction_are_known_where_the_log_starts_in_the_middle_of_it(
    tmp_path: Path,
) -> None:
    """The transaction index of the segment knows it from the log start offset on."""
    log = OwnedLog(str(tmp_path), segment_bytes=2_000)
    log.fill(12)
    log.log.roll()
    archived(log)
    began = log.log.log_end_offset
    log.transaction(1, 3, commit=None)
    log.fill(1)
    start = began + 1
    log.log.maybe_increment_log_start_offset(start)
    log.log.truncate_to(began + 3)  # as a follower does, who knows the producers from the log start offset on then
    log.end_transaction(1, commit=False)
    log.log.roll()
    log.fill(1)
    assert [txn.first_offset for txn in log.reader.aborted(start, log.log.log_end_offset)] == [start]
    after = archived(log)
    assert after.end_offset > start
    aborted = ArchivedLog(log.store, after).aborted(began, after.end_offset)
    assert [(txn.producer_id, txn.first_offset) for txn in aborted] == [(1, began)]


def with_epochs(log: OwnedLog, *epochs: int) -> None:
    """Appends sixteen records in each leader epoch."""
    for epoch in epochs:
        for _ in range(8):
            log.log.append_as_leader(records(0, 2, value=b"v" * 40, time=NOW), epoch)


@pytest.mark.parametrize("start", [34, 40])
def test_the_archive_knows_the_epoch_of_segments_from_before_that_of_the_log(tmp_path: Path, start: int) -> None:
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0)
    archived(log)
    with_epochs(log, 0, 0)
    log.log.append_as_leader(records(0, 2, value=b"v" * 40, time=NOW), 1)
    log.log.maybe_increment_log_start_offset(start)
    assert log.log.epochs.entries[0] == EpochEntry(0, start)
    assert archived(log).leader_epochs[0] == EpochEntry(0, 0)
    assert archived(log).gaps == ()


@pytest.mark.parametrize("start", [32, 34, 40])
def test_of_an_earlier_epoch_nothing_is_archived_from_below_the_log_start(tmp_path: Path, start: int) -> None:
    """A former leader may have it, whose records were never committed."""
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0)
    before = archived(log).end_offset
    with_epochs(log, 1, 2)
    log.log.maybe_increment_log_start_offset(start)
    after = archived(log)
    assert [(gap.start, gap.end) for gap in after.gaps] == [(before, 32)]
    assert [(loss.start, loss.end) for loss in after.losses] == [(before, 32)]
    assert after.leader_epochs == (EpochEntry(0, 0), EpochEntry(2, 32))
    assert after.end_offset > 40
    fetched = records_of(ArchivedLog(log.store, after), 32, after.end_offset)
    assert fetched == records_of(replace(log.reader, checkpointed_start=0), 32, after.end_offset)
    assert [offset for offset, _, _ in fetched] == list(range(32, after.end_offset))
    assert archived(log) == after


def test_nothing_is_claimed_of_a_batch_that_was_truncated_with_its_part_below_the_log_start(tmp_path: Path) -> None:
    """A follower removes all of a batch that reaches above its leader's log start offset, and goes on from that offset."""
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0)
    before = archived(log).end_offset
    with_epochs(log, 0)
    log.log.truncate_to(31)
    assert log.reader.segments[-1].base_offset == 30
    with_epochs(log, 1)
    log.log.maybe_increment_log_start_offset(31)
    after = archived(log)
    assert [(gap.start, gap.end) for gap in after.gaps] == [(before, 31)]
    assert after.entries[-1].end_offset > 36


def test_nothing_is_copied_until_the_broker_has_written_where_the_log_starts_now(tmp_path: Path) -> None:
    """It writes the leader epochs at once, the log start offset every minute, and the high watermark more often."""
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0)
    archived(log)
    with_epochs(log, 1, 2)
    log.log.maybe_increment_log_start_offset(32)
    reader = replace(log.reader, checkpointed_start=0)
    epochs, start = Path(log.folder, LEADER_EPOCH_CHECKPOINT), tmp_path / LOG_START_OFFSET_CHECKPOINT
    start.write_bytes(write_offsets({}))
    written_ns = epochs.stat().st_mtime_ns
    os.utime(start, ns=(written_ns - 1, written_ns - 1))
    waiting = [d for d in plan(reader, log.store).decisions if "the log seems to start at 32 now" in d.reason]
    assert [d.segment.base_offset for d in waiting] == [12, 18, 24, 30, 36]
    epochs.write_bytes(write_epochs(()))  # as after a restart, where nothing was above the log start offset
    os.utime(epochs, ns=(written_ns, written_ns))
    assert not any(d.action is Action.copy for d in plan(replace(reader), log.store).decisions)
    os.utime(start, ns=(written_ns, written_ns))
    assert any(d.action is Action.copy for d in plan(reader, log.store).decisions)
    start.write_bytes(write_offsets({log.reader.partition: 32}))  # after the reader has read it
    assert not any(d.action is Action.copy for d in plan(replace(reader), log.store).decisions)


def test_a_log_directory_of_our_own_knows_where_its_log_starts(tmp_path: Path) -> None:
    """It writes that only when it moves: after a crash the file is older than the leader epochs, and stays so."""
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0, 1)
    log.log.maybe_increment_log_start_offset(16)
    epochs, start = Path(log.folder, LEADER_EPOCH_CHECKPOINT), tmp_path / LOG_START_OFFSET_CHECKPOINT
    start.write_bytes(write_offsets({}))
    written_ns = epochs.stat().st_mtime_ns
    os.utime(start, ns=(written_ns - 1, written_ns - 1))
    reader = replace(log.reader, checkpointed_start=0)
    assert not any(d.action is Action.copy for d in plan(reader, log.store).decisions)
    (tmp_path / TOPICS).write_text("")
    assert any(d.action is Action.copy for d in plan(reader, log.store).decisions)


def test_a_log_start_in_a_hole_that_compaction_has_left_before_another_epoch_is_no_gap(tmp_path: Path) -> None:
    """As a replica has it that was built from a compacted log."""
    log = OwnedLog(str(tmp_path))
    followed = [records(offset, 2, value=b"v" * 40, time=NOW, epoch=1) for offset in range(0, 18, 2)]
    followed += [records(offset, 2, value=b"v" * 40, time=NOW, epoch=2) for offset in range(60, 80, 2)]
    follow(log.log, *followed)
    log.log.update_high_watermark(log.log.log_end_offset)
    log.log.maybe_increment_log_start_offset(40)
    after = archived(log)
    assert (after.log_start_offset, after.holes, after.losses) == (40, (), ())
    assert after.entries[0].base_offset == 60
    assert archived(log) == after


@pytest.mark.parametrize("start", [29, 30])
def test_what_a_follower_was_cut_off_from_is_left_to_a_replica_that_has_it(tmp_path: Path, start: int) -> None:
    """Batches from 30 on were cut at the leader's log start offset 31. After a crash the log starts earlier again."""
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0, 0)
    log.log.truncate_to(31)
    with_epochs(log, 1)
    log.log.maybe_increment_log_start_offset(31)
    reader = replace(log.reader, checkpointed_start=start)
    run = OffloadRun(log.store, FixedClock(), IDS, "source", lambda _: None)
    assert [done.error for done in offload(plan(reader, log.store), run) if done.error] == []
    newest = load_newest(log.store, path_of(reader))
    assert newest is not None
    covered = {offset for e in newest.manifest.entries for offset in range(e.base_offset, e.end_offset)}
    assert 30 not in covered
    assert {31, 32, 33} < covered


def test_the_log_start_in_the_empty_end_of_a_segment_is_no_damage(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    follow(log.log, *(records(offset, 2, value=b"v" * 40, time=NOW, epoch=1) for offset in range(0, 16, 2)))
    log.log.truncate_to(15)  # within the last batch
    log.log.roll()
    log.log.update_high_watermark(15)
    assert plan(replace(log.reader, checkpointed_start=14), log.store).empty == ((14, 15),)


def test_an_open_transaction_of_an_earlier_epoch_holds_back_what_lies_above_the_log_start(tmp_path: Path) -> None:
    log, began = with_an_open_transaction(tmp_path)
    with_epochs(log, 1)
    start = log.log.log_end_offset - 8
    log.log.maybe_increment_log_start_offset(start)
    log.log.close()
    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        snapshot.unlink()
    log.log = log.opened(start=start)
    with_epochs(log, 1)
    assert log.log.last_stable_offset > start
    assert archived(log).end_offset <= began
    log.log.append_as_leader(marker(0, 1, commit=False), 1, Origin.COORDINATOR)
    with_epochs(log, 1)
    assert archived(log).end_offset > start


def test_where_no_record_is_left_above_the_log_start_none_below_is_archived(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0)
    before = archived(log)
    with_epochs(log, 0)
    log.log.maybe_increment_log_start_offset(32)
    log.log.roll()
    after = archived(log)
    assert (after.end_offset, [(loss.start, loss.end) for loss in after.losses]) == (before.end_offset, [(before.end_offset, 32)])


def test_what_lies_before_a_damaged_file_is_not_known_to_be_committed(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    with_epochs(log, 0, 0, 0)
    log.log.maybe_increment_log_start_offset(40)
    assert committed_from(log.reader).start == 0
    file = tmp_path / "orders-0" / f"{24:020}.log"
    file.write_bytes(b"\xff" * file.stat().st_size)
    assert committed_from(log.reader).start == 30


def test_only_an_aborted_transaction_that_reaches_above_the_log_start_is_told_of_what_was_left_out(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    log.transaction(7, 1, commit=None)
    log.transaction(8, 1, commit=False)
    start = log.log.log_end_offset
    log.log.append_as_leader(batch_of("x", producer=7, sequence=1, transactional=True), 1)
    log.log.append_as_leader(marker(0, 7, commit=False), 1, Origin.COORDINATOR)
    with_epochs(log, 1)
    log.log.maybe_increment_log_start_offset(start)
    after = archived(log)
    assert after.entries[0].base_offset == start > log.reader.segments[0].base_offset
    aborted = ArchivedLog(log.store, after).aborted(start, after.end_offset)
    assert [(txn.producer_id, txn.first_offset) for txn in aborted] == [(7, start)]


def test_another_replica_with_its_whole_history_goes_on_with_such_an_archive(tmp_path: Path) -> None:
    first = OwnedLog(str(tmp_path / "a"))
    second = OwnedLog(str(tmp_path / "b"), first.store)
    for log in (first, second):
        (Path(log.folder) / PARTITION_METADATA).write_bytes(write_topic_id("A" * 21 + "Q"))
    with_epochs(first, 0)
    archived(first, "a")
    with_epochs(first, 1, 2)
    with_epochs(second, 0, 1, 2, 2)
    first.log.maybe_increment_log_start_offset(40)
    assert archived(first, "a").gaps
    after = archived(second, "b")
    assert after.end_offset > first.log.log_end_offset
    assert after.leader_epochs == tuple(second.log.epochs.entries)
    assert (after.gaps, after.losses) == ((), ())
