"""What has to be on the device before what, so that no crash finds the later without the earlier."""

from collections.abc import Callable, Iterator

import hand_made
import pytest
from lived_logs import CLEAN, FOLDER, LOGS, batch, checkpoint_recovery_point, empty_disk, marker, start, stop
from simulated_disk import SimulatedDisk
from sound_logs import check_sound, summary

from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import OFFSET_INDEX, SNAPSHOT, TXN_INDEX, offset_file

SEEDS = range(5)


def new_log() -> tuple[SimulatedDisk, UnifiedLog]:
    disk = empty_disk()
    return disk, start(disk)


def append(log: UnifiedLog, *, epoch: int = 0, size: int = 1_000, **fields: int) -> bytes:
    written = batch(log.log_end_offset, epoch=epoch, size=size, **fields)
    log.append_as_follower(written.data, epoch)
    return written.data


def flush(log: UnifiedLog) -> None:
    """As a broker does, which writes down how far it has come."""
    log.flush()
    checkpoint_recovery_point(log)


def crashes_during(disk: SimulatedDisk, act: Callable[[], object]) -> Iterator[UnifiedLog]:
    """The log as it is opened after a crash at any call of what is done, some of it lost."""
    left: list[SimulatedDisk] = []
    disk.on_call = lambda: left.extend(disk.after_power_failure(lost, seed) for lost in (0.0, 0.5, 1.0) for seed in SEEDS)
    act()
    return map(start, left)


def test_a_segment_is_there_only_if_the_one_before_it_is_whole():
    disk, log = new_log()
    append(log)
    flush(log)
    append(log)
    append(log)
    for left in crashes_during(disk, log.roll):
        check_sound(left)


def test_the_indexes_of_a_segment_are_cut_before_the_next_one_is_there_though_its_batches_were_flushed_long_ago():
    disk, log = new_log()
    append(log)
    flush(log)
    log.roll()
    append(log, epoch=1)  # what it writes down makes the names sure
    left = start(disk.after_power_failure())
    assert left.local.segments.base_offsets == (0, 1)
    check_sound(left)


def test_what_a_clean_shutdown_leaves_outlives_a_power_failure():
    disk, log = new_log()
    append(log)
    append(log, producer_id=1, producer_epoch=0, base_sequence=0)
    before = summary(log)
    stop(log)
    left = start(disk.after_power_failure())
    assert summary(left) == before
    check_sound(left)


def test_a_new_log_s_folder_is_there_after_a_power_failure():
    disk, log = new_log()
    data = append(log)
    log.flush()
    left = start(disk.after_power_failure())
    assert [b.data for b in check_sound(left)] == [data]


def test_a_truncation_over_several_segments_leaves_no_hole_wherever_it_ends():
    disk, log = new_log()
    data = []
    for _ in range(4):
        data.append(append(log))
        log.roll()
    for left in crashes_during(disk, lambda: log.truncate_to(1)):
        found = [b.data for b in check_sound(left)]
        assert found == data[: len(found)]


def test_what_was_truncated_does_not_come_back_among_what_came_after_it():
    disk, log = new_log()
    for _ in range(3):
        append(log, size=5_000)
    log.roll()
    append(log)
    flush(log)
    log.truncate_to(1)
    checkpoint_recovery_point(log)
    for left in crashes_during(disk, lambda: append(log, epoch=1)):
        assert left.log_end_offset <= 2
        check_sound(left)


def test_a_snapshot_that_a_truncation_deleted_does_not_come_back():
    disk, log = new_log()
    append(log)
    append(log, producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll()
    append(log)
    flush(log)
    log.truncate_to(1)
    checkpoint_recovery_point(log)
    assert f"{FOLDER}/{offset_file(2, SNAPSHOT)}" not in disk.after_power_failure().contents(FOLDER)


def test_a_recovery_that_ends_anywhere_leaves_no_hole_behind_a_damaged_batch():
    disk, log = new_log()
    data = [append(log)]
    for _ in range(4):
        data.append(append(log))
        log.roll()
    disk.write(log.local.segments.first.log_file, len(data[0]) + 100, b"damage")
    disk = disk.after_kill()
    for left in crashes_during(disk, lambda: start(disk)):
        assert [b.data for b in check_sound(left)] == data[:1]


def test_a_log_that_begins_anew_is_a_beginning_of_the_old_one_or_the_new_one_wherever_it_ends():
    disk, log = new_log()
    data = []
    for _ in range(4):
        data.append(append(log))
        log.roll()
    flush(log)
    for left in crashes_during(disk, lambda: log.truncate_fully_and_start_at(20)):
        found = [b.data for b in check_sound(left)]
        assert found == data[: len(found)]
        assert left.log_end_offset == len(found) or (left.log_start_offset, found) == (20, [])
    assert start(disk.after_power_failure()).log_end_offset == 20


def test_what_a_log_that_is_only_closed_was_given_outlives_a_power_failure():
    disk, log = new_log()
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, attributes=hand_made.TRANSACTIONAL)
    log.append_as_follower(marker(1, commits=False, producer_id=1, producer_epoch=0).data, 0)
    before = summary(log)
    log.close()
    disk.write(CLEAN, 0, b"")
    disk.sync(CLEAN)
    disk.sync_folder(LOGS)
    left = start(disk.after_power_failure())
    assert summary(left) == before
    check_sound(left)


def stopped_without(*suffixes: str) -> SimulatedDisk:
    """A log with an aborted transaction in its first segment, cleanly stopped, where files of that segment are missing now."""
    disk, log = new_log()
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, attributes=hand_made.TRANSACTIONAL)
    append(log)
    log.append_as_follower(marker(2, commits=False, producer_id=1, producer_epoch=0).data, 0)
    append(log, size=9_000)
    append(log, size=9_000)
    assert log.local.segments.first.txn_index.all()
    stop(log)
    for suffix in suffixes:
        disk.delete(f"{FOLDER}/{offset_file(0, suffix)}")  # as people do: it may come back when the power fails
    return disk


@pytest.mark.parametrize("missing", [(OFFSET_INDEX,), (OFFSET_INDEX, TXN_INDEX)])
def test_an_aborted_transaction_that_a_start_found_again_outlives_a_power_failure_after_the_next_stop(missing: tuple[str, ...]):
    disk = stopped_without(*missing)
    log = start(disk)
    check_sound(log)
    stop(log)
    for lost in (0.5, 1.0):
        for seed in SEEDS:
            check_sound(start(disk.after_power_failure(lost, seed)))


@pytest.mark.parametrize("missing", [(OFFSET_INDEX,), (OFFSET_INDEX, TXN_INDEX)])
def test_a_start_that_finds_an_aborted_transaction_again_can_crash_anywhere(missing: tuple[str, ...]):
    disk = stopped_without(*missing)
    for left in crashes_during(disk, lambda: start(disk)):
        check_sound(left)
