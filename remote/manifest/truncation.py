"""Truncates the archive of a partition at a fork, where the log's history diverges. Pure, except that `read` loads pages.

    entries   |---------|---------|------f--|---------|        f  the fork
    after     |---------|---------|                            segments that contain f or start above it are in `deleting`

A segment that contains the fork is removed, also its batches below the fork: these are part of both histories, so they are copied
again from the local log. Kafka truncates a log the same way (`UnifiedLog.truncateTo`), and its leader epochs with
`LeaderEpochFileCache.truncateFromEnd`. Where the archive then ends at a gap, the epochs behind the gap go, too: the log may have
earlier starts of them, or others.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from local_log.errors import Invalid
from local_log.formats.checkpoints import epochs_before
from local_log.formats.primitives import INT64_MAX
from local_log.ranges import uncovered
from remote.manifest import invariants, pages
from remote.manifest.gaps import DIVERGED_MAX, Divergence, Gap, reason_of
from remote.manifest.model import LIMITS, Item, Manifest, PageRef, item_id, missing_ranges
from remote.manifest.paging import NewPage, ReadPage
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.transitions import parts_outside, waiting


@dataclass(frozen=True, slots=True)
class Truncation:
    """The items of a manifest that a truncation keeps and removes, and the pages to be written before the commit.

    It was planned on the version with the put id `planned_on`, and applies only to that version (see `transforms.rotation`).
    """

    planned_on: str
    fork_offset: int
    kept: tuple[Item, ...]
    gone: tuple[Item, ...]
    made: tuple[NewPage, ...]

    def applied(self, manifest: Manifest, kept_id: str, now_ms: int, *, deleting_max: int = LIMITS.deleting_max) -> Manifest:
        """The manifest that ends at the fork or below it; unchanged if another writer has committed since the plan.

        `kept_id` is the id of the topic that keeps the removed segments. Raises Invalid if `deleting` would be longer than
        `deleting_max`.
        """
        if manifest.put_id != self.planned_on:
            return manifest
        if len(manifest.deleting) + len(self.gone) > deleting_max:
            raise Invalid(
                f"{manifest.path}: {len(manifest.deleting)} items wait to be deleted, and {len(self.gone)} more would; there may "
                f"be {deleting_max}. Run tiering expire until fewer wait, then run the same command again"
            )
        start = min((item.base_offset for item in self.gone), default=self.fork_offset)
        divergence = Divergence(self.fork_offset, start, manifest.end_offset, kept_id, now_ms)
        short = replace(
            manifest,
            entries=tuple(i for i in self.kept if isinstance(i, SegmentEntry)),
            pages=tuple(i for i in self.kept if isinstance(i, PageRef)),
            deleting=waiting(manifest, self.gone, now_ms),
            diverged=(*manifest.diverged, divergence)[-DIVERGED_MAX:],
        )
        losses = tuple(left for loss in manifest.losses for left in parts_outside(loss, short.end_offset, INT64_MAX))
        ends_at_gap = any(gap.start == short.end_offset for gap in manifest.gaps)
        epochs = epochs_before(manifest.leader_epochs, short.end_offset if ends_at_gap else self.fork_offset)
        after = replace(short, losses=losses, gaps=self._gaps(short, now_ms), leader_epochs=epochs)
        self._check_pages(after)
        return after

    def _gaps(self, short: Manifest, now_ms: int) -> tuple[Gap, ...]:
        """Those that were there, up to the new end, and what only a segment held that goes."""
        gaps = tuple(left for gap in short.gaps for left in parts_outside(gap, short.end_offset, INT64_MAX))
        covered = sorted((i.base_offset, i.end_offset) for i in short.items if item_id(i) not in {p.ref.name for p in self.made})
        covered += [(e.base_offset, e.end_offset) for page in self.made for e in page.items]
        holes = [Gap(a, b, "", now_ms) for a, b in uncovered(sorted(covered), short.log_start_offset, short.end_offset)]
        known = {(gap.start, gap.end): gap for gap in gaps}
        reason = f"diverged: the segment that held it was of another history from {self.fork_offset} on"
        ledger = sorted((*gaps, *(h for h in holes if (h.start, h.end) not in known)), key=lambda gap: (gap.start, gap.end))
        missing = missing_ranges(replace(short, gaps=tuple(ledger)))
        return tuple(known.get(r) or Gap(*r, _joined(gaps, r, reason), now_ms) for r in missing)

    def _check_pages(self, after: Manifest) -> None:
        for page in self.made:
            entries = [i for i in page.items if isinstance(i, SegmentEntry)]
            if entries:
                invariants.check_page(after, entries, (i for i in after.items if item_id(i) != page.ref.name))


def truncation(
    manifest: Manifest, fork_offset: int, read: ReadPage, new_id: Callable[[], str], *, hashed: bool = False
) -> Truncation:
    """What it takes to give up a history from `fork_offset` on. Raises what `read` raises."""
    draft = _Draft(fork_offset, read, new_id, hashed)
    kept, gone = draft.split(manifest.items)
    return Truncation(manifest.put_id, fork_offset, tuple(kept), tuple(gone), tuple(draft.made))


@dataclass(frozen=True, slots=True)
class _Draft:
    fork_offset: int
    read: ReadPage
    new_id: Callable[[], str]
    hashed: bool
    made: list[NewPage] = field(default_factory=list)

    def split(self, items: Iterable[Item]) -> tuple[list[Item], list[Item]]:
        """The items that end at the fork or below it, and the others; a page of both is made anew."""
        kept: list[Item] = []
        gone: list[Item] = []
        for item in items:
            if item.end_offset <= self.fork_offset:
                kept.append(item)
            elif isinstance(item, PageRef) and item.min_end_offset <= self.fork_offset:
                below, above = self.split(self.read(item))
                kept.append(self._page(item.level, below))
                gone += above
            else:
                gone.append(item)
        return kept, gone

    def _page(self, level: int, items: list[Item]) -> PageRef:
        body = pages.encode(level, items)
        ref = pages.ref_of(level, items, body, self.new_id(), hashed=self.hashed)
        self.made.append(NewPage(ref, body, tuple(items)))
        return ref


def _joined(gaps: tuple[Gap, ...], missing: tuple[int, int], reason: str) -> str:
    start, end = missing
    known = [gap for gap in gaps if gap.start < end and gap.end > start]
    return "; ".join([reason_of(known, start, end), reason]) if known else reason
