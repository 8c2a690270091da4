"""The entries of one manifest version, wherever they stand: a page is read when it is come to, and only if it is needed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import merge

from local_log.errors import Missing, NotFound
from remote.keys import PartitionPath
from remote.manifest.model import Deleting, Item, Manifest, PageRef
from remote.manifest.segment_entry import SegmentEntry
from remote.store.api import ObjectReader

PAGES_MAX = 8


class PageNotHeld(Exception):
    """A page would have to be read: somebody has to wait for it."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of one partition, read once each; keeps the last `pages_max` of them (a page is about 1 MB when it is read).

    Without `reads` one that is not kept is PageNotHeld.
    """

    store: ObjectReader
    path: PartitionPath
    pages_max: int = PAGES_MAX
    reads: bool = True
    _kept: dict[str, tuple[Item, ...]] = field(default_factory=dict, repr=False, compare=False)

    def read(self, ref: PageRef) -> tuple[Item, ...]:
        """The items of a page. Raises Missing, Corrupt, Newer, Unavailable, PageNotHeld."""
        items = self._kept.pop(ref.name, None)
        if items is None:
            if not self.reads:
                raise PageNotHeld
            items = self._fetched(ref)
        self._kept[ref.name] = items
        while len(self._kept) > self.pages_max:
            self._kept.pop(next(iter(self._kept)), None)
        return items

    def _fetched(self, ref: PageRef) -> tuple[Item, ...]:
        from remote.manifest import pages  # most manifests have no page: a start that reads them does not wait for Arrow

        key = self.path.page(ref.name)
        try:
            return pages.decode(self.store.get(key), ref, key)
        except NotFound as e:
            problem = (
                f"the manifest names the page, and it is not there; open the newest manifest, or restore it from a copy ({e})"
            )
            raise Missing(problem, file=key) from e


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of `manifest`, read through `pages`. All iterators are lazy and in the order of base offsets.

    What they raise is what reading a page raises: Corrupt, Newer, Unavailable. Entries in `deleting` are
    none of them; entries that lie wholly below the log start offset, and that no retention has moved yet, are.
    """

    manifest: Manifest
    pages: Pages

    @classmethod
    def of(cls, store: ObjectReader, manifest: Manifest, *, pages_max: int = PAGES_MAX) -> "Entries":
        """The entries of a manifest that lies in `store`."""
        return cls(manifest, Pages(store, manifest.path, pages_max))

    def of_held_pages(self) -> "Entries":
        """The same, whose iterators raise PageNotHeld instead of reading a page."""
        return replace(self, pages=replace(self.pages, reads=False))

    def __iter__(self) -> Iterator[SegmentEntry]:
        """All entries; each page is read once."""
        return self._where(lambda item: True)

    def overlapping(self, start: int, end: int) -> Iterator[SegmentEntry]:
        """Those that have offsets of `[start, end)`."""
        return self._where(lambda item: item.base_offset < end and item.end_offset > start)

    def as_late_as(self, timestamp_ms: int, start: int, end: int) -> Iterator[SegmentEntry]:
        """Those of `[start, end)` whose greatest timestamp is `timestamp_ms` or later."""
        return self._where(
            lambda item: item.max_timestamp_ms >= timestamp_ms and item.base_offset < end and item.end_offset > start
        )

    def newest(self) -> SegmentEntry | None:
        """The one that reaches furthest, None where there is none."""
        return self._greatest(lambda item: item.end_offset)

    def latest(self) -> SegmentEntry | None:
        """The first with the greatest timestamp, None where there is none."""
        return self._greatest(lambda item: item.max_timestamp_ms)

    def holds(self, entry: SegmentEntry) -> bool:
        """Whether this very copy is among them."""
        if any(e.segment_id == entry.segment_id for e in self.manifest.entries):
            return True
        return any(e.segment_id == entry.segment_id for e in self.overlapping(entry.base_offset, entry.end_offset))

    def deleting(self, item: Deleting) -> Iterator[SegmentEntry]:
        """The entries that an item of `manifest.deleting` stands for."""
        return self._below((item.item,), lambda item: True)

    def page_names(self, items: Iterable[Item] | None = None) -> Iterator[str]:
        """The names of all pages that the manifest names, those in `deleting` too, or of those that `items` name.

        Pages of level 0 are named without being read.
        """
        for item in (*self.manifest.pages, *(d.item for d in self.manifest.deleting)) if items is None else items:
            if isinstance(item, PageRef):
                yield item.name
                if item.level > 0:
                    yield from self.page_names(self.pages.read(item))

    def _where(self, wanted: Callable[[Item], bool]) -> Iterator[SegmentEntry]:
        own = self._below(self.manifest.entries, wanted)
        paged = self._below(self.manifest.pages, wanted)
        return merge(paged, own, key=lambda e: e.base_offset)

    def _below(self, items: Iterable[Item], wanted: Callable[[Item], bool]) -> Iterator[SegmentEntry]:
        for item in items:
            if not wanted(item):
                continue
            if isinstance(item, PageRef):
                yield from self._below(self.pages.read(item), wanted)
            else:
                yield item

    def _greatest(self, measure: Callable[[Item], int]) -> SegmentEntry | None:
        """The first entry of the greatest measure: an item's is that of the greatest below it."""
        greatest = max((measure(item) for item in self.manifest.items), default=None)
        return None if greatest is None else next(self._where(lambda item: measure(item) == greatest))
