"""Restores partitions: a loop writes the segments into staging folders, and one last step renames the folders.

A segment that cannot be restored fails its partition; the other partitions and segments continue, unless a key is missing,
which the others would need as well. After any failure a restore can be run again: it ends with the same result and downloads
only what is missing or differs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from local_log.disk import WritableDisk
from local_log.errors import LogError, NoKey, Unavailable, WrongKey
from local_log.formats.checkpoints import write_epochs
from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, offset_file
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.partition_metadata import ZERO_TOPIC_ID, write_topic_id
from local_log.formats.record import NO_TIMESTAMP
from local_log.log_reader import open_log
from remote.parallel import in_order
from remote.segment.stitch import Link
from remote.segment_bytes import SegmentBytes
from tiering.restore.aborted import aborted_of, complete_txn_indexes
from tiering.restore.open_transactions import active_segment
from tiering.restore.plan import RestorePlan, RestoreStep, restored_epochs
from tiering.restore.segment import PlacedSegment, place_segment, write_file
from tiering.restore.target import RestoreTarget, StagedPartition

SEGMENTS_IN_FLIGHT_MAX = 4


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of one step of a plan; without a step, of the partition: `staged`, or its error.

    `ongoing` counts the transactions that are ongoing at the limit.
    """

    plan: RestorePlan
    step: RestoreStep | None = None
    placed: PlacedSegment | None = None
    staged: StagedPartition | None = None
    ongoing: int = 0
    error: LogError | None = None


def restore(
    plans: Iterable[RestorePlan], source: SegmentBytes, target: RestoreTarget, threads: int = SEGMENTS_IN_FLIGHT_MAX
) -> Iterator[RestoreResult]:
    """Carries out the plans; yields a result for each step and one for each partition.

    Errors of a partition are in its result. Unavailable ends the run, because the other partitions need the same store. Raises
    errors of the whole directory: Unreadable, Corrupt (a checkpoint file), Invalid.
    """
    staged: list[StagedPartition] = []
    for plan in plans:
        for done in _stage(plan, source, target, threads):
            yield done
            if done.staged is not None:
                staged.append(done.staged)
        if isinstance(done.error, Unavailable):
            break
    target.finish(staged)


@dataclass(slots=True)
class _PlacedSegments:
    """The segments of a partition that have been written so far."""

    log_end_offset: int
    first_base: int | None = None
    latest_ms: int = NO_TIMESTAMP
    names: set[str] = field(default_factory=set)
    aborted: set[AbortedTxn] = field(default_factory=set)

    def add(self, link: Link, placed: PlacedSegment) -> None:
        self.log_end_offset = placed.end_offset
        self.latest_ms = max(self.latest_ms, link.entry.max_timestamp_ms)
        self.names.update(placed.names)
        self.aborted.update(placed.aborted)
        if self.first_base is None and placed.names:
            self.first_base = link.start


def _stage(plan: RestorePlan, source: SegmentBytes, target: RestoreTarget, threads: int) -> Iterator[RestoreResult]:
    placed_segments = _PlacedSegments(plan.manifest.log_start_offset)
    error: LogError | None = None
    try:
        folder = target.stage(plan, source)
        with in_order(partial(_take_step, plan, source, target.disk, folder), plan.steps(), threads) as results:
            for done in results:
                yield done
                error = error or done.error
                if isinstance(done.error, Unavailable | NoKey | WrongKey):
                    return
                if isinstance(done.step, Link) and done.placed is not None:
                    placed_segments.add(done.step, done.placed)
        if error is None:
            yield _complete_folder(plan, target.disk, folder, placed_segments)
    except LogError as e:
        yield RestoreResult(plan, error=e)


def _take_step(plan: RestorePlan, source: SegmentBytes, disk: WritableDisk, folder: str, step: RestoreStep) -> RestoreResult:
    if not isinstance(step, Link):
        return RestoreResult(plan, step)
    try:
        return RestoreResult(plan, step, place_segment(disk, folder, source, plan.manifest.path, step))
    except LogError as e:
        return RestoreResult(plan, step, error=e)


def _complete_folder(plan: RestorePlan, disk: WritableDisk, folder: str, placed_segments: _PlacedSegments) -> RestoreResult:
    """Writes the active segment and the partition's metadata files, and deletes all other files."""
    for name in disk.names(folder):
        if name not in placed_segments.names:
            disk.delete(f"{folder}/{name}")
    start, end = plan.manifest.log_start_offset, placed_segments.log_end_offset
    log = open_log(disk, folder, plan.partition, start, end)
    ongoing = log.open_transactions if placed_segments.names else ()
    if log.segments:
        complete_txn_indexes(disk, log, placed_segments.aborted, {txn.producer_id for txn in ongoing})
    epochs = restored_epochs(plan.manifest, end)
    epoch = epochs[-1].epoch if epochs else 0
    ended_here = () if plan.is_cut else ongoing
    aborted = aborted_of(ended_here, placed_segments.aborted, log)
    files = active_segment(end, ended_here, aborted, placed_segments.latest_ms, epoch)
    added = {offset_file(end, suffix): body for suffix, body in files.items()}
    added[LEADER_EPOCH_CHECKPOINT] = write_epochs(epochs)
    if plan.topic_id != ZERO_TOPIC_ID:
        added[PARTITION_METADATA] = write_topic_id(plan.topic_id)
    for name, body in added.items():
        write_file(disk, f"{folder}/{name}", [body])
        disk.sync(f"{folder}/{name}")
    disk.sync_folder(folder)
    disk.release(folder)
    first = end if placed_segments.first_base is None else placed_segments.first_base
    if plan.is_cut:
        return RestoreResult(plan, staged=StagedPartition(plan.partition, first, start, end), ongoing=len(ongoing))
    return RestoreResult(plan, staged=StagedPartition(plan.partition, first, start, end + len(ongoing)))
