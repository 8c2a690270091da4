"""Kafka's uniform assignor for members that subscribe different topics: numbers of partitions that are about equal."""

from dataclasses import dataclass, field
from typing import Final

from tiering.endpoint.coordinator.modern.assignors.balancer import Balancer
from tiering.endpoint.coordinator.modern.assignors.group_spec import GroupSpec, Partitions, frozen, halves

_ROUNDS_MAX: Final = 16


@dataclass(slots=True)
class _Assignment:
    """Members are numbered. `owners` are those of each topic's partitions, None for a partition that nobody has."""

    group: GroupSpec
    ids: list[str]
    subscribers: dict[str, list[int]] = field(default_factory=dict)
    owners: dict[str, list[int | None]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def begin(self) -> None:
        """What members have of what they subscribe."""
        self.sizes = [0] * len(self.ids)
        for number, member_id in enumerate(self.ids):
            for topic in self.group.members[member_id].topics:
                self.subscribers.setdefault(topic, []).append(number)
        self.owners = {topic: [None] * self.group.partitions[topic] for topic in self.subscribers}
        for number, member_id in enumerate(self.ids):
            member = self.group.members[member_id]
            for topic in member.assigned.keys() & member.topics:
                for partition in member.assigned[topic]:
                    self.give(topic, partition, number)

    def give(self, topic: str, partition: int, member: int) -> None:
        """The partition is the member's."""
        before = self.owners[topic][partition]
        if before is not None:
            self.sizes[before] -= 1
        self.owners[topic][partition] = member
        self.sizes[member] += 1

    def sorted_topics(self) -> list[str]:
        """Those with the most partitions a subscriber first."""

        def rank(topic: str) -> tuple[float, int, tuple[int, int]]:
            count = len(self.subscribers[topic])
            return -self.group.partitions[topic] / count, count, halves(topic)

        return sorted(self.subscribers, key=rank)

    def fill(self) -> None:
        """Gives away what nobody has."""
        for topic in self.sorted_topics():
            balancer = Balancer.of(self.subscribers[topic], self.sizes)
            for partition, owner in enumerate(self.owners[topic]):
                if owner is None:
                    self.give(topic, partition, balancer.take_least())

    def balance(self) -> None:
        """Moves partitions until no topic can be balanced any better, or it has taken long enough."""
        topics = [topic for topic in self.sorted_topics() if len(self.subscribers[topic]) > 1]
        last: str | None = None
        for _ in range(_ROUNDS_MAX):
            for topic in topics:
                if topic == last:
                    return
                if self.balance_topic(topic) or last is None:
                    last = topic

    def balance_topic(self, topic: str) -> bool:
        """Moves partitions from the subscribers with the most to those with the fewest. False if none was moved."""
        balancer, has_moved = Balancer.of(self.subscribers[topic], self.sizes), False
        if balancer.imbalance <= 1:
            return False
        owned: dict[int | None, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic]):
            owned.setdefault(owner, []).append(partition)
        while not balancer.is_balanced:
            most = balancer.take_most()
            while most is not None and not owned.get(most):
                balancer.exclude_most()
                most = balancer.take_most()
            if most is None:
                break
            partition, least = owned[most].pop(), balancer.take_least()
            if balancer.is_balanced:
                break
            self.give(topic, partition, least)
            has_moved = True
        return has_moved


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """The partitions of each member."""
    found = _Assignment(group, list(group.members))
    found.begin()
    if not found.subscribers:
        return {}
    found.fill()
    found.balance()
    assigned: list[dict[str, list[int]]] = [{} for _ in found.ids]
    for topic, owners in found.owners.items():
        for partition, owner in enumerate(owners):
            if owner is not None:
                assigned[owner].setdefault(topic, []).append(partition)
    return {member_id: frozen(assigned[number]) for number, member_id in enumerate(found.ids)}
