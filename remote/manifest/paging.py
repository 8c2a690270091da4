"""Keeps a manifest short: what is to be written as pages before the next version is, and how that version then reads.

    too many entries inline            the oldest become a page of level 0
    too many of those came late        those that fall into one page are put there: the page, and those above it, are made anew
    too many refs of a level           the oldest become a page of the next level
    a page reaches over the log start  what lies below it is taken out, to be deleted: at most a page's entries in one step

Pages are never changed: one that is made anew has a new name, and the old one is garbage once no version that is read names it.
Pure but for `read`, which gives the items of a page; the caller writes what was made, and then the manifest.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from remote.manifest import invariants
from remote.manifest.model import Item, Limits, Manifest, PageRef, item_id
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.transitions import waiting

ReadPage = Callable[[PageRef], tuple[Item, ...]]


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page to be written."""

    ref: PageRef
    body: bytes
    items: tuple[Item, ...] = field(repr=False)


def has_below(manifest: Manifest) -> bool:
    """Whether something that lies wholly below the log start offset is not among what is being deleted yet."""
    start = manifest.log_start_offset
    return any(item.end_offset <= start for item in manifest.items) or any(r.min_end_offset <= start for r in manifest.pages)


def is_due(manifest: Manifest, limits: Limits) -> bool:
    """Whether `within_limits` would change the manifest."""
    too_long = len(manifest.entries) > limits.inline_max
    return too_long or (_reaching_over(manifest) is not None and len(manifest.deleting) < limits.deleting_max)


def within_limits(
    manifest: Manifest, read: ReadPage, new_id: Callable[[], str], now_ms: int, limits: Limits
) -> tuple[Manifest, tuple[NewPage, ...]]:
    """The manifest within its limits, and the pages that must be there before it.

    Raises what `read` raises, and Invalid where a page would not be what the ledger of gaps says.
    """
    draft = _Draft(read, new_id, limits, hashed=bool(manifest.signed_by))
    after = draft.trimmed(manifest, now_ms)
    while len(after.entries) > limits.inline_max:
        after = draft.shortened(after)
    after = replace(after, pages=draft.folded(after.pages))
    named = draft.named(after)
    for page in named:
        entries = [i for i in page.items if isinstance(i, SegmentEntry)]
        if entries:
            invariants.check_page(after, entries, (i for i in after.items if item_id(i) != page.ref.name))
    return after, named


def _reaching_over(manifest: Manifest) -> PageRef | None:
    """The first page that is partly below the log start offset."""
    start = manifest.log_start_offset
    return next((ref for ref in manifest.pages if ref.min_end_offset <= start < ref.end_offset), None)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The pages made so far, by name."""

    read: ReadPage
    new_id: Callable[[], str]
    limits: Limits
    hashed: bool
    made: dict[str, NewPage] = field(default_factory=dict)

    def items(self, ref: PageRef) -> tuple[Item, ...]:
        return self.made[ref.name].items if ref.name in self.made else self.read(ref)

    def page(self, level: int, items: Sequence[Item]) -> PageRef:
        from remote.manifest import pages  # as in `entries`: most manifests have no page

        body = pages.encode(level, items)
        ref = pages.ref_of(level, items, body, self.new_id(), hashed=self.hashed)
        self.made[ref.name] = NewPage(ref, body, tuple(items))
        return ref

    def named(self, manifest: Manifest) -> tuple[NewPage, ...]:
        """The pages that the manifest names; others were made on the way."""
        found: list[NewPage] = []
        below = [*manifest.items, *(d.item for d in manifest.deleting)]
        while below:
            item = below.pop()
            if isinstance(item, PageRef) and item.name in self.made:
                found.append(self.made[item.name])
                below += found[-1].items
        return tuple(reversed(found))

    def trimmed(self, manifest: Manifest, now_ms: int) -> Manifest:
        """One page that reaches over the log start offset, without what lies below it."""
        over, count_max = _reaching_over(manifest), self.limits.deleting_max - len(manifest.deleting)
        if over is None or count_max <= 0:
            return manifest
        left, gone = self._split(over, manifest.log_start_offset, count_max)
        refs = tuple(left if ref is over else ref for ref in manifest.pages)
        return replace(manifest, pages=refs, deleting=waiting(manifest, gone, now_ms))

    def _split(self, ref: PageRef, start: int, count_max: int) -> tuple[PageRef, list[Item]]:
        """A page without at most `count_max` of the items that end at or below `start`, and these items.

        An item that is a page across `start` is split the same way.
        """
        items = self.items(ref)
        gone = [i for i in items if i.end_offset <= start][:count_max]
        names = {item_id(i) for i in gone}
        kept = [i for i in items if item_id(i) not in names]
        for at, item in enumerate(kept):
            if isinstance(item, PageRef) and item.min_end_offset <= start < item.end_offset and len(gone) < count_max:
                kept[at], below = self._split(item, start, count_max - len(gone))
                gone += below
                break
        return self.page(ref.level, kept), gone

    def shortened(self, manifest: Manifest) -> Manifest:
        """Fewer entries inline: by a page of the oldest, or, where most came late, by those of them that fall into one page."""
        refs, entries = manifest.pages, manifest.entries
        beyond = [e for e in entries if not refs or e.base_offset >= refs[-1].last_base_offset]
        if len(beyond) > self.limits.page_entries or len(beyond) == len(entries):
            put = beyond[: self.limits.page_entries]
            refs = (*refs, self.page(0, put))
        else:
            paged = {e.segment_id for e in beyond}
            refs, put = self._with(refs, [e for e in entries if e.segment_id not in paged])
        gone = {e.segment_id for e in put}
        return replace(manifest, pages=refs, entries=tuple(e for e in entries if e.segment_id not in gone))

    def _with(self, refs: Sequence[Item], late: list[SegmentEntry]) -> tuple[tuple[PageRef, ...], list[SegmentEntry]]:
        """The refs with the late entries that fall into one page, where at each level most of them fall; and those entries."""
        by_page: dict[int, list[SegmentEntry]] = {}
        known = [r for r in refs if isinstance(r, PageRef)]
        bases = [r.base_offset for r in known]
        for entry in late:
            at = max(0, bisect_right(bases, entry.base_offset) - 1)
            by_page.setdefault(at, []).append(entry)
        at, fitting = max(by_page.items(), key=lambda found: len(found[1]))
        target = known[at]
        if target.level == 0:
            items: list[Item] = sorted((*self.items(target), *fitting), key=lambda i: (i.base_offset, i.end_offset))
            size = self.limits.page_entries
        else:
            inner, fitting = self._with(self.items(target), fitting)
            items, size = [*inner], self.limits.fan_out
        parts = [items] if len(items) <= 2 * size else [items[: len(items) // 2], items[len(items) // 2 :]]
        return (*known[:at], *(self.page(target.level, part) for part in parts), *known[at + 1 :]), fitting

    def folded(self, refs: tuple[PageRef, ...]) -> tuple[PageRef, ...]:
        """No more refs of a level than the fan-out."""
        level, fan_out = 0, self.limits.fan_out
        while any(ref.level >= level for ref in refs):
            same = [at for at, ref in enumerate(refs) if ref.level == level]
            if len(same) > fan_out:
                first = same[0]
                refs = (*refs[:first], self.page(level + 1, refs[first : first + fan_out]), *refs[first + fan_out :])
            else:
                level += 1
        return refs
