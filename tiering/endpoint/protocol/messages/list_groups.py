"""ListGroups (16): the groups of a broker."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, int16, int32, string


@dataclass(frozen=True, slots=True)
class ListGroupsRequest:
    """Asks for all groups, or for those in some states and of some types."""

    states_filter: tuple[str, ...] = array(STRING, "4+")
    types_filter: tuple[str, ...] = array(STRING, "5+")


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+")
    group_type: str = string("5+")


@dataclass(frozen=True, slots=True)
class ListGroupsResponse:
    """The groups that the broker coordinates."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    groups: tuple[ListedGroup, ...] = array(ListedGroup)
