"""`tiering diverged`: partitions whose log and archive are of histories that have parted, as after an unclean election."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import NotFound
from local_log.formats.filenames import TopicPartition
from tiering.command.config_option import topic_globs
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    archive_option,
    ask,
    bytes_per_second_option,
    dry_run_option,
    keys_option,
    log_dir_option,
    output_option,
    partition_option,
    tell_unmatched,
    topic_option,
    topics_option,
    yes_option,
)
from tiering.command.output import Row, emit, say
from tiering.machine import CLOCK, IDS, open_archive_store

if TYPE_CHECKING:
    from local_log.log_reader import LogReader
    from tiering.manifests.diverged import Divergence


@click.group("diverged")
def command() -> None:
    """Show and resolve partitions whose log diverged from the archive."""


@command.command("show")
@log_dir_option(required=True)
@archive_option(required=True)
@keys_option()
@topics_option()
@output_option()
@reports_errors
def show(log_dir_path: str, archive_url: str, keys_address: str | None, topics: tuple[str, ...], output: str) -> Exit | None:
    """List the partitions that are no longer archived, since their log contradicts the archive.

    This happens after an unclean leader election: the new leader's log has other records from the fork offset on. A row shows
    the archived segments above the fork, which history is newer, and how many offsets of the log cannot be archived, since they
    are below the archive's log start offset. The exit code is 3 if there is such a partition. Nothing is changed.

    \b
    Examples:
      tiering diverged show --log-dir /var/lib/kafka --archive s3://bucket/kafka
    """
    from remote import archive
    from tiering.log_dirs import log_dir
    from tiering.manifests import diverged
    from tiering.manifests.diverged import Divergence

    store = open_archive_store(archive_url, keys_address)
    archive.open_archive(store)
    globs = topic_globs(topics)
    logs = log_dir(log_dir_path).found(lambda name: not globs or any(fnmatchcase(name, glob) for glob in globs))
    tell_unmatched(globs, {log.partition.topic for log in logs}, log_dir_path, "--topic" if topics else "topics.include")
    errors, shown = list[Exception](), 0

    def rows() -> Iterator[Row]:
        nonlocal shown
        for found in diverged.find_divergences(logs, store):
            if isinstance(found, Divergence):
                shown += 1
                _tell_below_start(found)
                yield _row(found)
            else:
                say(f"tiering: {found}")
                errors.append(found)

    emit(rows(), output)
    return exit_code_of_all(errors, partly=shown > 0) or (Exit.partly if shown else None)


@dataclass(frozen=True, slots=True)
class ResolveOptions:
    """The options of `tiering diverged resolve`."""

    log_dir_path: str
    archive_url: str
    keys_address: str | None
    topic: str
    partition: int
    bytes_per_second: int | None
    dry_run: bool
    is_agreed: bool
    output: str


@command.command("resolve")
@log_dir_option(required=True)
@archive_option(required=True)
@keys_option()
@topic_option()
@partition_option("The partition.", required=True)
@bytes_per_second_option()
@dry_run_option
@yes_option
@output_option()
@reports_errors
def resolve(**given: Any) -> Exit | None:
    """Keep the archived history under another topic id, and continue the archive with the log's history.

    Run it on the host of the partition's leader. First the archived segments above the fork offset are copied to a topic with
    the same name and the id in the row: read it with --topic-id, restore it with --from-topic-id. Then these segments expire in
    the partition, and the next offload continues at the fork. If it is interrupted, run it again. The exit code is 3 if offsets
    of the log cannot be archived, since they are below the archive's log start offset.

    \b
    Examples:
      tiering diverged resolve --log-dir /srv/kafka --archive s3://bucket/kafka --topic orders --partition 3 --dry-run
      tiering diverged resolve --log-dir /srv/kafka --archive s3://bucket/kafka --topic orders --partition 3 --yes
    """
    from remote import archive
    from remote.read.context import decoder_with
    from tiering.manifests import diverged
    from tiering.wiring import transforms

    options = ResolveOptions(**given)
    store = open_archive_store(options.archive_url, options.keys_address, bytes_per_second=options.bytes_per_second)
    archive.open_archive(store) if options.dry_run else archive.open_to_write(store, IDS)
    log = _log(options.log_dir_path, TopicPartition(options.topic, options.partition))
    found = diverged.divergence_of(log, store)
    if found is None:
        say(f"tiering: {log.partition}: the log has not diverged from the archive; there is nothing to resolve")
        return None
    diverged.check_resolvable(found)
    code = _tell_below_start(found)
    if options.dry_run or not options.is_agreed:
        emit([_row(found)], options.output)
    if options.dry_run:
        return code
    if not options.is_agreed:
        ask(f"Remove {found.segments} segments of {log.partition} in {store.url} and keep them under topic id {found.kept_id}?")
    keys = options.keys_address
    encryption = None if keys is None else transforms(compress=False, encrypt_with=keys).encryption
    resolver = diverged.Resolver(store, CLOCK, IDS, decoder_with(keys)(store), encryption)
    after = resolver.resolve(log, found)
    emit([{**_row(found), "archive_end_offset": after.end_offset}], options.output)
    return code


def _log(path: str, partition: TopicPartition) -> "LogReader":
    from tiering.log_dirs import log_dir

    found = log_dir(path).logs(lambda name: name == partition.topic)
    log = next((log for log in found if log.partition == partition), None)
    if log is None:
        raise NotFound(f"{path}: no partition {partition} there; check --log-dir, --topic and --partition")
    return log


def _tell_below_start(found: "Divergence") -> Exit | None:
    """Tells which offsets of the log cannot be archived, if any, and returns the exit code for that."""
    if found.below_start is None:
        return None
    start, end = found.below_start
    say(
        f"tiering: {found.manifest.path}: offsets [{start}, {end}) of the log are below the archive's log start offset and may "
        "be other records than those that expired; they will not be archived: copy them from the log if you need them"
    )
    return Exit.partly


def _row(found: "Divergence") -> Row:
    manifest, fork = found.manifest, found.fork_offset
    missing = 0 if fork is None else max(0, min(fork, found.log_start_offset) - found.start)
    start, end = found.below_start or (0, 0)
    return {
        "topic": manifest.topic,
        "partition": manifest.partition,
        "topic_id": manifest.topic_id,
        "fork_offset": fork,
        "archive_end_offset": manifest.end_offset,
        "log_start_offset": found.log_start_offset,
        "log_end_offset": found.log_end_offset,
        "offsets": None if fork is None else max(0, manifest.end_offset - fork),
        "segments": found.segments,
        "bytes": found.log_bytes,
        "newer": None if fork is None else "archive" if found.is_older else "log",
        "kept_topic_id": found.kept_id or None,
        "missing_below_fork": missing,
        "not_archived_below_start": end - start,
    }
