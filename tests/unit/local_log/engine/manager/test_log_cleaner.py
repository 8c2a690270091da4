"""The log cleaner of a manager: which logs it cleans and when, its checkpoint, and what stops it."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damage import flip
from hand_made import batch, record
from managed import ORDERS, PAYMENTS, SMALL, T0, World, checkpoint

from local_log.engine.config import LogConfig
from local_log.engine.manager import log_cleaner
from local_log.engine.manager.background import Threads
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.manager.retention import Retained
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Corrupt, Invalid
from local_log.formats.batches import decode, scan
from local_log.formats.filenames import TopicPartition

COMPACT = replace(SMALL, cleanup_policy=("compact",), segment_bytes=200, file_delete_delay_ms=0)
CLEANER = "cleaner-offset-checkpoint"
BACKOFF_MS = 15_000


@pytest.fixture
def world() -> World:
    return World()


def start(world: World, folder: Path, config: LogConfig = COMPACT, **settings: Any) -> LogManager:
    small = {"cleaner_dedupe_buffer_size": 24 * 1000}
    return world.start(folder, default=config, settings=small | settings, only_replica=True)


def put(log: UnifiedLog, *pairs: tuple[bytes, bytes | None], time: int = T0) -> None:
    """A batch for each pair."""
    for key, value in pairs:
        log.append_as_leader(batch(record(key=key, value=value), base_timestamp=time, max_timestamp=time), 0)


def put_many(log: UnifiedLog, count: int, keys: int = 2) -> None:
    put(log, *((b"key-%d" % (n % keys), b"%d" % n) for n in range(count)))


def offsets_in(log: UnifiedLog) -> list[int]:
    """The offsets of the records that are there."""
    found: list[int] = []
    for segment in log.local.segments:
        data = segment.read(0, segment.size)
        batches, _ = scan(data)
        found += [row["offset"] for _, rows in decode(data, batches) for row in rows.to_pylist()]
    return found


def test_a_tick_cleans_the_logs_that_need_it_and_writes_where_the_next_round_begins(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    log = manager.get_or_create(ORDERS)
    put_many(log, 12)
    active = log.local.segments.active.base_offset
    assert world.later(manager, 0) == ()
    assert offsets_in(log) == [active - 2, active - 1, *range(active, 12)]
    assert checkpoint(tmp_path, CLEANER) == {"orders-0": active}


def test_logs_are_looked_at_again_after_the_backoff(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path, cleaner_backoff_ms=1_000)
    log = manager.get_or_create(ORDERS)
    world.later(manager, 0)
    put_many(log, 12)
    world.later(manager, 999)
    assert len(offsets_in(log)) == 12
    world.later(manager, 1)
    assert len(offsets_in(log)) < 12


@pytest.mark.parametrize(("ratio", "is_cleaned"), [(0.5, False), (0.1, True)])
def test_a_log_is_cleaned_when_more_than_its_ratio_is_dirty(world: World, tmp_path: Path, ratio: float, is_cleaned: bool) -> None:
    manager = start(world, tmp_path, replace(COMPACT, min_cleanable_dirty_ratio=ratio))
    log = manager.get_or_create(ORDERS)
    put_many(log, 30, keys=30)
    world.later(manager, 0)
    before = len(offsets_in(log))
    put_many(log, 6)
    world.later(manager, BACKOFF_MS)
    assert (len(offsets_in(log)) < before + 6) == is_cleaned


def test_the_dirtiest_log_is_cleaned_first(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    clean, dirty = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    put_many(clean, 30, keys=30)
    world.later(manager, 0)
    put_many(clean, 40)
    put_many(dirty, 12)
    world.disk.asked.clear()
    world.later(manager, BACKOFF_MS)
    made = [path.split("/")[-2] for verb, path in world.disk.asked if verb == "sync" and path.endswith(".log.cleaned")]
    assert sorted(made, key=made.index) == made
    assert list(dict.fromkeys(made)) == [str(PAYMENTS), str(ORDERS)]


def test_a_log_whose_records_wait_too_long_is_cleaned_whatever_its_ratio(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path, replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=20_000))
    log = manager.get_or_create(ORDERS)
    put_many(log, 12)
    world.later(manager, 0)
    assert len(offsets_in(log)) == 12
    world.later(manager, BACKOFF_MS)
    assert len(offsets_in(log)) == 12
    world.later(manager, BACKOFF_MS)
    assert len(offsets_in(log)) < 12


def test_a_log_that_is_not_compacted_is_left_alone(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path, replace(COMPACT, cleanup_policy=("delete",)))
    log = manager.get_or_create(ORDERS)
    put_many(log, 12)
    world.later(manager, 0)
    assert len(offsets_in(log)) == 12
    assert not (tmp_path / CLEANER).exists()


@pytest.mark.parametrize("settings", [{"cleaner_enable": False}, {"cleaner_threads": 0}])
def test_a_cleaner_that_is_off_cleans_nothing(world: World, tmp_path: Path, settings: dict[str, Any]) -> None:
    manager = start(world, tmp_path, **settings)
    log = manager.get_or_create(ORDERS)
    put_many(log, 12)
    world.later(manager, 0)
    assert len(offsets_in(log)) == 12


def test_the_next_start_goes_on_where_the_checkpoint_says(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    put_many(manager.get_or_create(ORDERS), 12, keys=12)
    world.later(manager, 0)
    said = checkpoint(tmp_path, CLEANER)
    manager.stop()
    manager = start(world, tmp_path)
    world.disk.asked.clear()
    world.later(manager, 0)
    assert not [path for verb, path in world.disk.asked if path.endswith(".cleaned")]
    assert checkpoint(tmp_path, CLEANER) == said


def test_a_checkpoint_above_the_log_is_written_anew(world: World, tmp_path: Path) -> None:
    (tmp_path / CLEANER).write_text("0\n1\norders 0 99\n")
    manager = start(world, tmp_path, replace(COMPACT, min_cleanable_dirty_ratio=1.0))
    manager.get_or_create(ORDERS)
    put_many(manager.log(ORDERS), 2)
    manager.stop()
    manager = start(world, tmp_path, replace(COMPACT, min_cleanable_dirty_ratio=1.0))
    world.later(manager, 0)
    assert checkpoint(tmp_path, CLEANER) == {"orders-0": 0}


def test_truncation_lowers_the_checkpoint_to_the_active_segment(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    log = manager.get_or_create(ORDERS)
    put_many(log, 12)
    world.later(manager, 0)
    manager.truncate({ORDERS: 3})
    assert checkpoint(tmp_path, CLEANER) == {"orders-0": log.local.segments.active.base_offset}
    put_many(log, 12)
    assert world.later(manager, BACKOFF_MS) == ()
    manager.truncate_fully_and_start_at(ORDERS, 2)
    assert checkpoint(tmp_path, CLEANER) == {"orders-0": 2}


def test_a_deleted_log_leaves_the_checkpoint(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    for partition in (ORDERS, PAYMENTS):
        put_many(manager.get_or_create(partition), 12)
    world.later(manager, 0)
    assert sorted(checkpoint(tmp_path, CLEANER)) == ["orders-0", "payments-3"]
    manager.delete(ORDERS)
    assert list(checkpoint(tmp_path, CLEANER)) == ["payments-3"]


def test_a_damaged_log_is_reported_once_and_left_alone_and_the_others_are_cleaned(world: World, tmp_path: Path) -> None:
    manager = start(world, tmp_path)
    damaged, sound = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    put_many(damaged, 12)
    put_many(sound, 12)
    flip(tmp_path / "orders-0" / f"{0:020}.log", 70)
    (error,) = world.later(manager, 0)
    assert isinstance(error, Corrupt)
    assert manager.uncleanable == {ORDERS: error}
    assert len(offsets_in(sound)) < 12
    put_many(damaged, 12)
    assert world.later(manager, BACKOFF_MS) == ()
    manager.delete(ORDERS)
    assert manager.uncleanable == {}


def test_a_fault_in_the_cleaning_of_one_log_is_reported_and_the_others_are_cleaned(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = start(world, tmp_path)
    faulty, sound = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    for log in (faulty, sound):
        put_many(log, 12)
    clean = log_cleaner.clean

    def fails_once(log: UnifiedLog, *args: Any) -> int:
        if log is faulty:
            raise MemoryError("no room")
        return clean(log, *args)

    monkeypatch.setattr(log_cleaner, "clean", fails_once)
    (error,) = world.later(manager, 0)
    assert str(error) == "orders-0: cleaning failed, so the log is left alone: MemoryError: no room"
    assert manager.uncleanable == {ORDERS: error}
    assert len(offsets_in(sound)) < 12


def test_a_directory_whose_disk_fails_is_not_cleaned_any_more_and_the_others_are(world: World, tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    manager = world.start(*folders, default=COMPACT, only_replica=True)
    logs = [manager.get_or_create(partition) for partition in (ORDERS, PAYMENTS)]
    for log in logs:
        put_many(log, 12)
    world.disk.broken[str(folders[0])] = ("sync",)
    world.later(manager, 0)
    assert [str(folders[0])] == [failure.directory for failure in manager.offline]
    assert manager.uncleanable == {}
    assert list(checkpoint(folders[1], CLEANER)) == ["payments-3"]
    assert not (folders[0] / CLEANER).exists()


def test_segments_of_a_compacted_log_are_retained_by_time_only_if_its_policy_says_delete(world: World, tmp_path: Path) -> None:
    both = replace(COMPACT, cleanup_policy=("compact", "delete"), retention_ms=600_000)
    manager = start(world, tmp_path, both)
    log, kept = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    manager.configure("payments", COMPACT)
    for one in (log, kept):
        put_many(one, 12, keys=12)
    world.later(manager, 600_001)
    assert (log.log_start_offset, kept.log_start_offset) == (12, 0)
    kept.maybe_increment_log_start_offset(5)
    world.later(manager, BACKOFF_MS)
    assert kept.local.segments.first.base_offset > 0


def test_the_policies_of_the_manager_say_which_old_segments_of_a_compacted_log_go(world: World, tmp_path: Path) -> None:
    both = replace(COMPACT, cleanup_policy=("compact", "delete"), retention_ms=600_000)
    manager = world.start(tmp_path, default=both, settings={"cleaner_dedupe_buffer_size": 24_000}, only_replica=True, policies=())
    log = manager.get_or_create(ORDERS)
    put_many(log, 12, keys=12)
    assert world.later(manager, 600_001) == ()
    assert log.log_start_offset == 0


def test_a_policy_at_fault_is_reported_and_the_log_is_cleaned_on(world: World, tmp_path: Path) -> None:
    def faulty(_retained: Retained) -> None:
        raise Invalid("mend the plug-in")

    both = replace(COMPACT, cleanup_policy=("compact", "delete"))
    manager = world.start(
        tmp_path, default=both, settings={"cleaner_dedupe_buffer_size": 24_000}, only_replica=True, policies=(faulty,)
    )
    log = manager.get_or_create(ORDERS)
    for _ in range(2):
        put_many(log, 12)
        errors = world.later(manager, BACKOFF_MS)
        assert {str(e) for e in errors} == {"mend the plug-in"}
        assert len(offsets_in(log)) < 12
        assert manager.uncleanable == {}


class Held:
    """A background that starts its job in a thread when it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.paused_ms = 0

    def run(self, jobs: int, job: Callable[[], None]) -> None:
        self.jobs = [job] * jobs

    def pause(self, ms: int) -> None:
        self.paused_ms += ms

    def stop(self) -> None:
        self.jobs = []


@pytest.mark.parametrize(
    "act",
    [
        lambda manager: manager.truncate({ORDERS: 2}),
        lambda manager: manager.truncate_fully_and_start_at(ORDERS, 5),
        lambda manager: manager.configure("orders", SMALL),
        lambda manager: manager.delete(ORDERS),
        lambda manager: manager.stop(),
    ],
    ids=["truncate", "begin anew", "configure", "delete", "stop"],
)
def test_what_changes_a_log_ends_its_cleaning_first(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[LogManager], object]
) -> None:
    manager = world.start(tmp_path, default=COMPACT, background=Threads(), only_replica=True)
    put_many(manager.get_or_create(ORDERS), 12)
    reached, go_on, modified_ms = threading.Event(), threading.Event(), world.disk.modified_ms

    def wait(file: str) -> int:
        reached.set()
        go_on.wait(10)
        return modified_ms(file)

    monkeypatch.setattr(world.disk, "modified_ms", wait)
    world.later(manager, 0)
    assert reached.wait(10)
    changing = threading.Thread(target=act, args=(manager,))
    changing.start()
    changing.join(0.05)
    assert changing.is_alive()
    go_on.set()
    changing.join(10)
    assert not changing.is_alive()
    assert not list(tmp_path.glob("*/*.cleaned"))
    assert not (tmp_path / CLEANER).exists()


def test_stop_ends_the_cleaning(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path, default=COMPACT, background=Threads(), only_replica=True)
    log = manager.get_or_create(ORDERS)
    put_many(log, 300)
    world.later(manager, 0)
    assert manager.stop() == ()
    assert not list(tmp_path.glob("*/*.cleaned"))
    assert log.local.is_closed


def test_threads_clean_many_logs_at_once(world: World, tmp_path: Path) -> None:
    settings = {"cleaner_threads": 3, "cleaner_dedupe_buffer_size": 3 << 20}
    manager = world.start(tmp_path, default=COMPACT, background=Threads(), settings=settings, only_replica=True)
    logs = [manager.get_or_create(TopicPartition("t", n)) for n in range(6)]
    for log in logs:
        put_many(log, 12)
    world.later(manager, 0)
    while len(checkpoint(tmp_path, CLEANER) if (tmp_path / CLEANER).exists() else ()) < len(logs):
        threading.Event().wait(0.001)
    assert manager.stop() == ()
    assert [len(offsets_in(log)) < 12 for log in logs] == [True] * 6


def test_the_cleaner_waits_when_it_reads_and_writes_too_much(world: World, tmp_path: Path) -> None:
    held = Held()
    settings = {"cleaner_io_max_bytes_per_second": 100.0}
    manager = world.start(tmp_path, default=COMPACT, background=held, settings=settings, only_replica=True)
    put_many(manager.get_or_create(ORDERS), 12)
    world.later(manager, 400)
    held.jobs[0]()
    assert held.paused_ms > 1_000
