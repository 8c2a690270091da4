"""JoinGroup (11): membership in a group."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, binary, boolean, int16, int32, string


@dataclass(frozen=True, slots=True)
class JoinGroupRequestProtocol:
    """A protocol that a member supports, for consumers an assignor, and what it says of the member."""

    name: str = string()
    metadata: bytes = binary()


@dataclass(frozen=True, slots=True)
class JoinGroupRequest:
    """Asks for membership in a group's next generation. A new member has no member id."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None)


@dataclass(frozen=True, slots=True)
class JoinGroupResponseMember:
    """A member, as the leader needs to know it."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    metadata: bytes = binary()


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """The generation, its leader and, for the leader, all members."""

    throttle_time_ms: int = int32("2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)
