"""The options that the jobs share: click's options, and the value that a job gets them as (see `options_as`)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TextIO, cast

import click

from remote import archive
from remote.clock import Clock, SystemClock
from remote.parallel import in_order
from remote.signed_store import trusted
from remote.store.api import ObjectStore
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.common.offset_ranges import FORM as OFFSETS_FORM
from spark_jobs.common.offset_ranges import OffsetRanges, ranges_of
from spark_jobs.common.offset_ranges import parse as parse_offset_ranges
from spark_jobs.common.prices import Prices, Table, prices_of, table
from spark_jobs.errors import OptionError
from spark_jobs.source.options import ReadOptions, parse
from spark_jobs.source.ranges import THREADS, Range, refuse_ends_ahead, resolve
from tiering.command import quantities
from tiering.command.options import topic_ids_option

P = ParamSpec("P")

_TOPIC_IDS = "topicId="


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArguments:
    """The options of every job: which archive and topics, a dry run and its prices, and Spark's master."""

    archive_url: str
    keys_address: str | None
    topics: tuple[str, ...]
    dry_run: bool
    prices_file: TextIO | None
    storage_class: str | None
    master: str | None

    def prices(self) -> Table:
        """The price table that applies: the user's prices before ours. Raises OptionError."""
        return table(None if self.prices_file is None else self.prices_file.read())

    def archive_prices(self) -> Prices:
        """The prices of the archive's storage class. Raises OptionError."""
        return prices_of(self.prices(), self.archive_url, self.storage_class)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArguments(JobArguments):
    """The options of every job that reads offsets; `pairs` are NAME=VALUE of --option. Times are ms since 1970."""

    pairs: tuple[str, ...]
    from_ms: int | None
    to_ms: int | None
    offset_ranges: OffsetRanges | None
    resolve_only: bool


def master_option(command: Callable[P, Any]) -> Callable[P, Any]:
    """Adds the option `--master`, which the session takes."""
    text = "Spark's master; default: the one of spark-submit, or all cores of this machine."
    return click.option("--master", metavar="URL", help=text)(command)


def source_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The option `--option`, for everything that the format tiering takes, and `--topic-id`, which becomes one of these."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        ids, given = cast(dict[str, str], kwargs.pop("topic_ids")), cast(tuple[str, ...], kwargs["pairs"])
        kwargs["pairs"] = (*given, _TOPIC_IDS + ",".join(f"{t}={i}" for t, i in sorted(ids.items()))) if ids else given
        return command(*args, **kwargs)

    text = "Any other option of the data source; may be given several times."
    return topic_ids_option()(click.option("--option", "pairs", multiple=True, metavar="NAME=VALUE", help=text)(run))


def topic_ids_in(pairs: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The options without what `--topic-id` has become, and that by topic."""
    ids = [pair.removeprefix(_TOPIC_IDS) for pair in pairs if pair.startswith(_TOPIC_IDS)]
    named = (one.partition("=") for text in ids for one in text.split(","))
    return tuple(pair for pair in pairs if not pair.startswith(_TOPIC_IDS)), {topic: topic_id for topic, _, topic_id in named}


def interval_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The options of jobs that work on an interval: `--from-timestamp`, `--to-timestamp`, `--offsets`, `--resolve-only`."""
    for option in (
        click.option("--resolve-only", is_flag=True, help="Print the offsets of the run, and do nothing else."),
        click.option(
            "--offsets",
            "offset_ranges",
            callback=_offset_ranges,
            metavar="JSON|FILE",
            help="Offsets in the form that --resolve-only prints.",
        ),
        click.option(
            "--to-timestamp", "to_ms", type=quantities.time(), metavar="TIME", help="The exclusive end of the interval."
        ),
        click.option(
            "--from-timestamp",
            "from_ms",
            type=quantities.time(),
            metavar="TIME",
            help="The start of the interval: ms since 1970, 2026-11-20T10:00Z or -2h.",
        ),
    ):
        command = option(command)
    return command


def price_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The options `--prices` and `--storage-class` of jobs that have `--dry-run`."""
    file = click.option(
        "--prices",
        "prices_file",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="A file with prices by storage class.",
    )
    name = click.option(
        "--storage-class", metavar="NAME", help="The storage class of the archive's objects, such as s3-glacier-ir."
    )
    return file(name(command))


def _offset_ranges(context: click.Context, param: click.Parameter, value: str | None) -> OffsetRanges | None:
    """Offset ranges as JSON, or in a file."""
    if value is None:
        return None
    try:
        is_json = value.lstrip().startswith("{")
        text = value if is_json else click.File("r", encoding="utf-8").convert(value, param, context).read()
    except click.BadParameter as e:
        raise click.BadParameter(f"{e.message}; expected {OFFSETS_FORM}, or a file with them") from e
    try:
        return parse_offset_ranges(text)
    except OptionError as e:
        raise click.BadParameter(str(e)) from e


def topics_of(store: ObjectStore, globs: Collection[str]) -> tuple[str, ...]:
    """The archived topics that `--topic` names, in order. Raises NotFound where one of the globs names none.

    A topic that a glob finds and of which nothing is archived yet is none, unless there is no other: a new topic stops no job.
    """
    archive.open_archive(store)
    found = sorted({topic for glob in globs for topic in archive.matching_topics(store, [glob])})
    there = {topic for topic in found if topic in globs} | set(with_partitions(store, [t for t in found if t not in globs]))
    return tuple(topic for topic in found if topic in there) or tuple(found)


def with_partitions(store: ObjectStore, topics: Collection[str]) -> tuple[str, ...]:
    """Those of the topics of which a partition is in the archive, in their order."""
    with in_order(lambda topic: bool(archive.newest_manifests(store, topic)), topics, THREADS) as are_there:
        return tuple(topic for topic, is_there in zip(topics, are_there, strict=True) if is_there)


def given_options(pairs: Sequence[str], fixed: Mapping[str, str | None]) -> dict[str, str]:
    """The options of the format: those of `--option`, and `fixed`, which no `--option` may name. Raises OptionError."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f"--option {pair!r} has no value; give NAME=VALUE")
        if name.lower() in {f.lower() for f in fixed}:
            raise OptionError(f"--option {name} is not allowed: the job has its own option for it")
        given[name] = value
    return {**given, **{name: value for name, value in fixed.items() if value is not None}}


def is_bound(pair: str) -> bool:
    """Whether an option NAME=VALUE says where a read starts or ends."""
    return pair.lower().startswith(("starting", "ending"))


def resolve_ranges(
    arguments: ReadArguments, *, meter: Meter | None = None, clock: Clock | None = None
) -> tuple[ReadOptions, tuple[Range, ...]]:
    """The options of the format and the offsets that a job reads. `meter` counts the requests.

    An interval starts at the first offset at or after its start time and ends before the first at or after its end time, so
    adjacent intervals have each offset once. Raises OptionError, and what `topics_of`, `resolve`, `refuse_ends_ahead` and
    `ranges_of` raise.
    """
    store = trusted(open_store(arguments.archive_url, meter=meter), arguments.keys_address)
    fixed: dict[str, str | None] = {"archive": arguments.archive_url, "keys": arguments.keys_address}
    if arguments.offset_ranges is not None:
        _refuse_bounds_beside_offsets(arguments)
        options = _parsed(arguments.pairs, {**fixed, "subscribe": ",".join(arguments.offset_ranges)})
        return options, ranges_of(store, arguments.offset_ranges, options.topic_ids)
    if not arguments.topics:
        raise OptionError("choose topics with --topic, or offsets with --offsets")
    if arguments.from_ms is not None:
        fixed |= {"startingTimestamp": str(arguments.from_ms), "startingOffsetsByTimestampStrategy": "latest"}
    if arguments.to_ms is not None:
        fixed |= {"endingTimestamp": str(arguments.to_ms)}
    options = _parsed(arguments.pairs, {**fixed, "subscribe": ",".join(topics_of(store, arguments.topics))})
    ranges = resolve(store, options)
    refuse_ends_ahead(store, options, ranges, (clock or SystemClock()).now_ms())
    return options, ranges


def _refuse_bounds_beside_offsets(arguments: ReadArguments) -> None:
    if arguments.topics or (arguments.from_ms, arguments.to_ms) != (None, None):
        raise OptionError("--offsets sets the topics and the interval; leave out --topic, --from-timestamp and --to-timestamp")
    if any(map(is_bound, arguments.pairs)):
        raise OptionError("--offsets sets the interval; leave out the options that begin with starting and ending")


def _parsed(pairs: Sequence[str], fixed: Mapping[str, str | None]) -> ReadOptions:
    return parse({"includeHeaders": "true", **given_options(pairs, fixed)})
