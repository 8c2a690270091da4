"""The options of a stream: those of a batch but for its end, and how much of the archive a micro-batch takes. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from local_log.quantities import parse_duration
from spark_jobs.errors import OptionError
from spark_jobs.options_text import at_least, read_option
from spark_jobs.source.limits import ByPartition, read_offsets
from spark_jobs.source.options import STREAM_ONLY, ReadOptions, parse, refuse_foreign

Value = TypeVar("Value")

STOP_AT = "stopAtOffsets"
"""Ours: where the stream ends for ever, as JSON; partitions that it does not name are not read."""

_OF_A_BATCH = {
    "endingOffsets": "a stream has no end; Trigger.AvailableNow reads what there is, and stopAtOffsets ends a stream for good",
    "endingTimestamp": "a stream has no end; filter by timestamp, or read a batch",
    "endingOffsetsByTimestamp": "a stream has no end; filter by timestamp, or read a batch",
    "asOfVersion": "a stream follows the newest version; read a batch",
    "asOfTimestamp": "a stream follows the newest version; read a batch",
    "pushdown": "Spark pushes no filters into streams",
    "pinHours": "a micro-batch reads what was planned a moment ago, long before retention deletes it",
}
_MICROSECONDS = re.compile(r"([0-9]{1,30})\s*us")
"""A unit of Spark's that nothing else here has."""
_DELAY_DEFAULT = "15m"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What to read, and at most how many offsets in one micro-batch (None: all that there are).

    A micro-batch waits until there are `min_offsets`, but no longer than `max_delay_ms`. `stop_at` is None where the stream goes
    on for ever.
    """

    read: ReadOptions
    max_offsets: int | None
    min_offsets: int | None
    max_delay_ms: int
    stop_at: ByPartition | None


def parse_stream(options: Mapping[str, str]) -> StreamOptions:
    """The options as Spark hands them over; names without regard to case. Raises OptionError."""
    refused = {name.lower(): name for name in _OF_A_BATCH}
    for name in options:
        if name.lower() in refused:
            known = refused[name.lower()]
            raise OptionError(f"option {known} does not apply to streams: {_OF_A_BATCH[known]}")
    own = {name.lower(): name for name in (*STREAM_ONLY, STOP_AT)}
    given = {own[name.lower()]: text.strip() for name, text in options.items() if name.lower() in own}
    rest = {name: text for name, text in options.items() if name.lower() not in own}
    read = parse({n: _without_ids(t) if n.lower() == "startingoffsets" else t for n, t in rest.items()}, streaming=True)

    most, least = (_count(given, name) for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"))
    if most is not None and least is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger ({least}) is more than maxOffsetsPerTrigger ({most}); exchange them")
    delay = read_option(given, "maxTriggerDelay", _milliseconds) if "maxTriggerDelay" in given else _milliseconds(_DELAY_DEFAULT)
    stop_at = read_option(given, STOP_AT, lambda text: _stops(text, read)) if STOP_AT in given else None
    return StreamOptions(read, most, least, delay, stop_at)


def _count(given: Mapping[str, str], name: str) -> int | None:
    return read_option(given, name, lambda text: at_least(1, text)) if name in given else None


def _milliseconds(text: str) -> int:
    if microseconds := _MICROSECONDS.fullmatch(text.lower()):
        return int(microseconds[1]) // 1000
    return parse_duration(text)


def _stops(text: str, read: ReadOptions) -> ByPartition:
    by_partition = read_offsets(text).by_partition
    if by_partition is None or any(o < 0 for offsets in by_partition.values() for o in offsets.values()):
        raise ValueError('must be an offset, 0 or more, for each partition, such as {"topic":{"0":23}}')
    refuse_foreign(by_partition, read.strategy)
    return by_partition


def _without_ids(text: str) -> str:
    """Starting offsets that come from the checkpoint of another stream bring the topics' ids along."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text  # which says what is wrong with it when it is parsed for what it is
    if not isinstance(parsed, dict):
        return text
    return json.dumps({topic: offsets for topic, offsets in parsed.items() if "@" not in topic})
