"""Which parts of which segments answer a read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_manifests import entry, manifest

from local_log.errors import OffsetOutOfRange
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.read.plan import MissingRange, Span, fetch_plan

END = 40


def plan(some: Manifest, start: int, end: int, *, fail_on_data_loss: bool = True) -> tuple[Span, ...]:
    """The plan from all entries, which has to be the one from those that overlap."""
    overlapping = (e for e in some.entries if e.base_offset < end and e.end_offset > start)
    found = [fetch_plan(some, e, start, end, fail_on_data_loss=fail_on_data_loss) for e in (some.entries, overlapping)]
    assert found[0] == found[1]
    return found[0]


def planned(spans: tuple[Span, ...]) -> list[tuple[SegmentEntry, int]]:
    return [(span.entry, offset) for span in spans for offset in range(span.start, span.end)]


def ranges(spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


@st.composite
def some_manifest(draw: st.DrawFn) -> Manifest:
    segments = draw(st.lists(st.tuples(st.integers(0, END), st.integers(1, 12)), max_size=6))
    start = draw(st.integers(0, 8))
    entries = [entry(base, base + length) for base, length in segments if base + length > start]
    return manifest(*entries, log_start_offset=start)


def by_hand(some: Manifest, start: int, end: int) -> list[tuple[SegmentEntry, int]]:
    """Each offset from the first entry that has it."""
    found = ((next((e for e in some.entries if e.base_offset <= o < e.end_offset), None), o) for o in range(start, end))
    return [(e, o) for e, o in found if e is not None]


@settings(max_examples=100, deadline=None)
@given(some_manifest(), st.integers(1, END))
def test_each_offset_comes_once_and_from_the_segment_that_starts_first(some: Manifest, length: int) -> None:
    for start in range(some.log_start_offset, some.end_offset + 1):
        end = min(start + length, some.end_offset)
        spans = plan(some, start, start + length, fail_on_data_loss=False)
        assert planned(spans) == by_hand(some, start, end)
        assert all(span.start < span.end for span in spans)


@settings(max_examples=100, deadline=None)
@given(some_manifest(), st.integers(1, END))
def test_a_read_that_would_leave_out_an_offset_is_refused(some: Manifest, length: int) -> None:
    for start in range(some.log_start_offset, some.end_offset + 1):
        end = min(start + length, some.end_offset)
        have = by_hand(some, start, end)
        missing = sorted(set(range(start, end)) - {offset for _, offset in have})
        if not missing:
            assert planned(plan(some, start, start + length)) == have
            continue
        with pytest.raises(MissingRange) as raised:
            plan(some, start, start + length)
        first = next(g for g in some.gaps if g.start <= missing[0] < g.end)
        assert (raised.value.start, raised.value.end) == (missing[0], min(first.end, end))
        assert raised.value.reason == first.reason


A, B, C = entry(10, 20), entry(20, 30), entry(40, 50)
SOME = manifest(A, B, C, log_start_offset=10, reason="refused: bad CRC")


def test_a_read_over_several_segments_is_cut_at_both_ends() -> None:
    assert plan(SOME, 15, 25) == (Span(A, 15, 20), Span(B, 20, 25))
    assert plan(SOME, 10, 30) == (Span(A, 10, 20), Span(B, 20, 30))
    assert plan(SOME, 41, 1_000) == (Span(C, 41, 50),)


def test_a_read_of_nothing_has_no_spans() -> None:
    assert plan(SOME, 15, 15) == plan(SOME, 15, 12) == ()
    assert plan(SOME, 50, 60) == ()
    assert plan(manifest(log_start_offset=7), 7, 100) == ()


@pytest.mark.parametrize("start", [-1, 0, 9, 51, 2**62])
def test_an_offset_outside_the_archive_is_out_of_range(start: int) -> None:
    for allowed in (True, False):
        with pytest.raises(OffsetOutOfRange) as raised:
            plan(SOME, start, start + 5, fail_on_data_loss=allowed)
        error = raised.value
        assert (error.partition, error.offset, error.start, error.end) == ("topic-0", start, 10, 50)


@pytest.mark.parametrize(
    ("start", "end", "missing"),
    [
        (25, 45, (30, 40)),
        (10, 50, (30, 40)),
        (25, 35, (30, 35)),
        (25, 31, (30, 31)),
        (35, 45, (35, 40)),
        (39, 41, (39, 40)),
        (32, 35, (32, 35)),
        (30, 40, (30, 40)),
    ],
)
def test_a_missing_range_is_named_with_its_reason_cut_to_what_was_asked_for(
    start: int, end: int, missing: tuple[int, int]
) -> None:
    with pytest.raises(MissingRange) as raised:
        plan(SOME, start, end)
    error = raised.value
    assert (error.partition, error.start, error.end, error.reason) == ("topic-0", *missing, "refused: bad CRC")
    assert f"read from {missing[1]} on" in str(error)


def test_a_range_that_is_missing_where_the_log_starts_is_named() -> None:
    some = manifest(entry(10, 20), log_start_offset=0)
    for start, end in ((0, 20), (5, 15), (0, 10), (3, 4)):
        with pytest.raises(MissingRange) as raised:
            plan(some, start, end)
        assert (raised.value.start, raised.value.end) == (start, min(end, 10))


def test_a_gap_outside_of_what_is_asked_for_is_no_matter() -> None:
    assert ranges(plan(SOME, 10, 30)) == [(10, 20), (20, 30)]
    assert ranges(plan(SOME, 40, 50)) == [(40, 50)]


def test_where_data_loss_is_allowed_the_gap_is_left_out() -> None:
    assert ranges(plan(SOME, 15, 45, fail_on_data_loss=False)) == [(15, 20), (20, 30), (40, 45)]
    assert ranges(plan(SOME, 32, 45, fail_on_data_loss=False)) == [(40, 45)]
    assert ranges(plan(SOME, 32, 35, fail_on_data_loss=False)) == []
    assert ranges(plan(SOME, 15, 35, fail_on_data_loss=False)) == [(15, 20), (20, 30)]


def test_a_segment_that_lies_within_others_is_not_read() -> None:
    wide, inner, tail = entry(0, 30), entry(5, 10), entry(25, 40)
    assert plan(manifest(wide, inner, tail), 0, 40) == (Span(wide, 0, 30), Span(tail, 30, 40))
