"""The batch reader: plans on the driver, reads on executors, from the manifest versions that it planned with."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from local_log.formats.chunks import CHUNK_BYTES
from remote.stores import open_store
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split, plan_splits
from spark_jobs.source.rows import read_split
from spark_jobs.worker import settle


@dataclass
class SplitPartition(InputPartition):
    """A split on its way to an executor."""

    split: Split


class BatchReader(DataSourceReader):
    """Reads `columns` of what the options ask for."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """One partition a split. Raises what `plan_splits` raises."""
        return [SplitPartition(s) for s in plan_splits(open_store(self.options.archive), self.options)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; Spark gives None where there are no partitions at all."""
        if not isinstance(partition, SplitPartition):
            return
        settle()
        store, asked = open_store(self.options.archive), self.options
        yield from read_split(
            store, partition.split, self.columns, read_committed=asked.read_committed, first_bytes=CHUNK_BYTES, keys=asked.keys
        )
