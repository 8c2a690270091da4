"""What is due when."""

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.maintenance import scheduled
from local_log.engine.manager.schedule import Schedule, Task


def test_a_task_is_due_after_its_delay_and_then_every_period() -> None:
    schedule = Schedule.beginning(1000, {Task.FLUSH: (30, 10)})
    due = [now for now in range(1000, 1100) if schedule.due(now)]
    assert due == list(range(1030, 1100, 10))


def test_a_task_that_is_late_is_done_once_and_keeps_its_step() -> None:
    schedule = Schedule.beginning(0, {Task.FLUSH: (30, 10)})
    assert schedule.due(77) == [Task.FLUSH]
    assert schedule.due(79) == []
    assert schedule.due(80) == [Task.FLUSH]


def test_a_period_of_0_is_every_time() -> None:
    schedule = Schedule.beginning(0, {Task.FLUSH: (0, 0)})
    assert [schedule.due(now) for now in (0, 1, 1)] == [[Task.FLUSH]] * 3


def test_a_clock_that_is_put_back_delays_nothing() -> None:
    schedule = Schedule.beginning(1_000_000, {Task.FLUSH: (10, 10)})
    assert schedule.due(1_000_010) == [Task.FLUSH]
    assert schedule.due(5) == []
    assert schedule.due(14) == []
    assert schedule.due(15) == [Task.FLUSH]


def test_every_task_has_the_settings_of_its_own() -> None:
    config = ManagerConfig(
        initial_task_delay_ms=1,
        retention_check_interval_ms=2,
        flush_scheduler_interval_ms=3,
        flush_offset_checkpoint_interval_ms=4,
        flush_start_offset_checkpoint_interval_ms=5,
        high_watermark_checkpoint_interval_ms=6,
        producer_id_expiration_check_interval_ms=7,
        cleaner_backoff_ms=8,
    )
    schedule = scheduled(config, 100)
    assert schedule.period_ms == {
        Task.RETENTION: 2,
        Task.FLUSH: 3,
        Task.RECOVERY_POINTS: 4,
        Task.LOG_START_OFFSETS: 5,
        Task.HIGH_WATERMARKS: 6,
        Task.PRODUCERS: 7,
        Task.CLEANING: 8,
    }
    assert schedule.next_ms == dict.fromkeys(Task, 101) | {Task.HIGH_WATERMARKS: 100, Task.PRODUCERS: 107, Task.CLEANING: 100}
