"""A setting as somebody has given it, where that was, and what is wrong with it."""

from collections.abc import Iterable
from dataclasses import dataclass

from local_log.errors import Invalid
from tiering.config.secrets import masked

Value = str | tuple[str, ...]
"""Text, or texts where a list was given; what it means is the setting's affair."""

_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class Place:
    """The source of a setting: a line of a file or, without a line, a file or an environment variable."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A setting by its name, for the topics that match the pattern `topics`, or for the service if that is None.

    `is_brokers`: it was given by a broker's own name for it.
    """

    name: str
    value: Value
    place: Place
    topics: str | None = None
    is_brokers: bool = False

    @property
    def text(self) -> str:
        """The value as one text, as Kafka writes a list."""
        return self.value if isinstance(self.value, str) else ",".join(self.value)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at a place; one line, without secrets and without what a terminal would take for a command."""

    place: Place
    reason: str

    def __str__(self) -> str:
        return f"{shown(str(self.place))}: {shown(self.reason, 4 * _SHOWN_MAX)}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a source says, in its order, and what of it could not be read."""

    assignments: tuple[Assignment, ...] = ()
    problems: tuple[Problem, ...] = ()


class BadConfig(Invalid):
    """A configuration that cannot be used as it stands: everything that is wrong with it at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def shown(text: str, characters_max: int = _SHOWN_MAX) -> str:
    """Text from outside, fit for a message: secrets masked, on one line, of bounded length."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in masked(text))
    return plain if len(plain) <= characters_max else f"{plain[:characters_max]}…"
