"""A round through everything there is, one piece a turn, so that copies need not wait for all of it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tiering.agent.schedule import Job, Kind

ATTEMPTS_MAX: Final = 3
"""A piece is tried this often; then the round goes on without it."""


@dataclass(slots=True)
class Round:
    """A round of one kind, each `interval_ms` after the last began; `last_ms` is when that was, 0 for never."""

    kind: Kind
    interval_ms: int
    last_ms: int = 0
    _left: deque[str] = field(default_factory=deque)
    _now: Job | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether one has begun and is not over."""
        return self._now is not None

    def due_ms(self) -> int:
        """When the next one may begin."""
        return self.last_ms + self.interval_ms if self.last_ms else 0

    def is_due(self, remembered_ms: int, now_ms: int) -> bool:
        """Whether one is to begin; `remembered_ms` is when an earlier agent began its last one.

        One that began later than now, by a clock that was ahead, counts as none.
        """
        self.last_ms = self.last_ms or remembered_ms
        return not self.is_under_way and not self.last_ms <= now_ms < self.due_ms()

    def begin(self, subjects: Iterable[str], now_ms: int) -> Job | None:
        """Begins one; gives its first piece, None where there is none."""
        self.last_ms = now_ms
        self._left.extend(subjects)
        return self.next()

    def next(self) -> Job | None:
        """The next piece, None at the end."""
        self._now = Job(self.kind, self._left.popleft()) if self._left else None
        return self._now
