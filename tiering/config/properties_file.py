r"""Settings out of a properties file, read as Java does (`Properties.load`), which is how Kafka reads server.properties.

Comments begin with # or !; a name ends at the first =, : or blank; a line that ends with \ goes on in the next; \t, \n, \r, \f
and \uXXXX are what they are in Java, and any other \c is c. Bytes are Latin-1. Settings of topics are `topic.PATTERN.NAME`.
"""

import re
from collections.abc import Iterator, Sequence

from tiering.config.assignment import Assignment, Parsed, Place, Problem
from tiering.config.toml_file import OF_TOPICS

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u(.{0,4})|(.))", re.DOTALL)
_NAME = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def read_properties(text: str, file: str, of_topics: Sequence[str]) -> Parsed:
    """What a properties file says. `of_topics` are the names that a topic may have settings of."""
    assignments: list[Assignment] = []
    problems: list[Problem] = []
    for line, name, value in pairs(text):
        place = Place(file, line)
        if name is None or value is None:
            problems.append(Problem(place, r"malformed \u: expected four hexadecimal digits"))
        elif name.startswith(f"{OF_TOPICS}."):
            topics, own = _split(name.removeprefix(f"{OF_TOPICS}."), of_topics)
            assignments.append(Assignment(own, value, place, topics))
        else:
            assignments.append(Assignment(name, value, place))
    return Parsed(tuple(assignments), tuple(problems))


def pairs(text: str) -> Iterator[tuple[int, str | None, str | None]]:
    """Line, name and value of each property, in order; None for a text with a malformed escape."""
    for line, logical in _logical_lines(text):
        name = _NAME.match(logical)
        assert name is not None  # it matches the empty text, too
        separator = _SEPARATOR.match(logical, name.end())
        assert separator is not None
        yield line, _unescaped(name[0]), _unescaped(logical[separator.end() :])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    begun = ""
    start = 1
    for number, natural in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        line = natural.lstrip(_BLANKS)
        if not begun:
            if not line or line[0] in "#!":
                continue
            start = number
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        begun += line[:-1] if goes_on else line
        if not goes_on:
            if begun:
                yield start, begun
            begun = ""
    if begun:
        yield start, begun


def _unescaped(text: str) -> str | None:
    def plain(escape: re.Match[str]) -> str:
        digits, character = escape.groups()
        if digits is None:
            return _ESCAPES.get(character, character)
        if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
            raise ValueError
        return chr(int(digits, 16))

    try:  # a character beyond 16 bits is two escapes, and half of one is none
        return _ESCAPE.sub(plain, text).encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except ValueError:
        return None


def _split(name: str, of_topics: Sequence[str]) -> tuple[str, str]:
    """Pattern and name: the longest name of a topic's setting that it ends with; without one the last word is the name."""
    for own in sorted(of_topics, key=len, reverse=True):
        if name.endswith(f".{own}"):
            return name.removesuffix(f".{own}"), own
    topics, _, own = name.partition(".")
    return topics, own
