"""Protocols for time, ids and randomness, which callers pass in, and their implementations on the operating system.

The only module that reads the system clock or system randomness. Each command loads it, and few draw an id: what makes
those is loaded by the first.
"""

import time
from collections.abc import Callable
from typing import Protocol

Jitter = Callable[[], float]
"""Returns a random number in [0, 1)."""

Stopwatch = Callable[[], float]
"""A monotonic clock in seconds."""


class Clock(Protocol):
    """The wall clock, and a way to wait."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""

    def sleep(self, seconds: float) -> None:
        """Sleeps for so many seconds."""


class Time(Clock, Protocol):
    """The wall clock, which may be set at any time, and one that nobody sets, to see how long something takes (Kafka's Time)."""

    def hi_res_clock_ms(self) -> int:
        """Milliseconds since some moment that stays the same while this process lives (Java's nanoTime)."""


class Ids(Protocol):
    """A generator of unique ids."""

    def new_id(self) -> str:
        """A new unique id of 32 hexadecimal digits."""


class Randomness(Protocol):
    """A source of secret random bytes."""

    def random_bytes(self, count: int) -> bytes:
        """`count` cryptographically secure random bytes."""


class SystemClock:
    """The clocks of the system."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000  # noqa: TID251  # the only place that reads the time

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def hi_res_clock_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class RandomIds:
    """Random UUIDs (122 random bits)."""

    def new_id(self) -> str:
        import uuid

        return uuid.uuid4().hex  # noqa: TID251  # the only place that makes ids


class SystemRandomness:
    """The operating system's secure random source."""

    def random_bytes(self, count: int) -> bytes:
        import secrets

        return secrets.token_bytes(count)


def jitter() -> float:
    """A random number in [0, 1), to spread retries in time."""
    import uuid

    return uuid.uuid4().int / (1 << 128)  # noqa: TID251  # the only place that makes random numbers


def stopwatch() -> float:
    """A monotonic time in seconds, to measure durations."""
    return time.perf_counter()
