"""The format `doomed`: `tiering` with a writer whose processes meet a fate, for executors that are other processes.

The fate is in the option `doom`: what happens, and a folder for the marks that tell it happened.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from remote.direct_write import commit as write_commit
from spark_jobs.sink.writer import ArchiveWriter, TaskMessage
from spark_jobs.source.data_source import TieringDataSource

TASKS, ROWS, ROWS_BEFORE = 3, 36_000, 10_000
SECONDS_MAX = 60
KILLED_WITHIN_SECONDS = 250

OPTIONS = {"topic": "rows", "partitions": "2", "kafka.segment.bytes": str(1 << 20)}
_COLUMNS = ("cast(id AS string) AS key", "concat(id, ':', repeat('x', 300)) AS value", "cast(id % 2 AS int) AS partition")


def numbered(spark: SparkSession) -> DataFrame:
    """Rows of which each task fills more than one segment of each partition, one of them before the middle of its rows."""
    return spark.range(0, ROWS, numPartitions=TASKS).selectExpr(*_COLUMNS)


def active(spark: SparkSession) -> None:
    """Makes it the session of the thread, in which formats in Python are found."""
    assert spark._jvm is not None
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


def write(spark: SparkSession, archive: str, write_id: str, doom: "Doom | None" = None) -> None:
    """Appends `numbered`, from any thread; the session knows the format `doomed` if there is a doom."""
    active(spark)
    options = {"archive": archive, "writeId": write_id, **OPTIONS}
    if doom is not None:
        options["doom"] = json.dumps({"fate": doom.fate, "marks": doom.marks})
    frame = numbered(spark).write.format("tiering" if doom is None else "doomed")
    frame.options(**options).mode("append").save()


@dataclass(frozen=True)
class Doom:
    """What happens to whom."""

    fate: str
    marks: str

    def mark(self, name: str) -> None:
        """Leaves the mark, with the number of this process in it."""
        (Path(self.marks) / name).write_text(str(os.getpid()))

    def wait_for(self, name: str) -> None:
        for _ in range(SECONDS_MAX * 10):
            if (Path(self.marks) / name).exists():
                return
            time.sleep(0.1)

    def stop(self, *_: object) -> NoReturn:
        """This process does nothing more, until it is killed."""
        self.mark(self.fate)
        time.sleep(KILLED_WITHIN_SECONDS)
        os._exit(1)

    def task_in_the_middle(self) -> None:
        context = TaskContext.get()
        assert context is not None
        task, attempt = context.partitionId(), context.attemptNumber()
        self.mark(f"task-{task}-{attempt}")
        if self.fate == "tasks die" and attempt == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fate == "twins" and task == 0:
            self.wait_for(f"task-0-{1 - attempt}")  # from here on they run side by side

    def commit(self) -> None:
        if self.fate == "before the decision":
            write_commit.decide = self.stop
        if self.fate == "after the decision":
            write_commit._Commit.finish = self.stop  # type: ignore[method-assign]


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
    """The format, under a name of its own."""

    @classmethod
    def name(cls) -> str:
        return "doomed"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        doom = Doom(**json.loads(self.options.pop("doom")))
        planned = super().writer(schema, overwrite)
        assert isinstance(planned, ArchiveWriter)
        writer = DoomedWriter(planned.planned)
        writer.doom = doom
        return writer
