"""Clients of an endpoint that are sockets, and frames on them."""

import socket

from tiering.endpoint.protocol.api_keys import METADATA
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request


def connected(address: tuple[str, int]) -> socket.socket:
    found = socket.create_connection(address)
    found.settimeout(20)
    return found


def frame_from(of: socket.socket, beginning: bytes = b"") -> bytes:
    data = bytearray(beginning)
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = of.recv(1 << 20)
        assert more, "the connection was closed"
        data += more
    return bytes(data)


def frame_from_exactly(of: socket.socket) -> bytes:
    """One frame, with others after it."""
    size = of.recv(4, socket.MSG_WAITALL)
    return size + of.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)


def metadata(version: int) -> bytes:
    return write_request(RequestHeader(METADATA, version, 99, "test"), MetadataRequest(topics=None if version else ()))
