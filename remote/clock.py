"""Time, ids and chance as the archive needs them: handed in, so that they may be a simulation's. The machine's own are here.

The only file that reads the machine's time of day and randomness.
"""

import secrets
import time
import uuid
from collections.abc import Callable
from typing import Protocol

Jitter = Callable[[], float]
"""Gives numbers in [0, 1)."""

Stopwatch = Callable[[], float]
"""Seconds since some moment; never goes back."""


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


class Randomness(Protocol):
    """A source of secrets."""

    def random_bytes(self, count: int) -> bytes:
        """Bytes that nobody can guess."""


class SystemClock:
    """The time of this machine."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000  # noqa: TID251  # this is the door

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)


class RandomIds:
    """Ids that nobody else has, by chance (122 random bits)."""

    def new_id(self) -> str:
        """32 hexadecimal digits."""
        return uuid.uuid4().hex  # noqa: TID251  # this is the door


class SystemRandomness:
    """What the operating system takes for unguessable."""

    def random_bytes(self, count: int) -> bytes:
        """Fresh random bytes, fit for keys."""
        return secrets.token_bytes(count)


def jitter() -> float:
    """A number in [0, 1), for what is to be spread in time."""
    return uuid.uuid4().int / (1 << 128)  # noqa: TID251  # this is the door


def stopwatch() -> float:
    """Seconds since some moment, to see how long something takes."""
    return time.perf_counter()
