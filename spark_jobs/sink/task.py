"""One task of a write: it stores its rows as segments in the archive, which no manifest names yet.

Each task assigns offsets from the end of a partition, as if it were the only one. The commit moves the segments of several tasks
to consecutive offsets (see `placement`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Invalid
from remote.direct_write.topic import WrittenTopic, written_topic
from remote.keys import PartitionPath
from remote.manifest.segment_entry import SegmentEntry
from spark_jobs.sink.columns import rows_of
from spark_jobs.sink.partitioner import Partitioner, divided
from spark_jobs.sink.segments import PartitionRows, Shape, Upload

HELD_BYTES_MAX = 64 << 20
OPEN_SEGMENTS_MAX = 256
"""Each may take a file descriptor and disk up to a segment's size. Rows that are sorted by partition need few."""


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """What all tasks of a write share. `topic` is the one of the option, None where a column says it."""

    topic: WrittenTopic | None
    partitions: int | None
    now_ms: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Part:
    """The segments of one task's rows of one partition, in order."""

    path: PartitionPath
    entries: tuple[SegmentEntry, ...]


@dataclass(frozen=True, slots=True)
class TaskRows:
    """What a task has uploaded, and the topics as it found them."""

    task: int
    topics: tuple[WrittenTopic, ...]
    parts: tuple[Part, ...]


def write_rows(batches: Iterable[Any], settings: TaskSettings, task: int, upload: Upload) -> TaskRows:
    """Writes a task's rows. Raises Invalid for rows that no record can be, NotOurs, and what an upload raises."""
    writing = _Task(settings, task, upload)
    try:
        for batch in batches:
            writing.add(batch)
        return writing.ended()
    finally:
        writing.close()


class _Task:
    def __init__(self, settings: TaskSettings, task: int, upload: Upload) -> None:
        self._settings = settings
        self._task = task
        self._upload = upload
        self._topics = {settings.topic.name: settings.topic} if settings.topic else {}
        self._partitioners: dict[str, Partitioner] = {}
        self._partitions: dict[PartitionPath, PartitionRows] = {}

    def add(self, batch: Any) -> None:
        rows, said = rows_of(batch, self._settings.now_ms), None
        if "partition" in batch.schema.names:
            said = batch.column("partition")
        for name, picked in self._by_topic(batch):
            topic = self._topic(name)
            mine, stated = rows, said
            if picked is not None:
                mine, stated = rows.take(picked), None if said is None else said.take(picked)
            numbers = self._partitioners[name].numbers(mine.column("key"), stated)
            for number, part in divided(mine, numbers):
                self._rows(topic, number).add(part)
        self._limit()

    def ended(self) -> TaskRows:
        for partition in self._partitions.values():
            partition.flush()
            partition.roll()
        parts = (Part(path, tuple(p.entries)) for path, p in sorted(self._partitions.items()))
        return TaskRows(self._task, tuple(self._topics.values()), tuple(part for part in parts if part.entries))

    def close(self) -> None:
        for partition in self._partitions.values():
            partition.close()

    def _by_topic(self, batch: Any) -> Iterator[tuple[str, Any | None]]:
        """The names of topics and which rows are theirs, None for all."""
        if self._settings.topic is not None:
            yield self._settings.topic.name, None
            return
        column = batch.column("topic")
        if column.null_count:
            raise Invalid("null topic present in the data. Use the topic option for setting a topic.")
        encoded = column.dictionary_encode()
        codes = encoded.indices.to_numpy()
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            yield name, None if len(encoded.dictionary) == 1 else pa.array(np.flatnonzero(codes == code))

    def _topic(self, name: str) -> WrittenTopic:
        if name not in self._topics:
            self._topics[name] = written_topic(self._upload.store, name, self._settings.partitions)
        topic = self._topics[name]
        if name not in self._partitioners:
            self._partitioners[name] = Partitioner(name, len(topic.partitions), self._task)
        return topic

    def _rows(self, topic: WrittenTopic, number: int) -> PartitionRows:
        partition = topic.partitions[number]
        if partition.path not in self._partitions:
            self._partitions[partition.path] = PartitionRows(partition, self._settings.shape, self._upload)
        return self._partitions[partition.path]

    def _limit(self) -> None:
        """Keeps memory and open files within bounds, at the price of smaller batches and segments."""
        if sum(p.held_bytes for p in self._partitions.values()) > HELD_BYTES_MAX:
            for partition in self._partitions.values():
                partition.flush()
        spooled = [p for p in self._partitions.values() if p.spool is not None]
        if len(spooled) > OPEN_SEGMENTS_MAX:
            for partition in spooled:
                partition.roll()
