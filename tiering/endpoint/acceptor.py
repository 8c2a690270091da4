"""Accepts connections on an event loop (Kafka's Acceptor)."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ACCEPTED_AT_ONCE_MAX: Final = 100
RETRY_S: Final = 1.0
"""After it could not accept, for instance since there were too many open files."""


@dataclass(slots=True)
class Acceptor:
    """Gives what it accepts, with the client's address, to `take`. With -1 the system decides about sockets' send buffers."""

    loop: asyncio.AbstractEventLoop
    listener: socket.socket
    take: Callable[[socket.socket, tuple[str, int]], object]
    report: Callable[[str], object]
    send_buffer_bytes: int
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
            if self.send_buffer_bytes >= 0:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
            self.take(accepted, address[:2])
