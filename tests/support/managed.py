"""Log managers for tests: a clock that is told the time, ids that count, small files, disks that fail, and logs with records."""

from itertools import count
from pathlib import Path
from typing import Any

from hand_made import batch, record

from local_log.disk import Writer
from local_log.engine.config import LogConfig
from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Unreadable
from local_log.formats.checkpoints import read_offsets
from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsWritableDisk

T0 = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=1024, segment_index_bytes=4096, retention_ms=600_000)
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 3)
ID, OTHER_ID = "Sl08ZXU2QW6uF5hIoSzc8w", "69O438ZkTSeqqclTtZO2KA"


class FailingDisk(OsWritableDisk):
    """Files below `broken` fail: all verbs, or those named. `asked` has the verbs and their paths."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: dict[str, tuple[str, ...]] = {}
        self.asked: list[tuple[str, str]] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        verbs = ("names", "size", "read", "write", "truncate", "rename", "delete", "make_folder", "delete_folder", "sync", "lock")
        if name not in (*verbs, "sync_folder"):
            return found

        def checked(path: str, *args: Any, **options: Any) -> Any:
            self._ask(name, path)
            if name.startswith("sync") and self.exists(path):
                return None  # no test pulls the plug; on some machines it takes longer than all the rest
            return found(path, *args, **options)

        return checked

    def _ask(self, verb: str, path: str) -> None:
        self.asked.append((verb, path))
        for folder, failing in self.broken.items():
            if path.startswith(folder) and (not failing or verb in failing):
                raise Unreadable(f"{path}: Input/output error")

    def writer(self, file: str) -> Writer:
        """See WritableDisk. Each of its calls is a write."""
        write = super().writer(file)
        return lambda start, data: (self._ask("write", file), write(start, data))[1]


class World:
    """A clock, a disk and the managers that run on them, one after the other."""

    def __init__(self) -> None:
        self.now = T0
        self.disk = FailingDisk()
        self._ids = count()
        self.started: LogManager | None = None

    def manager(self, *folders: Path | str, settings: dict[str, Any] | None = None, **more: Any) -> LogManager:
        """One that is made, not started."""
        config = ManagerConfig(log_dirs=tuple(map(str, folders)), **(settings or {}))
        more = {"default": SMALL, "background": AtOnce()} | more
        return LogManager(self.disk, config, lambda: self.now, lambda: 0.0, lambda: f"{next(self._ids):032x}", **more)

    def start(self, *folders: Path | str, **more: Any) -> LogManager:
        """One that runs."""
        manager = self.manager(*folders, **more)
        manager.start()
        self.started = manager
        return manager

    def later(self, manager: LogManager, ms: int) -> tuple[Exception, ...]:
        """The time after so many milliseconds, and what a tick then gives."""
        self.now += ms
        return manager.tick(self.now)


def one(value: bytes = b"test", timestamp: int = T0, size: int = 0) -> bytes:
    """A producer's batch of one record; `size` more bytes in it."""
    return batch(record(value=value + bytes(size)), base_timestamp=timestamp, max_timestamp=timestamp)


def append(log: UnifiedLog, records: int = 1, *, timestamp: int = T0, size: int = 0, replicated: bool = True) -> None:
    """Appends so many batches of one record."""
    for _ in range(records):
        log.append_as_leader(one(timestamp=timestamp, size=size), 0)
    if replicated:
        log.update_high_watermark(log.log_end_offset)


def checkpoint(folder: Path, name: str) -> dict[str, int]:
    """What a checkpoint file says."""
    return {str(p): offset for p, offset in read_offsets((folder / name).read_bytes()).items()}
