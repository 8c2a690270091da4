"""Tables of rows: plain where a program reads them, and on a terminal as wide as it is.

On a terminal that is too narrow, names break behind an underscore and texts are continued below themselves, or cut where the
caller says so; a column that may be cut and is empty is left out. Where that is not enough, the columns are shown in several
tables below each other, and what says which row it is is repeated in each; rows of which a table further down says nothing are
left out there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from tiering.command.terminal import printable, width_of

Row = Mapping[str, Any]

_LOST: Final = "lost"
"""The action of a row about offsets that are lost, or the kind of an anomaly."""
_GAP: Final = "  "
_CUT_MAX: Final = 60
_BESIDE_MIN: Final = 8
_WORD_MAX: Final = 30
"""Longer words may be broken."""
_WHICH_ROW: Final = ("topic", "partition", "offset")
_ELLIPSIS: Final = "…"


class Table:
    """The lines of a table, from rows that come in blocks: the head again only where its columns have become wider.

    Each line is `width` wide at most; without a width as wide as the longest cells. Texts of the columns `cut` are cut to what
    there is room for, but not below the width that is given for each; to 60 columns without a width. Lines of what is lost are
    shown as by `alarm`.
    """

    def __init__(
        self, width: int | None = None, cut: Mapping[str, int] = {}, alarm: Callable[[str], str] = lambda line: line
    ) -> None:
        self._width, self._cut, self._alarm = width, cut, alarm
        self._widest: dict[str, int] = {}
        self._heads: list[list[str]] = []

    def lines(self, rows: Sequence[Row]) -> Iterator[str]:
        """The lines of a block, one row at least, whose names are those of the rows before."""
        columns = [self._column(name, rows) for name in rows[0] if not self._is_left_out(name, rows)]
        bands = list(_bands(columns, self._width))
        for number, band in enumerate(bands):
            others = [c for c in band if number == 0 or c not in bands[0]]
            shown = [at for at in range(len(rows)) if number == 0 or any(c.cells[at] for c in others)]
            if not shown:
                continue
            if self._width is not None:
                _shrink(band, self._width)
            head = list(_joined(band, [c.head() for c in band]))
            if len(bands) > 1 or self._heads != [head]:
                self._heads = [head]
                yield from [""] * (number > 0) + head
            for at in shown:
                lines = _joined(band, [c.lines(at) for c in band])
                is_loss = _LOST in (rows[at].get("action"), rows[at].get("kind")) or rows[at].get("lost_offsets")
                yield from map(self._alarm, lines) if is_loss else lines

    def _is_left_out(self, name: str, rows: Sequence[Row]) -> bool:
        """Whether others can have the room of a column; one that was shown stays, for else heads come and go."""
        is_empty = self._width is not None and name in self._cut and all(row.get(name) in (None, "") for row in rows)
        return is_empty and name not in self._widest

    def _column(self, name: str, rows: Sequence[Row]) -> "_Column":
        values = [row.get(name) for row in rows]
        column = _Column(name, values, self._widest.get(name, 0), self._cut.get(name), has_room=self._width is not None)
        self._widest[name] = column.width
        return column


class _Column:
    """A column: its cells as text, and how wide they are shown."""

    def __init__(self, name: str, values: Sequence[Any], widest: int, cut_to_least: int | None, *, has_room: bool) -> None:
        self.name, self.is_cut, self._cut_to_least = name, cut_to_least is not None, cut_to_least
        self.is_numeric = all(isinstance(value, int | None) for value in values)
        self.cells = ["" if value is None else printable(str(value)) for value in values]
        if self.is_cut and not has_room:
            self.cells = [cut_to(cell, _CUT_MAX) for cell in self.cells]
        longest = max(map(width_of, self.cells))
        self.width = max(len(name), longest, widest)
        self.least = max(self._narrowest(longest), *map(len, _words(name)))

    def _narrowest(self, longest: int) -> int:
        if self.is_numeric:
            return longest
        if self._cut_to_least is not None:
            return min(longest, self._cut_to_least)
        words = (width_of(word) for cell in self.cells for word in cell.split(" "))
        return min(max(words), _WORD_MAX)

    def head(self) -> list[str]:
        """The name on as many lines as its width takes."""
        lines = [""]
        for word in _words(self.name):
            if len(lines[-1]) + len(word) <= self.width:
                lines[-1] += word
            else:
                lines.append(word)
        return lines

    def lines(self, row: int) -> list[str]:
        """A cell on as many lines as it takes."""
        cell = self.cells[row]
        return [cut_to(cell, self.width)] if self.is_cut else _folded(cell, self.width)

    def padded(self, text: str) -> str:
        """A text as wide as the column."""
        room = " " * (self.width - width_of(text))
        return room + text if self.is_numeric else text + room


def _bands(columns: list[_Column], width: int | None) -> Iterator[list[_Column]]:
    """The columns in groups that can be made to fit, the first ones of which are the same."""
    if width is None or _total([c.least for c in columns]) <= width:
        yield columns
        return
    first = [c for c in columns if c.name in _WHICH_ROW] or columns[:1]
    band = list(first)
    for column in (c for c in columns if c not in first):
        if len(band) > len(first) and _total([c.least for c in [*band, column]]) > width:
            yield band
            band = list(first)
        band.append(column)
    yield band


def _shrink(columns: list[_Column], width: int) -> None:
    """Takes from the widest columns what is too much, from those that are cut first."""
    for some in ([c for c in columns if c.is_cut], columns):
        while (over := _total([c.width for c in columns]) - width) > 0:
            wide = sorted((c for c in some if c.width > c.least), key=lambda c: c.width)
            if not wide:
                break  # a terminal that is narrower than a cell breaks the lines itself
            second = wide[-2].width if len(wide) > 1 else 0
            wide[-1].width = max(wide[-1].least, wide[-1].width - over, min(second, wide[-1].width - 1))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _joined(columns: list["_Column"], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a row, of its cells' lines."""
    for parts in zip_longest(*cells, fillvalue=""):
        yield _GAP.join(c.padded(part) for c, part in zip(columns, parts, strict=True)).rstrip()


def _words(name: str) -> list[str]:
    """The parts between which a name may be broken."""
    first, *others = name.split("_")
    words = [first]
    for word in others:
        words[-1] += "_"
        words.append(word)
    return words


def cut_to(text: str, width: int) -> str:
    """The start of a text in so many columns, with … where it goes on."""
    if width_of(text) <= width:
        return text
    return f"{_start(text, width - 1)}{_ELLIPSIS}"


def beside(label: str, text: str, width: int | None) -> list[str]:
    """A text next to a label, on lines of a width, the later ones below its start; on one line without a width."""
    lines = [text] if width is None else _folded(text, max(width - len(label), _BESIDE_MIN))
    return [f"{label if at == 0 else ' ' * len(label)}{line}" for at, line in enumerate(lines)]


def _start(text: str, width: int) -> str:
    """As many characters as fit, one at least."""
    taken = 0
    for at, c in enumerate(text):
        taken += width_of(c)
        if taken > width and at:
            return text[:at]
    return text


def _folded(text: str, width: int) -> list[str]:
    """A text on lines of a width, broken between words where that is possible."""
    lines: list[str] = []
    while width_of(text) > width:
        line = _start(text, width)
        space = line.rfind(" ") if text[len(line)] != " " else len(line)
        line = line[:space] if space > 0 else line
        lines.append(line)
        text = text[len(line) :].lstrip(" ")
    return [*lines, text]
