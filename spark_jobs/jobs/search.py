"""Finds records in the archive, spread over Spark's executors: by time, or by what their keys and values are like.

    python -m spark_jobs.jobs.search --archive s3://bucket/prefix --topic orders --timestamp 1700000000000
    python -m spark_jobs.jobs.search --archive s3://bucket/prefix --topic 'orders*' --key customer-17 --from-timestamp 2026-11-01

With --timestamp it answers the first offset that is as late, for every partition. Else it gives the records that match.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import click

from remote import archive as archives
from remote.manifest.model import Manifest
from remote.signed_store import trusted
from remote.store.api import ObjectStore
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
    topic_ids_in,
    topics_of,
    with_partitions,
)
from spark_jobs.common.estimate import counted, of_splits
from spark_jobs.common.offset_ranges import of_ranges
from spark_jobs.common.outcome import ending
from spark_jobs.common.tasks import TaskLimits, run_tasks
from spark_jobs.errors import OptionError
from spark_jobs.search.predicate import Match, Predicate, refuse_bad_pattern
from spark_jobs.search.records import records, rows_of, shortened
from spark_jobs.search.task import SearchQuery, offset_at
from spark_jobs.source.partitions import splits
from spark_jobs.source.ranges import NO_IDS, chosen
from tiering.command import quantities
from tiering.command.offset_table import Answer, show
from tiering.command.options import Number, archive_option, dry_run_option, keys_option, options_as, output_option, topics_option
from tiering.command.output import emit

_TIMESTAMP_ALONE = "--timestamp asks for offsets, not for records: give it with --topic alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchArguments(ReadArguments):
    """The options of this job."""

    timestamp: int | None
    key: str | None
    key_hex: str | None
    key_match: str
    value: str | None
    value_hex: str | None
    value_match: str
    limit: int
    encoding: str
    output: str


def by_time(
    archive: str,
    topics: Sequence[str],
    timestamp_ms: int,
    master: str | None = None,
    keys: str | None = None,
    topic_ids: Mapping[str, str] = NO_IDS,
) -> tuple[tuple[Answer, ...], Exception | None]:
    """The answers for all partitions of the topics that match (of all topics where none is named), in order.

    With them comes the worst of the errors of partitions that have none, such as MissingRange where the record could lie in
    a gap.
    """
    store = trusted(open_store(archive), keys)
    manifests = [m for topic in _topics(store, topics) for m in chosen(store, topic, topic_ids, 1).manifests]

    def task(manifest: Manifest) -> Answer:
        return offset_at(archive, manifest, timestamp_ms, keys)

    found, error = run_tasks("search", manifests, task, lambda m: m.log_bytes, limits=TaskLimits(master))
    return tuple(sorted(found, key=lambda f: f[:2])), error


@click.command("search")
@archive_option(required=True)
@keys_option()
@topics_option()
@click.option("--timestamp", type=quantities.time(), metavar="TIME", help="Find the first offset at or after this time.")
@click.option("--key", metavar="TEXT", help="Find records with this key; see --key-match.")
@click.option("--key-hex", metavar="HEX", help="The same, as hexadecimal bytes.")
@click.option(
    "--key-match", type=click.Choice(list(Match)), default=Match.exact, show_default=True, help="How --key is compared."
)
@click.option("--value", metavar="TEXT", help="Find records with this value; see --value-match.")
@click.option("--value-hex", metavar="HEX", help="The same, as hexadecimal bytes.")
@click.option(
    "--value-match", type=click.Choice(list(Match)), default=Match.contains, show_default=True, help="How --value is compared."
)
@click.option("--limit", type=Number(1), default=100, show_default=True, metavar="N", help="Stop after this many records.")
@click.option(
    "--encoding",
    type=click.Choice(["text", "base64"]),
    default="text",
    show_default=True,
    help="The encoding of keys and values.",
)
@source_options
@interval_options
@dry_run_option
@price_options
@master_option
@output_option()
@options_as(SearchArguments)
def main(arguments: SearchArguments) -> None:
    """Find records by time, key or value.

    With --timestamp: the first offset whose record is as late, for every archived partition. Else: the records whose keys and
    values match, of the offsets between the first as late as --from-timestamp and the first as late as --to-timestamp.
    """
    ending("search", lambda: _search(arguments))


def _search(arguments: SearchArguments) -> None:
    patterns = (
        ("key", arguments.key, arguments.key_hex, arguments.key_match),
        ("value", arguments.value, arguments.value_hex, arguments.value_match),
    )
    predicates = tuple(p for given in patterns if (p := _predicate(*given)) is not None)
    if arguments.timestamp is not None:
        if predicates:
            raise OptionError(_TIMESTAMP_ALONE)
        _show_offsets(arguments, arguments.timestamp)
    elif predicates or arguments.resolve_only:
        _show_records(arguments, predicates)
    else:
        raise OptionError("choose what to search for: --timestamp, --key or --value")


def _show_records(arguments: SearchArguments, predicates: tuple[Predicate, ...]) -> None:
    meter = Meter()
    store = trusted(open_store(arguments.archive_url, meter=meter), arguments.keys_address)
    is_named = arguments.topics or arguments.offset_ranges is not None
    topics = arguments.topics if is_named else _topics(store, ())
    without_headers = replace(arguments, topics=topics, pairs=("includeHeaders=false", *arguments.pairs))
    options, ranges = resolve_ranges(without_headers, meter=meter)
    found = splits(store, ranges, options)
    if arguments.resolve_only:
        click.echo(json.dumps(of_ranges(ranges), indent=1))
    elif arguments.dry_run:
        reading = of_splits(found, with_aborted=options.read_committed)
        planning = counted(meter.snapshot()).requests
        report = estimate.dry_run("search", found, reading, arguments.archive_prices(), planning=planning)
        click.echo(json.dumps(report, indent=1))
    else:
        query = SearchQuery(options, predicates, arguments.from_ms, arguments.to_ms, arguments.limit)
        emit(rows_of(records(query, found, arguments.master), arguments.encoding), arguments.output, as_text=shortened)


def _show_offsets(arguments: SearchArguments, timestamp_ms: int) -> None:
    others, topic_ids = topic_ids_in(arguments.pairs)
    bounds = (arguments.from_ms, arguments.to_ms, arguments.offset_ranges)
    if others or arguments.dry_run or bounds != (None, None, None):
        raise OptionError(_TIMESTAMP_ALONE)
    answers, error = by_time(
        arguments.archive_url, arguments.topics, timestamp_ms, arguments.master, arguments.keys_address, topic_ids
    )
    show(answers, arguments.output)
    if error is not None:
        raise error


def _predicate(column: str, text: str | None, hexadecimal: str | None, match: str) -> Predicate | None:
    if text is None and hexadecimal is None:
        return None
    if text is not None and hexadecimal is not None:
        raise OptionError(f"--{column} and --{column}-hex mean the same; give only one of them")
    try:
        pattern = bytes.fromhex(hexadecimal) if text is None and hexadecimal is not None else (text or "").encode()
    except ValueError as e:
        raise OptionError(f"--{column}-hex {hexadecimal!r} is not hexadecimal: {e}") from e
    predicate = Predicate(column, Match(match), pattern)
    refuse_bad_pattern(predicate)
    return predicate


def _topics(store: ObjectStore, globs: Sequence[str]) -> tuple[str, ...]:
    """The archived topics that match; all where there are no globs. Raises NotFound where a glob names none."""
    if globs:
        return topics_of(store, globs)
    archives.open_archive(store)
    return with_partitions(store, archives.topics(store))


if __name__ == "__main__":
    main()
