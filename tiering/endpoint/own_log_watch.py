"""Waits for bytes in logs that this process writes: who appends counts them, and wakes who waits when there are enough."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from local_log.errors import LogError
from tiering.read.own_log import OwnLog


class Watch:
    """Calls `wake`, once, when `logs` have `least_bytes` more than they had, or when one was truncated or is gone."""

    def __init__(self, logs: Sequence[OwnLog], wake: Callable[[], object], least_bytes: int) -> None:
        self._logs, self._wake, self._least_bytes = logs, wake, least_bytes
        self._is_over = False
        self._waiters: dict[int, int] = {}
        for at, log in enumerate(logs):
            self._wait(at, log.now.high_watermark.offset + 1)

    def cancel(self) -> None:
        """Waits no longer."""
        self._is_over = True
        for at, waiter in list(self._waiters.items()):
            self._logs[at].live.log.cancel_high_watermark_waiter(waiter)

    def _wait(self, at: int, offset: int) -> None:
        with suppress(LogError):  # there are too many waiters: who waits asks at its deadline
            self._waiters[at] = self._logs[at].live.log.when_high_watermark_reaches(offset, partial(self._look, at, offset))

    def _look(self, at: int, offset: int) -> None:
        """A log has reached an offset, or is truncated, closed or deleted. By the thread that has done it."""
        if self._is_over:
            return
        reached = self._logs[at].live.log.offsets.high_watermark.offset
        if reached >= offset and not self._is_enough():
            self._wait(at, reached + 1)
            return
        self._is_over = True
        self._wake()

    def _is_enough(self) -> bool:
        grown = 0
        for log in self._logs if self._least_bytes > 1 else ():
            now, seen = log.live.log.offsets.high_watermark, log.now.high_watermark
            if now.segment_base != seen.segment_base or now.is_offset_only:
                return True
            grown += now.position - seen.position
        return self._least_bytes <= 1 or grown >= self._least_bytes
