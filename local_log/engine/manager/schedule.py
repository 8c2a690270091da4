"""What is to be done every so often, told apart from the time of day: pure."""

from dataclasses import dataclass, field
from enum import Enum


class Task(Enum):
    """What a log manager does by itself."""

    RETENTION = "retention"
    FLUSH = "flush"
    RECOVERY_POINTS = "recovery points"
    LOG_START_OFFSETS = "log start offsets"
    HIGH_WATERMARKS = "high watermarks"
    PRODUCERS = "producers"


@dataclass(slots=True)
class Schedule:
    """When each task is due next, and how often it comes again; in milliseconds. A period of 0 or less is every time."""

    period_ms: dict[Task, int]
    next_ms: dict[Task, int]
    _seen_ms: int = field(default=0)

    @classmethod
    def beginning(cls, now_ms: int, tasks: dict[Task, tuple[int, int]]) -> "Schedule":
        """Tasks with the time until they are first due and their period."""
        next_ms = {task: now_ms + first for task, (first, _) in tasks.items()}
        return cls({task: period for task, (_, period) in tasks.items()}, next_ms, now_ms)

    def due(self, now_ms: int) -> list[Task]:
        """The tasks whose time has come; each then waits for its period again, one that is late not twice."""
        if now_ms < self._seen_ms:  # the clock was put back: what was a minute away still is
            back = self._seen_ms - now_ms
            self.next_ms = {task: at - back for task, at in self.next_ms.items()}
        self._seen_ms = now_ms
        due = [task for task, at in self.next_ms.items() if at <= now_ms]
        for task in due:
            period = self.period_ms[task]
            if period > 0:
                late = now_ms - self.next_ms[task]
                self.next_ms[task] += period * (late // period + 1)
        return due
