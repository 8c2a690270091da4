"""One bound on the memory of all requests and answers together (Kafka's MemoryPool, which bounds the requests).

It gives while anything is left, and may so be exceeded by what is under way then: a bound on what begins, not on each byte.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class MemoryPool:
    """Bytes that are taken are given back."""

    size: int
    used: int = 0

    @property
    def has_room(self) -> bool:
        """Whether more may begin."""
        return self.used < self.size

    def take(self, count: int) -> None:
        """Takes so many bytes, whether they are there or not."""
        self.used += count

    def release(self, count: int) -> None:
        """Gives them back."""
        self.used -= count
        assert self.used >= 0
