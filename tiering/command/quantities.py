"""Options whose values are times, durations, sizes or rates: numbers, or as people write them."""

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from local_log.formats.primitives import INT64_MAX
from local_log.quantities import parse_duration, parse_rate, parse_size, parse_time
from tiering.command.completion import times
from tiering.machine import CLOCK


class Quantity(click.ParamType[int]):
    """A whole number from `least` to `most` out of what `parse` takes."""

    def __init__(self, name: str, parse: Callable[[str], int], least: int = 0, most: int = INT64_MAX) -> None:
        self.name, self._parse, self._least, self._most = name, parse, least, most

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See click."""
        return times(ctx, param, incomplete) if self.name == "time" else []

    def __repr__(self) -> str:
        return f"Quantity({self.name!r}, {self._least}, {self._most})"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click."""
        try:
            number = value if isinstance(value, int) else self._parse(value)
        except ValueError as e:
            self.fail(str(e), param, ctx)
        if not self._least <= number <= self._most:
            self.fail(f"{value} is not in the range {self._least} to {self._most}.", param, ctx)
        return number


def time() -> Quantity:
    """Times in ms since 1970."""
    return Quantity("time", lambda text: parse_time(text, CLOCK.now_ms()))


def duration() -> Quantity:
    """Durations in ms."""
    return Quantity("duration", parse_duration)


def size(least: int = 1, most: int = INT64_MAX) -> Quantity:
    """Sizes in bytes."""
    return Quantity("size", parse_size, least, most)


def rate() -> Quantity:
    """Rates in bytes a second."""
    return Quantity("rate", parse_rate, 1)
