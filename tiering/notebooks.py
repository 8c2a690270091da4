"""What notebooks show: a table where there is one, and progress where tqdm is installed."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from html import escape
from typing import Any, Final, Protocol

import pyarrow as pa

from local_log.errors import Invalid

ROWS_MAX: Final = 200
"""What a notebook shows of a table; the table has them all."""
_RIGHT: Final = ' style="text-align: right"'


class ShownTable:
    """A `pyarrow.Table` that notebooks show as a table. Everything else is asked of `table`, and can be asked of this, too."""

    __slots__ = ("table",)
    __hash__ = None  # type: ignore[assignment]  # as a Table's

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __getattr__(self, name: str) -> Any:
        if name == "table":  # of a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self.table, name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __eq__(self, other: object) -> bool:
        return bool(self.table == (other.table if isinstance(other, ShownTable) else other))

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return html_of(self.table)


def html_of(table: pa.Table) -> str:
    """The first rows as HTML, without columns that say nothing. Texts are escaped: others have written some of them."""
    shown = table.slice(0, ROWS_MAX)
    names = [name for name in table.column_names if any(value not in (None, []) for value in shown[name].to_pylist())]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row[name]) for name in names)}</tr>" for row in shown.to_pylist())
    more = len(table) - len(shown)
    rest = f"<p>{more:,} more rows</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    return f"<td{_RIGHT if isinstance(value, int) else ''}>{escape(_text(value))}</td>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds")
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    if isinstance(value, dict):  # a gap
        return f"[{value['start']}, {value['end']}) {value['reason']}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class Bar(Protocol):
    """What is used of tqdm's."""

    n: float

    def update(self, n: float) -> object:
        """Counts so much more, and shows it some times a second."""

    def close(self) -> None:
        """Shows what is counted, and leaves it as it is."""


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


@contextmanager
def progress_bar(label: str, unit: str, total: Callable[[], int], *, wanted: bool | None = None) -> Iterator[Bar | None]:
    """A bar of tqdm's: in a notebook where it is installed, or as `wanted`; none of nothing. `total` is asked only for a bar.

    Raises Invalid where a wanted one cannot be had.
    """
    bar = _bar(label, unit, total, wanted) if wanted or (wanted is None and is_notebook()) else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def _bar(label: str, unit: str, total: Callable[[], int], wanted: bool | None) -> Bar | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a notebook without ipywidgets gets a bar of text
            from tqdm.auto import tqdm
    except ImportError as e:
        if wanted:
            raise Invalid("progress needs tqdm: pip install tqdm") from e
        return None
    size = total()
    return tqdm(desc=label, unit=f" {unit}", unit_scale=True, total=size) if size else None
