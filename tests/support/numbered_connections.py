"""The core of the socket server with connections that are numbers, and a client's frames."""

from dataclasses import replace

from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.socket_server import SocketServer

LIMITS = SocketServerConfig(
    request_bytes_max=1000, queued_bytes_max=5000, parsed_ratio=0, ahead_bytes_max=50, idle_ms_max=100, receive_ms_max=30
)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def server(*ips: str, **limits: int) -> SocketServer:
    """With a connection from each address, numbered from 0 on, at time 0."""
    found = SocketServer(replace(LIMITS, **limits))
    for number, ip in enumerate(ips):
        assert found.accepted(number, ip, 0) == []
    return found


def answer(at: SocketServer, parts: tuple[bytes, ...] = (b"!",), now_ms: int = 0) -> tuple[object, bytes, list[object]]:
    """Takes the next request and answers it; gives the connection, the request and what followed."""
    found = at.take_request()
    assert found is not None
    connection, request = found
    send = at.answered(connection, parts)
    assert send is not None
    send.advance(send.left)
    return connection, request, list(at.sent(connection, now_ms))
