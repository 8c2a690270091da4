"""A broker's disk as an actor on its machine reads it: others run between two calls."""

from dataclasses import dataclass
from typing import Protocol, Self

from simulated_disk import SimulatedDisk

from local_log.disk import Disk, Space
from local_log.file_range import FileState, OpenedFile
from local_log.formats.primitives import Buffer
from simulated.schedule import Actor, Died

SWITCHES = 0.15
"""The share of calls before which others run; at every call a schedule would be of little else."""


class QuietDisk(SimulatedDisk):
    """A disk that keeps no list of its calls."""

    def after_power_failure(self, lost: float = 1.0, seed: int = 0) -> Self:
        left, found = type(self)(), super().after_power_failure(lost, seed)
        left.now_ms, left._root = found.now_ms, found._root
        return left

    def rot(self, file: str, at: int, bits: int) -> None:
        """Bits of a byte change, and no call has changed them."""
        self._file(file).now[at] ^= bits

    def _called(self, *words: object) -> None:
        pass


class HasDisk(Protocol):
    """A machine with a disk."""

    @property
    def disk(self) -> QuietDisk: ...


class Machine(Protocol):
    """What is on the machine of a broker, or of a process that owns its log directory, beside it."""

    def loses_power(self, lost: float, seed: int) -> None:
        """With it: what was not synced may be lost."""

    def topic_is_deleted(self) -> None:
        """All replicas of the log are about to be deleted."""

    def log_is_new(self) -> None:
        """The log was moved away and back: it is empty."""


@dataclass(frozen=True)
class DiskOf:
    """A Disk. It is the broker's disk of the moment: a loss of power leaves another one."""

    actor: Actor
    broker: HasDisk

    def _now(self) -> Disk:
        if self.actor.is_dead:
            raise Died
        if self.actor.chance(SWITCHES):
            self.actor.pause()
        else:
            self.actor.schedule.asked += 1
        disk = self.broker.disk
        disk.now_ms = self.actor.schedule.now  # what the process changes next, it changes now
        return disk

    def names(self, folder: str) -> list[str]:
        return self._now().names(folder)

    def is_folder(self, path: str) -> bool:
        return self._now().is_folder(path)

    def size(self, file: str) -> int:
        return self._now().size(file)

    def modified_ms(self, file: str) -> int:
        return self._now().modified_ms(file)

    def state(self, file: str) -> FileState:
        return self._now().state(file)

    def space(self, folder: str) -> Space:
        return self._now().space(folder)

    def open(self, file: str) -> OpenedFile:
        return self._now().open(file)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        return self._now().read(file, start, end)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        return self._now().read_large(file, start, end)
