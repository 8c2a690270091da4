"""The options of the data source, with the names, defaults and precedence of Spark's Kafka source. Pure: text in, values out."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from local_log.quantities import parse_duration, parse_size, parse_time
from remote.clock import Clock, SystemClock
from remote.keys import is_topic_id
from spark_jobs.errors import OptionError
from spark_jobs.options_text import at_least, nearest, read_option, unknown
from spark_jobs.source.limits import (
    EARLIEST,
    LATEST,
    ByPartition,
    Limit,
    Offsets,
    Times,
    read_assigned,
    read_by_partition,
    read_offsets,
    read_time,
    read_times,
    refuse_word,
)

T = TypeVar("T")

STRATEGIES = ("assign", "subscribe", "subscribePattern")
"""Which partitions are read: exactly one of these is given."""

_KNOWN = (
    "archive",
    *STRATEGIES,
    "topicId",
    "keys",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "kafka.isolation.level",
    "asOfVersion",
    "asOfTimestamp",
    "pushdown",
    "bytesPerSplit",
    "pinHours",
)
_BY_LOWER = {name.lower(): name for name in _KNOWN}

STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""What Spark's Kafka source ignores in a batch, with a warning in its log, so that one set of options serves both."""

_OF_A_TABLE = frozenset(
    ["provider", "location", "external", "is_managed_location", "owner", "comment", "collation", "table_type"]
)
"""What Spark's catalog says of a table (TableCatalog's reserved properties) comes along with the table's options."""
_TABLE_PREFIX = "option."
"""With it a table's options come once more."""

_OF_A_BROKER = ("groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs")
_OF_A_BROKER_LOWER = {name.lower() for name in _OF_A_BROKER}

BYTES_PER_SPLIT = 128 << 20
"""Spark's own size for splits of files: a task of a few seconds."""
BYTES_PER_SPLIT_MIN = 1 << 10

PIN_HOURS = 24
PIN_HOURS_MAX = 7 * 24
_HOUR_MS = 3_600_000
_PIN_FORMS = f"expected hours, 0 (no pin) to {PIN_HOURS_MAX}, or a duration such as 36h or 7d"

_ISOLATION = ("read_uncommitted", "read_committed")


@dataclass(frozen=True, slots=True)
class Assign:
    """The numbers of the partitions to read, by topic."""

    partitions: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics, in this order."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics in whose name the pattern is found, which is what Spark does with it.

    The pattern is read by Python's `re`. What it has in common with Java's is all that names of topics need; possessive
    quantifiers and atomic groups come with both, classes such as `[a-z&&[^b]]` and `\\p{Alpha}` are Java's alone.
    """

    pattern: str


Strategy = Assign | Subscribe | SubscribePattern


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read.

    `topic_ids` are the ids of topics of which there may be several of one name.
    `keys` is where the keys of encrypted segments are (see `remote.transforms.key_rings`): driver and executors open it, each for
    itself, so no key travels. `as_of_version` is one version or one for each partition. `pushdown` has the reader
    take a query's filters (see `batch_reader.PushdownReader`). `pin_hours` 0 leaves no pin.
    """

    archive: str
    keys: str | None
    strategy: Strategy
    starting: Limit
    ending: Limit
    latest_when_no_match: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    include_headers: bool
    read_committed: bool
    as_of_version: int | ByPartition | None = None
    as_of_timestamp: int | None = None
    pushdown: bool = False
    bytes_per_split: int = BYTES_PER_SPLIT
    pin_hours: int = PIN_HOURS
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def parse(  # 60 lines: one for each option, nothing nested
    options: Mapping[str, str], *, streaming: bool = False, clock: Clock | None = None
) -> ReadOptions:
    """Parses the options that Spark passes; their names are case-insensitive. Raises OptionError.

    By default a batch reads from earliest to latest, and a stream starts at latest. Options that only streams have must be
    removed before. A time such as -2h is before the time of `clock`, the system's unless given.
    """
    given = _named(options)
    now_ms = (clock or SystemClock()).now_ms()

    def value(name: str, read: Callable[[str], T], default: T) -> T:
        return read_option(given, name, read) if name in given else default

    def limit(end: str, default: str, refused: str | None) -> Limit:
        """A time for all comes before times, and times before offsets; what comes second is not even read, as in Spark."""

        def checked(read: Callable[[str], Limit]) -> Callable[[str], Limit]:
            def read_and_check(text: str) -> Limit:
                found = read(text)
                if refused is not None:
                    refuse_word(found, refused)
                refuse_foreign(found.by_partition, strategy)
                return found

            return read_and_check

        forms: dict[str, Callable[[str], Limit]] = {
            f"{end}Timestamp": lambda text: read_time(text, now_ms),
            f"{end}OffsetsByTimestamp": lambda text: read_times(text, now_ms),
            f"{end}Offsets": read_offsets,
        }
        first = next((name for name in forms if name in given), None)
        return Offsets(default) if first is None else read_option(given, first, checked(forms[first]))

    if not given.get("archive", "").strip():
        raise OptionError("option archive is missing: a folder, s3://bucket/prefix, gs:// or abfs://")
    strategy = _strategy(given)
    starting = limit("starting", LATEST if streaming else EARLIEST, None if streaming else LATEST)
    ending = limit("ending", LATEST, EARLIEST)
    _refuse_end_before_start(starting, ending)
    if "asOfVersion" in given and "asOfTimestamp" in given:
        raise OptionError("options asOfVersion and asOfTimestamp are both given; leave one of them out")
    return ReadOptions(
        archive=given["archive"].strip(),
        keys=value("keys", _filled, None),
        strategy=strategy,
        starting=starting,
        ending=ending,
        latest_when_no_match=value("startingOffsetsByTimestampStrategy", lambda v: _one_of(v, "error", LATEST), "error")
        == LATEST,
        fail_on_data_loss=value("failOnDataLoss", _boolean, True),
        min_partitions=value("minPartitions", lambda v: at_least(1, v), None),
        max_records_per_partition=value("maxRecordsPerPartition", lambda v: at_least(1, v), None),
        include_headers=value("includeHeaders", _boolean, False),
        read_committed=value("kafka.isolation.level", lambda v: _one_of(v, *_ISOLATION), _ISOLATION[0]) == _ISOLATION[1],
        as_of_version=value("asOfVersion", _version, None),
        as_of_timestamp=value("asOfTimestamp", lambda text: parse_time(text, now_ms), None),
        pushdown=value("pushdown", _boolean, False),
        bytes_per_split=value("bytesPerSplit", _split_bytes, BYTES_PER_SPLIT),
        pin_hours=value("pinHours", _pin_hours, PIN_HOURS),
        topic_ids=value("topicId", lambda v: _topic_ids(v, strategy), {}),
    )


def _split_bytes(text: str) -> int:
    return at_least(BYTES_PER_SPLIT_MIN, str(parse_size(text)))


def with_headers(options: Mapping[str, str]) -> bool:
    """Whether there is a column for headers, whatever the other options say. Raises OptionError."""
    text = {name.lower(): text for name, text in options.items()}.get("includeheaders", "false")
    try:
        return _boolean(text.strip())
    except ValueError as e:
        raise OptionError(f"option includeHeaders is {text!r}: {e}") from e


def refuse_foreign(by_partition: ByPartition | None, strategy: Strategy) -> None:
    """Raises ValueError where something is said of topics or partitions that are not read. A pattern's topics are not known."""
    named = set(by_partition or ())
    if isinstance(strategy, SubscribePattern) or not named:
        return
    topics = strategy.topics if isinstance(strategy, Subscribe) else strategy.partitions
    others = sorted(named.difference(topics))
    if others:
        raise ValueError(f"it names topics that are not subscribed: {', '.join(others)}; leave them out, or subscribe to them")
    if isinstance(strategy, Assign) and by_partition is not None:
        for topic in sorted(named):
            foreign = sorted(set(by_partition[topic]).difference(strategy.partitions[topic]))
            if foreign:
                raise ValueError(f"it names {topic}-{foreign[0]}, which is not assigned; leave it out, or assign it")


def is_of_a_table(name: str) -> bool:
    """Whether Spark's catalog has put an option beside those with which a table was made."""
    return name.lower() in _OF_A_TABLE or name.lower().startswith(_TABLE_PREFIX)


def _named(options: Mapping[str, str]) -> dict[str, str]:
    given: dict[str, str] = {}
    ignored = _OF_A_TABLE.union(name.lower() for name in STREAM_ONLY)
    for name, text in options.items():
        lower = name.lower().removeprefix(_TABLE_PREFIX)
        if lower in ignored:
            continue
        known = _BY_LOWER.get(lower)
        if known is None:
            raise _refusal(name)
        given[known] = text
    return given


def _refusal(name: str) -> OptionError:
    near = nearest(name, _BY_LOWER)
    if (name.lower().startswith("kafka.") and not near) or name.lower() in _OF_A_BROKER_LOWER:
        return OptionError(
            f"option {name} does not apply to the format tiering, which uses no broker and no consumer; "
            "leave it out (the only kafka.… option is kafka.isolation.level)"
        )
    return unknown(name, near, _KNOWN, "the format tiering")


def _strategy(given: Mapping[str, str]) -> Strategy:
    named = [name for name in STRATEGIES if name in given]
    if len(named) > 1:
        raise OptionError(f"options {' and '.join(named)} are given, and only one of {', '.join(STRATEGIES)} can be: which?")
    read: dict[str, Callable[[str], Strategy | None]] = {
        "assign": lambda text: Assign(read_assigned(text)),
        "subscribe": _subscribed,
        "subscribePattern": _pattern,
    }
    strategy = read_option(given, named[0], read[named[0]]) if named else None
    if strategy is None:
        name = named[0] if named else "subscribe"
        raise OptionError(f"option {name} is missing: topics, with commas between them; or assign, or subscribePattern")
    return strategy


def _subscribed(text: str) -> Subscribe | None:
    topics = tuple(dict.fromkeys(t.strip() for t in text.split(",") if t.strip()))
    return Subscribe(topics) if topics else None


def _pattern(text: str) -> SubscribePattern:
    if not text:
        raise ValueError("must be a regular expression for names of topics")
    try:
        re.compile(text)
    except re.error as e:
        raise ValueError(f"no regular expression: {e}") from e
    return SubscribePattern(text)


def _refuse_end_before_start(starting: Limit, ending: Limit) -> None:
    """What the options alone tell; a start that only turns out to be behind the end, by a time, reads nothing."""
    both = starting.by_partition, ending.by_partition
    if type(starting) is not type(ending) or both[0] is None or both[1] is None:
        return
    starts, ends = ({(t, p): n for t, numbers in side.items() for p, n in numbers.items()} for side in both if side is not None)
    if starts.keys() != ends.keys():
        topic, partition = min(starts.keys() ^ ends.keys())
        raise OptionError(f"start and end have to name the same partitions, and only one of them names {topic}-{partition}")
    for (topic, partition), start in starts.items():
        end = ends[topic, partition]
        if start > end >= 0:
            raise OptionError(f"{topic}-{partition} would start at {start} and end at {end}, before that: exchange them")


def _topic_ids(text: str, strategy: Strategy) -> dict[str, str]:
    """An id, where one topic is read, or `topic=id` with commas between."""
    topics = _topics(strategy)
    if is_topic_id(text) and topics is not None and len(topics) == 1:
        return dict.fromkeys(topics, text)
    pairs = [pair.strip().partition("=") for pair in text.split(",")]
    for topic, _, topic_id in pairs:
        if not topic or not is_topic_id(topic_id):
            raise ValueError("must be the id of the one topic that is read, or topic=id for each, with commas between")
        if topics is not None and topic not in topics:
            raise ValueError(f"it names topic {topic}, which is not read; leave it out, or subscribe to it")
    return {topic: topic_id for topic, _, topic_id in pairs}


def _topics(strategy: Strategy) -> Collection[str] | None:
    """The topics that are read; None for a pattern, whose topics are not known."""
    if isinstance(strategy, SubscribePattern):
        return None
    return strategy.topics if isinstance(strategy, Subscribe) else strategy.partitions.keys()


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


def _pin_hours(value: str) -> int:
    """Hours, or a duration, which is rounded up to whole ones."""
    try:
        number = int(value) if value.isascii() and value.isdigit() else -(-parse_duration(value) // _HOUR_MS)
    except ValueError as e:
        raise ValueError(_PIN_FORMS) from e
    if number > PIN_HOURS_MAX:
        raise ValueError(_PIN_FORMS)
    return number


def _version(value: str) -> int | ByPartition:
    if not value.startswith("{"):
        return at_least(1, value)
    versions = read_by_partition(value, 'expected a version, or one for each partition as JSON, such as {"topic":{"0":17}}')
    if any(version < 1 for numbers in versions.values() for version in numbers.values()):
        raise ValueError("versions are 1 or more")
    return versions


__all__ = ["EARLIEST", "LATEST", "Offsets", "OptionError", "ReadOptions", "Times", "parse"]
