"""What is due when: tasks by key, each at most once, run by whoever hands in the time (Kafka's CoordinatorTimer)."""

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count

Task = Callable[[], None]
_Entry = tuple[int, int, Hashable, Task]


@dataclass(slots=True)
class Timers:
    """Tasks by key. Scheduling a key again replaces its task."""

    _current: dict[Hashable, _Entry] = field(default_factory=dict)
    _queue: list[_Entry] = field(default_factory=list)
    """Also those that were cancelled, until their time has come."""
    _numbers: "count[int]" = field(default_factory=count)

    def schedule(self, key: Hashable, at_ms: int, task: Task) -> None:
        """Runs the task at this time."""
        entry = (at_ms, next(self._numbers), key, task)
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

    def due(self, now_ms: int) -> Iterator[Task]:
        """The tasks whose time has come, each forgotten before it is handed out; also those that are scheduled meanwhile."""
        while self._queue and self._queue[0][0] <= now_ms:
            entry = heapq.heappop(self._queue)
            if self._current.get(entry[2]) is entry:
                del self._current[entry[2]]
                yield entry[3]
