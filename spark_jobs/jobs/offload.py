"""`tiering offload` of a log directory on shared storage, its partitions spread over Spark's executors: the same exit codes.

    python -m spark_jobs.jobs.offload --log-dir /mnt/broker-1 --archive s3://bucket/prefix

The driver lists the directory. Tasks open the logs and the manifests of a slice of its partitions, plan, and copy.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import click

from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir
from remote.clock import stopwatch
from remote.store.api import ObjectStore
from spark_jobs.common.arguments import master_option
from spark_jobs.common.attempts import Failed
from spark_jobs.common.mounted import SharedLogDir
from spark_jobs.common.outcome import ending, say_errors
from spark_jobs.common.slices import Executors, sliced
from spark_jobs.offload.rows import OffloadRow
from spark_jobs.offload.task import OffloadedSlice, OffloadItem, OffloadSpec, offload_slice
from tiering.command.config_option import with_config
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
from tiering.command.options import options_as
from tiering.command.output import Row, counted, emit, say
from tiering.losses.gone_logs import gone_logs
from tiering.losses.seen_logs import SeenFile, SeenLog
from tiering.machine import open_archive_store
from tiering.offload.copy import COPIED, REFUSED
from tiering.offload.plan import Action

Slice = Sequence[OffloadItem]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadArguments(OffloadOptions):
    """The options of this job."""

    master: str | None


@with_config
@click.command("offload")
@offload_options
@master_option
@options_as(OffloadArguments)
def main(arguments: OffloadArguments) -> None:
    """Copy inactive segments below the last stable offset into the archive, as tiering offload does, on Spark's executors.

    The driver and every executor must see the log directory, and an archive in a folder, at the same path. Each partition has a
    row for each action. Each task copies --threads partitions at a time; --bytes-per-second limits all tasks together.
    """
    ending("offload", lambda: _offload(arguments))


def _offload(arguments: OffloadArguments) -> None:
    started = stopwatch()
    refuse_half_of_encryption(arguments)
    arguments.transforms()  # keys that cannot be had are reported before anything is read
    source = arguments.source()
    source_id = source.id()
    store = open_archive_store(arguments.archive_url, arguments.keys_address)
    memory = arguments.seen_file(source, source_id, store)
    items, is_new = _plan(arguments, source, store, memory)
    refuse_changed_id(source, source_id)
    if not arguments.dry_run:
        save_new(memory, source.found_of(item.partition for item in items if item.known is None))
    executors = Executors.of("offload", arguments.master)
    slices = sliced(items, executors.cores)
    spec = _spec(arguments, source, items, executors.cores, is_archive_missing=is_new and arguments.dry_run)
    at_once_max = None if arguments.bytes_per_second is None else executors.cores
    outcomes = executors.run(slices, partial(offload_slice, spec), at_once_max=at_once_max)
    if not arguments.dry_run:
        save_seen(memory, _changes(outcomes))
    _end(arguments, list(_rows(slices, outcomes)), f"{counted(len(items), 'partition')}, {stopwatch() - started:.1f} s")


def _plan(arguments: OffloadArguments, source: LogDir, store: ObjectStore, memory: SeenFile) -> tuple[list[OffloadItem], bool]:
    """What tasks are to look at, and whether the archive is new. Opens or creates the archive. Raises NotFound, and as these."""
    known = load_seen(memory)
    there = [p for p in source.partitions() if _is_named(arguments, p)]
    gone = gone_logs(known, source, (), arguments.covers, elsewhere(source))
    taken = selected(arguments, source, there, gone)
    refuse_a_shared_folder(source, store)
    is_new = is_new_archive(arguments, store)
    if is_new:  # what is remembered is of another archive, that lay there before
        known, gone = {}, ()
    items = [OffloadItem(p, known.get(p)) for p in there if p in taken]
    items += (OffloadItem(log.partition, known.get(log.partition), log) for log in gone)
    return sorted(items, key=lambda item: item.partition), is_new


def _is_named(arguments: OffloadArguments, partition: TopicPartition) -> bool:
    return arguments.has_topic(partition.topic) and (not arguments.partitions or partition in arguments.partitions)


def _spec(
    arguments: OffloadArguments, source: LogDir, items: Iterable[OffloadItem], cores: int, *, is_archive_missing: bool
) -> OffloadSpec:
    limit = arguments.bytes_per_second
    return OffloadSpec(
        SharedLogDir.of(source, (item.partition for item in items if item.gone is None)),
        arguments.archive_url,
        arguments.keys_address,
        arguments.compress is not None,
        arguments.keys_address if arguments.encrypt else None,
        arguments.chunk_bytes,
        None if limit is None else max(1, limit // cores),
        arguments.threads,
        arguments.dry_run,
        arguments.copy_nothing,
        is_archive_missing,
        arguments.replace_compacted,
        arguments.metadata_dirs(),
        arguments.assume_clean_elections,
    )


def _changes(outcomes: Iterable[OffloadedSlice | Failed]) -> dict[TopicPartition, SeenLog | None]:
    return {p: seen for done in outcomes if not isinstance(done, Failed) for p, seen in done.changes.items()}


def _rows(slices: Iterable[Slice], outcomes: Iterable[OffloadedSlice | Failed]) -> Iterator[OffloadRow]:
    """The rows of all slices; of one that failed as a whole, each of its partitions is refused."""
    for items, outcome in zip(slices, outcomes, strict=True):
        if isinstance(outcome, Failed):
            yield from (OffloadRow(item.partition, REFUSED, 0, 0, str(outcome.error), outcome.error) for item in items)
        else:
            yield from outcome.rows


def _end(arguments: OffloadArguments, rows: Sequence[OffloadRow], about: str) -> None:
    """Prints the rows, the errors and the totals, and ends with the exit code of `tiering offload`."""
    emit(map(_row, rows), arguments.output)
    errors = [row.error for row in rows if row.error is not None]
    with suppress(OSError):
        say_errors("offload", errors)
        for row in rows:
            if row.action == Action.lost:
                say(f"offload: {row.partition}: {row.reason}")
        segments: Counter[str] = Counter()
        for row in rows:
            segments[row.action] += row.segments
        say(f"offload: {totals(segments, sum(row.bytes for row in rows if row.action == COPIED))}; {about}")
    code = offload_exit_code(errors, {row.action for row in rows})
    if code is not None:
        sys.exit(code)


def _row(row: OffloadRow) -> Row:
    return {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "action": row.action,
        "segments": row.segments,
        "bytes": row.bytes,
        "reason": row.reason,
    }


if __name__ == "__main__":
    main()
