"""A log that many threads use: reads beside appends, truncations, rolls and deletions give whole batches, and wait for nobody."""

import random  # noqa: TID251  # seeded
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hand_made import decoded
from logs_at_work import batch_of, settings
from small_logs import NOW

from local_log.engine.cleaner import CleaningAborted, OffsetMap, clean, dirty_part
from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.memory_records import memory_batches
from local_log.engine.offsets import Isolation, LogOffsets
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import NoSuchFile, OffsetOutOfRange
from local_log.formats.batches import scan
from local_log.formats.checksum import crc32c
from local_log.os_disk import OsWritableDisk


class WatchedDisk(OsWritableDisk):
    """Calls a function once before a verb."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], object]] = {}

    def _reached(self, verb: str) -> None:
        self.before.pop(verb, lambda: None)()

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self._reached("read")
        return super().read(file, start, end)

    def truncate(self, file: str, size: int) -> None:
        self._reached("truncate")
        super().truncate(file, size)

    def rename(self, path: str, to: str) -> None:
        self._reached("rename")
        super().rename(path, to)


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


@pytest.fixture
def log(tmp_path: Path, disk: WatchedDisk) -> UnifiedLog:
    config = settings(segment_bytes=6000, index_interval_bytes=200, retention_bytes=20_000, file_delete_delay_ms=0)
    log = open_log(disk, str(tmp_path / "t-0"), config, lambda: NOW, lambda: 0.5)
    log.become_only_replica()
    return log


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def whole_batches(records: bytes) -> list[tuple[int, bytes]]:
    """Base offsets and bytes of the batches, whose checksums are right; the last may be cut."""
    found = []
    for b in memory_batches(records):
        data = records[b.position : b.position + b.size]
        if len(data) == b.size:
            assert struct.unpack_from(">I", data, 17)[0] == crc32c(memoryview(data)[21:])
            found.append((b.base_offset, data))
    return found


def all_at_once(*acts: Callable[[], object]) -> None:
    """Runs them in threads; raises the first error of one."""
    errors: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def in_a_thread(act: Callable[[], object]) -> object:
    """The result of an act in another thread, which must not wait for this one."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(act()), daemon=True)
    thread.start()
    thread.join(10)
    assert found, "it waits for this thread"
    return found[0]


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


def test_a_read_that_a_truncation_overtakes_is_repeated(log: UnifiedLog, disk: WatchedDisk) -> None:
    for value in ("a", "b", "c"):
        log.append_as_leader(batch_of(value), 0)

    def overtake() -> None:
        log.truncate_to(1)
        log.append_as_leader(batch_of("another and longer"), 0)

    disk.before["read"] = overtake
    records = log.read(1, 1 << 20).records
    assert [base for base, _ in whole_batches(records)] == [1]
    assert b"another and longer" in records


def test_a_read_that_a_deletion_overtakes_says_that_its_offset_is_gone(log: UnifiedLog, disk: WatchedDisk) -> None:
    log.append_as_leader(batch_of("a"), 0)
    log.roll()
    log.append_as_leader(batch_of("b"), 0)

    def overtake() -> None:
        log.maybe_increment_log_start_offset(1)
        assert delete_old_segments(log, NOW) == 1
        log.folder.delete_due()

    disk.before["read"] = overtake
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


def keyed(n: int, size: int = 60) -> bytes:
    return batch_of(f"{n:{size}}", keys=(b"key-%d" % (n % 7),))


def compacted(log: UnifiedLog) -> None:
    """A round of cleaning of the whole log."""
    clean(log, log.offsets.log_start, log.offsets.last_stable, OffsetMap(24 * 1000))


@pytest.mark.usefixtures("switching")
def test_many_threads_append_read_truncate_and_compact(log: UnifiedLog) -> None:
    done = threading.Event()
    rounds = [0]

    def append() -> None:
        for n in range(400):
            log.append_as_leader(keyed(n), 0)
        while rounds[0] < 3:
            pass
        done.set()

    def compact() -> None:
        while not done.is_set():
            with suppress(CleaningAborted):
                compacted(log)
                rounds[0] += 1

    def disturb() -> None:
        r = random.Random(4)
        while not done.is_set():
            acts = [log.roll, log.folder.delete_due, lambda: log.truncate_to(max(0, log.offsets.end.offset - 3))]
            r.choice(acts)()

    def read() -> None:
        r = random.Random(5)
        while not done.is_set():
            end = log.offsets.end.offset
            offset = r.randint(0, end)
            try:
                found = whole_batches(log.read(offset, 1000, r.choice(list(Isolation))).records)
                log.offset_for(NOW)
            except OffsetOutOfRange:
                continue  # truncated since
            bases = [base for base, _ in found]
            assert bases == sorted(set(bases))
            assert not bases or bases[0] >= offset

    all_at_once(append, compact, disturb, read, read)
    log.roll()
    latest = latest_of_keys(log)
    compacted(log)
    assert latest_of_keys(log) == latest
    assert len(latest) == 7


def latest_of_keys(log: UnifiedLog) -> dict[bytes, tuple[int, bytes]]:
    """Offset and value of each key's last record, found by reads from the log's start to its end."""
    latest: dict[bytes, tuple[int, bytes]] = {}
    offset = 0
    while offset < log.offsets.end.offset:
        data = log.read(offset, 1 << 20).records
        if not len(data):
            break  # a truncation may end the log at an offset before which the cleaner has left nothing
        batches, _ = scan(data)
        latest.update({row["key"]: (row["offset"], row["value"]) for row in decoded(data, batches).to_pylist()})
        offset = batches.next_offset
    return latest


def test_a_query_that_misses_a_file_while_segments_are_replaced_is_repeated(log: UnifiedLog) -> None:
    log.published.withdraw(0, log.local.end)
    asked: list[LogOffsets] = []

    def query(now: LogOffsets) -> int:
        asked.append(now)
        if len(asked) < 3:
            raise NoSuchFile("a file that is being renamed")
        return 7

    assert log.published.undisturbed(query) == 7
    assert all(now.is_moving for now in asked)
    log.publish()
    asked.clear()
    with pytest.raises(NoSuchFile):
        log.published.undisturbed(query)


def test_a_read_that_a_compaction_overtakes_is_repeated(log: UnifiedLog, disk: WatchedDisk) -> None:
    for n in range(20):
        log.append_as_leader(keyed(n), 0)
    log.roll()

    def overtake() -> None:
        compacted(log)
        log.folder.delete_due()

    disk.before["read"] = overtake
    records = log.read(0, 1 << 20).records
    assert [base for base, _ in whole_batches(records)] == list(range(13, 20))


def test_what_is_dirty_is_found_again_if_a_compaction_overtakes_it(log: UnifiedLog, disk: WatchedDisk) -> None:
    for n in range(20):
        log.append_as_leader(keyed(n), 0)
    log.roll()

    def overtake() -> None:
        compacted(log)
        log.folder.delete_due()

    disk.before["read"] = overtake
    found = dirty_part(log, None, NOW)
    assert found.cleanable_bytes == log.local.segments.first.size


def test_a_round_that_a_deletion_overtakes_gives_up(log: UnifiedLog, disk: WatchedDisk) -> None:
    for n in range(20):
        log.append_as_leader(keyed(n), 0)
    log.roll()

    def overtake() -> None:
        log.maybe_increment_log_start_offset(20)
        assert delete_old_segments(log, NOW) == 1
        log.folder.delete_due()

    disk.before["read"] = overtake
    with pytest.raises(CleaningAborted, match="deleted"):
        clean(log, 0, 20, OffsetMap(24 * 100))
    assert log.local.segments.base_offsets == (20,)


def test_cleaning_holds_the_lock_only_for_the_swap(log: UnifiedLog) -> None:
    for n in range(20):
        log.append_as_leader(keyed(n), 0)
    log.roll()
    offsets = [append_elsewhere(log)]
    clean(log, 0, 20, OffsetMap(24 * 100), lambda size: offsets.append(append_elsewhere(log)))
    assert offsets == list(range(20, 20 + len(offsets)))
    assert len(offsets) > 3


def append_elsewhere(log: UnifiedLog) -> int:
    """The offset of a record that another thread appends."""
    return int(str(in_a_thread(lambda: log.append_as_leader(keyed(0), 0).first_offset)))
