"""The writer behind `df.write.format("tiering")`: planned on the driver, written by tasks, committed on the driver.

The tasks' messages go to a Python process beside the driver, which has no session: what has to be moved, it moves by itself, a
few segments at a time. `write_topic` lets Spark's tasks do that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from local_log.errors import Invalid
from remote.archive import create_archive
from remote.clock import RandomIds, SystemClock, SystemRandomness
from remote.direct_write.commit import PartitionEntries, Write, commit_write, committed_before
from remote.direct_write.topic import WrittenPartition, WrittenTopic, written_topic
from remote.keys import PartitionPath, WritePath, own_write_id
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.write_record import Decision
from remote.parallel import in_order
from remote.signed_store import trusted
from remote.store.open import open_store
from remote.transforms.encoder import Encryption, Transforms
from remote.transforms.key_rings import open_keys
from spark_jobs.plain_errors import told_plainly
from spark_jobs.read_context import read_context
from spark_jobs.sink.columns import check_columns
from spark_jobs.sink.handover import Handover
from spark_jobs.sink.moving import moved
from spark_jobs.sink.options import WriteOptions
from spark_jobs.sink.placement import Move, placement
from spark_jobs.sink.segments import Shape, Upload
from spark_jobs.sink.task import TaskRows, TaskSettings, write_rows

DRIVER_THREADS = 4

Mover = Callable[[Sequence[Move]], Iterable[SegmentEntry]]
"""Makes the moves, and gives the segment of each, in their order."""


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A write as it is shipped to its tasks and to its commit. `done` is what it has added, if it was committed before."""

    options: WriteOptions
    write_id: str
    settings: TaskSettings
    done: Decision | None


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task tells who commits."""

    rows: TaskRows


def planned(options: WriteOptions, schema: StructType) -> PlannedWrite:
    """A write of rows with this schema, whose archive is made if it is not there.

    Raises OptionError for columns that will not do, NotOurs, Invalid, Corrupt, Newer, Unavailable.
    """
    check_columns({f.name: f.dataType.simpleString() for f in schema.fields}, options.topic)
    store, clock, ids = trusted(open_store(options.archive), options.keys), SystemClock(), RandomIds()
    upload_to(options)
    create_archive(store, clock, ids)
    topic = None if options.topic is None else written_topic(store, options.topic, options.partitions)
    shape = Shape(options.codec, options.level, options.batch_bytes, options.segment_bytes)
    settings = TaskSettings(topic, options.partitions, clock.now_ms(), shape)
    write_id = options.write_id or own_write_id(ids.new_id())
    home = WritePath(topic.name, topic.topic_id, write_id) if topic and options.write_id else None
    return PlannedWrite(options, write_id, settings, committed_before(store, home) if home else None)


def upload_to(options: WriteOptions) -> Upload:
    """The way into the archive, encrypted where keys are given. Raises Invalid, BadAddress for keys that cannot be had."""
    encryption = None if options.keys is None else Encryption(open_keys(options.keys), SystemRandomness())
    store = trusted(open_store(options.archive), options.keys)
    return Upload(store, SystemClock(), RandomIds(), Transforms(encryption=encryption))


def run_task(write: PlannedWrite, batches: Iterable[Any]) -> TaskRows:
    """Runs on an executor. Raises what `write_rows` raises."""
    context = TaskContext.get()
    if write.done is not None:
        return TaskRows(context.partitionId() if context else 0, (), ())
    return write_rows(batches, write.settings, context.partitionId() if context else 0, upload_to(write.options))


def run_move(options: WriteOptions, move: Move) -> SegmentEntry:
    """Makes one move, wherever it runs. Raises what `moved` raises."""
    upload = upload_to(options)
    return moved(move, read_context(options.archive, options.keys).decoded(upload.store), upload)


def run_moves_here(options: WriteOptions, moves: Sequence[Move]) -> Iterable[SegmentEntry]:
    """Makes the moves in this process, a few at a time."""
    with in_order(lambda move: run_move(options, move), moves, DRIVER_THREADS) as entries:
        return [*entries]


def run_commit(write: PlannedWrite, tasks: Iterable[TaskRows], mover: Mover) -> Decision | None:
    """Commits what the tasks have written; None where they have written nothing to no topic.

    Raises what `commit_write` raises.
    """
    ordered = sorted(tasks, key=lambda rows: rows.task)
    topics = tuple(_topics(write, ordered))
    if not topics:
        return None

    def place(partitions: Mapping[PartitionPath, WrittenPartition]) -> PartitionEntries:
        parts = chain.from_iterable(rows.parts for rows in ordered)
        steps = placement(parts, partitions, write.options.segment_bytes)
        made = iter(mover([step for of in steps.values() for step in of if isinstance(step, Move)]))
        return {path: tuple(next(made) if isinstance(step, Move) else step for step in of) for path, of in steps.items()}

    upload = upload_to(write.options)
    asked = Write(write.write_id, topics, f"spark write {write.write_id}")
    return commit_write(upload.store, upload.clock, upload.ids, asked, place)


def _topics(write: PlannedWrite, tasks: Sequence[TaskRows]) -> Iterator[WrittenTopic]:
    known = write.settings.topic
    found: dict[str, WrittenTopic] = {} if known is None else {known.name: known}
    for rows in tasks:
        for topic in rows.topics:
            found[topic.name] = _joined(found.get(topic.name, topic), topic)
    yield from found.values()


def _joined(one: WrittenTopic, other: WrittenTopic) -> WrittenTopic:
    """A topic as two tasks have found it, with the writer epochs of who came first: a claim since then fences them."""
    if one == other:
        return one
    if (one.topic_id, len(one.partitions)) != (other.topic_id, len(other.partitions)):
        raise Invalid(f"topic {one.name} was deleted or created again during the write; run the write again")
    pairs = zip(one.partitions, other.partitions, strict=True)
    return replace(one, partitions=tuple(min(pair, key=lambda p: p.writer_epoch) for pair in pairs))


class ArchiveWriter(DataSourceArrowWriter):
    """Spark's writer for one write that `planned` has prepared."""

    def __init__(self, write: PlannedWrite) -> None:
        self.planned = write

    @told_plainly()
    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        """Writes the rows of one task, on an executor."""
        return TaskMessage(run_task(self.planned, iterator))

    @told_plainly()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Runs beside the driver, when all tasks have ended."""
        tasks = [message.rows for message in messages if isinstance(message, TaskMessage)]
        if self.planned.options.tasks_to is not None:
            return Handover(self.planned.options.tasks_to).give(tasks)
        run_commit(self.planned, tasks, lambda moves: run_moves_here(self.planned.options, moves))
        return None

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing names what was uploaded, and an uploader never deletes: the sweep does."""
