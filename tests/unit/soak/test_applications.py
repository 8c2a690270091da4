"""What applications of a history do with what they have read."""

import random  # noqa: TID251  # of a seed
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from histories.operations import Outcome
from histories.readers import App
from histories.recorder import Recorder
from histories.writers import Transactor


@dataclass(frozen=True)
class Read:
    """A message of `orders`."""

    number: int
    at: int

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return b"plain.1"

    def error(self) -> None:
        return None


@dataclass(frozen=True)
class Reads:
    """A consumer that is given these."""

    messages: Iterator[Read]

    def poll(self, _timeout: float) -> Read | None:
        return next(self.messages, None)


def transformed(at: dict[tuple[str, int], int | None], *messages: Read) -> Outcome:
    recorder, chance = Recorder(), random.Random(1)
    app = App("app0", "", recorder, chance, at=at)
    writer = Transactor("app0", "", recorder, chance)
    return app.transform(cast("Any", Reads(iter(messages))), writer, None)


def test_an_application_goes_past_no_record_while_it_does_not_know_where_a_partition_begins() -> None:
    assert transformed({("orders", 2): None, ("orders", 3): None}, Read(3, 0)) is Outcome.UNKNOWN
    assert transformed({("orders", 2): None, ("orders", 3): None}) is Outcome.OK
