"""What retention gives up of an archived partition: pure decisions, as Kafka's RemoteLogManager makes them (RLMExpirationTask).

Segments go from the oldest on, until the first that none of these takes:

    1  it lies wholly below the log start offset, as DeleteRecords has moved it
    2  its leader epochs are all older than those of the archive's lineage: no reader can ask for it
    3  its greatest timestamp is more than retention.ms ago
    4  the log without it, both tiers together, is still as large as retention.bytes

Bytes are those of the `.log` files as they were in the local tier. Each offset is counted once: of segments that overlap the one
that starts first has it, and of one that reaches below the log start offset only what lies above counts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.entries import Entries
from remote.manifest.model import Deleting, Item, Manifest, SegmentEntry
from remote.manifest.paging import has_below

DELETE_DELAY_MS = 24 * 3_600_000


class Reason(StrEnum):
    """Why a segment goes."""

    log_start_offset = "below the log start offset"
    leader_epochs = "leader epochs that nothing refers to"
    retention_ms = "retention.ms"
    retention_bytes = "retention.bytes"


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be kept of a topic: ms, and bytes of both tiers; None for no limit.

    Objects go `delete_delay_ms` after the manifest has given them up, so that who reads an older version can end.
    """

    retention_ms: int | None = None
    retention_bytes: int | None = None
    delete_delay_ms: int = DELETE_DELAY_MS


@dataclass(frozen=True, slots=True)
class LocalBytes:
    """A segment of the local log: offsets `[base_offset, end_offset)`, and the bytes of its file."""

    base_offset: int
    end_offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Segments, one after the other, that go for the same reason; they lie in `[start, end)`."""

    reason: Reason
    start: int
    end: int
    segments: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What is to become of one partition: where it starts then, what goes, and the objects that have waited long enough.

    `waiting` and `pinned` are how many items of `manifest.deleting` have to wait still, for the delay and for readers.
    """

    manifest: Manifest
    policy: Policy
    log_start_offset: int
    cuts: tuple[Cut, ...]
    due: tuple[Deleting, ...]
    waiting: int
    pinned: int

    @property
    def is_to_commit(self) -> bool:
        """Whether the manifest is to give something up."""
        return self.log_start_offset > self.manifest.log_start_offset or has_below(self.manifest)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.is_to_commit and not self.due


def plan_retention(
    entries: Entries,
    policy: Policy,
    now_ms: int,
    is_pinned: Callable[[Item], bool],
    *,
    local_bytes: int = 0,
    log_start_offset: int = 0,
) -> RetentionPlan:
    """The plan for the partition of these entries; they are read page by page, no further than needed.

    `local_bytes` are what the local log has and the archive has not (see `local_only_bytes`); `log_start_offset` is where the
    log is to start at least; `is_pinned` says what a reader still needs. Raises what reading a page raises.
    """
    manifest = entries.manifest
    start = max(manifest.log_start_offset, log_start_offset)
    over = 0 if policy.retention_bytes is None else manifest.log_bytes + local_bytes - policy.retention_bytes
    cuts = _cuts(entries, start, policy, now_ms, over)
    if any(cut.reason is Reason.retention_bytes for cut in cuts):
        # Overlaps were counted twice: what is really there is asked of every entry only where it makes a difference.
        counted = sum(size for _, size in _counted(entries, start))
        over += counted - manifest.log_bytes
        cuts = _cuts(entries, start, policy, now_ms, over)
    late = [d for d in manifest.deleting if now_ms - d.since_ms >= policy.delete_delay_ms]
    due = tuple(d for d in late if not is_pinned(d.item))
    end = max((cut.end for cut in cuts), default=start)
    waiting = len(manifest.deleting) - len(late)
    return RetentionPlan(manifest, policy, max(start, end), cuts, due, waiting, len(late) - len(due))


def local_only_bytes(manifest: Manifest, segments: Iterable[LocalBytes]) -> int:
    """The bytes of the local log's offsets that are in no entry and not below the log start offset."""
    missing = [(g.start, g.end) for g in manifest.gaps]
    return sum(_share(s, missing, manifest.end_offset) for s in segments if s.end_offset > s.base_offset)


def _share(segment: LocalBytes, missing: list[tuple[int, int]], archived_end: int) -> int:
    ranges = [*missing, (archived_end, max(archived_end, segment.end_offset))]
    offsets = sum(max(0, min(end, segment.end_offset) - max(start, segment.base_offset)) for start, end in ranges)
    return segment.size * offsets // (segment.end_offset - segment.base_offset)


def _cuts(entries: Entries, start: int, policy: Policy, now_ms: int, over: int) -> tuple[Cut, ...]:
    """What goes where the log has `over` bytes too many."""
    cuts: list[Cut] = []
    for entry, size in _counted(entries, start):
        reason = _reason(entry, size, start, entries.manifest.leader_epochs, policy, now_ms, over)
        if reason is None:
            break
        over = max(0, over - size)
        if cuts and cuts[-1].reason is reason:
            last = cuts.pop()
            cuts.append(Cut(reason, last.start, max(last.end, entry.end_offset), last.segments + 1, last.bytes + entry.log_size))
        else:
            cuts.append(Cut(reason, entry.base_offset, entry.end_offset, 1, entry.log_size))
    return tuple(cuts)


def _reason(
    entry: SegmentEntry, size: int, start: int, lineage: tuple[EpochEntry, ...], policy: Policy, now_ms: int, over: int
) -> Reason | None:
    if entry.end_offset <= start:
        return Reason.log_start_offset
    if _is_unreferenced(entry, lineage):
        return Reason.leader_epochs
    if policy.retention_ms is not None and _written_ms(entry) < now_ms - policy.retention_ms:
        return Reason.retention_ms
    return Reason.retention_bytes if over > 0 and size <= over else None


def _counted(entries: Entries, start: int) -> Iterator[tuple[SegmentEntry, int]]:
    """The entries, and how many bytes of each are of offsets that no entry before it has, and not below `start`."""
    covered = start
    for entry in entries:
        if _is_unreferenced(entry, entries.manifest.leader_epochs):
            yield entry, 0
            continue
        own = max(0, entry.end_offset - max(entry.base_offset, covered))
        covered = max(covered, entry.end_offset)
        yield entry, entry.log_size * own // (entry.end_offset - entry.base_offset)


def _is_unreferenced(entry: SegmentEntry, lineage: tuple[EpochEntry, ...]) -> bool:
    """Whether all of its leader epochs, if it has any, are older than the lineage's first."""
    return bool(lineage and entry.leader_epochs) and entry.leader_epochs[-1].epoch < lineage[0].epoch


def _written_ms(entry: SegmentEntry) -> int:
    """Its greatest timestamp; where messages have none, when it was archived (Kafka asks when the file was last written)."""
    return entry.max_timestamp_ms if entry.max_timestamp_ms >= 0 else entry.copied_at_ms
