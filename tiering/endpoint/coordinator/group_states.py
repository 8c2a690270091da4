"""The states of a classic group, which may follow which, and what each answers (Kafka's ClassicGroupState).

                   the first member joins                            every member has joined, or the time is up
Empty ---------------------------------------> PreparingRebalance ---------------------------------------> CompletingRebalance
  ^                                              |   ^        ^                                                |         |
  +----- every member has left or has failed ----+   |        +--- a member joins anew, leaves or has failed --+         |
                                                     |                                                                   |
                                                     +--- a member joins anew, leaves or has failed --- Stable <---------+
                                                                                                  the leader has assigned
any of them --- the group is deleted ---> Dead
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tiering.endpoint.protocol.errors import ErrorCode


class GroupState(StrEnum):
    """As clients are told."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING = GroupState.EMPTY, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
STABLE, DEAD = GroupState.STABLE, GroupState.DEAD

PREVIOUS: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    EMPTY: frozenset({PREPARING}),
    PREPARING: frozenset({EMPTY, COMPLETING, STABLE}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset(GroupState),
}
"""The states that a state may follow."""

ON_HEARTBEAT: Final[Mapping[GroupState, ErrorCode]] = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    COMPLETING: ErrorCode.NONE,
    STABLE: ErrorCode.NONE,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The answer to a heartbeat of a member of the current generation."""

ON_COMMIT: Final[Mapping[GroupState, ErrorCode]] = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    PREPARING: ErrorCode.NONE,
    COMPLETING: ErrorCode.REBALANCE_IN_PROGRESS,
    STABLE: ErrorCode.NONE,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The answer to a commit of a member of the current generation: the former assignment may be committed while members join."""

ON_DELETE: Final[Mapping[GroupState, ErrorCode]] = {
    EMPTY: ErrorCode.NONE,
    PREPARING: ErrorCode.NON_EMPTY_GROUP,
    COMPLETING: ErrorCode.NON_EMPTY_GROUP,
    STABLE: ErrorCode.NON_EMPTY_GROUP,
    DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}
"""The answer to the deletion of a group."""
