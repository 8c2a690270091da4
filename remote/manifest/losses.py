"""What left every local log before it was archived: pure, from what a manifest knows of its sources and of its own holes.

A source is a log directory. Of each the manifest keeps where the partition's log started and ended when it was last told. What a
source had then, has no more, and the archive does not hold is lost, unless another source may have it: one that is not gone, and
whose log had these offsets when it was last told. Retention by the archive itself is no loss: below the log start offset nothing
is missing. Nor is what compaction has emptied: segments without batches stay where they are, or are named by their gap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from local_log.ranges import Range, clipped, joined, uncovered, without
from remote.manifest.gaps import Gap
from remote.manifest.model import Loss, Manifest, missing_ranges

DELETED_BEFORE_COPY = "it had left the local log before it was archived, by retention or DeleteRecords"
GONE = "it was gone with the whole partition before it was archived"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a source has of a partition now: its log start offset, and the ranges that it can still give.

    The ranges reach below the log start offset where inactive segments do: they are archived whole.
    """

    source: str
    log_start_offset: int
    held: tuple[Range, ...]


def lost_ranges(manifest: Manifest) -> tuple[Loss, ...]:
    """What is lost now, in order: the losses without what was archived after all, and without what retention has passed."""
    end = max((loss.end for loss in manifest.losses), default=0)
    missing = [*missing_ranges(manifest), (manifest.end_offset, max(end, manifest.end_offset))] if manifest.losses else []
    cut = (replace(loss, start=a, end=b) for loss in manifest.losses for a, b in clipped(missing, loss.start, loss.end))
    return tuple(sorted(cut, key=lambda loss: loss.start))


def unacknowledged(manifest: Manifest) -> tuple[Loss, ...]:
    """Those of the lost ranges that nobody has acknowledged."""
    return tuple(loss for loss in lost_ranges(manifest) if not loss.acknowledged_at_ms)


def lost_offsets(manifest: Manifest) -> int:
    """How many offsets are lost that nobody has acknowledged."""
    return sum(loss.end - loss.start for loss in unacknowledged(manifest))


def lost_since_ms(manifest: Manifest) -> int | None:
    """Since when there is something lost that nobody has acknowledged, None where there is nothing."""
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
    """The manifest that knows what a source has lost since it was last told of it; what the source still has is not lost."""
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
    return _with(replace(manifest, losses=kept), without([*holes, before], [*seen.held, *others]), DELETED_BEFORE_COPY, now_ms)


def source_gone(manifest: Manifest, source: str, log_end_offset: int, now_ms: int) -> Manifest:
    """The manifest of a partition that `source` does not have any more; its log ended at `log_end_offset` or behind that.

    Where another source has it, or is believed to, nothing is lost by that.
    """
    if manifest.is_deleted or source in manifest.gone or source not in manifest.local_log_start_offsets:
        return manifest
    end = max([log_end_offset, *manifest.local_log_end_offsets.values()])
    mine = manifest.local_log_start_offsets[source]
    holes = [hole for gap in _gaps_not_of_compaction(manifest) for hole in clipped([gap], mine, end)]
    others = [range_of(start, end) for _, start in _others(manifest, source)]
    ends = {**manifest.local_log_end_offsets, source: max(log_end_offset, manifest.local_log_end_offsets.get(source, 0))}
    after = replace(manifest, gone={**manifest.gone, source: now_ms}, local_log_end_offsets=ends)
    return _with(after, without([*holes, range_of(manifest.end_offset, end)], others), GONE, now_ms)


def gone_since_ms(manifest: Manifest) -> int | None:
    """Since when no source has the partition any more, None where one has it, or none ever had."""
    starts = manifest.local_log_start_offsets
    return max(manifest.gone.values()) if starts and starts.keys() <= manifest.gone.keys() else None


def new_losses(before: Manifest, after: Manifest) -> tuple[Range, ...]:
    """The offsets that are lost by one version and were not by another."""
    known, now = ([(loss.start, loss.end) for loss in m.losses] for m in (before, after))
    return without(now, known)


def has_nothing_for_readers(manifest: Manifest) -> bool:
    """Whether a log directory has the partition and that is all: readers of the archive have nothing of it, nor miss anything."""
    return manifest.only_seen and not (manifest.entries or manifest.pages or manifest.deleting or manifest.losses)


def acknowledged(manifest: Manifest, shown: Iterable[Range], by: str, now_ms: int) -> Manifest:
    """The manifest in which somebody has said that the loss of these offsets is known; what is lost later is not among them."""
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
    """The manifest with these losses, too, where they are news."""
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
    """In the order of their starts, those made one that touch and that nobody has acknowledged, since the first of them."""
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
