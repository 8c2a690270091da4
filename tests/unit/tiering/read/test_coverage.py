"""What each tier of a partition has, and how it is drawn."""

from dataclasses import replace

import pytest
from golden_logs import partitions
from tiered_worlds import ARCHIVED, World

from remote.manifest.gaps import Gap
from tiering.read.coverage import Coverage, CoverageGap, TierCoverage, as_json, coverage_of
from tiering.read.coverage_chart import WIDTH_MAX, WIDTH_MIN, coverage_chart
from tiering.read.tiered_log import TieredLog

DAY_MS = 86_400_000
JAN_1_MS = 1_767_225_600_000


def timestamps(world: World, name: str, start: int, end: int) -> tuple[int, int]:
    """The least and the greatest timestamp of the records of [start, end), as they are read."""
    columns = world.records[name]
    pairs = zip(columns["offset"].to_pylist(), columns["timestamp"].cast("int64").to_pylist(), strict=True)
    found = [ms for offset, ms in pairs if start <= offset < end]
    return min(found), max(found)


@pytest.mark.parametrize("name", partitions())
@pytest.mark.slow
def test_each_tier_covers_what_its_log_says(world: World, shape: str, name: str) -> None:
    log = world.log(shape, name)
    coverage = coverage_of(log)
    assert log.local is not None
    assert coverage.local is not None
    start, end = log.local.log_start_offset, log.local.log_end_offset
    assert coverage.local.offsets == (((start, end),) if start < end else ())
    assert coverage.gaps == ()
    if log.archived is None:
        assert coverage.archive is None
    else:
        assert coverage.archive is not None
        assert coverage.archive.offsets == ((log.archived.log_start_offset, log.archived.end_offset),)


@pytest.mark.parametrize("name", ARCHIVED)
def test_times_lie_within_those_of_the_records_and_reach_to_the_greatest(world: World, shape: str, name: str) -> None:
    coverage = coverage_of(world.log(shape, name))
    for tier in (coverage.archive, coverage.local):
        if tier is None or not tier.offsets:
            continue
        least, greatest = timestamps(world, name, tier.offsets[0][0], tier.offsets[-1][1])
        first, last = tier.times_ms[0][0], tier.times_ms[-1][1]
        if name in ("g-compacted-0", "g-trimmed-0"):  # their segments have had records that are none any more
            assert first <= last >= greatest
        elif tier is coverage.archive:
            assert (first, last) == (least, greatest)
        else:  # of a local segment only the first batches are asked for their earliest record
            assert least <= first <= last == greatest
        assert all(last < first for (_, last), (first, _) in zip(tier.times_ms, tier.times_ms[1:], strict=False))


def test_a_named_gap_parts_what_the_archive_covers_and_has_its_reason(world: World) -> None:
    log = world.archived(ARCHIVED[0])
    assert log.archived is not None
    manifest = log.archived.manifest
    lost = manifest.entries[1]
    without = tuple(e for e in manifest.entries if e is not lost)
    holed = replace(manifest, entries=without, gaps=(Gap(lost.base_offset, lost.end_offset, "damaged", 5),))
    coverage = coverage_of(TieredLog(None, replace(log.archived, manifest=holed)))
    assert coverage.archive is not None
    assert coverage.archive.offsets == ((manifest.log_start_offset, lost.base_offset), (lost.end_offset, manifest.end_offset))
    assert coverage.gaps == (CoverageGap(lost.base_offset, lost.end_offset, "damaged"),)
    assert as_json(coverage)["gaps"] == [{"start": lost.base_offset, "end": lost.end_offset, "reason": "damaged"}]
    assert as_json(coverage)["local"] is None


def lines(coverage: Coverage, width: int) -> dict[tuple[str, str], str]:
    """What stands behind each label, under each axis."""
    axis, found = "", {}
    for line in [*coverage_chart("orders-0", coverage, width)][1:]:
        label, behind = line[2:10].strip(), line[10:]
        axis = label if label in ("offsets", "time") else axis
        found[axis, label] = behind
    return found


BOTH = Coverage(
    TierCoverage(((0, 600),), ((JAN_1_MS, JAN_1_MS + 6 * DAY_MS - 1),)),
    TierCoverage(((400, 1000),), ((JAN_1_MS + 4 * DAY_MS, JAN_1_MS + 10 * DAY_MS - 1),)),
    (),
)


def test_a_picture_shows_where_the_tiers_overlap_over_offsets_and_over_time() -> None:
    drawn = lines(BOTH, 60)
    for axis in ("offsets", "time"):
        assert drawn[axis, "archive"] == "#" * 30
        assert drawn[axis, "local"] == " " * 20 + "#" * 30
    assert drawn["offsets", "offsets"].split() == ["0", "1000"]
    assert drawn["time", "time"].split() == ["2026-01-01T00:00:00Z", "2026-01-10T23:59:59Z"]
    assert len(drawn["offsets", "offsets"]) == len(drawn["time", "time"]) == 50


def test_a_gap_of_one_offset_in_a_million_is_seen_and_named() -> None:
    holed = Coverage(TierCoverage(((0, 500_000), (500_001, 1_000_000)), ()), None, (CoverageGap(500_000, 500_001, "damaged"),))
    drawn = lines(holed, 60)
    assert drawn["offsets", "archive"] == "#" * 25 + "!" + "#" * 24
    assert drawn["offsets", "local"] == ""
    assert drawn["time", "time"] == "none"
    assert drawn["time", "gap"] == "[500000, 500001): damaged"


def test_times_without_records_are_left_blank_and_are_no_gap() -> None:
    quiet = Coverage(TierCoverage(((0, 10),), ((0, 99), (900, 999))), None, ())
    assert lines(quiet, 60)["time", "archive"] == "#" * 5 + " " * 40 + "#" * 5


@pytest.mark.parametrize("width", [0, 1, 60, 61, 80, 160, 100_000])
@pytest.mark.parametrize("end", [1, 7, 1000, (1 << 63) - 1])
def test_no_line_is_wider_than_it_may_be_whatever_is_drawn(width: int, end: int) -> None:
    tier = TierCoverage(((0, end),), ((0, end - 1),))
    drawn = [*coverage_chart("orders-0", Coverage(tier, tier, ()), width)]
    assert max(map(len, drawn)) <= min(max(width, WIDTH_MIN), WIDTH_MAX)
    assert sum("#" in line for line in drawn) == 4


def test_hundreds_of_gaps_are_named_up_to_a_limit() -> None:
    ranges = tuple((10 * n, 10 * n + 9) for n in range(300))
    gaps = tuple(CoverageGap(10 * n + 9, 10 * n + 10, "damaged") for n in range(299))
    drawn = [*coverage_chart("orders-0", Coverage(TierCoverage(ranges, ()), None, gaps), 80)]
    assert len(drawn) < 40
    assert "279 more" in drawn[-1]


def test_an_empty_partition_has_nothing_to_draw() -> None:
    nothing = TierCoverage((), ())
    assert [*coverage_chart("orders-0", Coverage(None, nothing, ()), 80)] == ["orders-0", "  offsets none", "  time    none"]
