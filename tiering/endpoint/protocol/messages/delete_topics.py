"""DeleteTopics (20): topics are deleted, by name or id."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, int16, int32, string, uuid


@dataclass(frozen=True, slots=True)
class DeleteTopicState:
    """A topic by name or by id."""

    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: str = uuid("6+")


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest:
    """Asks to delete topics."""

    topics: tuple[DeleteTopicState, ...] = array(DeleteTopicState, "6+")
    topic_names: tuple[str, ...] = array(STRING, "0-5")
    timeout_ms: int = int32()


@dataclass(frozen=True, slots=True)
class DeletableTopicResult:
    """Whether a topic is deleted."""

    name: str | None = string(nullable="6+")
    topic_id: str = uuid("6+")
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None)


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32("1+")
    responses: tuple[DeletableTopicResult, ...] = array(DeletableTopicResult)
