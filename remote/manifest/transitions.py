"""What may happen to a manifest: pure functions from one to the next. Applied twice, each gives the same.

segment_copied      a verified copy joins; gaps that it fills go, ranges that it leaves open are named
source_seen         where a source's local log starts now
claimed             the writer epoch grows: writers from before are fenced
"""

from collections.abc import Iterable
from dataclasses import replace

from local_log.formats.checkpoints import EpochEntry
from remote.errors import Conflict
from remote.manifest.model import Gap, Manifest, SegmentEntry, covers, missing_ranges


def segment_copied(
    manifest: Manifest, entry: SegmentEntry, lineage: Iterable[EpochEntry], gap_reason: str, now_ms: int
) -> Manifest:
    """The manifest with `entry`, or unchanged where others have archived all of its offsets meanwhile.

    `lineage` are the leader epochs of the log up to the entry's end. Raises Conflict where they contradict the archive's.
    """
    if covers(manifest, entry.base_offset, entry.end_offset):
        return manifest
    entries = tuple(sorted((*manifest.entries, entry), key=lambda e: (e.base_offset, e.end_offset)))
    extended = replace(manifest, entries=entries, leader_epochs=_merged(manifest.leader_epochs, tuple(lineage), entry.end_offset))
    known = {(g.start, g.end): g for g in manifest.gaps}
    gaps = (known.get(r) or _within(manifest.gaps, *r) or Gap(*r, gap_reason, now_ms) for r in missing_ranges(extended))
    return replace(extended, gaps=tuple(gaps))


def source_seen(manifest: Manifest, source: str, local_log_start_offset: int) -> Manifest:
    """The manifest that knows where the local log of `source` starts."""
    if manifest.local_log_start_offsets.get(source) == local_log_start_offset:
        return manifest
    starts = {**manifest.local_log_start_offsets, source: local_log_start_offset}
    return replace(manifest, local_log_start_offsets=starts)


def claimed(manifest: Manifest) -> Manifest:
    """The manifest with the next writer epoch, which whoever commits this owns."""
    return replace(manifest, writer_epoch=manifest.writer_epoch + 1)


def _within(gaps: Iterable[Gap], start: int, end: int) -> Gap | None:
    """What is left of a known gap keeps its reason and time."""
    for gap in gaps:
        if gap.start <= start and end <= gap.end:
            return replace(gap, start=start, end=end)
    return None


def _merged(known: tuple[EpochEntry, ...], lineage: tuple[EpochEntry, ...], end_offset: int) -> tuple[EpochEntry, ...]:
    """`known` and the epochs after it, where `lineage` is of the same history up to `end_offset`; without a lineage `known`.

    A log whose start has moved names a later start for its first epoch, so the first epochs may differ in that.
    """
    if not lineage:
        return known
    starts = {k.epoch: k.start_offset for k in known}
    firsts = {lineage[0].epoch} | {k.epoch for k in known[:1]}
    newer = tuple(e for e in lineage if e.epoch not in starts)
    shared = (e for e in lineage if e.epoch in starts)
    lacking = {k.epoch for k in known if k.epoch >= lineage[0].epoch and k.start_offset < end_offset} - {e.epoch for e in lineage}
    after = known[-1] if known else EpochEntry(-1, -1)
    if (
        lacking
        or any(e.start_offset != starts[e.epoch] and e.epoch not in firsts for e in shared)
        or any(e.epoch < after.epoch or e.start_offset < after.start_offset for e in newer)
    ):
        raise Conflict(
            f"the log's leader epochs are {_pairs(lineage)} up to offset {end_offset} and the archive's {_pairs(known)}: "
            "this log is of another history, so it is not archived over it"
        )
    return known + newer


def _pairs(entries: tuple[EpochEntry, ...]) -> str:
    return ", ".join(f"{e.epoch} from {e.start_offset}" for e in entries) or "unknown"
