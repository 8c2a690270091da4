"""Sums as a picture: records and bytes by hour, a colour for each partition that is large, and one for all others."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from spark_jobs.errors import OptionError
from spark_jobs.stats.sums import HOUR_MS
from spark_jobs.stats.tables import Measured

PARTITIONS_MAX = 9
_COLUMNS = ("records", "stored_bytes")
_SIZE = (12, 7)
"""Inches, of 100 dots each."""


def check_available() -> None:
    """Raises OptionError where the package that draws is not installed."""
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError as e:
        raise OptionError("a picture needs matplotlib: pip install 'kafka-tiering[pictures]'") from e


def draw(measured: Sequence[Measured], file: str) -> None:
    """Writes the picture as PNG."""
    figure_of(measured).savefig(file, format="png")


def figure_of(measured: Sequence[Measured]) -> Any:
    """The picture as a Figure: above the records of each hour, below their stored bytes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    for axes, column in zip(figure.subplots(len(_COLUMNS), 1, sharex=True), _COLUMNS, strict=True):
        _stacked(axes, measured, column)
        axes.set_ylabel(f"{column.replace('_', ' ')} an hour")
    axes.set_xlabel("hour, UTC")
    if measured:
        figure.axes[0].legend(loc="upper left", fontsize="small")
    return figure


def _stacked(axes: Any, measured: Sequence[Measured], column: str) -> None:
    hours = sorted({hour for one in measured for hour in one.sums.hours if hour is not None})
    moments = [datetime.fromtimestamp(hour / 1000, UTC) for hour in hours]
    below = [0] * len(hours)
    for name, group in _groups(measured):
        heights = [sum(getattr(m.sums.hours[h], column) for m in group if h in m.sums.hours) for h in hours]
        axes.bar(moments, heights, width=HOUR_MS / 86_400_000, bottom=below, align="edge", label=name)
        below = [a + b for a, b in zip(below, heights, strict=True)]


def _groups(measured: Sequence[Measured]) -> list[tuple[str, list[Measured]]]:
    """The largest partitions each alone, then all others together."""
    largest = sorted(measured, key=lambda m: m.sums.total.stored_bytes, reverse=True)
    groups = [(f"{m.topic}-{m.partition}", [m]) for m in largest[:PARTITIONS_MAX]]
    others = largest[PARTITIONS_MAX:]
    return [*groups, (f"{len(others)} others", others)] if others else groups
