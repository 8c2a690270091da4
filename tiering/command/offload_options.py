"""The options of every offload of a log directory, as a command and as a Spark job, and what they select of the directory."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from local_log.errors import Corrupt, LogError, NotFound, Unreadable, listed
from local_log.formats.filenames import TopicPartition, parse_partition_dir
from remote.manifest.segment_entry import ZSTD
from remote.transforms.chunk_index import CHUNK_BYTES, CHUNK_BYTES_MAX
from tiering.command.config_option import is_left_alone, log_dirs, metadata_log_dir, topic_globs
from tiering.command.exit_codes import Exit, exit_code_of_all
from tiering.command.options import (
    Number,
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
from tiering.command.output import say
from tiering.command.quantities import size
from tiering.config.shared import CHUNK_BYTES_MIN, KEYS_VARIABLE, THREADS, THREADS_MAX
from tiering.machine import CLOCK, IDS, writable_disk

if TYPE_CHECKING:
    from local_log.log_dir import LogDir, Unopened
    from local_log.log_reader import LogReader
    from remote.store.api import ObjectStore
    from remote.transforms.encoder import Transforms
    from tiering.losses.gone_logs import GoneLog
    from tiering.losses.seen_logs import SeenFile, SeenLog
    from tiering.offload.compacted_topics import ReplacedTopics

P = ParamSpec("P")


def _partitions(_context: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> frozenset[TopicPartition]:
    named = {value: parse_partition_dir(value) for value in values}
    for value, partition in named.items():
        if partition is None:
            raise click.BadParameter(f"{value!r} is not a partition; give its folder's name, such as orders-0")
    return frozenset(p for p in named.values() if p is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadOptions:
    """What `offload_options` gives."""

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
    replace_compacted: tuple[str, ...]
    assume_clean_elections: bool
    state_dir: str | None
    copy_nothing: bool
    dry_run: bool
    output: str

    def source(self) -> "LogDir":
        """The log directory."""
        from tiering.log_dirs import log_dir

        return log_dir(self.log_dir_path)

    def transforms(self) -> "Transforms":
        """What is to be done to segments; the keys are tried. Raises as `tiering.wiring.transforms`."""
        from tiering.wiring import transforms

        keys = self.keys_address if self.encrypt else None
        return transforms(compress=self.compress is not None, encrypt_with=keys, chunk_bytes=self.chunk_bytes)

    def seen_file(self, source: "LogDir", source_id: str, store: "ObjectStore") -> "SeenFile":
        """The file of what earlier offloads saw in the directory of this id."""
        from local_log.user_cache import state_folder
        from tiering.losses.seen_logs import SeenFile

        return SeenFile.of(writable_disk(), self.state_dir or state_folder(os.environ), source, source_id, store.url)

    def replaces(self) -> "ReplacedTopics":
        """Of which logs what was compacted since it was archived is archived again. The brokers' metadata has a say in it."""
        from tiering.log_dirs import cluster_of
        from tiering.offload.compacted_topics import ReplacedTopics

        return ReplacedTopics(self.replace_compacted, cluster_of(self.metadata_dirs()))

    def metadata_dirs(self) -> tuple[str, ...]:
        """Where the metadata of the cluster may lie."""
        return tuple(path for path in (metadata_log_dir(), self.log_dir_path, *log_dirs()) if path is not None)

    def has_topic(self, topic: str) -> bool:
        """Whether the globs select a topic."""
        globs = topic_globs(self.topics)
        return not globs or any(fnmatchcase(topic, glob) for glob in globs)

    def covers(self, partition: TopicPartition) -> bool:
        """Whether this run is for a partition, be it there or not."""
        if is_left_alone(partition.topic, is_copied=True) or (self.partitions and partition not in self.partitions):
            return False
        return self.has_topic(partition.topic)


_OPTIONS = (
    log_dir_option(required=True),
    archive_option(required=True),
    topics_option(),
    click.option(
        "--topic-partition",
        "partitions",
        multiple=True,
        callback=_partitions,
        metavar="TOPIC-PARTITION",
        help="Only this partition, such as orders-0; may be given several times.",
    ),
    bytes_per_second_option(),
    click.option(
        "--threads",
        type=Number(1, THREADS_MAX),
        default=THREADS,
        show_default=True,
        metavar="N",
        help=f"How many partitions to copy at the same time, up to {THREADS_MAX}.",
    ),
    click.option("--compress", type=click.Choice([ZSTD]), help="Compress segments whose batches are not compressed."),
    click.option(
        "--encrypt", is_flag=True, help="Encrypt each segment with its own data key, which the current key of --keys wraps."
    ),
    keys_option(),
    click.option(
        "--chunk-bytes",
        type=size(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX),
        default=CHUNK_BYTES,
        show_default=True,
        metavar="SIZE",
        help="Size of the chunks that are compressed or encrypted; the smallest amount that a reader fetches.",
    ),
    click.option(
        "--must-exist",
        is_flag=True,
        help="Do not create a new archive: if it is missing (for example because a folder is not mounted), the exit code is 4.",
    ),
    click.option(
        "--replace-compacted",
        multiple=True,
        metavar="GLOB",
        help="Topics whose archived segments are replaced once the log cleaner has compacted them; may be given several times.",
    ),
    click.option(
        "--assume-clean-elections",
        is_flag=True,
        help=(
            "Copy what fills a gap of the archive also from a log that does not show that it is of the archive's history. Only "
            "if no leader election of these partitions was unclean, and no leader came back with records missing."
        ),
    ),
    state_dir_option(),
    click.option("--copy-nothing", is_flag=True, help="Copy nothing: print what is due, and record new partitions and losses."),
    dry_run_option,
    output_option(),
)


def offload_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The options of an offload; `OffloadOptions` has their values."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_half_of_encryption(options: OffloadOptions) -> None:
    """Nobody is to believe that something is encrypted when it is not. Keys from the environment may be for reading."""
    if options.encrypt and options.keys_address is None:
        raise click.UsageError(f"--encrypt needs keys: give --keys or set {KEYS_VARIABLE}")
    if options.keys_address is not None and not options.encrypt and is_given("keys_address"):
        raise click.UsageError("--keys alone encrypts nothing: add --encrypt, or leave both out")


def refuse_a_shared_folder(source: "LogDir", store: "ObjectStore") -> None:
    """Raises BadParameter if the archive and the log directory are inside each other."""
    from tiering.wiring import shares_a_folder

    if shares_a_folder(source, store):
        raise click.BadParameter(
            f"{store.url} and the log directory {source.path} are inside each other, and only the broker may write there; "
            "give a folder outside",
            param_hint="--archive",
        )


def selected(
    options: OffloadOptions, source: "LogDir", there: Collection[TopicPartition], gone: "Iterable[GoneLog]"
) -> frozenset[TopicPartition]:
    """The partitions to offload of those that the options name and that are there. Tells of globs without a topic.

    Raises NotFound for a named partition that is neither there nor gone, and where there is none at all.
    """
    known = {*there, *(log.partition for log in gone)}
    globs = topic_globs(options.topics)
    missing = sorted(map(str, options.partitions - known))
    if missing:
        raise NotFound(f"{source.path}: no partition {listed(missing)} there; check --log-dir and which topics are included")
    if not known:
        raise NotFound(f"{source.path}: no partition{' of ' + ', '.join(globs) if globs else ''} there; check --log-dir, --topic")
    if not options.partitions:  # which narrow what is found to a few of the topics that match
        said_by = "--topic" if options.topics else "topics.include"
        tell_unmatched(globs, {partition.topic for partition in known}, source.path, said_by)
    left = {p.topic for p in there if is_left_alone(p.topic, is_copied=True)}
    if options.topics and left:
        say(f"tiering: the configuration leaves {listed(sorted(left))} alone")
    return frozenset(p for p in there if p.topic not in left)


def elsewhere(source: "LogDir") -> "tuple[LogDir, ...]":
    """The other log directories of the configuration."""
    from tiering.log_dirs import log_dir

    return tuple(other for path in log_dirs() if (other := log_dir(path)).path != source.path)


def refuse_changed_id(source: "LogDir", source_id: str) -> None:
    """Raises Unreadable if the log directory is another one since its id was read, or its disk is not mounted any more."""
    source.check_mounted()
    if (now := source.id()) != source_id:
        raise Unreadable(
            f"{source.path}: its id was {source_id} when this run began and is {now} now; check whether its disk is mounted, "
            "and offload again"
        )


def save_new(memory: "SeenFile", logs: "Iterable[LogReader | Unopened]", known: "Collection[TopicPartition]" = ()) -> None:
    """Remembers the logs that no run has seen yet, before anything is copied: they may be gone before this run ends, or be
    recorded by it and not be told of.
    """
    from local_log.log_reader import LogReader
    from tiering.losses.seen_logs import SeenLog

    found: dict[TopicPartition, SeenLog | None] = {}
    for log in logs:
        if isinstance(log, LogReader) and log.segments and log.partition not in known:
            with suppress(LogError):  # its offload tells
                found[log.partition] = SeenLog.of(log, 0)
    with suppress(LogError):  # the save at the end tells
        memory.save(found, CLOCK)


def is_new_archive(options: OffloadOptions, store: "ObjectStore") -> bool:
    """Opens the archive, and creates one where there is none; whether that is, or in a dry run would be, a new one."""
    from remote import archive

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


def load_seen(memory: "SeenFile") -> "dict[TopicPartition, SeenLog]":
    """What earlier offloads saw; tells of it where that cannot be read."""
    try:
        return memory.load()
    except Corrupt as e:
        say(f"tiering: {e}")
        return {}
    except LogError as e:
        say(f"tiering: {e}; partitions that have disappeared since an earlier run are not noticed: give another --state-dir")
        return {}


def save_seen(memory: "SeenFile", changes: "Mapping[TopicPartition, SeenLog | None]") -> None:
    """Saves what this offload saw. Tells of it where that cannot be saved; the copies are made."""
    try:
        memory.save(changes, CLOCK)
    except LogError as e:
        with suppress(OSError):
            say(f"tiering: {e}; partitions that disappear before the next run will not be noticed: give another --state-dir")


def offload_exit_code(errors: Collection[Exception], actions: Collection[str]) -> Exit | None:
    """The exit code of a run with these errors, in which segments came to these actions."""
    from tiering.offload.copy import COPIED, REPLACED
    from tiering.offload.plan import Action

    if not errors and Action.lost in actions:
        return Exit.partly
    return exit_code_of_all(tuple(errors), partly=COPIED in actions or REPLACED in actions)


def totals(counted: Mapping[str, int], copied_bytes: int) -> str:
    """How many segments came to what, in the order of the words, and the bytes of those that were copied."""
    segments = ", ".join(f"{count} {action}" for action, count in sorted(counted.items()))
    return f"segments: {segments}; {copied_bytes} bytes copied" if copied_bytes else f"segments: {segments}"
