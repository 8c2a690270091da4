"""What a manager leaves on a disk that loses power at any moment: the next one starts, and finds what was sure."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from managed import ID, ORDERS, PAYMENTS, SMALL, T0, append
from simulated_disk import SimulatedDisk
from small_logs import bases

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager

CONFIG = ManagerConfig(log_dirs=("/data/logs",), num_recovery_threads_per_data_dir=1)
TICK_MS = 60_000


def manager(disk: SimulatedDisk) -> LogManager:
    default = replace(SMALL, retention_bytes=3_000, file_delete_delay_ms=0)
    return LogManager(disk, CONFIG, lambda: T0, lambda: 0.0, lambda: "0" * 32, default=default)


def crashes(disk: SimulatedDisk, act: Callable[[], object]) -> list[SimulatedDisk]:
    """The disk after a power failure at every call of what is done, with some or all of what is not sure lost."""
    left: list[SimulatedDisk] = []
    disk.on_call = lambda: left.extend(
        disk.after_power_failure(lost, seed) for lost, seed in ((0.0, 0), (0.5, 1), (0.5, 2), (1.0, 0))
    )
    act()
    disk.on_call = lambda: None
    return left


def started(disk: SimulatedDisk) -> LogManager:
    """A manager that has found nothing damaged."""
    made = manager(disk)
    found = made.start()
    assert (found.unopened, found.damaged) == ((), ())
    return made


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_folder("/data")
    disk.sync_folder("/")
    return disk


def test_what_was_flushed_outlives_a_crash_at_any_call_of_a_tick(disk: SimulatedDisk) -> None:
    running = started(disk)
    log = running.get_or_create(ORDERS, ID)
    append(log, 60)
    running.get_or_create(PAYMENTS, ID)
    log.flush()
    append(log, 30)
    for left in crashes(disk, lambda: running.tick(T0 + TICK_MS)):
        again = started(left)
        found = again.log(ORDERS)
        assert 60 <= found.log_end_offset <= 90
        assert bases(log)[0] >= found.log_start_offset
        assert found.recovery_point <= found.log_end_offset
        assert PAYMENTS in again.partitions()


def test_a_mark_of_a_clean_stop_is_there_only_with_all_that_was_appended(disk: SimulatedDisk) -> None:
    running = started(disk)
    append(running.get_or_create(ORDERS, ID), 40)
    append(running.get_or_create(PAYMENTS, ID), 7)
    marked = 0
    for left in crashes(disk, lambda: running.stop(3)):
        again = started(left)
        (directory,) = again.directories
        if directory.was_clean:
            marked += 1
            assert [again.log(p).log_end_offset for p in again.partitions()] == [40, 7]
            assert again.broker_epoch == 3
    assert marked
    assert started(disk.after_power_failure()).directories[0].was_clean


def test_a_start_that_loses_power_anywhere_is_followed_by_one_that_finds_the_same(disk: SimulatedDisk) -> None:
    running = started(disk)
    append(running.get_or_create(ORDERS, ID), 40)
    running.log(ORDERS).flush()
    running.tick(T0 + TICK_MS)
    disk.unlock("/data/logs/.lock")
    for left in crashes(disk, lambda: started(disk)):
        assert started(left).log(ORDERS).log_end_offset == 40


def test_a_deleted_log_does_not_come_back_once_it_is_deleted(disk: SimulatedDisk) -> None:
    running = started(disk)
    append(running.get_or_create(ORDERS, ID), 40)
    running.log(ORDERS).flush()
    for left in crashes(disk, lambda: running.delete(ORDERS)):
        assert started(left).partitions() in ((), (ORDERS,))
    assert started(disk.after_power_failure()).partitions() == ()


def test_a_topic_s_id_is_whole_or_not_there(disk: SimulatedDisk) -> None:
    running = started(disk)
    for left in crashes(disk, lambda: running.get_or_create(ORDERS, ID)):
        started(left).get_or_create(ORDERS, ID)
