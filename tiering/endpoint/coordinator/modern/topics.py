"""The topics that groups subscribe, as the coordinator sees them, and what tells that they have changed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its number of partitions."""

    topic_id: str
    partitions: int


class Topics(Protocol):
    """The topics that there are."""

    def look(self, names: Iterable[str]) -> None:
        """Looks at the list of topics, and at these, if that is due. It may take its time."""

    def names(self) -> Collection[str]:
        """The names of all topics as they were last listed: the same object as before if they are the same. Takes no time."""

    def topic(self, name: str) -> Topic | None:
        """A topic as it was last seen, None if there is none. Takes no time."""

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic that was last seen with this id."""


class NoTopics:
    """There are none."""

    def look(self, names: Iterable[str]) -> None:
        """Nothing to see."""

    def names(self) -> Collection[str]:
        """None."""
        return ()

    def topic(self, name: str) -> Topic | None:
        """There is none."""
        return None

    def name_of(self, topic_id: str) -> str | None:
        """There is none."""
        return None


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Of the topics with these names that there are: another one if one of them changes. A signed number, 0 for no topics.

    It is kept with the group's epoch. A broker that takes over the group has another function, finds another hash, and lets the
    group begin an epoch with the same assignment.
    """
    found = ((name, topic) for name in sorted(names) if (topic := topics.topic(name)) is not None)
    data = b"".join(f"{name} {topic.topic_id} {topic.partitions}\n".encode("utf-8", "surrogatepass") for name, topic in found)
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True) if data else 0
