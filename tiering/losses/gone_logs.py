"""Losses of logs that an earlier offload saw in a log directory and that have disappeared since."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition, parse_partition_dir
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from local_log.ranges import Range
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.losses import new_losses, source_gone
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import first_seen, source_seen
from remote.store.api import ObjectStore
from tiering.losses.seen_logs import SeenLog, SeenLogs


@dataclass(frozen=True, slots=True)
class GoneLog:
    """A log that has disappeared. `is_former`: the folder now belongs to another topic. `moved_to` is the id of the log
    directory that has the log now, "" if none is known.
    """

    partition: TopicPartition
    seen: SeenLog
    is_former: bool = False
    moved_to: str = ""


def gone_logs(
    known: SeenLogs,
    log_dir: LogDir,
    found: Iterable[LogReader | Unopened],
    covers: Callable[[TopicPartition], bool],
    partitions_of_others: Mapping[TopicPartition, str],
) -> tuple[GoneLog, ...]:
    """The logs of `known` that have disappeared, as far as `covers` selects them, sorted. Raises NotFound, Unreadable.

    Empty for an empty log directory, which is probably a mount point without its disk.
    """
    names = log_dir.disk.names(log_dir.path)
    if not names:
        return ()
    there = set(map(parse_partition_dir, names))
    missing = ((p, seen) for p, seen in known.items() if p not in there and covers(p))
    gone = [GoneLog(p, seen, moved_to=partitions_of_others.get(p, "")) for p, seen in missing]
    gone += (log for log in former_logs(known, found) if log.partition in there and covers(log.partition))
    return tuple(sorted(gone, key=lambda log: log.partition))


def former_logs(known: SeenLogs, found: Iterable[LogReader | Unopened]) -> tuple[GoneLog, ...]:
    """The logs of `known` whose folders now have the log of another topic."""
    logs = (log for log in found if isinstance(log, LogReader))
    seen = ((log, known.get(log.partition)) for log in logs)
    return tuple(GoneLog(log.partition, of, is_former=True) for log, of in seen if of is not None and _is_former(of, log))


def partitions_of_others(others: Iterable[LogDir]) -> dict[TopicPartition, str]:
    """The partitions in a broker's other log directories, with the ids of these; unreadable directories are skipped."""
    found: dict[TopicPartition, str] = {}
    for other in others:
        with suppress(LogError):
            found |= dict.fromkeys(other.partitions(), other.id())
    return found


def record_gone(
    gone: GoneLog, store: ObjectStore, clock: Clock, ids: Ids, source: str, *, is_dry_run: bool
) -> tuple[Range, ...] | None:
    """Records it in the manifest, except on a dry run; returns the lost offsets, or None while the new log directory is
    unrecorded.

    A deleted topic loses nothing. Raises the errors of a commit.
    """
    path = PartitionPath(gone.partition.topic, gone.seen.topic_id, gone.partition.partition)
    stored = load_newest(store, path)
    if (
        (stored is None and gone.seen.recorded_ms)
        or (stored is not None and stored.manifest.is_deleted)
        or gone.moved_to == source
    ):
        return ()
    first = never_archived(path.topic, path.topic_id, path.partition, gone.seen.start_offset)
    newest = first if stored is None else stored.manifest
    if gone.moved_to and (gone.moved_to not in newest.local_log_start_offsets or gone.moved_to in newest.gone):
        return None
    lost: tuple[Range, ...] = ()

    def change(before: Manifest) -> Manifest:
        nonlocal lost
        after = source_gone(_with_seen_log(before, gone.seen, source), source, gone.seen.end_offset, clock.now_ms())
        lost = new_losses(before, after)
        return after

    if change(newest) != newest and not is_dry_run:
        ManifestWriter(store, path, clock, ids, source, newest.writer_epoch).commit(first, change)
    return lost


def _with_seen_log(manifest: Manifest, seen: SeenLog, source: str) -> Manifest:
    """The manifest with the last state of the log, which could not be recorded while the log existed."""
    if seen.recorded_ms or manifest.is_deleted:
        return manifest
    record = source_seen if manifest.version else first_seen
    return record(manifest, source, seen.start_offset, seen.end_offset)


def _is_former(seen: SeenLog, log: LogReader) -> bool:
    with suppress(LogError):
        return log.topic_id != seen.topic_id
    return False
