"""Losses: offsets that every local log deleted before they were archived. Pure; computed from the manifest's sources and gaps.

A source is a log directory. For each source the manifest records the start and end offsets of the partition's log. An offset is
lost if a source had it at the last record, no longer has it, and the archive does not hold it, unless another source may still
have it: a source that is not gone and whose recorded log contains the offset. Offsets below the archive's log start offset are
not lost: the archive's own retention deleted them. Offsets that compaction emptied are not lost either: their segments stay in
the log, or their gap says so. Nor are those that users are known to have deleted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from local_log.ranges import Range, clipped, joined, uncovered, without
from remote.manifest.gaps import Gap
from remote.manifest.model import Loss, Manifest, missing_ranges

DELETED_BEFORE_COPY = "they had left the local log before they were archived, by retention or DeleteRecords"
GONE = "they were gone with the whole partition before they were archived"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a source has of a partition now: its log start offset, and the ranges of offsets that can be copied from it.

    The ranges reach below the log start offset if an inactive segment does, since a segment is copied with all of its batches.
    What lies below `deleted_to` users are known to have deleted: that is no loss.
    """

    source: str
    log_start_offset: int
    held: tuple[Range, ...]
    deleted_to: int = 0


def lost_ranges(manifest: Manifest) -> tuple[Loss, ...]:
    """The current losses by start offset: those recorded, minus offsets archived later or deleted by the archive's retention."""
    end = max((loss.end for loss in manifest.losses), default=0)
    missing = [*missing_ranges(manifest), (manifest.end_offset, max(end, manifest.end_offset))] if manifest.losses else []
    cut = (replace(loss, start=a, end=b) for loss in manifest.losses for a, b in clipped(missing, loss.start, loss.end))
    return tuple(sorted(cut, key=lambda loss: loss.start))


def missing_for_readers(manifest: Manifest) -> tuple[Gap, ...]:
    """The gaps in which records may be missing, and behind the end of the archive what is lost, in order."""
    end = manifest.end_offset
    behind = (loss for loss in lost_ranges(manifest) if loss.end > end)
    lost = (Gap(max(loss.start, end), loss.end, describe_loss(loss), loss.noticed_at_ms) for loss in behind)
    return (*manifest.holes, *lost)


def unacknowledged(manifest: Manifest) -> tuple[Loss, ...]:
    """The lost ranges that are not acknowledged."""
    return tuple(loss for loss in lost_ranges(manifest) if not loss.acknowledged_at_ms)


def lost_offsets(manifest: Manifest) -> int:
    """The number of lost offsets that are not acknowledged."""
    return sum(loss.end - loss.start for loss in unacknowledged(manifest))


def lost_since_ms(manifest: Manifest) -> int | None:
    """When the earliest loss that is not acknowledged was noticed, None if there is none."""
    return min((loss.noticed_at_ms for loss in unacknowledged(manifest)), default=None)


def describe_loss(loss: Loss) -> str:
    """Why a range is missing, for a gap's reason."""
    since = datetime.fromtimestamp(loss.noticed_at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"lost, known since {since}: {loss.reason}"


def reason_with(losses: Iterable[Loss], start: int, end: int, otherwise: str) -> str:
    """Why `[start, end)` is missing, of which some may be lost and the rest is missing `otherwise`."""
    here = [loss for loss in losses if loss.start < end and loss.end > start]
    reasons = [describe_loss(loss) for loss in here]
    if uncovered(sorted((loss.start, loss.end) for loss in here), start, end):
        reasons.append(otherwise)
    return "; ".join(dict.fromkeys(reasons))


def local_deletions_recorded(manifest: Manifest, seen: Seen, now_ms: int) -> Manifest:
    """The manifest with the losses of a source since its last record; offsets that the source still has are not lost."""
    if manifest.is_deleted or not manifest.version:
        return manifest
    kept = _without(manifest.losses, seen.held)
    known = manifest.local_log_start_offsets.get(seen.source)
    before = range_of(manifest.end_offset if known is None else max(known, manifest.end_offset), seen.log_start_offset)
    holes = (
        []
        if known is None
        else [hole for gap in _gaps_not_of_compaction(manifest) for hole in clipped([gap], known, seen.log_start_offset)]
    )
    others = [range_of(start, manifest.local_log_end_offsets.get(o, start)) for o, start in _others(manifest, seen.source)]
    lost = without([*holes, before], [(0, seen.deleted_to), *seen.held, *others])
    return _with(replace(manifest, losses=kept), lost, DELETED_BEFORE_COPY, now_ms)


def source_gone(manifest: Manifest, source: str, log_end_offset: int, now_ms: int) -> Manifest:
    """The manifest of a partition that `source` no longer has; the log of the source ended at `log_end_offset` or later.

    Offsets that another source is recorded to have are not lost. Of a source that is recorded as gone only what its log had
    behind its recorded end is new.
    """
    if manifest.is_deleted or source not in manifest.local_log_start_offsets:
        return manifest
    is_known, known_end = source in manifest.gone, manifest.local_log_end_offsets.get(source, 0)
    if is_known and log_end_offset <= known_end:
        return manifest
    end = max([log_end_offset, *manifest.local_log_end_offsets.values()])
    mine = known_end if is_known else manifest.local_log_start_offsets[source]
    holes = [hole for gap in _gaps_not_of_compaction(manifest) for hole in clipped([gap], mine, end)]
    others = [range_of(start, end) for _, start in _others(manifest, source)]
    ends = {**manifest.local_log_end_offsets, source: max(log_end_offset, known_end)}
    after = replace(manifest, gone={source: now_ms, **manifest.gone}, local_log_end_offsets=ends)
    behind = range_of(max(manifest.end_offset, mine) if is_known else manifest.end_offset, end)
    return _with(after, without([*holes, behind], others), GONE, now_ms)


def gone_since_ms(manifest: Manifest) -> int | None:
    """When the last source lost the partition, None if a source still has it or none ever had it."""
    starts = manifest.local_log_start_offsets
    return max(manifest.gone.values()) if starts and starts.keys() <= manifest.gone.keys() else None


def new_losses(before: Manifest, after: Manifest) -> tuple[Range, ...]:
    """The offsets that are lost in the version `after` and not in `before`."""
    known, now = ([(loss.start, loss.end) for loss in m.losses] for m in (before, after))
    return without(now, known)


def has_nothing_for_readers(manifest: Manifest) -> bool:
    """Whether the manifest only records a log directory: no segment was archived, and none is missing."""
    return manifest.only_seen and not (manifest.entries or manifest.pages or manifest.deleting or manifest.losses)


def acknowledged(manifest: Manifest, shown: Iterable[Range], by: str, now_ms: int) -> Manifest:
    """The manifest with the losses of these offsets acknowledged. Later losses are not."""
    ranges = sorted(shown)

    def split(loss: Loss) -> Iterator[Loss]:
        inside = [] if loss.acknowledged_at_ms else clipped(ranges, loss.start, loss.end)
        yield from (replace(loss, start=a, end=b, acknowledged_at_ms=now_ms, acknowledged_by=by) for a, b in inside)
        yield from (replace(loss, start=a, end=b) for a, b in uncovered(inside, loss.start, loss.end))

    return replace(manifest, losses=_in_order(part for loss in manifest.losses for part in split(loss)))


def range_of(start: int, end: int) -> Range:
    """The range, empty where it would end before it starts."""
    return start, max(start, end)


def _gaps_not_of_compaction(manifest: Manifest) -> Iterator[Range]:
    return ((gap.start, gap.end) for gap in manifest.gaps if not gap.is_of_compaction)


def _others(manifest: Manifest, source: str) -> Iterator[tuple[str, int]]:
    """The other sources that are not gone, and where their logs start."""
    return ((o, start) for o, start in manifest.local_log_start_offsets.items() if o != source and o not in manifest.gone)


def _with(manifest: Manifest, lost: Iterable[Range], reason: str, now_ms: int) -> Manifest:
    """The manifest with these losses added, without those that it has already."""
    known = [(loss.start, loss.end) for loss in manifest.losses]
    wanted = joined(sorted((max(a, manifest.log_start_offset), b) for a, b in lost if b > manifest.log_start_offset and a < b))
    new = [Loss(start, end, reason, now_ms) for start, end in without(wanted, known)]
    losses = _in_order([*manifest.losses, *new])
    return replace(manifest, losses=losses, gaps=tuple(_explained(gap, new) for gap in manifest.gaps))


def _explained(gap: Gap, new: list[Loss]) -> Gap:
    if not any(loss.start < gap.end and loss.end > gap.start for loss in new):
        return gap
    return replace(gap, reason=f"{reason_with(new, gap.start, gap.end, gap.reason)}")


def _without(losses: Iterable[Loss], ranges: Iterable[Range]) -> tuple[Loss, ...]:
    known = sorted(ranges)
    return tuple(replace(loss, start=a, end=b) for loss in losses for a, b in uncovered(known, loss.start, loss.end))


def _in_order(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Losses by start offset. Adjacent ones with one reason are merged if not acknowledged, and keep the time of the first."""
    found: list[Loss] = []
    for loss in sorted(losses, key=lambda one: one.start):
        if found and _goes_on(found[-1], loss):
            found[-1] = replace(found[-1], end=loss.end)
        else:
            found.append(loss)
    return tuple(found)


def _goes_on(last: Loss, loss: Loss) -> bool:
    is_open = not (last.acknowledged_at_ms or loss.acknowledged_at_ms)
    return is_open and last.end == loss.start and last.reason == loss.reason
