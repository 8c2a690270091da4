"""What a manager does by itself when it is ticked: flushes, checkpoints, retention, idle producers."""

from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import batch, record
from managed import ORDERS, PAYMENTS, SMALL, T0, World, append, checkpoint
from small_logs import bases

from local_log.formats.filenames import TopicPartition

HW, POINTS, STARTS = "replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"


@pytest.fixture
def world() -> World:
    return World()


def test_each_checkpoint_is_written_when_its_setting_says(world: World, tmp_path: Path) -> None:
    settings = {
        "initial_task_delay_ms": 1_000,
        "flush_offset_checkpoint_interval_ms": 4_000,
        "flush_start_offset_checkpoint_interval_ms": 6_000,
        "high_watermark_checkpoint_interval_ms": 500,
    }
    manager = world.start(tmp_path, settings=settings)
    log = manager.get_or_create(ORDERS)
    written: dict[str, list[int]] = {HW: [], POINTS: [], STARTS: []}
    for ms in range(0, 14_000, 500):
        append(log)
        log.flush()
        log.maybe_increment_log_start_offset(log.log_end_offset)
        before = {name: (tmp_path / name).read_bytes() if (tmp_path / name).exists() else b"" for name in written}
        world.now = T0 + ms
        assert manager.tick(world.now) == ()
        for name, times in written.items():
            if (tmp_path / name).exists() and (tmp_path / name).read_bytes() != before[name]:
                times.append(ms)
    assert written == {HW: list(range(0, 14_000, 500)), POINTS: [1_000, 5_000, 9_000, 13_000], STARTS: [1_000, 7_000, 13_000]}
    assert checkpoint(tmp_path, HW) == {"orders-0": 28}


def test_a_checkpoint_is_replaced_in_one_step_and_not_written_again_without_need(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS))
    world.later(manager, 0)
    made = f"{tmp_path}/{HW}.tmp"
    steps = [("write", made), ("truncate", made), ("sync", made), ("rename", made), ("sync_folder", str(tmp_path))]
    assert world.disk.asked[-5:] == steps
    world.disk.asked.clear()
    world.later(manager, 5_000)
    assert world.disk.asked == []


def test_a_log_start_offset_is_written_down_only_above_the_first_segment(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path, default=replace(SMALL, segment_bytes=100))
    log = manager.get_or_create(ORDERS)
    append(log, 50)
    log.maybe_increment_log_start_offset(31)
    world.later(manager, 30_000)  # retention goes first, and takes what is below
    assert bases(log)[0] == 31
    assert checkpoint(tmp_path, STARTS) == {}


def test_the_log_start_offset_of_a_tiered_log_is_always_written_down(world: World, tmp_path: Path) -> None:
    archived = {ORDERS: 30}
    manager = world.start(
        tmp_path,
        default=replace(SMALL, segment_bytes=800, remote_storage_enable=True, local_retention_bytes=0, retention_bytes=10**9),
        archived_through=lambda partition: archived.get(partition, -1),
    )
    log, other = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    append(log, 50)
    append(other, 50)
    world.later(manager, 30_000)
    assert bases(log) == [30, 40]
    assert bases(other) == [0, 10, 20, 30, 40]
    log.maybe_increment_log_start_offset(21)
    world.later(manager, 60_000)
    assert checkpoint(tmp_path, STARTS) == {"orders-0": 21, "payments-3": 0}


def test_a_log_is_flushed_once_its_time_without_a_flush_is_over(world: World, tmp_path: Path) -> None:
    manager = world.start(
        tmp_path,
        settings={"flush_scheduler_interval_ms": 100, "initial_task_delay_ms": 0},
        topics={"orders": replace(SMALL, flush_ms=1000)},
    )
    log, other = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    append(log, 3)
    append(other, 3)
    world.later(manager, 999)
    assert log.recovery_point == 0
    world.later(manager, 1)
    assert log.recovery_point == 3
    assert log.local.last_flush_ms == world.now
    assert other.recovery_point == 0


@pytest.mark.parametrize("policy", [("compact",), ("compact", "delete")])
def test_a_compacted_log_is_left_to_its_cleaner(world: World, tmp_path: Path, policy: tuple[str, ...]) -> None:
    settings = {"cleaner_enable": False}
    manager = world.start(tmp_path, default=replace(SMALL, retention_ms=1, cleanup_policy=policy), settings=settings)
    log = manager.get_or_create(ORDERS)
    append(log, 200)
    before = bases(log)
    world.later(manager, 10**9)
    assert bases(log) == before


def test_retention_is_looked_at_as_often_as_its_setting_says(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path, default=replace(SMALL, retention_bytes=2000), settings={"retention_check_interval_ms": 7_000})
    log = manager.get_or_create(ORDERS)
    append(log, 200)
    segments = len(bases(log))
    world.later(manager, 29_999)
    assert len(bases(log)) == segments
    world.later(manager, 1)
    assert len(bases(log)) == 3
    append(log, 200)
    segments = len(bases(log))
    world.later(manager, 6_999)
    assert len(bases(log)) == segments
    world.later(manager, 1)
    assert len(bases(log)) == 3


def test_idle_producers_are_forgotten(world: World, tmp_path: Path) -> None:
    settings = {"producer_id_expiration_ms": 10_000, "producer_id_expiration_check_interval_ms": 4_000}
    manager = world.start(tmp_path, settings=settings)
    log = manager.get_or_create(ORDERS)
    log.append_as_leader(
        batch(record(), producer_id=9, producer_epoch=0, base_sequence=0, base_timestamp=T0, max_timestamp=T0), 0
    )
    world.later(manager, 8_000)
    assert set(log.producers.producers) == {9}
    world.later(manager, 3_999)
    assert set(log.producers.producers) == {9}
    world.later(manager, 1)
    assert set(log.producers.producers) == set()


def test_a_log_that_gives_trouble_is_told_of_and_the_others_are_looked_after(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path, default=replace(SMALL, retention_bytes=1000))
    names = [TopicPartition("t", number) for number in range(3)]
    for partition in names:
        append(manager.get_or_create(partition), 100)
    (tmp_path / "t-1" / "00000000000000000000.log").unlink()
    (problem,) = world.later(manager, 30_000)
    assert "t-1" in str(problem)
    assert [len(bases(manager.log(partition))) for partition in names][::2] == [2, 2]
    assert manager.partitions() == tuple(names)


def test_the_high_watermark_of_a_log_without_other_replicas_is_its_end_and_is_written_down_as_scheduled(
    world: World, tmp_path: Path
) -> None:
    manager = world.start(tmp_path, only_replica=True)
    log = manager.get_or_create(ORDERS)
    written = []
    for _ in range(3):
        append(log, 5, replicated=False)
        world.later(manager, 2_500)
        written.append(checkpoint(tmp_path, HW)["orders-0"])
    assert (written, log.high_watermark) == ([5, 10, 10], 15)


def test_after_a_crash_the_high_watermark_of_an_only_replica_is_at_the_end_again_whatever_was_written_down(
    world: World, tmp_path: Path
) -> None:
    manager = world.start(tmp_path, only_replica=True)
    log = manager.get_or_create(ORDERS)
    world.later(manager, 0)
    append(log, 5, replicated=False)
    log.roll()
    archived = log.log_end_offset
    world.disk.release(str(tmp_path))
    for directory in manager.directories:
        directory.unlock()
    assert checkpoint(tmp_path, HW) == {"orders-0": 0}
    assert world.start(tmp_path, only_replica=True).log(ORDERS).high_watermark >= archived
