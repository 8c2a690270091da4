"""How much memory groups, their members and their offsets may take together: a broker's is its heap, and here is none.

What requests add is summed up, and what there is counted anew when that might be too much; so a request costs a sum.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from remote.clock import Clock
from tiering.endpoint.coordinator.classic_group import ClassicGroup, Member, Protocols
from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets

MEMBER_BYTES: Final = 2_500
"""Of a member, of an id that was handed out, or of a group, besides its texts: measured, and rounded up."""
OFFSET_BYTES: Final = 800
RECOUNT_MS: Final = 1_000
"""For so long it is taken for full after it was found to be."""


def protocols_size(protocols: Protocols) -> int:
    """What a member says of itself."""
    return sum(len(one.name) + len(one.metadata) for one in protocols)


def member_size(member: Member) -> int:
    """A member with its assignment."""
    return MEMBER_BYTES + len(member.member_id) + protocols_size(member.protocols) + len(member.assignment)


def counted(groups: Iterable[ClassicGroup], offsets: CommittedOffsets) -> int:
    """All that there is."""
    of_groups = sum(
        MEMBER_BYTES * (1 + len(group.pending_join)) + sum(map(member_size, group.members.values())) for group in groups
    )
    return of_groups + sum(OFFSET_BYTES + len(metadata) for metadata in offsets.metadata())


@dataclass(slots=True)
class GroupMemory:
    """Bytes, about. `count` counts all that there is."""

    bytes_max: int
    count: Callable[[], int]
    clock: Clock
    _used: int = 0
    """Not less than what there is."""
    _full_until_ms: int = 0

    def recount(self) -> None:
        """Counts what there is."""
        self._used = self.count()

    def takes(self, size: int) -> bool:
        """Whether there is room for so many bytes more, which are taken then."""
        if size > 0 and self._used + size > self.bytes_max:
            now_ms = self.clock.now_ms()
            if now_ms < self._full_until_ms:
                return False
            self.recount()
            if self._used + size > self.bytes_max:
                self._full_until_ms = now_ms + RECOUNT_MS
                return False
        self._used += max(0, size)
        return True
