"""A log for many threads, and what they do at once or one amid the other."""

import struct
import threading
from collections.abc import Callable
from pathlib import Path

from logs_at_work import settings
from small_logs import NOW

from local_log.engine.memory_records import memory_batches
from local_log.engine.unified_log import UnifiedLog, open_log
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


def log_on(disk: WatchedDisk, folder: Path) -> UnifiedLog:
    """A log of an only replica, of small segments."""
    config = settings(segment_bytes=6000, index_interval_bytes=200, retention_bytes=20_000, file_delete_delay_ms=0)
    log = open_log(disk, str(folder), config, lambda: NOW, lambda: 0.5)
    log.become_only_replica()
    return log


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
