"""Spark's streams without Spark: drivers that are killed anywhere and begin again with the checkpoint that the last one has left.

A driver does what Spark's MicroBatchExecution does: it writes where a micro-batch ends to the offset log, plans it, has its tasks
read, gives the rows to a sink that takes each batch once, and writes to the commit log. A batch that is in the first log and not
in the second is done again. The logs and the sink are objects that are put once. So are the boundaries of live tails.
"""

import json
import pickle
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from local_log.errors import AlreadyExists, Corrupt, LogError, NotFound, OffsetOutOfRange, Unavailable, Unknown
from remote import archive
from remote.keys import PartitionPath
from remote.manifest.model import Manifest
from remote.read.plan import MissingRange
from remote.store.api import ObjectStore
from simulated.archive_tasks import Tasks
from simulated.brokers import Cluster
from simulated.records import Row, rows_of, without_gaps
from simulated.schedule import MINUTE_MS, Actor, Violation
from simulated.splits import COLUMNS, FAILURES_MAX, KEYS, pickled, run_task
from simulated.stores import Faults, JudgedStore, StoreOf
from spark_jobs import live_tail
from spark_jobs.broker import BrokerTopic
from spark_jobs.source.deleted_during_read import DeletedDuringRead
from spark_jobs.source.stream.offsets import StreamOffsets, decode
from spark_jobs.source.stream.options import StreamOptions, parse_stream
from spark_jobs.source.stream.plan import DataLoss
from spark_jobs.source.stream.reader import StreamReader

BATCHES = 3
"""Of one driver, before its user stops it."""
LAST_BATCHES_MAX = 200
QUERIES = 2
ZOMBIES = 0.1
"""The share of drivers that begin while another one of the query may still run: its machine is thought to be gone."""
TRIGGER_SECONDS = 30.0


@dataclass(eq=False)
class Query:
    """A query, and what is known of it: the rows of its batches, and which driver began last."""

    name: str
    given: dict[str, str]
    is_lenient: bool = False
    """Whether its next driver passes over what is lost, as the error told its user to."""
    begins: dict[str, StreamOffsets] = field(default_factory=dict)
    """Where the first batch begins, by what its driver has written to the offset log; which driver was first, the log tells."""
    lost: set[PartitionPath] = field(default_factory=set)
    """Partitions of which something was lost, as an error has said."""
    rows: dict[int, list[tuple[PartitionPath, Row]]] = field(default_factory=dict)
    driver: Actor | None = None
    since: dict[PartitionPath, int] = field(default_factory=dict)
    """The newest versions when its driver began."""

    def options(self, actor: Actor) -> StreamOptions:
        del actor
        return parse_stream({**self.given, "failOnDataLoss": "false" if self.is_lenient else "true"})


class Streams:
    """The queries of one schedule, and the store that has their checkpoints."""

    def __init__(self, tasks: Tasks, cluster: Cluster, faults: Faults) -> None:
        self.tasks, self.schedule, self.judge, self.cluster, self.faults = tasks, tasks.schedule, tasks.judge, cluster, faults
        self.checkpoints = JudgedStore(self.schedule)
        self.queries: list[Query] = []
        self.boundary: live_tail.Boundary | None = None
        self.broker_start = 0

    def _checkpoint(self, actor: Actor) -> ObjectStore:
        return StoreOf(actor, self.checkpoints, self.faults)

    def violated(self, query: Query, what: str) -> Violation:
        return self.schedule.violated(f"{query.name}: {what}")

    # Drivers

    def drive(self, actor: Actor) -> None:
        """A driver of a new query, or of one whose last driver is gone."""
        if len(self.queries) < QUERIES:
            self.queries.append(Query(f"stream {len(self.queries) + 1}", self._drawn(actor)))
            query = self.queries[-1]
        else:
            query = actor.random.choice(self.queries)
        if query.driver is not None and not query.driver.is_over and not actor.chance(ZOMBIES):
            return
        query.driver = actor
        self._run(actor, query, BATCHES)

    def _drawn(self, actor: Actor) -> dict[str, str]:
        random = actor.random
        return {
            "archive": "simulated://store",
            "subscribe": self.cluster.path.topic,
            "keys": KEYS,
            "bytesPerSplit": random.choice(["1k", "128m"]),
            "kafka.isolation.level": random.choice(["read_committed", "read_uncommitted"]),
            **random.choice([{"startingOffsets": "earliest"}, {"startingOffsets": "latest"}, {}]),
            **random.choice([{}, {"maxOffsetsPerTrigger": str(random.randrange(1, 30))}, {"minOffsetsPerTrigger": "9"}]),
        }

    def _run(self, actor: Actor, query: Query, batches: int) -> None:
        """What a driver does until it is stopped. Its errors are those that a user is told."""
        reader = StreamReader(query.options(actor), COLUMNS, actor, self.tasks.store(actor))
        logs = _Logs(self._checkpoint(actor), query.name)
        committed = logs.committed()  # before the other log, which then has as many entries at least
        ends, begun = logs.ends(), self.schedule.now
        query.since = {path: max(of) for path, of in self.judge.versions.items()}
        try:
            for _ in range(batches):
                begun = self.schedule.now
                if self._batch(actor, query, reader, logs, ends, committed):
                    committed += 1
                elif actor.is_atomic:
                    break
                else:
                    actor.sleep(TRIGGER_SECONDS)
            query.is_lenient = False
        except (Corrupt, NotFound, OffsetOutOfRange) as e:
            self._judge_error(query, e, begun)
            query.is_lenient = True
            raise

    def _batch(self, actor: Actor, query: Query, reader: StreamReader, logs: "_Logs", ends: list[Any], committed: int) -> bool:
        """The next micro-batch, or the one that is not committed; False where there is nothing new."""
        number, previous = committed, ends[committed - 1] if committed else None
        if len(ends) > committed:
            end = ends[number]
        else:
            start = previous if previous is not None else reader.initialOffset()
            limit, before = reader.getDefaultReadLimit(), self._archived_to()
            end = reader.latestOffset(start, limit)
            self._check_latest(query, decode(end), before, has_limit="PerTrigger" in "".join(query.given))
            if previous is not None and end == previous:
                return False
            if number == 0:
                query.begins.setdefault(json.dumps(end), decode(start))
            logs.put("offsets", number, json.dumps(end).encode())
            ends.append(end)
        begun = self.schedule.now
        first = previous if previous is not None else reader.initialOffset()
        tasks = pickled(reader.partitions(first, end))
        rows = [row for task in tasks for row in self._task(actor, query, reader, task)]
        is_lenient = not reader.options.read.fail_on_data_loss
        came_from = query.begins[json.dumps(end)] if previous is None else decode(previous)
        self._check_batch(query, number, came_from, decode(end), rows, begun, is_lenient=is_lenient)
        logs.put("sink", number, pickle.dumps(rows), or_other=True)
        logs.put("commits", number, b"")
        self.schedule.tell(actor.name, f"{query.name}: batch {number} to {json.dumps(end)} has {len(rows)} rows")
        return True

    def _task(self, actor: Actor, query: Query, reader: StreamReader, task: bytes) -> list[tuple[PartitionPath, Row]]:
        """A task with its retries; Spark asks nobody again about what is deleted."""
        path = pickle.loads(task).splits[0].path
        for failures in range(FAILURES_MAX):
            try:
                return [(path, row) for row in run_task(self.tasks, actor, reader.options.read, task)]
            except (Unavailable, Unknown):
                if failures == FAILURES_MAX - 1:
                    raise
        raise AssertionError(query.name)

    # What must hold

    def _archived_to(self) -> dict[PartitionPath, int]:
        found = {path: self.judge.newest(path) for path in self.judge.watched if path.topic == self.cluster.path.topic}
        return {p: n.manifest.end_offset for p, n in found.items() if n is not None and not n.manifest.is_deleted}

    def _check_latest(self, query: Query, end: StreamOffsets, before: dict[PartitionPath, int], *, has_limit: bool) -> None:
        """What was archived before the question is in the answer; an archive never ends before what it has told."""
        for path, offset in end.items():
            if not has_limit and offset < before.get(path, 0):
                raise self.violated(query, f"{path} ends at {before[path]}, and the stream takes it for {offset}")

    def _judge_error(self, query: Query, error: LogError, begun: int) -> None:
        """A stream may say that something is lost if it is; and nothing goes that it has just planned."""
        self.schedule.tell(query.name, repr(error))
        is_late = self.schedule.now >= begun + self.tasks.waits.delay_ms - MINUTE_MS
        if isinstance(error, DataLoss | MissingRange):
            lost = [path for path in self.judge.watched if self._is_lost(query, path, error)]
            if not lost:
                raise self.violated(query, f"{error!r}, and nothing is lost") from error
            query.lost.update(lost)
        elif isinstance(error, DeletedDuringRead | Corrupt):
            is_deleted = isinstance(error, DeletedDuringRead) or isinstance(error.__cause__, NotFound)
            if not (is_late and is_deleted):
                raise self.violated(query, f"{error!r}") from error

    def _read_versions(self, query: Query, path: PartitionPath) -> list[Manifest]:
        """Those that its driver may have read."""
        return [m for version, m in self.judge.versions.get(path, {}).items() if version >= query.since.get(path, 0)]

    def _is_lost(self, query: Query, path: PartitionPath, error: DataLoss | MissingRange) -> bool:
        if f"{path.topic}-{path.partition}" != error.partition:
            return False
        newest = self.judge.newest(path)
        if newest is None or newest.manifest.is_deleted or path != self.cluster.path:
            return True
        m, end = newest.manifest, error.end
        gaps = [gap for version in self._read_versions(query, path) for gap in version.holes]
        return error.start < m.log_start_offset or any(end is not None and g.start < end and g.end > error.start for g in gaps)

    def _check_batch(
        self,
        query: Query,
        number: int,
        start: StreamOffsets,
        end: StreamOffsets,
        rows: list[tuple[PartitionPath, Row]],
        begun: int,
        *,
        is_lenient: bool,
    ) -> None:
        """A micro-batch has all records from where the one before it has ended, each once, and again the same."""
        committed = "read_committed" in query.given["kafka.isolation.level"]
        for path, last in end.items():
            first, mine = start.get(path, 0), [row for of, row in rows if of == path]
            if path in start and last < first:
                raise self.violated(query, f"batch {number} of {path} goes back from {first} to {last}")
            expected = rows_of(self.judge.watched[path].log, first, last, committed=committed)
            if any(b <= a for a, b in pairwise(mine)) or not set(mine) <= set(expected):
                raise self.violated(query, f"batch {number} of {path} [{first}, {last}) has records twice, or others")
            missing = [row for row in expected if row not in mine]
            is_old = self.schedule.now >= begun + self.tasks.waits.delay_ms - MINUTE_MS
            if missing and not (is_lenient and (is_old or self._are_gone(query, path, missing))):
                raise self.violated(query, f"batch {number} of {path} [{first}, {last}) is without offset {missing[0].offset}")
        if any(path not in end for path, _ in rows):
            raise self.violated(query, f"batch {number} has records of partitions that its end does not name")
        # One that passes over what is lost may have fewer than another one that has planned it before, and comes back later.
        known = rows if is_lenient else query.rows.setdefault(number, rows)
        if known != rows:
            raise self.violated(query, f"batch {number} had {len(known)} rows, and done again {len(rows)}")

    def _are_gone(self, query: Query, path: PartitionPath, rows: list[Row]) -> bool:
        """Whether the stream finds none of these: they have expired, were not archived, or are of a topic that was made again."""
        newest = self.judge.newest(path)
        if newest is None or newest.manifest.is_deleted or path != self.cluster.path:
            return True
        for version in self._read_versions(query, path):
            rows = without_gaps(rows, version)
        return all(row.offset < newest.manifest.log_start_offset for row in rows)

    # Live tails

    def boundary_of(self, actor: Actor) -> None:
        """A start of a live tail: the first one stores where the broker takes over, the others find it."""
        store, topic, path = self.tasks.store(actor), self.cluster.path.topic, self.cluster.path
        starts: list[int] = []

        def resolve() -> live_tail.Boundary:
            log, high_watermark = self.cluster.log, self.cluster.high_watermark
            starts.append(log.log_start_offset)
            broker = BrokerTopic(topic, path.topic_id, {0: (log.log_start_offset, max(high_watermark, log.log_start_offset))})
            return live_tail.taken_over([broker], lambda name: archive.newest_manifests(store, name), lenient=False)

        try:
            found = live_tail.kept(self._checkpoint(actor), (topic,), resolve)
        except MissingRange as e:
            if not starts or starts[-1] < e.end:
                raise self.schedule.violated(f"a live tail: {e!r}, and the broker's log starts at {starts}") from e
            raise
        if self.boundary is not None and found != self.boundary:
            raise self.schedule.violated(f"the boundary of a live tail was {self.boundary}, and is {found}")
        offset = found.offsets[topic][0]
        newest = self.judge.newest(path)
        if self.boundary is None and starts and path == self.cluster.path:
            end = newest.manifest.end_offset if newest is not None else 0
            if offset >= 0 and not starts[-1] <= offset <= end:
                raise self.schedule.violated(f"a live tail goes from an archive to {end} to a log from {starts[-1]} at {offset}")
            if offset < 0 and newest is not None and not starts:
                raise self.schedule.violated("a live tail reads nothing of the archive")
        self.boundary = found

    # The end

    def settle(self, actor: Actor) -> None:
        """The last driver of each query: it comes to the end of the archive, and each batch is in the sink once."""
        for query in self.queries:
            for _ in range(3):
                try:
                    self._run(actor, query, LAST_BATCHES_MAX)
                    break
                except (DataLoss, MissingRange, OffsetOutOfRange, NotFound):
                    continue
            else:
                continue
            self._check_life(query)

    def _check_life(self, query: Query) -> None:
        logs = _Logs(self.checkpoints, query.name)
        ends, sink = logs.ends(), {n: pickle.loads(body) for n, body in enumerate(logs.bodies("sink"))}
        if len(ends) != len(sink) or logs.committed() != len(ends):
            raise self.violated(query, f"{len(ends)} batches were begun, {logs.committed()} committed, the sink has {len(sink)}")
        last, there = decode(ends[-1]) if ends else {}, self._archived_to()
        for path, offset in last.items():
            if offset < there.get(path, 0):
                raise self.violated(query, f"comes to {offset} of {path}, which ends at {there[path]}")
        seen = [(path, row.offset) for _, rows in sorted(sink.items()) for path, row in rows]
        if len(self.judge.watched) and len(set(seen)) != len(seen):
            raise self.violated(query, "has a record in two batches")


class _Logs:
    """The offset log, the commit log and the sink of a query: an object for each batch."""

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.prefix = store, name.replace(" ", "-")

    def bodies(self, log: str) -> list[bytes]:
        keys = [meta.key for meta in self.store.list(f"{self.prefix}/{log}/")]
        return [self.store.get(key) for key in keys]

    def ends(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies("offsets")]

    def committed(self) -> int:
        """How many batches are committed."""
        return len([*self.store.list(f"{self.prefix}/commits/")])

    def put(self, log: str, number: int, body: bytes, *, or_other: bool = False) -> None:
        """Writes what is of a batch; where another driver was first, this one ends, or takes it for its own."""
        try:
            self.store.put_if_absent(f"{self.prefix}/{log}/{number:06}", body)
        except AlreadyExists:
            if not or_other:
                raise Unavailable(f"another driver has written {log}/{number}") from None
