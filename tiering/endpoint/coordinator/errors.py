"""What a group coordinator refuses."""

from dataclasses import dataclass

from tiering.endpoint.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class GroupError(Exception):
    """A request that is answered with an error code."""

    code: ErrorCode
