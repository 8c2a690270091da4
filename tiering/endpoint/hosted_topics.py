"""The topics that are answered for, as the group coordinator sees them."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from local_log.errors import LogError
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.modern.topics import Topic
from tiering.endpoint.logs import Logs


@dataclass(slots=True)
class HostedTopics:
    """Those of `logs`. One that cannot be looked at is as it was before; one that never could be is not there."""

    logs: Logs
    _names: tuple[str, ...] = ()

    def look(self, names: Iterable[str]) -> None:
        """Looks at the list of topics, and at these, if that is due. It may take its time."""
        with suppress(LogError):
            listed = self.logs.names()
            if listed is not self._names and frozenset(listed) != frozenset(self._names):
                self._names = listed
        for name in names:
            if self.logs.at_hand(name) is None:
                with suppress(LogError):
                    self.logs.topic(name)

    def names(self) -> Collection[str]:
        """The names of all topics as they were last listed: the same object as before if they are the same. Takes no time."""
        return self._names

    def topic(self, name: str) -> Topic | None:
        """A topic as it was last seen, None if there is none. Takes no time.

        Members are told ids: a topic of before Kafka 2.8 without one is none to them.
        """
        found = self.logs.known().get(name)
        if found is None or found.id == ZERO_TOPIC_ID or not found.partitions:
            return None
        return Topic(found.id, max(found.partitions) + 1)

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic that was last seen with this id."""
        return self.logs.name_of(topic_id)
