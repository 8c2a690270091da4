"""Parses settings by Kafka's names from text, with bounds; a value that is not valid is rejected here."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX, INT64_MAX

Reader = Callable[[str, str], object]
"""Parses the value of a setting from its name and text. Raises Invalid with the valid values."""

Setting = tuple[str, Reader]
"""The name of a setting's field, and its parser."""


def read_settings(given: Mapping[str, str], known: Mapping[str, Setting], of: str) -> dict[str, object]:
    """The values by field name. Raises Invalid with the setting's name; for an unknown setting, with the nearest known name."""
    values: dict[str, object] = {}
    for name, text in given.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Invalid(f"{name}: no such setting of {of}{hint}")
        field, read = known[name]
        values[field] = read(name, text.strip())
    return values


def whole(low: int, high: int) -> Callable[[str, str], int]:
    """A parser of integers from `low` to `high`."""

    def read(name: str, text: str) -> int:
        try:
            number = int(_digits(text))
        except ValueError as e:
            raise Invalid(f"{name}={text}: expected a whole number") from e
        if not low <= number <= high:
            raise Invalid(f"{name}={text}: expected {low} to {high}")
        return number

    return read


def fraction(low: float, high: float) -> Callable[[str, str], float]:
    """A parser of Kafka's DOUBLE from `low` to `high`."""

    def read(name: str, text: str) -> float:
        try:
            number = float(_digits(text))
        except ValueError as e:
            raise Invalid(f"{name}={text}: expected a number") from e
        if not low <= number <= high:
            raise Invalid(f"{name}={text}: expected {low} to {high}")
        return number

    return read


def _digits(text: str) -> str:
    """The text of a number without underscores, which Python would accept between digits."""
    return "?" if "_" in text else text


def int_from(low: int) -> Callable[[str, str], int]:
    """A parser of Kafka's INT with a lower bound."""
    return whole(low, INT32_MAX)


def long_from(low: int) -> Callable[[str, str], int]:
    """A parser of Kafka's LONG with a lower bound."""
    return whole(low, INT64_MAX)


def flag(name: str, text: str) -> bool:
    """Parses true or false."""
    if text.lower() not in ("true", "false"):
        raise Invalid(f"{name}={text}: expected true or false")
    return text.lower() == "true"


def one_of(*words: str) -> Callable[[str, str], str]:
    """A parser of one of these words."""

    def read(name: str, text: str) -> str:
        if text not in words:
            raise Invalid(f"{name}={text}: expected one of {', '.join(words)}")
        return text

    return read
