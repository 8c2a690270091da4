"""All producers of a log: which of them are kept, which transactions are open, and what their snapshots bring back."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hand_made import CONTROL, TRANSACTIONAL, batch
from producers_at_work import TIMEOUT_MAX_MS, Producers, data
from small_logs import NOW

from local_log.engine.errors import TransactionCoordinatorFenced
from local_log.engine.memory_records import batch_at
from local_log.engine.producers.manager import LATE_TRANSACTION_BUFFER_MS
from local_log.engine.producers.replay import marker_of
from local_log.engine.producers.state import BatchMetadata, CompletedTxn, Origin
from local_log.errors import Invalid
from local_log.formats.record import NO_SEQUENCE

LATE_MS = TIMEOUT_MAX_MS + LATE_TRANSACTION_BUFFER_MS


@pytest.fixture
def log(tmp_path: Path) -> Producers:
    return Producers(tmp_path)


# Open transactions


def test_an_open_transaction_is_unstable_from_its_first_offset_on(log: Producers) -> None:
    log.write(0, 992_342, transactional=True)
    log.write(1, 992_343, transactional=True)
    assert log.state.first_unstable_offset == 992_342


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_is_unstable_until_its_end_is_replicated(log: Producers, version: int) -> None:
    after = 6 if version == 2 else 5
    seen = []

    def look() -> None:
        seen.append((log.state.first_undecided_offset, log.state.first_unstable_offset))

    look()
    log.write(0, 99, epoch=5, transactional=True)
    look()
    log.write(0, 105, producer=2, epoch=5, transactional=True)
    look()
    log.end(109, epoch=after, version=version)
    look()
    for watermark in (100, 109, 110):
        log.state.on_high_watermark(watermark)
        look()
    log.end(112, producer=2, epoch=after, abort=True, version=version)
    look()
    log.state.on_high_watermark(113)
    look()
    assert seen == [
        (None, None),
        (99, 99),
        (99, 99),
        (105, 99),  # decided, and the high watermark is below its end
        (105, 99),
        (105, 99),
        (105, 105),
        (None, 105),
        (None, None),
    ]


def test_the_last_stable_offset_after_an_end_is_the_first_offset_of_another_open_transaction(log: Producers) -> None:
    for producer, first in ((1, 1000), (2, 1025), (3, 1057)):
        log.write(0, first, producer=producer, transactional=True)
    seen = []
    for producer, first, last in ((1, 1000, 1072), (3, 1057, 1092), (2, 1025, 1170)):
        txn = CompletedTxn(producer, first, last, is_aborted=False)
        last_stable = log.state.last_stable_offset(txn)
        log.state.complete(txn)
        log.state.on_high_watermark(last + 1)
        seen.append((last_stable, log.state.first_unstable_offset))
    assert seen == [(1025, 1025), (1025, 1025), (1171, None)]


def test_an_end_of_a_transaction_that_is_not_open_is_a_mistake(log: Producers) -> None:
    with pytest.raises(Invalid, match="ends a transaction that is not open"):
        log.state.complete(CompletedTxn(1, 5, 6, is_aborted=False))


def test_a_control_batch_that_compaction_has_emptied_ends_nothing(log: Producers) -> None:
    emptied = batch(base_offset=15, attributes=CONTROL | TRANSACTIONAL, producer_id=1, producer_epoch=0, last_delta=0)
    assert marker_of(batch_at(emptied, 0), emptied) is None
    log.state.update(log.prepare())
    assert log[1].txn_first_offset is None


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_is_late_when_its_producer_is_silent_for_longer_than_any_may_be(log: Producers, version: int) -> None:
    raised = version == 2
    log.write(0, 100, producer=39, epoch=2, transactional=True)
    log.clock.sleep(500)
    log.write(0, 150, producer=57, epoch=9, transactional=True)
    log.clock.sleep(LATE_MS - 500)
    assert not log.state.has_late_transaction()
    log.clock.sleep(1)
    assert log.state.has_late_transaction()
    log.clock.sleep(500)
    log.end(200, producer=39, epoch=2 + raised, version=version)
    assert log.state.has_late_transaction()
    log.end(250, producer=57, epoch=9 + raised, version=version)
    assert not log.state.has_late_transaction()


def test_a_late_transaction_is_still_late_after_a_start(log: Producers) -> None:
    log.write(0, 100, producer=39, epoch=2, transactional=True)
    log.clock.sleep(500)
    log.write(0, 150, producer=57, epoch=9, transactional=True)
    log.state.take_snapshot()
    log.clock.sleep(LATE_MS - 499)
    log.reopen().truncate_and_reload(0, 151)
    assert log.state.has_late_transaction()


@pytest.mark.parametrize(
    "truncate", [lambda state: state.truncate_and_reload(0, 80), lambda state: state.truncate_fully_and_start_at(150)]
)
def test_a_late_transaction_that_is_truncated_away_is_late_no_more(log: Producers, truncate: Callable[[object], None]) -> None:
    log.write(0, 100, epoch=2, transactional=True)
    log.clock.sleep(LATE_MS + 1)
    assert log.state.has_late_transaction()
    truncate(log.state)
    assert not log.state.has_late_transaction()


def test_truncation_into_a_transaction_opens_it_again(log: Producers) -> None:
    log.write(0, 99, transactional=True)
    log.state.take_snapshot()
    log.end(105)
    log.state.on_high_watermark(106)
    log.state.take_snapshot()
    log.write(1, 106)
    log.state.truncate_and_reload(0, 106)
    assert log.state.first_unstable_offset is None
    log.state.truncate_and_reload(0, 100)
    assert log.state.first_unstable_offset == 99


# Which producers are kept


def test_a_producer_that_was_idle_for_too_long_is_forgotten_and_may_go_on_all_the_same(log: Producers) -> None:
    log.write(0, 1, epoch=5)
    log.clock.sleep(log.state.expiration_ms - 1)
    log.state.expire()
    assert 1 in log.state.producers
    log.clock.sleep(1)
    log.state.expire()
    assert log.state.producers == {}
    log.write(1, 2, epoch=5)
    assert log[1].last_sequence == 1
    assert log.state.map_end_offset == 3


def test_a_producer_with_an_open_transaction_is_never_forgotten(log: Producers) -> None:
    log.write(0, 99, epoch=5, transactional=True)
    log.clock.sleep(10 * log.state.expiration_ms)
    log.state.expire()
    assert (log[1].epoch, log.state.first_undecided_offset) == (5, 99)


def test_a_producer_whose_transaction_was_aborted_over_its_head_is_kept_for_its_epoch(log: Producers) -> None:
    log.write(0, 0, transactional=True)
    log.end(1, epoch=1, abort=True)
    assert (log[1].txn_first_offset, list(log[1].batches)) == (None, [])
    log.state.expire()
    assert log[1].epoch == 1


# Snapshots


def test_a_snapshot_is_a_file_of_the_offset_that_it_precedes(log: Producers) -> None:
    log.write(0, 0)
    log.write(1, 1)
    path = log.state.take_snapshot()
    assert path == f"{log.folder}/00000000000000000002.snapshot" == log.state.snapshot_file(2)
    assert log.snapshots == [2]
    assert (log.folder / "00000000000000000002.snapshot").stat().st_size > 0


def test_there_is_no_snapshot_where_none_was_taken(log: Producers) -> None:
    assert log.state.snapshot_file(1) is None


def test_no_second_snapshot_is_taken_where_nothing_was_written_since(log: Producers) -> None:
    log.write(0, 0)
    assert log.state.take_snapshot() is not None
    assert log.state.take_snapshot() is None
    assert log.snapshots == [1]


def test_what_a_snapshot_says_of_producers_comes_back_whole(log: Producers) -> None:
    log.write(3, 100, count=4, epoch=2, transactional=True, timestamp=-1)
    log.end(105, producer=11, epoch=12, coordinator=13)
    log.state.take_snapshot()
    log.reopen().truncate_and_reload(0, 106)
    first, second = log[1], log[11]
    assert (first.epoch, first.coordinator_epoch, first.last_timestamp, first.txn_first_offset) == (2, -1, -1, 100)
    assert list(first.batches) == [BatchMetadata(6, 103, 3, -1)]
    assert (second.epoch, second.coordinator_epoch, second.last_timestamp, second.txn_first_offset) == (12, 13, NOW, None)
    assert list(second.batches) == []


def test_an_open_transaction_is_read_back_with_the_last_batch_only(log: Producers) -> None:
    log.write(0, 0, transactional=True)
    log.write(1, 1, transactional=True)
    log.state.take_snapshot()
    log.reopen().truncate_and_reload(0, 3)
    assert (log[1].txn_first_offset, log.state.ongoing) == (0, {0: 1})
    assert [(b.first_sequence, b.last_sequence, b.first_offset, b.last_offset) for b in log[1].batches] == [(1, 1, 1, 1)]
    log.write(2, 2, transactional=True)


def test_an_ended_transaction_is_read_back_as_ended(log: Producers) -> None:
    log.write(0, 0, transactional=True)
    log.write(1, 1, transactional=True)
    log.end(2, abort=True)
    log.state.take_snapshot()
    log.reopen().truncate_and_reload(0, 3)
    assert (log[1].txn_first_offset, log.state.ongoing) == (None, {})
    assert [(b.first_sequence, b.first_offset) for b in log[1].batches] == [(1, 1)]


def test_a_producer_that_only_had_a_marker_is_read_back_with_its_time(log: Producers) -> None:
    log.end(0, abort=True)
    log.state.take_snapshot()
    log.clock.sleep(1000)
    log.reopen().truncate_and_reload(0, 1)
    assert (log[1].last_timestamp, log[1].txn_first_offset, log[1].last_sequence) == (NOW, None, NO_SEQUENCE)


def test_producers_that_are_idle_for_too_long_are_not_read_back(log: Producers) -> None:
    log.write(0, 0)
    log.write(1, 1)
    log.state.take_snapshot()
    log.clock.sleep(log.state.expiration_ms)
    log.reopen().truncate_and_reload(0, 2)
    assert log.state.producers == {}
    log.write(2, 2)
    assert (log[1].last_sequence, log.state.map_end_offset) == (2, 3)


def test_a_follower_takes_the_next_batch_of_a_producer_that_it_has_forgotten(log: Producers) -> None:
    log.write(0, 0)
    log.write(1, 1)
    log.state.take_snapshot()
    log.clock.sleep(log.state.expiration_ms)
    log.reopen().truncate_and_reload(0, 2)
    log.write(2, 2, origin=Origin.REPLICATION)
    assert [(b.first_sequence, b.last_sequence) for b in log[1].batches] == [(2, 2)]


def test_producers_that_are_not_idle_stay_when_the_log_starts_later(log: Producers) -> None:
    log.write(0, 0, producer=1)
    log.write(0, 1, producer=2)
    log.state.take_snapshot()
    log.state.truncate_and_reload(1, 2)
    assert {p: (e.last_sequence, e.batches[-1].last_offset) for p, e in log.state.producers.items()} == {1: (0, 0), 2: (0, 1)}


@pytest.mark.parametrize("version", [0, 2])
def test_a_replaced_coordinator_is_shut_out_after_a_start(log: Producers, version: int) -> None:
    epoch = 1 if version == 2 else 0
    log.write(0, 99, transactional=True)
    log.end(100, epoch=epoch, coordinator=1, version=version)
    log.state.take_snapshot()
    log.reopen().truncate_and_reload(0, 101)
    with pytest.raises(TransactionCoordinatorFenced):
        log.end(101, epoch=epoch + 1, coordinator=0, version=version)


def test_snapshots_outside_of_the_log_are_deleted_when_it_is_reloaded(log: Producers) -> None:
    for sequence in range(5):
        log.write(sequence, sequence)
        log.state.take_snapshot()
    log.state.truncate_and_reload(1, 3)
    assert log.state.snapshot_offsets == (2, 3)
    assert log.snapshots == [2, 3]
    assert (log.state.map_end_offset, log[1].last_sequence) == (3, 2)


def test_snapshots_below_an_offset_can_be_deleted(log: Producers) -> None:
    for sequence in range(3):
        log.write(sequence, sequence)
        log.state.take_snapshot()
    log.state.delete_snapshots_before(2)
    assert log.snapshots == [2, 3]
    log.state.delete_snapshots_before(4)
    assert log.snapshots == []


def test_a_full_truncation_deletes_all_snapshots_and_starts_from_nothing(log: Producers) -> None:
    log.write(0, 0)
    log.state.take_snapshot()
    log.write(1, 1)
    log.state.take_snapshot()
    log.state.truncate_fully_and_start_at(0)
    assert log.snapshots == []
    assert (log.state.producers, log.state.map_end_offset) == ({}, 0)
    log.write(0, 0)
    log.state.take_snapshot()
    assert log.snapshots == [1]


def test_snapshots_that_were_put_into_the_folder_are_found_when_they_are_listed_anew(log: Producers) -> None:
    log.write(1, 1, count=2)
    earlier = Path(log.state.take_snapshot() or "")
    content = earlier.read_bytes()
    log.write(3, 3, count=2)
    log.state.take_snapshot()
    log.state.truncate_and_reload(3, 5)
    assert log.snapshots == [5]
    earlier.write_bytes(content)
    log.state.truncate_fully_and_list_snapshots()
    assert log.snapshots == [3]
    assert log.state.snapshot_offsets == (3,)
    assert log.state.producers == {}


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda whole: b"", id="empty"),
        pytest.param(lambda whole: whole[: len(whole) // 2], id="torn"),
        pytest.param(lambda whole: bytes(37) + whole[37:], id="overwritten"),
    ],
)
def test_a_damaged_snapshot_is_deleted_and_the_one_before_is_taken(log: Producers, damaged: Callable[[bytes], bytes]) -> None:
    log.write(0, 0)
    log.state.take_snapshot()
    log.write(1, 1)
    newest = Path(log.state.take_snapshot() or "")
    newest.write_bytes(damaged(newest.read_bytes()))
    log.reopen().truncate_and_reload(0, 20)
    assert not newest.exists()
    assert (log.state.map_end_offset, log[1].batches[-1].last_offset) == (1, 0)


# Snapshots beside segments


def strays(log: Producers, *base_offsets: int) -> list[int]:
    for offset in (2, 5, 42):
        (log.folder / f"{offset:020d}.snapshot").touch()
    log.reopen().remove_stray_snapshots(base_offsets)
    assert log.state.snapshot_offsets == tuple(log.snapshots)
    return log.snapshots


def test_the_snapshot_of_a_clean_shutdown_stays_behind_the_last_segment(log: Producers) -> None:
    assert strays(log, 5) == [5, 42]


def test_snapshots_that_no_segment_starts_at_are_deleted(log: Producers) -> None:
    assert strays(log, 42) == [42]


def test_without_segments_the_newest_snapshot_stays(log: Producers) -> None:
    assert strays(log) == [42]


def test_a_snapshot_that_is_to_be_deleted_is_renamed_and_known_no_more(log: Producers) -> None:
    (log.folder / "00000000000000000005.snapshot").touch()
    assert log.reopen().snapshot_offsets == (5,)
    assert log.state.mark_snapshot_deleted(5) == f"{log.folder}/00000000000000000005.snapshot.deleted"
    assert log.state.snapshot_offsets == ()
    assert [file.name for file in log.folder.iterdir()] == ["00000000000000000005.snapshot.deleted"]


def test_a_snapshot_that_is_gone_when_it_is_to_be_deleted_is_known_no_more(log: Producers) -> None:
    file = log.folder / "00000000000000000005.snapshot"
    file.touch()
    log.reopen()
    file.unlink()
    assert log.state.mark_snapshot_deleted(5) is None
    assert log.state.snapshot_offsets == ()


def test_an_update_holds_the_last_five_batches_only(log: Producers) -> None:
    update = log.prepare()
    for sequence in range(8):
        update.append(data(sequence, sequence))
    log.state.update(update)
    assert [b.last_sequence for b in log[1].batches] == [3, 4, 5, 6, 7]
