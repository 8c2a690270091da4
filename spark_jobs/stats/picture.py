"""Sums as a picture: records and bytes by hour, a colour for each partition that is large, and one for all others.

Where there are more hours than a reader can tell apart, days, weeks or some weeks make a bar, so a picture of years has no more
bars than one of some days.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from textwrap import fill
from typing import Any

from spark_jobs.errors import OptionError
from spark_jobs.stats.sums import HOUR_MS
from spark_jobs.stats.tables import Measured

PARTITIONS_MAX = 9
BARS_MAX = 400
"""About three dots each."""
_COLUMNS = ("records", "stored_bytes")
_TITLE_TOPICS_MAX = 3
_TITLE_LINE, _LEGEND_LINE = 110, 150
"""Characters that a line of the title has room for, and one of the legend with its smaller ones."""
_SIZE = (12, 7)
"""Inches, of 100 dots each."""

_DAY_MS = 24 * HOUR_MS
_WEEK_MS = 7 * _DAY_MS
_NAMES = {HOUR_MS: "hour", _DAY_MS: "day", _WEEK_MS: "week"}
_MONDAY_MS = 4 * _DAY_MS
"""1970 began on a Thursday."""
_TIME_MAX_MS = 221_845_392_000_000
"""The year 9000: calendars go little further. A timestamp beyond is in the tables, and in no picture."""


def check_available() -> None:
    """Raises OptionError where the package that draws is not installed."""
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError as e:
        raise OptionError("a picture needs matplotlib: pip install 'kafka-tiering[pictures]'") from e


def draw(measured: Sequence[Measured], file: str) -> None:
    """Draws the chart and writes it to `file` as PNG."""
    figure_of(measured).savefig(file, format="png")


def figure_of(measured: Sequence[Measured]) -> Any:
    """The picture as a Figure: above the records of each hour, below their stored bytes."""
    from matplotlib import dates
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    hours = [hour for one in measured for hour in one.sums.hours if hour is not None and hour < _TIME_MAX_MS]
    step = step_of(hours)
    figure = Figure(figsize=_SIZE, layout="constrained")
    figure.suptitle(fill(_title(measured), _TITLE_LINE))
    if not hours:
        figure.text(0.5, 0.5, "no record with a time", ha="center", va="center")
        return figure
    for axes, column in zip(figure.subplots(len(_COLUMNS), 1, sharex=True), _COLUMNS, strict=True):
        _stacked(axes, measured, column, step)
        axes.set_ylabel(f"{column.replace('_', ' ')} per {_NAMES.get(step, f'{step // _WEEK_MS} weeks')}")
        axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
        axes.yaxis.set_major_formatter(EngFormatter(unit="B" if column.endswith("bytes") else "", sep=" "))
        axes.margins(x=0.01)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
    untyped: Any = dates
    locator = untyped.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator, show_offset=False))  # it is of the last tick alone
    axes.set_xlabel(f"time of the records, {_time(_start(min(hours), step))} to {_time(_start(max(hours), step) + step)}")
    figure.align_ylabels()
    bars, names = figure.axes[0].get_legend_handles_labels()
    columns = max(1, min(len(names), _LEGEND_LINE // (max(map(len, names)) + 10)))
    figure.legend(bars, names, loc="outside lower center", ncols=columns, fontsize="small", title="partition")
    return figure


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%MZ}"


def _title(measured: Sequence[Measured]) -> str:
    topics = sorted({m.topic for m in measured})
    named = ", ".join(topics) if len(topics) <= _TITLE_TOPICS_MAX else f"{len(topics)} topics"
    return f"Records and stored bytes of {named or 'no topic'} by the time of the records"


def step_of(hours: Collection[int]) -> int:
    """How many ms make a bar: the least that make no more bars than there may be, over all of the time."""
    first, last = min(hours, default=0), max(hours, default=0)
    steps = chain((HOUR_MS, _DAY_MS), (_WEEK_MS << doubled for doubled in count()))
    return next(ms for ms in steps if (_start(last, ms) - _start(first, ms)) // ms < BARS_MAX)


def _start(hour: int, step_ms: int) -> int:
    """When the bar begins that an hour is in; weeks begin on Mondays."""
    first = _MONDAY_MS if step_ms >= _WEEK_MS else 0
    return (hour - first) // step_ms * step_ms + first


def _stacked(axes: Any, measured: Sequence[Measured], column: str, step_ms: int) -> None:
    binned = [(name, _binned(group, column, step_ms)) for name, group in _groups(measured)]
    starts = sorted({start for _, bars in binned for start in bars})
    moments = [datetime.fromtimestamp(start / 1000, UTC) for start in starts]
    below = [0] * len(starts)
    for name, bars in binned:
        heights = [bars[start] for start in starts]
        axes.bar(moments, heights, width=step_ms / _DAY_MS, bottom=below, align="edge", label=name)
        below = [a + b for a, b in zip(below, heights, strict=True)]


def _binned(group: Iterable[Measured], column: str, step_ms: int) -> Counter[int]:
    bars: Counter[int] = Counter()
    for one in group:
        for hour, sums in one.sums.hours.items():
            if hour is not None and hour < _TIME_MAX_MS:
                bars[_start(hour, step_ms)] += getattr(sums, column)
    return bars


def _groups(measured: Sequence[Measured]) -> list[tuple[str, list[Measured]]]:
    """The largest partitions each alone, then all others together."""
    largest = sorted(measured, key=lambda m: m.sums.total.stored_bytes, reverse=True)
    groups = [(f"{m.topic}-{m.partition}", [m]) for m in largest[:PARTITIONS_MAX]]
    others = largest[PARTITIONS_MAX:]
    return [*groups, (f"{len(others)} others", others)] if others else groups
