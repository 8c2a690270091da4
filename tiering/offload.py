"""Copies what is due of one log into the archive: plan, then a flat loop of copy and commit, segment by segment.

A segment that turns out to be damaged is refused and named; the others go on, and the hole that it leaves is a named gap
until a sound copy fills it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from local_log.errors import Corrupt, LogError
from local_log.formats.checkpoints import epochs_before
from local_log.formats.filenames import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX, parse_offset_file
from local_log.log import LocalLog
from local_log.segment import Segment
from remote.clock import Clock, Ids
from remote.errors import RemoteError
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest, SegmentEntry, covers, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import check_history, segment_copied, source_seen
from remote.object_keys import PartitionPath
from remote.object_store import ObjectStore
from remote.segment_check import LogSegmentData, SegmentFile
from remote.transforms.encoder import Transforms
from remote.uploader import NO_TRANSFORMS, copy_segment
from tiering.policy import Action, Decision, LocalSegment, plan_offload


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """What an offload of one log would do, and from what it starts."""

    log: LocalLog
    path: PartitionPath
    manifest: Manifest
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one segment: its entry, or the error that stopped it; neither where there was nothing to do.

    Without a decision it is the log as a whole that could not be planned for.
    """

    decision: Decision | None
    entry: SegmentEntry | None = None
    error: LogError | RemoteError | None = None


def plan(log: LocalLog, store: ObjectStore) -> OffloadPlan:
    """The plan for one log. Reads only, and nothing of a log that has only its active segment.

    Raises Corrupt, NotFound, Unreadable, Unavailable.
    """
    path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
    manifest = _newest(store, path) or _never_archived(path, log)
    segments = tuple(LocalSegment(s.base_offset, s.next_base_offset) for s in log.segments)
    stable = log.last_stable_offset if len(segments) > 1 else log.log_start_offset
    return OffloadPlan(log, path, manifest, plan_offload(segments, stable, manifest, unproven=log.unproven))


def offload(
    due: OffloadPlan,
    store: ObjectStore,
    clock: Clock,
    ids: Ids,
    source: str,
    progress: Callable[[int], None],
    transforms: Transforms = NO_TRANSFORMS,
) -> Iterator[Done]:
    """Does what `due` says, a result a segment. `progress` is told the bytes of the log files as they are read.

    Every error of a segment is in its result. An error of the store stops the log: what follows would fail alike.
    Where the local log's start has moved, the manifest is told first.
    """
    writer = ManifestWriter(store, due.path, clock, ids, source, due.manifest.writer_epoch)
    first = _never_archived(due.path, due.log)

    def seen(before: Manifest) -> Manifest:
        return source_seen(before, source, due.log.log_start_offset)

    if due.manifest.version and seen(due.manifest) != due.manifest:
        try:
            writer.commit(first, seen)
        except (LogError, RemoteError) as e:
            yield Done(None, error=e)
            return
    gap_reason = "never archived: an earlier segment had left the local log before"
    for segment, decision in zip(due.log.segments, due.decisions, strict=True):
        if decision.action is not Action.copy:
            yield Done(decision)
            continue
        try:
            end = segment_end(segment)
            before = _newest(store, due.path) or first
            if covers(before, segment.base_offset, end):
                yield Done(_by_somebody_else(decision))
                continue
            check_history(before, epochs_before(due.log.leader_epochs, end), end)
            entry = copy_segment(store, due.path, segment_data(due.log, segment, progress), clock, ids, transforms)
            refuse_unless_whole(due.log, segment)  # what the broker did meanwhile
        except LogError as e:
            gap_reason = f"refused: {e}"
            yield Done(decision, error=e)
            continue
        except RemoteError as e:
            yield Done(decision, error=e)
            return

        def change(before: Manifest, entry: SegmentEntry = entry, gap_reason: str = gap_reason) -> Manifest:
            lineage = epochs_before(due.log.leader_epochs, entry.end_offset)
            return segment_copied(seen(before), entry, lineage, gap_reason, clock.now_ms())

        try:
            committed = writer.commit(first, change)
        except (LogError, RemoteError) as e:
            yield Done(decision, error=e)
            return
        if Entries.of(store, committed).holds(entry):
            yield Done(decision, entry=entry)
        else:
            yield Done(_by_somebody_else(decision))


def _by_somebody_else(decision: Decision) -> Decision:
    return Decision(decision.segment, Action.archived, "archived by somebody else meanwhile")


def _newest(store: ObjectStore, path: PartitionPath) -> Manifest | None:
    stored = load_newest(store, path)
    return stored.manifest if stored else None


def segment_end(segment: Segment) -> int:
    """Where an inactive segment ends: at the next one's base offset."""
    if segment.next_base_offset is None:
        raise AssertionError("the active segment is never archived")
    return segment.next_base_offset


def refuse_unless_whole(log: LocalLog, segment: Segment) -> None:
    """Raises Corrupt where the folder, listed anew, has traces of a segment between this one and the next.

    A cleaner that swaps files shows, for a moment, neither the old ones nor the new: what comes next is then not what
    followed. A file that somebody has deleted by hand looks the same, but for good.
    """
    end = segment_end(segment)
    names = log.disk.names(log.folder)
    bases = [p[0] for name in names if (p := parse_offset_file(name)) and p[1] != SNAPSHOT]
    between = [base for base in bases if segment.base_offset < base < end]
    swapping = [name for name in names if name.endswith((".swap", ".cleaned"))]
    if between or swapping or end not in bases:
        raise Corrupt(
            f"the segment after {segment.base_offset} is being replaced or has lost its log file "
            f"({swapping[0] if swapping else f'offset {between[0] if between else end}'}); offload again, and if that does not "
            "help let the broker recover the log",
            file=log.folder,
        )


def _never_archived(path: PartitionPath, log: LocalLog) -> Manifest:
    return never_archived(path.topic, path.topic_id, path.partition, log.log_start_offset)


def segment_data(log: LocalLog, segment: Segment, progress: Callable[[int], None]) -> LogSegmentData:
    """An inactive segment as the uploader takes it. Raises Corrupt, NotFound, Unreadable."""
    end = segment_end(segment)
    refuse_unless_whole(log, segment)
    file = segment.path(LOG)

    def read(start: int, stop: int) -> bytes:
        progress(stop - start)
        return segment.disk.read(file, start, stop)

    own = set(segment.aborted())
    return LogSegmentData(
        path=file,
        base_offset=segment.base_offset,
        end_offset=end,
        size=segment.size(),
        read=read,
        offset_index=_needed(segment, OFFSET_INDEX),
        time_index=_needed(segment, TIME_INDEX),
        txn_index=_optional(segment, TXN_INDEX),
        producer_snapshot=_optional(segment, SNAPSHOT),
        lineage=epochs_before(log.leader_epochs, end),
        aborted_later=tuple(t for t in log.aborted(segment.base_offset, end) if t not in own),
        in_transaction=log.producers_in_transaction_at(segment.base_offset),
    )


def _optional(segment: Segment, suffix: str) -> SegmentFile | None:
    body = segment.read(suffix)
    return None if body is None else SegmentFile(segment.path(suffix), body)


def _needed(segment: Segment, suffix: str) -> SegmentFile:
    file = _optional(segment, suffix)
    if file is None:
        raise Corrupt("the index is missing; let its broker rebuild it, then offload again", file=segment.path(suffix))
    return file
