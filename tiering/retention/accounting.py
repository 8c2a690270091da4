"""The entries of a manifest as retention counts them: in order, each offset once, with pages unread if possible."""

from dataclasses import dataclass, field

from remote.manifest.entries import Entries
from remote.manifest.model import Item, Manifest, PageRef
from remote.manifest.segment_entry import SegmentEntry


@dataclass(slots=True)
class InOrder:
    """Iterates over the entries from the oldest on, `item` by item: an entry, or a page with all entries in it.

    Offsets below `start` and those of an earlier entry do not count, nor does an entry whose leader epochs are no longer in use.
    Raises what reading a page raises.
    """

    entries: Entries
    start: int
    _pages: list[Item] = field(init=False)
    _inline: list[SegmentEntry] = field(init=False)
    _covered: int = field(init=False)

    def __post_init__(self) -> None:
        self._pages = [*reversed(self.entries.manifest.pages)]
        self._inline = [*reversed(self.entries.manifest.entries)]
        self._covered = self.start

    @property
    def item(self) -> Item | None:
        """The next one, None after the last. Of those that start together the one out of a page comes first."""
        if not self._pages:
            return self._inline[-1] if self._inline else None
        is_paged = not self._inline or self._pages[-1].base_offset <= self._inline[-1].base_offset
        return self._pages[-1] if is_paged else self._inline[-1]

    def own_bytes(self, item: Item) -> int | None:
        """The bytes of `item` that count; None for a page that has to be opened to tell."""
        return self._of_page(item) if isinstance(item, PageRef) else self._of_entry(item)

    def go_on(self, item: Item) -> None:
        """Leaves `item` behind."""
        if isinstance(item, PageRef) or not is_unreferenced(item, self.entries.manifest):
            self._covered = max(self._covered, item.end_offset)
        (self._pages if self._pages and self._pages[-1] is item else self._inline).pop()

    def open_page(self, ref: PageRef) -> None:
        """What stands in the page comes in its place."""
        self._pages.pop()
        self._pages += reversed(self.entries.pages.read(ref))

    def total(self) -> int:
        """The bytes of all that is left that count."""
        total = 0
        while (item := self.item) is not None:
            own = self.own_bytes(item)
            if own is not None:
                total += own
                self.go_on(item)
            elif isinstance(item, PageRef):
                self.open_page(item)
        return total

    def _of_entry(self, entry: SegmentEntry) -> int:
        if is_unreferenced(entry, self.entries.manifest):
            return 0
        own = max(0, entry.end_offset - max(entry.base_offset, self._covered))
        return entry.log_size * own // (entry.end_offset - entry.base_offset)

    def _of_page(self, ref: PageRef) -> int | None:
        if self._inline and self._inline[-1].base_offset < ref.last_base_offset:
            return None  # an entry that came late lies among those of the page
        if ref.end_offset <= self.start:
            return 0
        if ref.bounds is None or ref.bounds.overlaps or ref.base_offset < self._covered:
            return None
        lineage = self.entries.manifest.leader_epochs
        if lineage and 0 <= ref.bounds.least_epoch < lineage[0].epoch and lineage[0].start_offset <= ref.last_base_offset:
            return None
        return ref.log_bytes


def is_unreferenced(entry: SegmentEntry, manifest: Manifest) -> bool:
    """Whether all of its leader epochs, if it has any, are older than the one that the lineage has where the entry starts.

    Then it is of a history that the log has left. Of what lies below its first epoch a lineage says nothing, and that proves
    nothing: a log whose epoch checkpoint was incomplete is archived with the epochs that the checkpoint had.
    """
    lineage = manifest.leader_epochs
    if not lineage or not entry.leader_epochs:
        return False
    is_known = lineage[0].start_offset <= max(entry.base_offset, manifest.log_start_offset)
    return is_known and entry.leader_epochs[-1].epoch < lineage[0].epoch
