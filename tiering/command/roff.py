"""The pages of `manual` in roff, for `man -l` and for folders that man searches: pure, from a page's text to its source."""

import re
from collections.abc import Iterator
from typing import Final

_ITEMS: Final = ("COMMANDS", "ARGUMENTS", "OPTIONS")
_CODES: Final = "EXIT STATUS"
_AS_IT_IS: Final = "EXAMPLES"
_TITLE: Final = re.compile(r"^(\S[A-Z ]+)\n", re.MULTILINE)
_CODE: Final = re.compile(r"^ {4}(\d+) +(.*)")


def file_of(words: tuple[str, ...]) -> str:
    """The name of a page's file, such as `tiering-manifest-show.1`."""
    return f"{'-'.join(('tiering', *words))}.1"


def roff(page: str, words: tuple[str, ...], version: str) -> str:
    """A page in roff, of its text."""
    name = "-".join(("tiering", *words))
    parts = _TITLE.split(page)[1:]
    lines = [f'.TH "{name.upper()}" "1" "" "tiering {version}"', ".nh", ".ad l"]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        lines += [f'.SH "{title}"', *_section(title, text.rstrip("\n"), name)]
    return "\n".join(lines) + "\n"


def _section(title: str, text: str, name: str) -> Iterator[str]:
    paragraphs = [part.split("\n") for part in re.split(r"\n\n+", text)]
    if title == "NAME":
        _, _, what = _joined(paragraphs[0]).partition(" - ")
        yield f"{_escaped(name)} \\- {_escaped(what)}"
    elif title == _CODES:
        for line in paragraphs[0]:
            code = _CODE.match(line)
            yield from (".TP", f".B {code[1]}", _escaped(code[2])) if code else (_escaped(line.strip()),)
    elif title in _ITEMS:
        for paragraph in paragraphs:
            yield from (".TP", f".B {_escaped(paragraph[0].strip())}", _escaped(_joined(paragraph[1:])))
    elif title == _AS_IT_IS:
        yield from (".nf", *(_escaped(line.strip()) for part in paragraphs for line in part), ".fi")
    else:
        for paragraph in paragraphs:
            yield from (".PP", _escaped(_joined(paragraph)))


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _escaped(text: str) -> str:
    """A text that roff prints as it is: hyphens that can be copied, and no request at a line's start."""
    escaped = text.replace("\\", "\\(rs").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
