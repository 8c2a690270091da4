"""Every way in which our answers may differ from a broker's, each with the reason and with a request that shows it.

docs/serve.md has the same as a table.
"""

from compared_answers import Compared, Difference
from compared_logins import Token
from known_difference import KnownDifference, fails_inside, fetched
from known_group_differences import GROUP_DIFFERENCES
from known_log_differences import LOG_DIFFERENCES

from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.apis.configs import DESCRIBED_GROUPS_MAX, REPEATED_MAX
from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    UPDATE_FEATURES,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tiering.endpoint.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tiering.endpoint.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

_TRANSACTION = 1
_INTERNAL = {"__consumer_offsets", "__transaction_state"}


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
        return found.path.endswith("[order]") and any(one.error_code for one in fetched(of.theirs))
    return found.path.endswith("[order]")


def _settings(of: Compared, found: Difference) -> bool:
    own = ("value", "read_only", "config_source", "synonyms", "documentation")
    if found.path in ("results.configs.is_sensitive", "results.configs.config_type"):  # a broker has no type for its authorizer's
        return bool(found.within[-1][0].name == "super.users")
    return found.path == "results.configs[]" or found.path.startswith(tuple(f"results.configs.{name}" for name in own))


def _repeated(of: Compared, found: Difference) -> bool:
    if of.api is not DESCRIBE_CONFIGS or not found.path.startswith("results."):
        return False
    asked = {(one.resource_type, one.resource_name) for one in of.request.resources}
    return len(of.request.resources) - len(asked) > REPEATED_MAX


def _directory(of: Compared, found: Difference) -> bool:
    if of.api is not DESCRIBE_LOG_DIRS:
        return False
    is_space = found.path == "results.usable_bytes" and min(found.theirs, found.ours) > 0
    return is_space or (found.path == "results.topics.partitions.partition_size" and found.ours < found.theirs)


def _words(of: Compared, found: Difference) -> bool:
    return found.path.endswith("error_message")


def _overflow(of: Compared, found: Difference) -> bool:
    cursor = getattr(of.request, "cursor", None)
    return of.api is DESCRIBE_TOPIC_PARTITIONS and cursor is not None and cursor.partition_index == INT32_MAX


def _produced(of: Compared, found: Difference) -> bool:
    return of.api is PRODUCE and found.path.startswith("responses")


def _producers(of: Compared, found: Difference) -> bool:
    return of.api is INIT_PRODUCER_ID and (of.request.transactional_id is not None or found.path == "producer_id")


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
        f"DescribeConfigs: resources that are named again more than {REPEATED_MAX} times, or {DESCRIBED_GROUPS_MAX} groups",
        "INVALID_REQUEST for each resource: the answer would be a thousand times as large as the request.",
        _repeated,
        ((DESCRIBE_CONFIGS, 4, DescribeConfigsRequest((DescribeConfigsResource(4, "", None),) * (REPEATED_MAX + 2))),),
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
    *LOG_DIFFERENCES,
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
        "InitProducerId: ids, and all of a transactional id",
        "One id for all producers, which Produce then tells why nothing is appended; POLICY_VIOLATION for transactional ids.",
        _producers,
        ((INIT_PRODUCER_ID, 5, InitProducerIdRequest("payments", 60_000)),),
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
    *GROUP_DIFFERENCES,
)
