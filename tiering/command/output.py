"""What every command prints: rows on standard output in three forms, messages for people on standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tiering.command.status_line import STATUS_LINE
from tiering.command.table import Row, Table
from tiering.command.terminal import alarming, columns, has_terminal, printable, printable_json

__all__ = ["Row", "counted", "emit", "progress_bar", "say", "warn"]

_ROWS_PER_TABLE = 1000
_BAR_WIDTH = 24
_ABOUT_MAX = 40


def emit(
    rows: Iterable[Row | None], output: str, *, as_text: Callable[[Row], Row] = lambda row: row, cut: Mapping[str, int] = {}
) -> None:
    """Prints rows: as one JSON array, a JSON object a line, or tables of what `as_text` makes of each row.

    A table is as wide as the terminal; texts of the columns `cut` are cut, to no less than the width given there, and all others
    continued on the next line. None among the rows says that the next one may take its time: those before it are printed. Where
    `rows` raises, too.
    """
    if output == "json":
        read: list[Row] = []
        try:
            for row in rows:
                if row is not None:
                    read.append(row)
        finally:
            STATUS_LINE.echo(as_json(read, indent=1))
    elif output == "jsonl":
        for row in rows:
            if row is not None:
                STATUS_LINE.echo(as_json(row, separators=(",", ":")))
    else:
        table = Table(columns(sys.stdout), cut, lambda line: alarming(line, sys.stdout))
        for block in _blocks(rows):
            for line in table.lines([as_text(row) for row in block]):
                STATUS_LINE.echo(line)


def as_json(value: object, **form: Any) -> str:
    """JSON for standard output: text of any script as it is where that takes UTF-8, but for what a terminal would obey."""
    import json  # help and completion load this module, too

    takes_all = (sys.stdout.encoding or "").lower().replace("_", "-") in ("utf-8", "utf8")
    return printable_json(json.dumps(value, ensure_ascii=not takes_all, **form))


def _blocks(rows: Iterable[Row | None]) -> Iterator[list[Row]]:
    block: list[Row] = []
    try:
        for row in rows:
            if row is not None:
                block.append(row)
            if block and (row is None or len(block) == _ROWS_PER_TABLE):
                yield block
                block = []
    except (Exception, KeyboardInterrupt):
        if block:
            yield block
        raise
    if block:
        yield block


def say(message: str) -> None:
    """A message for a person, on standard error, on one line."""
    STATUS_LINE.echo(printable(message), err=True)


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 anomaly`, `2 anomalies`. `many` is `one` with an s unless given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def warn(message: str) -> None:
    """A warning, as `say` says it, in the form of errors."""
    say(f"tiering: {message}")


def progress_bar(label: str) -> Callable[[int, int, str], None]:
    """Shows how much is done of how much, and a word about it, on one line of standard error; on a terminal only."""

    def show(done: int, of: int, about: str) -> None:
        bar = "#" * (_BAR_WIDTH * done // max(of, 1))
        STATUS_LINE.show(f"{label} [{bar:<{_BAR_WIDTH}}] {done}/{of} {printable(about[:_ABOUT_MAX])}", stays=done == of)

    return show if has_terminal() else lambda done, of, about: None
