"""Accepts connections on an event loop (Kafka's Acceptor)."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SEND_BUFFER_BYTES: Final = 256 << 10
"""Of the socket, for `sendfile`. Kafka's 100 KiB took a third more calls an answer; from 320 KiB on what is sent leaves the
processor's cache before the client on the same machine has taken it, and a GB costs up to twice as much."""
ACCEPTED_AT_ONCE_MAX: Final = 100
RETRY_S: Final = 1.0
"""After it could not accept, for instance since there were too many open files."""


@dataclass(slots=True)
class Acceptor:
    """Gives what it accepts, with the client's address, to `take`."""

    loop: asyncio.AbstractEventLoop
    listener: socket.socket
    take: Callable[[socket.socket, tuple[str, int]], object]
    report: Callable[[str], object]
    _is_closed: bool = False

    def start(self) -> None:
        """Begins to accept."""
        if not self._is_closed:
            self.loop.add_reader(self.listener.fileno(), self._accept)

    def close(self) -> None:
        """Closes the listener."""
        self._is_closed = True
        self.loop.remove_reader(self.listener.fileno())
        self.listener.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            try:
                accepted, address = self.listener.accept()
            except BlockingIOError:
                return
            except OSError as e:
                self.report(f"cannot accept a connection: {e}")
                self.loop.remove_reader(self.listener.fileno())  # it would be told at once again
                self.loop.call_later(RETRY_S, self.start)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            self.take(accepted, address[:2])
