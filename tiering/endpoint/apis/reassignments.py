"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments (Kafka's ReplicationControlManager).

A partition has one replica, which leads it, so there is never another leader to elect, nor a replica that comes or goes.
"""

from local_log.errors import LogError
from tiering.endpoint.apis.auth_helper import NOT_AUTHORIZED, is_authorized
from tiering.endpoint.apis.context import Context, topic_named
from tiering.endpoint.apis.create_topics import problem_of_brokers
from tiering.endpoint.apis.own_logs import own_tier
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tiering.endpoint.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from tiering.endpoint.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tiering.endpoint.request_context import RequestContext

_PREFERRED, _UNCLEAN = 0, 1
"""Kafka's ElectionType."""
_Problem = tuple[ErrorCode, str]


def elect_leaders(request: ElectLeadersRequest, request_context: RequestContext, context: Context) -> ElectLeadersResponse:
    """Of each partition that none is needed, or that its replica cannot lead it. Of all partitions only the latter are told."""
    problem, asked = _refusal(Operation.ALTER, request_context, context), request.topic_partitions
    if problem is None and asked != () and request.election_type not in (_PREFERRED, _UNCLEAN):
        problem = ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
    if problem is not None:
        refused = (
            ReplicaElectionResult(one.topic, tuple(PartitionResult(number, *problem) for number in one.partitions))
            for one in asked or ()
        )
        return ElectLeadersResponse(error_code=problem[0], replica_election_results=tuple(refused))
    is_unclean = request.election_type == _UNCLEAN
    if asked is None:
        found = (_elected_all(*one, is_unclean=is_unclean) for one in context.logs.everything().items())
    else:
        found = (_elected(one, topic_named(context, one.topic), is_unclean=is_unclean) for one in asked)
    return ElectLeadersResponse(replica_election_results=tuple(found))


def _elected(asked: TopicPartitions, topic: HostedTopic | LogError | None, *, is_unclean: bool) -> ReplicaElectionResult:
    partitions = tuple(PartitionResult(number, *_election(topic, number, is_unclean=is_unclean)) for number in asked.partitions)
    return ReplicaElectionResult(asked.topic, partitions)


def _elected_all(name: str, topic: HostedTopic | LogError, *, is_unclean: bool) -> ReplicaElectionResult:
    numbers = tuple(sorted(topic.partitions)) if isinstance(topic, HostedTopic) else ()
    found = _elected(TopicPartitions(name, numbers), topic, is_unclean=is_unclean)
    told = (one for one in found.partition_result if one.error_code != ErrorCode.ELECTION_NOT_NEEDED)
    return ReplicaElectionResult(name, tuple(told))


def _election(topic: HostedTopic | LogError | None, number: int, *, is_unclean: bool) -> _Problem:
    if topic is None or (isinstance(topic, HostedTopic) and number not in topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {number} of such a topic"
    if isinstance(topic, LogError) or isinstance(topic.partitions[number], LogError):
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if is_unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return code, "the only replica cannot be read"
    return ErrorCode.ELECTION_NOT_NEEDED, "the only replica leads the partition"


def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, request_context: RequestContext, context: Context
) -> ListPartitionReassignmentsResponse:
    """None."""
    problem = _refusal(Operation.DESCRIBE, request_context, context)
    if problem is None:
        return ListPartitionReassignmentsResponse()
    asked = (
        OngoingTopicReassignment(one.name, tuple(map(OngoingPartitionReassignment, one.partition_indexes)))
        for one in request.topics or ()
    )
    return ListPartitionReassignmentsResponse(error_code=problem[0], error_message=problem[1], topics=tuple(asked))


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, request_context: RequestContext, context: Context
) -> AlterPartitionReassignmentsResponse:
    """Nothing is to be done for a partition that is to be on this broker; everything else is refused."""
    topics, refusal = own_tier(context).topics(), _refusal(Operation.ALTER, request_context, context)

    def altered(name: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
        known = name in topics and wanted.partition_index in topics[name].partitions
        problem = refusal or _problem(wanted, request, context, is_known=known)
        return ReassignablePartitionResponse(wanted.partition_index, *(problem or (ErrorCode.NONE, None)))

    responses = (
        ReassignableTopicResponse(one.name, tuple(altered(one.name, wanted) for wanted in one.partitions))
        for one in request.topics
    )
    code, message = refusal or (ErrorCode.NONE, None)
    # A broker that refuses the whole request says nothing of the factor, which is the default then.
    allows = refusal is not None or request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(0, allows, code, message, tuple(responses))


def _problem(
    wanted: ReassignablePartition, request: AlterPartitionReassignmentsRequest, context: Context, *, is_known: bool
) -> _Problem | None:
    if not is_known:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {wanted.partition_index} of such a topic"
    if wanted.replicas is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment is under way that could be cancelled"
    problem = problem_of_brokers(wanted.replicas, context)
    if problem is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{problem}: this broker is alone, and has all partitions"
    return None


def _refusal(operation: Operation, request_context: RequestContext, context: Context) -> _Problem | None:
    if is_authorized(context, request_context, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        return None
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NOT_AUTHORIZED
