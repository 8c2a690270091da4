"""What a server says of itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is at one moment."""

    connections: int
    memory_bytes: int
    """Of all requests and answers."""
    moved_s: float
    """When its loop last went round, by a monotonic clock."""
    is_stopping: bool
