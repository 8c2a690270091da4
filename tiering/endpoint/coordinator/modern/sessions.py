"""How long members of consumer groups may take: to be heard of, to give up partitions, and, if they are of the classic protocol,
to join again when they are told to, and to ask for their assignment after that.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember, MemberState
from tiering.endpoint.coordinator.timers import Timers


@dataclass(frozen=True, slots=True)
class Sessions:
    """Times of members. `timeout_ms` is how long a member of KIP-848 of a group may be silent.

    `expire` is told the group and the member whose time has passed, and the epoch of the member if it counts only in this one.
    """

    timers: Timers
    timeout_ms: Callable[[str], int]
    expire: Callable[[str, str, int | None], None]

    def expect_heartbeat(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A member that is not heard of any more is removed. One of the classic protocol has said itself how long that takes."""
        after_ms = self.timeout_ms(group_id) if member.classic is None else member.classic.session_timeout_ms
        self._schedule("session", group_id, member.member_id, after_ms)

    def expect_revocation(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A member that does not give up in time what it is to give up is removed. Those of the classic protocol join again."""
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            self._schedule("revocation", group_id, member.member_id, member.rebalance_timeout_ms, member.epoch)
        else:
            self.timers.cancel(("revocation", group_id, member.member_id))

    def expect_join(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A classic member is told to join again: its time begins when it is told first."""
        if not self.timers.is_scheduled(("join", group_id, member.member_id)):
            self._schedule("join", group_id, member.member_id, member.rebalance_timeout_ms)

    def joined(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A classic member has joined: it is to ask for its assignment."""
        self.timers.cancel(("join", group_id, member.member_id))
        self.expect_heartbeat(group_id, member)
        self._schedule("sync", group_id, member.member_id, member.rebalance_timeout_ms)

    def synced(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A classic member has asked for its assignment."""
        self.timers.cancel(("sync", group_id, member.member_id))
        self.expect_heartbeat(group_id, member)

    def is_of_classic_no_more(self, group_id: str, member_id: str) -> None:
        """A member uses the protocol of KIP-848 now."""
        self.timers.cancel(("join", group_id, member_id))
        self.timers.cancel(("sync", group_id, member_id))

    def expect_no_more(self, group_id: str, member_id: str) -> None:
        """A member is there no more."""
        for what in ("session", "revocation", "join", "sync"):
            self.timers.cancel((what, group_id, member_id))

    def _schedule(self, what: str, group_id: str, member_id: str, after_ms: int, epoch: int | None = None) -> None:
        key = (what, group_id, member_id)
        self.timers.schedule(key, after_ms, lambda: self.expire(group_id, member_id, epoch))
