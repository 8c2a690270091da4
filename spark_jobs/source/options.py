"""The options of the data source, with the names, defaults and precedence of Spark's Kafka source. Pure: text in, values out."""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from spark_jobs.errors import OptionError as OptionError  # asked for here, too

T = TypeVar("T")

EARLIEST = "earliest"
LATEST = "latest"
_EARLIEST_OFFSET, _LATEST_OFFSET = -2, -1

_KNOWN = (
    "archive",
    "subscribe",
    "keys",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "includeHeaders",
    "kafka.isolation.level",
)
_BY_LOWER = {name.lower(): name for name in _KNOWN}
_INSTEAD = {"startingoffsetsbytimestamp": "startingTimestamp", "endingoffsetsbytimestamp": "endingTimestamp"}
"""What Spark's Kafka source has and we do not, and what comes near it."""
_OFFSETS_FORM = '{"topic":{"0":23}}'


@dataclass(frozen=True, slots=True)
class Offsets:
    """`earliest` or `latest` for all partitions, or an offset for each, by topic and partition (-2 earliest, -1 latest)."""

    everywhere: str
    by_partition: Mapping[str, Mapping[int, int]] | None = None

    def of(self, topic: str, partition: int, option: str) -> int | str:
        """The offset for one partition, or one of the two words."""
        if self.by_partition is None:
            return self.everywhere
        offset = self.by_partition.get(topic, {}).get(partition)
        if offset is None:
            raise OptionError(
                f"{option} names no offset for {topic}-{partition}; an offset for every partition is needed, -2 is earliest, "
                "-1 is latest"
            )
        return {_EARLIEST_OFFSET: EARLIEST, _LATEST_OFFSET: LATEST}.get(offset, offset)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read. A timestamp (ms), where there is one, comes before the offsets, as in Spark.

    `keys` is where the keys of encrypted segments are (see `remote.transforms.key_rings`): driver and executors open it, each for
    itself, so no key travels.
    """

    archive: str
    keys: str | None
    topics: tuple[str, ...]
    starting_offsets: Offsets
    ending_offsets: Offsets
    starting_timestamp: int | None
    ending_timestamp: int | None
    latest_when_no_match: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    include_headers: bool
    read_committed: bool


def parse(options: Mapping[str, str]) -> ReadOptions:
    """The options as Spark hands them over; their names are read without regard to case. Raises OptionError."""
    given: dict[str, str] = {}
    for name, text in options.items():
        if name.lower() in _INSTEAD:
            raise OptionError(
                f"option {name} is not supported by the format tiering; use {_INSTEAD[name.lower()]}, one time for all partitions"
            )
        known = _BY_LOWER.get(name.lower())
        if known is None:
            near = difflib.get_close_matches(name.lower(), _BY_LOWER, n=1)
            hint = f"did you mean {_BY_LOWER[near[0]]}?" if near else f"there are {', '.join(_KNOWN)}"
            raise OptionError(f"option {name} is unknown to the format tiering; {hint}")
        given[known] = text

    def value(name: str, read: Callable[[str], T], default: T) -> T:
        if name not in given:
            return default
        try:
            return read(given[name].strip())
        except (ValueError, TypeError, AttributeError, RecursionError) as e:
            raise OptionError(f"option {name} is {given[name]!r}: {e}") from e

    if not given.get("archive", "").strip():
        raise OptionError("option archive is missing: a folder, s3://bucket/prefix or any fsspec URL")
    topics = tuple(dict.fromkeys(t.strip() for t in given.get("subscribe", "").split(",") if t.strip()))
    if not topics:
        raise OptionError("option subscribe is missing: topics, with commas between them")
    return ReadOptions(
        archive=given["archive"].strip(),
        keys=value("keys", _filled, None),
        topics=topics,
        starting_offsets=value("startingOffsets", lambda v: _offsets(v, topics, forbidden=LATEST), Offsets(EARLIEST)),
        ending_offsets=value("endingOffsets", lambda v: _offsets(v, topics, forbidden=EARLIEST), Offsets(LATEST)),
        starting_timestamp=value("startingTimestamp", _whole, None),
        ending_timestamp=value("endingTimestamp", _whole, None),
        latest_when_no_match=value("startingOffsetsByTimestampStrategy", lambda v: _one_of(v, "error", LATEST), "error")
        == LATEST,
        fail_on_data_loss=value("failOnDataLoss", _boolean, True),
        min_partitions=value("minPartitions", _positive, None),
        include_headers=value("includeHeaders", _boolean, False),
        read_committed=value("kafka.isolation.level", lambda v: _one_of(v, *_ISOLATION), _ISOLATION[0]) == _ISOLATION[1],
    )


_ISOLATION = ("read_uncommitted", "read_committed")


def _one_of(value: str, *choices: str) -> str:
    if value.lower() not in choices:
        raise ValueError(f"must be {' or '.join(choices)}")
    return value.lower()


def _boolean(value: str) -> bool:
    return _one_of(value, "true", "false") == "true"


def _filled(value: str) -> str | None:
    if not value:
        raise ValueError("must be a file, env://NAME or aws-kms://KEY")
    return value


def _whole(value: str) -> int | None:
    number = int(value)
    if number < 0:
        raise ValueError("must be milliseconds since 1970, 0 or more")
    return number


def _whole_number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no offset")
    return value


def _positive(value: str) -> int | None:
    number = int(value)
    if number < 1:
        raise ValueError("must be 1 or more")
    return number


def _offsets(value: str, topics: tuple[str, ...], *, forbidden: str) -> Offsets:
    if value.lower() in (EARLIEST, LATEST):
        if value.lower() == forbidden:
            raise ValueError(f"a batch cannot {'start at latest' if forbidden == LATEST else 'end at earliest'}")
        return Offsets(value.lower())
    by_partition = _by_partition(value)
    others = sorted(by_partition.keys() - set(topics))
    if others:
        raise ValueError(f"it names topics that are not subscribed: {', '.join(others)}; leave them out, or subscribe to them")
    refused = _LATEST_OFFSET if forbidden == LATEST else _EARLIEST_OFFSET
    if any(o < _EARLIEST_OFFSET or o == refused for offsets in by_partition.values() for o in offsets.values()):
        raise ValueError(f"offsets are 0 or more; {refused} ({forbidden}) cannot stand here")
    return Offsets("", by_partition)


def _by_partition(value: str) -> dict[str, dict[int, int]]:
    form = f"expected {EARLIEST}, {LATEST} or an offset for each partition as JSON, such as {_OFFSETS_FORM}"
    try:
        parsed: Any = json.loads(value)
    except (ValueError, RecursionError) as e:
        raise ValueError(form) from e
    if not isinstance(parsed, dict) or not all(isinstance(offsets, dict) for offsets in parsed.values()):
        raise ValueError(form)
    return {topic: {_partition(p): _whole_number(o) for p, o in offsets.items()} for topic, offsets in parsed.items()}


def _partition(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no partition; give its number, as in {_OFFSETS_FORM}")
    return int(text)
