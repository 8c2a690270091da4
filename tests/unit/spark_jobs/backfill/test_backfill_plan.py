"""What a backfill still has to write: what is asked for without what its target has."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_manifests import entry, manifest

from local_log.errors import OffsetOutOfRange
from remote.manifest.gaps import COMPACTED, Gap
from remote.read.plan import MissingRange, Span
from spark_jobs.backfill.plan import (
    Pack,
    cut,
    digest_of,
    missing,
    packs_of,
    part_of,
    passed_over,
    refuse_other_settings,
    refuse_other_topics,
)
from spark_jobs.common.commit_log import Bounds, Part, Settings, following, nothing
from spark_jobs.errors import OptionError
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import Split
from spark_jobs.source.ranges import Range

LOG = manifest(entry(0, 50), entry(50, 100))
PART = part_of(LOG)
SETTINGS = Settings(("key", "value"), "date", False)

bounds = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(lambda b: (min(b), max(b)))


def left(start: int, end: int, *covered: Bounds, log_start: int = 0, strict: bool = True) -> list[Bounds]:
    log = manifest(entry(0, 50), entry(50, 100), log_start_offset=log_start)
    found = missing([Range(log, start, end)], {PART: covered} if covered else {}, fail_on_data_loss=strict)
    return [(r.start, r.end) for r in found]


@given(asked=bounds, runs=st.lists(bounds.filter(lambda b: b[0] < b[1]), max_size=5))
def test_what_is_left_is_what_no_run_before_has_covered(asked: Bounds, runs: list[Bounds]) -> None:
    head = following(nothing(SETTINGS), "run", 0, [(PART, b) for b in runs], [])
    found = left(*asked, *head.covered.get(PART, ()))
    has = {o for start, end in runs for o in range(start, end)}
    assert [o for start, end in found for o in range(start, end)] == [o for o in range(*asked) if o not in has]


@pytest.mark.parametrize(("start", "end"), [(101, 101), (0, 101), (101, 7), (101, 200)])
def test_offsets_that_the_archive_does_not_have_are_out_of_range(start: int, end: int) -> None:
    with pytest.raises(OffsetOutOfRange, match=r"offset 101 is outside \[0, 100\)"):
        left(start, end)


def test_a_range_without_offsets_has_nothing_left() -> None:
    assert left(9, 5) == left(100, 100) == []


def test_what_is_covered_may_have_left_the_archive() -> None:
    assert left(0, 60, (0, 60), log_start=50) == []


def test_retention_that_overtook_the_last_commit_is_told_once_data_loss_matters() -> None:
    with pytest.raises(MissingRange, match="retention") as told:
        left(50, 100, (0, 40), log_start=50)
    assert (told.value.start, told.value.end) == (40, 50)
    assert left(50, 100, (0, 40), log_start=50, strict=False) == [(50, 100)]


HOLED = manifest(entry(0, 100), entry(100, 200), entry(200, 300), entry(300, 400))
"""A partition of which a backfill has [0, 100) and [200, 300): what lies between was damaged."""


def left_of_holed(log_start: int, *covered: Bounds, strict: bool = True) -> list[Bounds]:
    asked = Range(replace(HOLED, log_start_offset=log_start), log_start, 400)
    found = missing([asked], {part_of(HOLED): covered or ((0, 100), (200, 300))}, fail_on_data_loss=strict)
    return [(r.start, r.end) for r in found]


@pytest.mark.parametrize(("log_start", "lost"), [(150, (100, 150)), (200, (100, 200)), (250, (100, 200)), (300, (100, 200))])
def test_retention_that_deletes_what_no_run_has_written_is_told_wherever_other_runs_have_come_to(
    log_start: int, lost: Bounds
) -> None:
    with pytest.raises(MissingRange, match="failOnDataLoss=false") as told:
        left_of_holed(log_start)
    assert (told.value.start, told.value.end) == lost


def test_what_is_not_written_and_not_deleted_is_no_loss() -> None:
    assert left_of_holed(100) == [(100, 200), (300, 400)]
    assert left_of_holed(50) == [(100, 200), (300, 400)]


@pytest.mark.parametrize("log_start", [150, 200, 250])
def test_a_loss_that_was_allowed_counts_as_covered_and_is_not_told_again(log_start: int) -> None:
    asked = [Range(replace(HOLED, log_start_offset=log_start), log_start, 400)]
    head = following(nothing(SETTINGS), "run", 0, [(part_of(HOLED), b) for b in [(0, 100), (200, 300)]], [])
    assert left_of_holed(log_start, strict=False)
    allowed = following(head, "lenient", 0, passed_over(asked, head.covered), [])
    has = allowed.covered[part_of(HOLED)]
    assert left_of_holed(log_start, *has) == left_of_holed(log_start, strict=False)
    assert list(passed_over(asked, allowed.covered)) == []


def test_what_compaction_has_emptied_is_covered_so_that_retention_takes_nothing_with_it() -> None:
    gap = Gap(100, 120, "compaction has left no batch in it", 7, COMPACTED)
    log = manifest(entry(0, 100), entry(120, 200), gaps=(gap,))
    assert list(passed_over([Range(log, 0, 200)], {})) == [(part_of(log), (100, 120))]
    assert list(passed_over([Range(log, 110, 115)], {})) == [(part_of(log), (110, 115))]
    assert list(passed_over([Range(log, 0, 200)], {part_of(log): ((0, 200),)})) == []


def test_offsets_that_may_have_had_records_are_not_passed_over() -> None:
    log = manifest(entry(0, 100), entry(120, 200))
    assert list(passed_over([Range(log, 0, 200)], {})) == []


def test_a_first_run_starts_where_the_log_does() -> None:
    assert left(50, 100, log_start=50) == [(50, 100)]


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    refuse_other_topics([PART], [Range(LOG, 0, 9)])
    refuse_other_topics([replace(PART, topic="other", topic_id="B" * 22)], [Range(LOG, 0, 9)])
    with pytest.raises(OptionError, match="was deleted and created again"):
        refuse_other_topics([Part(PART.topic, "B" * 22, 7)], [Range(LOG, 0, 9)])


@pytest.mark.parametrize(
    "other", [replace(SETTINGS, columns=("key",)), replace(SETTINGS, by="hour"), replace(SETTINGS, read_committed=True)]
)
def test_settings_have_to_be_those_of_the_runs_before(other: Settings) -> None:
    refuse_other_settings(nothing(SETTINGS), SETTINGS)
    with pytest.raises(OptionError, match="choose an empty folder"):
        refuse_other_settings(nothing(SETTINGS), other)
    assert digest_of(other, "snappy") != digest_of(SETTINGS, "snappy") != digest_of(SETTINGS, "zstd")


def split(start: int, end: int, log_size: int = 100) -> Split:
    segment = replace(entry(start, end), log_size=log_size)
    return Split(manifest(segment), Span(segment, start, end))


def offsets(packs: Iterable[Pack]) -> list[list[tuple[int, int]]]:
    return [[(s.span.start, s.span.end) for s in pack] for pack in packs]


def test_small_segments_share_a_pack_and_missing_offsets_are_in_none() -> None:
    splits = [split(0, 10), split(10, 20), split(25, 30), split(30, 40), split(40, 50, 1 << 30)]
    options = parse({"archive": "a", "subscribe": "t", "bytesPerSplit": "1MB"})
    assert offsets(packs_of(splits, options)) == [[(0, 10), (10, 20)], [(25, 30), (30, 40)], [(40, 50)]]
    assert list(packs_of([], options)) == []


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12), pieces=st.integers(2, 9), file_bytes=st.integers(1, 5000))
def test_a_pack_is_cut_into_no_more_pieces_than_asked_and_keeps_every_offset(
    sizes: list[int], pieces: int, file_bytes: int
) -> None:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    pack = tuple(split(end - size, end, size * 10) for size, end in zip(sizes, ends, strict=True))
    cuts = offsets(cut(pack, pieces, file_bytes))
    assert 1 <= len(cuts) <= pieces
    flat = [bounds for piece in cuts for bounds in piece]
    assert flat[0][0] == 0
    assert flat[-1][1] == ends[-1]
    assert all(before[1] == after[0] for before, after in pairwise(flat))


def test_a_pack_is_not_cut_into_pieces_of_less_than_a_quarter_of_a_file() -> None:
    assert offsets(cut((split(0, 100, 1000),), 50, 1000)) == [[(0, 25)], [(25, 50)], [(50, 75)], [(75, 100)]]
    assert offsets(cut((split(0, 100, 1000),), 50, 100_000)) == [[(0, 100)]]
