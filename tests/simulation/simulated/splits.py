"""Spark's batch reads without Spark: a driver that plans and pins, and executors that read the tasks which it has pickled.

As Spark does it, a task is read again where it failed, up to four times, and at times by two executors at once, the first of
which counts. What they give has to be the records of the planned version, each once.
"""

import pickle
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyspark.sql.datasource import Filter, GreaterThanOrEqual, InputPartition, LessThan

from local_log.errors import Corrupt, LogError, NotFound, OffsetOutOfRange
from local_log.formats.chunks import CHUNK_BYTES
from remote.manifest.model import Manifest
from remote.read.context import ReadContext
from remote.read.plan import MissingRange
from simulated.archive_tasks import Tasks
from simulated.judge import Reading
from simulated.readers import decoded, is_empty
from simulated.records import Row, markers_in, rows_of, without_gaps
from simulated.schedule import HOUR_MS, MINUTE_MS, Actor
from spark_jobs.source.batch_reader import input_partitions
from spark_jobs.source.deleted_during_read import DeletedDuringRead
from spark_jobs.source.options import ReadOptions, parse
from spark_jobs.source.partitions import Split
from spark_jobs.source.pinning import Planned, plan_pinned, release
from spark_jobs.source.pushdown import pushdown_of
from spark_jobs.source.rows import read_split

COLUMNS = ("offset", "timestamp", "value")
KEYS_NAME = "SIMULATED_KEYS"
KEYS = f"env://{KEYS_NAME}?plain=allowed"
"""All keys of the simulation, as the options of a query name them."""
FAILURES_MAX = 4
"""Of a task, as `spark.task.maxFailures` has it."""
QUERIES_MAX = 3
TASKS = 4
"""Of one executor."""
TWINS = 0.25
RELEASED = 0.3
"""The share of reads whose pins end with them: a Python program knows when all is read, Spark does not tell."""


@dataclass(eq=False)
class Query:
    """A planned read: its tasks as they travel, and what each of them has given to the driver first."""

    name: str
    options: ReadOptions
    manifest: Manifest
    planned: Planned
    tasks: list[bytes]
    expected: list[Row]
    bounds: tuple[int, int]
    reading: Reading
    rows: dict[int, list[Row]] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)


def run_task(tasks: Tasks, actor: Actor, options: ReadOptions, task: bytes) -> list[Row]:
    """What an executor does with a task, from its bytes to its rows."""
    partition: Any = pickle.loads(task)
    store, found = tasks.store(actor), list[Row]()
    for split in partition.splits:
        batches = read_split(
            store,
            split,
            COLUMNS,
            read_committed=options.read_committed,
            first_bytes=CHUNK_BYTES,
            fail_on_data_loss=options.fail_on_data_loss,
            context=ReadContext(decoded),
        )
        for batch in batches:
            offsets, times, values = (batch.column(name) for name in COLUMNS)
            ms = [time // 1000 for time in times.cast("int64").to_pylist()]
            found += map(Row, offsets.to_pylist(), ms, values.to_pylist())
    return found


def pickled(partitions: list[InputPartition]) -> list[bytes]:
    """The tasks as Spark ships them."""
    return [pickle.dumps(partition) for partition in partitions]


def splits_of(partitions: list[InputPartition]) -> list[Split]:
    return [split for partition in partitions for split in partition.splits]  # type: ignore[attr-defined]


class Spark:
    """The reads that are under way."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks, self.schedule, self.judge = tasks, tasks.schedule, tasks.judge
        self.queries: list[Query] = []
        self.count = self.done = 0

    # The driver

    def plan(self, actor: Actor) -> None:
        """Plans a read and leaves its tasks to executors; its pins last, whatever becomes of the driver."""
        path = actor.random.choice([*self.judge.watched])
        newest = self.judge.newest(path)
        if newest is None or is_empty(newest.manifest):
            return
        options, filters = self._drawn(actor, newest.manifest)
        begun, before = self.schedule.now, newest.manifest.version
        until = begun + self.tasks.waits.delay_ms - MINUTE_MS
        try:
            planned = plan_pinned(self.tasks.store(actor), options, actor, actor, pushdown_of(filters))
        except (Corrupt, MissingRange, OffsetOutOfRange) as e:
            if isinstance(e, Corrupt) and self.schedule.now < until:
                raise self.schedule.violated(f"{actor.name} cannot plan: {e!r}") from e
            raise
        if not planned.splits:
            return
        m = self.judge.versions[path][planned.splits[0].manifest.version]
        if m.version < before:
            raise self.schedule.violated(f"{actor.name} plans version {m.version}, when {before} was there before it began")
        if planned.pins:
            (of, pin), *_ = planned.pins
            until = self.judge.obeyed_until(of, pin)
        self._take_on(actor, options, filters, m, planned, until)

    def _drawn(self, actor: Actor, m: Manifest) -> tuple[ReadOptions, list[Filter]]:
        """What a user asks for: all of it, from an offset or a time on, or what a filter leaves."""
        random, end, hours = actor.random, m.end_offset, self.tasks.waits.pin_ms // HOUR_MS
        given = {
            "archive": "simulated://store",
            "subscribe": m.topic,
            "topicId": m.topic_id,
            "keys": KEYS,
            "bytesPerSplit": random.choice(["1k", "40k", "128m"]),
            "pinHours": str(random.choice([0, hours, hours])),
            "failOnDataLoss": random.choice(["true", "true", "false"]),
            "kafka.isolation.level": random.choice(["read_committed", "read_uncommitted"]),
        }
        given |= random.choice([{}, {"maxRecordsPerPartition": str(random.randrange(1, 5))}, {"minPartitions": "7"}])
        times = sorted(self.judge.watched[m.path].log.times.values()) or [0]
        given |= random.choice(
            [
                {},
                {"startingOffsets": f'{{"{m.topic}":{{"0":{random.randrange(m.log_start_offset, end + 1)}}}}}'},
                {"startingTimestamp": str(random.choice(times)), "startingOffsetsByTimestampStrategy": "latest"},
            ]
        )
        filters: list[Filter] = []
        if random.random() < 0.3:
            start = random.randrange(end + 1)
            filters = [GreaterThanOrEqual(("offset",), start), LessThan(("offset",), start + random.randrange(1, 40))]
        return parse(given, clock=actor), filters

    def _take_on(
        self, actor: Actor, options: ReadOptions, filters: list[Filter], m: Manifest, planned: Planned, until: int
    ) -> None:
        self.count += 1
        name = f"read {self.count} of version {m.version}"
        start, end = self._bounds(options, filters, m)
        if options.fail_on_data_loss and (gap := next((g for g in m.holes if g.start < end and g.end > start), None)):
            raise self.schedule.violated(f"{name} of [{start}, {end}) passes over the gap [{gap.start}, {gap.end}) in silence")
        log = self.judge.watched[m.path].log
        expected = without_gaps(rows_of(log, start, end, committed=options.read_committed), m)
        keys = {m.path.pin(pin.id) for _, pin in planned.pins}
        for split in planned.splits:
            keys |= {m.path.segment(split.span.entry.log_name), m.path.segment(split.span.entry.aux_name)}
        reading = Reading(name, frozenset(keys) if self.schedule.now < until else frozenset(), until)
        if gone := sorted(reading.keys - self.judge.store.objects.keys()):
            raise self.schedule.violated(f"{name} is planned with {gone[0]}, which is not there")
        self.judge.readings.append(reading)
        tasks = pickled(input_partitions(planned.splits, options))
        self._check_splits(name, planned.splits)
        self.queries.append(Query(name, options, m, planned, tasks, expected, (start, end), reading))
        del self.queries[:-QUERIES_MAX]
        self.schedule.tell(actor.name, f"plans {name} of [{start}, {end}) in {len(tasks)} tasks")

    def _bounds(self, options: ReadOptions, filters: list[Filter], m: Manifest) -> tuple[int, int]:
        """Which offsets are asked for, as a linear scan of the log tells."""
        start, end, limit = m.log_start_offset, m.end_offset, options.starting
        log = self.judge.watched[m.path].log
        if hasattr(limit, "everywhere") and isinstance(limit.everywhere, int):
            rows = without_gaps(rows_of(log, start, end, committed=False), m)
            marks = [(o, log.times[o]) for o in log.ended if start <= o < end]
            late = [offset for offset, time in [*((r.offset, r.time) for r in rows), *marks] if time >= limit.everywhere]
            start = min(late, default=end)
        elif limit.by_partition is not None:
            asked = limit.by_partition[m.topic][0]
            start = asked if options.fail_on_data_loss else max(start, min(asked, end))
        for one in filters:
            if isinstance(one, GreaterThanOrEqual):
                start = max(start, one.value)
            elif isinstance(one, LessThan):
                end = min(end, one.value)
        return start, max(start, end)

    def _check_splits(self, name: str, splits: tuple[Split, ...]) -> None:
        for one, other in pairwise(splits):
            if other.span.start < one.span.end:
                raise self.schedule.violated(f"{name} has offset {other.span.start} in two splits")

    # Executors

    def execute(self, actor: Actor) -> None:
        """An executor, which reads some tasks one after the other."""
        for _ in range(TASKS):
            if self.queries:
                self._read(actor)

    def _read(self, actor: Actor) -> None:
        """A task that nobody has read, or the twin of another one."""
        query = actor.random.choice(self.queries)
        left = [number for number in range(len(query.tasks)) if number not in query.rows]
        is_twin = actor.chance(TWINS)
        number = actor.random.choice(left if left and not is_twin else range(len(query.tasks)))
        try:
            rows = run_task(self.tasks, actor, query.options, query.tasks[number])
        except LogError as e:
            self._fails(query, number, e)
            raise
        self._takes(actor, query, number, rows)

    def _fails(self, query: Query, number: int, error: LogError) -> None:
        """A task may fail when its store does, and when its objects are gone that it could no longer count on: it says so."""
        is_lost = isinstance(error, Corrupt | NotFound)
        if is_lost and self.schedule.now < query.reading.until:
            raise self.schedule.violated(f"task {number} of {query.name}: {error!r}") from error
        if is_lost and not isinstance(error, DeletedDuringRead) and not isinstance(error.__cause__, NotFound):
            raise self.schedule.violated(f"task {number} of {query.name} says of what was deleted: {error!r}") from error
        query.failures[number] = query.failures.get(number, 0) + 1
        if query.failures[number] >= FAILURES_MAX and query in self.queries:
            self.queries.remove(query)

    def _takes(self, actor: Actor, query: Query, number: int, rows: list[Row]) -> None:
        """The driver takes the first result of a task; others have the same rows."""
        is_whole = query.options.fail_on_data_loss or self.schedule.now < query.reading.until
        known = query.rows.setdefault(number, rows)
        if is_whole and len(known) > len(rows):
            raise self.schedule.violated(f"task {number} of {query.name} gave {len(known)} rows, and to another {len(rows)}")
        if known is not rows or len(query.rows) < len(query.tasks) or query not in self.queries:
            return
        self.queries.remove(query)
        self.check(query, is_whole=is_whole)
        if actor.chance(RELEASED):
            self.judge.readings.remove(query.reading)
            release(self.tasks.store(actor), query.planned)

    def check(self, query: Query, *, is_whole: bool) -> None:
        """Each record of the planned version that is asked for, once and in its order, and as many as the manifest counts."""
        self.done += 1
        start, end = query.bounds
        rows = [row for number in range(len(query.tasks)) for row in query.rows[number] if start <= row.offset < end]
        if is_whole and rows != query.expected:
            missing = [row.offset for row in query.expected if row not in rows]
            twice = [one.offset for one, other in pairwise(rows) if other.offset <= one.offset]
            raise self.schedule.violated(
                f"{query.name} of [{start}, {end}) gives {len(rows)} records instead of {len(query.expected)}: "
                f"without {missing[:3]}, twice {twice[:3]}, others {[r for r in rows if r not in query.expected][:2]}"
            )
        if not is_whole and (any(row not in query.expected for row in rows) or any(b <= a for a, b in pairwise(rows))):
            raise self.schedule.violated(f"{query.name} of [{start}, {end}) gives records that nobody committed, or twice")
        self._check_count(query, len(rows)) if is_whole else None

    def _check_count(self, query: Query, count: int) -> None:
        """Where segments are read whole and without overlaps, there are as many records as the manifest says."""
        entries = (split.span.entry for split in query.planned.splits)
        spans = sorted({(entry.base_offset, entry.end_offset, entry.record_count) for entry in entries})
        start, end = query.bounds
        is_whole = spans[0][0] >= start and spans[-1][1] <= end and all(b[0] >= a[1] for a, b in pairwise(spans))
        if is_whole and not query.options.read_committed:
            log = self.judge.watched[query.manifest.path].log
            unseen = sum(markers_in(log, max(first, start), min(last, end)) for first, last, _ in spans)
            counted = sum(records for *_, records in spans)
            if counted != count + unseen:
                raise self.schedule.violated(f"{query.name} gives {count} records and {unseen} markers instead of {counted}")

    # The end

    def read_all(self, actor: Actor) -> None:
        """A read of everything when nothing fails any more: its tasks are all read, some by two executors."""
        self.queries.clear()
        for path in self.judge.watched:
            newest = self.judge.newest(path)
            if newest is None or newest.manifest.is_deleted:
                continue
            self.plan(actor)
            while self.queries:
                self.execute(actor)
