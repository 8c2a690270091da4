"""Lines of a log of a command that runs for long: as for a person who has just started it, or with time, level and fields."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import click

from remote.clock import Clock
from tiering.command.output import say

FORMATS: Final = ("text", "json")


class LogLines:
    """Prints events on standard error, a line each.

    Without a format only what a person has to know, after the name of the command; with one everything, a line for each event:
    `TIME LEVEL message name=value`, or a JSON object with `time`, `level`, `message` and the fields.
    """

    def __init__(self, form: str | None, clock: Clock) -> None:
        self._form, self._clock = form, clock

    def info(self, message: str) -> None:
        """What a person who looks on wants to know."""
        self._line("INFO", message, {})

    def problem(self, message: str) -> None:
        """What somebody may have to do something about."""
        self._line("WARN", message, {})

    def event(self, message: str, fields: Mapping[str, str | int]) -> None:
        """What went well; left out without a format."""
        if self._form is not None:
            self._line("INFO", message, fields)

    def _line(self, level: str, message: str, fields: Mapping[str, str | int]) -> None:
        if self._form is None:
            say(f"tiering: {message}")
            return
        time = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._form == "json":
            click.echo(json.dumps({"time": time, "level": level.lower(), "message": message, **fields}), err=True)
        else:
            say(" ".join([time, f"{level:4}", message, *(f"{name}={value}" for name, value in fields.items())]))
