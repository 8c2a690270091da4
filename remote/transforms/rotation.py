"""Key rotation: rewraps data keys that another key than the current one has wrapped.

The data key itself stays the same, so no segment object changes. An entry gets a new `key_id` and `wrapped_key`; a page with
such an entry is written again, and so are the pages above it.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from local_log.errors import Corrupt, NoKey, WrongKey
from remote.manifest import pages
from remote.manifest.model import Item, Manifest, PageRef, item_id
from remote.manifest.paging import NewPage, ReadPage
from remote.manifest.segment_entry import SegmentEntry
from remote.transforms.keys import KeyRing

PAGES_PER_STEP_MAX = 16
"""Pages of entries that one commit rewrites: the most that an interrupted rotation has to repeat."""


def is_due(entry: SegmentEntry, key_id: str) -> bool:
    """Whether the entry's data key is wrapped by another key than `key_id`."""
    return entry.encoded is not None and entry.encoded.key_id not in ("", key_id)


def rewrap(entry: SegmentEntry, keys: KeyRing, key_id: str) -> SegmentEntry:
    """The entry with its data key wrapped by `key_id`. Raises NoKey, WrongKey, Corrupt (naming the segment), Unavailable."""
    info = entry.encoded
    if info is None:
        raise AssertionError("an entry that is not encoded is never due")
    try:
        data_key = keys.unwrap(info.key_id, b64decode(info.wrapped_key, validate=True))
    except NoKey as e:
        raise NoKey(e.key_id, e.reason, entry.log_name) from e
    except WrongKey as e:
        raise WrongKey(e.key_id, e.place, entry.log_name) from e
    except ValueError as e:
        raise Corrupt("the wrapped key in its entry is not base64; restore the manifest", file=entry.log_name) from e
    wrapped = b64encode(keys.wrap(key_id, data_key)).decode()
    return replace(entry, encoded=replace(info, key_id=key_id, wrapped_key=wrapped))


@dataclass(slots=True)
class Rotation:
    """The rotation of one partition to `key_id`, one step per commit. `read` reads a page's items, `new_id` names new pages."""

    keys: KeyRing
    key_id: str
    read: ReadPage
    new_id: Callable[[], str]
    pages_per_step: int = PAGES_PER_STEP_MAX
    hashed: bool = False
    """Whether references get the SHA-256 of their pages, because the manifest is signed."""
    _current: set[str] = field(default_factory=set)
    """Names of pages under which no entry is due."""

    def step(self, manifest: Manifest) -> "RotationStep":
        """The next step; without `replacements` the rotation is complete.

        Raises NoKey, WrongKey, Unavailable, and what `read` raises.
        """
        step = RotationStep(manifest.put_id)
        for item in manifest.items:
            before = step.rewrap
            after = self._item(item, step)
            if after is not item:
                step.replacements[item_id(item)] = Replacement(after, step.rewrap - before)
        return step

    def _item(self, item: Item, step: "RotationStep") -> Item:
        if isinstance(item, PageRef):
            return self._page(item, step)
        if not is_due(item, self.key_id):
            return item
        step.rewrap += 1
        return rewrap(item, self.keys, self.key_id)

    def _page(self, ref: PageRef, step: "RotationStep") -> PageRef:
        """The reference, or that of the rewritten page. Once a step is full, further pages are left for the next one."""
        if ref.name in self._current or step.pages_of_entries >= self.pages_per_step:
            return ref
        before = self.read(ref)
        after = tuple(self._item(item, step) for item in before)
        is_bound = ref.sha256 is not None or not self.hashed
        if is_bound and all(a is b for a, b in zip(after, before, strict=True)):
            if step.pages_of_entries < self.pages_per_step:
                self._current.add(ref.name)
            return ref
        body = pages.encode(ref.level, after)
        made = pages.ref_of(ref.level, after, body, self.new_id(), hashed=self.hashed)
        step.made.append(NewPage(made, body, after))
        if ref.level == 0:
            step.pages_of_entries += 1
            self._current.add(made.name)
        return made


@dataclass(frozen=True, slots=True)
class Replacement:
    """The item that replaces an item of a manifest, and how many entries in it were rewrapped."""

    item: Item
    rewrap: int


@dataclass(slots=True)
class RotationStep:
    """The pages to write first, and the replacements of items in the manifest, by id.

    The step was planned on the version with the put id `planned_on`, and only the next version may name its pages: a sweep
    deletes a page that is older than a version which does not name it.
    """

    planned_on: str
    made: list[NewPage] = field(default_factory=list)
    replacements: dict[str, Replacement] = field(default_factory=dict)
    rewrap: int = 0
    pages_of_entries: int = 0

    def applied(self, manifest: Manifest) -> tuple[Manifest, int]:
        """The manifest with the replacements, and the number of rewrapped entries.

        Unchanged if another writer has committed in between: the step is then planned again, with new pages. Entries of a pending
        write that was committed meanwhile are left for the next step.
        """
        if manifest.put_id != self.planned_on:
            return manifest, 0
        found = {item_id(item): self.replacements[item_id(item)] for item in manifest.items if item_id(item) in self.replacements}
        items = [found[item_id(i)].item if item_id(i) in found else i for i in manifest.items]
        entries = tuple(i for i in items if isinstance(i, SegmentEntry))
        refs = tuple(i for i in items if isinstance(i, PageRef))
        return replace(manifest, entries=entries, pages=refs), sum(i.rewrap for i in found.values())
