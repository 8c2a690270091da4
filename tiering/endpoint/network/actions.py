"""What whoever owns the sockets is to do with a connection."""

from collections.abc import Hashable
from dataclasses import dataclass

Id = Hashable
"""Tells connections apart; never reused while one is open."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection; `reason` is a sentence for the log, empty for what happens every day."""

    connection: Id
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Read no more of the connection until `Resume`."""

    connection: Id


@dataclass(frozen=True, slots=True)
class Resume:
    """Read of the connection again."""

    connection: Id


Action = Close | Pause | Resume
