"""Which function answers which request (Kafka's KafkaApis)."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from local_log.errors import LogError
from tiering.endpoint.apis.acls import create_acls, delete_acls, describe_acls
from tiering.endpoint.apis.alter_configs import alter_configs, incremental_alter_configs
from tiering.endpoint.apis.api_versions import api_versions, unknown_api_versions
from tiering.endpoint.apis.authorized import authorized
from tiering.endpoint.apis.authorized_groups import Answer
from tiering.endpoint.apis.client_quotas import alter_client_quotas, describe_client_quotas
from tiering.endpoint.apis.cluster import describe_cluster, describe_topic_partitions, metadata
from tiering.endpoint.apis.config_resources import list_config_resources
from tiering.endpoint.apis.configs import describe_configs
from tiering.endpoint.apis.consumer_groups import consumer_group_describe, consumer_group_heartbeat
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.create_partitions import create_partitions
from tiering.endpoint.apis.create_topics import create_topics
from tiering.endpoint.apis.delete_records import delete_records
from tiering.endpoint.apis.delete_topics import delete_topics
from tiering.endpoint.apis.features import update_features
from tiering.endpoint.apis.fetch import begin_fetch, fetch
from tiering.endpoint.apis.find_coordinator import find_coordinator
from tiering.endpoint.apis.freeing import free
from tiering.endpoint.apis.group_offsets import offset_commit, offset_delete, offset_fetch
from tiering.endpoint.apis.groups import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    sync_group,
)
from tiering.endpoint.apis.log_dirs import alter_replica_log_dirs, describe_log_dirs
from tiering.endpoint.apis.offsets import list_offsets, offset_for_leader_epoch
from tiering.endpoint.apis.produce import produce
from tiering.endpoint.apis.producers import describe_producers
from tiering.endpoint.apis.reassignments import alter_partition_reassignments, elect_leaders, list_partition_reassignments
from tiering.endpoint.apis.sasl import sasl_authenticate, sasl_handshake
from tiering.endpoint.apis.scram_credentials import alter_user_scram_credentials, describe_user_scram_credentials
from tiering.endpoint.apis.single_appends import append_one
from tiering.endpoint.apis.transaction_offsets import txn_offset_commit
from tiering.endpoint.apis.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)
from tiering.endpoint.appends.at_once import BYTES_MAX
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.fetch_sessions.contexts import FetchContext
from tiering.endpoint.fetch_sessions.manager import TOPIC_IDS_SINCE
from tiering.endpoint.hosted_logs import HostedTopic, Log, Partition
from tiering.endpoint.metrics import EndpointMetrics
from tiering.endpoint.protocol.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    ALTER_CLIENT_QUOTAS,
    ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    ALTER_USER_SCRAM_CREDENTIALS,
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ELECT_LEADERS,
    END_TXN,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_CONFIG_RESOURCES,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
    UPDATE_FEATURES,
    WRITE_TXN_MARKERS,
)
from tiering.endpoint.protocol.error_codes import error_codes
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.fetch import FetchRequest
from tiering.endpoint.protocol.reading import ELEMENT_BYTES
from tiering.endpoint.protocol.requests import RequestHeader, UnknownApiVersions, read_request, write_response
from tiering.endpoint.request_context import ConnectionContext, RequestContext
from tiering.endpoint.waiting_fetches import is_same, logs_of
from tiering.read.tiered_log import TieredLog

T = TypeVar("T")

_ANSWERS: Final[Mapping[int, Answer]] = {
    PRODUCE.key: produce,
    LIST_OFFSETS.key: list_offsets,
    METADATA.key: metadata,
    OFFSET_COMMIT.key: offset_commit,
    OFFSET_FETCH.key: offset_fetch,
    FIND_COORDINATOR.key: find_coordinator,
    JOIN_GROUP.key: join_group,
    HEARTBEAT.key: lambda message, request_context, context: heartbeat(message, context),
    LEAVE_GROUP.key: leave_group,
    SYNC_GROUP.key: sync_group,
    DESCRIBE_GROUPS.key: describe_groups,
    LIST_GROUPS.key: lambda message, request_context, context: list_groups(message, context),
    API_VERSIONS.key: lambda message, request_context, context: api_versions(message, request_context.version, context.apis),
    OFFSET_FOR_LEADER_EPOCH.key: lambda message, request_context, context: offset_for_leader_epoch(message, context),
    CREATE_TOPICS.key: create_topics,
    DELETE_TOPICS.key: delete_topics,
    DELETE_RECORDS.key: delete_records,
    DESCRIBE_ACLS.key: describe_acls,
    CREATE_ACLS.key: create_acls,
    DELETE_ACLS.key: delete_acls,
    DESCRIBE_CONFIGS.key: describe_configs,
    ALTER_CONFIGS.key: alter_configs,
    CREATE_PARTITIONS.key: create_partitions,
    INCREMENTAL_ALTER_CONFIGS.key: incremental_alter_configs,
    DESCRIBE_LOG_DIRS.key: lambda message, request_context, context: describe_log_dirs(message, context),
    DELETE_GROUPS.key: lambda message, request_context, context: delete_groups(message, context),
    OFFSET_DELETE.key: lambda message, request_context, context: offset_delete(message, context),
    SASL_HANDSHAKE.key: lambda message, request_context, context: sasl_handshake(),
    SASL_AUTHENTICATE.key: lambda message, request_context, context: sasl_authenticate(),
    DESCRIBE_CLIENT_QUOTAS.key: describe_client_quotas,
    ALTER_CLIENT_QUOTAS.key: alter_client_quotas,
    DESCRIBE_USER_SCRAM_CREDENTIALS.key: describe_user_scram_credentials,
    ALTER_USER_SCRAM_CREDENTIALS.key: alter_user_scram_credentials,
    DESCRIBE_CLUSTER.key: describe_cluster,
    DESCRIBE_PRODUCERS.key: lambda message, request_context, context: describe_producers(message, context),
    CONSUMER_GROUP_HEARTBEAT.key: consumer_group_heartbeat,
    CONSUMER_GROUP_DESCRIBE.key: consumer_group_describe,
    DESCRIBE_TOPIC_PARTITIONS.key: describe_topic_partitions,
    ADD_OFFSETS_TO_TXN.key: add_offsets_to_txn,
    ADD_PARTITIONS_TO_TXN.key: add_partitions_to_txn,
    DESCRIBE_TRANSACTIONS.key: describe_transactions,
    END_TXN.key: end_txn,
    INIT_PRODUCER_ID.key: init_producer_id,
    LIST_TRANSACTIONS.key: list_transactions,
    TXN_OFFSET_COMMIT.key: txn_offset_commit,
    WRITE_TXN_MARKERS.key: write_txn_markers,
    ALTER_REPLICA_LOG_DIRS.key: alter_replica_log_dirs,
    ELECT_LEADERS.key: elect_leaders,
    ALTER_PARTITION_REASSIGNMENTS.key: alter_partition_reassignments,
    LIST_PARTITION_REASSIGNMENTS.key: list_partition_reassignments,
    UPDATE_FEATURES.key: update_features,
    LIST_CONFIG_RESOURCES.key: list_config_resources,
}


@dataclass(frozen=True, slots=True)
class Waits:
    """A fetch with fewer bytes than it wants: ask `answer_fetch` again, with the time that it may still wait."""

    request: FetchRequest
    request_context: RequestContext
    begun: FetchContext
    seen: Mapping[Partition, Log] = field(default_factory=dict)
    """The logs, before they were looked at for records."""

    def least_bytes(self) -> int:
        """So many bytes have to come where it found none; 1 where it found some, or where these may not count."""
        if self.request.isolation_level:  # of records that are not committed
            return 1
        for one in self.begun.wanted:
            log = self.seen.get((one.topic or "", one.asked.partition))
            if not isinstance(log, TieredLog) or one.asked.fetch_offset != log.end_offset():
                return 1
        return self.request.min_bytes

    @property
    def size(self) -> int:
        """About how many bytes of memory it holds while it waits."""
        return (1 + len(self.begun.wanted)) * ELEMENT_BYTES


@dataclass(frozen=True, slots=True)
class Later:
    """A request that other requests or the time answer: `parts` are there when `response` is."""

    header: RequestHeader
    response: "Future[Any]"
    metrics: EndpointMetrics

    def parts(self) -> "list[Any] | Throttled":
        """The parts of the answer."""
        response = self.response.result()
        return _perhaps_throttled(_written(self.header, response, self.metrics), response)


@dataclass(frozen=True, slots=True)
class Throttled:
    """The parts of an answer to a client that has used up its quota: nothing more is read of it for so long."""

    parts: list[Any]
    throttle_ms: int


class OfArchive(partial[Any]):
    """A call whose answer is in an archive that may take its time: such calls have turns of their own."""


_FETCH_KEY: Final = FETCH.key.to_bytes(2, "big")
_PRODUCE_KEY: Final = PRODUCE.key.to_bytes(2, "big")
_AT_ONCE_BYTES_MAX: Final = 4 << 10
_OF_MEMBERS: Final = (OFFSET_COMMIT, HEARTBEAT, JOIN_GROUP, SYNC_GROUP)
_AT_ONCE: Final = {_PRODUCE_KEY: BYTES_MAX, **{one.key.to_bytes(2, "big"): _AT_ONCE_BYTES_MAX for one in _OF_MEMBERS}}
"""Requests that are answered at once besides fetches: of how many bytes, by the keys of their APIs."""
_AT_ONCE_PARTITIONS_MAX: Final = 16


def handle_at_once(
    frame: bytes, connection: ConnectionContext, context: Context
) -> list[Any] | Waits | Throttled | Later | Callable[[], list[Any] | Waits | Throttled | Later]:
    """The answer to a small fetch or append, or to a group's member, if nobody is waited for; else a call that waits for it.

    So these are not handed to another thread and back. `context` is one whose answers may not wait. Raises as `handle`.
    """
    if len(frame) <= _AT_ONCE.get(frame[:2], 0):
        return _once(frame, connection, context)
    if frame[:2] != _FETCH_KEY or len(frame) > _AT_ONCE_BYTES_MAX:
        return partial(handle, frame, connection, replace(context, may_wait=True))
    context.look()
    request = read_request(frame)
    assert not isinstance(request, UnknownApiVersions)
    message, request_context = request.message, RequestContext(request.header, connection)
    by_id = message.topics if request_context.version >= TOPIC_IDS_SINCE else ()
    is_large = context.fetches.size_of(message) > _AT_ONCE_PARTITIONS_MAX
    if is_large or any(context.logs.name_of(topic.topic_id) is None for topic in by_id):
        return partial(_handle_fetch, message, request_context, replace(context, may_wait=True))
    waiting = Waits(message, request_context, begin_fetch(message, request_context, context))
    return answer_fetch_at_once(waiting, context, may_wait=message.max_wait_ms > 0)


def _once(
    frame: bytes, connection: ConnectionContext, context: Context
) -> list[Any] | Waits | Throttled | Later | Callable[[], list[Any] | Waits | Throttled | Later]:
    """What of it has to wait is left to the call."""
    done: dict[Any, Any] = {}
    try:
        answer = append_one(frame, context, done) if frame[:2] == _PRODUCE_KEY else None
        return handle(frame, connection, context, done) if answer is None else answer
    except NotAtHand:
        return partial(handle, frame, connection, replace(context, may_wait=True), done)


def handle(
    frame: bytes, connection: ConnectionContext, context: Context, done: dict[Any, Any] | None = None
) -> list[Any] | Waits | Throttled | Later:
    """The parts of the answer to a request, or that it waits. Raises InvalidRequest, LogError.

    Also NotAtHand, for an append that has to wait and may not: to be handled again with the same `done`.
    """
    context.look()
    request = read_request(frame, context.elements_max, context.apis)
    if isinstance(request, UnknownApiVersions):
        return unknown_api_versions(request.correlation_id)
    header, message = request.header, request.message
    request_context = RequestContext(header, connection, {} if done is None else done)
    if header.api is FETCH:
        return _handle_fetch(message, request_context, context)
    response = authorized(_ANSWERS[header.api.key], message, request_context, context)
    if header.api is PRODUCE and message.acks == 0:
        return _perhaps_throttled(_unacknowledged(header, response, context.metrics), response)
    if not isinstance(response, Future):
        return _perhaps_throttled(_written(header, response, context.metrics), response)
    later = Later(header, response, context.metrics)
    return later.parts() if response.done() else later


def _unacknowledged(header: RequestHeader, response: Any, metrics: EndpointMetrics) -> list[Any]:
    """No answer, since none is waited for. Raises InvalidRequest for an error: only a closed connection tells it."""
    codes = error_codes(response)
    metrics.failed(header.api.name, codes)
    if codes:
        said = next((p.error_message for t in response.responses for p in t.partition_responses if p.error_message), None)
        raise InvalidRequest(said or f"an append without acknowledgement fails: {ErrorCode(codes[0]).name}")
    return []


def _handle_fetch(message: FetchRequest, request_context: RequestContext, context: Context) -> list[Any] | Waits | Throttled:
    waiting = Waits(message, request_context, begin_fetch(message, request_context, context))
    return answer_fetch(waiting, context, may_wait=message.max_wait_ms > 0)


def answer_fetch_at_once(
    waiting: Waits, context: Context, *, may_wait: bool
) -> list[Any] | Waits | Throttled | Callable[[], list[Any] | Waits | Throttled]:
    """As `handle_at_once`, for a fetch that was begun before."""
    if len(waiting.begun.wanted) <= _AT_ONCE_PARTITIONS_MAX:
        try:
            return answer_fetch(waiting, context, may_wait=may_wait)
        except NotAtHand:
            pass
    call = OfArchive if _asks_archive(waiting, context.logs.known()) else partial
    return call(answer_fetch, waiting, replace(context, may_wait=True), may_wait=may_wait)


def _asks_archive(waiting: Waits, topics: Mapping[str, HostedTopic]) -> bool:
    """Whether one of the first partitions is read where only the archive has it."""
    for one in waiting.begun.wanted[:_AT_ONCE_PARTITIONS_MAX]:
        topic = topics.get(one.topic or "")
        log = None if topic is None else topic.partitions.get(one.asked.partition)
        if isinstance(log, TieredLog) and log.is_archived_alone(one.asked.fetch_offset):
            return True
    return False


def answer_fetch(waiting: Waits, context: Context, *, may_wait: bool) -> list[Any] | Waits | Throttled:
    """The parts of the answer to a fetch, or that it waits. Raises InvalidRequest, LogError."""
    if waiting.seen:
        context.look()  # it has waited, perhaps for days, and what its client may read can have changed
    seen: dict[Partition, Log] = {}
    if may_wait:
        wanted = ((one.topic, one.asked.partition) for one in waiting.begun.wanted if one.topic is not None)
        seen = logs_of(wanted, context.logs.known())
    response = fetch(waiting.begun, waiting.request, waiting.request_context, context, may_wait=may_wait)
    if response is None and not is_same(seen, waiting.seen):
        return replace(waiting, seen=seen)
    free(seen)
    if response is None:
        return waiting
    found = _perhaps_throttled(_written(waiting.request_context.header, response, context.metrics), response)
    told = [one for topic in response.responses for one in topic.partitions]
    del response
    free(told)
    return found


def _perhaps_throttled(parts: list[Any], response: Any) -> list[Any] | Throttled:
    throttle_ms = getattr(response, "throttle_time_ms", 0)
    return Throttled(parts, throttle_ms) if throttle_ms else parts


def _written(header: RequestHeader, response: Any, metrics: EndpointMetrics) -> list[Any]:
    metrics.failed(header.api.name, error_codes(response))
    return write_response(header, response)


def result_of(ask: Callable[[], T]) -> T | LogError:
    """What a call gives, or why it gives nothing."""
    try:
        return ask()
    except LogError as e:
        return e
    except Exception as e:  # a bug of ours must not leave a client without an answer, nor end the thread
        return InvalidRequest(bug(e))


def bug(failed: Exception) -> str:
    """What is said of an error that nobody thought of."""
    return f"a bug: {type(failed).__name__}: {failed}; please report it"
