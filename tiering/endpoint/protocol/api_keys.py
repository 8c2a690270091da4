"""Which APIs are answered, in which versions, and the classes of their messages.

The versions are those of Kafka 4.3, and before them Fetch 0 to 3, ListOffsets 0 and Produce 0 to 2 as in Kafka 3.9, for clients
older than 0.11. Source: Kafka's ApiKeys and the message schemas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tiering.endpoint.protocol.fields import Versions
from tiering.endpoint.protocol.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from tiering.endpoint.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from tiering.endpoint.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tiering.endpoint.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from tiering.endpoint.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from tiering.endpoint.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tiering.endpoint.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tiering.endpoint.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tiering.endpoint.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from tiering.endpoint.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tiering.endpoint.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from tiering.endpoint.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tiering.endpoint.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tiering.endpoint.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tiering.endpoint.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from tiering.endpoint.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from tiering.endpoint.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from tiering.endpoint.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from tiering.endpoint.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tiering.endpoint.protocol.messages.fetch import FetchRequest, FetchResponse
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tiering.endpoint.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from tiering.endpoint.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tiering.endpoint.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tiering.endpoint.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tiering.endpoint.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tiering.endpoint.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tiering.endpoint.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from tiering.endpoint.protocol.messages.produce import ProduceRequest, ProduceResponse
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tiering.endpoint.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tiering.endpoint.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from tiering.endpoint.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from tiering.endpoint.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

NEVER: Final = 1 << 15
"""The first flexible version of an API that has none."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API. Versions from `flexible` on have compact lengths and tagged fields.

    One that `needs_own_log_dir` is neither offered nor answered where the process has no log directory of its own.
    """

    key: int
    name: str
    first: int
    last: int
    flexible: int
    request: type
    response: type
    needs_own_log_dir: bool = False

    @property
    def versions(self) -> Versions:
        """All that are answered."""
        return Versions(self.first, self.last)

    def is_flexible(self, version: int) -> bool:
        """Whether the messages of a version have tagged fields."""
        return version >= self.flexible


PRODUCE: Final = Api(0, "Produce", 0, 13, 9, ProduceRequest, ProduceResponse)
FETCH: Final = Api(1, "Fetch", 0, 18, 12, FetchRequest, FetchResponse)
LIST_OFFSETS: Final = Api(2, "ListOffsets", 0, 11, 6, ListOffsetsRequest, ListOffsetsResponse)
METADATA: Final = Api(3, "Metadata", 0, 13, 9, MetadataRequest, MetadataResponse)
OFFSET_COMMIT: Final = Api(8, "OffsetCommit", 2, 10, 8, OffsetCommitRequest, OffsetCommitResponse)
OFFSET_FETCH: Final = Api(9, "OffsetFetch", 1, 10, 6, OffsetFetchRequest, OffsetFetchResponse)
FIND_COORDINATOR: Final = Api(10, "FindCoordinator", 0, 6, 3, FindCoordinatorRequest, FindCoordinatorResponse)
SASL_HANDSHAKE: Final = Api(17, "SaslHandshake", 0, 1, NEVER, SaslHandshakeRequest, SaslHandshakeResponse)
JOIN_GROUP: Final = Api(11, "JoinGroup", 0, 9, 6, JoinGroupRequest, JoinGroupResponse)
HEARTBEAT: Final = Api(12, "Heartbeat", 0, 4, 4, HeartbeatRequest, HeartbeatResponse)
LEAVE_GROUP: Final = Api(13, "LeaveGroup", 0, 5, 4, LeaveGroupRequest, LeaveGroupResponse)
SYNC_GROUP: Final = Api(14, "SyncGroup", 0, 5, 4, SyncGroupRequest, SyncGroupResponse)
DESCRIBE_GROUPS: Final = Api(15, "DescribeGroups", 0, 6, 5, DescribeGroupsRequest, DescribeGroupsResponse)
LIST_GROUPS: Final = Api(16, "ListGroups", 0, 5, 3, ListGroupsRequest, ListGroupsResponse)
API_VERSIONS: Final = Api(18, "ApiVersions", 0, 4, 3, ApiVersionsRequest, ApiVersionsResponse)
INIT_PRODUCER_ID: Final = Api(22, "InitProducerId", 0, 5, 2, InitProducerIdRequest, InitProducerIdResponse)
OFFSET_FOR_LEADER_EPOCH: Final = Api(
    23, "OffsetForLeaderEpoch", 2, 4, 4, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
)
ADD_PARTITIONS_TO_TXN: Final = Api(24, "AddPartitionsToTxn", 0, 5, 3, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, True)
ADD_OFFSETS_TO_TXN: Final = Api(25, "AddOffsetsToTxn", 0, 4, 3, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, True)
END_TXN: Final = Api(26, "EndTxn", 0, 5, 3, EndTxnRequest, EndTxnResponse, True)
WRITE_TXN_MARKERS: Final = Api(27, "WriteTxnMarkers", 1, 2, 1, WriteTxnMarkersRequest, WriteTxnMarkersResponse, True)
TXN_OFFSET_COMMIT: Final = Api(28, "TxnOffsetCommit", 0, 5, 3, TxnOffsetCommitRequest, TxnOffsetCommitResponse, True)
DESCRIBE_ACLS: Final = Api(29, "DescribeAcls", 1, 3, 2, DescribeAclsRequest, DescribeAclsResponse)
CREATE_ACLS: Final = Api(30, "CreateAcls", 1, 3, 2, CreateAclsRequest, CreateAclsResponse)
DELETE_ACLS: Final = Api(31, "DeleteAcls", 1, 3, 2, DeleteAclsRequest, DeleteAclsResponse)
DESCRIBE_CONFIGS: Final = Api(32, "DescribeConfigs", 1, 4, 4, DescribeConfigsRequest, DescribeConfigsResponse)
SASL_AUTHENTICATE: Final = Api(36, "SaslAuthenticate", 0, 2, 2, SaslAuthenticateRequest, SaslAuthenticateResponse)
DELETE_GROUPS: Final = Api(42, "DeleteGroups", 0, 2, 2, DeleteGroupsRequest, DeleteGroupsResponse)
OFFSET_DELETE: Final = Api(47, "OffsetDelete", 0, 0, NEVER, OffsetDeleteRequest, OffsetDeleteResponse)
DESCRIBE_LOG_DIRS: Final = Api(35, "DescribeLogDirs", 1, 5, 2, DescribeLogDirsRequest, DescribeLogDirsResponse)
DESCRIBE_CLIENT_QUOTAS: Final = Api(
    48, "DescribeClientQuotas", 0, 1, 1, DescribeClientQuotasRequest, DescribeClientQuotasResponse
)
ALTER_CLIENT_QUOTAS: Final = Api(49, "AlterClientQuotas", 0, 1, 1, AlterClientQuotasRequest, AlterClientQuotasResponse)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = Api(
    50, "DescribeUserScramCredentials", 0, 0, 0, DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
)
ALTER_USER_SCRAM_CREDENTIALS: Final = Api(
    51, "AlterUserScramCredentials", 0, 0, 0, AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
)
CREATE_TOPICS: Final = Api(19, "CreateTopics", 2, 7, 5, CreateTopicsRequest, CreateTopicsResponse, True)
DELETE_TOPICS: Final = Api(20, "DeleteTopics", 1, 6, 4, DeleteTopicsRequest, DeleteTopicsResponse, True)
DELETE_RECORDS: Final = Api(21, "DeleteRecords", 0, 2, 2, DeleteRecordsRequest, DeleteRecordsResponse, True)
ALTER_CONFIGS: Final = Api(33, "AlterConfigs", 0, 2, 2, AlterConfigsRequest, AlterConfigsResponse, True)
CREATE_PARTITIONS: Final = Api(37, "CreatePartitions", 0, 3, 2, CreatePartitionsRequest, CreatePartitionsResponse, True)
INCREMENTAL_ALTER_CONFIGS: Final = Api(
    44, "IncrementalAlterConfigs", 0, 1, 1, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, True
)
ALTER_REPLICA_LOG_DIRS: Final = Api(
    34, "AlterReplicaLogDirs", 1, 2, 2, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, True
)
ELECT_LEADERS: Final = Api(43, "ElectLeaders", 0, 2, 2, ElectLeadersRequest, ElectLeadersResponse)
ALTER_PARTITION_REASSIGNMENTS: Final = Api(
    45, "AlterPartitionReassignments", 0, 1, 0, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, True
)
LIST_PARTITION_REASSIGNMENTS: Final = Api(
    46, "ListPartitionReassignments", 0, 0, 0, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
)
UPDATE_FEATURES: Final = Api(57, "UpdateFeatures", 0, 2, 0, UpdateFeaturesRequest, UpdateFeaturesResponse)
DESCRIBE_CLUSTER: Final = Api(60, "DescribeCluster", 0, 2, 0, DescribeClusterRequest, DescribeClusterResponse)
DESCRIBE_PRODUCERS: Final = Api(61, "DescribeProducers", 0, 0, 0, DescribeProducersRequest, DescribeProducersResponse)
DESCRIBE_TRANSACTIONS: Final = Api(
    65, "DescribeTransactions", 0, 0, 0, DescribeTransactionsRequest, DescribeTransactionsResponse, True
)
LIST_TRANSACTIONS: Final = Api(66, "ListTransactions", 0, 2, 0, ListTransactionsRequest, ListTransactionsResponse, True)
CONSUMER_GROUP_HEARTBEAT: Final = Api(
    68, "ConsumerGroupHeartbeat", 0, 1, 0, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
)
CONSUMER_GROUP_DESCRIBE: Final = Api(
    69, "ConsumerGroupDescribe", 0, 1, 0, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
)
LIST_CONFIG_RESOURCES: Final = Api(74, "ListConfigResources", 0, 1, 0, ListConfigResourcesRequest, ListConfigResourcesResponse)
DESCRIBE_TOPIC_PARTITIONS: Final = Api(
    75, "DescribeTopicPartitions", 0, 0, 0, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
)

_ALL: Final = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    SASL_HANDSHAKE,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DELETE_RECORDS,
    INIT_PRODUCER_ID,
    OFFSET_FOR_LEADER_EPOCH,
    ADD_PARTITIONS_TO_TXN,
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    WRITE_TXN_MARKERS,
    TXN_OFFSET_COMMIT,
    DESCRIBE_ACLS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    ALTER_REPLICA_LOG_DIRS,
    DESCRIBE_LOG_DIRS,
    SASL_AUTHENTICATE,
    CREATE_PARTITIONS,
    DELETE_GROUPS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    OFFSET_DELETE,
    DESCRIBE_CLIENT_QUOTAS,
    ALTER_CLIENT_QUOTAS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ALTER_USER_SCRAM_CREDENTIALS,
    UPDATE_FEATURES,
    DESCRIBE_CLUSTER,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
    LIST_CONFIG_RESOURCES,
    DESCRIBE_TOPIC_PARTITIONS,
)

APIS: Final[Mapping[int, Api]] = {api.key: api for api in _ALL}
"""All by key, in the order of the keys."""

READING_APIS: Final[Mapping[int, Api]] = {key: api for key, api in APIS.items() if not api.needs_own_log_dir}
"""Those that an endpoint without a log directory of its own answers. Produce is among them, and the ids that
producers need before: it is refused with the reason."""
