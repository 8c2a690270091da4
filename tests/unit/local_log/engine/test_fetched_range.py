"""A fetch gives the part of a log file where the batches lie: the bytes of a read, as long as nobody truncates the log."""

import os
import socket
from pathlib import Path

import pytest
from logs_at_work import batch_of, settings
from simulated_disk import SimulatedDisk
from small_logs import NOW, marker

from local_log.disk import WritableDisk
from local_log.engine.manager.guarded_disk import GuardedDisk, Offline
from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.offsets import Isolation
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import Conflict, OffsetOutOfRange, Unreadable
from local_log.os_disk import OsWritableDisk


def opened(disk: WritableDisk, folder: str) -> UnifiedLog:
    config = settings(segment_bytes=1000, index_interval_bytes=200, retention_bytes=1000, file_delete_delay_ms=0)
    log = open_log(disk, folder, config, lambda: NOW, lambda: 0.5)
    log.become_only_replica()
    return log


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    return opened(OsWritableDisk(), str(tmp_path / "t-0"))


def filled(log: UnifiedLog) -> UnifiedLog:
    """Twelve transactions of two batches, every third aborted, in several segments; the last one is open."""
    for n in range(12):
        for sequence in (2 * n, 2 * n + 1):
            log.append_as_leader(batch_of(f"{n:50}", producer=7, sequence=sequence, transactional=True), 0)
        if n < 11:
            log.append_as_leader(marker(0, 7, commit=n % 3 > 0), 0, Origin.COORDINATOR)
    return log


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("one_batch_at_least", [True, False])
def test_a_range_has_the_bytes_of_a_read(log: UnifiedLog, isolation: Isolation, one_batch_at_least: bool) -> None:
    filled(log)
    for offset in range(log.log_end_offset + 1):
        for size_max in (0, 1, 130, 500, 1 << 20):
            read = log.read(offset, size_max, isolation, one_batch_at_least=one_batch_at_least)
            found = log.fetch(offset, size_max, isolation, one_batch_at_least=one_batch_at_least)
            assert (found.start, found.first_batch_is_cut, found.aborted) == (read.start, read.first_batch_is_cut, read.aborted)
            assert (b"" if found.range is None else found.range.read()) == read.records
            assert found.range is None or found.range.size == len(read.records)


def test_a_fetch_outside_of_the_log_is_refused(log: UnifiedLog) -> None:
    for offset in (-1, 1):
        with pytest.raises(OffsetOutOfRange):
            log.fetch(offset, 1)


def test_a_range_can_be_sent_with_sendfile(log: UnifiedLog) -> None:
    filled(log)
    found = log.fetch(4, 300).range
    assert found is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert os.sendfile(ours.fileno(), found.fileno(), found.position, found.size) == found.size
        assert theirs.recv(1000) == log.read(4, 300).records
    found.check()


def test_a_range_of_a_deleted_segment_is_read_on(log: UnifiedLog, tmp_path: Path) -> None:
    filled(log)
    log.append_as_leader(marker(0, 7, commit=True), 0, Origin.COORDINATOR)
    expected, found = log.read(0, 1 << 20).records, log.fetch(0, 1 << 20).range
    assert delete_old_segments(log, NOW) > 0
    log.folder.delete_due()
    assert not (tmp_path / "t-0" / f"{0:020}.log").exists()
    assert found is not None
    assert found.read() == expected


def test_a_range_says_that_the_log_was_truncated(log: UnifiedLog) -> None:
    filled(log)
    log.roll()
    log.append_as_leader(batch_of("a"), 0)
    found = log.fetch(log.log_end_offset - 1, 1 << 20).range
    assert found is not None
    before = found.read()
    log.truncate_to(log.log_end_offset - 1)
    log.append_as_leader(batch_of("b"), 0)
    with pytest.raises(Conflict, match="truncated meanwhile; fetch again"):
        found.read()
    with pytest.raises(Conflict):
        found.check()
    again = log.fetch(log.log_end_offset - 1, 1 << 20).range
    assert again is not None
    assert again.read() != before


def test_a_range_is_found_anew_where_a_truncation_came_before_it(log: UnifiedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("a", "b"):
        log.append_as_leader(batch_of(value), 0)
    disk, real = log.folder.disk, OsWritableDisk.open
    left = [1]

    def after_a_truncation(self: OsWritableDisk, file: str) -> object:
        if left:
            left.clear()
            log.truncate_to(1)
            log.append_as_leader(batch_of("another and longer"), 0)
        return real(self, file)

    monkeypatch.setattr(type(disk), "open", after_a_truncation)
    found = log.fetch(1, 1 << 20).range
    assert found is not None
    assert b"another and longer" in found.read()


def test_a_range_of_a_disk_in_memory_is_read_but_not_sent() -> None:
    disk = SimulatedDisk()
    disk.make_folder("/logs")
    log = opened(disk, "/logs/t-0")
    log.append_as_leader(batch_of("a"), 0)
    found = log.fetch(0, 1).range
    assert found is not None
    assert found.read() == log.read(0, 1).records
    with pytest.raises(OSError, match="no descriptor"):
        found.fileno()


def test_a_range_that_cannot_be_read_takes_the_directory_offline(tmp_path: Path) -> None:
    failures: list[int] = []
    disk = GuardedDisk(OsWritableDisk(), str(tmp_path), lambda: failures.append(1))
    log = opened(disk, str(tmp_path / "t-0"))
    log.append_as_leader(batch_of("a"), 0)
    found = log.fetch(0, 1).range
    assert found is not None
    assert found.read() == log.read(0, 1).records
    target, other = os.dup(found.fileno()), os.open(tmp_path, os.O_RDONLY)
    os.dup2(other, found.fileno())  # a folder cannot be read
    try:
        with pytest.raises(Offline):
            found.read()
        assert failures == [1]
        with pytest.raises(Unreadable):
            log.fetch(0, 1)
    finally:
        os.dup2(target, found.fileno())
        os.close(target)
        os.close(other)
