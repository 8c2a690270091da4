"""Archive to Parquet: Spark schedules, each task decodes one split and writes its files with Arrow; no row crosses the JVM.

    python -m spark_jobs.jobs.backfill --archive s3://bucket/prefix --to s3://bucket/parquet --topic orders

A file is named after the offsets that its task wrote, `topic=T/date=D/P-<start>-<end>.parquet`. Small segments share a file,
large ones are cut. Tasks stage files out of sight; one put of a commit decides that they count, and then they are published. A
run writes what the target does not have yet, so the next one continues where this one ended, and one that is run again, or twice
at once, leaves each offset once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import click

from local_log.quantities import parse_size
from remote.clock import RandomIds, SystemClock
from remote.signed_store import trusted
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.backfill import run as backfill_run
from spark_jobs.backfill.forms import RAW, As
from spark_jobs.backfill.schema import form_of
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
from tiering.command.output import counted as number_of
from tiering.command.quantities import Quantity

_COMPRESSIONS = ["snappy", "zstd", "lz4", "gzip", "none"]
_SPLIT_BYTES = "bytespersplit="
_MB = 10**6


def _megabytes() -> Quantity:
    """A size whose number alone is of MB."""
    return Quantity("megabytes", lambda text: parse_size(f"{text}MB" if text.strip().isdigit() else text), _MB, 1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillArguments(ReadArguments):
    """The options of this job."""

    to: str
    run_name: str | None
    by: str
    compression: str
    file_bytes: int
    key_as: str
    key_schema: str | None
    value_as: str
    value_schema: str | None
    lists_files: bool


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
@click.option(
    "--target-file-mb", "file_bytes", type=_megabytes(), default="128", show_default=True, metavar="MB",
    help="About how large a file gets, in MB or such as 1GB: small segments share one, large segments are cut.",
)  # fmt: skip
@click.option(
    "--key-as", type=click.Choice(list(As)), default=As.binary, show_default=True,
    help="What keys become. What cannot be read as this stays in the column key_raw, and is counted.",
)  # fmt: skip
@click.option("--key-schema", metavar="DDL", help="With --key-as json: the columns, such as 'id BIGINT'.")
@click.option(
    "--value-as", type=click.Choice(list(As)), default=As.binary, show_default=True,
    help="What values become. What cannot be read as this stays in the column value_raw, and is counted.",
)  # fmt: skip
@click.option("--value-schema", metavar="DDL", help="With --value-as json: the columns, such as 'id BIGINT, name STRING'.")
@click.option("--list-files", "lists_files", is_flag=True, help="Add a list of all files to the report.")
@dry_run_option
@price_options
@master_option
@options_as(BackfillArguments)
def main(arguments: BackfillArguments) -> None:
    """Write archived records to Parquet files, each offset once. Prints a JSON report, whose first line sums it up."""
    ending("backfill", lambda: click.echo(json.dumps(_report(arguments), indent=1)))


def told(arguments: BackfillArguments, report: dict[str, Any]) -> dict[str, Any]:
    """The report as it is printed: with what it comes to in a line, what could not be read, and files only if they are asked for.

    All of it is on standard output: spark-submit puts standard error there, too, and what is printed would be no JSON.
    """
    unread = {}
    for name in ("key", "value"):
        if unparsed := report[f"unparsed_{name}s"]:
            kind = getattr(arguments, f"{name}_as")
            are = "is not" if unparsed == 1 else "are not"
            form = "UTF-8" if kind == As.text else f"JSON of --{name}-schema"
            kept = f"the column {name}{RAW} has what cannot be read, as it was"
            unread[f"{name}_warning"] = f"{number_of(unparsed, name)} {are} {form}: {kept}"
    rest = {name: value for name, value in report.items() if name != "files" or arguments.lists_files}
    return {"summary": summary(report), **unread, **rest}


def summary(report: dict[str, Any]) -> str:
    """A line about a run, from its report."""
    if not report["file_count"]:
        return f"{report['target']} has everything already (version {report['version']})"
    return (
        f"{report['rows']:,} rows, {report['bytes'] / 1e6:,.1f} MB in {number_of(report['file_count'], 'file')} are "
        f"new in {report['target']} (version {report['version']}, {report['seconds']:.1f} s)"
    )


def _report(arguments: BackfillArguments) -> dict[str, Any]:
    meter, target = Meter(), Target(arguments.to)
    key = form_of("--key-schema", As(arguments.key_as), arguments.key_schema, arguments.master)
    value = form_of("--value-schema", As(arguments.value_as), arguments.value_schema, arguments.master)
    options, ranges = _ranges(arguments, target, meter)
    if not any(pair.lower().startswith(_SPLIT_BYTES) for pair in arguments.pairs):
        options = replace(options, bytes_per_split=arguments.file_bytes)
    spec = backfill_run.spec_of(
        options, target, By(arguments.by), arguments.compression, key=key, value=value, file_bytes=arguments.file_bytes
    )
    if arguments.resolve_only:
        return dict(of_ranges(ranges))
    if arguments.dry_run:
        prices = arguments.prices()
        archive_prices = prices_of(prices, arguments.archive_url, arguments.storage_class)
        return dry_run_report(spec, ranges, meter, archive_prices, prices_of(prices, arguments.to))
    report = backfill_run.run(spec, ranges, SystemClock(), RandomIds(), arguments.master)
    return told(arguments, report)


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
    """What a run would read and write; `meter` has counted the requests so far. Raises what `plan` and `packs` raise."""
    todo = backfill_run.plan(spec, ranges)
    packs = backfill_run.packs(spec, todo.ranges)
    splits = [split for pack in packs for split in pack]
    reading = of_splits(splits, with_aborted=spec.options.read_committed)
    # Of each pack: a look for its mark, a staged file, its mark, a copy. More where a pack has several days or hours.
    writing = Work(reads=len(packs), writes=3 * len(packs))
    return estimate.dry_run(
        "backfill",
        splits,
        reading,
        read_prices,
        planning={"requests": counted(meter.snapshot()).requests, "cost": cost(counted(meter.snapshot()), read_prices)},
        target={"requests_at_least": writing.requests, "cost_at_least": cost(writing, write_prices)},
        files_at_least=len(packs),
        offsets=of_ranges(todo.ranges),
    )


if __name__ == "__main__":
    main()
