"""The metrics of the log cleaner: of its last rounds, of what it is behind with, and of what it leaves alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damage import flip
from hand_made import batch, record
from managed import ORDERS, PAYMENTS, SMALL, T0, World

from local_log.engine.config import LogConfig
from local_log.engine.manager import log_cleaner
from local_log.engine.manager.cleaner_status import CleanerStats, CleanerStatus, Round
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Corrupt

COMPACT = replace(SMALL, cleanup_policy=("compact",), segment_bytes=200, file_delete_delay_ms=0)
KEYS_MAX = 1_000


@pytest.fixture
def world() -> World:
    return World()


def start(world: World, folder: Path, config: LogConfig = COMPACT, **settings: Any) -> LogManager:
    small = {"cleaner_dedupe_buffer_size": 24 * KEYS_MAX}
    return world.start(folder, default=config, settings=small | settings, only_replica=True)


def status(manager: LogManager) -> CleanerStatus:
    found = manager.cleaner_status()
    assert found is not None
    return found


def put_many(log: UnifiedLog, count: int, keys: int = 2) -> None:
    for n in range(count):
        one = batch(record(key=b"key-%d" % (n % keys), value=b"%d" % n), base_timestamp=T0, max_timestamp=T0)
        log.append_as_leader(one, 0)


def test_a_round_tells_what_it_kept_and_how_full_its_map_was(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    log = manager.get_or_create(ORDERS)
    put_many(log, 60, keys=20)
    before = log.local.segments.size - log.local.segments.active.size
    world.later(manager, 0)
    after = log.local.segments.size - log.local.segments.active.size
    now = status(manager)
    assert 0 < now.recopy_percent == 100 * after // before < 50
    assert now.max_buffer_utilization_percent == 100 * 20 // KEYS_MAX
    assert (now.dead_threads, now.time_since_last_run_ms, now.max_dirty_percent) == (0, 0, 0)
    assert now.uncleanable == {str(tmp_path): (0, 0)}


def test_a_log_that_is_not_dirty_enough_is_told_and_how_late_one_is(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path, replace(COMPACT, min_cleanable_dirty_ratio=1.0))
    put_many(manager.get_or_create(ORDERS), 12)
    world.later(manager, 0)
    assert status(manager).max_dirty_percent == 100
    assert status(manager).max_compaction_delay_secs == 0
    world.now += 7
    assert status(manager).time_since_last_run_ms == 7


def test_what_is_left_alone_is_counted_by_directory(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    damaged = manager.get_or_create(ORDERS)
    put_many(damaged, 12)
    put_many(manager.get_or_create(PAYMENTS), 12)
    flip(tmp_path / "orders-0" / f"{0:020}.log", 70)
    (error,) = world.later(manager, 0)
    assert isinstance(error, Corrupt)
    inactive = damaged.local.segments.size - damaged.local.segments.active.size
    assert status(manager).uncleanable == {str(tmp_path): (1, inactive)}


def test_a_thread_that_ends_with_an_exception_is_counted(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = start(world, tmp_path)
    put_many(manager.get_or_create(ORDERS), 12)

    def fails(*args: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(log_cleaner, "clean", fails)
    with pytest.raises(KeyboardInterrupt):
        world.later(manager, 0)
    assert status(manager).dead_threads == 1


def test_without_compacted_logs_it_runs_and_if_it_is_disabled_it_has_no_metrics(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path, SMALL)
    manager.get_or_create(ORDERS)
    world.later(manager, 15_000)
    assert status(manager).time_since_last_run_ms == 0
    manager.stop()
    assert start(world, tmp_path, cleaner_enable=False).cleaner_status() is None


def test_of_several_threads_the_longest_and_the_fullest_count_and_bytes_are_added() -> None:
    stats = CleanerStats(T0)
    stats.cleaned(1, Round(900, 9, 1_000, 0.9))
    stats.cleaned(1, Round(300, 100, 2_500, 0.25))
    stats.cleaned(2, Round(700, 400, 9_999, 0.125))
    now = stats.status(T0, {})
    assert (now.recopy_percent, now.max_clean_time_secs, now.max_buffer_utilization_percent) == (50, 9, 25)
