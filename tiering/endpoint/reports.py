"""Messages for whoever runs the endpoint, not more than a few a minute, since a client may cause one with each request.

The same message is said once a minute.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from remote.clock import Time

PER_MINUTE_MAX: Final = 20
LENGTH_MAX: Final = 2_000
"""Of a message, which may have names that clients choose."""
_MINUTE_MS: Final = 60_000


@dataclass(slots=True)
class Reports:
    """Hands messages to `say`; others are counted, and their number is said with the next one."""

    say: Callable[[str], object]
    clock: Time
    _since_ms: int = 0
    _said: set[str] = field(default_factory=set)
    _unsaid: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, message: str) -> None:
        """Says it, or counts it."""
        if len(message) > LENGTH_MAX:
            message = f"{message[:LENGTH_MAX]}…"
        with self._lock:
            now_ms = self.clock.hi_res_clock_ms()
            if now_ms - self._since_ms >= _MINUTE_MS:
                self._since_ms, self._said = now_ms, set()
            if len(self._said) >= PER_MINUTE_MAX or message in self._said:
                self._unsaid += 1
                return
            self._said.add(message)
            more, self._unsaid = self._unsaid, 0
        self.say(message if not more else f"{message} ({more} more messages were not shown)")
