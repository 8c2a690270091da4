"""Settings out of TOML: `retention.ms = 1`, `"retention.ms" = 1` and tables mean the same; `[topic."orders*"]` is for topics.

The library does not tell lines, so a document is cut into its statements first: the shortest runs of lines that are TOML.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

from tiering.config.assignment import Assignment, Parsed, Place, Problem, Value

OF_TOPICS = "topic"

_Path = tuple[str, ...]


def read_toml(text: str, file: str) -> Parsed:
    """What a TOML document says. Nothing is read of one that is not TOML."""
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        # Its message says the line, and of the text no more than a character.
        return Parsed(problems=(Problem(Place(file), f"not TOML: {e or 'nested too deep'}"),))
    assignments: list[Assignment] = []
    problems: list[Problem] = []
    for line, path, value in _leaves(text):
        place = Place(file, line)
        read = _assignment(path, value, place)
        if isinstance(read, Problem):
            problems.append(read)
        else:
            assignments.append(read)
    return Parsed(tuple(assignments), tuple(problems))


def _assignment(path: _Path, value: Any, place: Place) -> Assignment | Problem:
    name = ".".join(path)
    text = _value(value)
    if text is None:
        return Problem(place, f"{name}: expected text, a number, true, false or a list of texts")
    if path[0] != OF_TOPICS:
        return Assignment(name, text, place)
    if len(path) < 3:
        return Problem(place, f'{name}: settings of topics are in [{OF_TOPICS}."PATTERN"]')
    return Assignment(".".join(path[2:]), text, place, path[1])


def _value(value: Any) -> Value | None:
    if isinstance(value, list):
        texts = [_text(item) for item in value]
        return None if None in texts else tuple(text for text in texts if text is not None)
    return _text(value)


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def _leaves(text: str) -> Iterator[tuple[int, _Path, Any]]:
    """The values of a valid document with their lines and full names, in its order."""
    table: _Path = ()
    for line, statement in _statements(text):
        tree = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = _header(tree)
        else:
            for path, value in _flat(tree):
                yield line, (*table, *path), value


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each table header and each assignment with its first line; one of several lines ends with a bracket or a quote."""
    begun: list[str] = []
    start = 1
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not begun:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            start = number
        begun.append(line)
        if len(begun) > 1 and not any(end in line for end in ("]", "}", '"""', "'''")):
            continue
        statement = "\n".join(begun)
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        yield start, statement
        begun = []


def _header(tree: dict[str, Any]) -> _Path:
    path: list[str] = []
    node: Any = tree
    while isinstance(node, dict) and node:
        [(name, node)] = node.items()
        path.append(name)
        if isinstance(node, list):  # [[name]]: what lies in it is refused by its name
            node = node[0]
    return tuple(path)


def _flat(tree: dict[str, Any]) -> Iterator[tuple[_Path, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from (((name, *path), leaf) for path, leaf in _flat(value))
        else:
            yield (name,), value
