"""`tiering offload`: copies what is due of a log directory into the archive."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from typing import Any

import click

from local_log.errors import LogError, NotFound, listed
from local_log.formats.filenames import TopicPartition, parse_partition_dir
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from local_log.user_cache import state_folder
from remote import archive
from remote.manifest.segment_entry import ZSTD
from remote.store.api import ObjectStore
from remote.transforms.chunk_index import CHUNK_BYTES_MAX
from remote.transforms.encoder import CHUNK_BYTES, Transforms
from tiering.command.config_option import is_left_alone, log_dirs, topic_globs
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    archive_option,
    bytes_per_second_option,
    dry_run_option,
    is_given,
    keys_option,
    log_dir_option,
    output_option,
    state_dir_option,
    tell_unmatched,
    topics_option,
)
from tiering.command.output import Row, emit, say
from tiering.command.progress import Work, shown
from tiering.config.shared import CHUNK_BYTES_MIN, KEYS_VARIABLE, THREADS, THREADS_MAX
from tiering.losses.gone_logs import GoneLog, gone_logs, partitions_of_others
from tiering.losses.seen_logs import SeenFile, SeenLog
from tiering.machine import CLOCK, IDS, open_archive_store, writable_disk
from tiering.offload.copy import Done
from tiering.offload.plan import Action
from tiering.offload.run import OffloadLogs, Result
from tiering.wiring import log_dir, shares_a_folder, transforms

_READ_TIMES = 2
"""A segment is checked, then sent."""


def _partitions(_context: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> frozenset[TopicPartition]:
    named = {value: parse_partition_dir(value) for value in values}
    for value, partition in named.items():
        if partition is None:
            raise click.BadParameter(f"{value!r} is not a partition; give its folder's name, such as orders-0")
    return frozenset(p for p in named.values() if p is not None)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering offload`."""

    log_dir_path: str
    archive_url: str
    topics: tuple[str, ...]
    partitions: frozenset[TopicPartition]
    bytes_per_second: int | None
    threads: int
    compress: str | None
    encrypt: bool
    keys_address: str | None
    chunk_bytes: int
    must_exist: bool
    state_dir: str | None
    copy_nothing: bool
    dry_run: bool
    output: str


@click.command("offload")
@log_dir_option(required=True)
@archive_option(required=True)
@topics_option()
@click.option(
    "--topic-partition", "partitions", multiple=True, callback=_partitions, metavar="TOPIC-PARTITION",
    help="Only this partition, such as orders-0; may be given several times.",
)  # fmt: skip
@bytes_per_second_option()
@click.option(
    "--threads", type=click.IntRange(1, THREADS_MAX), default=THREADS, show_default=True, metavar="N",
    help="How many partitions to copy at the same time.",
)  # fmt: skip
@click.option("--compress", type=click.Choice([ZSTD]), help="Compress segments whose batches are not compressed.")
@click.option(
    "--encrypt", is_flag=True, help="Encrypt each segment with its own data key, which the current key of --keys wraps."
)
@keys_option()
@click.option(
    "--chunk-bytes", type=click.IntRange(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX), default=CHUNK_BYTES, show_default=True,
    metavar="BYTES",
    help="Size of the chunks that are compressed or encrypted; the smallest amount that a reader fetches.",
)  # fmt: skip
@click.option(
    "--must-exist", is_flag=True,
    help="Do not create a new archive: if it is missing (for example because a folder is not mounted), the exit code is 4.",
)  # fmt: skip
@state_dir_option()
@click.option("--copy-nothing", is_flag=True, help="Copy nothing: print what is due, and record new partitions and losses.")
@dry_run_option
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Copy inactive segments below the last stable offset into the archive, with their indexes and snapshots.

    Run it as often as you like, also next to a live broker: archived segments are not copied again, and segments that the
    broker deletes or compacts during a copy are skipped. A damaged segment is rejected and reported, the others are copied, and
    the exit code is 6. Missing or damaged indexes and snapshots are rebuilt from the log, and the row says so.

    If offsets left the log before they were archived, a row with the action lost shows them, and the exit code of this run is
    3; see tiering manifest acknowledge. The same holds for a partition that an earlier run saw and that has disappeared, unless
    all of it was archived.

    \b
    Examples:
      tiering offload --log-dir /var/lib/kafka --archive s3://bucket/kafka --dry-run
      tiering offload --log-dir /var/lib/kafka --archive s3://bucket/kafka --topic 'orders*' --bytes-per-second 50000000
      tiering offload --config tiering.toml --must-exist
    """
    options = Options(**given)
    _refuse_half_of_encryption(options)
    how = transforms(
        compress=options.compress is not None,
        encrypt_with=options.keys_address if options.encrypt else None,
        chunk_bytes=options.chunk_bytes,
    )
    source, globs = log_dir(options.log_dir_path), topic_globs(options.topics)
    found = source.found(lambda name: not globs or any(fnmatchcase(name, glob) for glob in globs), options.partitions or None)
    store = open_archive_store(options.archive_url, options.keys_address, bytes_per_second=options.bytes_per_second)
    memory = SeenFile.of(writable_disk(), options.state_dir or state_folder(os.environ), source, store.url)
    due = _due(options, source, found, memory)
    _refuse_a_shared_folder(source, store)
    if _is_new(options, store):  # what is remembered is of another archive, that lay there before
        due = replace(due, known={}, gone=())
    results = _run(options, due, how, store, source, memory)
    if options.output == "table":
        say(_totals(results))
    errors = [done.error for done in results if done.error is not None]
    if not errors and any(done.is_lost for done in results):
        return Exit.partly
    return exit_code_of_all(errors, partly=any(done.entry for done in results))


@dataclass(frozen=True, slots=True)
class _Due:
    """The logs to offload, those that are gone, and what is remembered of both."""

    logs: tuple[LogReader | Unopened, ...]
    gone: tuple[GoneLog, ...]
    known: Mapping[TopicPartition, SeenLog]


def _due(options: Options, source: LogDir, found: Sequence[LogReader | Unopened], memory: SeenFile) -> _Due:
    """What of the logs that were found is to be offloaded. Raises NotFound for a partition that is not there."""
    globs = topic_globs(options.topics)
    known = _remembered(memory)
    gone = gone_logs(known, source, found, partial(_covers, globs, options.partitions), _elsewhere(source))
    missing = sorted(map(str, options.partitions - {log.partition for log in (*found, *gone)}))
    if missing:
        raise NotFound(f"{source.path}: no partition {listed(missing)} there; check --log-dir and which topics are included")
    if not found and not gone:
        raise NotFound(f"{source.path}: no partition{' of ' + ', '.join(globs) if globs else ''} there; check --log-dir, --topic")
    if not options.partitions:  # which narrow what is found to a few of the topics that match
        said_by = "--topic" if options.topics else "topics.include"
        tell_unmatched(globs, {log.partition.topic for log in (*found, *gone)}, source.path, said_by)
    logs = tuple(log for log in found if not is_left_alone(log.partition.topic, is_copied=True))
    if options.topics and len(logs) < len(found):
        left = sorted({log.partition.topic for log in found} - {log.partition.topic for log in logs})
        say(f"tiering: the configuration leaves {listed(left)} alone")
    return _Due(logs, gone, known)


def _is_new(options: Options, store: ObjectStore) -> bool:
    """Opens the archive, and creates one where there is none; whether that is, or in a dry run would be, a new one."""
    if options.dry_run and not options.must_exist:
        return not archive.is_archive(store)
    if options.dry_run:
        archive.open_archive(store)
        return False
    if options.must_exist:
        archive.open_to_write(store, IDS)
        return False
    is_new = archive.create_archive(store, CLOCK, IDS)
    if is_new:
        with suppress(OSError):  # the copies are made also if the output cannot be written
            say(f"tiering: created a new archive, {store.url}")
    return is_new


def _run(options: Options, due: _Due, how: Transforms, store: ObjectStore, source: LogDir, memory: SeenFile) -> list[Done]:
    """Copies what is due and prints what becomes of it; gives all of that."""
    results: list[Done] = []
    sizes = {
        (log.partition, segment.base_offset): _READ_TIMES * _size(segment)
        for log in due.logs
        if isinstance(log, LogReader)
        for segment in log.segments
    }
    moved = Work(sum(sizes.values()))
    with shown("offload", lambda: moved.of_bytes, lambda: moved.done_bytes):
        offload = OffloadLogs(store, CLOCK, IDS, source.id(), moved.did, how, options.dry_run, options.copy_nothing, due.known)

        def work() -> Iterator[Result]:
            for log, done in chain(offload.run(due.gone, options.threads), offload.run(due.logs, options.threads)):
                results.append(done)
                if done.entry is None and done.decision is not None and not done.is_lost:
                    moved.needs_not(sizes.get((log.partition, done.decision.segment.base_offset), 0))
                yield log, done

        try:
            _print(work(), options.output)
        finally:
            if not options.dry_run:
                _remember(memory, offload.changes)
    return results


def _covers(globs: tuple[str, ...], partitions: frozenset[TopicPartition], partition: TopicPartition) -> bool:
    """Whether this run is for a partition, be it there or not."""
    if is_left_alone(partition.topic, is_copied=True) or (partitions and partition not in partitions):
        return False
    return not globs or any(fnmatchcase(partition.topic, glob) for glob in globs)


def _elsewhere(source: LogDir) -> dict[TopicPartition, str]:
    return partitions_of_others(log_dir(path) for path in log_dirs() if log_dir(path).path != source.path)


def _remembered(memory: SeenFile) -> dict[TopicPartition, SeenLog]:
    try:
        return memory.load()
    except LogError as e:
        say(f"tiering: {e}; partitions that have disappeared since an earlier run are not noticed: give another --state-dir")
        return {}


def _remember(memory: SeenFile, changes: Mapping[TopicPartition, SeenLog | None]) -> None:
    """Reports that the seen logs cannot be saved; the copies are made."""
    try:
        memory.save(changes, CLOCK)
    except LogError as e:
        with suppress(OSError):
            say(f"tiering: {e}; partitions that disappear before the next run will not be noticed: give another --state-dir")


def _refuse_a_shared_folder(source: LogDir, store: ObjectStore) -> None:
    if shares_a_folder(source, store):
        raise click.BadParameter(
            f"{store.url} and the log directory {source.path} are inside each other, and only the broker may write there; "
            "give a folder outside",
            param_hint="--archive",
        )


def _refuse_half_of_encryption(options: Options) -> None:
    """Nobody is to believe that something is encrypted when it is not. Keys from the environment may be for reading."""
    if options.encrypt and options.keys_address is None:
        raise click.UsageError(f"--encrypt needs keys: give --keys or set {KEYS_VARIABLE}")
    if options.keys_address is not None and not options.encrypt and is_given("keys_address"):
        raise click.UsageError("--keys alone encrypts nothing: add --encrypt, or leave both out")


def _print(work: Iterator[Result], output: str) -> None:
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


def _tell(log: LogReader | Unopened | GoneLog, done: Done) -> None:
    if done.error is not None:
        say(f"tiering: {done.error}")
    if done.is_lost and done.decision is not None:
        say(f"tiering: {log.partition}: {done.decision.reason}")


def _size(segment: Segment) -> int:
    try:
        return segment.size()
    except LogError:
        return 0  # it only moves the bar


def _row(log: LogReader | Unopened | GoneLog, done: Done) -> Row:
    decision = done.decision
    said = [str(done.error)] if done.error else [decision.reason if decision else "", *done.notes]
    return {
        "topic": log.partition.topic,
        "partition": log.partition.partition,
        "segment": decision.segment.base_offset if decision else None,
        "action": _action(done),
        "bytes": done.entry.log_size if done.entry else None,
        "reason": "; ".join(text for text in said if text),
    }


def _action(done: Done) -> str:
    if done.entry or done.error:
        return "copied" if done.entry else "refused"
    return str(done.decision.action if done.decision else Action.skipped)


def _totals(results: list[Done]) -> str:
    """How many segments came to what, in the order of the words, and the bytes of those that were copied."""
    counted = Counter(map(_action, results))
    copied = sum(done.entry.log_size for done in results if done.entry)
    segments = ", ".join(f"{count} {action}" for action, count in sorted(counted.items()))
    return f"tiering: segments: {segments}; {copied} bytes copied" if copied else f"tiering: segments: {segments}"
