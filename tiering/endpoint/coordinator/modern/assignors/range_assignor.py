"""Kafka's RangeAssignor: each topic's partitions in as many ranges as it has subscribers, alike for topics that are alike."""

from collections import Counter
from itertools import pairwise
from typing import Final

from tiering.endpoint.coordinator.modern.assignors.group_spec import GroupSpec, Partitions

NAME: Final = "range"


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """The partitions of each member: static ones come first, by instance id; the others by member id."""
    subscribers = Counter(topic for member in group.members.values() for topic in member.topics)
    ranges = {topic: _ranges(group.partitions[topic], count) for topic, count in subscribers.items()}
    found: dict[str, Partitions] = {}
    for member_id in sorted(group.members, key=lambda one: _rank(one, group.members[one].instance_id)):
        given = ((topic, ranges[topic].pop()) for topic in group.members[member_id].topics)
        found[member_id] = {topic: frozenset(numbers) for topic, numbers in given if numbers}
    return found


def _ranges(partitions: int, members: int) -> list[range]:
    """The last range first. The first ones have a partition more, if they cannot all have the same number."""
    quota, extra = divmod(partitions, members)
    starts = [at * quota + min(at, extra) for at in range(members + 1)]
    return [range(start, end) for start, end in pairwise(starts)][::-1]


def _rank(member_id: str, instance_id: str | None) -> tuple[bool, bytes]:
    """Texts are ordered as Java does, by their UTF-16 units."""
    return instance_id is None, (instance_id or member_id).encode("utf-16-be", "surrogatepass")
