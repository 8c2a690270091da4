"""DescribeGroups (15): groups and their members."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, binary, boolean, int16, int32, string


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """Asks for groups with their members."""

    groups: tuple[str, ...] = array(STRING)
    include_authorized_operations: bool = boolean("3+")


@dataclass(frozen=True, slots=True)
class DescribedGroupMember:
    """A member, and what is assigned to it."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group with its members. One that does not exist is Dead; version 6 has an error instead."""

    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: tuple[DescribedGroupMember, ...] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse:
    """The groups asked for."""

    throttle_time_ms: int = int32("1+")
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
