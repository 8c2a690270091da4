"""Whole pages are counted and expire without being read, and the plan is the one that looks at every entry."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore
from hypothesis import given, settings
from hypothesis import strategies as st
from made_manifests import PATH, entry, never_archived

from local_log.errors import Conflict
from local_log.formats.checkpoints import EpochEntry
from remote.manifest import pages
from remote.manifest.entries import Entries
from remote.manifest.model import Item, Limits, Manifest, PageRef
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import segment_copied
from tiering.retention.accounting import InOrder
from tiering.retention.plan import Cut, Policy, Reason, plan_retention

NOW = 1_000_000
SMALL = Limits(inline_max=2, page_entries=2, fan_out=2)


def nobody(_: Item) -> bool:
    return False


def written(entries: list[SegmentEntry], limits: Limits, store: MemoryStore, start: int = 0) -> Manifest:
    """Entries as commits leave them: the older ones in pages."""
    writer = ManifestWriter(store, PATH, FixedClock(), CountingIds(), "w", 0, limits)
    newest = never_archived(PATH.topic, PATH.topic_id, PATH.partition, start)
    for one in entries:
        with suppress(Conflict):  # of another history: nobody archives such a segment
            newest = writer.commit(newest, lambda m, one=one: segment_copied(m, one, (), "lost", 7))
    return newest


def is_left_behind(one: SegmentEntry, manifest: Manifest) -> bool:
    """Whether the lineage has another epoch, a later one, of all that is left of an entry."""
    lineage = manifest.leader_epochs
    older = bool(lineage and one.leader_epochs) and one.leader_epochs[-1].epoch < lineage[0].epoch
    return older and lineage[0].start_offset <= max(one.base_offset, manifest.log_start_offset)


def counted(entries: Entries, start: int) -> Iterator[tuple[SegmentEntry, int]]:
    """Every entry, and how many of its bytes are of offsets that none before it has."""
    covered = start
    for one in entries:
        if is_left_behind(one, entries.manifest):
            yield one, 0
            continue
        own = max(0, one.end_offset - max(one.base_offset, covered))
        covered = max(covered, one.end_offset)
        yield one, one.log_size * own // (one.end_offset - one.base_offset)


def cuts_entry_by_entry(entries: Entries, policy: Policy, start: int, over: int) -> tuple[Cut, ...]:
    """The cuts as a plan made them before pages could be judged as a whole."""
    cuts: list[Cut] = []
    for one, size in counted(entries, start):
        if one.end_offset <= start:
            reason = Reason.log_start_offset
        elif is_left_behind(one, entries.manifest):
            reason = Reason.leader_epochs
        elif policy.retention_ms is not None and one.written_ms < NOW - policy.retention_ms:
            reason = Reason.retention_ms
        elif over > 0 and size <= over:
            reason = Reason.retention_bytes
        else:
            break
        over = max(0, over - size)
        if cuts and cuts[-1].reason is reason:
            last = cuts.pop()
            cuts.append(Cut(reason, last.start, max(last.end, one.end_offset), last.segments + 1, last.bytes + one.log_size))
        else:
            cuts.append(Cut(reason, one.base_offset, one.end_offset, 1, one.log_size))
    return tuple(cuts)


def without_bounds(ref: PageRef) -> PageRef:
    return replace(ref, bounds=None)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.sampled_from([0, 0, 0, 0, -3, -1, 2]),
            st.integers(-1, 40),
            st.integers(1, 50),
            st.integers(-1, 3),
        ),
        max_size=16,
    ),
    st.integers(0, 30),
    st.none() | st.integers(0, 40),
    st.none() | st.integers(0, 400),
    st.integers(0, 90),
    st.integers(0, 2),
    st.sampled_from([0, 0, 5, 20]),
    st.booleans(),
)
@pytest.mark.slow
def test_the_plan_is_the_one_that_looks_at_every_entry(
    segments: list[tuple[int, int, int, int, int]],
    start: int,
    ms: int | None,
    size: int | None,
    local: int,
    first: int,
    first_start: int,
    old: bool,
) -> None:
    """Segments by length, distance to the one before, age (-1 for no timestamps), bytes and epoch (-1 for none)."""
    made, end = [], 0
    for length, distance, age, log_size, epoch in segments:
        base = max(0, end + distance)
        epochs = () if epoch < 0 else (EpochEntry(epoch, base),)
        time = -1 if age < 0 else NOW - age
        made.append(
            entry(base, base + length, max_timestamp_ms=time, copied_at_ms=NOW - 20, log_size=log_size, leader_epochs=epochs)
        )
        end = max(end, base + length)
    store, policy = MemoryStore(), Policy(ms, size)
    newest = replace(written(made, SMALL, store), leader_epochs=(EpochEntry(first, first_start),) if first else ())
    if old:
        newest = replace(newest, pages=tuple(map(without_bounds, newest.pages)))
    entries = Entries.of(store, newest)
    plan = plan_retention(entries, policy, NOW, nobody, local_bytes=local, log_start_offset=start)
    total = sum(own for _, own in counted(entries, start))
    assert InOrder(entries, start).total() == total
    over = 0 if size is None else total + local - size
    assert plan.cuts == cuts_entry_by_entry(entries, policy, start, over)


@pytest.fixture(scope="module")
def paged() -> tuple[MemoryStore, Manifest]:
    """Twelve segments of a hundred bytes, one a hundred ms, in pages of two; the newest two stand in the manifest."""
    store = MemoryStore()
    made = [entry(100 * n, 100 * n + 100, max_timestamp_ms=NOW - 1_200 + 100 * n) for n in range(12)]
    newest = written(made, Limits(inline_max=2, page_entries=2, fan_out=8), store)
    assert len(newest.pages) == 5
    return store, newest


@pytest.mark.parametrize(
    ("policy", "pages_read", "start"),
    [
        (Policy(retention_ms=5_000), 0, 0),  # nothing is old enough, and the page's bounds say so
        (Policy(retention_bytes=1_200), 0, 0),
        (Policy(retention_bytes=1_101), 0, 0),  # too large by less than the first segment
        (Policy(retention_ms=800), 0, 400),  # two whole pages
        (Policy(retention_ms=700), 1, 500),  # and half of the next
        (Policy(retention_ms=0), 0, 1_200),
        (Policy(retention_bytes=750), 0, 400),
        (Policy(retention_bytes=700), 1, 500),
        (Policy(retention_ms=1_000, retention_bytes=650), 1, 500),
    ],
)
def test_a_page_is_read_only_where_its_entries_do_not_all_fare_alike(
    paged: tuple[MemoryStore, Manifest], policy: Policy, pages_read: int, start: int
) -> None:
    store, newest = paged
    door = Door(store)
    plan = plan_retention(Entries.of(door, newest), policy, NOW, nobody)
    assert plan.log_start_offset == start
    assert len({key for _, key in door.calls}) == len(door.calls) == pages_read


def test_pages_below_the_log_start_offset_are_not_read(paged: tuple[MemoryStore, Manifest]) -> None:
    store, newest = paged
    door = Door(store)
    plan = plan_retention(Entries.of(door, newest), Policy(), NOW, nobody, log_start_offset=450)
    assert plan.cuts == (Cut(Reason.log_start_offset, 0, 400, 4, 400),)
    assert [verb for verb, _ in door.calls] == ["get"]  # the one that the new start is in


def test_bounds_are_of_all_entries_below_a_page() -> None:
    entries = [
        entry(0, 10, max_timestamp_ms=50, log_size=7, leader_epochs=(EpochEntry(3, 0),)),
        entry(10, 20, max_timestamp_ms=-1, copied_at_ms=90, leader_epochs=(EpochEntry(2, 0), EpochEntry(4, 15))),
        entry(20, 30, max_timestamp_ms=40, leader_epochs=()),
    ]
    apart = pages.bounds_of(entries)
    assert apart is not None
    assert (apart.overlaps, apart.least_epoch, apart.oldest_ms, apart.youngest_ms, apart.first_log_size) == (False, 3, 40, 90, 7)
    overlapping = pages.bounds_of([*entries, entry(29, 40)])
    assert overlapping is not None
    assert overlapping.overlaps


def test_bounds_of_a_page_of_pages_tell_of_overlaps_between_them_and_are_unknown_where_one_of_them_is() -> None:
    def ref(*of: SegmentEntry) -> PageRef:
        return pages.ref_of(0, of, b"", "a" * 32)

    one, next_one, over = ref(entry(0, 10), entry(10, 20)), ref(entry(20, 30)), ref(entry(19, 30))
    assert pages.bounds_of([one, next_one]) == pages.bounds_of([entry(0, 10), entry(10, 20), entry(20, 30)])
    joined = pages.bounds_of([one, over])
    assert joined is not None
    assert joined.overlaps
    assert pages.bounds_of([one, without_bounds(next_one)]) is None
