"""Opens a log directory with the log manager, for `tiering log recover` and `tiering expire`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from local_log.disk import Disk
from local_log.engine.config import LogConfig
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager, Started
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy
from local_log.engine.manager.startup import Progress
from local_log.errors import Corrupt, LogError, NotFound
from local_log.formats.checkpoints import read_offsets
from local_log.formats.clean_shutdown import NO_BROKER_EPOCH
from local_log.formats.filenames import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    parse_partition_dir,
)
from local_log.log_dir import LogDir, Unopened, is_brokers
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from remote.clock import jitter
from remote.read.context import Decoder
from remote.store.api import ObjectStore
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.log_tools.opened_partition import first_base
from tiering.log_tools.partition import describe
from tiering.machine import CLOCK, IDS, local_disk, writable_disk
from tiering.retention.local import Held, held, planned, refuse_brokers, refuse_others

_OF_A_LOG_DIR = {
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
}


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """A row for each opened partition, notes about the others and the directory, and the errors."""

    rows: list[dict[str, Any]]
    notes: list[str]
    errors: list[LogError]


def is_log_dir(folder: str) -> bool:
    """Whether a folder is a log directory (log.dirs) rather than a partition's folder, by the files and folders in it."""
    disk = writable_disk()
    if not disk.is_folder(folder):
        return False
    names = disk.names(folder)
    return not _OF_A_LOG_DIR.isdisjoint(names) or any(parse_partition_dir(n) and disk.is_folder(f"{folder}/{n}") for n in names)


def recover_all(folder: str, config: LogConfig, show: Callable[[int, int, str], None]) -> RecoveryReport:
    """Opens and closes all logs of the directory, which counts as cleanly shut down afterwards. Raises Invalid, Unreadable."""
    disk = writable_disk()
    topics = dict.fromkeys(_tiered_topics(disk, folder.rstrip("/")), replace(config, remote_storage_enable=True))
    settings = ManagerConfig(log_dirs=(folder,))
    manager = LogManager(
        disk, settings, CLOCK.now_ms, jitter, IDS.new_id, default=config, topics=topics,
        only_replica=not is_brokers(disk, folder.rstrip("/")),
    )  # fmt: skip
    started = manager.start(lambda progress: show(progress.logs - progress.logs_left, progress.logs, _progress_text(progress)))
    try:
        rows = [{"topic": p.topic, "partition": p.partition, **describe(manager.log(p))} for p in manager.partitions()]
    finally:
        epoch = manager.broker_epoch  # nothing has been written since: what its controller knows of the broker holds
        problems = manager.stop(NO_BROKER_EPOCH if epoch is None else epoch)
    errors = [*(u.error for u in started.unopened), *problems]
    return RecoveryReport(rows, [*_notes(started), *map(str, problems)], errors)


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """A log of our own engine, its retention settings, its archived state, and the segments to delete."""

    log: LogReader
    config: LogConfig
    known: Held
    gone: tuple[Segment, ...]
    sizes: Mapping[int, int]
    """The bytes of its segments, by their base offsets."""


def plan_local(
    folder: str,
    store: ObjectStore,
    config_of: Callable[[str], LogConfig | None],
    policies: Sequence[DeletionPolicy] = KAFKAS,
    decoded: Decoder = DecodedBytes,
) -> Iterator[LocalPlan | tuple[TopicPartition, LogError]]:
    """Plans local retention for each log in a directory of our own engine; an error stands in the place of a plan. `config_of`
    returns a topic's settings, and `policies` say which segments go. `decoded` is for what has to be read of the archive.

    Raises Invalid for a broker's directory, NotFound, Corrupt, Unreadable.
    """
    source = LogDir(local_disk(), folder.rstrip("/"))
    refuse_brokers(source)
    for log in source.found():
        if isinstance(log, Unopened):
            yield log.partition, log.error
            continue
        try:
            config = config_of(log.partition.topic)
            if config is not None:
                known = held(store, log)
                sizes = {s.base_offset: s.size() for s in log.segments}
                gone = planned(log, config, known, CLOCK.now_ms(), policies)
                refuse_others(store, log, known, gone, decoded)
                yield LocalPlan(log, config, known, gone, sizes)
        except LogError as e:
            yield log.partition, e


def expire_local(folder: str, plans: Sequence[LocalPlan], policies: Sequence[DeletionPolicy] = KAFKAS) -> tuple[LogError, ...]:
    """Lets the engine delete the planned segments, and no others; returns the errors. Raises Invalid, Unreadable."""
    path = folder.rstrip("/")
    now_ms = CLOCK.now_ms()
    known = {plan.log.partition: plan.known for plan in plans}
    through = {partition: one.through for partition, one in known.items()}
    keeps_all = LogConfig(retention_ms=-1, cleanup_policy=())  # no policy is asked, whatever its rule
    topics = dict.fromkeys(_tiered_topics(writable_disk(), path), replace(keeps_all, remote_storage_enable=True))
    topics |= {plan.log.partition.topic: replace(plan.config, file_delete_delay_ms=0) for plan in plans}
    manager = LogManager(
        writable_disk(), ManagerConfig(log_dirs=(path,), initial_task_delay_ms=0), lambda: now_ms, jitter, IDS.new_id,
        default=keeps_all, topics=topics, archived_through=through.get,
        policies=policies,
    )  # fmt: skip
    started = manager.start()
    try:
        for partition in set(manager.partitions()) & known.keys():
            log = manager.log(partition)
            log.maybe_increment_log_start_offset(min(known[partition].log_start_offset, log.high_watermark))
        problems = manager.tick(now_ms)
    finally:
        epoch = manager.broker_epoch
        stopped = manager.stop(NO_BROKER_EPOCH if epoch is None else epoch)
    return (*(u.error for u in started.unopened), *problems, *stopped)


def _progress_text(progress: Progress) -> str:
    left = f", {progress.segments_left} of {progress.segments} segments left" if progress.segments_left else ""
    return f"{progress.partition}{left}"


def _notes(started: Started) -> list[str]:
    return [
        *(f"{u.path} could not be opened, the others were: {u.error}" for u in started.unopened),
        *(f"{corrupt}; the file was treated as empty and rewritten" for corrupt in started.damaged),
        *(f"{path}: a stray log; left alone" for path in started.strays),
    ]


def _tiered_topics(disk: Disk, folder: str) -> set[str]:
    """Topics with a log whose start offset is below its first local segment, so the rest is archived.

    A broker knows this from its settings. Without remote storage enabled, such a log would lose its start offset when opened.
    """
    starts: dict[TopicPartition, int] = {}
    with suppress(NotFound, Corrupt):
        starts = read_offsets(disk.read(f"{folder}/{LOG_START_OFFSET_CHECKPOINT}"))
    return {p.topic for p, start in starts.items() if start < first_base(disk, f"{folder}/{p}", start)}
