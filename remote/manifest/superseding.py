"""Supersedes entries by those of the same log after the log cleaner has compacted it. Pure, except that `read` loads pages.

    archived  |---------|---------|------|---------|      entries as they were copied before the log was cleaned
    cleaned   |---------------|   empty  |---------|      one segment of the first two, and one without a batch
    after     |---------------|~~~~~~~~~~|---------|      a new entry, a gap of kind COMPACTED, the last as it was

The entries that are superseded wait in `deleting`, as those do that retention gives up: who reads an older version can end. Where
one cleaned segment takes the place of very many, they wait in pages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.ranges import Range, clipped, joined, uncovered
from remote.manifest import invariants, pages
from remote.manifest.gaps import COMPACTED, NO_BATCH, Gap
from remote.manifest.history import merged_lineage
from remote.manifest.model import LIMITS, Item, Manifest, PageRef, item_id, refuse_deleted
from remote.manifest.paging import NewPage, ReadPage
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.transitions import Missing, parts_outside, waiting

ONE_BY_ONE_MAX: Final = 16
"""How many entries of one step wait to be deleted as they are; more than that wait in pages of `Limits.page_entries`."""


@dataclass(frozen=True, slots=True)
class Superseding:
    """The entries that go, and the pages without them, to be written before the commit; `refs` by the names of those before.

    `waiting` are pages of the entries that go, which are to be written, too, where these are many. A ref is None where nothing is
    left of its page. It was planned on the version with the put id `planned_on`, and applies only
    to that version (see `transforms.rotation`).
    """

    planned_on: str
    gone: tuple[SegmentEntry, ...]
    refs: Mapping[str, PageRef | None]
    made: tuple[NewPage, ...]
    waiting: tuple[NewPage, ...] = ()

    def applied(
        self,
        manifest: Manifest,
        entries: Iterable[SegmentEntry],
        lineage: tuple[EpochEntry, ...],
        now_ms: int,
        *,
        deleting_max: int = LIMITS.deleting_max,
    ) -> Manifest:
        """The manifest with `entries` in place of those that go; unchanged if another writer has committed since the plan.

        What none of them covers any more was emptied. `lineage` are the leader epochs of the log up to where the entries end.
        Raises Conflict where they contradict the archive's, TopicDeleted, and Invalid if `deleting` would be too long.
        """
        refuse_deleted(manifest)
        if manifest.put_id != self.planned_on:
            return manifest
        refuse_too_many(manifest, len(self.gone), deleting_max)
        given_up: tuple[Item, ...] = tuple(page.ref for page in self.waiting) or self.gone
        new = tuple(sorted(entries, key=lambda e: (e.base_offset, e.end_offset)))
        ids = {e.segment_id for e in self.gone}
        end = max(e.end_offset for e in (*new, *self.gone))
        batches = tuple(epoch for entry in new for epoch in entry.leader_epochs)
        left = [e for e in manifest.entries if e.segment_id not in ids]
        refs = (self.refs.get(ref.name, ref) for ref in manifest.pages)
        moved = replace(
            manifest,
            entries=tuple(sorted((*left, *new), key=lambda e: (e.base_offset, e.end_offset))),
            pages=tuple(ref for ref in refs if ref is not None),
            deleting=waiting(manifest, given_up, now_ms),
            leader_epochs=merged_lineage(manifest, lineage, end, batches),
            losses=tuple(part for loss in manifest.losses for part in _outside(loss, new)),
        )
        after = replace(moved, gaps=self._gaps(moved, new, now_ms))
        self._check_pages(after)
        return after

    def _gaps(self, moved: Manifest, new: tuple[SegmentEntry, ...], now_ms: int) -> tuple[Gap, ...]:
        """Those that no new entry fills, and what was emptied."""
        known = [part for gap in moved.gaps for part in _outside(gap, new)]
        covered = sorted(self._covered(moved.items, [(gap.start, gap.end) for gap in known]))
        had = clipped(joined(sorted((e.base_offset, e.end_offset) for e in self.gone)), moved.log_start_offset, moved.end_offset)
        emptied = [Gap(a, b, NO_BATCH, now_ms, COMPACTED) for start, end in had for a, b in uncovered(covered, start, end)]
        ledger: list[Gap] = []
        for gap in sorted((*known, *emptied), key=lambda gap: gap.start):
            if ledger and ledger[-1].end == gap.start and ledger[-1].is_of_compaction and gap.is_of_compaction:
                ledger[-1] = replace(ledger[-1], end=gap.end)
            else:
                ledger.append(gap)
        return tuple(ledger)

    def _covered(self, items: Iterable[Item], gaps: list[Range]) -> Iterator[Range]:
        """What the items cover; a page that was not read is solid but for the gaps of the ledger."""
        made = {page.ref.name: page.items for page in self.made}
        for item in items:
            if item_id(item) in made:
                yield from self._covered(made[item_id(item)], gaps)
            elif isinstance(item, PageRef):
                yield from uncovered(
                    (gap for gap in sorted(gaps) if gap[1] > item.base_offset), item.base_offset, item.end_offset
                )
            else:
                yield item.base_offset, item.end_offset

    def _check_pages(self, after: Manifest) -> None:
        for page in self.made:
            entries = [i for i in page.items if isinstance(i, SegmentEntry)]
            if entries:
                invariants.check_page(after, entries, (i for i in after.items if item_id(i) != page.ref.name))


def superseding(
    manifest: Manifest, ids: Iterable[str], within: Range, read: ReadPage, new_id: Callable[[], str], *, hashed: bool = False
) -> Superseding | None:
    """What it takes to give up the entries with these ids, which lie in the offsets `within`; None where one is not there.

    Pages are read only for those that do not stand in the manifest itself. Raises what `read` raises.
    """
    draft = _Draft(frozenset(ids), within, read, new_id, hashed)
    draft.gone.extend(e for e in manifest.entries if e.segment_id in draft.ids)
    refs = {ref.name: draft.without(ref) for ref in manifest.pages}
    if {e.segment_id for e in draft.gone} != draft.ids:
        return None
    gone = tuple(sorted(draft.gone, key=lambda e: (e.base_offset, e.end_offset)))
    return Superseding(manifest.put_id, gone, refs, tuple(draft.made), _in_pages(gone, new_id, hashed))


def refuse_too_many(manifest: Manifest, count: int, deleting_max: int) -> None:
    """Raises Invalid where no `count` entries more can wait to be deleted, in pages where they are many."""
    items = count if count <= ONE_BY_ONE_MAX else -(-count // LIMITS.page_entries)
    if len(manifest.deleting) + items > deleting_max:
        raise Invalid(
            f"{manifest.path}: {len(manifest.deleting)} items wait to be deleted, and {items} more would; there may be "
            f"{deleting_max}. Run tiering expire until fewer wait, then offload again"
        )


def _in_pages(gone: Sequence[SegmentEntry], new_id: Callable[[], str], hashed: bool) -> tuple[NewPage, ...]:
    """The pages in which entries wait to be deleted, none where they wait as they are."""
    if len(gone) <= ONE_BY_ONE_MAX:
        return ()
    runs = (gone[at : at + LIMITS.page_entries] for at in range(0, len(gone), LIMITS.page_entries))
    return tuple(_new_page(0, run, new_id, hashed) for run in runs)


def _new_page(level: int, items: Sequence[Item], new_id: Callable[[], str], hashed: bool) -> NewPage:
    body = pages.encode(level, items)
    return NewPage(pages.ref_of(level, items, body, new_id(), hashed=hashed), body, tuple(items))


@dataclass(frozen=True, slots=True)
class _Draft:
    ids: frozenset[str]
    within: Range
    read: ReadPage
    new_id: Callable[[], str]
    hashed: bool
    gone: list[SegmentEntry] = field(default_factory=list)
    made: list[NewPage] = field(default_factory=list)

    def without(self, ref: PageRef) -> PageRef | None:
        """A page without the entries that go: the same where it has none of them, None where it has no others."""
        start, end = self.within
        if len(self.gone) == len(self.ids) or ref.base_offset >= end or ref.end_offset <= start:
            return ref
        items = self.read(ref)
        left: list[Item] = []
        for item in items:
            if isinstance(item, PageRef):
                below = self.without(item)
                left += [] if below is None else [below]
            elif item.segment_id in self.ids:
                self.gone.append(item)
            else:
                left.append(item)
        if len(left) == len(items) and all(a is b for a, b in zip(left, items, strict=True)):
            return ref
        return self._page(ref.level, left) if left else None

    def _page(self, level: int, items: list[Item]) -> PageRef:
        self.made.append(_new_page(level, items, self.new_id, self.hashed))
        return self.made[-1].ref


def _outside(gap: Missing, entries: Iterable[SegmentEntry]) -> list[Missing]:
    """The parts of a gap or a loss that none of the entries covers."""
    parts = [gap]
    for entry in entries:
        parts = [left for part in parts for left in parts_outside(part, entry.base_offset, entry.end_offset)]
    return parts
