"""Deletes orphan objects, which no manifest names: remains of failed copies and commits, and superseded versions and pages.

A writer may pause between its upload and its commit for longer than any grace time, so the age of an object does not prove that
it is an orphan. If there are candidates, the sweep

    1  lists the objects, and selects old ones that the newest manifest does not name
    2  claims the partition, which fences earlier writers; later writers have not uploaded anything yet
    3  reads the manifest that the claim has committed, and deletes the candidates that it does not name either

If the manifest were read before the listing, an object that is uploaded and committed in between would seem to be an orphan. A
fenced writer must not use its uploads. A partition without a manifest cannot be claimed: its objects are deleted after a month.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from local_log.errors import Corrupt, Newer
from remote.clock import Clock, Ids
from remote.keys import PROBE_PREFIX, PartitionPath, parse_page_name, parse_segment_name
from remote.manifest.chain import StoredVersion, listed_versions
from remote.manifest.entries import Entries
from remote.manifest.model import CLOCK_DIFFERENCE_MS_MAX, NEVER_NAMED_DAYS, Manifest, PageRef, never_archived
from remote.manifest.pins import pins_of
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import claim, load_newest, load_version
from remote.parallel import in_order
from remote.store.api import ObjectMeta, ObjectStore
from remote.store.store_time import At
from tiering.sweep.plan import Garbage, Kind, garbage, is_old, kept_versions, writer_has_finished

T = TypeVar("T")
WINDOW = 1_000
GARBAGE_MAX = 10_000
"""For each kind, in one partition and run; the next run takes the rest."""
VERSIONS_READ_MAX = 16
"""How many versions are read to see which pages they name."""


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What goes of one partition, in this order; `unclaimed` are the last of it, which go only after a claim.

    `newest` is the version that this was planned by, 0 where there is none.
    """

    path: PartitionPath
    newest: int
    garbage: tuple[Garbage, ...]
    unclaimed: tuple[Garbage, ...]
    damaged_pins: tuple[Corrupt | Newer, ...]

    @property
    def all(self) -> tuple[Garbage, ...]:
        """Everything that goes."""
        return (*self.garbage, *self.unclaimed)


def plan(store: ObjectStore, path: PartitionPath, now_ms: int, grace_ms: int) -> SweepPlan:
    """The plan for one partition; only reads. Raises Corrupt, Newer, Unavailable."""
    before_ms = now_ms - grace_ms
    pins = pins_of(store, path, now_ms)
    over = [garbage(Kind.pin, m) for m in store.list(path.pins) if m.key in {path.pin(pin.id) for pin in pins.expired}]
    if pins.damaged:
        return SweepPlan(path, 0, tuple(over), (), pins.damaged)
    stored = load_newest(store, path)
    if stored is None:
        before_ms = min(before_ms, now_ms - NEVER_NAMED_DAYS * 24 * 3_600_000)
        never_named = ((Kind.segment, _old_segments(store, path, before_ms)), (Kind.page, _old_pages(store, path, before_ms)))
        over += [garbage(kind, m) for kind, old in never_named for m in islice(old, GARBAGE_MAX)]
        return SweepPlan(path, 0, tuple(over), (), ())
    newest = stored.manifest
    versions = listed_versions(store, path)
    kept = kept_versions(versions, min((pin.version for pin in pins.live), default=None), before_ms)
    gone = [garbage(Kind.manifest, v.meta) for v in islice(reversed(versions[kept:]), GARBAGE_MAX)]
    pages, risky = _pages(store, path, versions[:kept], before_ms)
    segments = islice(_unnamed_segments(store, newest, before_ms), GARBAGE_MAX)
    unclaimed = (*(garbage(Kind.page, m) for m in risky), *(garbage(Kind.segment, m) for m in segments))
    return SweepPlan(path, newest.version, (*over, *gone, *(garbage(Kind.page, m) for m in pages)), unclaimed, ())


def sweep(due: SweepPlan, store: ObjectStore, clock: Clock, ids: Ids, now_ms: int, *, threads: int = 1) -> Iterator[Garbage]:
    """Deletes what the plan says, and gives each piece as it is gone; `threads` at a time of what is in no order.

    Raises Unavailable, Unknown, Conflict, Fenced (another claim came first): the same command continues from there.
    """
    for piece in due.garbage:
        store.delete(piece.key)
        yield piece
    if not due.unclaimed:
        return

    def gone(piece: Garbage) -> Garbage:
        store.delete(piece.key)
        return piece

    with in_order(gone, still_unnamed(due, store, At(now_ms, clock), ids), threads) as pieces:
        yield from pieces


def still_unnamed(due: SweepPlan, store: ObjectStore, clock: Clock, ids: Ids) -> list[Garbage]:
    """Steps 2 and 3: the candidates that no manifest names and that no earlier writer can name any more."""
    path = due.path
    first = never_archived(path.topic, path.topic_id, path.partition, 0)
    claim(store, first, clock, ids, "sweep")
    stored = load_newest(store, path)
    assert stored is not None
    manifest = stored.manifest
    segments = [piece for piece in due.unclaimed if piece.kind is Kind.segment]
    pages = [piece for piece in due.unclaimed if piece.kind is Kind.page]
    left: list[Garbage] = []
    for window in _windows(segments):
        names = _segment_names(Entries.of(store, manifest), (piece.key.removeprefix(path.segments) for piece in window))
        left += [piece for piece in window if piece.key.removeprefix(path.segments) not in names]
    since = range(due.newest + 1, manifest.version)
    if pages and len(since) <= VERSIONS_READ_MAX:
        named = _page_names(store, [load_version(store, path, version).manifest for version in since] + [manifest])
        left += [piece for piece in pages if piece.key.removeprefix(path.pages) not in named]
    return left


def strays(store: ObjectStore, now_ms: int, grace_ms: int) -> Iterator[Garbage]:
    """Orphans that belong to no partition: uploads that were not completed, and probes. Raises Unavailable."""
    before_ms = now_ms - grace_ms
    for upload in store.abandoned_uploads("", before_ms):
        yield Garbage(Kind.upload, upload.key, 0, upload.started_ms, upload)
    for meta in store.list(PROBE_PREFIX):
        if "/" not in meta.key and is_old(meta, before_ms):
            yield garbage(Kind.probe, meta)


def sweep_stray(store: ObjectStore, piece: Garbage) -> None:
    """Deletes one of `strays`. Raises Unavailable."""
    if piece.upload is None:
        store.delete(piece.key)
    else:
        store.abort_upload(piece.upload)


def _pages(
    store: ObjectStore, path: PartitionPath, kept: Sequence[StoredVersion], before_ms: int
) -> tuple[list[ObjectMeta], list[ObjectMeta]]:
    """The old pages that no kept version names: those that no writer can name any more, and those that a paused writer might."""
    listed = [*_old_pages(store, path, before_ms)]
    if not listed:
        return [], []
    few = len(kept) <= VERSIONS_READ_MAX
    read = kept if few else (kept[0], kept[-1])
    named = _page_names(store, [load_version(store, path, v.version).manifest for v in read])
    unnamed = [m for m in listed if m.key.removeprefix(path.pages) not in named]
    if not few:
        unnamed = [m for m in unnamed if _writer_has_finished(m, kept[-1])]
    finished = [m for m in unnamed if _writer_has_finished(m, kept[0])]
    return finished[:GARBAGE_MAX], [m for m in unnamed if not _writer_has_finished(m, kept[0])][:GARBAGE_MAX]


def _old_pages(store: ObjectStore, path: PartitionPath, before_ms: int) -> Iterator[ObjectMeta]:
    prefix = path.pages
    return (m for m in store.list(prefix) if parse_page_name(m.key.removeprefix(prefix)) and is_old(m, before_ms))


def _old_segments(store: ObjectStore, path: PartitionPath, before_ms: int) -> Iterator[ObjectMeta]:
    prefix = path.segments
    return (m for m in store.list(prefix) if parse_segment_name(m.key.removeprefix(prefix)) and is_old(m, before_ms))


def _writer_has_finished(page: ObjectMeta, version: StoredVersion) -> bool:
    return writer_has_finished(page, version, CLOCK_DIFFERENCE_MS_MAX)


def _page_names(store: ObjectStore, manifests: Iterable[Manifest]) -> set[str]:
    return {name for manifest in manifests for name in Entries.of(store, manifest).page_names()}


def _unnamed_segments(store: ObjectStore, manifest: Manifest, before_ms: int) -> Iterator[ObjectMeta]:
    """The old objects that the manifest does not name; pages are read as the listing goes on."""
    prefix, entries = manifest.path.segments, Entries.of(store, manifest)
    for window in _windows(_old_segments(store, manifest.path, before_ms)):
        names = _segment_names(entries, (m.key.removeprefix(prefix) for m in window))
        yield from (m for m in window if m.key.removeprefix(prefix) not in names)


def _segment_names(entries: Entries, names: Iterable[str]) -> set[str]:
    """The names of all objects that the manifest has, also as being deleted, where those of these names would lie."""
    parsed = [p for name in names if (p := parse_segment_name(name))]
    low, high = min(p[0] for p in parsed), max(p[0] for p in parsed)
    manifest = entries.manifest
    expired = [d.item for d in manifest.deleting]
    waiting = replace(
        manifest,
        pages=tuple(sorted((i for i in expired if isinstance(i, PageRef)), key=lambda ref: ref.base_offset)),
        entries=tuple(sorted((i for i in expired if isinstance(i, SegmentEntry)), key=lambda e: e.base_offset)),
    )
    both = (entries, Entries(waiting, entries.pages))
    return {name for some in both for e in some.overlapping(low, high + 1) for name in (e.log_name, e.aux_name)}


def _windows(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while window := [*islice(iterator, WINDOW)]:
        yield window
