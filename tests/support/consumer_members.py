"""Members of a consumer group of KIP-848 in one line each, and topics that are made by hand; the clock is moved by hand, too."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from archive_fakes import CountingIds
from group_members import Members

from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.topics import Topic
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP = "readers"
REBALANCE_MS, SESSION_MS = 30_000, 45_000


class MadeTopics:
    """Topics with their numbers of partitions; the id of each is its name, padded."""

    def __init__(self, **partitions: int) -> None:
        self.made = dict(partitions)
        self.looks = 0
        self.ids: dict[str, str] = {}
        """Other ids of some of them."""
        self.without_id: set[str] = set()
        """Those of brokers before Kafka 2.8."""
        self._names: tuple[str, ...] = ()

    def look(self, names: Iterable[str]) -> None:
        self.looks += 1
        if set(self._names) != set(self.made):
            self._names = tuple(self.made)

    def names(self) -> Collection[str]:
        return self._names

    def topic(self, name: str) -> Topic | None:
        is_there = name in self.made and name not in self.without_id
        return Topic(self.ids.get(name, id_of(name)), self.made[name]) if is_there else None

    def name_of(self, topic_id: str) -> str | None:
        return next((name for name in self.made if id_of(name) == topic_id), None)


def id_of(topic: str) -> str:
    """The id of a topic, which ends as one of 16 bytes does."""
    return topic.ljust(21, "-") + "A"


Has = dict[str, frozenset[int]]
"""Partitions by the name of the topic."""


@dataclass
class Consumer:
    """A client: what it was told last, and what it has. It gives up at once what it is to give up, and says so next time."""

    member_id: str
    epoch: int = 0
    has: Has = field(default_factory=dict)
    code: int = 0
    said: str | None = None

    def told(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.code, self.said = response.error_code, response.error_message
        if self.code:
            return
        self.epoch = response.member_epoch
        if response.assignment is not None:
            of = response.assignment.topic_partitions
            self.has = {one.topic_id.rstrip("A").rstrip("-"): frozenset(one.partitions) for one in of}

    @property
    def owned(self) -> tuple[TopicPartitions, ...]:
        return tuple(TopicPartitions(id_of(name), tuple(sorted(numbers))) for name, numbers in self.has.items())


class Consumers(Members):
    """A coordinator, and what members of the consumer group `readers` ask of it."""

    def __init__(self, topics: Mapping[str, int] | None = None, log: Any = None, **config: Any) -> None:
        self.topics = MadeTopics(**({"orders": 6} if topics is None else topics))
        self.hidden: set[str] = set()
        self.starts = 0
        self.latest: ConsumerGroupHeartbeatResponse | None = None
        super().__init__(log, **{"consumer_group_assignment_interval_ms": 0, **config})

    def started(self) -> GroupCoordinator:
        self.starts += 1  # ids that nobody has had, as those of a process are
        ids = CountingIds(f"{self.starts:02x}")
        found = GroupCoordinator(self.config, self.log, self.clock, ids, self.said.append, self.topics)
        found.load()
        self.groups = found
        return found

    def hear(self, version: int = 1, **said: Any) -> ConsumerGroupHeartbeatResponse:
        """The answer to a request as it is."""
        request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, **said})
        client = Client("client", "/192.0.2.1", version)
        try:
            found = self.groups.consumer_group_heartbeat(request, client, lambda name: name not in self.hidden)
        except GroupError as e:
            found = ConsumerGroupHeartbeatResponse(error_code=e.code, error_message=e.message)
        self.latest = found
        return found

    def joined(self, member_id: str, *topics: str, regex: str | None = None, **more: Any) -> Consumer:
        """A client that has asked to join."""
        consumer, names = Consumer(member_id), topics or (("orders",) if regex is None else None)
        said = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": names, "subscribed_topic_regex": regex}
        consumer.told(self.hear(member_id=member_id, topic_partitions=(), **{**said, **more}))
        return consumer

    def beat(self, consumer: Consumer, **said: Any) -> Consumer:
        """A heartbeat with what the client has."""
        more = {"topic_partitions": consumer.owned, **said}
        consumer.told(self.hear(member_id=consumer.member_id, member_epoch=consumer.epoch, **more))
        return consumer

    def gone(self, consumer: Consumer, epoch: int = -1, **more: Any) -> ConsumerGroupHeartbeatResponse:
        """The answer to a client that leaves."""
        return self.hear(member_id=consumer.member_id, member_epoch=epoch, **more)

    def settled(self, *consumers: Consumer, rounds: int = 5) -> list[Has]:
        """What the clients have after some heartbeats of each."""
        for _ in range(rounds):
            for one in consumers:
                self.beat(one)
        return [one.has for one in consumers]

    @property
    def group(self) -> ConsumerGroup:
        """The group."""
        return self.groups._groups.consumers[GROUP]

    def listed(self, *types: str) -> list[tuple[str, str, str]]:
        """The groups of these types: id, type and state."""
        from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest

        found = self.groups.list_groups(ListGroupsRequest(types_filter=types)).groups
        return [(one.group_id, one.group_type, one.group_state) for one in found]
