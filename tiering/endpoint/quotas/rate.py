"""A rate over the last windows of time, as Kafka's Rate measures it: N windows, of which the last is not over yet.

A window begins with the first record after the one before it. It counts for as long as a record of it is not older than all
windows together, even if it began earlier.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Window:
    began_ms: int
    last_ms: int
    value: int


@dataclass(slots=True)
class Rate:
    """`samples` windows of `window_ms` (`quota.window.num`, `quota.window.size.seconds`)."""

    samples: int = 11
    window_ms: int = 1_000
    _windows: deque[_Window] = field(default_factory=deque)

    def record(self, value: int, now_ms: int) -> None:
        """Adds to the window that is now, or takes from it what was added by mistake."""
        if not self._windows or now_ms - self._windows[-1].began_ms >= self.window_ms:
            self._windows.append(_Window(now_ms, now_ms, 0))
            if len(self._windows) > self.samples + 1:
                self._windows.popleft()
        self._windows[-1].value += value
        self._windows[-1].last_ms = now_ms

    def throttle_ms(self, bound: int, now_ms: int) -> int:
        """How long nothing must be recorded until the rate, in bytes a second, is at the bound; 0 if it is not above it."""
        while self._windows and now_ms - self._windows[0].last_ms >= self.samples * self.window_ms:
            self._windows.popleft()
        elapsed_ms = now_ms - self._windows[0].began_ms if self._windows else 0
        # A rate of the first moment would be very high: it is taken that the windows before had nothing.
        elapsed_ms += max(0, self.samples - 1 - elapsed_ms // self.window_ms) * self.window_ms
        over = sum(one.value for one in self._windows) - bound * elapsed_ms / 1000
        return max(0, round(over * 1000 / bound))
