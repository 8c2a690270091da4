"""A file of rules that is read again when it has changed; what cannot be used changes nothing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from local_log.disk import Disk
from local_log.errors import Corrupt, LogError
from local_log.file_range import FileState
from remote.clock import Clock

BYTES_MAX: Final = 64 << 20
LOOK_MS: Final = 1_000
"""How often it is looked whether the file has changed."""


@dataclass(slots=True)
class WatchedFile:
    """The file at `path`, of which `take` is given the bytes. `report` is told of a file that cannot be used."""

    disk: Disk
    path: str
    clock: Clock
    take: Callable[[bytes], object]
    report: Callable[[str], object]
    _state: FileState | None = None
    _looked_ms: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> None:
        """Reads it. Raises LogError."""
        state = self.disk.state(self.path)
        if state.size > BYTES_MAX:
            raise Corrupt(f"a file of {state.size} bytes, where {BYTES_MAX} are the most", file=self.path)
        try:
            self.take(self.disk.read(self.path))
        except Corrupt as e:
            raise e.at(self.path) from e
        self._state = state

    def look(self) -> None:
        """Reads it again if it has changed."""
        now_ms = self.clock.now_ms()
        if now_ms - self._looked_ms < LOOK_MS or not self._lock.acquire(blocking=False):
            return
        try:
            self._looked_ms = now_ms
            state = self.disk.state(self.path)
            if state != self._state:
                self._state = state  # what cannot be used is told once, and looked at again when it changes
                self.load()
        except LogError as e:
            self.report(f"what it said before is still in force: {e}")
        finally:
            self._lock.release()
