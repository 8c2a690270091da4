"""The segments of a log in order: found by offset, replaced, let go, moved and closed together."""

from pathlib import Path

import pytest
from small_logs import Clock, append, records, small_config

from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Invalid, Unreadable
from local_log.os_disk import OsWritableDisk

BASES = (10, 30, 50, 70)


class BrokenSync(OsWritableDisk):
    """A disk that does not write the files of some segments down."""

    def __init__(self, *broken: int) -> None:
        super().__init__()
        self.broken = broken
        self.synced: list[int] = []

    def sync(self, file: str) -> None:
        base_offset = int(Path(file).stem)
        self.synced.append(base_offset)
        if base_offset in self.broken:
            raise Unreadable(f"segment {base_offset} is broken")
        super().sync(file)


def segment(folder: Path, base_offset: int, disk: OsWritableDisk | None = None) -> Segment:
    return Segment(disk or OsWritableDisk(), str(folder), base_offset, small_config(), Clock())


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    made = Segments()
    for base in BASES:
        made.add(segment(tmp_path, base))
    return made


def bases(found: list[Segment]) -> list[int]:
    return [s.base_offset for s in found]


def base(found: Segment | None) -> int | None:
    return None if found is None else found.base_offset


def test_segments_are_added_replaced_and_let_go(tmp_path: Path) -> None:
    segments = Segments()
    assert (len(segments), list(segments), 30 in segments) == (0, [], False)
    first, second, other = segment(tmp_path, 30), segment(tmp_path, 70), segment(tmp_path, 30)
    segments.add(first)
    assert (list(segments), 30 in segments) == ([first], True)
    segments.add(second)
    assert list(segments) == [first, second]
    segments.add(other)
    assert list(segments) == [other, second]
    segments.remove(70)
    segments.remove(71)  # none is there
    assert (list(segments), 70 in segments) == ([other], False)
    segments.clear()
    assert (len(segments), 30 in segments, segments.base_offsets) == (0, False, ())


def test_segments_are_in_order_whatever_order_they_come_in(tmp_path: Path) -> None:
    segments = Segments()
    lowest, highest = 1 << 62, 0
    for offset in (50, 10, 70, 30):
        segments.add(segment(tmp_path, offset))
        lowest, highest = min(lowest, offset), max(highest, offset)
        assert (segments.first.base_offset, segments.active.base_offset) == (lowest, highest)
    assert segments.base_offsets == BASES
    assert bases(list(segments)) == list(BASES)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (10, 10, []),
        (10, 11, [10]),
        (10, 30, [10]),
        (10, 31, [10, 30]),
        (29, 31, [10, 30]),
        (30, 70, [30, 50]),
        (45, 45, []),
        (70, 71, [70]),
        (500, 600, [70]),
        (0, 5, []),
        (0, 30, [10]),
    ],
)
def test_a_range_of_offsets_lies_in_the_segments_from_the_one_that_its_start_is_in(
    segments: Segments, start: int, end: int, found: list[int]
) -> None:
    assert bases(segments.between(start, end)) == found


def test_a_range_that_ends_before_it_starts_is_refused(segments: Segments) -> None:
    with pytest.raises(Invalid):
        segments.between(30, 29)


def test_the_nearest_segment_is_found_below_at_and_above_an_offset(segments: Segments) -> None:
    assert [base(segments.floor(offset)) for offset in (9, 10, 29, 30, 1000)] == [None, 10, 10, 30, 70]
    assert [base(segments.lower(offset)) for offset in (10, 11, 30, 31, 1000)] == [None, 10, 10, 30, 70]
    assert [base(segments.higher(offset)) for offset in (0, 10, 29, 30, 70)] == [10, 30, 30, 50, None]


@pytest.mark.parametrize(("offset", "found"), [(0, [10, 30, 50, 70]), (10, [30, 50, 70]), (69, [70]), (70, [])])
def test_the_segments_above_an_offset_follow_one_another(segments: Segments, offset: int, found: list[int]) -> None:
    above = []
    following = segments.higher(offset)
    while following is not None:
        above.append(following)
        following = segments.higher(following.base_offset)
    assert bases(above) == found


def test_a_log_may_be_larger_than_a_segment_can_be(segments: Segments) -> None:
    assert segments.size == 0
    for one in segments:
        one.size = (1 << 31) - 1
    assert segments.size == 4 * ((1 << 31) - 1)


def test_all_files_of_all_segments_move_with_their_folder(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    segments = Segments()
    for offset in BASES:
        segments.add(segment(old, offset))
    assert segments.first.offset_index.lookup(10) == (10, 0)  # one has its indexes open already
    assert segments.first.time_index.last_entry == (-1, 10)
    old.rename(new)
    segments.moved_to(str(new))
    for one in segments:
        append(one, records(one.base_offset), records(one.base_offset + 1))
        files = (one.log_file, one.offset_index.file, one.time_index.file, one.txn_index.file)
        assert {Path(file).parent for file in files} == {new}
        assert len(one.offset_index) == 1
    assert not old.exists()
    assert len(list(new.glob("*.log"))) == len(list(new.glob("*.index"))) == len(BASES)


def test_segments_are_closed_though_one_of_them_cannot_be(tmp_path: Path) -> None:
    disk = BrokenSync(30, 50)
    segments = Segments()
    for offset in BASES:
        segments.add(segment(tmp_path, offset, disk))
    with pytest.raises(Unreadable, match="segment 30"):
        segments.close()
    assert disk.synced == list(BASES)
