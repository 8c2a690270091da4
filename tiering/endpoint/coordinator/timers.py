"""What is due when: tasks by key, each at most once, run by whoever asks what is due (Kafka's CoordinatorTimer).

As in Kafka, it does not matter to them what the wall clock is set to.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count

from remote.clock import Time

Task = Callable[[], None]
_Entry = tuple[int, int, Hashable, Task]


@dataclass(slots=True)
class Timers:
    """Tasks by key. Scheduling a key again replaces its task."""

    clock: Time
    _current: dict[Hashable, _Entry] = field(default_factory=dict)
    _queue: list[_Entry] = field(default_factory=list)
    """Also those that were cancelled, until their time has come."""
    _numbers: "count[int]" = field(default_factory=count)

    def schedule(self, key: Hashable, after_ms: int, task: Task) -> None:
        """Runs the task after so long."""
        entry = (self.clock.hi_res_clock_ms() + after_ms, next(self._numbers), key, task)
        self._current[key] = entry
        heapq.heappush(self._queue, entry)
        if len(self._queue) > 2 * len(self._current) + 16:
            self._queue = sorted(self._current.values(), key=lambda one: one[:2])

    def is_scheduled(self, key: Hashable) -> bool:
        """Whether a key has a task."""
        return key in self._current

    def cancel(self, key: Hashable) -> None:
        """Forgets the task of a key, if there is one."""
        self._current.pop(key, None)

    @property
    def next_ms(self) -> int | None:
        """When something may be due, None if nothing will be. For any thread, also while another one changes the tasks."""
        return next((at_ms for at_ms, *_ in self._queue[:1]), None)

    def is_due(self) -> bool:
        """Whether something may be due. For any thread."""
        next_ms = self.next_ms
        return next_ms is not None and next_ms <= self.clock.hi_res_clock_ms()

    def due(self) -> Iterator[Task]:
        """The tasks whose time has come, each forgotten before it is handed out; also those that are scheduled meanwhile."""
        now_ms = self.clock.hi_res_clock_ms()
        while self._queue and self._queue[0][0] <= now_ms:
            entry = heapq.heappop(self._queue)
            if self._current.get(entry[2]) is entry:
                del self._current[entry[2]]
                yield entry[3]
