"""Archives and logs from Python, without Spark and without a broker: topics, coverage, records as Arrow, search by time.

    import tiering

    with tiering.open_reader(archive="s3://bucket/prefix") as reader:
        reader.topics()                                             # ('orders', 'payments')
        reader.coverage("orders")                                   # a row for each partition, which a notebook shows as a table
        reader.read("orders", start_time="-2h")                     # a pyarrow.RecordBatchReader: DuckDB and Polars take it

Give `log_dir=` (one of a broker's log.dirs; it is only read), `archive=` (a folder, s3://bucket/prefix, gs:// or abfs://), or
both: then they are one log, and each offset comes once from whichever tier has it.

Times are milliseconds since 1970, datetimes with a time zone, or texts such as 2026-11-20T10:00Z and -2h. Ranges are
`[start, end)`. What goes wrong is an error of `local_log.errors`, named by what to do about it: NotFound, Invalid,
OffsetOutOfRange, MissingRange (offsets that nobody has), Corrupt, Unavailable (try again). A stream of records raises when it
comes to what is wrong.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import index
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from local_log.errors import Invalid, LogError, NotFound
from local_log.formats.record_batch.columns import HEADERS_TYPE
from local_log.formats.record_batch.projection import Projection
from local_log.quantities import TIMES, parse_size, parse_time
from remote.archive import find_topic
from remote.manifest.gaps import Gap
from remote.manifest.losses import missing_for_readers
from tiering.machine import CLOCK
from tiering.notebooks import ShownTable, progress_bar
from tiering.read.tiered_log import Isolation, TieredLog
from tiering.wiring import CACHE_BYTES_MAX, Tiers, open_reading, open_tiers, read_ahead_pool

Time = int | datetime | str
"""Milliseconds since 1970, a datetime with a time zone, or a text such as 2026-11-20T10:00Z or -2h."""

THREADS = 4

FIELDS: dict[str, pa.DataType] = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS_TYPE,
    "timestamp_type": pa.int32(),
}
"""What a record has. A key or value of null is null; `timestamp_type` is 0 for CreateTime, 1 for LogAppendTime."""

DEFAULT_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")

COVERAGE = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        ("log_start_offset", pa.int64()),
        ("local_log_start_offset", pa.int64()),
        ("archived_end_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("max_timestamp", pa.timestamp("ms", tz="UTC")),
        ("archived_segments", pa.int64()),
        ("archived_bytes", pa.int64()),
        ("local_bytes", pa.int64()),
        ("gaps", pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("reason", pa.string())]))),
        ("error", pa.string()),
    ]
)
"""`end_offset` is the one after the last record that may be read. `max_timestamp` is the archive's. Bytes of the archive count
indexes, too. Of a partition that cannot be opened only `error` says anything."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Reader:
    """One or both tiers, opened by `open_reader`. A context manager: closing it ends the threads that read ahead.

    What is committed to the archive after a topic's partition was opened, by one of the methods, is seen by the next one.
    """

    def __init__(self, tiers: Tiers, pool: Any) -> None:
        self._tiers = tiers
        self._pool = pool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the threads; streams that have not come to their end cannot be read on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def topics(self) -> tuple[str, ...]:
        """Every topic that either tier has, in order."""
        return self._tiers.topics()

    def coverage(self, *topics: str, topic_id: str | None = None) -> ShownTable:
        """What there is of these topics, without any all: a row for each partition, with the schema COVERAGE. It has the methods
        of a pyarrow.Table, which is its `table`: give that to functions of pyarrow, such as `write_table`, and to Polars.

        It comes from manifests and file sizes: no segment is read. `topic_id` is for one topic, as in `read`. Raises NotFound,
        Unavailable, Invalid.
        """
        if topic_id is not None and len(topics) != 1:
            raise Invalid("a topic id needs one topic: name it")
        rows: list[dict[str, Any]] = []
        for topic in topics or self.topics():
            with suppress(*(() if topics else (NotFound,))):  # a topic that was not named may have nothing to read yet
                found = self._tiers.found(topic, topic_id=topic_id)
                rows += ({"topic": topic, "partition": number} | _coverage(log) for number, log in found.items())
        return ShownTable(pa.Table.from_pylist(rows, schema=COVERAGE))

    def topic_ids(self, topic: str) -> tuple[str, ...]:
        """The ids of all topics of this name that the archive has, the one that got records last first: it is read unless another
        one is asked for by `topic_id`. Empty where there is none. Raises Unavailable.
        """
        if self._tiers.store is None:
            return ()
        found = find_topic(self._tiers.store, topic)
        return (found.topic_id, *found.others) if found.partitions else ()

    def read(  # nine parameters, as keywords: what a user's script says at once
        self,
        topic: str,
        partition: int | None = None,
        *,
        topic_id: str | None = None,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        isolation: str = Isolation.read_uncommitted,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        progress: bool | None = None,
    ) -> pa.RecordBatchReader:
        """The records of a range, as a stream of Arrow record batches of a few MB: nothing is read before it is asked for.

        Without `partition` it is those of all partitions, one after the other. Offsets are of one partition; without them the
        range is all that there is. `start_time` and `end_time` stand for the first offsets whose records are as late, as in
        Kafka's offsetsForTimes: where producers set times out of order, filter the column, too. `columns` are of FIELDS, in the
        order in which they are wanted; only they are decoded. Every batch's CRC is checked. With `read_committed` records of
        aborted and of undecided transactions are left out. Of several topics that had the name `topic_id` says which is read.
        While the stream is read, tqdm shows its progress where that is installed: in notebooks, or as `progress` says.
        """
        unknown = [name for name in columns if name not in FIELDS]
        if unknown or not columns:
            raise Invalid(f"no such column: {', '.join(unknown) or 'none was named'}; there are {', '.join(FIELDS)}")
        if isolation not in list(Isolation):
            raise Invalid(f"isolation {isolation!r}; give one of {', '.join(Isolation)}")
        if partition is None and (start_offset, end_offset) != (None, None):
            raise Invalid("offsets need one partition: give partition=")
        logs = self._logs(topic, partition, topic_id)
        ranges = [(n, log, _start(log, start_offset, start_time), _end(log, end_offset, end_time)) for n, log in logs.items()]
        schema = pa.schema([(name, FIELDS[name]) for name in columns])
        want = Projection(**{name: name in columns for name in ("key", "value", "headers", "timestamp_type")})
        found = (
            (number, records)
            for number, log, start, end in ranges
            if end is None or start < end
            for records in log.read(start, end, Isolation(isolation), want)
        )
        spans = {number: (start, partial(_span_end, log, end)) for number, log, start, end in ranges}
        counted = _with_progress(found, topic, spans, progress)
        return pa.RecordBatchReader.from_batches(schema, (_batch(records, number, schema) for number, records in counted))

    def list_offsets(
        self, topic: str, timestamp: Time, *, isolation: str = Isolation.read_uncommitted, topic_id: str | None = None
    ) -> dict[int, int | None]:
        """Kafka's ListOffsets: for each partition the first offset whose record is as late as a time, None where none is.

        The numbers -1 (latest), -2 (earliest), -3 (max timestamp), -4 (earliest local), -5 (latest tiered) and -6 (earliest
        pending upload) are those of Kafka.
        """
        asked = _ms(timestamp)
        found = {n: log.list_offsets(asked, Isolation(isolation)) for n, log in self._logs(topic, None, topic_id).items()}
        return {n: answer.offset if answer else None for n, answer in found.items()}

    def _logs(self, topic: str, partition: int | None, topic_id: str | None) -> dict[int, TieredLog]:
        if partition is not None:
            return {partition: self._tiers.partition(topic, partition, topic_id)}
        return self._tiers.partitions(topic, topic_id)


def open_reader(
    *,
    archive: str | None = None,
    log_dir: str | None = None,
    cache_dir: str | None = None,
    cache_bytes_max: int | str = CACHE_BYTES_MAX,
    threads: int = THREADS,
    keys: str | None = None,
) -> Reader:
    """Opens an archive, one of a broker's log.dirs, or both as one log.

    With `cache_dir` what was read of the archive is kept there, up to `cache_bytes_max` (a number, or such as "5GiB"); several
    processes may share it.
    `threads` read ahead. `keys` is where the keys of encrypted segments are: a file, env://NAME or aws-kms://KEY;
    with them, what is not encrypted and signed is refused, unless that ends in ?plain=allowed.
    Raises Invalid (keys that cannot be had, too), NotFound (no archive there), Unavailable.
    """
    if archive is None and log_dir is None:
        raise Invalid("nothing to read: give archive=, log_dir= or both")
    pool = read_ahead_pool(threads)
    reading = open_reading(cache_dir, _bytes(cache_bytes_max), pool, keys)
    warn = lambda warning: warnings.warn(warning, stacklevel=2)  # noqa: E731
    return Reader(open_tiers(log_dir, archive, reading, warn=warn, keys_address=keys, cache_dir=cache_dir), pool)


def _bytes(size: int | str) -> int:
    try:
        return parse_size(size) if isinstance(size, str) else size
    except ValueError as e:
        raise Invalid(str(e)) from e


def _coverage(log: TieredLog | LogError) -> dict[str, Any]:
    if not isinstance(log, TieredLog):
        return {"error": str(log)}
    local, archived = log.local, log.archived
    try:
        found: dict[str, Any] = {"log_start_offset": log.log_start_offset, "end_offset": log.end_offset()}
        if local is not None:
            found["local_log_start_offset"] = local.log_start_offset
            found["local_bytes"] = sum(segment.size() for segment in local.segments)
    except LogError as e:
        return {"error": str(e)}
    if archived is not None:
        manifest = archived.manifest
        latest = max((item.max_timestamp_ms for item in manifest.items), default=-1)
        found |= {
            "archived_end_offset": archived.end_offset,
            "archived_segments": manifest.segment_count,
            "archived_bytes": manifest.log_bytes + manifest.aux_bytes,
            "max_timestamp": latest if latest >= 0 else None,
        }
    return found | {"gaps": [_gap(gap) for gap in missing_for_readers(archived.manifest)] if archived is not None else []}


def _gap(gap: Gap) -> dict[str, Any]:
    return {"start": gap.start, "end": gap.end, "reason": gap.reason}


def _start(log: TieredLog, offset: int | None, time: Time | None) -> int:
    """Where a range starts; a time that no record reaches is the end."""
    starts = [log.log_start_offset if offset is None else offset]
    if time is not None:
        found = log.offset_for_time(_ms(time))
        starts.append(found.offset if found is not None else log.end_offset())
    return max(starts)


def _end(log: TieredLog, offset: int | None, time: Time | None) -> int | None:
    ends = [] if offset is None else [offset]
    if time is not None and (found := log.offset_for_time(_ms(time))) is not None:
        ends.append(found.offset)
    return min(ends, default=None)


def _ms(time: Time) -> int:
    """A time in ms since 1970; whole numbers of numpy and the like are numbers, too. Raises Invalid."""
    if isinstance(time, str):
        try:
            return parse_time(time, CLOCK.now_ms())
        except ValueError as e:
            raise Invalid(str(e)) from e
    if not isinstance(time, datetime | bool) and hasattr(time, "__index__"):
        return index(time)
    if not isinstance(time, datetime):
        raise Invalid(f"{time!r} is no time: give {TIMES}, or a datetime with a time zone")
    if time.tzinfo is None:
        raise Invalid(
            f"{time} has no time zone: give one, such as tzinfo=UTC, or milliseconds since 1970; .astimezone() takes it as "
            "a time of this machine's zone"
        )
    return -((_EPOCH - time) // timedelta(milliseconds=1))  # rounded up, so that no earlier record is included


def _span_end(log: TieredLog, end: int | None) -> int:
    return log.end_offset() if end is None else end


def _with_progress(
    found: Iterable[tuple[int, pa.RecordBatch]],
    topic: str,
    spans: Mapping[int, tuple[int, Callable[[], int]]],
    wanted: bool | None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The same batches, while a bar shows how many of the offsets they have come past; `spans` are those by partition."""
    sizes: dict[int, int] = {}

    def total() -> int:
        sizes.update((number, max(end() - start, 0)) for number, (start, end) in spans.items())
        return sum(sizes.values())

    with progress_bar(topic, "offsets", total, wanted=wanted) as bar:
        if bar is None:
            yield from found
            return
        before, last = 0, None
        for number, records in found:
            if last not in (None, number):
                before += sizes[last]
            last = number
            if records.num_rows:
                come = min(records.column("offset")[-1].as_py() + 1 - spans[number][0], sizes[number])
                bar.update(before + come - bar.n)
            yield number, records
        bar.update(sum(sizes.values()) - bar.n)


def _batch(records: pa.RecordBatch, partition: int, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_column(records, partition, name) for name in schema.names], schema=schema)


def _column(records: pa.RecordBatch, partition: int, name: str) -> Any:
    if name == "partition":
        return pa.repeat(pa.scalar(partition, pa.int32()), records.num_rows)
    if name == "timestamp":
        return records.column(name).view(FIELDS[name])
    return records.column(name)
