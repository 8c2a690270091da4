"""Which segments make up one log: each offset once, and cut only where there is no other way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_manifests import entry

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.gaps import Gap
from remote.manifest.segment_entry import SegmentEntry
from remote.segment.stitch import DivergedSegment, Link, MissingOffsets, chain, first_contradiction

LINEAGE = (EpochEntry(0, 0),)


def chained(*ranges: tuple[int, int], start: int = 0, end: int = 10**6, gaps: tuple[Gap, ...] = ()) -> list[object]:
    entries = sorted((entry(*r) for r in ranges), key=lambda e: (e.base_offset, e.end_offset))
    end = min(end, max((e.end_offset for e in entries), default=start))
    return [shown(step) for step in chain(entries, gaps, LINEAGE, start, end)]


def shown(step: Link | MissingOffsets | DivergedSegment) -> object:
    if isinstance(step, Link):
        cut = (step.entry.base_offset, step.entry.end_offset)
        return (step.start, step.end) if step.is_whole else (step.start, step.end, cut)
    return step


def test_segments_that_follow_each_other_stay_whole() -> None:
    assert chained((0, 10), (10, 30), (30, 31)) == [(0, 10), (10, 30), (30, 31)]


def test_of_another_replicas_segments_none_is_used_where_one_replica_has_all() -> None:
    assert chained((0, 100), (50, 150), (100, 200), (150, 250), (200, 300)) == [(0, 100), (100, 200), (200, 300)]


def test_a_segment_that_starts_where_the_one_before_ended_is_preferred_to_one_that_reaches_farther() -> None:
    assert chained((0, 100), (50, 400), (100, 200)) == [(0, 100), (100, 200), (200, 400, (50, 400))]


def test_only_what_the_segment_before_lacks_is_taken_of_one_that_overlaps_it() -> None:
    assert chained((0, 100), (50, 150), (120, 130)) == [(0, 100), (100, 150, (50, 150))]


def test_of_several_that_overlap_the_one_that_reaches_farthest_is_taken() -> None:
    assert chained((0, 100), (50, 150), (60, 400), (90, 200)) == [(0, 100), (100, 400, (60, 400))]


def test_a_copy_of_the_same_offsets_is_left_out() -> None:
    assert chained((0, 100), (0, 100), (0, 50)) == [(0, 100)]


def test_the_first_segment_keeps_what_lies_below_the_logs_start() -> None:
    assert chained((0, 100), (100, 200), start=60) == [(0, 100), (100, 200)]
    assert chained((0, 100), (100, 200), start=100) == [(100, 200)]


def test_the_last_segment_is_cut_at_the_end() -> None:
    assert chained((0, 100), (100, 200), (200, 300), end=150) == [(0, 100), (100, 150, (100, 200))]
    assert chained((0, 100), (100, 200), end=100) == [(0, 100)]
    assert chained((0, 100), end=0) == []


def test_a_hole_has_the_ledgers_reason() -> None:
    gaps = (Gap(100, 200, "refused", 7),)
    assert chained((0, 100), (200, 300), gaps=gaps) == [(0, 100), MissingOffsets(100, 200, "refused"), (200, 300)]
    assert chained((0, 100), (200, 300), end=150, gaps=gaps) == [(0, 100), MissingOffsets(100, 150, "refused")]
    assert chained((20, 30)) == [MissingOffsets(0, 20, "no segment holds them"), (20, 30)]


def test_a_segment_of_another_history_is_left_out_and_named() -> None:
    lineage = (EpochEntry(0, 0), EpochEntry(2, 50))
    stray = entry(40, 80, leader_epochs=(EpochEntry(0, 40), EpochEntry(1, 60)))
    ours = entry(50, 80, leader_epochs=(EpochEntry(2, 50),))
    first = entry(0, 50)
    steps = list(chain((first, stray, ours), (), lineage, 0, 80))
    assert steps == [DivergedSegment(stray, 60), Link(first, 0, 50), Link(ours, 50, 80)]


@pytest.mark.parametrize(
    ("epochs", "offset"),
    [
        ((EpochEntry(0, 0), EpochEntry(2, 50)), None),
        ((EpochEntry(0, 0), EpochEntry(2, 60)), None),  # compaction has left nothing between
        ((EpochEntry(0, 0),), 99),  # its last batch is of epoch 0, where the log has 2
        ((EpochEntry(1, 0), EpochEntry(2, 50)), 0),
        ((EpochEntry(0, 0), EpochEntry(3, 70)), 70),
        ((), None),  # messages of magic 0 and 1 have none
    ],
)
def test_leader_epochs_that_contradict_the_lineage_are_found(epochs: tuple[EpochEntry, ...], offset: int | None) -> None:
    one = entry(0, 100, leader_epochs=epochs)
    assert first_contradiction(one, (EpochEntry(0, 0), EpochEntry(2, 50))) == offset
    assert first_contradiction(one, ()) is None


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15)).map(lambda t: (t[0], t[0] + t[1])), max_size=12)


@given(RANGES, st.integers(0, 20), st.integers(0, 60))
def test_every_offset_that_a_segment_holds_is_in_the_chain_once(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    entries = sorted((entry(*r) for r in ranges), key=lambda e: e.base_offset)
    steps = list(chain(entries, (), LINEAGE, start, end))
    at = start
    for number, step in enumerate(steps):
        assert isinstance(step, Link | MissingOffsets)
        if isinstance(step, Link):
            assert held(step.entry) >= set(range(step.start, step.end))
            assert step.start == at or (number == 0 and step.start == step.entry.base_offset < start)
        else:
            assert step.start == at
            assert all(held(e).isdisjoint(range(step.start, step.end)) for e in entries)
        assert step.end > at
        at = step.end
    assert at == max(start, end)


def held(one: SegmentEntry) -> set[int]:
    return set(range(one.base_offset, one.end_offset))
