"""What a server says of itself, and of those who are connected."""

from dataclasses import dataclass
from typing import Final

CLIENT_ID_MAX: Final = 255
"""So many bytes of a client id are kept with its connection: it may have 32,767."""
_SIZE_AT, _ID_AT = 8, 10
"""In a request's header, after the key and version of its API and its correlation id."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is at one moment."""

    connections: int
    memory_bytes: int
    """Of all requests and answers."""
    moved_s: float
    """When its loop last went round, by a monotonic clock."""
    is_stopping: bool


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A connection. `client_id` is what the client calls itself, "" if it does not or has asked for nothing yet."""

    client_id: str
    address: str
    principal: str


def client_id_in(frame: bytes) -> str:
    """The beginning of the client id in a request's header; "" for null, and for what is no request."""
    size = int.from_bytes(frame[_SIZE_AT:_ID_AT], "big", signed=True)
    return frame[_ID_AT : _ID_AT + min(max(size, 0), CLIENT_ID_MAX)].decode("utf-8", "replace")
