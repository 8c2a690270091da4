"""Archived records through a query or a function, to Parquet, to Kafka or to a new archived topic.

    python -m spark_jobs.jobs.reprocess --archive s3://bucket/prefix --topic orders --from-timestamp 2026-11-20 \\
        --sql "SELECT * FROM records WHERE value IS NOT NULL" --to-archive s3://bucket/prefix --to-topic orders2

The offsets are resolved once and are in the report: `--offsets` gives them to a run that is to read the same again. What the
run is of (archive, offsets, query or function, target) makes its run id, or the user does. Parquet and archived topics have
each run's rows once, however often it is run; Kafka at least once.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import click
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from remote.clock import stopwatch
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.common import estimate
from spark_jobs.common.arguments import (
    ReadArguments,
    given_options,
    interval_options,
    master_option,
    price_options,
    resolve_ranges,
    source_options,
)
from spark_jobs.common.estimate import cost, counted, of_splits
from spark_jobs.common.offset_ranges import OffsetRanges, of_ranges
from spark_jobs.common.outcome import ending
from spark_jobs.common.prices import Prices
from spark_jobs.common.target import Target
from spark_jobs.errors import OptionError, error_of
from spark_jobs.reprocess import parquet as reprocess_parquet
from spark_jobs.reprocess.transform import Transform, by_function, by_sql, unchanged
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import splits
from spark_jobs.source.ranges import Range
from tiering.command.options import archive_option, dry_run_option, keys_option, lasting, named, options_as, topics_option

_COMPRESSIONS = ["snappy", "zstd", "lz4", "gzip", "none"]
_BOUNDS = ("starting", "ending")
_RUN_ID_DIGITS = 16

Report = dict[str, Any]
Rows = Callable[[], DataFrame]
"""Makes the rows to be written; called only where they are."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where rows go: just one of the three, with the options of its format."""

    parquet: str | None = None
    kafka: str | None = None
    archive: str | None = None
    topic: str | None = None
    options: Mapping[str, str] | None = None
    compression: str = "snappy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessArguments(ReadArguments):
    """The options of this job."""

    sql: str | None
    function: str | None
    to_parquet: str | None
    to_kafka: str | None
    to_archive: str | None
    to_topic: str | None
    to_pairs: tuple[str, ...]
    compression: str
    run_id: str | None


def source_of(options: Mapping[str, str], offset_ranges: OffsetRanges) -> dict[str, str]:
    """The options of the format tiering that read just these offsets, whatever bounds `options` has."""
    kept = {name: value for name, value in options.items() if not name.lower().startswith(_BOUNDS)}
    starts, ends = ({t: {str(p): b[end] for p, b in of.items()} for t, of in offset_ranges.items()} for end in (0, 1))
    return {
        "includeHeaders": "true",
        **kept,
        "assign": json.dumps({topic: list(partitions) for topic, partitions in offset_ranges.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }


def run_id_of(source: Mapping[str, str], transform: str, destination: Destination) -> str:
    """A digest of the source, the transform and the destination, so that the same run has the same id."""
    text = json.dumps([sorted(source.items()), transform, asdict(destination)], sort_keys=True, default=dict)
    return sha256(text.encode()).hexdigest()[:_RUN_ID_DIGITS]


def run(
    spark: SparkSession, source: Mapping[str, str], transform: Transform, destination: Destination, run_id: str, partitions: int
) -> Report:
    """Reads, transforms and writes; `partitions` is for a topic that is made.

    Raises OptionError, what the target raises, and Spark's errors.
    """

    def rows() -> DataFrame:
        return transform(spark.read.format("tiering").options(**source).load())

    if destination.parquet is not None:
        return _to_parquet(rows, destination, destination.parquet, run_id)
    if destination.kafka is not None:
        return _to_kafka(rows, destination, destination.kafka)
    assert destination.archive is not None
    return _to_archive(rows, destination, destination.archive, run_id, partitions)


def _to_parquet(rows: Rows, destination: Destination, url: str, run_id: str) -> Report:
    committed, before = reprocess_parquet.write(rows, Target(url), run_id, destination.compression)
    return {
        "target": url,
        "delivery": "exactly once per run",
        "committed_before": before,
        "rows": sum(file.rows for file in committed.files),
        "bytes": sum(file.bytes for file in committed.files),
        "files": [{"name": file.name, "rows": file.rows, "bytes": file.bytes} for file in committed.files],
    }


def _to_kafka(rows: Rows, destination: Destination, servers: str) -> Report:
    options = {**(destination.options or {}), "kafka.bootstrap.servers": servers}
    if destination.topic is not None:
        options["topic"] = destination.topic
    rows().write.format("kafka").options(**options).save()
    return {  # without a number of rows: this sink tells none, and an Observation of what it writes never ends
        "target": f"kafka://{servers}",
        "topic": destination.topic,
        "delivery": "at least once: retries and repeated runs send records again",
    }


def _to_archive(rows: Rows, destination: Destination, url: str, run_id: str, partitions: int) -> Report:
    from spark_jobs.sink.write_topic import write_topic

    made_by = {"partitions": str(partitions), **(destination.options or {}), "writeId": run_id}
    if destination.topic is not None:
        made_by["topic"] = destination.topic
    decision = write_topic(rows(), url, made_by)
    added = () if decision is None else decision.ranges
    return {
        "target": url,
        "topic": destination.topic,
        "delivery": "exactly once per run",
        "rows": sum(r.end - r.start for r in added),
        "added": [{"topic": r.path.topic, "partition": r.path.partition, "start": r.start, "end": r.end} for r in added],
    }


@click.command("reprocess")
@archive_option(required=True)
@keys_option()
@topics_option()
@source_options
@interval_options
@click.option("--sql", callback=named, metavar="QUERY", help="A query on the view records.")
@click.option("--function", callback=named, metavar="MODULE:NAME", help="A function from DataFrame to DataFrame.")
@click.option(
    "--to-parquet",
    callback=lasting,
    metavar="URL",
    help="Write Parquet files below run=ID in this folder: a path or an fsspec URL.",
)
@click.option("--to-kafka", callback=named, metavar="SERVERS", help="Send to these bootstrap servers with Spark's Kafka sink.")
@click.option(
    "--to-archive", callback=lasting, metavar="URL", help="Add to a topic in this archive, which is created if it does not exist."
)
@click.option("--to-topic", callback=named, metavar="TOPIC", help="The target topic. Default: the column topic of each row.")
@click.option(
    "--to-option",
    "to_pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other option of the target's format; may be given several times.",
)
@click.option(
    "--compression",
    type=click.Choice(_COMPRESSIONS),
    default="snappy",
    show_default=True,
    help="Compression of the Parquet files.",
)
@click.option(
    "--run-id",
    callback=named,
    metavar="ID",
    help="The id of the run, whose rows are written once. Default: computed from what is read and written.",
)
@dry_run_option
@price_options
@master_option
@options_as(ReprocessArguments)
def main(arguments: ReprocessArguments) -> None:
    """Read archived records, have a query or a function make others of them, and write those. Prints a JSON report.

    Rows for Kafka and for an archive have the columns of Spark's Kafka sink: value, and key, headers, partition, topic where they
    have any; an archive takes timestamp, too.
    """
    ending("reprocess", lambda: click.echo(json.dumps(_report(arguments), indent=1)))


def _report(arguments: ReprocessArguments) -> Report:
    started, meter = stopwatch(), Meter()
    destination = _destination(arguments)
    transform = _transform(arguments.sql, arguments.function)
    options, ranges = resolve_ranges(arguments, meter=meter)
    offsets = of_ranges(ranges)
    if arguments.resolve_only:
        return dict(offsets)
    source = source_of(
        given_options(arguments.pairs, {"archive": arguments.archive_url, "keys": arguments.keys_address}), offsets
    )
    # As Hive writes it in a folder's name, whatever a scheduler calls its runs.
    own = quote(arguments.run_id, safe="") if arguments.run_id else None
    run_id = own or run_id_of(source, arguments.sql or arguments.function or "", destination)
    report: Report = {"job": "reprocess", "run_id": run_id, "offsets": offsets}
    if arguments.dry_run:
        return report | _dry_run_report(options, ranges, meter, arguments.archive_prices())
    from spark_jobs.session import session

    spark = session("tiering reprocess", master=arguments.master)
    partitions = 1 + max((r.manifest.partition for r in ranges), default=0)
    try:
        report |= run(spark, source, transform, destination, run_id, partitions)
    except AnalysisException as e:
        raise OptionError(str(e)) from e
    except PySparkException as e:
        raise error_of(e) from e
    return report | {"seconds": round(stopwatch() - started, 3)}


def _transform(sql: str | None, function: str | None) -> Transform:
    if sql is not None and function is not None:
        raise OptionError("--sql and --function are both given; give one, or neither to copy records as they are")
    if sql is not None:
        return by_sql(sql)
    return unchanged if function is None else by_function(function)


def _destination(arguments: ReprocessArguments) -> Destination:
    targets = arguments.to_parquet, arguments.to_kafka, arguments.to_archive
    if sum(target is not None for target in targets) != 1:
        raise OptionError("choose exactly one of --to-parquet, --to-kafka and --to-archive")
    if arguments.to_parquet is not None and (arguments.to_topic is not None or arguments.to_pairs):
        raise OptionError("--to-topic and --to-option are for --to-kafka and --to-archive")
    taken = dict.fromkeys(("topic", "archive", "writeId", "kafka.bootstrap.servers"))
    return Destination(*targets, arguments.to_topic, given_options(arguments.to_pairs, taken), arguments.compression)


def _dry_run_report(options: ReadOptions, ranges: Sequence[Range], meter: Meter, prices: Prices) -> Report:
    planned = splits(open_store(options.archive, meter=meter), ranges, options)
    reading = of_splits(planned, with_aborted=options.read_committed)
    planning = counted(meter.snapshot())
    more = {"requests": planning.requests, "cost": cost(planning, prices)}
    return estimate.dry_run("reprocess", planned, reading, prices, planning=more)


if __name__ == "__main__":
    main()
