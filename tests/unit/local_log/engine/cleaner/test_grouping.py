"""Which segments are cleaned into one: as many as its sizes and its range of offsets have room for."""

from dataclasses import dataclass, replace
from typing import Any

from local_log.engine.cleaner.grouping import group_segments
from local_log.engine.config import LogConfig
from local_log.engine.index_file import OffsetIndexFile, TimeIndexFile
from local_log.formats.primitives import INT32_MAX

CONFIG = LogConfig(segment_bytes=100, segment_index_bytes=120)


class Entries(list[None]):
    """An index of so many entries."""


class OfOffsets(Entries):
    ENTRY = OffsetIndexFile.ENTRY


class OfTimes(Entries):
    ENTRY = TimeIndexFile.ENTRY


@dataclass
class Sized:
    """A segment as grouping sees it."""

    base_offset: int
    size: int = 10
    offsets: int = 0
    times: int = 0

    @property
    def offset_index(self) -> OfOffsets:
        return OfOffsets([None] * self.offsets)

    @property
    def time_index(self) -> OfTimes:
        return OfTimes([None] * self.times)


def groups(*segments: Sized, end: int | None = None) -> list[list[int]]:
    """The base offsets of the groups."""
    of: Any = list(segments)
    found = group_segments(of, CONFIG, segments[-1].base_offset + 1 if end is None else end)
    return [[segment.base_offset for segment in group] for group in found]


def test_the_segments_of_a_group_fit_into_one_by_their_size() -> None:
    assert groups(*(Sized(n, size=50) for n in range(5))) == [[0, 1], [2, 3], [4]]
    assert groups(*(Sized(n, size=51) for n in range(3))) == [[0], [1], [2]]
    assert groups(*(Sized(n) for n in range(3))) == [[0, 1, 2]]


def test_the_indexes_of_a_group_fit_into_one() -> None:
    assert groups(*(Sized(n, offsets=5) for n in range(4))) == [[0, 1, 2], [3]]
    assert groups(*(Sized(n, times=5) for n in range(4))) == [[0, 1], [2, 3]]


def test_the_offsets_of_a_group_fit_into_one() -> None:
    assert groups(Sized(0), Sized(1), end=INT32_MAX + 1) == [[0, 1]]
    assert groups(Sized(0), Sized(1), end=INT32_MAX + 2) == [[0], [1]]
    assert groups(Sized(0), Sized(1), Sized(INT32_MAX + 2)) == [[0], [1], [INT32_MAX + 2]]


def test_a_segment_without_bytes_joins_the_group_whatever_its_offsets() -> None:
    far = INT32_MAX + 2
    assert groups(Sized(0), replace(Sized(1), size=0), end=far) == [[0, 1]]


def test_no_segments_make_no_groups() -> None:
    assert group_segments([], CONFIG, 0) == []
