"""Who of a topic's subscribers is to get a partition next, and who is to give one up (Kafka's MemberAssignmentBalancer).

Subscribers are sorted by how many partitions they have. Those with the fewest are a range at the start, which gets longer as they
get as many as the next one; those with the most are one at the end, which gets longer as they give some up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Balancer:
    """`sizes` are how many partitions each member has, by its number: whoever asks changes them as partitions move."""

    sizes: Sequence[int]
    members: list[int]
    least_end: int
    least_size: int
    next_least: int
    most_start: int
    most_end: int
    most_size: int
    next_most: int

    @classmethod
    def of(cls, subscribers: Iterable[int], sizes: Sequence[int]) -> "Balancer":
        """For the subscribers of a topic, one at least."""
        members = sorted(subscribers, key=lambda one: (sizes[one], one))
        count = len(members)
        return cls(sizes, members, 0, sizes[members[0]] - 1, 0, count, count, sizes[members[-1]] + 1, count - 1)

    @property
    def imbalance(self) -> int:
        """How many partitions more the first one of the most loaded has than the first one of the least loaded, at the start."""
        return self.sizes[self.members[-1]] - self.sizes[self.members[0]]

    @property
    def is_balanced(self) -> bool:
        """Whether nothing more can be gained."""
        return self.most_size - self.least_size <= 1

    def take_least(self) -> int:
        """The member to get a partition."""
        if self.next_least >= self.least_end:
            self.least_size += 1
            while self.least_end < len(self.members) and self.sizes[self.members[self.least_end]] == self.least_size:
                self.least_end += 1
            self.next_least = 0
        self.next_least += 1
        return self.members[self.next_least - 1]

    def take_most(self) -> int | None:
        """The member to give up a partition, None if there is none any more."""
        if self.next_most < self.most_start:
            if self.most_end <= self.most_start and self.most_start > 0:  # all of them were excluded
                self.most_size = self.sizes[self.members[self.most_start - 1]]
            else:
                self.most_size -= 1
            while self.most_start > 0 and self.sizes[self.members[self.most_start - 1]] == self.most_size:
                self.most_start -= 1
            self.next_most = self.most_end - 1
        if self.next_most < 0:
            return None
        self.next_most -= 1
        return self.members[self.next_most + 1]

    def exclude_most(self) -> None:
        """The member that was taken last has none of the topic's partitions."""
        at, last = self.next_most + 1, self.most_end - 1
        self.members[at], self.members[last] = self.members[last], self.members[at]
        self.most_end -= 1
