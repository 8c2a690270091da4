"""The transitions of a manifest: pure functions from one version to the next. Each is idempotent.

segment_copied      adds a verified copy, removes the gaps that it fills, adds gaps for ranges that are still missing
emptied             marks gaps as ranges in which compaction left no batch
retained            raises the log start offset; entries and pages that end at or below it are moved to `deleting`
deleted             removes items of `deleting` whose objects are deleted
source_seen         records where a source's local log starts and ends
first_seen          the same for a partition of which no segment is archived
claimed             raises the writer epoch, which fences earlier writers
kept                adds an entry of a diverged history to the topic that keeps it (see `truncation`)
superseded          gives up entries for those of the same log after compaction (see `superseding`)
topic_deleted       raises the writer epoch, moves all items to `deleting`, and forbids further copies
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from local_log.formats.checkpoints import EpochEntry, epochs_from
from local_log.ranges import uncovered
from remote.manifest.gaps import COMPACTED, NO_BATCH, Gap
from remote.manifest.history import merged_lineage, refuse_unproven
from remote.manifest.losses import reason_with
from remote.manifest.model import LIMITS, Deleting, Item, Loss, Manifest, covers, never_archived, refuse_deleted
from remote.manifest.segment_entry import SegmentEntry

Missing = TypeVar("Missing", Gap, Loss)


# Seven parameters: where a log ends, and what somebody knows of its elections, only those say who copy from a log.
def segment_copied(
    manifest: Manifest,
    entry: SegmentEntry,
    lineage: tuple[EpochEntry, ...],
    gap_reason: str,
    now_ms: int,
    *,
    log_end: int | None = None,
    is_clean: bool = False,
) -> Manifest:
    """The manifest with `entry`, or unchanged where others have archived all of its offsets meanwhile.

    `lineage` are the leader epochs of the log up to `log_end`, or up to the entry's end; `is_clean` is as in `check_copy`.
    `gap_reason` is why offsets before it were not copied (see `emptied` for those of which compaction has left nothing). Raises
    Conflict as `check_copy`, TopicDeleted.
    """
    refuse_deleted(manifest)
    if covers(manifest, entry.base_offset, entry.end_offset):
        return manifest
    entries = tuple(sorted((*manifest.entries, entry), key=lambda e: (e.base_offset, e.end_offset)))
    offsets = entry.base_offset, entry.end_offset
    epochs = merged_lineage(manifest, lineage, entry.end_offset, entry.leader_epochs, log_end=log_end, is_clean=True)
    if not is_clean:
        refuse_unproven(manifest, offsets, lineage, entry.end_offset if log_end is None else log_end)
    extended = replace(manifest, entries=entries, leader_epochs=epochs)
    gaps = [left for gap in manifest.gaps for left in parts_outside(gap, entry.base_offset, entry.end_offset)]
    losses = tuple(left for loss in manifest.losses for left in parts_outside(loss, entry.base_offset, entry.end_offset))
    if entry.base_offset > manifest.end_offset:
        reason = reason_with(losses, manifest.end_offset, entry.base_offset, _diverged(manifest, entry.base_offset) or gap_reason)
        gaps.append(Gap(manifest.end_offset, entry.base_offset, reason, now_ms))
    return replace(extended, gaps=tuple(gaps), losses=losses, only_seen=False)


def _diverged(manifest: Manifest, end: int) -> str:
    """Why offsets up to `end` are missing behind the archive's end, where that was given up with another history."""
    given_up = (d for d in manifest.diverged if d.start < end and d.fork_offset > manifest.end_offset and d.topic_id)
    return "; ".join(f"diverged: they are kept with the other history, under topic id {d.topic_id}" for d in given_up)


def kept(manifest: Manifest, entry: SegmentEntry, of: Manifest, now_ms: int) -> Manifest:
    """The manifest that keeps what `of` has and is going to give up, with one entry of that more; gaps are as they are there."""
    lineage = tuple(e for e in of.leader_epochs if e.start_offset < entry.end_offset)
    after = segment_copied(manifest, entry, lineage, "diverged: it is not archived there either", now_ms)
    known = {(gap.start, gap.end): gap for gap in of.gaps}
    return replace(after, gaps=tuple(known.get((gap.start, gap.end), gap) for gap in after.gaps))


def kept_from(of: Manifest, topic_id: str, start: int) -> Manifest:
    """Version 0 of the partition that keeps the diverged history of `of` from `start` on.

    Its last data is one ms older than that of `of`, so that of the two topics with one name, readers choose that of `of` by
    default.
    """
    first = never_archived(of.topic, topic_id, of.partition, start)
    losses = tuple(left for loss in of.losses for left in parts_outside(loss, 0, start))
    return replace(first, kept_from=of.topic_id, data_committed_at_ms=max(1, last_data_ms(of) - 1), losses=losses)


def brings_offsets(before: Manifest, after: Manifest) -> bool:
    """Whether offsets are archived that were not before, other than by what only keeps an archive in order."""
    if after.kept_from:
        return False
    known = {entry.segment_id for entry in before.entries}
    added = (entry for entry in after.entries if entry.segment_id not in known)
    return any(not covers(before, entry.base_offset, entry.end_offset) for entry in added)


def last_data_ms(manifest: Manifest) -> int:
    """When offsets were last brought; where that was not noted, when the youngest entry was copied; 0 where none is left."""
    items = (*manifest.entries, *(d.item for d in manifest.deleting))
    copied = (i.copied_at_ms for i in items if isinstance(i, SegmentEntry))
    return manifest.data_committed_at_ms or max(copied, default=0)


def emptied(manifest: Manifest, ranges: Sequence[tuple[int, int]]) -> Manifest:
    """The manifest in which gaps that lie in these ranges, in order, are known to be of compaction: no batch was left there.

    A gap of which only a part was emptied stays what it was.
    """

    def known(gap: Gap) -> Gap:
        is_emptied = not gap.is_of_compaction and not uncovered(ranges, gap.start, gap.end)
        return replace(gap, kind=COMPACTED, reason=NO_BATCH) if is_emptied else gap

    gaps = tuple(map(known, manifest.gaps)) if ranges else manifest.gaps
    return manifest if gaps == manifest.gaps else replace(manifest, gaps=gaps)


def retained(manifest: Manifest, log_start_offset: int, now_ms: int, *, deleting_max: int = LIMITS.deleting_max) -> Manifest:
    """The manifest whose log starts at `log_start_offset`, which never goes back; what lies below it waits to be deleted.

    At most `deleting_max` entries and pages wait, the oldest first: what is left is moved when it is applied again. Of a page
    that reaches above the new start nothing is moved here; the commit does that, a page at a time (see `paging`).
    Leader epochs that no offset needs any more go as in Kafka's LeaderEpochFileCache.truncateFromStart. Where not even the
    archive's end is left, its epochs say nothing of the new start, and all of them go.
    """
    start = max(log_start_offset, manifest.log_start_offset)
    epochs = epochs_from(manifest.leader_epochs, start) if start <= manifest.end_offset else ()
    gaps = tuple(left for gap in manifest.gaps for left in parts_outside(gap, 0, start))
    losses = tuple(left for loss in manifest.losses for left in parts_outside(loss, 0, start))
    after = replace(manifest, log_start_offset=start, gaps=gaps, losses=losses, leader_epochs=epochs)
    return moved(after, now_ms, deleting_max)


def moved(manifest: Manifest, now_ms: int, deleting_max: int) -> Manifest:
    """The manifest with items that end at or below the log start offset moved to `deleting`, up to `deleting_max` in all."""
    count_max = max(0, deleting_max - len(manifest.deleting))
    below = [item for item in manifest.items if item.end_offset <= manifest.log_start_offset][:count_max]
    if not below:
        return manifest
    gone = {id(item) for item in below}
    return replace(
        manifest,
        entries=tuple(e for e in manifest.entries if id(e) not in gone),
        pages=tuple(ref for ref in manifest.pages if id(ref) not in gone),
        deleting=waiting(manifest, below, now_ms),
    )


def waiting(manifest: Manifest, items: Iterable[Item], now_ms: int) -> tuple[Deleting, ...]:
    """The manifest's `deleting` with these items added."""
    return (*manifest.deleting, *(Deleting(item, now_ms) for item in items))


def deleted(manifest: Manifest, ids: Iterable[str]) -> Manifest:
    """The manifest without the items of `deleting` with these ids (`Deleting.id`), whose objects are deleted."""
    gone = set(ids)
    left = tuple(d for d in manifest.deleting if d.id not in gone)
    return manifest if len(left) == len(manifest.deleting) else replace(manifest, deleting=left)


def source_seen(manifest: Manifest, source: str, log_start_offset: int, log_end_offset: int | None = None) -> Manifest:
    """The manifest that records the start of the source's log, and its end if given. The source no longer counts as gone."""
    starts = {**manifest.local_log_start_offsets, source: log_start_offset}
    ends = manifest.local_log_end_offsets
    if log_end_offset is not None:
        ends = {**ends, source: log_end_offset}
    gone = {other: since_ms for other, since_ms in manifest.gone.items() if other != source}
    after = replace(manifest, local_log_start_offsets=starts, local_log_end_offsets=ends, gone=gone)
    return manifest if after == manifest else after


def first_seen(manifest: Manifest, source: str, log_start_offset: int, log_end_offset: int) -> Manifest:
    """The manifest of a partition that a log directory has and of which nothing is archived; any other is not changed."""
    if manifest.version:
        return manifest
    return replace(source_seen(manifest, source, log_start_offset, log_end_offset), only_seen=True)


def claimed(manifest: Manifest) -> Manifest:
    """The manifest with the next writer epoch. The writer that commits it owns that epoch."""
    return replace(manifest, writer_epoch=manifest.writer_epoch + 1)


def topic_deleted(manifest: Manifest, now_ms: int, *, deleting_max: int = LIMITS.deleting_max) -> Manifest:
    """The manifest of a topic that is deleted at `now_ms`: earlier writers are fenced, and later ones are refused.

    All items move to `deleting`, up to `deleting_max` (see `retained`). A manifest that is in this state is not changed.
    """
    if not manifest.is_deleted:
        manifest = replace(claimed(manifest), deleted_at_ms=now_ms, losses=())
    return retained(manifest, manifest.end_offset, now_ms, deleting_max=deleting_max)


def parts_outside(gap: Missing, start: int, end: int) -> Iterable[Missing]:
    """The parts of a gap or a loss outside of `[start, end)`, with its reason and time."""
    return (replace(gap, start=a, end=b) for a, b in uncovered([(start, end)], gap.start, gap.end))
