"""The brokers that answer for the archive's topics, and which of them leads a partition.

They share nothing but the archive, so each could answer for every partition. That one of them leads it keeps what is read ahead
and cached for it in one place. Rendezvous hashing: only the partitions of a broker that comes or goes change their leader.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

HEARTBEAT_S: Final = 2.0
"""`broker.heartbeat.interval.ms`."""


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """Where clients reach a broker."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class LiveBrokers:
    """Those that are alive, by their ids; `node_id` is that of this process, which is one of them."""

    node_id: int
    brokers: tuple[Broker, ...]
    _leaders: dict[tuple[str, int], int] = field(default_factory=dict, compare=False, repr=False)

    def leader_of(self, topic: str, partition: int) -> int:
        """The id of the broker that leads a partition: the same on every broker that sees the same ones alive."""
        if len(self.brokers) == 1:
            return self.brokers[0].node_id
        leader = self._leaders.get((topic, partition))
        if leader is None:
            leader = max(self.brokers, key=lambda broker: _weight(topic, partition, broker.node_id)).node_id
            self._leaders[topic, partition] = leader
        return leader

    def leads(self, topic: str, partition: int) -> bool:
        """Whether this process leads a partition."""
        return self.leader_of(topic, partition) == self.node_id


class Brokers(Protocol):
    """A way to know which brokers are alive; for one thread."""

    def join(self, sleep: Callable[[float], object]) -> LiveBrokers:
        """The brokers that are alive when this one begins. Raises LogError."""

    def heartbeat(self) -> LiveBrokers:
        """Tells the others that this broker is alive, and returns those that are. Raises LogError."""

    def leave(self) -> None:
        """Tells the others that this broker ends. Raises LogError."""


@dataclass(slots=True)
class Cluster:
    """Holds the brokers that are alive now: one value, which another thread may replace."""

    live: LiveBrokers


def alone(broker: Broker) -> Cluster:
    """A cluster of one broker."""
    return Cluster(LiveBrokers(broker.node_id, (broker,)))


def _weight(topic: str, partition: int, node_id: int) -> bytes:
    return hashlib.blake2b(f"{topic}-{partition}/{node_id}".encode(), digest_size=8).digest()
