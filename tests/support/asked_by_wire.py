"""Requests over a socket, to a broker or to our endpoint alike."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from select import select
from typing import Any

from asked_endpoint import response_of

from tiering.endpoint.protocol.api_keys import Api
from tiering.endpoint.protocol.requests import RequestHeader, write_request

CORRELATION_ID = 99


@dataclass(slots=True)
class Wire:
    """A connection, made anew when it was closed."""

    address: str
    on_connected: "Callable[[Wire], None] | None" = None
    """Called for each new connection, before anything else is asked."""
    _socket: socket.socket | None = None

    def ask(self, api: Api, version: int, message: object) -> Any:
        """The response, None if the connection was closed instead."""
        data = self.ask_bytes(write_request(RequestHeader(api, version, CORRELATION_ID, "test"), message))
        return None if data is None else response_of(api, version, data)

    def ask_bytes(self, frame: bytes) -> bytes | None:
        """The whole frame of the response, None if the connection was closed instead."""
        self.send(frame)
        return self.receive()

    def send(self, frame: bytes) -> None:
        """Only sends."""
        self._connected().sendall(frame)

    def has_answer(self, seconds: float) -> bool:
        """Whether there is something to receive within so many seconds."""
        return bool(select([self._connected()], [], [], seconds)[0])

    def receive(self) -> bytes | None:
        """The whole frame of the response to what was sent, None if the connection was closed instead."""
        connection, data = self._connected(), bytearray()
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            more = _received(connection)
            if not more:
                self.close()
                return None
            data += more
        return bytes(data)

    def fileno(self) -> int:
        """So that a selector can wait for answers."""
        return self._connected().fileno()

    def close(self) -> None:
        """Closes the connection; the next request makes another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            host, _, port = self.address.rpartition(":")
            self._socket = socket.create_connection((host, int(port)), timeout=60)
            if self.on_connected is not None:
                self.on_connected(self)
        return self._socket


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 20)
    except ConnectionResetError:
        return b""
