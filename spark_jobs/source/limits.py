"""Where a read starts or ends, as text in the forms of Spark's Kafka source. Pure: text in, values out.

a word        earliest, latest
offsets       {"topic":{"0":23,"1":-2}}       -2 is earliest, -1 is latest
a time        1700000000000                   ms since 1970, for all partitions; or 2026-11-20T10:00Z, or -2h
times         {"topic":{"0":1700000000000}}   or a text for each, as above
partitions    {"topic":[0,1]}
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local_log.formats.primitives import INT64_MAX
from local_log.quantities import TIMES, parse_time
from remote.manifest.numbers import whole, within
from spark_jobs.errors import OptionError

EARLIEST = "earliest"
LATEST = "latest"
EARLIEST_OFFSET, LATEST_OFFSET = -2, -1

ByPartition = Mapping[str, Mapping[int, int]]

_OFFSETS_FORM = '{"topic":{"0":23}}'
_TIMES_FORM = '{"topic":{"0":1700000000000}}'
_ASSIGN_FORM = '{"topic":[0,1]}'


@dataclass(frozen=True, slots=True)
class Offsets:
    """`earliest` or `latest` for all partitions, or an offset for each, by topic and partition (-2 earliest, -1 latest)."""

    everywhere: str
    by_partition: ByPartition | None = None

    def of(self, topic: str, partition: int, option: str) -> int | str:
        """The offset for one partition, or one of the two words. Raises OptionError where none is named for it."""
        if self.by_partition is None:
            return self.everywhere
        offset = self.by_partition.get(topic, {}).get(partition)
        if offset is None:
            raise OptionError(
                f"{option} has no offset for {topic}-{partition}; an offset for every partition is needed, -2 is earliest, "
                "-1 is latest"
            )
        return {EARLIEST_OFFSET: EARLIEST, LATEST_OFFSET: LATEST}.get(offset, offset)


@dataclass(frozen=True, slots=True)
class Times:
    """One time for all partitions, or one for each, by topic and partition; ms since 1970."""

    everywhere: int
    by_partition: ByPartition | None = None

    def of(self, topic: str, partition: int, option: str) -> int:
        """The time for one partition. Raises OptionError where none is named for it."""
        if self.by_partition is None:
            return self.everywhere
        time_ms = self.by_partition.get(topic, {}).get(partition)
        if time_ms is None:
            raise OptionError(f"{option} has no time for {topic}-{partition}; a time for every partition is needed")
        return time_ms


Limit = Offsets | Times


def read_offsets(value: str) -> Offsets:
    """`earliest`, `latest` or JSON. Raises ValueError."""
    if value.lower() in (EARLIEST, LATEST):
        return Offsets(value.lower())
    form = f"expected {EARLIEST}, {LATEST} or an offset for each partition as JSON, such as {_OFFSETS_FORM}"
    by_partition = read_by_partition(value, form)
    if any(o < EARLIEST_OFFSET for offsets in by_partition.values() for o in offsets.values()):
        raise ValueError(f"offsets are 0 or more, {EARLIEST_OFFSET} ({EARLIEST}) or {LATEST_OFFSET} ({LATEST})")
    return Offsets("", by_partition)


def read_time(value: str, now_ms: int) -> Times:
    """One time. Raises ValueError."""
    return Times(parse_time(value, now_ms))


def read_times(value: str, now_ms: int) -> Times:
    """Times as JSON. Raises ValueError."""

    def time(given: Any) -> int:
        if isinstance(given, str):
            return parse_time(given, now_ms)
        if type(given) is not int:
            raise ValueError(f"{given!r} is not valid; expected {TIMES}")
        return _whole_number(given)

    by_partition = read_by_partition(value, f"expected a time for each partition as JSON, such as {_TIMES_FORM}", time)
    if any(ms < 0 for times in by_partition.values() for ms in times.values()):
        raise ValueError(f"a time is before 1970; expected {TIMES}")
    return Times(0, by_partition)


def refuse_word(limit: Limit, word: str) -> None:
    """Raises ValueError where a batch would start at `latest` or end at `earliest`."""
    if not isinstance(limit, Offsets):
        return
    if limit.everywhere == word:
        raise ValueError(f"a batch cannot {'start at latest' if word == LATEST else 'end at earliest'}")
    refused = LATEST_OFFSET if word == LATEST else EARLIEST_OFFSET
    for topic, offsets in (limit.by_partition or {}).items():
        for partition, offset in offsets.items():
            if offset == refused:
                raise ValueError(f"{topic}-{partition}: {refused} ({word}) cannot stand here in a batch")


def read_by_partition(value: str, form: str, number: Callable[[Any], int] | None = None) -> dict[str, dict[int, int]]:
    """An integer for each partition of topics, which `number` reads. Raises ValueError, with `form` for another form."""
    read = number or _whole_number
    parsed = _json(value, form)
    if not isinstance(parsed, dict) or not all(isinstance(numbers, dict) for numbers in parsed.values()):
        raise ValueError(form)
    return {topic: {_partition(p): read(n) for p, n in numbers.items()} for topic, numbers in parsed.items()}


def read_assigned(value: str) -> dict[str, tuple[int, ...]]:
    """Partitions of topics, in order. Raises ValueError."""
    form = f"expected partitions as JSON, such as {_ASSIGN_FORM}"
    parsed = _json(value, form)
    if not isinstance(parsed, dict) or not all(isinstance(numbers, list) for numbers in parsed.values()):
        raise ValueError(form)
    assigned = {topic: tuple(sorted({_whole_number(n) for n in numbers})) for topic, numbers in parsed.items() if numbers}
    if not assigned or any(numbers[0] < 0 for numbers in assigned.values()):
        raise ValueError(form)
    return assigned


def _json(value: str, form: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as e:
        raise ValueError(form) from e


def _whole_number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return within(value, -INT64_MAX - 1, INT64_MAX)


def _partition(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no partition; give its number, as in {_OFFSETS_FORM}")
    return whole(int(text), "partition")
