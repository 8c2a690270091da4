"""DeleteGroups (42): groups are forgotten."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, int16, int32, string


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest:
    """Asks to forget groups without members, with their offsets."""

    groups_names: tuple[str, ...] = array(STRING)


@dataclass(frozen=True, slots=True)
class DeletableGroupResult:
    """Whether a group is forgotten."""

    group_id: str = string()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse:
    """The outcome, by group."""

    throttle_time_ms: int = int32()
    results: tuple[DeletableGroupResult, ...] = array(DeletableGroupResult)
