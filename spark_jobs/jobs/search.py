"""Finds records in the archive, spread over Spark's executors: by time, or by what their keys and values are like.

    python -m spark_jobs.jobs.search --archive s3://bucket/prefix --topic orders --timestamp 1700000000000
    python -m spark_jobs.jobs.search --archive s3://bucket/prefix --topic 'orders*' --key customer-17 --from-timestamp 2026-11-01

With --timestamp it answers the first offset that is as late, for every partition. Else it gives the records that match.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TextIO

import click

from remote import archive as archives
from remote.manifest.model import Manifest
from remote.signed_store import trusted
from remote.store.api import ObjectStore
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.common import estimate
from spark_jobs.common.arguments import (
    asked,
    interval_options,
    master_option,
    price_options,
    price_table,
    source_options,
    topic_ids_in,
    topics_of,
)
from spark_jobs.common.estimate import counted, of_splits
from spark_jobs.common.offset_ranges import Vector, of_ranges
from spark_jobs.common.outcome import ending
from spark_jobs.common.prices import prices_of
from spark_jobs.common.tasks import spread
from spark_jobs.errors import OptionError
from spark_jobs.search.predicate import Match, Predicate, refuse_bad_pattern
from spark_jobs.search.records import records, rows_of, shortened
from spark_jobs.search.task import Question, offset_at
from spark_jobs.source.partitions import splits
from spark_jobs.source.ranges import NO_IDS, chosen
from tiering.cli.offsets import Answer, show
from tiering.command.options import Number, archive_option, dry_run_option, keys_option, output_option, topics_option
from tiering.command.output import emit


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
    manifests = [m for topic in _topics(store, topics) for m in chosen(store, topic, topic_ids, 1).sound]

    def task(manifest: Manifest) -> Answer:
        return offset_at(archive, manifest, timestamp_ms, keys)

    found, error = spread("search", manifests, task, lambda m: m.log_bytes, master=master)
    return tuple(sorted(found, key=lambda f: f[:2])), error


@click.command("search")
@archive_option(required=True)
@keys_option()
@topics_option()
@click.option("--timestamp", type=Number(), metavar="MS", help="Find the first offset at or after this time.")
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
def main(
    archive_url: str, keys_address: str | None, topics: tuple[str, ...], timestamp: int | None, key: str | None,
    key_hex: str | None, key_match: str, value: str | None, value_hex: str | None, value_match: str, limit: int,
    encoding: str, pairs: tuple[str, ...], from_ms: int | None, to_ms: int | None, vector: Vector | None, resolve_only: bool,
    dry_run: bool, prices_file: TextIO | None, storage_class: str | None, master: str | None, output: str,
) -> None:  # fmt: skip
    """Find records by time, key or value.

    With --timestamp: the first offset whose record is as late, for every archived partition. Else: the records whose keys and
    values match, of the offsets between the first as late as --from-timestamp and the first as late as --to-timestamp.
    """

    def job() -> None:
        patterns = (("key", key, key_hex, key_match), ("value", value, value_hex, value_match))
        predicates = tuple(p for given in patterns if (p := _predicate(*given)) is not None)
        if timestamp is not None:
            others, topic_ids = topic_ids_in(pairs)
            if predicates or others or dry_run or vector is not None or (from_ms, to_ms) != (None, None):
                raise OptionError("--timestamp asks for offsets, not for records: give it with --topic alone")
            answers, error = by_time(archive_url, topics, timestamp, master, keys_address, topic_ids)
            return _show_offsets(answers, error, output)
        if not (predicates or resolve_only):
            raise OptionError("choose what to search for: --timestamp, --key or --value")
        meter = Meter()
        store = trusted(open_store(archive_url, meter=meter), keys_address)
        named = topics if topics or vector is not None else _topics(store, ())
        without_headers = ("includeHeaders=false", *pairs)
        options, ranges = asked(archive_url, keys_address, named, without_headers, from_ms, to_ms, vector, meter=meter)
        found = splits(store, ranges, options)
        if resolve_only:
            click.echo(json.dumps(of_ranges(ranges), indent=1))
        elif dry_run:
            prices = prices_of(price_table(prices_file), archive_url, storage_class)
            reading = of_splits(found, with_aborted=options.read_committed)
            report = estimate.dry_run("search", found, reading, prices, planning=counted(meter.snapshot()).requests)
            click.echo(json.dumps(report, indent=1))
        else:
            rows = rows_of(records(Question(options, predicates, from_ms, to_ms, limit), found, master), encoding)
            emit(rows, output, as_text=shortened)
        return None

    ending("search", job)


def _show_offsets(answers: tuple[Answer, ...], error: Exception | None, output: str) -> None:
    show(answers, output)
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
    return tuple(topic for topic in archives.topics(store) if archives.newest_manifests(store, topic))


if __name__ == "__main__":
    main()
