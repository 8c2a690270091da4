"""What has to be on the device before what, so that no crash finds the later without the earlier."""

from collections.abc import Callable, Iterator

from lived_logs import batch, checkpoint_recovery_point, empty_disk, start, stop
from simulated_disk import SimulatedDisk
from sound_logs import check_sound, summary

from local_log.engine.unified_log import UnifiedLog

SEEDS = range(10)


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
