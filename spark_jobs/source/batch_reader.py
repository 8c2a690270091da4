"""The batch reader: plans on the driver, reads on executors, from the manifest versions that it planned with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from local_log.formats.chunks import CHUNK_BYTES
from remote.clock import RandomIds, SystemClock
from remote.signed_store import trusted
from remote.store.open import open_store
from spark_jobs.plain_errors import told_plainly
from spark_jobs.read_context import read_context
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split
from spark_jobs.source.pinning import plan_pinned
from spark_jobs.source.pushdown import EVERYTHING, pushdown_of
from spark_jobs.source.rows import read_split
from spark_jobs.work_division import PACK_BYTES, PackLimits, pack_neighbours
from spark_jobs.worker import freeze_loaded_objects


@dataclass
class SplitPartition(InputPartition):
    """Splits that one task reads one after the other, as shipped to an executor."""

    splits: tuple[Split, ...]


def input_partitions(splits: Sequence[Split], options: ReadOptions) -> list[InputPartition]:
    """One for each task: small neighbours together, within `bytesPerSplit`, `maxRecordsPerPartition` and `minPartitions`."""
    limits = PackLimits(min(PACK_BYTES, options.bytes_per_split), options.max_records_per_partition, options.min_partitions)
    return [SplitPartition(pack) for pack in pack_neighbours(splits, limits)]


class BatchReader(DataSourceReader):
    """Reads `columns` of what the options ask for."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self.options = options
        self.columns = columns
        self.pushdown = EVERYTHING

    @told_plainly()
    def partitions(self) -> list[InputPartition]:
        """One for each task. Raises what `plan_pinned` raises."""
        store = trusted(open_store(self.options.archive), self.options.keys)
        planned = plan_pinned(store, self.options, SystemClock(), RandomIds(), self.pushdown)
        return input_partitions(planned.splits, self.options)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; Spark gives None where there are no partitions at all."""
        if not isinstance(partition, SplitPartition):
            return
        freeze_loaded_objects()
        with told_plainly():
            yield from self._rows(partition.splits)

    def _rows(self, splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
        asked = self.options
        store = open_store(asked.archive)
        for split in splits:
            yield from read_split(
                store,
                split,
                self.columns,
                read_committed=asked.read_committed,
                first_bytes=CHUNK_BYTES,
                fail_on_data_loss=asked.fail_on_data_loss,
                context=read_context(asked.archive, asked.keys),
            )


class PushdownReader(BatchReader):
    """A batch reader that leaves unread what a query's filters cannot be true for.

    A class of its own, since Spark refuses a reader that takes filters where the session does not hand them out. And Spark (4.3)
    keeps in a table what was planned with the filters of one query, and takes it for the next one that has none: so only who
    asks for it, by the option `pushdown`, is given this reader, and loads a frame for each query.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Keeps the filters, and returns all of them: batches hold more than what matches, so Spark applies them to each row."""
        self.pushdown = pushdown_of(filters)
        return filters
