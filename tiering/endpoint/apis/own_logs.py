"""What the APIs that write have in common: the log directories of this process, and the codes of their errors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from local_log.engine.config import LogConfig
from local_log.errors import LogError
from tiering.endpoint.apis.context import Context
from tiering.endpoint.appends.free_room import check_room_for_topics
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.settings import STORAGE_MIN_FREE_BYTES
from tiering.local_tier.errors import InvalidPartitions, InvalidTopic, InvalidTopicConfig, TopicExists, UnknownTopicOrPartition
from tiering.local_tier.topics import config_of

if TYPE_CHECKING:
    from tiering.local_tier.local_tier import LocalTier

_OF_TOPICS = (InvalidPartitions, InvalidTopic, InvalidTopicConfig, TopicExists, UnknownTopicOrPartition)


def own_tier(context: Context) -> "LocalTier":
    """The log directories of this process. Raises InvalidRequest where there are none; ApiVersions says so."""
    if context.local_tier is None:
        raise InvalidRequest("this endpoint has no log directory of its own, and changes no topics")
    return context.local_tier


def refusal_code(error: LogError, what: str, context: Context) -> ErrorCode:
    """What a client is told of a change that fails. Those of a disk are reported, too."""
    if isinstance(error, _OF_TOPICS):
        return ErrorCode(error.code)
    context.report(f"{what}: {error}")
    return ErrorCode.KAFKA_STORAGE_ERROR


def check_room(context: Context) -> None:
    """Raises Unreadable where there is no room for the files of a new topic."""
    check_room_for_topics(context.logs.directories(), context.settings[STORAGE_MIN_FREE_BYTES])


def config_with(name: str, own: Mapping[str, str], tier: "LocalTier") -> LogConfig:
    """The settings that a topic's logs would have with these of its own. Raises InvalidTopicConfig."""
    return config_of(name, tier.defaults(name), own)


def is_known_broker(broker_id: int, context: Context) -> bool:
    """Whether a replica may be on this broker: no other one has these log directories."""
    return broker_id == context.cluster.live.node_id
