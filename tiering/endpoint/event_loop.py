"""An event loop that tells whether anything waits for it, so that a long answer needs no round of the loop for each part.

A round costs as much as half of what it takes the system to send what a socket has room for.
"""

import asyncio
import select
import selectors
from collections.abc import Coroutine
from time import monotonic
from typing import Any, Final

TURN_S: Final = 0.005
"""So long one answer is sent at most before timers and calls have their turn."""
WAIT_MS: Final = 1
"""So long a socket may be full before the loop waits for it, as for all others."""


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's own, with its selector at hand."""

    def __init__(self) -> None:
        self._waited_for = selectors.DefaultSelector()
        super().__init__(self._waited_for)

    def fileno(self) -> int:
        """Can be read while anything waits for the loop but calls of this thread's and timers."""
        return self._waited_for.fileno()

    def has_calls(self) -> bool:
        """Whether calls of this thread's wait to be made."""
        return bool(self._ready)  # type: ignore[attr-defined]  # asyncio tells it in no other way

    def turn(self, socket: int) -> "Turn":
        """A turn of this thread's, to write to a socket that the loop does not wait to write to."""
        return Turn(self._waited_for.fileno(), socket)


class Turn:
    """Ends when another socket is ready, a timer may be due, or the socket stays full."""

    __slots__ = ("_poll", "_socket", "_until_s", "_waiting")

    def __init__(self, waiting: int, socket: int) -> None:
        self._until_s = monotonic() + TURN_S
        self._waiting, self._socket = waiting, socket
        self._poll = select.poll()
        self._poll.register(waiting, select.POLLIN)

    def goes_on(self) -> bool:
        """Whether nobody else waits."""
        return monotonic() < self._until_s and not self._poll.poll(0)

    def goes_on_when_writable(self) -> bool:
        """Waits until the socket takes more bytes. False if the turn ends before."""
        if monotonic() >= self._until_s:
            return False
        self._poll.register(self._socket, select.POLLOUT)
        ready = self._poll.poll(WAIT_MS)
        self._poll.unregister(self._socket)
        return len(ready) == 1 and ready[0][0] == self._socket


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs it on such a loop, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(main)


def running_loop() -> EventLoop:
    """The one that runs the caller."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, EventLoop)
    return loop
