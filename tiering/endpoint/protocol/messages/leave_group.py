"""LeaveGroup (13): members leave a group."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int16, int32, string


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member by its id, or a static one by its instance id."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None)


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest:
    """Asks to remove a member from its group; from version 3 on several."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: tuple[MemberIdentity, ...] = array(MemberIdentity, "3+")


@dataclass(frozen=True, slots=True)
class MemberResponse:
    """Whether a member was removed."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse:
    """The outcome, from version 3 on by member."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    members: tuple[MemberResponse, ...] = array(MemberResponse, "3+")
