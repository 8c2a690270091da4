"""Every way in which our answers may differ from a broker's, each with the reason and with a request that shows it.

docs/serve.md has the same as a table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compared_answers import Compared, Difference
from compared_logins import Token

from local_log.formats.batches import scan
from local_log.formats.list_offsets import EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED
from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.apis.configs import BROKERS_MAX, ResourceType
from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    UPDATE_FEATURES,
    Api,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tiering.endpoint.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tiering.endpoint.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

_TRANSACTION = 1
_INTERNAL = {"__consumer_offsets", "__transaction_state"}
_OF_TIERS = (EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """What differs, and why; `holds` says whether a difference is one of these."""

    what: str
    reason: str
    holds: Callable[[Compared, Difference], bool]
    shown_by: tuple[tuple[Api, int, object], ...]
    """A request, or the life of a group."""


def _names(of: Compared, found: Difference) -> bool:
    if found.path.endswith("session_id"):
        return bool(found.theirs > 0) == bool(found.ours > 0)
    is_name = found.path.rpartition(".")[2] in ("host", "port", "cluster_id", "log_dir")
    return is_name and None not in (found.theirs, found.ours)


def _apis(of: Compared, found: Difference) -> bool:
    older = found.path == "api_keys.min_version" and found.ours < found.theirs
    return of.api is API_VERSIONS and (older or found.path == "api_keys[]")


def _features(of: Compared, found: Difference) -> bool:
    return of.api is API_VERSIONS and "features" in found.path


def _order(of: Compared, found: Difference) -> bool:
    if of.api is FETCH:  # partitions that can be read have the request's order
        return found.path.endswith("[order]") and any(one.error_code for one in _fetched(of.theirs))
    return found.path.endswith("[order]")


def _settings(of: Compared, found: Difference) -> bool:
    own = ("value", "read_only", "config_source", "synonyms", "documentation")
    if found.path in ("results.configs.is_sensitive", "results.configs.config_type"):  # a broker has no type for its authorizer's
        return bool(found.within[-1][0].name == "super.users")
    return found.path == "results.configs[]" or found.path.startswith(tuple(f"results.configs.{name}" for name in own))


def _many_brokers(of: Compared, found: Difference) -> bool:
    if of.api is not DESCRIBE_CONFIGS or not found.path.startswith("results."):
        return False
    return sum(one.resource_type == ResourceType.BROKER for one in of.request.resources) > BROKERS_MAX


def _directory(of: Compared, found: Difference) -> bool:
    if of.api is not DESCRIBE_LOG_DIRS:
        return False
    is_space = found.path == "results.usable_bytes" and min(found.theirs, found.ours) > 0
    return is_space or (found.path == "results.topics.partitions.partition_size" and found.ours < found.theirs)


def _words(of: Compared, found: Difference) -> bool:
    return found.path.endswith("error_message")


def _later_segments(of: Compared, found: Difference) -> bool:
    if not found.path.startswith("topics.partitions.") or of.api is not LIST_OFFSETS:
        return False
    theirs, ours = found.within[-1]
    return bool(theirs.offset == -1 < ours.offset and not theirs.error_code)


def _tiers(of: Compared, found: Difference) -> bool:
    if of.api is not LIST_OFFSETS or not found.path.startswith("topics.partitions."):
        return False
    place = found.within[-2][0].name, found.within[-1][0].partition_index
    asked = ((topic.name, one.partition_index, one.timestamp) for topic in of.request.topics for one in topic.partitions)
    return any((name, number) == place and timestamp in _OF_TIERS for name, number, timestamp in asked)


def _stable_offset(of: Compared, found: Difference) -> bool:
    if not found.path.endswith("last_stable_offset") or of.request.isolation_level:
        return False
    theirs, ours = found.within[-1]
    return bool(found.theirs < found.ours == ours.high_watermark == theirs.high_watermark)


def _whole_batches(of: Compared, found: Difference) -> bool:
    if not found.path.startswith("responses.partitions.") or found.theirs is None or found.ours is None:
        return False
    if found.path.endswith("aborted_transactions"):
        theirs, ours = found.within[-1]
        one, other = set(found.theirs), set(found.ours)
        return list(theirs.records) != list(ours.records) and (one <= other or other <= one)
    if not found.path.endswith("records"):
        return False
    return _is_cut(found.theirs, found.ours, of.bases, is_first=_is_first(of, found))


def _is_cut(theirs: bytes, ours: bytes, bases: frozenset[int], *, is_first: bool) -> bool:
    shorter = min(len(theirs), len(ours))
    if theirs[:shorter] != ours[:shorter] or not is_first:
        return theirs[:shorter] == ours[:shorter]
    if len(theirs) > len(ours):
        return scan(theirs)[1] == len(ours)
    _, next_batch = scan(ours[len(theirs) :]), scan(ours, len(theirs))[0]
    return int(next_batch.base_offset[0]) in bases or _starts_segment(next_batch, bases)


def _starts_segment(batches: Any, bases: frozenset[int]) -> bool:
    """A compacted segment may begin with a gap."""
    first = int(batches.base_offset[0])
    return any(first - 1000 < base <= first for base in bases)


def _is_first(of: Compared, found: Difference) -> bool:
    """Whether the partitions before have equal records, so that both had the same room left."""
    pairs = zip(_fetched(of.theirs), _fetched(of.ours), strict=False)
    unequal = next(theirs for theirs, ours in pairs if b"".join(theirs.records or ()) != b"".join(ours.records or ()))
    return unequal is found.within[-1][0]


def _fetched(answer: Any) -> Iterator[Any]:
    for topic in answer.responses:
        yield from topic.partitions


def fails_inside(of: Compared, found: Difference) -> bool:
    """Whether the broker answered so."""
    codes = [getattr(theirs, "error_code", 0) for theirs, _ in found.within]
    whole = [topic.error_code for topic in getattr(of.theirs, "topics", ()) if hasattr(topic, "error_code")]
    if of.api is FETCH:  # the other partitions have its bytes
        whole += [one.error_code for one in _fetched(of.theirs)]
    return ErrorCode.UNKNOWN_SERVER_ERROR in codes or ErrorCode.UNKNOWN_SERVER_ERROR in whole


def _overflow(of: Compared, found: Difference) -> bool:
    cursor = getattr(of.request, "cursor", None)
    return of.api is DESCRIBE_TOPIC_PARTITIONS and cursor is not None and cursor.partition_index == INT32_MAX


def _produced(of: Compared, found: Difference) -> bool:
    return of.api is PRODUCE and found.path.startswith("responses")


def _of_groups(of: Compared, found: Difference) -> bool:
    """Of topics in which a broker keeps what groups and transactions are, or of a page of all topics that has one of them."""
    if of.api is DESCRIBE_TOPIC_PARTITIONS and not of.request.topics:
        page = {one.name for one in of.theirs.topics} | {getattr(of.theirs.next_cursor, "topic_name", "")}
        is_moved = found.path.startswith(("next_cursor", "topics[]", "topics.partitions[]"))
        return is_moved and bool(page & _INTERNAL)
    told = (found.theirs, *(theirs for theirs, _ in found.within))
    return any(getattr(one, name, None) in _INTERNAL for one in told for name in ("name", "topic", "resource_name"))


def _levels(of: Compared, found: Difference) -> bool:
    return of.api is UPDATE_FEATURES and (of.theirs.error_code, of.ours.error_code) == (0, ErrorCode.INVALID_UPDATE_VERSION)


def _transactions(of: Compared, found: Difference) -> bool:
    return of.api is FIND_COORDINATOR and of.request.key_type == _TRANSACTION


def _amid_tokens(of: Compared, found: Difference) -> bool:
    shaken = any(isinstance(one, SaslHandshakeRequest) for one in of.before)
    return shaken and of.api.key not in (SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key, API_VERSIONS.key) and of.ours is None


def _nobody(of: Compared, found: Difference) -> bool:
    """SCRAM of a user that there is not."""
    return of.api is SASL_AUTHENTICATE and b"n=nobody," in of.request.data


def _named_twice(of: Compared, found: Difference) -> bool:
    joins = (one for one in (*of.before, of.request) if isinstance(one, JoinGroupRequest))
    return any(len({protocol.name for protocol in join.protocols}) < len(join.protocols) for join in joins)


def _elected(of: Compared, found: Difference) -> bool:
    if of.api is not JOIN_GROUP or None in (of.theirs, of.ours) or of.theirs.error_code or of.ours.error_code:
        return False
    has_left = any(isinstance(one, LeaveGroupRequest) for one in of.before)
    first = {one.protocols[0].name for one in (*of.before, of.request) if isinstance(one, JoinGroupRequest) and one.protocols}
    if found.path == "protocol_name" or found.path == "members.metadata":
        return len(first) > 1
    return has_left and (found.path == "leader" or found.path.startswith("members"))


def _becomes_static(of: Compared, found: Difference) -> bool:
    said = of.request
    if of.api is not CONSUMER_GROUP_HEARTBEAT or said.instance_id is None or said.member_epoch != 0:
        return False
    before = (one for one in of.before[:-1] if isinstance(one, ConsumerGroupHeartbeatRequest))
    has_other = any(one.member_id == said.member_id and one.instance_id != said.instance_id for one in before)
    return has_other and found.path.startswith(("assignment", "member_epoch"))


def _fetch(topic: str, **fields: Any) -> FetchRequest:
    one = FetchPartition(0, **{"partition_max_bytes": INT32_MAX} | fields)
    return FetchRequest(topics=(FetchTopic(topic, partitions=(one,)),))


def _offset(*topics: str, timestamp: int) -> ListOffsetsRequest:
    asked = (ListOffsetsPartition(0, timestamp=timestamp),)
    return ListOffsetsRequest(-1, topics=tuple(ListOffsetsTopic(topic, asked) for topic in topics))


_LAST = Cursor("g-tiny", INT32_MAX)
_RANGE, _STICKY = JoinGroupRequestProtocol("range"), JoinGroupRequestProtocol("sticky")


def _join(protocols: tuple[JoinGroupRequestProtocol, ...], member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest("@group", 30_000, 60_000, member_id, None, "consumer", protocols)


def _heard(member_id: str, instance_id: str | None) -> ConsumerGroupHeartbeatRequest:
    topics = ("many.with-dots",)
    return ConsumerGroupHeartbeatRequest("@group", member_id, 0, instance_id, None, 60_000, topics, None, "range", ())


KNOWN_DIFFERENCES = (
    KnownDifference(
        "All: addresses, the cluster's id, session ids, directories",
        "They name this endpoint, its cluster, its fetch sessions and its log directory.",
        _names,
        ((METADATA, 12, MetadataRequest()),),
    ),
    KnownDifference(
        "ApiVersions: the APIs, and the first versions of Fetch and ListOffsets",
        "What is answered here: fewer APIs, and versions of clients before 0.11 besides.",
        _apis,
        ((API_VERSIONS, 0, ApiVersionsRequest()),),
    ),
    KnownDifference(
        "ApiVersions: features",
        "`group.version` alone: nothing else here depends on the version of a cluster's metadata.",
        _features,
        ((API_VERSIONS, 4, ApiVersionsRequest("a", "1")),),
    ),
    KnownDifference(
        "All but Fetch, and there what is refused: order",
        "That of the request, for all topics that of their names; a broker's is that of a hash table.",
        _order,
        ((METADATA, 12, MetadataRequest(topics=None)),),
    ),
    KnownDifference(
        "DescribeConfigs: settings",
        "The endpoint's own, with its values. Logs and archives have none, so that of a topic is an empty list.",
        _settings,
        ((DESCRIBE_CONFIGS, 4, DescribeConfigsRequest((DescribeConfigsResource(2, "g-tiny", None),))),),
    ),
    KnownDifference(
        f"DescribeConfigs: more than {BROKERS_MAX} resources that are a broker",
        "INVALID_REQUEST for each resource: the answer would be a thousand times as large as the request.",
        _many_brokers,
        ((DESCRIBE_CONFIGS, 4, DescribeConfigsRequest((DescribeConfigsResource(4, "", None),) * (BROKERS_MAX + 1))),),
    ),
    KnownDifference(
        "DescribeLogDirs: sizes",
        "Those of the log directory, where there is one, without what is in the archive; of its volume what is usable then.",
        _directory,
        ((DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None)),),
    ),
    KnownDifference(
        "All: messages of errors",
        "Our own words, with the broker's error code.",
        _words,
        ((DESCRIBE_CONFIGS, 4, DescribeConfigsRequest((DescribeConfigsResource(2, "nowhere", None),))),),
    ),
    KnownDifference(
        "ListOffsets: by a time that only an emptied batch of its segment has",
        "The first record of a later segment that is as late. A broker looks into one local segment, and finds none.",
        _later_segments,
        ((LIST_OFFSETS, 11, _offset("g-compacted", timestamp=1_700_000_028_749)),),
    ),
    KnownDifference(
        "ListOffsets: the earliest local, the latest tiered offset and the earliest one that is not uploaded",
        "Those of the archive. A broker knows of its own tiered storage only.",
        _tiers,
        ((LIST_OFFSETS, 11, _offset("g-txn", timestamp=EARLIEST_LOCAL)),),
    ),
    KnownDifference(
        "Fetch: last stable offset",
        "Told to consumers that read committed records only; others, which do not use it, are told the high watermark.",
        _stable_offset,
        ((FETCH, 11, _fetch("g-txn")),),
    ),
    KnownDifference(
        "Fetch: bytes, and the aborted transactions among them",
        "As many whole batches as fit, of several segments. A broker ends at the end of a segment, or within a batch.",
        _whole_batches,
        ((FETCH, 11, _fetch("g-codec-none")),),
    ),
    KnownDifference(
        "All: requests that a broker answers with UNKNOWN_SERVER_ERROR",
        "What makes it fail, as a size below 0 or an empty name, is taken for 0 or for unknown here, or refused.",
        fails_inside,
        ((DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest((TopicRequest(""),))),),
    ),
    KnownDifference(
        "DescribeTopicPartitions: a cursor at partition 2147483647",
        "Nothing follows; a broker's sum overflows, and its next cursor is at a number below 0.",
        _overflow,
        (
            (
                DESCRIBE_TOPIC_PARTITIONS,
                0,
                DescribeTopicPartitionsRequest((TopicRequest("g-tiny"),), 1, Cursor("g-tiny", INT32_MAX)),
            ),
        ),
    ),
    KnownDifference(
        "All: the topics in which a broker keeps groups and transactions",
        "They are no topics here: what groups commit is in a directory of its own, and there are no transactions.",
        _of_groups,
        ((METADATA, 12, MetadataRequest(topics=None)),),
    ),
    KnownDifference(
        "Produce: all of it",
        "POLICY_VIOLATION for every partition, whatever is wrong besides: nothing is appended here.",
        _produced,
        ((PRODUCE, 9, ProduceRequest(None, -1, 1000, (TopicProduceData("nowhere", partition_data=(PartitionProduceData(),)),))),),
    ),
    KnownDifference(
        "UpdateFeatures: levels that a broker's cluster can have, and those of other features than here",
        "INVALID_UPDATE_VERSION: features have the levels that ApiVersions tells, and keep them.",
        _levels,
        ((UPDATE_FEATURES, 1, UpdateFeaturesRequest(1000, (FeatureUpdateKey("group.version", 0, False, 2),), True)),),
    ),
    KnownDifference(
        "FindCoordinator: of transactions",
        "POLICY_VIOLATION: there are no transactions here.",
        _transactions,
        ((FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=("payments",))),),
    ),
    KnownDifference(
        "SaslAuthenticate: SCRAM for a user that there is not",
        "The exchange fails at its end, as with a wrong password. A broker refuses the first message, which tells names.",
        _nobody,
        (
            (SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256")),
            (SASL_AUTHENTICATE, 2, Token(b"n,,n=nobody,r=client")),
        ),
    ),
    KnownDifference(
        "All: another request amid the exchange of SASL's tokens",
        "The connection is closed. A broker answers with an error first.",
        _amid_tokens,
        ((SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")), (METADATA, 12, MetadataRequest(topics=()))),
    ),
    KnownDifference(
        "JoinGroup: a protocol that a member names twice",
        "It counts once. A broker counts it twice, and then takes it for one that not all members support.",
        _named_twice,
        tuple((JOIN_GROUP, 0, _join(protocols)) for protocols in ((_RANGE,), (_RANGE, _RANGE), (_RANGE,))),
    ),
    KnownDifference(
        "JoinGroup: the protocol when votes are equal, and who leads after the leader has left",
        "What the member votes for that joined first, and this member; a broker's choice is that of a hash table.",
        _elected,
        (
            (JOIN_GROUP, 0, _join((_RANGE, _STICKY))),
            (JOIN_GROUP, 0, _join((_STICKY, _RANGE))),
            (JOIN_GROUP, 0, _join((_RANGE, _STICKY), "@0")),
        ),
    ),
    KnownDifference(
        "ConsumerGroupHeartbeat: a member that joins again, with another group.instance.id or with one for the first time",
        "It gets its partitions of the group's epoch. A broker gives it none before the next one, if it was not in this one.",
        _becomes_static,
        tuple((CONSUMER_GROUP_HEARTBEAT, 1, _heard(*who)) for who in (("m0", None), ("m1", None), ("m0", "i0"))),
    ),
)
