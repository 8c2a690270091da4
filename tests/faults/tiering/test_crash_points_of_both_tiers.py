"""A log directory and its archive, whose process and machine stop at any write of the disk or of the store.

A life of one partition: append, roll, offload, local retention, the archive's retention, log start moves, checkpoints. After
each write the disk as it is after a power failure, and the store, are taken aside. From there the directory is opened again: all
that was acknowledged and flushed is read back byte for byte, each batch once, across both tiers; and the life goes on.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from archive_fakes import WRITES, Door, MemoryStore
from owned_logs import PARTITION, OwnedLog, drained
from simulated_disk import SimulatedDisk
from small_logs import NOW

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.list_offsets import EARLIEST, EARLIEST_LOCAL, LATEST_TIERED
from remote.store.api import ObjectStore
from tiering.local_tier.local_retention import retain
from tiering.local_tier.local_tier import LocalTier

LOGS = "/data/logs"
CONFIG = ManagerConfig(log_dirs=(LOGS,), num_recovery_threads_per_data_dir=1, initial_task_delay_ms=0)
NONE_LOST, ALL_LOST = (0.0, 0), (1.0, 0)
"""How much of what is not synced is lost, and the seed: nothing, as in a process that is killed, or all of it."""


class WatchedStore(Door):
    """Calls `on_call` before and after each write."""

    on_call: Callable[[], object] = staticmethod(lambda: None)

    def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
        if verb not in WRITES:
            return call()
        self.on_call()
        found = call()
        self.on_call()
        return found

    def upload(self, key: str, parts: Any, *, size: int, crc32c: int) -> None:
        self.around("upload", key, lambda: self.inner.upload(key, parts, size=size, crc32c=crc32c))


class OwnedDirectory(OwnedLog):
    """A directory that a LocalTier owns, with one partition. `now` is the time of its ticks."""

    tier: LocalTier
    now = NOW
    settings: ClassVar = {
        "internal.segment.bytes": "400", "segment.index.bytes": "1200", "index.interval.bytes": "1",
        "remote.storage.enable": "true", "retention.ms": "-1", "local.retention.bytes": "500", "file.delete.delay.ms": "0",
    }  # fmt: skip

    def __init__(self, disk: SimulatedDisk, store: ObjectStore) -> None:
        self.store = store
        super().__init__(LOGS, store, disk)

    def opened(self, start: int = 0, point: int = 0) -> UnifiedLog:
        self.tier = LocalTier(
            self.disk, CONFIG, lambda: self.now, lambda: 0.0, self.ids.new_id, lambda topic: self.settings
        )  # fmt: skip
        started = self.tier.start()
        assert (started.unopened, started.damaged) == ((), ())
        if PARTITION.topic not in self.tier.topics():
            self.tier.create_topic(PARTITION.topic)
        self.log = self.tier.log(PARTITION)
        return self.log

    def tick(self) -> None:
        """Local retention, checkpoints, and deletion of files."""
        self.now += 300_000
        retain(self.log, self.reader, self.store, self.now)
        assert self.tier.tick() == ()


class NextProcess(OwnedDirectory):
    """The one after the crash."""

    ids_prefix = "a"


class ThirdProcess(OwnedDirectory):
    """One more."""

    ids_prefix = "b"


@dataclass
class Moment:
    """Both tiers after a write, and what must be readable from then on. `start_max`: where the log may start at most."""

    disk: SimulatedDisk
    objects: dict[str, bytes]
    flushed: int
    start_max: int

    def reopened(self) -> OwnedDirectory:
        store = MemoryStore()
        store.objects = dict(self.objects)
        return NextProcess(self.disk, store)


@dataclass
class Life:
    """The life; `moments` has every one in which it may stop."""

    moments: list[Moment] = field(default_factory=list)
    flushed: int = 0
    start_max: int = 0

    def lived(self) -> OwnedDirectory:
        disk, memory = SimulatedDisk(), MemoryStore()
        disk.make_folder("/data")
        disk.sync_folder("/")
        store = WatchedStore(memory)

        def stops() -> None:
            disk.on_call = lambda: None
            number = len(self.moments)
            for lost in (ALL_LOST if number % 4 else NONE_LOST, (0.5, number)):
                self.moments.append(Moment(disk.after_power_failure(*lost), dict(memory.objects), self.flushed, self.start_max))
            disk.on_call = stops

        disk.on_call = store.on_call = stops
        at = OwnedDirectory(disk, store)
        self._live(at)
        disk.on_call = store.on_call = lambda: None
        return at

    def _live(self, at: OwnedDirectory) -> None:
        at.fill(7)
        self._flush(at)
        at.offload()
        at.tick()
        at.transaction(1, 4, commit=False)
        self._flush(at)
        at.fill(1)
        at.offload()
        at.tick()
        self.start_max = 1 << 40
        self.start_max = at.expire(1_000, is_log_moved=False)
        at.log.maybe_increment_log_start_offset(self.start_max)
        at.tick()
        at.expire(1_000)
        at.fill(3)
        self._flush(at)
        self.start_max = at.log.log_start_offset + 3
        at.log.maybe_increment_log_start_offset(self.start_max)
        at.tick()
        at.offload()
        at.tier.stop()

    def _flush(self, at: OwnedDirectory) -> None:
        at.log.flush()
        self.flushed = at.log.log_end_offset


def check(at: OwnedDirectory, moment: Moment, batches: dict[int, bytes]) -> None:
    """What holds of a directory that was opened again."""
    now = at.log.offsets
    assert now.log_start <= now.local_log_start <= now.high_watermark.offset <= now.end.offset
    assert now.log_start <= moment.start_max
    assert now.end.offset >= moment.flushed
    archived_end = at.archived_end()
    assert archived_end <= now.end.offset
    assert now.local_log_start <= max(archived_end, now.log_start)
    archived = at.live.current().archived
    if archived is not None:  # what the service does first: the archive's start is the log's
        at.log.maybe_increment_log_start_offset(archived.log_start_offset)
    start = at.log.log_start_offset
    assert start <= moment.start_max
    at.batches = {base: body for base, body in batches.items() if base < now.end.offset}
    assert drained(at.live, start, 250) == at.expected(start)
    special = [at.live.list_offsets(time) for time in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED)]
    assert [found and found.offset for found in special] == [
        start, at.log.offsets.local_log_start, archived_end - 1 if archived_end > start else None,
    ]  # fmt: skip


@pytest.mark.slow
def test_what_was_flushed_is_read_back_from_both_tiers_wherever_the_machine_stops() -> None:
    life = Life()
    whole = life.lived()
    assert len(life.moments) > 600
    for number, moment in enumerate(life.moments):
        again = moment.reopened()
        check(again, moment, whole.batches)
        if number % 10 == 0:
            go_on(again)


def go_on(at: OwnedDirectory) -> None:
    """Nothing that a crash has left keeps the next process from its work."""
    start = at.log.log_start_offset
    at.fill(5)
    at.offload()
    at.tick()
    is_open = at.log.last_stable_offset < at.log.high_watermark  # the crash left a transaction open: nothing above it goes up
    assert at.log.local.segments.size < 1_500 or is_open
    assert drained(at.live, start) == at.expected(start)
    left = copy.copy(at.batches)
    at.tier.stop()
    again = ThirdProcess(at.disk, at.store)  # type: ignore[arg-type]
    again.batches = left
    assert drained(again.live, start) == again.expected(start)
