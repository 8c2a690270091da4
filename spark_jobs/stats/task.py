"""A task of the job stats: what executors load of it."""

from remote.store.open import open_store
from spark_jobs.read_context import read_context
from spark_jobs.source.partitions import Split
from spark_jobs.stats.measured import measure
from spark_jobs.stats.sums import PartitionSums


def measure_split(url: str, keys: str | None, with_records: bool, split: Split) -> tuple[str, int, PartitionSums]:
    """The topic and the partition of a split, and its sums. Raises as `measure`."""
    return (
        split.topic,
        split.partition,
        measure(open_store(url), split, with_records=with_records, context=read_context(url, keys)),
    )
