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
    extended = replace(manifest, entries=entries, leader_epochs=_merged(manifest, tuple(lineage), entry.end_offset))
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


def check_history(manifest: Manifest, lineage: tuple[EpochEntry, ...], end_offset: int) -> None:
    """Raises Conflict where a log with these leader epochs up to `end_offset` contradicts the archive: ask before copying."""
    _merged(manifest, lineage, end_offset)


def _merged(manifest: Manifest, lineage: tuple[EpochEntry, ...], end_offset: int) -> tuple[EpochEntry, ...]:
    """The archive's lineage and the epochs after it, where the log's, up to `end_offset`, is of the same history.

    What each knows starts where its log started: of its first epoch it may name a later start than the other does, and of
    those before nothing. Everything else must agree, and a new epoch starts where the archive ends or later.
    """
    known = manifest.leader_epochs
    if not lineage or not known:
        return known or lineage
    starts = {k.epoch: k.start_offset for k in known}
    theirs = {e.epoch: e.start_offset for e in lineage}
    differ = {
        e.epoch
        for e in lineage
        if e.epoch in starts
        and e.start_offset != starts[e.epoch]
        and not (e == lineage[0] and e.start_offset > starts[e.epoch])
        and not (e.epoch == known[0].epoch and e.start_offset < starts[e.epoch])
    }
    lacking = {k.epoch for k in known if k.epoch > lineage[0].epoch and k.start_offset < end_offset} - theirs.keys()
    newer = tuple(e for e in lineage if e.epoch > known[-1].epoch)
    strange = {e.epoch for e in lineage if known[0].epoch < e.epoch < known[-1].epoch} - starts.keys()
    early = any(e.start_offset < manifest.end_offset for e in newer)
    if differ or lacking or strange or early:
        raise Conflict(
            f"the log's leader epochs are {_pairs(lineage)} up to offset {end_offset} and the archive's {_pairs(known)} up to "
            f"{manifest.end_offset}: this log is of another history, so it is not archived over it"
        )
    return known + newer


def _pairs(entries: tuple[EpochEntry, ...]) -> str:
    return ", ".join(f"{e.epoch} from {e.start_offset}" for e in entries) or "unknown"
