"""Archive to Parquet: Spark schedules, each task decodes one split and writes its files with Arrow; no row crosses the JVM.

    python -m spark_jobs.jobs.backfill --archive s3://bucket/prefix --to s3://bucket/parquet --topic orders

A file is named after the offsets of its split, `topic=T/date=D/P-<start>-<end>.parquet`. Tasks stage files out of sight; one
put of a commit decides that they count, and then they are published. A run writes what the target does not have yet, so the
next one continues where this one ended, and one that is run again, or twice at once, leaves each offset once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import click

from remote.clock import RandomIds, SystemClock
from remote.signed_store import trusted
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.backfill import run as backfill_run
from spark_jobs.backfill.task import BackfillSpec
from spark_jobs.common import estimate
from spark_jobs.common.arguments import (
    ReadArguments,
    interval_options,
    is_bound,
    master_option,
    price_options,
    resolve_ranges,
    source_options,
)
from spark_jobs.common.estimate import Work, cost, counted, of_splits
from spark_jobs.common.layout import By
from spark_jobs.common.offset_ranges import of_ranges
from spark_jobs.common.outcome import ending
from spark_jobs.common.prices import Prices, prices_of
from spark_jobs.common.run_offsets import run_offsets
from spark_jobs.common.target import Target
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.ranges import Range, resolve
from tiering.command.options import archive_option, dry_run_option, keys_option, lasting, named, options_as, topics_option

_COMPRESSIONS = ["snappy", "zstd", "lz4", "gzip", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillArguments(ReadArguments):
    """The options of this job."""

    to: str
    run_name: str | None
    by: str
    compression: str


def run(
    options: ReadOptions, target: Target, compression: str = "snappy", by: By = By.date, master: str | None = None
) -> dict[str, Any]:
    """Writes what of `options` the target does not have, and gives the report. Raises what resolving and `backfill_run` raise."""
    spec = backfill_run.spec_of(options, target, by, compression)
    ranges = resolve(trusted(open_store(options.archive), options.keys), options)
    return backfill_run.run(spec, ranges, SystemClock(), RandomIds(), master)


@click.command("backfill")
@archive_option(required=True)
@keys_option()
@click.option(
    "--to", callback=lasting, required=True, metavar="URL", help="The folder for the Parquet files: a path or an fsspec URL."
)
@topics_option()
@source_options
@interval_options
@click.option(
    "--run", "run_name", callback=named, metavar="NAME",
    help="A name under which the target stores the offsets of this run; a run with the same name uses the same offsets.",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(list(By)), default=By.date, show_default=True, help="How files are partitioned by time, in UTC."
)
@click.option(
    "--compression",
    type=click.Choice(_COMPRESSIONS),
    default="snappy",
    show_default=True,
    help="Compression of the Parquet files.",
)
@dry_run_option
@price_options
@master_option
@options_as(BackfillArguments)
def main(arguments: BackfillArguments) -> None:
    """Write archived records to Parquet files, each offset once. Prints a JSON report."""
    ending("backfill", lambda: click.echo(json.dumps(_report(arguments), indent=1)))


def _report(arguments: BackfillArguments) -> dict[str, Any]:
    meter, target = Meter(), Target(arguments.to)
    options, ranges = _ranges(arguments, target, meter)
    spec = backfill_run.spec_of(options, target, By(arguments.by), arguments.compression)
    if arguments.resolve_only:
        return dict(of_ranges(ranges))
    if arguments.dry_run:
        prices = arguments.prices()
        archive_prices = prices_of(prices, arguments.archive_url, arguments.storage_class)
        return dry_run_report(spec, ranges, meter, archive_prices, prices_of(prices, arguments.to))
    return backfill_run.run(spec, ranges, SystemClock(), RandomIds(), arguments.master)


def _ranges(arguments: BackfillArguments, target: Target, meter: Meter) -> tuple[ReadOptions, tuple[Range, ...]]:
    """The offsets to write. A named run has those that its first attempt resolved, whatever the archive contains by now."""
    if arguments.run_name is None:
        return resolve_ranges(arguments, meter=meter)
    query = {
        "archive": arguments.archive_url,
        "topics": sorted(arguments.topics),
        "options": sorted(arguments.pairs),
        "from_ms": arguments.from_ms,
        "to_ms": arguments.to_ms,
        "offsets": json.loads(json.dumps(arguments.offset_ranges)),
    }
    offsets = run_offsets(
        target.store,
        arguments.run_name,
        query,
        lambda: of_ranges(resolve_ranges(arguments, meter=meter)[1]),
        keep=not arguments.dry_run,
    )
    pairs = tuple(p for p in arguments.pairs if not is_bound(p))
    alone = replace(arguments, topics=(), pairs=pairs, from_ms=None, to_ms=None, offset_ranges=offsets)
    return resolve_ranges(alone, meter=meter)


def dry_run_report(
    spec: BackfillSpec, ranges: Iterable[Range], meter: Meter, read_prices: Prices, write_prices: Prices
) -> dict[str, Any]:
    """What a run would read and write; `meter` has counted the requests so far. Raises what `backfill_run.plan` raises."""
    todo = backfill_run.plan(spec, ranges)
    reading = of_splits(todo.splits, with_aborted=spec.options.read_committed)
    splits = len(todo.splits)
    # Of each split: a look for its mark, a staged file, its mark, a copy. More where a split has several days or hours.
    writing = Work(reads=splits, writes=3 * splits) if splits else Work()
    return estimate.dry_run(
        "backfill",
        todo.splits,
        reading,
        read_prices,
        planning={"requests": counted(meter.snapshot()).requests, "cost": cost(counted(meter.snapshot()), read_prices)},
        target={"requests_at_least": writing.requests, "cost_at_least": cost(writing, write_prices)},
        offsets=of_ranges(todo.ranges),
    )


if __name__ == "__main__":
    main()
