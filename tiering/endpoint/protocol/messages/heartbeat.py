"""Heartbeat (12): a member of a group is alive."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import int16, int32, string


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """Says that a member is alive, and asks whether the group rebalances."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Whether the member is to join again, by the error code."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
