"""`tiering manifest`: what the archive says of a topic's partitions, now and before."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from local_log.errors import Corrupt, LogError, NotFound
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    Number,
    P,
    archive_option,
    ask,
    dry_run_option,
    keys_option,
    output_option,
    partition_option,
    topic_id_option,
    topic_option,
    yes_option,
)
from tiering.command.output import Row, emit, say, warn
from tiering.machine import CLOCK, IDS, open_archive_store, writable_disk

if TYPE_CHECKING:
    from remote.keys import PartitionPath
    from remote.manifest.model import Manifest
    from remote.store.api import ObjectStore

Found: TypeAlias = "Manifest | LogError"


@click.group("manifest")
def command() -> None:
    """Show the manifests of a topic: segments, gaps and offsets, version by version."""


def of_topic(verb: Callable[P, None]) -> Callable[P, None]:
    """The options that say which partitions of which archive, and the keys by which what stands there is to be signed."""
    verb = partition_option("Only this partition. Default: all partitions of the topic.")(verb)
    verb = topic_option()(topic_id_option()(keys_option()(verb)))
    return archive_option(required=True)(verb)


def version_option(verb: Callable[P, None]) -> Callable[P, None]:
    """The option `--version`, for one partition."""
    return click.option("--version", type=Number(1), metavar="N", help="A version of --partition. Default: the newest.")(verb)


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """What `of_topic` adds: the partitions of one topic of an archive."""

    archive_url: str
    keys_address: str | None
    topic: str
    topic_id: str | None
    partition: int | None


@dataclass(frozen=True, slots=True)
class ShowOptions(TopicOptions):
    """The options of `tiering manifest show`."""

    version: int | None
    output: str


@command.command("show")
@of_topic
@version_option
@output_option()
@reports_errors
def show(**given: Any) -> Exit | None:
    """Show the manifest of each partition: one line in a table, or all fields as JSON.

    A partition that cannot be read is reported on standard error, and the others are shown.

    \b
    Examples:
      tiering manifest show --archive s3://bucket/kafka --topic orders
      tiering manifest show --archive s3://bucket/kafka --topic orders --partition 0 --version 7 --output json
    """
    from remote.manifest.pins import pins_of
    from tiering.manifests import rows as tools

    options = ShowOptions(**given)
    store, errors = open_archive_store(options.archive_url, options.keys_address), list[Exception]()
    shown = 0

    def rows() -> Iterator[Row]:
        nonlocal shown
        for manifest in _readable(_versions(store, options, options.version), errors):
            shown += 1
            yield tools.full_row(manifest, pins_of(store, manifest.path, CLOCK.now_ms()))

    emit(rows(), options.output, as_text=tools.summary)
    return exit_code_of_all(errors, partly=shown > 0)


@dataclass(frozen=True, slots=True)
class HistoryOptions(TopicOptions):
    """The options of `tiering manifest history`."""

    output: str


@command.command("history")
@of_topic
@output_option()
@reports_errors
def history(**given: Any) -> Exit | None:
    """List the stored versions, newest first: when and by whom they were written, and what changed.

    Versions that cannot be read, or that do not match the hash in the next version, are reported on standard error.

    \b
    Examples:
      tiering manifest history --archive s3://bucket/kafka --topic orders --partition 0
    """
    from tiering.manifests import rows as tools

    options = HistoryOptions(**given)
    store, errors = open_archive_store(options.archive_url, options.keys_address), list[Exception]()
    shown = 0

    def rows() -> Iterator[Row]:
        nonlocal shown
        for path in _paths(_partitions(store, options), errors):
            for row in tools.history(store, path):
                if isinstance(row, Exception):
                    _note(row, errors)
                else:
                    shown += 1
                    yield row

    emit(rows(), options.output)
    return exit_code_of_all(errors, partly=shown > 0)


@dataclass(frozen=True, slots=True)
class DiffOptions(TopicOptions):
    """The options of `tiering manifest diff`."""

    before: int
    after: int
    output: str


@command.command("diff")
@of_topic
@click.argument("before", type=Number(1))
@click.argument("after", type=Number(1))
@output_option()
@reports_errors
def diff(**given: Any) -> None:
    """Show the changes from version BEFORE to version AFTER of one partition: segments with their states, gaps, offsets.

    \b
    Examples:
      tiering manifest diff --archive s3://bucket/kafka --topic orders --partition 0 6 7
    """
    from remote.manifest.entries import Entries
    from tiering.manifests import rows as tools

    options = DiffOptions(**given)
    store = open_archive_store(options.archive_url, options.keys_address)
    former = _only(_versions(store, options, options.before))
    later = _only(_versions(store, replace(options, topic_id=former.topic_id), options.after))
    emit(tools.difference(Entries.of(store, former), Entries.of(store, later)), options.output)


@dataclass(frozen=True, slots=True)
class ExportOptions(TopicOptions):
    """The options of `tiering manifest export`."""

    version: int | None
    target: str


@command.command("export")
@of_topic
@version_option
@click.option("--to", "target", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The Parquet file to write.")
@reports_errors
def export(**given: Any) -> None:
    """Write all entries of all pages as one Parquet file, which any SQL engine reads.

    \b
    Examples:
      tiering manifest export --archive s3://bucket/kafka --topic orders --to orders.parquet
    """
    from remote.manifest.entries import Entries
    from tiering.manifests.export import export as write

    options = ExportOptions(**given)
    store = open_archive_store(options.archive_url, options.keys_address)
    manifests = [_or_raise(found) for found in _versions(store, options, options.version)]
    written = write((Entries.of(store, m) for m in manifests), writable_disk(), options.target)
    say(f"{options.target}: {written} segments")


@dataclass(frozen=True, slots=True)
class AcknowledgeOptions(TopicOptions):
    """The options of `tiering manifest acknowledge`."""

    by: str
    dry_run: bool
    is_agreed: bool
    output: str


@command.command("acknowledge")
@of_topic
@click.option(
    "--who",
    "by",
    envvar=["USER", "LOGNAME"],
    default="somebody",
    metavar="NAME",
    help="Who acknowledges it. Default: the current user.",
)
@dry_run_option
@yes_option
@output_option()
@reports_errors
def acknowledge(**given: Any) -> Exit | None:
    """Acknowledge a loss of offsets: they left every local log before they were archived.

    `tiering manifest show` still lists the loss, but scrubs and alerts no longer report it. Later losses are not acknowledged.

    \b
    Examples:
      tiering manifest acknowledge --archive s3://bucket/kafka --topic orders --dry-run
      tiering manifest acknowledge --archive s3://bucket/kafka --topic orders --partition 0 --who jo --yes
    """
    from remote import archive
    from tiering.losses import acknowledge as acknowledging

    options = AcknowledgeOptions(**given)
    store = open_archive_store(options.archive_url, options.keys_address)
    archive.open_archive(store)
    found = [*acknowledging.with_losses(store, options.topic, options.topic_id, options.partition)]
    if not found:
        say(f"tiering: nothing of {options.topic} is lost that is not acknowledged")
        return None
    if options.dry_run or not options.is_agreed:
        emit((row for manifest in found for row in _lost(manifest)), options.output)
    if options.dry_run:
        return None
    if not options.is_agreed:
        ask(f"Acknowledge that these offsets of {options.topic} are lost?")
    errors = list[Exception]()

    def rows() -> Iterator[Row]:
        for manifest in found:
            try:
                acknowledging.acknowledge(manifest, store, CLOCK, IDS, options.by)
            except LogError as e:
                _note(e, errors)
            else:
                yield from _lost(manifest)

    emit(rows(), options.output)
    return exit_code_of_all(errors, partly=len(errors) < len(found))


def _lost(manifest: "Manifest") -> Iterator[Row]:
    from remote.manifest.losses import unacknowledged

    for loss in unacknowledged(manifest):
        yield {
            "topic": manifest.topic,
            "topic_id": manifest.topic_id,
            "partition": manifest.partition,
            "start": loss.start,
            "end": loss.end,
            "noticed_at_ms": loss.noticed_at_ms,
            "reason": loss.reason,
        }


def _partitions(store: "ObjectStore", options: TopicOptions) -> list[Found]:
    from remote import archive

    archive.open_archive(store)
    of_name = archive.require_partitions(store, archive.find_topic(store, options.topic, options.topic_id))
    if of_name.warning is not None:
        warn(of_name.warning)
    found, partition = of_name.partitions, options.partition
    if partition is None:
        return [*found.values()]
    if partition not in found:
        raise NotFound(f"topic {options.topic} has no archived partition {partition}; there are: {', '.join(map(str, found))}")
    return [found[partition]]


def _paths(found: list[Found], errors: list[Exception]) -> "Iterator[PartitionPath]":
    """The paths of the partitions, also if the newest manifest is damaged; other errors are printed and collected."""
    from remote.keys import partition_of

    for one in found:
        if not isinstance(one, LogError):
            yield one.path
        elif isinstance(one, Corrupt) and (path := partition_of(one.file)) is not None:
            yield path
        else:
            _note(one, errors)


def _versions(store: "ObjectStore", options: TopicOptions, version: int | None) -> list[Found]:
    from remote.manifest.store import load_version

    found = _partitions(store, options)
    if version is None:
        return found
    return [load_version(store, _only(found).path, version).manifest]


def _only(found: list[Found]) -> "Manifest":
    if len(found) > 1:
        raise click.UsageError("a version needs one partition: choose it with --partition")
    return _or_raise(found[0])


def _or_raise(found: Found) -> "Manifest":
    if isinstance(found, LogError):
        raise found
    return found


def _readable(found: list[Found], errors: list[Exception]) -> "Iterator[Manifest]":
    """The readable manifests; errors of the others are printed and collected."""
    for one in found:
        if isinstance(one, LogError):
            _note(one, errors)
        else:
            yield one


def _note(error: Exception, errors: list[Exception]) -> None:
    say(f"tiering: {error}")
    errors.append(error)
