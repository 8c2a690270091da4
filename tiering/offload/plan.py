"""What is due: pure decisions from what lies in the local log and what its manifest says."""

from dataclasses import dataclass, replace
from enum import StrEnum

from remote.manifest.gaps import NO_BATCH
from remote.manifest.model import Manifest, covers


class Action(StrEnum):
    """What becomes of a local segment in an offload."""

    copy = "copy"
    archived = "archived"
    keep = "keep"
    skipped = "skipped"
    """It was to be copied, and its broker has changed it meanwhile."""
    lost = "lost"
    """It left the log before it was archived."""


@dataclass(frozen=True, slots=True)
class LocalSegment:
    """A segment as the policy sees it; `end_offset` is None for the active one. In an empty one compaction has left no batch."""

    base_offset: int
    end_offset: int | None
    is_empty: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """One segment, what is done with it, and why when nothing is."""

    segment: LocalSegment
    action: Action
    reason: str


def plan_offload(
    segments: tuple[LocalSegment, ...], last_stable_offset: int, manifest: Manifest, *, unproven: str = ""
) -> tuple[Decision, ...]:
    """A decision for each segment, in order. To copy: inactive, wholly below the last stable offset, not yet archived.

    The last stable offset is never above the high watermark, so what is copied is replicated and decided. `unproven` says why,
    where no offset is known to be. What is empty has nothing to copy: its offsets go with the segment before it.
    """
    reaching = _over_empty(segments, last_stable_offset)
    return tuple(_decide(segment, last_stable_offset, manifest, unproven) for segment in reaching)


def _over_empty(segments: tuple[LocalSegment, ...], last_stable_offset: int) -> tuple[LocalSegment, ...]:
    """The segments, each as one that ends where the next starts that has batches."""
    reaching: list[LocalSegment] = []
    end: int | None = None
    for segment in reversed(segments):
        if segment.end_offset is None or segment.end_offset > last_stable_offset:
            end = None
        elif end is None:
            end = segment.end_offset
        reaching.append(segment if segment.is_empty or end is None else replace(segment, end_offset=end))
        end = end if segment.is_empty else None
    return tuple(reversed(reaching))


def _decide(segment: LocalSegment, last_stable_offset: int, manifest: Manifest, unproven: str) -> Decision:
    if segment.end_offset is None:
        return Decision(segment, Action.keep, "active")
    if covers(manifest, segment.base_offset, segment.end_offset):
        below = segment.end_offset <= manifest.log_start_offset
        return Decision(segment, Action.keep if below else Action.archived, "below the log start offset" if below else "archived")
    if segment.end_offset > last_stable_offset:
        return Decision(segment, Action.keep, unproven or f"reaches past the last stable offset {last_stable_offset}")
    if segment.is_empty:
        return Decision(segment, Action.keep, NO_BATCH)
    return Decision(segment, Action.copy, "")
