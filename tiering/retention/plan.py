"""Which segments of an archived partition expire: pure decisions, as Kafka's RemoteLogManager makes them (RLMExpirationTask).

Segments go from the oldest on, until the first that none of these takes:

    1  it lies wholly below the log start offset, as DeleteRecords has moved it
    2  its leader epochs are all older than those that the archive's lineage has of its offsets: it is of a history that the log
       has left, and no reader can ask for it
    3  its greatest timestamp is more than retention.ms ago
    4  the log without it, both tiers together, is still as large as retention.bytes

Bytes are those of the `.log` files as they were in the local tier. Each offset is counted once: of segments that overlap the one
that starts first has it, and of one that reaches below the log start offset only what lies above counts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from remote.manifest.entries import Entries
from remote.manifest.model import Deleting, Item, Manifest, PageRef, count_of, log_bytes_of
from remote.manifest.paging import has_below
from remote.manifest.segment_entry import SegmentEntry
from tiering.delays import DELETE_DELAY_MS
from tiering.retention.accounting import InOrder, is_unreferenced


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
    `kept_because` says why all of it is kept, "" where nothing else does than the limits.
    """

    retention_ms: int | None = None
    retention_bytes: int | None = None
    delete_delay_ms: int = DELETE_DELAY_MS
    kept_because: str = ""

    @property
    def has_limits(self) -> bool:
        """Whether anything goes by time or size."""
        return self.retention_ms is not None or self.retention_bytes is not None


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

    `planned_at_ms` is when it was planned, as the machine's clock showed it. `waiting` and `pinned` are how many items
    of `manifest.deleting` have to wait still, for the delay and for readers.
    """

    manifest: Manifest
    policy: Policy
    planned_at_ms: int
    log_start_offset: int
    cuts: tuple[Cut, ...]
    due: tuple[Deleting, ...]
    waiting: int
    pinned: int

    @property
    def is_to_commit(self) -> bool:
        """Whether the run has to commit the manifest."""
        return self.log_start_offset > self.manifest.log_start_offset or has_below(self.manifest)

    @property
    def segments(self) -> int:
        """How many segments expire."""
        return sum(cut.segments for cut in self.cuts)

    @property
    def bytes(self) -> int:
        """The bytes of their log files."""
        return sum(cut.bytes for cut in self.cuts)

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
    """The plan for the partition of these entries. A page is read only if its bounds do not decide for all of its entries.

    `local_bytes` are the bytes that only the local log has (see `local_only_bytes`); `log_start_offset` is the least log start
    offset wanted; `is_pinned` says whether a reader still needs an item. Raises what reading a page raises.
    """
    manifest = entries.manifest
    start = max(manifest.log_start_offset, log_start_offset)
    over = 0 if policy.retention_bytes is None else manifest.log_bytes + local_bytes - policy.retention_bytes
    cuts = _cuts(entries, start, policy, now_ms, over)
    if any(cut.reason is Reason.retention_bytes for cut in cuts):
        # Overlaps were counted twice. The exact size is computed only if it makes a difference.
        over += InOrder(entries, start).total() - manifest.log_bytes
        cuts = _cuts(entries, start, policy, now_ms, over)
    late = [d for d in manifest.deleting if now_ms - d.since_ms >= policy.delete_delay_ms]
    due = tuple(d for d in late if not is_pinned(d.item))
    end = max((cut.end for cut in cuts), default=start)
    waiting = len(manifest.deleting) - len(late)
    return RetentionPlan(manifest, policy, now_ms, max(start, end), cuts, due, waiting, len(late) - len(due))


def is_given_up(manifest: Manifest, waiting: Deleting) -> bool:
    """Whether who opens this version reads nothing of what waits to be deleted in a later one."""
    return waiting.item.end_offset <= manifest.log_start_offset or any(d.id == waiting.id for d in manifest.deleting)


def local_only_bytes(manifest: Manifest, segments: Iterable[LocalBytes]) -> int:
    """The bytes of the local log's offsets that are in no entry and not below the log start offset."""
    missing = [(g.start, g.end) for g in manifest.gaps]
    return sum(_share(s, missing, manifest.end_offset) for s in segments if s.end_offset > s.base_offset)


def _share(segment: LocalBytes, missing: list[tuple[int, int]], archived_end: int) -> int:
    ranges = [*missing, (archived_end, max(archived_end, segment.end_offset))]
    offsets = sum(max(0, min(end, segment.end_offset) - max(start, segment.base_offset)) for start, end in ranges)
    return segment.size * offsets // (segment.end_offset - segment.base_offset)


def _cuts(entries: Entries, start: int, policy: Policy, now_ms: int, over: int) -> tuple[Cut, ...]:
    """What goes where the log has `over` bytes too many. A page is opened only where its entries may not all fare alike."""
    cuts: list[Cut] = []
    in_order, judge = InOrder(entries, start), _Judge(entries.manifest, policy, start, now_ms)
    while (item := in_order.item) is not None:
        own = in_order.own_bytes(item)
        if isinstance(item, PageRef):
            reasons = () if own is None else judge.of_page(item, own, over)
            if len(reasons) != 1:
                in_order.open_page(item)
                continue
            reason = reasons[0]
        else:
            reason = judge.of_entry(item, own or 0, over)
        if reason is None:
            break
        in_order.go_on(item)
        over = max(0, over - (own or 0))
        cut = Cut(reason, item.base_offset, item.end_offset, count_of(item), log_bytes_of(item))
        cuts = [*cuts[:-1], _joined(cuts[-1], cut)] if cuts and cuts[-1].reason is reason else [*cuts, cut]
    return tuple(cuts)


def _joined(first: Cut, more: Cut) -> Cut:
    return replace(first, end=max(first.end, more.end), segments=first.segments + more.segments, bytes=first.bytes + more.bytes)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Why an entry, or all entries of a page, go of a log that is to start at `start`."""

    manifest: Manifest
    policy: Policy
    start: int
    now_ms: int

    def of_entry(self, entry: SegmentEntry, size: int, over: int) -> Reason | None:
        """Why an entry goes of which `size` bytes count, where the log has `over` bytes too many; None where it stays."""
        if entry.end_offset <= self.start:
            return Reason.log_start_offset
        if is_unreferenced(entry, self.manifest):
            return Reason.leader_epochs
        if self.policy.retention_ms is not None and entry.written_ms < self.now_ms - self.policy.retention_ms:
            return Reason.retention_ms
        return Reason.retention_bytes if over > 0 and size <= over else None

    def of_page(self, ref: PageRef, size: int, over: int) -> tuple[Reason | None, ...]:
        """What `of_entry` says of every entry of a page of which `size` bytes count; (None,) where the first of them stays.

        More than one, or none, where only they can tell.
        """
        if ref.end_offset <= self.start:
            return (Reason.log_start_offset,)
        if ref.bounds is None:
            return ()
        if self.policy.retention_ms is not None:
            before_ms = self.now_ms - self.policy.retention_ms
            if ref.bounds.youngest_ms < before_ms:
                return (Reason.retention_ms,)
            if ref.bounds.oldest_ms < before_ms:
                return ()
        if ref.bounds.first_log_size > over or over <= 0:
            return (None,)
        return (Reason.retention_bytes,) if size < over else ()
