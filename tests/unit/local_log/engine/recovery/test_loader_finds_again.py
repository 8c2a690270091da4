"""A log's folder opened: producers, transactions and leader epochs that were lost are found again in the log itself."""

from pathlib import Path

import pytest
from small_logs import (
    NOW,
    LogReads,
    Make,
    a_segment_each,
    bases,
    file_of,
    follow,
    marker,
    old_records,
    opened,
    produced,
    records,
    suffixed,
)

from local_log.engine.unified_log import UnifiedLog
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.indexes.transaction import AbortedTxn

# Producers


def test_a_truncation_reads_nothing_for_producers_where_there_are_none(tmp_path: Path) -> None:
    disk = LogReads()
    log = opened(tmp_path, disk=disk)
    assert log.producers.snapshot_offsets == ()
    a_segment_each(log, 3)
    follow(log, records(3), records(4))
    log.producers.delete_snapshots_before(100)
    disk.read_bases.clear()
    log.truncate_to(4)
    assert disk.read_bases == {3}
    assert log.producers.map_end_offset == 4


def test_a_truncation_reads_the_log_again_where_there_are_producers_and_no_snapshots(tmp_path: Path) -> None:
    disk = LogReads()
    log = opened(tmp_path, disk=disk)
    for i in range(3):
        follow(log, produced(i, 8, i))
        log.roll()
    follow(log, records(3), produced(4, 8, 3))
    log.producers.delete_snapshots_before(100)
    disk.read_bases.clear()
    log.truncate_to(4)
    assert disk.read_bases == {0, 1, 2, 3}
    assert log.producers.producers[8].last_sequence == 2


@pytest.mark.parametrize("make", [records, old_records])
def test_after_a_clean_shutdown_without_snapshots_the_log_is_not_read_for_producers(tmp_path: Path, make: Make) -> None:
    log = opened(tmp_path)
    for i in range(3):
        follow(log, make(i))
        log.roll()
    follow(log, make(3))
    log.close()
    for file in tmp_path.glob("*.snapshot"):
        file.unlink()
    disk = LogReads()
    log = opened(tmp_path, disk=disk, clean=True)
    assert disk.read_bases == {3}
    assert log.producers.snapshot_offsets == (2, 3, 4)  # so that the next start finds some
    assert (log.producers.map_end_offset, log.producers.is_empty) == (4, True)


def test_a_marker_of_an_older_coordinator_is_taken_when_it_is_read_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, marker(0, 8, commit=False, coordinator_epoch=5, time=NOW - 9))
    follow(log, marker(1, 8, commit=False, coordinator_epoch=4, time=NOW - 3))
    log.close()
    for file in tmp_path.glob("*.snapshot"):
        file.unlink()
    producer = opened(tmp_path).producers.producers[8]
    assert (producer.last_timestamp, producer.coordinator_epoch) == (NOW - 3, 4)


def test_producers_below_a_start_in_the_middle_of_a_segment_are_still_known(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, produced(0, 8, 0), produced(1, 9, 0))
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    assert sorted(log.producers.producers) == [8, 9]
    log.close()
    log = opened(tmp_path, start=1)
    assert log.log_start_offset == 1
    assert sorted(log.producers.producers) == [8, 9]
    assert log.producers.producers[9].last_sequence == 0


def test_producers_of_a_deleted_segment_are_forgotten_at_the_next_start(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, produced(0, 8, 0))
    log.roll()
    follow(log, produced(1, 9, 0))
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    first = log.local.segments.first
    log.local.remove([first])
    log.folder.delete_snapshots_later(log.producers, [first])
    assert sorted(log.producers.producers) == [8, 9]
    log.close()
    log = opened(tmp_path, start=1)
    assert bases(log) == [1]
    assert list(log.producers.producers) == [9]
    assert log.producers.producers[9].last_sequence == 0


def test_of_snapshots_that_belong_to_no_segment_only_the_newest_stays(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for i in range(2):
        follow(log, produced(i, 8, i))
        log.roll()
    follow(log, produced(2, 8, 2), produced(3, 8, 3))
    log.close()
    assert suffixed(tmp_path, ".snapshot") == [1, 2, 4]
    file_of(tmp_path, 3, ".snapshot").touch()
    log = opened(tmp_path)
    assert suffixed(tmp_path, ".snapshot") == [1, 2, 4]
    assert log.producers.producers[8].last_sequence == 3


# Transactions


TRANSACTIONS = (
    *(("data", 1, 5), ("plain", 0, 3), ("data", 2, 2), ("data", 1, 4), ("data", 3, 3), ("plain", 0, 2), ("data", 1, 10)),
    *(("abort", 1, 1), ("data", 2, 6), ("data", 4, 3), ("plain", 0, 10), ("data", 3, 9), ("commit", 3, 1), ("data", 4, 8)),
    *(("data", 2, 7), ("abort", 2, 1), ("plain", 0, 10), ("data", 4, 4), ("commit", 4, 1)),
)
"""What is done, by whom, and how many records that are: two of four transactions that overlap are aborted."""
ABORTED = [AbortedTxn(0, 29, 1, 8), AbortedTxn(8, 74, 2, 36)]


def log_of_transactions(folder: Path) -> UnifiedLog:
    log = opened(folder, segment_bytes=5 * 128)
    sequences = dict.fromkeys(range(5), 0)
    for act, producer, count in TRANSACTIONS:
        end = log.log_end_offset
        if act == "plain":
            follow(log, records(end, count))
        elif act == "data":
            follow(log, produced(end, producer, sequences[producer], count, transactional=True))
            sequences[producer] += count
        else:
            follow(log, marker(end, producer, commit=act == "commit"))
    assert len(log.local.segments) > 3
    assert aborted(log) == ABORTED
    return log


def aborted(log: UnifiedLog) -> list[AbortedTxn]:
    return [txn for segment in log.local.segments for txn in segment.txn_index.all()]


def test_aborted_transactions_are_found_again_in_the_log(tmp_path: Path) -> None:
    log_of_transactions(tmp_path).close()
    for file in (*tmp_path.glob("*.index"), *tmp_path.glob("*.txnindex")):
        file.unlink()
    assert aborted(opened(tmp_path)) == ABORTED


@pytest.mark.parametrize("has_snapshots", [True, False])
def test_aborted_transactions_of_the_last_segments_are_found_again_from_a_snapshot_or_from_the_log_s_start(
    tmp_path: Path, has_snapshots: bool
) -> None:
    log = log_of_transactions(tmp_path)
    with_aborted = [s.base_offset for s in log.local.segments if tuple(s.txn_index.all())]
    first, last = bases(log)[0], with_aborted[-1]
    assert first < with_aborted[0] < last
    log.close()
    file_of(tmp_path, last, ".index").unlink()
    file_of(tmp_path, last, ".txnindex").unlink()
    if not has_snapshots:
        for file in tmp_path.glob("*.snapshot"):
            file.unlink()
    disk = LogReads()
    log = opened(tmp_path, disk=disk, point=last)
    assert aborted(log) == ABORTED
    assert (first in disk.read_bases) is not has_snapshots


# Leader epochs


def test_leader_epochs_that_were_lost_are_found_again_in_the_log(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0, epoch=1), records(1, epoch=2), records(2, epoch=2), records(3, epoch=3))
    expected = [EpochEntry(1, 0), EpochEntry(2, 1), EpochEntry(3, 3)]
    assert log.epochs.entries == expected
    log.epochs.truncate_from_end(1)
    assert log.epochs.entries == expected[:1]
    log.close()
    assert opened(tmp_path, clean=True).epochs.entries == expected[:1]
    assert opened(tmp_path).epochs.entries == expected


def test_leader_epochs_outside_of_the_log_are_dropped(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0, epoch=1), records(1, epoch=2), records(2, epoch=2), records(3, epoch=3))
    log.close()
    checkpoint = tmp_path / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n4\n1 0\n2 1\n3 3\n5 4\n")
    log = opened(tmp_path, start=2, clean=True)
    assert log.epochs.entries == [EpochEntry(2, 2), EpochEntry(3, 3)]


def test_a_message_of_an_older_format_ends_the_leader_epochs(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0, epoch=5))
    assert log.epochs.latest_epoch == 5
    follow(log, old_records(1))
    assert log.epochs.entries == []
    log.close()
    log = opened(tmp_path, clean=True)
    assert log.epochs.entries == []
    follow(log, old_records(2))
    assert log.epochs.entries == []
