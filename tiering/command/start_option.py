"""Where a read of records starts, as people write it."""

from enum import StrEnum
from typing import Any

import click
from click.shell_completion import CompletionItem

from local_log.formats.primitives import INT64_MAX


class End(StrEnum):
    """The ends of a log, by the words of Kafka's `auto.offset.reset`."""

    earliest = "earliest"
    latest = "latest"


Start = int | End
"""An offset, a number of offsets before the end (negative), or an end."""


class StartType(click.ParamType[Start]):
    """An offset, or `earliest`, `latest`, or such as `-10` for the last ten offsets."""

    name = "start"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See click."""
        return [CompletionItem(end.value) for end in End if end.startswith(incomplete)]

    def __repr__(self) -> str:
        return "StartType()"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Start:
        """See click."""
        if isinstance(value, int):
            return value
        if value in list(End):
            return End(value)
        digits = str(value).removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            self.fail(f"{value!r} is not valid; expected an offset, earliest, latest, or -10 for the last ten", param, ctx)
        if len(digits) > len(str(INT64_MAX)) or int(digits) > INT64_MAX:
            self.fail(f"{value} is more than {INT64_MAX}.", param, ctx)
        return int(value) or (End.latest if value.startswith("-") else 0)
