"""What others tell a running agent: pause, resume, stop, abort what is under way. The only state that its threads share."""

from collections.abc import Callable
from threading import Event

from remote.clock import Clock


class Aborted(Exception):
    """The agent aborts what it is doing. Nothing names what a copy has uploaded so far."""


class Controls:
    """Told by signals and requests, asked by the loop and by copies. `on_change` wakes the loop."""

    def __init__(self) -> None:
        self.is_paused = False
        self.is_stopping = False
        self.on_change: Callable[[], None] = lambda: None
        self._aborting = Event()

    def pause(self) -> None:
        """Starts nothing new; a running copy continues to the end of its segment."""
        self.is_paused = True
        self.on_change()

    def resume(self) -> None:
        """Ends a pause."""
        self.is_paused = False
        self.on_change()

    def stop(self) -> None:
        """Ends the loop when what is under way has come to the end of its segment; asked again, at once."""
        if self.is_stopping:
            self.abort()
        self.is_stopping = True
        self.on_change()

    def abort(self) -> None:
        """Ends what is under way where it next reads, or waits."""
        self._aborting.set()
        self.on_change()

    def check(self) -> None:
        """Raises Aborted where that is asked for."""
        if self._aborting.is_set():
            raise Aborted

    def wait(self, seconds: float) -> None:
        """Waits. Raises Aborted as soon as that is asked for."""
        if self._aborting.wait(seconds):
            raise Aborted


class AbortableClock:
    """`inner`, whose waits end when the agent aborts: a copy that keeps to a byte limit waits for most of its time."""

    def __init__(self, inner: Clock, controls: Controls) -> None:
        self._inner = inner
        self._controls = controls

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return self._inner.now_ms()

    def sleep(self, seconds: float) -> None:
        """Waits. Raises Aborted."""
        self._controls.wait(seconds)
