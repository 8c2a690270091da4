"""A process that owns log directories and ends with an exception: nothing of it lives on, and the next one has all records."""

import sys
from itertools import count
from pathlib import Path
from subprocess import PIPE, run
from threading import Event

import pytest
from managed import ORDERS, T0, append

from local_log.engine.manager.background import AtOnce, Background, Threads
from local_log.engine.manager.config import ManagerConfig
from local_log.os_disk import OsWritableDisk
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.service import TierService

COMPACTED = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "internal.segment.bytes": "1024",
    "segment.index.bytes": "4096",
}  # fmt: skip
RECORDS = 40


class Telling(Threads):
    """Tells when a job waits."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = Event()

    def pause(self, ms: int) -> None:
        self.is_paused.set()
        super().pause(ms)


def tier_of(folder: str, cleaner: Background) -> LocalTier:
    """A tier whose clock runs a second ahead at each look, so that its cleaner has to wait after the first byte, for hours."""
    config = ManagerConfig(log_dirs=(folder,), cleaner_io_max_bytes_per_second=1.0)
    ids = (f"{number:032x}" for number in count(1))
    times = count(T0, 1_000)
    return LocalTier(
        OsWritableDisk(), config, lambda: next(times), lambda: 0.0, lambda: next(ids), lambda topic: COMPACTED, cleaner
    )


def raises(folder: str) -> None:
    """The process: it waits until the cleaner waits."""
    cleaner = Telling()
    service = TierService(tier_of(folder, cleaner), lambda: T0, print)
    service.start()
    service.tier.create_topic("orders")
    log = service.tier.log(ORDERS)
    append(log, RECORDS, size=100, replicated=False)
    log.flush()
    service.run_in_background(lambda: None)
    assert cleaner.is_paused.wait(60)
    raise ZeroDivisionError("a fault of the caller")


@pytest.mark.slow
def test_it_ends_while_its_cleaner_and_its_background_tasks_run(tmp_path: Path) -> None:
    program = f"import sys; sys.path[:0] = {sys.path!r}; from {__name__} import raises; raises({str(tmp_path / 'own')!r})"
    ended = run([sys.executable, "-c", program], timeout=120, check=False, stderr=PIPE, text=True)
    assert (ended.returncode, "a fault of the caller" in ended.stderr) == (1, True), ended.stderr
    tier = tier_of(str(tmp_path / "own"), AtOnce())
    tier.start()
    assert tier.log(ORDERS).log_end_offset == RECORDS
    assert tier.stop() == ()
