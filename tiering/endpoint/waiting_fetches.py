"""Fetches that wait for records, by what they wait for (Kafka's DelayedFetch and its purgatory).

All of them together look at a log once: those whose logs are as they were go on waiting, whatever their number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tiering.endpoint.hosted_logs import HostedTopic, Log, Partition

T = TypeVar("T")


def logs_of(partitions: Iterable[Partition], topics: Mapping[str, HostedTopic]) -> dict[Partition, Log]:
    """The logs of partitions, as they are known."""
    found: dict[Partition, Log] = {}
    for name, number in partitions:
        topic = topics.get(name)
        found[name, number] = None if topic is None else topic.partitions.get(number)
    return found


def is_same(seen: Mapping[Partition, Log], now: Mapping[Partition, Log]) -> bool:
    """Whether the logs of `seen` are the same in `now`; a log that has not changed is the same object."""
    return all(one in now and now[one] is log for one, log in seen.items())


@dataclass(slots=True)
class WaitingFetches(Generic[T]):
    """What waits, by the number of its connection, and the logs that each saw. For one thread; others are given a copy."""

    _waiting: dict[int, tuple[T, Mapping[Partition, Log]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, number: int, fetch: T, seen: Mapping[Partition, Log]) -> None:
        """One more. `seen` are the logs before it looked for records: what came later is news."""
        self._waiting[number] = fetch, seen

    def remove(self, number: int) -> T | None:
        """It waits no longer; None if it did not wait."""
        found = self._waiting.pop(number, None)
        return None if found is None else found[0]

    def numbers(self) -> tuple[int, ...]:
        """Of all connections."""
        return tuple(self._waiting)

    def copy(self) -> "WaitingFetches[T]":
        """As it is now."""
        return WaitingFetches(self._waiting.copy())

    def get(self, number: int) -> T | None:
        """What waits for a connection, None if nothing does."""
        found = self._waiting.get(number)
        return None if found is None else found[0]

    def topics(self) -> set[str]:
        """What is waited for."""
        return {name for _, seen in self._waiting.values() for name, _ in seen}

    def with_news(self, topics: Mapping[str, HostedTopic]) -> list[tuple[int, T]]:
        """Those whose logs are others now."""
        now = logs_of({partition for _, seen in self._waiting.values() for partition in seen}, topics)
        return [(number, fetch) for number, (fetch, seen) in self._waiting.items() if not is_same(seen, now)]
