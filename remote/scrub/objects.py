"""Compares the listed segment objects with those that the manifest names, by merging both in key order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from remote.keys import PartitionPath
from remote.manifest.segment_entry import SegmentEntry, StoredObject
from remote.scrub.finding import Finding, Kind
from remote.scrub.inventory import is_segment
from remote.store.api import ObjectMeta

GRACE_MS = 24 * 3600 * 1000
"""A younger object that no manifest names may belong to a copy in progress."""


def check_objects(
    path: PartitionPath, entries: Iterable[SegmentEntry], deleting: frozenset[str], listed: Iterable[ObjectMeta], now_ms: int
) -> "Iterator[Finding | ListedSegment]":
    """The findings about the objects, and each entry with whether both of its objects are listed with the right size.

    `entries` are in the order of base offsets, with which the names start, so little of either is held in memory.
    `deleting` are names of expired objects, which may or may not be listed.
    """
    metas = _Listing(listed)
    for _, group in groupby(entries, key=lambda e: e.base_offset):
        same_base = list(group)
        named = {stored.name: stored for e in same_base for stored in (e.stored_log, e.stored_aux)}
        bad: set[str] = set()
        for name in sorted(named):
            for meta in metas.before(path.segment(name)):
                yield from _unnamed(path, meta, deleting, now_ms)
            finding = _compared(path, named[name], metas.take(path.segment(name)))
            if finding is not None:
                bad.add(name)
                yield finding
        for entry in same_base:
            yield ListedSegment(entry, bad.isdisjoint((entry.log_name, entry.aux_name)))
    for meta in metas.rest():
        yield from _unnamed(path, meta, deleting, now_ms)


@dataclass(frozen=True, slots=True)
class ListedSegment:
    """An entry, and whether its objects are listed as the manifest states."""

    entry: SegmentEntry
    is_present: bool


def _compared(path: PartitionPath, stored: StoredObject, meta: ObjectMeta | None) -> Finding | None:
    key = path.segment(stored.name)
    if meta is None:
        return Finding(Kind.missing_object, key, "the manifest refers to it, but it does not exist")
    if meta.size != stored.size:
        return Finding(Kind.wrong_size, key, f"{meta.size} bytes where the manifest states {stored.size}")
    if meta.crc32c is not None and meta.crc32c != stored.crc32c:
        return Finding(Kind.wrong_crc, key, f"the store's CRC-32C is {meta.crc32c:08x}, the manifest's {stored.crc32c:08x}")
    return None


def _unnamed(path: PartitionPath, meta: ObjectMeta, deleting: frozenset[str], now_ms: int) -> Iterator[Finding]:
    if not is_segment(path, meta.key):
        yield foreign(meta)
    elif meta.key.removeprefix(path.segments) not in deleting:
        yield orphan(meta, now_ms)


def foreign(meta: ObjectMeta) -> Finding:
    """The finding about a key that is not in the archive's format."""
    return Finding(Kind.foreign_key, meta.key, "not a key of an archive; move it elsewhere")


def orphan(meta: ObjectMeta, now_ms: int, swept: str = "a sweep deletes it") -> Finding:
    """The finding about an object that no manifest names, with its age if the store states it. `swept` tells when it goes."""
    age_ms = None if meta.modified_ms is None else max(0, now_ms - meta.modified_ms)
    if age_ms is not None and age_ms < GRACE_MS:
        return Finding(Kind.fresh_orphan, meta.key, "no manifest refers to it yet; a copy may be running", age_ms=age_ms)
    return Finding(Kind.orphan, meta.key, f"no manifest refers to it; {swept}", age_ms=age_ms)


class _Listing:
    """A listing in key order, with a view of the next object."""

    def __init__(self, metas: Iterable[ObjectMeta]) -> None:
        self._metas = iter(metas)
        self._next = next(self._metas, None)

    def _taken(self) -> ObjectMeta:
        taken = self._next
        assert taken is not None
        self._next = next(self._metas, None)
        return taken

    def before(self, key: str) -> Iterator[ObjectMeta]:
        """The objects that come before a key."""
        while self._next is not None and self._next.key < key:
            yield self._taken()

    def take(self, key: str) -> ObjectMeta | None:
        """The object under a key, if it is the next."""
        return self._taken() if self._next is not None and self._next.key == key else None

    def rest(self) -> Iterator[ObjectMeta]:
        """The remaining objects."""
        while self._next is not None:
            yield self._taken()
