"""Direct writes to a topic that no broker has, as Spark's sink makes them, and what its readers may see of them."""

import pyarrow as pa
from written_rows import SPARKS

from local_log.errors import LogError
from local_log.formats.record import Codec
from remote import archive
from remote.direct_write.commit import PartitionEntries, Write, commit_write
from remote.direct_write.topic import WrittenTopic, written_topic
from remote.keys import own_write_id
from remote.manifest.model import Manifest
from remote.read.log import ArchivedLog
from remote.segment_bytes import StoredBytes
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from simulated.archive_tasks import Act, Tasks
from simulated.schedule import Actor
from spark_jobs.sink.moving import moved
from spark_jobs.sink.placement import Move, placement
from spark_jobs.sink.segments import Shape, Upload
from spark_jobs.sink.task import TaskRows, TaskSettings, write_rows

TOPIC = "written"
PARTITIONS, TASKS, ROWS = 2, 2, 3
SHAPE = Shape(Codec.none, None, batch_bytes=150, segment_bytes=500)
WRITES = ("first", "second", "third")
"""Ids that a user has chosen: each may be written again by any number of drivers, and is there once."""
ONCE_MAX = 6
"""Writes without such an id: readers read all of the topic, again and again."""

Seen = dict[int, list[str]]


def rows_of(write_id: str, task: int, partition: int) -> list[str]:
    """What one task writes to one partition."""
    return [f"{write_id}/{task}/{partition}/{number}" for number in range(ROWS)]


class Writes:
    """Writes by their ids: those that were tried, those that were acknowledged; `shown` are the rows that readers have seen."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.tried: set[str] = set()
        self.acknowledged: set[str] = set()
        self.once = 0
        self.shown: Seen = {}

    def write_once(self, actor: Actor) -> None:
        """A driver whose user has given no id: it is not written again."""
        if self.once < ONCE_MAX:
            self.once += 1
            self.write(own_write_id(actor.new_id()))(actor)

    def write(self, write_id: str) -> Act:
        """A driver that writes under this id, with its tasks."""

        def act(actor: Actor) -> None:
            if write_id in WRITES:
                self.tried.add(write_id)
            store = self.tasks.store(actor)
            is_there = bool(archive.newest_partitions(store, TOPIC))
            topic = written_topic(store, TOPIC, None if is_there else PARTITIONS)
            upload = Upload(store, actor, actor, Transforms())
            settings = TaskSettings(topic, None, self.tasks.schedule.now, SHAPE)
            done = [write_rows([_batch(write_id, task)], settings, task, upload) for task in range(TASKS)]
            if self._committed(actor, store, topic, done, upload, write_id):
                self.acknowledged.add(write_id)

        return act

    def _committed(
        self, actor: Actor, store: ObjectStore, topic: WrittenTopic, done: list[TaskRows], upload: Upload, write_id: str
    ) -> bool:
        parts = [part for task in done for part in task.parts]

        def place(partitions: object) -> PartitionEntries:
            steps = placement(parts, partitions, SHAPE.segment_bytes)  # type: ignore[arg-type]
            source = StoredBytes(store)
            return {path: tuple(moved(s, source, upload) if isinstance(s, Move) else s for s in of) for path, of in steps.items()}

        write = Write(write_id, (topic,), actor.name)
        return commit_write(store, actor, actor, write, place, threads=1).committed

    def to_repeat(self) -> list[str]:
        """Those that nobody was told of, and one of the others, which changes nothing."""
        return [*sorted(self.tried - self.acknowledged), *sorted(self.acknowledged & self.tried)[:1]]

    def look(self, actor: Actor) -> None:
        """A reader of this moment."""
        try:
            seen = self.seen()
        except LogError as e:
            raise self.tasks.schedule.violated(f"{TOPIC} cannot be read: {e!r}") from e
        self.check(seen)

    def seen(self) -> Seen:
        """The rows of each partition, as anybody reads them now."""
        store = self.tasks.judge.unwatched
        found: Seen = {}
        for number, manifest in archive.newest_partitions(store, TOPIC).items():
            if not isinstance(manifest, Manifest):
                raise self.tasks.schedule.violated(f"partition {number} of {TOPIC} cannot be read: {manifest!r}")
            log = ArchivedLog(store, manifest)
            values = [v for rows in log.records(log.log_start_offset, log.end_offset) for v in rows["value"].to_pylist()]
            found[number] = [value.rstrip(b".").decode() for value in values]
        return found

    def check(self, seen: Seen) -> None:
        """A write is in all partitions or in none, once, whole and in the order of its tasks; what was seen or said stays."""
        violated = self.tasks.schedule.violated
        for partition, rows in self.shown.items():
            if seen.get(partition, [])[: len(rows)] != rows:
                raise violated(f"partition {partition} of {TOPIC} had the rows {rows}, and now {seen.get(partition)}")
        self.shown = seen
        there = {row.partition("/")[0] for rows in seen.values() for row in rows}
        if not self.acknowledged <= there:
            raise violated(f"writes {sorted(self.acknowledged - there)} are missing")
        if len(seen) < PARTITIONS:
            return
        writes = [{row.partition("/")[0] for row in rows} for rows in seen.values()]
        if any(of != writes[0] for of in writes):
            raise violated(f"a write is in one partition and not in another: {writes}")
        for write_id in sorted(writes[0]):
            for partition, rows in seen.items():
                mine = [row for row in rows if row.startswith(f"{write_id}/")]
                if mine != [row for task in range(TASKS) for row in rows_of(write_id, task, partition)]:
                    raise violated(f"write {write_id} has in partition {partition} the rows {mine}")

    def check_last(self) -> None:
        """Every write that was tried is there in the end."""
        seen = self.seen()
        self.check(seen)
        there = {row.partition("/")[0] for rows in seen.values() for row in rows}
        if self.tried - there:
            raise self.tasks.schedule.violated(f"writes {sorted(self.tried - there)} are missing in the end")


def _batch(write_id: str, task: int) -> pa.RecordBatch:
    values = [(number, row) for number in range(PARTITIONS) for row in rows_of(write_id, task, number)]
    rows = [
        {"key": None, "value": row.encode() + b"." * 60, "headers": None, "partition": number, "timestamp": None}
        for number, row in values
    ]
    return pa.RecordBatch.from_pylist(rows, SPARKS)
