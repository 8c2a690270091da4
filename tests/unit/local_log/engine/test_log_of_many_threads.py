"""A log that many threads use: reads beside appends, truncations, rolls and deletions give whole batches, and wait for nobody."""

import random  # noqa: TID251  # seeded
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from logs_at_work import batch_of
from many_threads import WatchedDisk, all_at_once, in_a_thread, log_on, whole_batches
from small_logs import NOW

from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.offsets import Isolation
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import OffsetOutOfRange


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


@pytest.fixture
def log(tmp_path: Path, disk: WatchedDisk) -> UnifiedLog:
    return log_on(disk, tmp_path / "t-0")


@pytest.mark.usefixtures("switching")
def test_a_reader_beside_a_follower_s_appends_sees_each_batch_as_it_was_appended(log: UnifiedLog) -> None:
    batches = [batch_of(f"{offset:60}", offset=offset) for offset in range(800)]
    done = threading.Event()

    def append() -> None:
        try:
            for one in batches:
                log.append_as_follower(one, 0)
        finally:
            done.set()

    def read() -> None:
        r = random.Random(1)
        while not done.is_set():
            end = log.offsets.end.offset
            offset = r.randrange(end) if end else 0
            records = log.read(offset, 500, r.choice(list(Isolation))).records
            assert not records or records[: len(batches[offset])] == batches[offset]
            log.offset_for(NOW)

    all_at_once(append, read, read)
    assert log.offsets.end.offset == log.offsets.high_watermark.offset == 800


@pytest.mark.usefixtures("switching")
def test_many_threads_append_read_truncate_roll_and_delete(log: UnifiedLog) -> None:
    left = threading.Semaphore(0)
    working = threading.Event()
    working.set()

    def append(thread: int) -> None:
        for n in range(120):
            info = log.append_as_leader(batch_of(f"{thread}-{n:40}"), 0)
            assert info.first_offset == info.last_offset
        left.release()

    def disturb() -> None:
        r = random.Random(2)
        while working.is_set():
            now = log.offsets
            acts: list[Callable[[], object]] = [
                lambda end=now.end.offset, start=now.log_start: log.truncate_to(max(start, end - r.randrange(1, 30))),  # type: ignore[misc]
                log.roll,
                log.flush,
                lambda: delete_old_segments(log, NOW),
                log.folder.delete_due,
            ]
            r.choice(acts)()

    def read() -> None:
        r = random.Random(3)
        while working.is_set():
            now = log.offsets
            assert now.log_start <= now.last_stable <= now.high_watermark.offset <= now.end.offset
            offset = r.randint(now.log_start, now.end.offset)
            try:
                found = whole_batches(log.read(offset, 1000, r.choice(list(Isolation))).records)
                log.offset_for(NOW)
            except OffsetOutOfRange:
                continue  # truncated or deleted since
            assert [base for base, _ in found] == [found[0][0] + i for i in range(len(found))] if found else True
            assert not found or found[0][0] == offset

    def wait() -> None:
        for _ in range(3):
            left.acquire()
        working.clear()

    all_at_once(*(lambda n=n: append(n) for n in range(3)), disturb, read, read, wait)  # type: ignore[misc]
    now = log.offsets
    assert (now.log_start, now.end.offset) == (log.log_start_offset, log.log_end_offset)
    offset, seen = now.log_start, 0
    while offset < now.end.offset:
        found = whole_batches(log.read(offset, 1 << 20).records)
        offset, seen = found[-1][0] + 1, seen + len(found)
    assert seen == now.end.offset - now.log_start


def test_a_read_does_not_wait_for_the_owner_of_the_lock(log: UnifiedLog) -> None:
    log.append_as_leader(batch_of("a", "b"), 0)
    with log.lock:
        assert in_a_thread(lambda: log.read(0, 1000).records) == log.read(0, 1000).records
        assert in_a_thread(lambda: log.offsets.end.offset) == 2
        assert in_a_thread(lambda: log.offset_for(NOW)) == log.offset_for(NOW)


def test_a_read_during_a_truncation_ends_where_the_log_will_end(log: UnifiedLog, disk: WatchedDisk) -> None:
    for _ in range(5):
        log.append_as_leader(batch_of("before"), 0)
    seen: list[object] = []

    def look() -> None:
        now = log.offsets
        found = in_a_thread(lambda: [base for base, _ in whole_batches(log.read(1, 1 << 20).records)])
        seen.append((now.high_watermark.offset, now.end.offset, now.is_moving, found))

    disk.before["truncate"] = look
    log.truncate_to(3)
    assert seen == [(3, 3, True, [1, 2])]
    assert not log.offsets.is_moving


def test_while_a_log_begins_anew_its_published_offsets_are_where_it_will_begin(log: UnifiedLog, disk: WatchedDisk) -> None:
    log.append_as_leader(batch_of("a"), 0)
    seen: list[tuple[int, ...]] = []

    def look() -> None:
        now = log.offsets
        seen.append((now.log_start, now.local_log_start, now.last_stable, now.high_watermark.offset, now.end.offset))

    disk.before["rename"] = look
    log.truncate_fully_and_start_at(9)
    assert seen == [(9,) * 5]


def test_a_read_during_which_the_log_is_truncated_is_repeated(log: UnifiedLog, disk: WatchedDisk) -> None:
    for value in ("a", "b", "c"):
        log.append_as_leader(batch_of(value), 0)

    def truncate() -> None:
        log.truncate_to(1)
        log.append_as_leader(batch_of("another and longer"), 0)

    disk.before["read"] = truncate
    records = log.read(1, 1 << 20).records
    assert [base for base, _ in whole_batches(records)] == [1]
    assert b"another and longer" in records


def test_a_read_during_which_its_segment_is_deleted_says_that_its_offset_is_gone(log: UnifiedLog, disk: WatchedDisk) -> None:
    log.append_as_leader(batch_of("a"), 0)
    log.roll()
    log.append_as_leader(batch_of("b"), 0)

    def delete() -> None:
        log.maybe_increment_log_start_offset(1)
        assert delete_old_segments(log, NOW) == 1
        log.folder.delete_due()

    disk.before["read"] = delete
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1 << 20)


def test_a_read_changes_neither_the_log_nor_its_files(log: UnifiedLog, tmp_path: Path) -> None:
    for offset in range(40):
        log.append_as_follower(batch_of(f"{offset:60}", offset=offset), 0)
    segment = log.local.segments.active
    before = len(segment.due), {f.name: f.read_bytes() for f in (tmp_path / "t-0").iterdir()}
    for isolation in Isolation:
        for offset in range(40):
            assert whole_batches(log.read(offset, 200, isolation).records)[0][0] == offset
    log.offset_for(NOW)
    assert before == (len(segment.due), {f.name: f.read_bytes() for f in (tmp_path / "t-0").iterdir()})
    assert before[0] > 0
