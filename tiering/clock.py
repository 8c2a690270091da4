"""The machine's time of day and randomness: the only file that reads either."""

import time
import uuid


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


def jitter() -> float:
    """A number in [0, 1), for what is to be spread in time."""
    return uuid.uuid4().int / (1 << 128)  # noqa: TID251  # this is the door
