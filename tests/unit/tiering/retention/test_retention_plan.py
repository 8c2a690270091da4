"""What expires: by age, by size over both tiers, by the log start offset, by leader epochs; and what waits still."""

from dataclasses import replace
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from hypothesis import given, settings
from hypothesis import strategies as st
from made_manifests import PATH, entry, manifest

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.entries import Entries
from remote.manifest.model import Deleting, Item, Limits, Manifest, never_archived
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import segment_copied
from tiering.retention.plan import Cut, LocalBytes, Policy, Reason, RetentionPlan, local_only_bytes, plan_retention

NOW = 1_000_000
KEEP_ALL = Policy()


def nobody(_: Item) -> bool:
    return False


def planned(of: Manifest, policy: Policy = KEEP_ALL, **more: Any) -> RetentionPlan:
    return plan_retention(Entries.of(MemoryStore(), of), policy, NOW, more.pop("is_pinned", nobody), **more)


def hundreds(*ages_ms: int, **fields: Any) -> Manifest:
    """Segments of a hundred offsets and a hundred bytes, so long ago."""
    return manifest(*(entry(100 * n, 100 * n + 100, max_timestamp_ms=NOW - age) for n, age in enumerate(ages_ms)), **fields)


def going(plan: RetentionPlan) -> list[tuple[Reason, int, int]]:
    return [(cut.reason, cut.start, cut.end) for cut in plan.cuts]


# age


def test_segments_whose_greatest_timestamp_is_older_go_from_the_oldest_on() -> None:
    plan = planned(hundreds(500, 400, 300, 200), Policy(retention_ms=299))
    assert plan.cuts == (Cut(Reason.retention_ms, 0, 300, 3, 300),)
    assert plan.log_start_offset == 300
    assert plan.is_to_commit
    assert not plan.is_empty


def test_a_segment_that_is_just_as_old_as_it_may_be_stays() -> None:
    assert planned(hundreds(300), Policy(retention_ms=300)).is_empty
    assert planned(hundreds(301), Policy(retention_ms=300)).log_start_offset == 100


def test_a_young_segment_keeps_all_after_it() -> None:
    assert planned(hundreds(500, 10, 500), Policy(retention_ms=100)).log_start_offset == 100
    assert planned(hundreds(10, 500, 500), Policy(retention_ms=100)).is_empty


def test_a_time_before_1970_takes_nothing() -> None:
    assert planned(hundreds(NOW), Policy(retention_ms=2 * NOW)).is_empty
    assert planned(hundreds(NOW), Policy(retention_ms=NOW)).is_empty


def test_messages_without_timestamps_are_as_old_as_their_copy() -> None:
    undated = manifest(entry(0, 10, max_timestamp_ms=-1, copied_at_ms=NOW - 50))
    assert planned(undated, Policy(retention_ms=50)).is_empty
    assert planned(undated, Policy(retention_ms=49)).log_start_offset == 10


def test_without_a_limit_nothing_goes() -> None:
    plan = planned(hundreds(NOW, NOW))
    assert (plan.cuts, plan.is_empty, plan.log_start_offset) == ((), True, 0)


# size


@pytest.mark.parametrize(
    ("kept", "start"), [(400, 0), (399, 0), (301, 0), (300, 100), (299, 100), (200, 200), (100, 300), (99, 300), (0, 400)]
)
def test_the_oldest_go_for_as_long_as_what_stays_is_not_smaller_than_it_may_be(kept: int, start: int) -> None:
    plan = planned(hundreds(1, 1, 1, 1), Policy(retention_bytes=kept))
    assert plan.log_start_offset == start
    assert {cut.reason for cut in plan.cuts} <= {Reason.retention_bytes}


def test_what_only_the_local_log_has_counts_and_what_both_have_counts_once() -> None:
    archived = hundreds(1, 1, 1)
    local = [LocalBytes(100, 200, 100), LocalBytes(200, 300, 100), LocalBytes(300, 400, 70), LocalBytes(400, 400, 0)]
    assert local_only_bytes(archived, local) == 70
    assert planned(archived, Policy(retention_bytes=270), local_bytes=70).log_start_offset == 100
    assert planned(archived, Policy(retention_bytes=271), local_bytes=70).is_empty


def test_a_local_segment_that_reaches_over_the_archives_end_or_into_a_gap_counts_for_what_only_it_has() -> None:
    archived = manifest(entry(0, 100), entry(200, 300))
    assert [(g.start, g.end) for g in archived.gaps] == [(100, 200)]
    assert local_only_bytes(archived, [LocalBytes(150, 350, 1_000)]) == 500
    assert local_only_bytes(archived, [LocalBytes(0, 100, 100), LocalBytes(100, 200, 80)]) == 80
    assert local_only_bytes(replace(archived, log_start_offset=150, gaps=()), [LocalBytes(0, 250, 100)]) == 0


def test_an_overlap_is_counted_once() -> None:
    overlapping = manifest(entry(0, 100), entry(50, 150), entry(150, 250))
    assert planned(overlapping, Policy(retention_bytes=151)).is_empty
    assert planned(overlapping, Policy(retention_bytes=150)).log_start_offset == 100
    again = replace(overlapping, log_start_offset=100)
    assert planned(again, Policy(retention_bytes=150)).cuts == (Cut(Reason.log_start_offset, 0, 100, 1, 100),)


def test_what_lies_below_the_log_start_offset_counts_no_more() -> None:
    half = replace(hundreds(1, 1, 1), log_start_offset=50)
    assert planned(half, Policy(retention_bytes=201)).is_empty
    assert planned(half, Policy(retention_bytes=200)).log_start_offset == 100


def test_what_has_gone_by_age_is_not_taken_from_the_size_again() -> None:
    plan = planned(hundreds(500, 500, 1, 1), Policy(retention_ms=100, retention_bytes=200))
    assert going(plan) == [(Reason.retention_ms, 0, 200)]
    plan = planned(hundreds(500, 500, 1, 1), Policy(retention_ms=100, retention_bytes=100))
    assert going(plan) == [(Reason.retention_ms, 0, 200), (Reason.retention_bytes, 200, 300)]


# the log start offset and leader epochs


def test_segments_wholly_below_the_log_start_offset_go_whatever_else_is_kept() -> None:
    plan = planned(hundreds(1, 1, 1), log_start_offset=150)
    assert plan.cuts == (Cut(Reason.log_start_offset, 0, 100, 1, 100),)
    assert plan.log_start_offset == 150
    behind = planned(hundreds(1, 1), log_start_offset=900)
    assert (behind.log_start_offset, going(behind)) == (900, [(Reason.log_start_offset, 0, 200)])


def test_a_log_start_offset_that_is_not_ahead_moves_nothing() -> None:
    plan = planned(replace(hundreds(1, 1), log_start_offset=50), log_start_offset=30)
    assert (plan.log_start_offset, plan.is_empty) == (50, True)


def test_what_an_earlier_run_had_no_room_for_is_planned_again() -> None:
    plan = planned(replace(hundreds(1, 1, 1), log_start_offset=200))
    assert going(plan) == [(Reason.log_start_offset, 0, 200)]
    assert (plan.log_start_offset, plan.is_to_commit) == (200, True)


def epoch_entry(base: int, *epochs: tuple[int, int]) -> SegmentEntry:
    return entry(base, base + 100, leader_epochs=tuple(EpochEntry(*e) for e in epochs))


def test_segments_of_epochs_older_than_the_lineage_go() -> None:
    lineage = (EpochEntry(3, 0), EpochEntry(5, 250))
    of = manifest(epoch_entry(0, (1, 0)), epoch_entry(100, (2, 100), (3, 150)), epoch_entry(200, (3, 200), (5, 250)))
    plan = planned(replace(of, leader_epochs=lineage))
    assert plan.cuts == (Cut(Reason.leader_epochs, 0, 100, 1, 100),)
    assert plan.log_start_offset == 100


@pytest.mark.parametrize(("start", "lineage_start", "left"), [(0, 1, 0), (0, 300, 0), (50, 51, 50), (50, 50, 200), (0, 0, 200)])
def test_a_lineage_says_nothing_of_what_lies_below_its_first_epoch(start: int, lineage_start: int, left: int) -> None:
    """A log whose epoch checkpoint was incomplete when it was archived loses nothing."""
    of = manifest(epoch_entry(0, (1, 0)), epoch_entry(100, (2, 100)), epoch_entry(200, (7, 300)), log_start_offset=start)
    plan = planned(replace(of, leader_epochs=(EpochEntry(7, lineage_start),)))
    assert plan.log_start_offset == left


def test_segments_from_before_there_were_epochs_and_archives_without_a_lineage_stay() -> None:
    assert planned(replace(manifest(epoch_entry(0)), leader_epochs=(EpochEntry(3, 0),))).is_empty
    assert planned(replace(manifest(epoch_entry(0, (1, 0))), leader_epochs=())).is_empty


# what waits


def test_what_has_waited_for_the_delay_goes_unless_a_reader_needs_it() -> None:
    old, needed, young, early = (Deleting(entry(n, n + 1), since) for n, since in enumerate((0, 0, NOW - 9, NOW + 99)))
    of = manifest(log_start_offset=10, deleting=(old, needed, young, early))
    plan = planned(of, Policy(delete_delay_ms=10), is_pinned=lambda item: item is needed.item)
    assert (plan.due, plan.waiting, plan.pinned) == ((old,), 2, 1)
    assert not plan.is_to_commit
    assert not plan.is_empty


# any manifest


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-4, 3), st.integers(0, 40), st.integers(1, 50)), max_size=9),
    st.integers(0, 12),
    st.none() | st.integers(0, 40),
    st.none() | st.integers(0, 200),
    st.integers(0, 60),
)
@pytest.mark.slow
def test_pages_change_no_plan_and_no_plan_takes_more_than_it_may(
    segments: list[tuple[int, int, int, int]], start: int, ms: int | None, size: int | None, local: int
) -> None:
    """Segments by length, distance to the one before, age and size; the same in a manifest alone and in pages of two."""
    store, clock = MemoryStore(), FixedClock()
    writers = [
        ManifestWriter(s, PATH, clock, CountingIds(), "w", 0, limits)
        for s, limits in ((store, Limits(inline_max=2, page_entries=2, fan_out=2)), (MemoryStore(), Limits()))
    ]
    first = never_archived(PATH.topic, PATH.topic_id, PATH.partition, start)
    made, end = [first, first], 0
    for length, distance, age, log_size in segments:
        base = max(0, end + distance)
        one = entry(base, base + length, max_timestamp_ms=NOW - age, log_size=log_size)
        end = max(end, base + length)
        made = [w.commit(first, lambda m, one=one: segment_copied(m, one, (), "lost", 7)) for w in writers]
    policy = Policy(ms, size)
    paged_plan, plan = (
        plan_retention(Entries.of(w.store, m), policy, NOW, nobody, local_bytes=local) for w, m in zip(writers, made, strict=True)
    )
    assert (paged_plan.cuts, paged_plan.log_start_offset) == (plan.cuts, plan.log_start_offset)
    inline = sorted(made[1].entries, key=lambda e: e.base_offset)
    held: dict[int, SegmentEntry] = {}
    for e in inline:
        for offset in range(max(e.base_offset, start), e.end_offset):
            held.setdefault(offset, e)
    kept_young = [e for o, e in held.items() if o < plan.log_start_offset and (ms is None or e.max_timestamp_ms >= NOW - ms)]
    if size is None:
        assert kept_young == []
    by_size = [cut.end for cut in plan.cuts if cut.reason is Reason.retention_bytes]
    if by_size:
        left = sum(
            e.log_size * sum(h is e and o >= by_size[-1] for o, h in held.items()) // (e.end_offset - e.base_offset)
            for e in inline
        )
        assert left + local >= (size or 0)
