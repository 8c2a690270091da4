"""A process of ours that owns log directories on a simulated disk, is stopped, killed or loses its power, and starts again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from archive_fakes import CountingIds
from managed import T0, one
from simulated_disk import SimulatedDisk

from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy
from local_log.errors import Unreadable
from local_log.formats.filenames import TopicPartition
from tiering.local_tier.local_tier import LocalTier

DIRS = ("/a", "/b")
ORDERS = TopicPartition("orders", 0)
SMALL = {"internal.segment.bytes": "1024", "segment.index.bytes": "4096"}
CHECK_MS = 300_000


@dataclass
class Host:
    """The disk, the time and the tier of the moment; `settings` are those of all topics."""

    dirs: tuple[str, ...] = DIRS
    settings: Mapping[str, str] = field(default_factory=lambda: {**SMALL, "retention.ms": "600000"})
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    now: int = T0
    ids: CountingIds = field(default_factory=CountingIds)

    def tier(self, policies: Sequence[DeletionPolicy] = KAFKAS, **config: Any) -> LocalTier:
        """One that is made, not started."""
        manager = ManagerConfig(log_dirs=self.dirs, num_recovery_threads_per_data_dir=1, **config)
        return LocalTier(
            self.disk, manager, lambda: self.now, lambda: 0.0, self.ids.new_id, lambda topic: self.settings, AtOnce(), policies
        )

    def started(self, **config: Any) -> LocalTier:
        """One that runs."""
        tier = self.tier(**config)
        tier.start()
        return tier

    def loses_power(self, lost: float = 1.0, seed: int = 0) -> None:
        """What was not synced may be lost, and nothing is locked."""
        self.disk = self.disk.after_power_failure(lost, seed)

    @contextmanager
    def failing_writes(self, below: str) -> Iterator[None]:
        """The disk writes nothing whose path begins so, for the time of the block."""
        disk, write = self.disk, self.disk.write

        def failing(file: str, start: int, data: bytes) -> None:
            if file.startswith(below):
                raise Unreadable(f"{file}: Input/output error")
            write(file, start, data)

        disk.write = failing  # type: ignore[method-assign]
        try:
            yield
        finally:
            disk.write = write  # type: ignore[method-assign]

    def later(self, tier: LocalTier, ms: int) -> tuple[Exception, ...]:
        """The time after so many ms, and what a tick gives then."""
        self.now += ms
        self.disk.now_ms = self.now
        return tier.tick()


def produce(tier: LocalTier, partition: TopicPartition, records: int, *, now_ms: int = T0, size: int = 100) -> None:
    """Appends so many batches of one record."""
    for _ in range(records):
        tier.log(partition).append_as_leader(one(timestamp=now_ms, size=size), 0)
