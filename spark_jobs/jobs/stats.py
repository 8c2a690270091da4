"""What archived topics are made of, by partition and hour: Spark schedules, tasks count with Arrow and numpy, the driver adds.

python -m spark_jobs.jobs.stats --archive s3://bucket/prefix --topic orders --to s3://bucket/stats --picture orders.png
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TextIO

import click
import pyarrow.parquet as pq

from remote.clock import RandomIds, stopwatch
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.common import estimate
from spark_jobs.common.arguments import (
    ReadArguments,
    interval_options,
    master_option,
    price_options,
    resolve_ranges,
    source_options,
)
from spark_jobs.common.estimate import bytes_of, of_splits
from spark_jobs.common.offset_ranges import of_ranges
from spark_jobs.common.outcome import ending
from spark_jobs.common.target import HIDDEN, Target
from spark_jobs.common.tasks import TaskLimits, run_tasks
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split, splits
from spark_jobs.source.ranges import Range
from spark_jobs.stats import picture
from spark_jobs.stats.sums import PartitionSums
from spark_jobs.stats.tables import HOURS, PARTITIONS, Measured, hour_rows, line, partition_rows, table
from spark_jobs.stats.task import measure_split
from tiering.command.options import (
    archive_option,
    dry_run_option,
    keys_option,
    lasting,
    named,
    options_as,
    output_option,
    topics_option,
)
from tiering.command.output import emit

_SHOWN = ("topic", "partition", "start", "end", "records", "batches", "stored_bytes", "compression_ratio", "producers")
_WIDTH = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsArguments(ReadArguments):
    """The options of this job."""

    to: str | None
    picture_file: str | None
    headers_only: bool
    report: TextIO | None
    output: str


def run(
    options: ReadOptions,
    ranges: Sequence[Range],
    planned: Sequence[Split],
    *,
    with_records: bool,
    master: str | None = None,
) -> tuple[Measured, ...]:
    """The sums of all partitions, in the order of the ranges. Raises what `measure` raises, and Spark's errors."""
    task = partial(measure_split, options.archive, options.keys, with_records)
    done, error = run_tasks(
        "stats", planned, task, bytes_of, limits=TaskLimits(master, options.bytes_per_split, options.min_partitions)
    )
    if error is not None:
        raise error
    sums: dict[tuple[str, int], PartitionSums] = {}
    for topic, number, part in done:
        sums[topic, number] = sums.get((topic, number), PartitionSums()) + part
    return tuple(_measured(r, sums.get((r.manifest.topic, r.manifest.partition), PartitionSums())) for r in ranges)


def _measured(r: Range, sums: PartitionSums) -> Measured:
    end = max(r.start, r.end)
    return Measured(r.manifest.topic, r.manifest.partition, r.start, end, end - r.start - sums.of.offsets, sums)


def write(measured: Sequence[Measured], target: Target, *, with_records: bool) -> list[str]:
    """Writes the tables of hours and of partitions as Parquet files; those of a run before are replaced."""
    tables = {
        "hours.parquet": table(hour_rows(measured, with_records=with_records), HOURS),
        "partitions.parquet": table(partition_rows(measured, with_records=with_records), PARTITIONS),
    }
    folder = f"{HIDDEN}stats-{RandomIds().new_id()}"
    with target.dropped(folder) as drop:
        for name, rows in tables.items():
            pq.write_table(rows, drop.path(name))
    for name in tables:
        target.publish(f"{folder}/{name}", name)
    return list(tables)


@click.command("stats")
@archive_option(required=True)
@keys_option()
@topics_option()
@click.option("--to", callback=lasting, metavar="URL", help="A folder for hours.parquet and partitions.parquet: any fsspec URL.")
@click.option(
    "--picture", "picture_file", callback=named, metavar="FILE", help="Draw a chart of records and bytes by hour (PNG)."
)
@click.option(
    "--headers-only", is_flag=True, help="Decode no records: without null keys and record sizes, with the hours of batches."
)
@click.option(
    "--report", type=click.File("w", encoding="utf-8", lazy=True), metavar="FILE", help="Write a JSON report to this file."
)
@source_options
@interval_options
@price_options
@dry_run_option
@master_option
@output_option()
@options_as(StatsArguments)
def main(arguments: StatsArguments) -> None:
    """Count what archived topics are made of, by partition and hour (UTC): records, bytes, batches, codecs, producers, nulls.

    A table shows the partitions, and their records by hour as lines of blocks; json and jsonl are the hours.
    """
    ending("stats", lambda: _count(arguments))


def _count(arguments: StatsArguments) -> None:
    started, meter = stopwatch(), Meter()
    tolerant = replace(arguments, pairs=("failOnDataLoss=false", *arguments.pairs))  # a later one of the same name wins
    options, ranges = resolve_ranges(tolerant, meter=meter)
    if arguments.resolve_only:
        click.echo(json.dumps(of_ranges(ranges), indent=1))
        return
    planned = splits(open_store(arguments.archive_url, meter=meter), ranges, options)
    if arguments.dry_run:
        prices, offsets = arguments.archive_prices(), of_ranges(ranges)
        click.echo(json.dumps(estimate.dry_run("stats", planned, of_splits(planned), prices, offsets=offsets), indent=1))
        return
    if arguments.picture_file is not None:
        picture.check_available()
    with_records = not arguments.headers_only
    measured = run(options, ranges, planned, with_records=with_records, master=arguments.master)
    files = write(measured, Target(arguments.to), with_records=with_records) if arguments.to is not None else []
    if arguments.picture_file is not None:
        picture.draw(measured, arguments.picture_file)
    _show(measured, arguments.output, with_records=with_records)
    if arguments.report is not None:
        summary = {
            "job": "stats", "archive": arguments.archive_url, "offsets": of_ranges(ranges), "target": arguments.to,
            "files": files, "picture": arguments.picture_file,
            "partitions": partition_rows(measured, with_records=with_records), "splits": len(planned),
            "bytes": sum(map(bytes_of, planned)), "seconds": round(stopwatch() - started, 3),
        }  # fmt: skip
        arguments.report.write(json.dumps(summary, indent=1) + "\n")


def _show(measured: Sequence[Measured], output: str, *, with_records: bool) -> None:
    if output != "table":
        emit(hour_rows(measured, with_records=with_records), output)
        return
    rows = partition_rows(measured, with_records=with_records)
    emit(({name: _rounded(row[name]) for name in _SHOWN} for row in rows), output)
    for text in _lines(measured):
        click.echo(text)


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


def _lines(measured: Iterable[Measured]) -> Iterator[str]:
    """Records by hour, a line for each partition that has any with a timestamp."""
    for one in measured:
        drawn = line({hour: sums.records for hour, sums in one.sums.hours.items()}, _WIDTH)
        if drawn:
            yield ""
            yield f"{one.topic}-{one.partition}, records by hour"
            yield drawn


if __name__ == "__main__":
    main()
