"""What every command prints: rows on standard output in three forms, messages for people on standard error."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import click

Row = Mapping[str, Any]
_ROWS_PER_TABLE = 1000
_BAR_WIDTH = 24
_ABOUT_MAX = 40
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of both sets, ends of lines, what turns the direction of writing, and halves of characters."""


def emit(rows: Iterable[Row], output: str, *, as_text: Callable[[Row], Row] = lambda row: row) -> None:
    """Prints rows: as one JSON array, a JSON object a line, or tables of what `as_text` makes of each row.

    Where `rows` raises, the rows before the error are printed first.
    """
    if output == "json":
        read: list[Row] = []
        try:
            for row in rows:
                read.append(row)
        finally:
            click.echo(json.dumps(read, indent=1))
    elif output == "jsonl":
        for row in rows:
            click.echo(json.dumps(row, separators=(",", ":")))
    else:
        for block in _blocks(map(as_text, rows)):
            for line in _table(block):
                click.echo(line)


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    block: list[Row] = []
    try:
        for row in rows:
            block.append(row)
            if len(block) == _ROWS_PER_TABLE:
                yield block
                block = []
    except Exception:
        if block:
            yield block
        raise
    if block:
        yield block


def _table(rows: list[Row]) -> Iterator[str]:
    names = list(rows[0])
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    numeric = [all(isinstance(row.get(name), int | None) for row in rows) for name in names]
    for row in [names, *cells]:
        aligned = (c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True))
        yield "  ".join(aligned).rstrip()


def _cell(value: Any) -> str:
    return "" if value is None else printable(str(value))


def printable(text: str) -> str:
    """A text on one line, with what a terminal would obey written out: any writer of the archive could have put it there."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def say(message: str) -> None:
    """A message for a person, on standard error, on one line."""
    click.echo(printable(message), err=True)


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 anomaly`, `2 anomalies`. `many` is `one` with an s unless given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def warn(message: str) -> None:
    """A warning, as `say` says it, in the form of errors."""
    say(f"tiering: {message}")


def has_terminal() -> bool:
    """Whether somebody watches standard error on a terminal that can go back in a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def progress_bar(label: str) -> Callable[[int, int, str], None]:
    """Shows how much is done of how much, and a word about it, on one line of standard error; on a terminal only."""

    def show(done: int, of: int, about: str) -> None:
        bar = "#" * (_BAR_WIDTH * done // max(of, 1))
        end = "\n" if done == of else ""
        click.echo(f"\r\x1b[K{label} [{bar:<{_BAR_WIDTH}}] {done}/{of} {printable(about[:_ABOUT_MAX])}{end}", err=True, nl=False)

    return show if has_terminal() else lambda done, of, about: None
