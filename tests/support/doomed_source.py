"""The format `tiering` with a writer whose processes meet a fate in mid-write, for executors that are other processes.

The fate is in the option `doom`: what happens, and a folder for the marks that tell it happened.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from remote.direct_write import commit as write_commit
from spark_jobs.sink.writer import ArchiveWriter, TaskMessage
from spark_jobs.source.data_source import TieringDataSource

TASKS, ROWS, ROWS_BEFORE = 3, 36_000, 10_000
SECONDS_MAX = 60

_COLUMNS = ("cast(id AS string) AS key", "concat(id, ':', repeat('x', 300)) AS value", "cast(id % 2 AS int) AS partition")
_OPTIONS = {"topic": "rows", "partitions": "2", "kafka.segment.bytes": str(1 << 20)}


def write(spark: SparkSession, archive: str, write_id: str, **more: str) -> None:
    """Each task fills more than one segment of each partition, one of them before the middle of its rows."""
    frame = spark.range(0, ROWS, numPartitions=TASKS).selectExpr(*_COLUMNS)
    options = {"archive": archive, "writeId": write_id, **_OPTIONS, **more}
    frame.write.format("tiering").options(**options).mode("append").save()


@dataclass(frozen=True)
class Doom:
    """What happens to whom. `group` is the driver's process group."""

    fate: str
    marks: str
    group: int

    def mark(self, name: str) -> None:
        (Path(self.marks) / name).touch()

    def is_marked(self, name: str) -> bool:
        return (Path(self.marks) / name).exists()

    def wait_for(self, name: str) -> None:
        for _ in range(SECONDS_MAX * 10):
            if self.is_marked(name):
                return
            time.sleep(0.1)

    def kill_driver(self, *_: object) -> Any:
        """The driver, Spark's Java with it, and this process, which Spark commits in."""
        os.killpg(self.group, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def task_in_the_middle(self) -> None:
        context = TaskContext.get()
        assert context is not None
        task, attempt = context.partitionId(), context.attemptNumber()
        self.mark(f"task-{task}-{attempt}")
        if self.fate == "tasks die" and attempt == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fate == "a straggler" and (task, attempt) == (0, 0):
            self.wait_for("never")
        if self.fate == "twins" and task == 0:
            self.wait_for(f"task-0-{1 - attempt}")  # from here on they run side by side

    def commit(self) -> None:
        if self.fate == "before the commit":
            self.kill_driver()
        if self.fate == "before the decision":
            write_commit.decide = self.kill_driver
        if self.fate == "after the decision":
            write_commit._Commit.finish = self.kill_driver  # type: ignore[method-assign]


class DoomedWriter(ArchiveWriter):
    """As ArchiveWriter, with a fate."""

    doom: Doom

    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        return super().write(interrupted(iterator, self.doom.task_in_the_middle))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.doom.commit()
        super().commit(messages)


def interrupted(batches: Iterator[Any], act: Callable[[], None]) -> Iterator[Any]:
    """The batches; `act` runs once, when ROWS_BEFORE rows have been taken and more are to come."""
    rows, is_done = 0, False
    for batch in batches:
        if rows >= ROWS_BEFORE and not is_done:
            act()
            is_done = True
        yield batch
        rows += batch.num_rows
    assert is_done


class DoomedSource(TieringDataSource):
    """The format, under its own name."""

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        doom = Doom(**json.loads(self.options.pop("doom")))
        planned = super().writer(schema, overwrite)
        assert isinstance(planned, ArchiveWriter)
        writer = DoomedWriter(planned.planned)
        writer.doom = doom
        return writer
