"""A log that is cleaned while many threads use it: nothing that a cleaner keeps is lost, and nobody waits but for the swap."""

import random  # noqa: TID251  # seeded
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hand_made import decoded
from logs_at_work import batch_of
from many_threads import WatchedDisk, all_at_once, in_a_thread, log_on, whole_batches
from small_logs import NOW

from local_log.engine.cleaner import CleaningAborted, OffsetMap, clean, dirty_part
from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.offsets import Isolation, LogOffsets
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import NoSuchFile, OffsetOutOfRange
from local_log.formats.batches import scan


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


@pytest.fixture
def log(tmp_path: Path, disk: WatchedDisk) -> UnifiedLog:
    return log_on(disk, tmp_path / "t-0")


def keyed(n: int, size: int = 60) -> bytes:
    return batch_of(f"{n:{size}}", keys=(b"key-%d" % (n % 7),))


def compacted(log: UnifiedLog) -> None:
    """A round of cleaning of the whole log."""
    clean(log, log.offsets.log_start, log.offsets.last_stable, OffsetMap(24 * 1000))


@pytest.mark.usefixtures("switching")
def test_many_threads_append_read_truncate_and_compact(log: UnifiedLog) -> None:
    appended, done = threading.Event(), threading.Event()
    rounds = [0]

    def append() -> None:
        try:
            for n in range(400):
                log.append_as_leader(keyed(n), 0)
            appended.set()
            while rounds[0] < 3:
                pass
        finally:
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
            r.choice(acts[:2] if appended.is_set() else acts)()  # or nothing might be left to clean, and no round be finished

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
    for n in range(7):  # a truncation may have taken the last record of a key, or all of them
        log.append_as_leader(keyed(n), 0)
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


@pytest.fixture
def full_log(log: UnifiedLog) -> UnifiedLog:
    """One inactive segment with twenty records of seven keys."""
    for n in range(20):
        log.append_as_leader(keyed(n), 0)
    log.roll()
    return log


@pytest.fixture
def compacted_before_a_read(full_log: UnifiedLog, disk: WatchedDisk) -> UnifiedLog:
    """It is compacted, and its old segment deleted, when something has been found in it and is to be read."""

    def compact() -> None:
        compacted(full_log)
        full_log.folder.delete_due()

    disk.before["read"] = compact
    return full_log


def test_a_read_is_repeated_if_its_segment_is_compacted_meanwhile(compacted_before_a_read: UnifiedLog) -> None:
    records = compacted_before_a_read.read(0, 1 << 20).records
    assert [base for base, _ in whole_batches(records)] == list(range(13, 20))


def test_what_is_dirty_is_found_again_if_it_is_compacted_meanwhile(compacted_before_a_read: UnifiedLog) -> None:
    found = dirty_part(compacted_before_a_read, None, NOW)
    assert found.cleanable_bytes == compacted_before_a_read.local.segments.first.size


def test_a_round_of_cleaning_gives_up_if_its_segment_is_deleted_meanwhile(full_log: UnifiedLog, disk: WatchedDisk) -> None:
    def delete() -> None:
        full_log.maybe_increment_log_start_offset(20)
        assert delete_old_segments(full_log, NOW) == 1
        full_log.folder.delete_due()

    disk.before["read"] = delete
    with pytest.raises(CleaningAborted, match="deleted"):
        clean(full_log, 0, 20, OffsetMap(24 * 100))
    assert full_log.local.segments.base_offsets == (20,)


def test_cleaning_holds_the_lock_only_for_the_swap(full_log: UnifiedLog) -> None:
    offsets = [append_elsewhere(full_log)]
    clean(full_log, 0, 20, OffsetMap(24 * 100), lambda size: offsets.append(append_elsewhere(full_log)))
    assert offsets == list(range(20, 20 + len(offsets)))
    assert len(offsets) > 3


def append_elsewhere(log: UnifiedLog) -> int:
    """The offset of a record that another thread appends."""
    return int(str(in_a_thread(lambda: log.append_as_leader(keyed(0), 0).first_offset)))
