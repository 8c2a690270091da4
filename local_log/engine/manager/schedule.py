"""Computes which periodic tasks are due. Pure: the current time is an argument."""

from dataclasses import dataclass, field
from enum import Enum


class Task(Enum):
    """The log manager's background tasks."""

    RETENTION = "retention"
    FLUSH = "flush"
    RECOVERY_POINTS = "recovery points"
    LOG_START_OFFSETS = "log start offsets"
    HIGH_WATERMARKS = "high watermarks"
    PRODUCERS = "producers"
    CLEANING = "cleaning"


@dataclass(slots=True)
class Schedule:
    """When each task is due next, and its period, both in ms. A task with a period of 0 or less is always due."""

    period_ms: dict[Task, int]
    next_ms: dict[Task, int]
    _seen_ms: int = field(default=0)

    @classmethod
    def beginning(cls, now_ms: int, tasks: dict[Task, tuple[int, int]]) -> "Schedule":
        """Creates the schedule from each task's initial delay and period."""
        next_ms = {task: now_ms + first for task, (first, _) in tasks.items()}
        return cls({task: period for task, (_, period) in tasks.items()}, next_ms, now_ms)

    def due(self, now_ms: int) -> list[Task]:
        """The tasks that are due. Each is scheduled again after its period; a missed run is not made up for."""
        if now_ms < self._seen_ms:  # the clock was set back: the remaining waits stay the same
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
