"""`tiering offload`: copies what is due of a log directory into the archive."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import click

from local_log.errors import LogError, NotFound
from local_log.formats.filenames import META_PROPERTIES, TopicPartition
from tiering.command.config_option import own_log_settings
from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.offload_options import (
    OffloadOptions,
    elsewhere,
    is_new_archive,
    load_seen,
    offload_exit_code,
    offload_options,
    refuse_a_shared_folder,
    refuse_changed_id,
    refuse_half_of_encryption,
    save_new,
    save_seen,
    selected,
    totals,
)
from tiering.command.options import is_given, options_as, own_log_dir_option
from tiering.command.output import Row, emit, say
from tiering.machine import CLOCK, IDS, folder_holder, local_disk, open_archive_store

if TYPE_CHECKING:
    from local_log.log_dir import LogDir, Unopened
    from local_log.log_reader import LogReader
    from local_log.segment_reader import Segment
    from remote.store.api import ObjectStore
    from remote.transforms.encoder import Transforms
    from tiering.losses.gone_logs import GoneLog
    from tiering.losses.seen_logs import SeenFile, SeenLog
    from tiering.offload.copy import Done
    from tiering.offload.run import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OffloadOptions):
    """The options of `tiering offload`."""

    own_log_dir: str | None


@click.command("offload")
@offload_options
@own_log_dir_option()
@reports_errors
@options_as(Options)
def command(options: Options) -> Exit | None:
    """Copy inactive segments below the last stable offset into the archive, with their indexes and snapshots.

    Run it as often as you like, also next to a live broker: archived segments are not copied again, and segments that the
    broker deletes or compacts during a copy are skipped. A damaged segment is rejected and reported, the others are copied, and
    the exit code is 6. Missing or damaged indexes and snapshots are rebuilt from the log, and the row says so.

    Segments that are archived stay as they are, also if the log cleaner compacts them later. With --replace-compacted the
    compacted segments are archived in their place; what they supersede is deleted later, as if it had expired.

    A log may fill a gap of the archive if it shows that its records there are not those of a leader that lost an unclean leader
    election: it goes on, at least up to the end of what is copied, in a leader epoch that the archive has behind the gap. What
    only a removed disk has is copied with --assume-clean-elections.

    If offsets left the log before they were archived, a row with the action lost shows them, and the exit code of this run is
    3; see tiering manifest acknowledge. The same holds for a partition that an earlier run saw and that has disappeared, unless
    all of it was archived.

    \b
    Examples:
      tiering offload --log-dir /var/lib/kafka --archive s3://bucket/kafka --dry-run
      tiering offload --log-dir /var/lib/kafka --archive s3://bucket/kafka --topic 'orders*' --bytes-per-second 50000000
      tiering offload --config tiering.toml --must-exist
    """
    refuse_half_of_encryption(options)
    if options.own_log_dir is None:
        return _offload(options, options.source())
    if is_given("log_dir_path"):
        raise click.UsageError("--own-log-dir stands for --log-dir: leave one of them out")
    return _offload_own(replace(options, log_dir_path=options.own_log_dir))


def _offload_own(options: OffloadOptions) -> Exit | None:
    """Offloads a log directory while it is owned, up to the ends of its logs. The engine is loaded for this alone."""
    from local_log.log_dir import is_new
    from tiering.agent.agent_lock import agent_lock
    from tiering.local_tier.opening import owned

    path = options.log_dir_path.rstrip("/") or "/"
    if not local_disk().is_folder(path):
        raise NotFound(f"{path}: no such folder; name a log directory that no broker uses")
    if is_new(local_disk(), path):
        raise NotFound(f"{path}: it is empty; mount its disk, or, if it is a new one, create an empty {META_PROPERTIES} there")
    with agent_lock(folder_holder(), [path], CLOCK), owned(path, own_log_settings, say) as source:
        return _offload(options, source)


def _offload(options: OffloadOptions, source: "LogDir") -> Exit | None:
    from tiering.losses.gone_logs import gone_logs

    how = options.transforms()
    source_id = source.id()
    found = source.found(options.has_topic, options.partitions or None)
    store = open_archive_store(options.archive_url, options.keys_address, bytes_per_second=options.bytes_per_second)
    memory = options.seen_file(source, source_id, store)
    known = load_seen(memory)
    gone = gone_logs(known, source, found, options.covers, elsewhere(source))
    taken = selected(options, source, [log.partition for log in found], gone)
    due = _Due(tuple(log for log in found if log.partition in taken), gone, known, source_id)
    refuse_a_shared_folder(source, store)
    refuse_changed_id(source, source_id)
    if is_new_archive(options, store):  # what is remembered is of another archive, that lay there before
        due = replace(due, known={}, gone=())
    if not options.dry_run:
        save_new(memory, due.logs, due.known.keys())
    results = _run(options, due, how, store, source, memory)
    return offload_exit_code([done.error for done in results if done.error is not None], Counter(done.action for done in results))


@dataclass(frozen=True, slots=True)
class _Due:
    """The logs to offload, those that are gone, what is remembered of both, and the id of their log directory."""

    logs: "tuple[LogReader | Unopened, ...]"
    gone: "tuple[GoneLog, ...]"
    known: "Mapping[TopicPartition, SeenLog]"
    source_id: str


# Six parameters: what is due, how it is stored, and where what is seen is kept.
def _run(
    options: OffloadOptions, due: _Due, how: "Transforms", store: "ObjectStore", source: "LogDir", memory: "SeenFile"
) -> "list[Done]":
    """Copies what is due and prints what becomes of it; gives all of that."""
    from local_log.log_reader import LogReader
    from tiering.command.progress import Work, shown
    from tiering.offload.run import OffloadLogs

    sizes = {
        (log.partition, segment.base_offset): _size(segment)
        for log in due.logs
        if isinstance(log, LogReader)
        for segment in log.segments[:-1]  # the active one stays
    }
    moved = Work(sum(sizes.values()))
    offload = OffloadLogs(
        store, CLOCK, IDS, due.source_id, moved.did, how, options.dry_run, options.copy_nothing, due.known, options.replaces(),
        source.deleted_to, options.assume_clean_elections,
    )  # fmt: skip

    def work() -> "Iterator[Result]":
        taken = set[int]()
        try:
            for log, done in chain(offload.run(due.gone, options.threads), offload.run(due.logs, options.threads)):
                taken.add(id(done))
                if done.entry is None and done.decision is not None and not done.is_lost:
                    moved.needs_not(sizes.get((log.partition, done.decision.segment.base_offset), 0))
                yield log, done
        except KeyboardInterrupt:
            yield from (result for result in offload.results if id(result[1]) not in taken)  # what was under way
            raise

    try:
        with shown("offload", lambda: moved.of_bytes if moved.done_bytes else 0, lambda: moved.done_bytes):
            _print(work(), options.output)
    finally:
        if not options.dry_run:
            save_seen(memory, offload.changes)
        results = [done for _, done in offload.results]
        if results and options.output == "table":
            copied = sum(done.entry.log_size for done in results if done.entry)
            say(f"tiering: {totals(Counter(done.action for done in results), copied)}")
    return results


def _print(work: "Iterator[Result]", output: str) -> None:
    """Prints the result of each segment. The copies are completed also if the output is closed."""

    def rows() -> Iterator[Row]:
        for log, done in work:
            _tell(log, done)
            yield _row(log, done)

    try:
        emit(rows(), output)
    except OSError:
        for log, done in work:
            with suppress(OSError):
                _tell(log, done)
        raise


def _tell(log: "LogReader | Unopened | GoneLog", done: "Done") -> None:
    if done.error is not None:
        say(f"tiering: {done.error}")
    if done.is_lost and done.decision is not None:
        say(f"tiering: {log.partition}: {done.decision.reason}")


def _size(segment: "Segment") -> int:
    try:
        return segment.size()
    except LogError:
        return 0  # it only moves the bar


def _row(log: "LogReader | Unopened | GoneLog", done: "Done") -> Row:
    return {
        "topic": log.partition.topic,
        "partition": log.partition.partition,
        "segment": done.decision.segment.base_offset if done.decision else None,
        "action": done.action,
        "bytes": done.entry.log_size if done.entry else None,
        "reason": done.reason,
    }
