"""What of a log may go by time, size, start offset and archive, and what is left of it then."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from managed import ORDERS, SMALL, T0, World, append, one
from small_logs import bases

from local_log.engine.config import LogConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.manager.retention import Decision, Limits, below, beyond_size, deletable, delete_old_segments, older_than
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import OffsetOutOfRange

BATCH = len(one())
NEVER = LogConfig(segment_bytes=BATCH + 9, segment_index_bytes=4096, retention_ms=-1)
"""A batch a segment."""
TIERED = replace(NEVER, remote_storage_enable=True)


@dataclass(frozen=True)
class Part:
    """A segment of which only this is known."""

    base_offset: int
    size: int = 10
    largest_timestamp: int = T0


PARTS = (Part(0), Part(10), Part(20), Part(30))
ALL = Limits(log_start_offset=0, high_watermark=40, log_end_offset=40, archived_through=None, rolls=False)


def going(breaks: Any, limits: Limits = ALL, parts: tuple[Part, ...] = PARTS) -> list[int]:
    return [part.base_offset for part in deletable(parts, breaks, limits).segments]


def always(_part: Part, _following: Part | None) -> bool:
    return True


def test_segments_go_from_the_oldest_on_until_the_first_that_stays() -> None:
    assert going(lambda part, _: part.base_offset != 20) == [0, 10]
    assert going(lambda part, _: part.base_offset > 0) == []


def test_what_is_not_replicated_stays() -> None:
    assert going(always, replace(ALL, high_watermark=29)) == [0, 10]
    assert going(always, replace(ALL, high_watermark=30)) == [0, 10, 20]
    assert going(always, replace(ALL, high_watermark=39)) == [0, 10, 20]
    assert going(always) == [0, 10, 20, 30]


def test_an_empty_last_segment_stays_and_an_empty_one_before_it_goes() -> None:
    assert going(always, parts=(Part(0, size=0), Part(10), Part(20, size=0)), limits=replace(ALL, log_end_offset=20)) == [0, 10]


@pytest.mark.parametrize(
    ("archived_through", "gone"), [(-1, []), (8, []), (9, [0]), (28, [0, 10]), (29, [0, 10, 20]), (39, [0, 10, 20, 30])]
)
def test_of_a_tiered_log_only_segments_wholly_in_the_archive_go(archived_through: int, gone: list[int]) -> None:
    assert going(always, replace(ALL, archived_through=archived_through)) == gone


def test_of_a_tiered_log_segments_below_its_start_go_without_the_archive() -> None:
    assert going(always, replace(ALL, archived_through=-1, log_start_offset=20)) == [0, 10]
    assert going(always, replace(ALL, archived_through=-1, log_start_offset=19)) == [0]


def test_the_active_segment_of_a_tiered_log_is_rolled_so_that_it_can_be_archived() -> None:
    limits = replace(ALL, archived_through=29, rolls=True)
    assert deletable(PARTS, always, limits) == Decision(PARTS[:3], roll=True)
    assert not deletable(PARTS, always, replace(limits, high_watermark=39)).roll
    assert not deletable((Part(0, size=0),), always, replace(limits, log_end_offset=0)).roll


def test_size_counts_down_to_what_the_log_may_have_and_no_further() -> None:
    assert going(beyond_size(0)) == []
    assert going(beyond_size(9)) == []
    assert going(beyond_size(10)) == [0]
    assert going(beyond_size(25)) == [0, 10]
    assert going(beyond_size(40)) == [0, 10, 20, 30]


def test_a_segment_is_too_old_when_its_greatest_timestamp_is_longer_ago_than_the_retention() -> None:
    assert going(older_than(100, T0 + 100)) == []
    assert going(older_than(100, T0 + 101)) == [0, 10, 20, 30]


def test_a_segment_is_below_the_start_when_the_next_one_does_not_begin_behind_it() -> None:
    assert going(below(20)) == [0, 10]
    assert going(below(19)) == [0]
    assert going(below(1000)) == [0, 10, 20]


# On a log


@pytest.fixture
def world() -> World:
    return World()


def made(world: World, folder: Path, config: LogConfig, batches: int = 6, **how: Any) -> tuple[LogManager, UnifiedLog]:
    manager = world.start(folder, default=config)
    log = manager.get_or_create(ORDERS)
    append(log, batches, **how)
    return manager, log


def test_time_takes_all_segments_that_are_too_old_and_the_log_goes_on_at_its_end(world: World, tmp_path: Path) -> None:
    manager, log = made(world, tmp_path, replace(SMALL, retention_ms=600_000), 200)
    assert len(bases(log)) > 5
    world.later(manager, 600_001)
    assert bases(log) == [200]
    assert (log.log_start_offset, log.log_end_offset) == (200, 200)
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1024)
    assert log.read(200, 1024).records == b""
    world.later(manager, SMALL.file_delete_delay_ms)
    assert len(log.local.segments.active.offset_index) == len(log.local.segments.active.time_index) == 0  # which makes the files
    left = sorted(f.name.partition(".")[2] for f in (tmp_path / "orders-0").iterdir())
    assert left == ["", "index", "log", "snapshot", "timeindex"]
    append(log)
    assert log.log_end_offset == 201


def test_a_segment_without_timestamps_is_as_old_as_its_file(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, replace(NEVER, retention_ms=1000), timestamp=-1)
    for file in (tmp_path / "orders-0").glob("*.log"):
        os.utime(file, ns=(0, (T0 - 5000 if "000001" in file.name or "000000.log" in file.name else T0) * 1_000_000))
    assert delete_old_segments(log, T0) == 2
    assert bases(log) == [2, 3, 4, 5]


def test_a_timestamp_of_the_future_keeps_its_segment_and_those_behind_it(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, replace(NEVER, retention_ms=1000, message_timestamp_after_max_ms=10**15), 1)
    append(log, 1, timestamp=T0 + 10**9)
    append(log, 1)
    delete_old_segments(log, T0 + 5000)
    assert bases(log) == [1, 2]


@pytest.mark.parametrize(
    ("retention_bytes", "left"),
    [(6 * BATCH, 6), (6 * BATCH + 1, 6), (6 * BATCH - 1, 6), (5 * BATCH, 5), (2 * BATCH + 10, 3), (0, 1), (-1, 6), (-7, 6)],
)
def test_size_keeps_at_least_so_many_bytes(world: World, tmp_path: Path, retention_bytes: int, left: int) -> None:
    _, log = made(world, tmp_path, replace(NEVER, retention_bytes=retention_bytes))
    assert log.local.segments.size == 6 * BATCH
    deleted = delete_old_segments(log, T0)
    assert len(bases(log)) == left
    assert log.log_start_offset == bases(log)[0] == deleted


def test_what_is_not_replicated_stays_in_the_log(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, replace(NEVER, retention_bytes=0), replicated=False)
    assert delete_old_segments(log, T0) == 0
    log.update_high_watermark(3)
    assert delete_old_segments(log, T0) == 3
    assert (log.log_start_offset, bases(log)) == (3, [3, 4, 5])


def test_segments_below_the_start_offset_go_under_every_policy(world: World, tmp_path: Path) -> None:
    for number, policy in enumerate([("delete",), ("compact",), ("compact", "delete"), ()]):
        config = replace(NEVER, cleanup_policy=policy)
        manager, log = made(world, tmp_path / f"log-{number}", replace(NEVER))
        log.folder.config = config
        log.maybe_increment_log_start_offset(4)
        assert delete_old_segments(log, T0) == 4
        assert bases(log) == [4, 5]
        manager.stop()


@pytest.mark.parametrize("policy", [("compact",), ()])
def test_without_delete_in_the_policy_nothing_goes_by_time_or_size(world: World, tmp_path: Path, policy: tuple[str, ...]) -> None:
    _, log = made(world, tmp_path, replace(NEVER, retention_ms=1, retention_bytes=1))
    log.folder.config = replace(log.folder.config, cleanup_policy=policy)
    assert delete_old_segments(log, T0 + 10**9) == 0


def test_snapshots_and_files_of_what_went_wait_for_the_delay(world: World, tmp_path: Path) -> None:
    manager, log = made(world, tmp_path, replace(NEVER, retention_bytes=2 * BATCH, file_delete_delay_ms=1000))
    assert delete_old_segments(log, T0) == 4
    folder = tmp_path / "orders-0"
    assert len(list(folder.glob("*.log.deleted"))) == 4
    assert len(list(folder.glob("*.snapshot.deleted"))) == 3  # before offset 0 there is none
    world.later(manager, 999)
    assert len(list(folder.glob("*.log.deleted"))) == 4
    world.later(manager, 1)
    assert list(folder.glob("*.deleted")) == []


# Tiered


def test_nothing_of_a_tiered_log_goes_before_it_is_archived(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, replace(TIERED, local_retention_bytes=0, retention_bytes=10**9))
    assert delete_old_segments(log, T0) == 0
    assert log.log_start_offset == log.local_log_start_offset == 0


def test_what_is_archived_goes_by_local_retention_and_only_the_local_start_moves(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, replace(TIERED, local_retention_bytes=0, retention_bytes=10**9))
    log.highest_offset_in_archive = 3
    assert delete_old_segments(log, T0) == 4
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 4)
    assert bases(log)[0] == 4


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ({"local_retention_bytes": -2, "retention_bytes": 2 * BATCH}, 4),
        ({"local_retention_bytes": 3 * BATCH, "retention_bytes": 4 * BATCH}, 3),
        ({"local_retention_bytes": -1, "retention_bytes": 1}, 0),
        ({"local_retention_ms": -2, "retention_ms": 100}, 5),
        ({"local_retention_ms": 100, "retention_ms": 10**12}, 5),
        ({"local_retention_ms": 10**12, "retention_ms": 100}, 0),
        ({"local_retention_bytes": 3 * BATCH, "cleanup_policy": ()}, 3),
        ({"local_retention_bytes": 3 * BATCH, "remote_log_copy_disable": True}, 0),
        ({"local_retention_bytes": 3 * BATCH, "retention_bytes": 5 * BATCH, "remote_log_copy_disable": True}, 1),
    ],
)
def test_local_retention_says_what_an_archived_log_keeps_here(
    world: World, tmp_path: Path, settings: dict[str, Any], gone: int
) -> None:
    _, log = made(world, tmp_path, TIERED)
    log.folder.config = replace(TIERED, **settings)
    log.highest_offset_in_archive = 4
    assert delete_old_segments(log, T0 + 1000) == gone
    start = gone if settings.get("remote_log_copy_disable") else 0
    assert (log.log_start_offset, bases(log)[0]) == (start, gone)


def test_a_tiered_log_s_segments_below_its_local_start_go_once_they_are_archived(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, TIERED)
    log.highest_offset_in_archive = 2
    log.local_log_start_offset = 5
    assert delete_old_segments(log, T0) == 3
    assert (log.log_start_offset, log.local_log_start_offset, bases(log)[0]) == (0, 5, 3)


def test_an_old_active_segment_of_a_tiered_log_is_rolled_then_archived_then_deleted(world: World, tmp_path: Path) -> None:
    _, log = made(world, tmp_path, replace(TIERED, local_retention_ms=100), 1, replicated=False)
    assert delete_old_segments(log, T0 + 1000) == 0
    assert bases(log) == [0]
    log.update_high_watermark(1)
    assert delete_old_segments(log, T0 + 1000) == 0
    assert bases(log) == [0, 1]
    log.highest_offset_in_archive = 0
    assert delete_old_segments(log, T0 + 1000) == 1
    assert (bases(log), log.local_log_start_offset, log.log_start_offset) == ([1], 1, 0)


def test_a_restart_keeps_both_starts_of_a_tiered_log(world: World, tmp_path: Path) -> None:
    manager, log = made(world, tmp_path, replace(TIERED, local_retention_bytes=0, retention_bytes=10**9))
    log.highest_offset_in_archive = 3
    log.maybe_increment_log_start_offset(2)
    delete_old_segments(log, T0)
    manager.stop()
    log = world.start(tmp_path, default=TIERED).log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset) == (2, 4)
