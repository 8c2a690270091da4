"""Draws the coverage of a partition as text: a column is a range of offsets or of time, a line is a tier. Pure."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from local_log.ranges import Range
from tiering.read.coverage import NO_COVERAGE, Coverage

LEGEND: Final = "# the tier has it   ! it lacks a part of it"
WIDTH_MIN: Final = 60
WIDTH_MAX: Final = 160

_HAS, _LACKS, _NONE = "#", "!", " "
_LABEL: Final = 10
_GAPS_MAX: Final = 20


def coverage_chart(name: str, coverage: Coverage, width: int) -> Iterator[str]:
    """The lines of a chart, none wider than `width` (within WIDTH_MIN and WIDTH_MAX) except for the reasons of gaps.

    Every gap and every segment is visible in its column, however small. Both tiers use the same scale.
    """
    columns = min(max(width, WIDTH_MIN), WIDTH_MAX) - _LABEL
    archive, local = coverage.archive or NO_COVERAGE, coverage.local or NO_COVERAGE
    yield name
    gaps = [(gap.start, gap.end) for gap in coverage.gaps]
    yield from _axis("offsets", (archive.offsets, local.offsets), columns, str, gaps=gaps)
    yield from _axis("time", (_half_open(archive.times_ms), _half_open(local.times_ms)), columns, _utc_text, of_ends=1)
    for gap in coverage.gaps[:_GAPS_MAX]:
        yield f"  {'gap':<{_LABEL - 2}}[{gap.start}, {gap.end}): {gap.reason}"
    if len(coverage.gaps) > _GAPS_MAX:
        yield f"  {'gaps':<{_LABEL - 2}}{len(coverage.gaps) - _GAPS_MAX} more; --output json has them all"


def _half_open(times_ms: Sequence[Range]) -> Sequence[Range]:
    return [(first, last + 1) for first, last in times_ms]


def _axis(  # the last two parameters are for times and for offsets
    label: str,
    tiers: tuple[Sequence[Range], Sequence[Range]],
    columns: int,
    label_of: Callable[[int], str],
    of_ends: int = 0,
    gaps: Sequence[Range] = (),
) -> Iterator[str]:
    """A line with both ends of the axis, then one line for each tier; "none" without ranges. `of_ends` is subtracted from the
    end for its label. `gaps` are what the archive lacks.
    """
    every = [*tiers[0], *tiers[1], *gaps]
    if not every:
        yield f"  {label:<{_LABEL - 2}}none"
        return
    start, end = min(a for a, _ in every), max(b for _, b in every)
    first, last = label_of(start), label_of(end - of_ends)
    yield f"  {label:<{_LABEL - 2}}{first}{last:>{max(columns - len(first), len(last) + 1)}}"
    for tier, ranges, lacks in zip(("archive", "local"), tiers, (gaps, ()), strict=True):
        yield f"  {tier:<{_LABEL - 2}}{_draw(ranges, lacks, start, end, columns)}".rstrip()


def _draw(ranges: Sequence[Range], lacks: Sequence[Range], start: int, end: int, columns: int) -> str:
    """The line of a tier, with what it lacks above what it has."""
    drawn = [_NONE] * columns
    for sign, some in ((_HAS, ranges), (_LACKS, lacks)):
        for a, b in some:
            for column in range(_column(a, start, end, columns), _column(b - 1, start, end, columns) + 1):
                drawn[column] = sign
    return "".join(drawn)


def _column(at: int, start: int, end: int, columns: int) -> int:
    return (at - start) * columns // (end - start)


def _utc_text(ms: int) -> str:
    """A time in UTC; milliseconds if no calendar date exists for it."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(ms)
