"""Rows to Parquet files that wait for their commit: a Spark writer, whose tasks stage and whose commit is one put.

The commit runs in a Python process beside the driver's; the driver publishes what stands committed then. A writer, since Spark
hands Arrow to one without pandas. Loaded by executors.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from local_log.errors import Corrupt
from remote.clock import RandomIds
from spark_jobs.common.commit_log import File, file_of
from spark_jobs.common.once import put_once
from spark_jobs.common.target import HIDDEN, Target

FORMAT = "tiering-reprocessed"
_COMMIT = "commit.json"


@dataclass(frozen=True, slots=True)
class Run:
    """A run into a folder. `writer` is the driver's own, so that of two that run at once each knows its files and its commit."""

    url: str
    run_id: str
    writer: str
    compression: str

    @property
    def folder(self) -> str:
        """Everything of this run that is out of sight."""
        return f"{HIDDEN}reprocess/{self.run_id}/"

    @property
    def staging(self) -> str:
        """The folder in which this driver's tasks stage files."""
        return f"{self.folder}{self.writer}"

    @property
    def commit_key(self) -> str:
        """Which files the run has: the first one put stays."""
        return f"{self.folder}{_COMMIT}"


@dataclass(frozen=True, slots=True)
class Committed:
    """What a run has written, and whose commit it is."""

    run_id: str
    writer: str
    files: tuple[File, ...]


@dataclass
class Staged(WriterCommitMessage):
    """A task's file, None where it had no rows."""

    file: File | None


class ReprocessedSource(DataSource):
    """The format of the writer; its options are the fields of Run."""

    @classmethod
    def name(cls) -> str:
        """The name that `format` takes; see DataSource."""
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer for rows of any schema; the run is in the options."""
        return StagingWriter(Run(*(self.options[name] for name in ("url", "run_id", "writer", "compression"))))


class StagingWriter(DataSourceArrowWriter):
    """Stages a file a task, and commits all of them by one put."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def write(self, iterator: Iterator[Any]) -> Staged:
        """Runs on an executor. Raises what the target raises, and pa.ArrowInvalid."""
        return Staged(stage(iterator, self._run))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commits unless a duplicate of the task has done so before. Raises Unavailable, Invalid."""
        files = [message.file for message in messages if isinstance(message, Staged) and message.file is not None]
        committed = Committed(self._run.run_id, self._run.writer, tuple(sorted(files, key=lambda f: f.name)))
        put_once(Target(self._run.url).store, self._run.commit_key, encode(committed))


def stage(batches: Iterator[pa.RecordBatch], run: Run) -> File | None:
    """Writes a task's rows to one file, under a name that no other attempt has. No rows make no file."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None
    context = TaskContext.get()
    part = f"part-{context.partitionId() if context else 0:05d}"
    name = f"{part}.{RandomIds().new_id()}.parquet"
    rows = first.num_rows
    with (
        Target(run.url).dropped(run.staging) as drop,
        pq.ParquetWriter(drop.path(name), first.schema, compression=run.compression) as writer,
    ):
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return File(f"run={run.run_id}/{part}.parquet", f"{run.staging}/{name}", rows, drop.bytes[name])


def encode(committed: Committed) -> bytes:
    """The commit as indented JSON, the body of its object."""
    return json.dumps(asdict(committed), indent=1).encode() + b"\n"


def decode(body: bytes, key: str) -> Committed:
    """What `encode` has made, of the run that the key names. Raises Corrupt."""
    folder = key.removesuffix(_COMMIT)
    run_id = folder.removesuffix("/").rpartition("/")[2]
    try:
        read: Any = json.loads(body)
        files = tuple(file_of(f, f"run={run_id}/", folder) for f in read["files"])
        return Committed(run_id, str(read["writer"]), files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f"this is no commit of a reprocessing ({e!r})", file=key) from e
