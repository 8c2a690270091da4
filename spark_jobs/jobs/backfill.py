"""Archive to Parquet: Spark schedules, each task decodes one split and writes one file with Arrow; no row crosses the JVM.

    python -m spark_jobs.jobs.backfill --archive s3://bucket/prefix --to s3://bucket/parquet --topic orders

A file is named after the offsets in it, `topic=T/P-<start>-<end>.parquet`, and appears whole: a task that runs twice writes
the same file again, so every offset is there once, however often tasks are retried or the job is run.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from local_log.formats.chunks import CHUNK_BYTES
from remote.stores import open_store
from spark_jobs.jobs.attempts import attempt
from spark_jobs.jobs.outcome import ending, settled
from spark_jobs.jobs.target import Target
from spark_jobs.source.options import OptionError, ReadOptions, parse
from spark_jobs.source.partitions import Split, plan_splits
from spark_jobs.source.rows import FIELDS, read_split
from tiering.console import archive_option, keys_option, lasting

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
ROW_GROUP_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """One file: its name below the target, and the rows and bytes in it."""

    name: str
    rows: int
    bytes: int


def file_name(split: Split) -> str:
    """The file that a split's rows belong in."""
    return f"topic={split.topic}/{split.partition}-{split.span.start:020d}-{split.span.end:020d}.parquet"


def columns_of(options: ReadOptions) -> tuple[str, ...]:
    """The columns of the files; the topic is in their path."""
    return COLUMNS if options.include_headers else COLUMNS[:-1]


def write_split(split: Split, options: ReadOptions, target: Target, compression: str, run_id: str = "") -> Written:
    """Decodes a split and writes its file; runs on an executor. Raises Corrupt, NotFound, Unavailable, Invalid.

    `run_id` tells this run from every other: Spark counts its attempts from 0 in each.
    """
    columns = columns_of(options)
    schema = pa.schema([(name, FIELDS[name]) for name in columns])
    store = open_store(options.archive)
    batches = read_split(store, split, columns, read_committed=options.read_committed, first_bytes=CHUNK_BYTES, keys=options.keys)
    rows = 0

    def fill(file: str) -> None:
        nonlocal rows
        # Dictionaries would be built over keys and values that hardly repeat, for a quarter of the time.
        with pq.ParquetWriter(file, schema, compression=compression, use_dictionary=False) as writer:
            for table in _row_groups(batches, schema):
                writer.write_table(table, row_group_size=table.num_rows)
                rows += table.num_rows

    name = file_name(split)
    task = TaskContext.get()
    size = target.write(name, f"{run_id}-{task.taskAttemptId() if task else os.getpid()}", fill)
    return Written(name, rows, size)


def _row_groups(batches: Iterator[pa.RecordBatch], schema: Any) -> Iterator[Any]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)


@click.command("backfill")
@archive_option(required=True)
@keys_option()
@click.option("--to", callback=lasting, required=True, metavar="URL", help="The folder for the Parquet files: any fsspec URL.")
@click.option("--topic", "topics", multiple=True, required=True, help="A topic; may be given several times.")
@click.option("--option", "pairs", multiple=True, metavar="NAME=VALUE", help="Any other option of the format tiering.")
@click.option("--compression", type=click.Choice(["snappy", "zstd", "lz4", "gzip", "none"]), default="snappy", show_default=True)
@click.option("--master", help="Spark's master; default: the one of spark-submit, or all cores of this machine.")
def main(
    archive_url: str, keys_address: str | None, to: str, topics: tuple[str, ...], pairs: tuple[str, ...], compression: str,
    master: str | None,
) -> None:  # fmt: skip
    """Write archived records to Parquet files, each offset once. Prints a JSON report."""
    given = dict(pair.partition("=")[::2] for pair in pairs)

    def job() -> None:
        keys = {"keys": keys_address} if keys_address is not None else {}
        options = parse({"includeHeaders": "true", **keys, **given, "archive": archive_url, "subscribe": ",".join(topics)})
        click.echo(json.dumps(run(options, Target(to), compression, master), indent=1))

    ending("backfill", job)


def run(options: ReadOptions, target: Target, compression: str, master: str | None = None) -> dict[str, Any]:
    """Plans, lets Spark run the tasks and gives the report.

    Raises OptionError, what planning raises, what `write_split` raises (when all other files are written), and Spark's errors.
    """
    from remote.clock import RandomIds
    from spark_jobs.session import session

    started = time.monotonic()
    splits = plan_splits(open_store(options.archive), options)
    _refuse_other_files(target, {file_name(s) for s in splits})
    # The largest first: what is left at the end, when cores fall idle, is small.
    ordered = sorted(splits, key=lambda s: s.span.entry.log_size, reverse=True)
    written: list[Written] = []
    if ordered:
        spark = session("tiering backfill", master=master)
        tasks = spark.sparkContext.parallelize(ordered, len(ordered))
        run_id = RandomIds().new_id()

        def write(split: Split) -> Written:
            return write_split(split, options, target, compression, run_id)

        written, error = settled(tasks.map(lambda split: attempt(write, split)).collect())
        if error is not None:
            raise error
    return {
        "target": target.url,
        "files": [asdict(w) for w in sorted(written, key=lambda w: w.name)],
        "rows": sum(w.rows for w in written),
        "bytes": sum(w.bytes for w in written),
        "seconds": round(time.monotonic() - started, 3),
    }


def _refuse_other_files(target: Target, planned: set[str]) -> None:
    """Files of another plan may hold the same offsets under other names."""
    topics = {name.partition("/")[0] for name in planned}
    others = sorted(n for n in target.names(".parquet") - planned if n.partition("/")[0] in topics)
    if others:
        raise OptionError(
            f"{target.url} holds {len(others)} files that this backfill would not write, {others[0]} first; the same offsets "
            "could be there twice: choose an empty folder, or the offsets and minPartitions of the run before"
        )


if __name__ == "__main__":
    main()
