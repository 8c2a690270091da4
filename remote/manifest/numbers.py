"""What numbers the archive's JSON may hold: Python reads any, and what is computed from them has 64 bits, or fewer."""

from functools import cache
from typing import Any

from local_log.formats.primitives import INT32_MAX, INT64_MAX

TIME_MS_MAX = 253_402_300_799_999
"""The end of the year 9999."""
_ANY = {"max_timestamp_ms", "min_timestamp_ms", "oldest_ms", "youngest_ms"}
_OR_LESS_BY_ONE = {"least_epoch", "last_offset"}
_OF_32_BITS = {"partition", "partitions", "level", "least_epoch", "epoch"}
_TIMES = {
    "committed_at_ms", "data_committed_at_ms", "copied_at_ms", "since_ms", "noticed_at_ms", "deleted_at_ms", "decided_at_ms",
    "acknowledged_at_ms", "resolved_at_ms", "swept_ms", "started_ms", "ended_ms",
}  # fmt: skip
_SHOWN_BITS_MAX = 128


@cache
def bounds_of(name: str) -> tuple[int, int]:
    """The least and the greatest number that a field of this name may have.

    Records may have any timestamp, and what has no leader epoch, or no record, has -1 or one less than its start; times of our
    own are of years that calendars have.
    """
    if name in _ANY:
        return -INT64_MAX - 1, INT64_MAX
    least = -1 if name in _OR_LESS_BY_ONE else 0
    if name in _OF_32_BITS:
        return least, INT32_MAX
    if name.endswith("crc32c"):
        return least, (1 << 32) - 1
    return least, TIME_MS_MAX if name in _TIMES else INT64_MAX


def whole(value: Any, name: str = "number") -> int:
    """A whole number that a field of this name may have; True is none. Raises TypeError, ValueError."""
    if type(value) is not int:
        raise TypeError(f"{name} is {value!r}, which is no whole number")
    least, most = bounds_of(name)
    return value if least <= value <= most else within(value, least, most, name)


def within(number: int, least: int, most: int, name: str = "number") -> int:
    """The same number, where it lies in `[least, most]`. Raises ValueError."""
    if not least <= number <= most:
        raise ValueError(f"{name} is {_shown(number)}, outside of [{least}, {most}]")
    return number


def _shown(number: int) -> str:
    """A number for a message: one of thousands of digits would be the message."""
    return str(number) if number.bit_length() <= _SHOWN_BITS_MAX else f"a number of {number.bit_length()} bits"
