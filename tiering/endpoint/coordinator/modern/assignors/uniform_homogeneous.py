"""Kafka's uniform assignor for members that subscribe the same topics: equal numbers of partitions, and few that change hands."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tiering.endpoint.coordinator.modern.assignors.group_spec import GroupSpec, Partitions, copied, frozen, in_java_order


@dataclass(slots=True)
class _Assignment:
    """`extra` is how many members may still have a partition more than `quota`."""

    group: GroupSpec
    topics: list[str]
    quota: int
    extra: int
    free: list[tuple[str, int]]
    found: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    unfilled: list[tuple[str, int]] = field(default_factory=list)
    """Members that may have more, and how many."""

    def revoke(self) -> None:
        """Takes from members what they do not subscribe, and what is more than their share."""
        subscribed = frozenset(self.topics)
        members = len(self.group.members)
        for at, (member_id, member) in enumerate(self.group.members.items()):
            may_have_extra = self.extra > 0
            left = self.quota + may_have_extra
            kept = {topic: numbers for topic, numbers in copied(member.assigned).items() if topic in subscribed}
            for topic, numbers in kept.items():
                surplus = sorted(numbers)[left:]
                numbers.difference_update(surplus)
                self.free += ((topic, number) for number in surplus)
                left -= len(numbers)
            if left > 0 and may_have_extra and members - at > self.extra:
                left, may_have_extra = left - 1, False  # a later member claims it, which may have it already
            if left > 0:
                self.unfilled.append((member_id, left))
            self.extra -= may_have_extra
            self.found[member_id] = kept

    def fill(self) -> None:
        """Gives members what they may have more."""
        free: Iterator[tuple[str, int]] = iter(self.free)
        for member_id, count in self.unfilled:
            for _, (topic, number) in zip(range(count), free, strict=False):
                self.found[member_id].setdefault(topic, set()).add(number)


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """The partitions of each member."""
    topics = in_java_order(next(iter(group.members.values())).topics)
    if not topics:
        return {}
    taken = {(topic, number) for member in group.members.values() for topic, of in member.assigned.items() for number in of}
    every = [(topic, number) for topic in topics for number in range(group.partitions[topic])]
    quota, extra = divmod(len(every), len(group.members))
    found = _Assignment(group, topics, quota, extra, [one for one in every if one not in taken])
    found.revoke()
    found.fill()
    return {member_id: frozen(assigned) for member_id, assigned in found.found.items()}
