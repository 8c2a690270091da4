"""Writes of rows without Spark: tasks, their commit, and what the archive then holds, in this process."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from archive_fakes import CountingIds, FailsBefore, FixedClock, MemoryStore

from local_log.errors import Unavailable
from local_log.formats.record import Codec
from remote import archive
from remote.direct_write.commit import PartitionEntries, Write, commit_write
from remote.direct_write.topic import written_topic
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.segment_bytes import StoredBytes
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from spark_jobs.sink.moving import moved
from spark_jobs.sink.placement import Move, placement
from spark_jobs.sink.segments import Shape, Upload
from spark_jobs.sink.task import TaskRows, TaskSettings, write_rows

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SPARKS = pa.schema(
    [
        ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS), ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
"""Rows as Spark hands them over."""

Row = Mapping[str, Any]


def new_archive() -> MemoryStore:
    store = MemoryStore()
    archive.create_archive(store, FixedClock(), CountingIds("a"))
    return store


def batch(rows: Sequence[Row], schema: Any = SPARKS) -> Any:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema)


def shape(codec: Codec = Codec.none, batch_bytes: int = 200, segment_bytes: int = 2_000) -> Shape:
    return Shape(codec, None, batch_bytes, segment_bytes)


class Rows:
    """A write of rows to a topic of an archive, step by step."""

    def __init__(
        self,
        store: ObjectStore,
        write_id: str = "one",
        partitions: int | None = None,
        of: Shape | None = None,
        topic: str = "rows",
    ) -> None:
        self.store = store
        self.write_id = write_id
        self.ids = CountingIds(write_id.encode().hex()[:10])
        self.shape = of or shape()
        self.topic = written_topic(store, topic, partitions)
        self.settings = TaskSettings(self.topic, partitions, NOW_MS, self.shape)
        self.upload = Upload(store, FixedClock(), self.ids, Transforms())
        self.moves: list[Move] = []

    def task(self, number: int, batches: Iterable[Any]) -> TaskRows:
        return write_rows(batches, self.settings, number, self.upload)

    def commit(self, tasks: Iterable[TaskRows]) -> Any:
        parts = [part for task in tasks for part in task.parts]

        def place(partitions: Any) -> PartitionEntries:
            steps = placement(parts, partitions, self.shape.segment_bytes)
            self.moves = [step for of in steps.values() for step in of if isinstance(step, Move)]
            source = StoredBytes(self.store)
            return {
                path: tuple(moved(s, source, self.upload) if isinstance(s, Move) else s for s in of) for path, of in steps.items()
            }

        asked = Write(self.write_id, (self.topic,), "tests")
        return commit_write(self.store, FixedClock(), self.ids, asked, place, threads=1)

    def run(self, *tasks: Sequence[Any]) -> Any:
        """Each task's batches, and the commit."""
        return self.commit([self.task(number, batches) for number, batches in enumerate(tasks)])


def committed_only() -> MemoryStore:
    """An archive with a write that is committed, and that no manifest has taken in: the store failed just then."""
    store = new_archive()

    def is_decided(verb: str, key: str) -> bool:
        return verb == "put_if_absent" and any("/writes/" in one for one in store.objects) and "/writes/" not in key

    fails = FailsBefore(store, Unavailable("no answer"), is_decided)
    time = datetime.fromtimestamp(NOW_MS / 1_000, UTC)
    rows = [{"key": b"k", "value": b"%d" % n, "headers": None, "partition": None, "timestamp": time} for n in range(20)]
    assert Rows(fails).run([batch(rows)]).committed
    (path,) = archive.partition_paths(store, "rows")
    newest = load_newest(store, path)
    assert newest is not None
    assert newest.manifest.pending is not None
    return store


def stored(store: ObjectStore, topic: str = "rows") -> dict[int, list[dict[str, Any]]]:
    """All records of a topic, by partition: offset, timestamp (ms), key, value, headers."""
    found: dict[int, list[dict[str, Any]]] = {}
    for manifest in archive.newest_manifests(store, topic):
        log = ArchivedLog(store, manifest)
        assert not manifest.gaps
        rows = [r for records in log.records(log.log_start_offset, log.end_offset) for r in records.to_pylist()]
        assert [r["offset"] for r in rows] == [*range(log.log_start_offset, log.end_offset)]
        found[manifest.partition] = rows
    return found


def as_stored(row: Row) -> dict[str, Any]:
    """What a row is as a record, but for its offset."""
    time = row["timestamp"]
    pairs = [{"key": pair["key"].encode(), "value": pair["value"]} for pair in row["headers"] or ()]
    ms = NOW_MS if time is None else int(time.timestamp() * 1_000_000) // 1_000
    return {"timestamp": ms, "key": row["key"], "value": row["value"], "headers": pairs}
