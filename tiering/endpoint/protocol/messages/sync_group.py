"""SyncGroup (14): what the leader of a group assigns."""

from dataclasses import dataclass
from typing import Final

from tiering.endpoint.protocol.fields import array, binary, int16, int32, string

_PROTOCOL_SINCE: Final = 5
"""The version since which a member says which protocol it means."""


@dataclass(frozen=True, slots=True)
class SyncGroupRequestAssignment:
    """What the leader assigns to a member."""

    member_id: str = string()
    assignment: bytes = binary()


@dataclass(frozen=True, slots=True)
class SyncGroupRequest:
    """Asks for the member's assignment; the leader's request has those of all members."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None)
    protocol_name: str | None = string("5+", nullable="5+", default=None)
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)

    def lacks_protocol(self, version: int) -> bool:
        """Whether it does not say which protocol the member means, where it has to."""
        return version >= _PROTOCOL_SINCE and None in (self.protocol_type, self.protocol_name)


@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    """The member's assignment."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", default=None)
    protocol_name: str | None = string("5+", nullable="5+", default=None)
    assignment: bytes = binary()
