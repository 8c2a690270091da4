"""What a terminal is shown, and what it is spared: its width, colours, and texts that it would obey."""

import os
import re
import sys
from typing import Final, TextIO
from unicodedata import category, east_asian_width

_OBEYED: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of both sets, ends of lines, what turns the direction of writing, and halves of characters."""
_COLUMNS: Final = 80
"""The width of a terminal that does not say it."""
_WITHOUT_WIDTH: Final = ("Mn", "Me", "Cf")
"""Accents that are put over a character, and what only says how others are written."""


def printable(text: str) -> str:
    """A text on one line, with what a terminal would obey written out: any writer of the archive could have put it there."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable_json(text: str) -> str:
    """The same of JSON, in its own escapes; the ends of its lines stay."""
    return _OBEYED.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def width_of(text: str) -> int:
    """The columns that a printable text takes: two for a wide character of East Asia, none for an accent."""
    if text.isascii():
        return len(text)
    return sum(0 if category(c) in _WITHOUT_WIDTH else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def has_terminal() -> bool:
    """Whether somebody watches standard error on a terminal that can go back in a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def alarming(text: str, stream: TextIO) -> str:
    """A text in red on a terminal, unless NO_COLOR (no-color.org) is set; as it is in a file."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"\x1b[1;31m{text}\x1b[0m"


def columns(stream: TextIO) -> int | None:
    """The width of the terminal that a stream is; None if it is none."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except OSError:
        return _COLUMNS
