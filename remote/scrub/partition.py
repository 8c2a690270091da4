"""Scrubs one partition: its manifests, pages, pins and segment objects, named by a manifest or orphaned."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from local_log.errors import Corrupt, Newer
from remote.keys import PartitionPath
from remote.manifest.chain import chain_of, stored_versions
from remote.manifest.entries import Entries
from remote.manifest.model import NEVER_NAMED_DAYS, Manifest, without_entries
from remote.manifest.pins import Pin, pins_of
from remote.manifest.write_record import as_decided
from remote.scrub.budget import RequestBudget, RequestsExhausted
from remote.scrub.chain import check_chain
from remote.scrub.coverage import CoverageCheck, losses
from remote.scrub.finding import Finding, Kind, not_checked
from remote.scrub.inventory import ListedPartition
from remote.scrub.named_still import is_named_still, not_named_any_more
from remote.scrub.objects import check_objects, foreign, orphan
from remote.scrub.settings import ScrubSettings
from remote.scrub.steps import PartitionEnd, ScrubStep, SegmentToRead
from remote.store.api import ObjectMeta

ASKED_MAX: Final = 20
"""For so many missing objects of a partition the newest manifest is read again; with more of them it is no coincidence."""


@dataclass(frozen=True, slots=True)
class PartitionScrub:
    """Scrubs partitions with these settings, at the time `now_ms`."""

    store: RequestBudget
    settings: ScrubSettings
    now_ms: int

    def walk(self, listed: ListedPartition) -> Iterator[ScrubStep]:
        """The findings about a partition, those of the newest manifest first, and the segments that a deep scrub reads.

        Raises Spent (listing), Unavailable.
        """
        path = listed.path
        yield from map(foreign, listed.foreign)
        if not listed.versions:
            swept = f"a sweep deletes it {NEVER_NAMED_DAYS} days after it was made"
            yield from (orphan(meta, self.now_ms, swept) for meta in (*listed.pages.values(), *listed.segments))
            return
        unnamed = dict(listed.pages)
        read, is_opened = 0, False
        try:
            chain = chain_of(self.store, path, listed.versions)
            yield from (orphan(stored.meta, self.now_ms) for stored in listed.versions[len(chain) :])
            for one in check_chain(self.store, path, [stored.version for stored in chain]):
                if isinstance(one, Finding):
                    yield self._unless_swept(path, one, [stored.version for stored in chain])
                    continue
                read += 1
                if one.version == listed.newest:
                    is_opened = True
                    yield from self._check_newest(one, listed, unnamed)
                self._name_pages(one, unnamed)
        except RequestsExhausted:
            left = len(listed.versions) - read
            yield not_checked(path, f"{left} manifests, and the pages and objects that they name: the request limit is reached")
            return
        yield from self._check_pins(listed)
        if not is_opened:
            yield not_checked(path, "its objects, since the newest manifest cannot be read")
        yield from (orphan(meta, self.now_ms) for meta in unnamed.values())

    def _check_newest(self, stored: Manifest, listed: ListedPartition, unnamed: dict[str, ObjectMeta]) -> Iterator[ScrubStep]:
        """What readers see of the newest manifest: a write that is decided counts, also if no manifest has taken it in."""
        try:
            newest = as_decided(self.store, stored)
        except (Corrupt, Newer) as e:
            at = (e.file, e.problem, e.position) if isinstance(e, Corrupt) else (listed.path.manifest(listed.newest), str(e))
            yield Finding(Kind.corrupt_manifest, *at)
            unnamed.clear()
            yield not_checked(listed.path, "objects, since the record of a write cannot be read")
            return
        except RequestsExhausted:
            unnamed.clear()
            yield not_checked(listed.path, "its objects: the request limit is reached")
            return
        yield from losses(newest)
        entries = Entries.of(self.store, newest)
        try:
            missing = [name for name in entries.page_names() if unnamed.pop(name, None) is None]
            for number, name in enumerate(missing, 1):
                lost = Finding(Kind.missing_object, listed.path.page(name), "the manifest refers to it, but it does not exist")
                yield lost if number > ASKED_MAX else self._unless_deleted(listed.path, lost)
            if not missing:
                yield from self._check_segments(entries, listed)
                return
        except Corrupt as e:
            is_missing = e.file not in {meta.key for meta in listed.pages.values()}
            damage = Finding(Kind.missing_object if is_missing else Kind.corrupt_manifest, e.file, e.problem, e.position)
            yield self._unless_deleted(listed.path, damage)
        except Newer as e:
            yield Finding(Kind.corrupt_manifest, listed.path.manifest(listed.newest), str(e))
        except RequestsExhausted:
            unnamed.clear()
            yield not_checked(listed.path, "pages of entries, or the rest of its objects: the request limit is reached")
            return
        unnamed.clear()  # what the unreadable page names is unknown
        yield not_checked(listed.path, "objects, since a page of entries cannot be read")

    def _check_segments(self, entries: Entries, listed: ListedPartition) -> Iterator[ScrubStep]:
        manifest = entries.manifest
        expired = (e for d in manifest.deleting for e in entries.deleting(d))
        deleting = frozenset(name for e in expired for name in (e.log_name, e.aux_name))
        coverage, alone = CoverageCheck(manifest), without_entries(manifest)
        missing = 0
        for one in check_objects(listed.path, entries, deleting, listed.segments, self.now_ms):
            if isinstance(one, Finding):
                missing += one.kind is Kind.missing_object
                is_asked = one.kind is Kind.missing_object and missing <= ASKED_MAX
                yield self._unless_deleted(listed.path, one) if is_asked else one
                continue
            yield from coverage.add(one.entry)
            if self.settings.deep and one.is_present and self.settings.includes(one.entry.segment_id):
                yield SegmentToRead(alone, one.entry)
        yield PartitionEnd(listed.path)

    def _unless_deleted(self, path: PartitionPath, finding: Finding) -> Finding:
        """The finding, unless its object is missing because it was deleted since the manifest was read, or was listed."""
        name = finding.key.rpartition("/")[2]
        with suppress(RequestsExhausted):
            if not is_named_still(self.store, path, name):
                return not_checked(path, not_named_any_more(name))
        return finding

    def _unless_swept(self, path: PartitionPath, finding: Finding, versions: Sequence[int]) -> Finding:
        """The finding, unless a writer that slept has put another version under a key that a sweep freed after the listing."""
        if finding.kind is Kind.broken_chain and finding.key in map(path.manifest, versions):
            with suppress(RequestsExhausted):
                if finding.key not in {path.manifest(stored.version) for stored in stored_versions(self.store, path)}:
                    return not_checked(path, f"{finding.key}: a sweep has deleted this version meanwhile")
        return finding

    def _check_pins(self, listed: ListedPartition) -> Iterator[Finding]:
        """Dangling pins: expired, unreadable, or naming a version that does not exist."""
        if not listed.pins:
            return
        try:
            pins = pins_of(self.store, listed.path, self.now_ms)
        except RequestsExhausted:
            yield not_checked(listed.path, f"{len(listed.pins)} pins: the request limit is reached")
            return
        for pin in pins.expired:
            yield self._dangling(listed.path, pin, "it has expired and was not released; it protects nothing any more")
        for pin in pins.live:
            if pin.version > listed.newest:
                yield self._dangling(listed.path, pin, f"it names version {pin.version}, and {listed.newest} is the newest")
        for error in pins.damaged:
            key = error.file if isinstance(error, Corrupt) else listed.path.pins
            yield Finding(Kind.dangling_pin, key, f"it cannot be read, so retention keeps everything: {error}")

    def _dangling(self, path: PartitionPath, pin: Pin, problem: str) -> Finding:
        age_ms = max(0, self.now_ms - pin.created_at_ms)
        return Finding(Kind.dangling_pin, path.pin(pin.id), f"of {pin.owner}: {problem}", age_ms=age_ms)

    def _name_pages(self, manifest: Manifest, unnamed: dict[str, ObjectMeta]) -> None:
        """Removes the pages that a version names from those that may be orphaned."""
        if not unnamed:
            return
        try:
            for name in Entries.of(self.store, manifest).page_names():
                unnamed.pop(name, None)
        except (Corrupt, Newer):
            unnamed.clear()  # a page that only an older version names may be gone, and with it the names of those below it
