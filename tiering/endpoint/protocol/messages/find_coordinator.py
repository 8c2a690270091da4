"""FindCoordinator (10): which broker coordinates groups and transactions."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest:
    """Asks which broker coordinates a group or a transactional id; from version 4 on several."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: tuple[str, ...] = array(STRING, "4+")


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that coordinates what `key` names."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+")


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """The coordinators."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3")
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: tuple[Coordinator, ...] = array(Coordinator, "4+")
