"""Archive to Parquet: Spark schedules, each task decodes one split and writes its files with Arrow; no row crosses the JVM.

    python -m spark_jobs.jobs.backfill --archive s3://bucket/prefix --to s3://bucket/parquet --topic orders

A file is named after the offsets of its split, `topic=T/date=D/P-<start>-<end>.parquet`. Tasks stage files out of sight; one
put of a commit decides that they count, and then they are published. A run writes what the target does not have yet, so the
next one continues where this one ended, and one that is run again, or twice at once, leaves each offset once.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TextIO

import click

from remote.clock import RandomIds, SystemClock
from remote.signed_store import trusted
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.backfill import run as backfill_run
from spark_jobs.backfill.task import Order
from spark_jobs.common import estimate
from spark_jobs.common.arguments import (
    asked,
    interval_options,
    is_bound,
    master_option,
    price_options,
    price_table,
    source_options,
)
from spark_jobs.common.estimate import Work, cost, counted, of_splits
from spark_jobs.common.layout import By
from spark_jobs.common.offset_ranges import Vector, of_ranges
from spark_jobs.common.outcome import ending
from spark_jobs.common.prices import Prices, prices_of
from spark_jobs.common.run_offsets import kept_offsets
from spark_jobs.common.target import Target
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.ranges import Range, resolve
from tiering.command.options import archive_option, dry_run_option, keys_option, lasting, named, topics_option

_COMPRESSIONS = ["snappy", "zstd", "lz4", "gzip", "none"]

Question = tuple[Sequence[str], Sequence[str], int | None, int | None, Vector | None]
"""Topics, options of the format, from and to in ms, offsets."""


def run(
    options: ReadOptions, target: Target, compression: str = "snappy", by: By = By.date, master: str | None = None
) -> dict[str, Any]:
    """Writes what of `options` the target does not have, and gives the report. Raises what resolving and `backfill_run` raise."""
    order = backfill_run.order_of(options, target, by, compression)
    ranges = resolve(trusted(open_store(options.archive), options.keys), options)
    return backfill_run.run(order, ranges, SystemClock(), RandomIds(), master)


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
def main(
    archive_url: str, keys_address: str | None, to: str, topics: tuple[str, ...], pairs: tuple[str, ...], from_ms: int | None,
    to_ms: int | None, vector: Vector | None, resolve_only: bool, run_name: str | None, by: By, compression: str, dry_run: bool,
    prices_file: TextIO | None, storage_class: str | None, master: str | None,
) -> None:  # fmt: skip
    """Write archived records to Parquet files, each offset once. Prints a JSON report."""

    def job() -> None:
        meter = Meter()
        asking = partial(asked, archive_url, keys_address, meter=meter)
        question = topics, pairs, from_ms, to_ms, vector
        if run_name is None:
            options, ranges = asking(*question)
        else:
            options, ranges = _as_kept(asking, question, archive_url, Target(to), run_name, keep=not dry_run)
        order = backfill_run.order_of(options, Target(to), By(by), compression)
        if resolve_only:
            report: dict[str, Any] = dict(of_ranges(ranges))
        elif dry_run:
            prices = price_table(prices_file)
            report = dry(order, ranges, meter, prices_of(prices, archive_url, storage_class), prices_of(prices, to))
        else:
            report = backfill_run.run(order, ranges, SystemClock(), RandomIds(), master)
        click.echo(json.dumps(report, indent=1))

    ending("backfill", job)


def _as_kept(
    asking: Callable[..., tuple[ReadOptions, tuple[Range, ...]]],
    question: Question,
    archive_url: str,
    target: Target,
    run_name: str,
    *,
    keep: bool,
) -> tuple[ReadOptions, tuple[Range, ...]]:
    """What a run of this name is of: the offsets that its first try resolved, whatever there is in the archive by now."""
    topics, pairs, from_ms, to_ms, vector = question
    told = {"archive": archive_url, "topics": sorted(topics), "options": sorted(pairs), "from_ms": from_ms, "to_ms": to_ms}
    told |= {"offsets": json.loads(json.dumps(vector))}
    offsets = kept_offsets(target.store, run_name, told, lambda: of_ranges(asking(*question)[1]), keep=keep)
    return asking((), tuple(p for p in pairs if not is_bound(p)), None, None, offsets)


def dry(order: Order, ranges: Iterable[Range], meter: Meter, read_prices: Prices, write_prices: Prices) -> dict[str, Any]:
    """What a run would read and write; `meter` has counted what it took to know. Raises what `backfill_run.plan` raises."""
    todo = backfill_run.plan(order, ranges)
    reading = of_splits(todo.splits, with_aborted=order.options.read_committed)
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
