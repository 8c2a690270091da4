"""Members of a group in one line each; the clock is moved by hand, and what is due on the way happens at its time."""

from collections.abc import Mapping
from concurrent.futures import Future
from struct import pack
from typing import Any

from offsets_kept import Coordinator

from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_groups import DescribedGroup
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import MemberIdentity
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 60_000, 3_000
GROUP = "readers"


def subscription(*topics: str) -> bytes:
    """What a consumer says of itself, in version 0."""
    return pack(">hi", 0, len(topics)) + b"".join(pack(">h", len(topic)) + topic.encode() for topic in topics) + pack(">i", -1)


RANGE = {"range": subscription("orders")}


class Members(Coordinator):
    """A coordinator, and what members of the group `readers` ask of it."""

    def join(
        self,
        member_id: str = "",
        protocols: Mapping[str, bytes] = RANGE,
        *,
        group: str = GROUP,
        instance_id: str | None = None,
        protocol_type: str = "consumer",
        version: int = 9,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> "Future[JoinGroupResponse]":
        """The answer may come later."""
        offered = tuple(JoinGroupRequestProtocol(name, metadata) for name, metadata in protocols.items())
        request = JoinGroupRequest(group, session_ms, rebalance_ms, member_id, instance_id, protocol_type, offered)
        return self.groups.join_group(request, Client("client", "/192.0.2.1", version))

    def new(self, protocols: Mapping[str, bytes] = RANGE, **more: Any) -> "Future[JoinGroupResponse]":
        """A new member that joins, with an id that it is given first where it is not static."""
        if more.get("instance_id") is not None:
            return self.join("", protocols, **more)
        told = self.join("", protocols, **more).result(0)
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return self.join(told.member_id, protocols, **more)

    def later(self, ms: int) -> None:
        """So much time passes."""
        end = self.clock.now + ms
        while (due := self.groups._rebalancing.timers.next_ms) is not None and due <= end:
            self.clock.now = max(due, self.clock.now)
            self.groups.tick()
        self.clock.now = end

    def rebalanced(self, count: int, *, instances: tuple[str | None, ...] = (), **more: Any) -> list[JoinGroupResponse]:
        """The answers of a group of so many members whose first rebalance is over; the first one leads."""
        names = instances or (None,) * count
        joins = [self.new(instance_id=name, **more) for name in names]
        self.later(2 * DELAY_MS)
        return [join.result(0) for join in joins]

    def stable(self, count: int, **more: Any) -> list[str]:
        """The ids of the members of a stable group, each with its number as assignment."""
        members = self.rebalanced(count, **more)
        ids = [member.member_id for member in members]
        leader = self.sync(ids[0], members[0].generation_id, {one: str(at).encode() for at, one in enumerate(ids)})
        others = [self.sync(one, members[0].generation_id) for one in ids[1:]]
        assert [done.result(0).assignment for done in (leader, *others)] == [str(at).encode() for at in range(count)]
        return ids

    def sync(
        self,
        member_id: str,
        generation: int = 1,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = GROUP,
        **more: Any,
    ) -> "Future[SyncGroupResponse]":
        """The answer may come later."""
        given = tuple(SyncGroupRequestAssignment(one, data) for one, data in (assignments or {}).items())
        return self.groups.sync_group(SyncGroupRequest(group, generation, member_id, assignments=given, **more))

    def heartbeat(self, member_id: str, generation: int = 1, instance_id: str | None = None, *, group: str = GROUP) -> int:
        """Its error code."""
        try:
            return self.groups.heartbeat(HeartbeatRequest(group, generation, member_id, instance_id))
        except GroupError as e:
            return e.code

    def leave(self, *members: str | tuple[str, str | None], group: str = GROUP) -> list[int]:
        """The error codes, by member id, or by member id and instance id."""
        identities = [MemberIdentity(*((one,) if isinstance(one, str) else one)) for one in members]
        return list(self.groups.leave_group(group, identities))

    def described(self, group: str = GROUP) -> DescribedGroup:
        """As for an administrator."""
        return self.groups.describe_group(group, 6)

    @property
    def state(self) -> str:
        """The group's state."""
        return self.described().group_state

    def kept_alive(self, ms: int, *members: str, generation: int = 1) -> None:
        """So much time passes, with a heartbeat of the members every three seconds."""
        for _ in range(ms // 3_000):
            self.later(3_000)
            for member_id in members:
                self.heartbeat(member_id, generation)
        self.later(ms % 3_000)


def code(answer: "Future[Any]") -> int:
    """The error code of an answer that is there."""
    return answer.result(0).error_code  # type: ignore[no-any-return]
