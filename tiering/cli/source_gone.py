"""`tiering source-gone`: says that a log directory was taken out of service."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import LogError
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    archive_option,
    ask,
    dry_run_option,
    keys_option,
    named,
    output_option,
    tell_unmatched,
    topics_option,
    yes_option,
)
from tiering.command.output import Row, emit, say
from tiering.machine import CLOCK, IDS, open_archive_store

if TYPE_CHECKING:
    from remote.manifest.model import Manifest


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering source-gone`."""

    archive_url: str
    source: str
    topics: tuple[str, ...]
    keys_address: str | None
    dry_run: bool
    is_agreed: bool
    output: str


@click.command("source-gone")
@archive_option(required=True)
@click.option(
    "--source",
    required=True,
    callback=named,
    metavar="ID",
    help="The directory's id, from local_log_start_offsets of a manifest.",
)
@topics_option()
@keys_option()
@dry_run_option
@yes_option
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Record that a log directory and its partitions are gone: the broker was taken out of service.

    Until then the archive assumes that the directory still has what it had when it was last archived, and reports none of that
    as lost. If the directory comes back, its next offload records that.

    \b
    Examples:
      tiering source-gone --archive s3://bucket/kafka --source 5nFBVDdgQYqYw8XhsLcxLA --dry-run
      tiering source-gone --archive s3://bucket/kafka --source 5nFBVDdgQYqYw8XhsLcxLA --yes
    """
    from remote import archive
    from tiering.losses import source_gone

    options = Options(**given)
    store, clock, ids = open_archive_store(options.archive_url, options.keys_address), CLOCK, IDS
    archive.open_archive(store)
    names = archive.matching_topics(store, options.topics)
    tell_unmatched(options.topics, names, store.url)
    found = source_gone.partitions_of_source(store, names, options.source)
    if options.dry_run or not options.is_agreed:
        planned = ((m, source_gone.without_source(m, options.source, clock.now_ms())) for m in found)
        emit((_row(before, after, options.source) for before, after in planned), options.output)
    if options.dry_run or not found:
        return None
    if not options.is_agreed:
        ask(f"Say that {options.source} is gone, in {store.url}?")
    errors = list[Exception]()

    def rows() -> Iterator[Row]:
        for before in found:
            try:
                yield _row(before, source_gone.record_gone(before, store, clock, ids, options.source), options.source)
            except LogError as e:
                say(f"tiering: {e}")
                errors.append(e)

    emit(rows(), options.output)
    return exit_code_of_all(errors, partly=len(errors) < len(found))


def _row(before: "Manifest", after: "Manifest", source: str) -> Row:
    from remote.manifest.losses import lost_offsets

    return {
        "topic": before.topic,
        "topic_id": before.topic_id,
        "partition": before.partition,
        "local_log_start_offset": before.local_log_start_offsets[source],
        "newly_lost_offsets": lost_offsets(after) - lost_offsets(before),
    }
