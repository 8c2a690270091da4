"""local.retention.ms and local.retention.bytes for a log directory of ours: which local segments may be deleted once archived.

The engine deletes them (`local_log.engine.manager.retention`). This module computes what the engine has to know of the archive,
and what it will delete. A broker's directory is never changed: the broker applies its own retention.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from local_log.engine.config import LogConfig
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy, Limits, Retained, below, deletable
from local_log.errors import Conflict, Corrupt, Invalid
from local_log.formats.checkpoints import epochs_before
from local_log.formats.filenames import LOG
from local_log.log_dir import LogDir, is_brokers
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from remote.keys import PartitionPath
from remote.manifest.divergence import OTHER_RECORDS_REMEDY
from remote.manifest.history import check_history
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.read.context import Decoder
from remote.store.api import ObjectStore, make_durable
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.retention.same_records import SameRecords


@dataclass(frozen=True, slots=True)
class Held:
    """What the archive says of a local log: all of it up to `through`, the last offset, is archived; where the log starts.

    `manifest` is the one that says it.
    """

    through: int
    log_start_offset: int
    manifest: Manifest | None = None


NOTHING = Held(-1, 0)


def refuse_brokers(log_dir: LogDir) -> None:
    """Raises Invalid for a directory that a broker has formatted and that we do not own: it is that broker's to delete from."""
    if is_brokers(log_dir.disk, log_dir.path):
        raise Invalid(
            f"{log_dir.path} is a broker's log directory (it has meta.properties), and only its broker deletes from it; set "
            "retention.ms and retention.bytes there"
        )


def held(store: ObjectStore, log: LogReader) -> Held:
    """What the newest manifest names of a log, up to the first gap; nothing where there is none, or where the topic was deleted.

    The manifest is made durable first: another process may have put it just now, and local segments are deleted because of it.

    Raises Conflict where the archive is of another history, so that its offsets are other records; Corrupt, Invalid, Unknown,
    Unavailable.
    """
    path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
    stored = load_newest(store, path)
    if stored is None or stored.manifest.is_deleted or not log.segments:
        return NOTHING
    make_durable(store, path.manifest(stored.manifest.version))
    manifest, first = stored.manifest, log.segments[0].base_offset
    end = min(manifest.end_offset, log.log_end_offset)
    lineage = epochs_before(log.leader_epochs, end)
    check_history(manifest, lineage, end)
    if any(e.start_offset < manifest.end_offset for e in log.leader_epochs if e not in lineage):
        raise Conflict(
            f"{log.partition}: the log diverged from the archive below {manifest.end_offset}; nothing of it is deleted"
        )
    gaps = [gap.start for gap in manifest.holes if gap.end > max(first, log.log_start_offset)]
    return Held(min(gaps, default=manifest.end_offset) - 1, manifest.log_start_offset, manifest)


def refuse_others(
    store: ObjectStore, log: LogReader, known: Held, gone: Sequence[Segment], decoded: Decoder = DecodedBytes
) -> int:
    """Compares the segments that are to be deleted with the archive's; returns the last offset that may go, -1 for none.

    `decoded` is for what has to be read of the archive.

    Leader epochs alone do not tell: a log that nobody else replicates has one epoch for ever, also where the directory was
    restored from an older copy, or was truncated, and other records were appended. Reads each segment once, or as much as
    `SameRecords` says where the archive's segments begin elsewhere.

    Raises Conflict where the archive does not hold a segment byte for byte, and as `SameRecords`.
    """
    through, start = -1, max(known.log_start_offset, log.log_start_offset)
    archived = SameRecords(log, store, known.manifest, start, decoded) if known.manifest is not None else None
    if archived is not None and log.segments[0].base_offset < start == known.log_start_offset:
        _refuse_others_behind(log, known, archived)
    for segment in gone:
        end = log.log_end_offset if segment.next_base_offset is None else segment.next_base_offset
        if archived is not None and end > start and segment.size() > 0 and not archived.hold(segment, end):
            raise _others(log, segment, segment.base_offset, end)
        through = end - 1
    return through


def _refuse_others_behind(log: LogReader, known: Held, archived: SameRecords) -> None:
    """Refuses what the log has below the archive's start offset, and the archive no more, unless it goes on as the archive does.

    Once two logs have parted, they stay apart: the first records that both have tell of all before them.
    """
    start = known.log_start_offset
    if log.log_end_offset <= start and log.log_end_offset <= known.through:
        raise Conflict(
            f"{log.folder}: the log of {log.partition} ends at {log.log_end_offset}, and its archive has the offsets "
            f"from {start} to {known.through}, so that nothing of the log is deleted; {OTHER_RECORDS_REMEDY}"
        )
    for segment in log.segments:
        end = log.log_end_offset if segment.next_base_offset is None else segment.next_base_offset
        end = min(end, known.through + 1)
        if end > start and segment.size() > 0:
            if not archived.hold(segment, end):
                raise _others(log, segment, max(start, segment.base_offset), end)
            return


def _others(log: LogReader, segment: Segment, start: int, end: int) -> Conflict:
    return Conflict(
        f"{segment.path(LOG)}: the archive has the offsets from {start} to {end - 1} of {log.partition} "
        "with other records, so that nothing of the log is deleted; where the log was compacted since it was archived, "
        f"let archive.replace.compacted name its topic; {OTHER_RECORDS_REMEDY}"
    )


@dataclass(frozen=True, slots=True)
class _Aged:
    base_offset: int
    size: int
    largest_timestamp: int


def planned(
    log: LogReader, config: LogConfig, known: Held, now_ms: int, policies: Sequence[DeletionPolicy] = KAFKAS
) -> tuple[Segment, ...]:
    """The segments that the engine will delete, from the oldest on. Reads their sizes and time indexes only."""
    start = min(max(log.checkpointed_start or 0, known.log_start_offset), log.high_watermark)
    limits = Limits(start, log.high_watermark, log.log_end_offset, known.through, rolls=False)
    left = [_Aged(s.base_offset, s.size(), _latest(s)) for s in log.segments]
    gone = [*deletable(left, below(start), limits).segments]
    left = left[len(gone) :]
    for policy in policies:
        breaks = policy(Retained.of(config, sum(s.size for s in left), now_ms))
        if breaks is not None:
            found = deletable(left, breaks, limits).segments
            gone, left = [*gone, *found], left[len(found) :]
    return log.segments[: len(gone)]


def _latest(segment: Segment) -> int:
    """The greatest timestamp, by the last entry that an inactive segment's index ends with, else when the file was written."""
    try:
        times = segment.time_index().timestamps
    except Corrupt:
        times = ()  # as a crash leaves it in segments below the log start offset, which no start recovers
    latest = int(times[-1]) if len(times) else -1
    return latest if latest >= 0 else segment.disk.modified_ms(segment.path(LOG))
