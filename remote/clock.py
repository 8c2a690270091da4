"""Time and ids as the archive needs them. What is handed in decides whether they are the machine's or a simulation's."""

from typing import Protocol


class Clock(Protocol):
    """The time now, in ms since 1970, and a way to wait."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""

    def sleep(self, seconds: float) -> None:
        """Waits."""


class Ids(Protocol):
    """A source of ids."""

    def new_id(self) -> str:
        """32 hexadecimal digits that nobody else has."""
