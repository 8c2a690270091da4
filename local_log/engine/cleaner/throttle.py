"""Limits the cleaner's reads and writes to a number of bytes per second on average (Kafka's Throttler)."""

import threading
from collections.abc import Callable

_CHECK_INTERVAL_MS = 300


class Throttle:
    """For all threads together. `pause` waits for a number of ms; all others wait as long."""

    def __init__(self, bytes_per_second: float, now_ms: Callable[[], int], pause: Callable[[int], object]) -> None:
        self._bytes_per_ms = bytes_per_second / 1000
        self._now_ms = now_ms
        self._pause = pause
        self._lock = threading.Lock()
        self._since_ms = now_ms()
        self._bytes = 0

    def passed(self, size: int) -> None:
        """Counts so many bytes, and waits if there were too many since the last wait."""
        with self._lock:
            self._bytes += size
            elapsed_ms = self._now_ms() - self._since_ms
            if 0 <= elapsed_ms <= _CHECK_INTERVAL_MS or not self._bytes:
                return
            wait_ms = round(self._bytes / self._bytes_per_ms - elapsed_ms) if elapsed_ms > 0 else 0  # the clock was set back
            if wait_ms > 0:
                self._pause(wait_ms)
            self._since_ms, self._bytes = self._now_ms(), 0
