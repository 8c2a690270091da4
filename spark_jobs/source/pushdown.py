"""Filter pushdown: the topics, partitions, offsets and times that a query's filters can be true for. Pure.

A filter that is not understood restricts nothing. Spark applies all filters to each row again, so too much is never wrong.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from local_log.ranges import Range, Ranges, bounding_range, intersection, joined

_FIRST, _END = -(1 << 63), 1 << 63
ALL: Final[Ranges] = ((_FIRST, _END),)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_BEFORE: dict[type[Filter], Callable[[int, int], tuple[int, int]]] = {
    # from a value's floor and ceiling, which differ only for a time between two milliseconds
    EqualTo: lambda low, high: (high, low + 1),
    EqualNullSafe: lambda low, high: (high, low + 1),
    GreaterThan: lambda low, high: (low + 1, _END),
    GreaterThanOrEqual: lambda low, high: (high, _END),
    LessThan: lambda low, high: (_FIRST, high),
    LessThanOrEqual: lambda low, high: (_FIRST, low + 1),
}


@dataclass(frozen=True, slots=True)
class Pushdown:
    """What the filters leave: these topics (None: any), and numbers in these ranges; times in ms since 1970."""

    topics: frozenset[str] | None = None
    partitions: Ranges = ALL
    offsets: Ranges = ALL
    times_ms: Ranges = ALL

    def has_topic(self, topic: str) -> bool:
        """Whether the filters can be true for records of this topic."""
        return self.topics is None or topic in self.topics

    def has_partition(self, partition: int) -> bool:
        """Whether the filters can be true for records of partitions of this number."""
        return bounding_range(self.partitions, partition, partition + 1) is not None


EVERYTHING: Final = Pushdown()
"""No filters."""


def pushdown_of(filters: Iterable[Filter]) -> Pushdown:
    """The records for which all filters can be true."""
    found = EVERYTHING
    for one in filters:
        found = _narrowed(found, one)
    return found


wanted, Wanted = pushdown_of, Pushdown
"""The names before 0.2, which programs import to call `plan_report`."""


def _narrowed(found: Pushdown, one: Filter) -> Pushdown:
    if not isinstance(one, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual | In):
        return found
    column = ".".join(one.attribute)
    if column == "topic":
        topics = _topics(one)
        narrowed = topics if found.topics is None or topics is None else topics & found.topics
        return found if narrowed is None else replace(found, topics=narrowed)
    ranges = _ranges(one, column == "timestamp") if column in ("partition", "offset", "timestamp") else None
    if ranges is None:
        return found
    if column == "partition":
        return replace(found, partitions=intersection(found.partitions, ranges))
    if column == "offset":
        return replace(found, offsets=intersection(found.offsets, ranges))
    return replace(found, times_ms=intersection(found.times_ms, ranges))


def _topics(one: Any) -> frozenset[str] | None:
    if isinstance(one, In):
        return frozenset(v for v in one.value if isinstance(v, str))
    if isinstance(one, EqualTo | EqualNullSafe) and isinstance(one.value, str):
        return frozenset([one.value])
    return None


def _ranges(one: Any, are_times: bool) -> Ranges | None:
    """The numbers for which a filter can be true, None where it is not understood. A null equals none of them."""
    if isinstance(one, In):
        bounds = [_floor_and_ceiling(v, are_times) for v in one.value if v is not None]
        known = [b for b in bounds if b is not None]
        return joined(sorted((high, low + 1) for low, high in known if high <= low)) if len(known) == len(bounds) else None
    bound = _floor_and_ceiling(one.value, are_times)
    return None if bound is None else _nonempty(_BEFORE[type(one)](*bound))


def _nonempty(one: Range) -> Ranges:
    return (one,) if one[0] < one[1] else ()


def _floor_and_ceiling(value: Any, is_time: bool) -> tuple[int, int] | None:
    if is_time and isinstance(value, datetime) and value.tzinfo is not None:
        microseconds = (value - _EPOCH) // _MICROSECOND
        return microseconds // 1000, -(-microseconds // 1000)
    return (value, value) if not is_time and type(value) is int else None
