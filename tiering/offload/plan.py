"""What is due: pure decisions from what lies in the local log and what its manifest says."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from local_log.ranges import Range
from remote.manifest.gaps import NO_BATCH
from remote.manifest.losses import DELETED_BEFORE_COPY
from remote.manifest.model import Manifest, covers, lacks_nothing
from tiering.offload.below_log_start import Committed
from tiering.offload.cleaned import Cleaned
from tiering.offload.local_segment import LocalSegment

NOT_COMMITTED: Final = "below the log start offset, and not known to be committed"


class Action(StrEnum):
    """What becomes of a local segment in an offload."""

    copy = "copy"
    replace_archived = "replace"
    """It is archived as it was before the log cleaner compacted it; it is to be copied in place of that."""
    archived = "archived"
    keep = "keep"
    skipped = "skipped"
    """It was to be copied, and its broker has changed it meanwhile."""
    lost = "lost"
    """It left the log before it was archived."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One segment, what is done with it, and why when nothing is."""

    segment: LocalSegment
    action: Action
    reason: str


def plan_offload(
    segments: tuple[LocalSegment, ...],
    last_stable_offset: int,
    manifest: Manifest,
    *,
    unproven: str = "",
    cleaned: tuple[Cleaned, ...] = (),
    committed: Committed = Committed(),  # noqa: B008  # it is frozen
) -> tuple[Decision, ...]:
    """A decision for each segment, in order. To copy: inactive, wholly below the last stable offset, not yet archived.

    The last stable offset is never above the high watermark, so what is copied is replicated and decided. `unproven` says why,
    where no offset is known to be. What is empty has nothing to copy: its offsets go with the segment before it. `cleaned` are
    those that were cleaned since they were archived, and take the place of what is archived of them. What lies below
    where `committed` starts is not copied.
    """
    segments = tuple(_from(s, committed) if s.base_offset < committed.start else s for s in segments)
    reaching = _over_empty(segments, last_stable_offset)
    decisions = {
        s.base_offset: _decide(s, r, last_stable_offset, manifest, unproven) for s, r in zip(segments, reaching, strict=True)
    }
    for group in cleaned:
        archived = f"{len(group.entries)} segments of {group.archived_bytes}"
        why = f"compacted since it was archived: {group.bytes} bytes in place of {archived}"
        for segment in (*group.segments, *group.copies):
            decisions[segment.base_offset] = Decision(segment, Action.replace_archived, why)
    return tuple(decisions[s.base_offset] for s in segments)


def _from(segment: LocalSegment, committed: Committed) -> LocalSegment:
    has_none = segment.end_offset is not None and segment.end_offset <= committed.batches_from
    return replace(segment, copied_from=committed.start, is_empty=segment.is_empty or has_none)


def _over_empty(segments: tuple[LocalSegment, ...], last_stable_offset: int) -> tuple[LocalSegment, ...]:
    """The segments, each as one that ends where the next starts that has batches."""
    reaching: list[LocalSegment] = []
    end: int | None = None
    for segment in reversed(segments):
        if segment.end_offset is None or segment.end_offset > last_stable_offset:
            end = None
        elif end is None:
            end = segment.end_offset
        is_whole = segment.is_empty or end in (None, segment.end_offset)
        reaching.append(segment if is_whole else replace(segment, end_offset=end))
        end = end if segment.is_empty else None
    return tuple(reversed(reaching))


def _decide(listed: LocalSegment, segment: LocalSegment, last_stable_offset: int, manifest: Manifest, unproven: str) -> Decision:
    """`segment` is the listed one with the empty ones after it, of which an earlier run may have told the archive."""
    if segment.end_offset is None or listed.end_offset is None:
        return Decision(segment, Action.keep, "active")
    start, end = listed.start_offset, listed.end_offset
    if start >= end and not covers(manifest, listed.base_offset, end):
        return Decision(segment, Action.keep, NOT_COMMITTED)
    if covers(manifest, start, end) and lacks_nothing(manifest, end, segment.end_offset):
        below = segment.end_offset <= manifest.log_start_offset
        return Decision(segment, Action.keep if below else Action.archived, "below the log start offset" if below else "archived")
    if segment.end_offset > last_stable_offset:
        return Decision(segment, Action.keep, unproven or f"reaches past the last stable offset {last_stable_offset}")
    if segment.is_empty:
        return Decision(segment, Action.keep, NO_BATCH)
    return Decision(segment, Action.copy, "")


def lost_offsets(offsets: Range, why: str = DELETED_BEFORE_COPY) -> Decision:
    """The decision for offsets that no tier has any more."""
    start, end = offsets
    return Decision(LocalSegment(start, end), Action.lost, f"offsets [{start}, {end}) are lost: {why}; see docs/operations.md")
