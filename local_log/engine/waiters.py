"""Who waits for an offset of a log: a long poll for new data, or an append for its replication.

A waiter is called once, and then looks at the log again: when the offset is reached, or earlier when the log is truncated or
closed, since it may never be reached then.
"""

import threading
from collections.abc import Callable
from itertools import count
from typing import Final

from local_log.errors import Invalid
from local_log.formats.primitives import INT64_MAX

WAITERS_MAX: Final = 100_000

Wake = Callable[[], object]
"""Called by the thread that changed the log, perhaps while it owns it: it must neither wait nor raise (set an event)."""


class Waiters:
    """The waiters for one offset of a log, such as its end. Any thread may add and cancel."""

    __slots__ = ("_ids", "_lock", "_waiting", "least")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = count()
        self._waiting: dict[int, tuple[int, Wake]] = {}
        self.least = INT64_MAX
        """The least offset that is waited for. A writer whose offset is lower has nobody to wake."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, wake: Wake, reached: Callable[[], int]) -> int:
        """Calls `wake` once `offset` is reached, which may be at once; `reached` gives the log's offset. Returns the waiter's id.

        Raises Invalid if there are too many waiters.
        """
        with self._lock:
            if len(self._waiting) >= WAITERS_MAX:
                raise Invalid(f"{WAITERS_MAX} waiters for one log; cancel those that nobody waits for any more")
            waiter = next(self._ids)
            self._waiting[waiter] = offset, wake
            self.least = min(self.least, offset)
        if reached() >= offset:  # a writer that came before the waiter did not see it
            self.wake(reached())
        return waiter

    def cancel(self, waiter: int) -> bool:
        """Whether the waiter was still waiting; it is not called any more."""
        with self._lock:
            return self._removed(waiter) is not None

    def wake(self, offset: int) -> None:
        """Calls those who wait for `offset` or a lower one."""
        if offset < self.least or not self._waiting:
            return
        with self._lock:
            due = [self._removed(waiter) for waiter, (of, _) in list(self._waiting.items()) if of <= offset]
        for wake in due:
            if wake is not None:
                wake()

    def _removed(self, waiter: int) -> Wake | None:
        found = self._waiting.pop(waiter, None)
        if found is None:
            return None
        offset, wake = found
        if offset == self.least:
            self.least = min((of for of, _ in self._waiting.values()), default=INT64_MAX)
        return wake
