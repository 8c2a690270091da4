"""The options of a write, with the names of Spark's Kafka sink and of Kafka's producer. Pure: text in, values out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from local_log.formats.compression import DEFAULT_LEVELS, LEVELS
from local_log.formats.record import Codec
from local_log.quantities import parse_size
from remote.direct_write.topic import PARTITIONS_MAX
from spark_jobs.errors import OptionError
from spark_jobs.options_text import nearest, read_option, unknown

T = TypeVar("T")
D = TypeVar("D")

BATCH_BYTES = 256 << 10
"""Kafka's producers default to 16 KB for low latency. Here throughput counts: larger batches compress better and read faster."""

SEGMENT_BYTES = 256 << 20
"""Kafka's default is four times as much; a task needs that much of its disk for each partition that it writes to."""

TASKS_TO = "tasksTo"
"""Not for users: a file that the tasks' results go to, for `write_topic` to commit."""

_BATCH_BYTES_MAX = 512 << 20
_KNOWN = (
    "archive",
    "topic",
    "partitions",
    "writeId",
    "keys",
    "kafka.compression.type",
    "kafka.compression.gzip.level",
    "kafka.compression.lz4.level",
    "kafka.compression.zstd.level",
    "kafka.batch.size",
    "kafka.segment.bytes",
)
_BY_LOWER = {name.lower(): name for name in (*_KNOWN, TASKS_TO)}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What to write, and how.

    `topic` is None if a column has it, `partitions` is None if the topic exists, `write_id` is None if the write will not be
    repeated. A batch has at most `batch_bytes` of records before compression, a segment at most `segment_bytes`. `keys` is the
    address of the keys that encrypt segments, None for no encryption. With `tasks_to` nothing is committed here: see `handover`.
    """

    archive: str
    topic: str | None
    partitions: int | None
    write_id: str | None
    keys: str | None
    codec: Codec
    level: int | None
    batch_bytes: int
    segment_bytes: int
    tasks_to: str | None


def parse(options: Mapping[str, str]) -> WriteOptions:
    """The options as Spark hands them over; their names are read without regard to case. Raises OptionError."""
    given: dict[str, str] = {}
    for name, text in options.items():
        known = _BY_LOWER.get(name.lower())
        if known is None:
            raise unknown(name, nearest(name, _BY_LOWER), _KNOWN, "a write to the format tiering")
        given[known] = text.strip()

    def value(name: str, read: Callable[[str], T], default: D) -> T | D:
        return read_option(given, name, read) if name in given else default

    archive = value("archive", _filled, None)
    if archive is None:
        raise OptionError("option archive is missing: a folder, s3://bucket/prefix, gs:// or abfs://")
    codec = value("kafka.compression.type", _codec, Codec.none)
    for other in LEVELS:
        if other is not codec and f"kafka.compression.{other.name}.level" in given:
            raise OptionError(
                f"option kafka.compression.{other.name}.level does not apply to kafka.compression.type {codec.name}"
            )
    return WriteOptions(
        archive=archive,
        topic=value("topic", _filled, None),
        partitions=value("partitions", _within(1, PARTITIONS_MAX), None),
        write_id=value("writeId", _write_id, None),
        keys=value("keys", _filled, None),
        codec=codec,
        level=value(f"kafka.compression.{codec.name}.level", lambda text: _level(codec, text), None),
        batch_bytes=value("kafka.batch.size", _size_within(1, _BATCH_BYTES_MAX), BATCH_BYTES),
        segment_bytes=value("kafka.segment.bytes", _size_within(1 << 20, (1 << 31) - 1), SEGMENT_BYTES),
        tasks_to=given.get(TASKS_TO),
    )


def _filled(text: str) -> str | None:
    if not text:
        raise ValueError("it is empty")
    return text


def _write_id(text: str) -> str | None:
    if text.startswith("_"):
        raise ValueError("ids that begin with an underscore are reserved for writes without a writeId")
    return _filled(text)


def _codec(text: str) -> Codec:
    if text.lower() not in Codec.__members__:
        raise ValueError(f"must be {', '.join(Codec.__members__)}")
    return Codec[text.lower()]


def _level(codec: Codec, text: str) -> int | None:
    level = int(text)
    if level != DEFAULT_LEVELS[codec] and level not in LEVELS[codec]:
        raise ValueError(f"must be {LEVELS[codec][0]} to {LEVELS[codec][-1]}, or {DEFAULT_LEVELS[codec]}")
    return level


def _size_within(low: int, high: int) -> Callable[[str], int]:
    within = _within(low, high)
    return lambda text: within(str(parse_size(text)))


def _within(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"must be {low} to {high}")
        return number

    return read
