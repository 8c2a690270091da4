"""Losses of logs that an earlier offload saw in a log directory and that have disappeared since."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from local_log.errors import LogError, NoSuchFile
from local_log.formats.filenames import TopicPartition, parse_partition_dir
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from local_log.ranges import Range, clipped, without
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.losses import GONE, new_losses, source_gone, unacknowledged
from remote.manifest.model import Manifest, missing_ranges, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import first_seen, source_seen
from remote.store.api import ObjectStore
from tiering.losses.seen_logs import SeenLog, SeenLogs


@dataclass(frozen=True, slots=True)
class GoneLog:
    """A log that has disappeared. `is_former`: the folder now belongs to another topic. `moved_to` is the id of the log
    directory that has the log now, "" if none is known; `unknown` is the error of one that may have it.
    """

    partition: TopicPartition
    seen: SeenLog
    is_former: bool = False
    moved_to: str = ""
    unknown: LogError | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the manifest says of a log that is gone: the offsets that are lost with it, and what became of the others."""

    lost: tuple[Range, ...] = ()
    note: str = ""


def gone_logs(
    known: SeenLogs,
    log_dir: LogDir,
    found: Iterable[LogReader | Unopened],
    covers: Callable[[TopicPartition], bool],
    others: Sequence[LogDir],
) -> tuple[GoneLog, ...]:
    """The logs of `known` that have disappeared, as far as `covers` selects them, sorted. Raises NotFound, Unreadable.

    Empty for an empty log directory, which is probably a mount point without its disk. `others` are the broker's other log
    directories, to which a log may have moved: they are read after this one, since a log is there before it goes here.
    """
    names = log_dir.disk.names(log_dir.path)
    if not names:
        return ()
    there = set(map(parse_partition_dir, names))
    missing = ((p, seen) for p, seen in known.items() if p not in there and covers(p))
    gone = [_missing(p, seen, others) for p, seen in missing]
    gone += (log for log in former_logs(known, found) if log.partition in there and covers(log.partition))
    return tuple(sorted(gone, key=lambda log: log.partition))


def former_logs(known: SeenLogs, found: Iterable[LogReader | Unopened]) -> tuple[GoneLog, ...]:
    """The logs of `known` whose folders now have the log of another topic."""
    logs = (log for log in found if isinstance(log, LogReader))
    seen = ((log, known.get(log.partition)) for log in logs)
    return tuple(GoneLog(log.partition, of, is_former=True) for log, of in seen if of is not None and _is_former(of, log))


def _missing(partition: TopicPartition, seen: SeenLog, others: Sequence[LogDir]) -> GoneLog:
    unknown: LogError | None = None
    for other in others:
        try:
            other.check_mounted()
            if LogReader(other.disk, f"{other.path}/{partition}", partition, (), None, None).topic_id == seen.topic_id:
                return GoneLog(partition, seen, moved_to=other.mounted_id())
        except NoSuchFile:
            continue
        except LogError as e:
            unknown = e
    return GoneLog(partition, seen, unknown=unknown)


def record_gone(gone: GoneLog, store: ObjectStore, clock: Clock, ids: Ids, source: str, *, is_dry_run: bool) -> Recorded | None:
    """Records it in the manifest, except on a dry run; returns None while the new log directory is unrecorded.

    A deleted topic loses nothing. Losses that the manifest has recorded already are returned again: the run that has recorded
    them may have ended before it told anybody. Raises the errors of a commit, and `gone.unknown`.
    """
    if gone.unknown is not None:
        raise gone.unknown
    path = PartitionPath(gone.partition.topic, gone.seen.topic_id, gone.partition.partition)
    stored = load_newest(store, path)
    if stored is None and gone.seen.recorded_ms:
        return Recorded(note="gone from the log directory; the archive has nothing of its topic any more")
    if stored is not None and stored.manifest.is_deleted:
        return Recorded(note="gone from the log directory; its topic was deleted from the archive")
    if gone.moved_to == source:
        return Recorded(note="moved to another log directory of its broker")
    first = never_archived(path.topic, path.topic_id, path.partition, gone.seen.start_offset)
    newest = first if stored is None else stored.manifest
    if gone.moved_to and (gone.moved_to not in newest.local_log_start_offsets or gone.moved_to in newest.gone):
        return None
    recorded = Recorded()

    def change(before: Manifest) -> Manifest:
        nonlocal recorded
        after = source_gone(_with_seen_log(before, gone.seen, source), source, gone.seen.end_offset, clock.now_ms())
        recorded = _recorded(before, after, gone.seen, source)
        return after

    if change(newest) != newest and not is_dry_run:
        ManifestWriter(store, path, clock, ids, source, newest.writer_epoch).commit(first, change)
    return recorded


def _recorded(before: Manifest, after: Manifest, seen: SeenLog, source: str) -> Recorded:
    told = [(loss.start, loss.end) for loss in unacknowledged(after) if loss.reason == GONE]
    lost = tuple(clipped(told, seen.start_offset, seen.end_offset)) if source in before.gone else new_losses(before, after)
    if lost:
        return Recorded(lost)
    start, end = max(seen.start_offset, after.log_start_offset), seen.end_offset
    behind = [(after.end_offset, end)] if end > after.end_offset else []
    missing = [*clipped([*missing_ranges(after), *behind], start, max(start, end))]
    if not missing:
        return Recorded(note="gone from the log directory; all of it is archived")
    if without(missing, [(loss.start, loss.end) for loss in after.losses]):
        return Recorded(note="gone from the log directory; another one is recorded to have what is not archived")
    return Recorded(note="gone from the log directory; what is not archived counts as lost already")


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
