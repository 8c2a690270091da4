"""Keys and values of the topic `__consumer_offsets`."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, binary, int32, int64, string, uuid


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """The key of a committed offset."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


@dataclass(frozen=True, slots=True)
class OffsetCommitValue:
    """A committed offset."""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1)
    topic_id: str = uuid("4+", tag=0)


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    """The key of a group."""

    group: str = string()


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member of a group's generation."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A group's generation, as it was when it became stable or empty."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1)
    members: tuple[MemberMetadata, ...] = array(MemberMetadata)
