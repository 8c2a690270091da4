"""ElectLeaders and AlterReplicaLogDirs where a broker that is alone, on one disk that works, cannot show it."""

import pytest
from local_tiers import Host
from own_endpoint import OwnEndpoint
from writing_endpoint import WritingEndpoint

from tiering.endpoint.protocol.api_keys import ALTER_REPLICA_LOG_DIRS, ELECT_LEADERS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tiering.endpoint.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions


def test_a_log_stays_in_its_directory_and_the_reason_is_told() -> None:
    endpoint = WritingEndpoint(Host())
    own = endpoint.log().folder.path.rpartition("/")[0]
    codes = {}
    for path in ("/a", "/b"):
        asked = AlterReplicaLogDirsRequest((AlterReplicaLogDir(path, (AlterReplicaLogDirTopic("orders", (0,)),)),))
        [result] = endpoint.ask(ALTER_REPLICA_LOG_DIRS, 2, asked).results
        [codes[path]] = [one.error_code for one in result.partitions]
    assert codes.pop(own) == ErrorCode.NONE
    assert [*codes.values()] == [ErrorCode.POLICY_VIOLATION]
    assert "orders-0 is not moved" in endpoint.said[-1]


@pytest.mark.parametrize(
    ("election_type", "code"), [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]
)
def test_a_partition_on_a_disk_that_fails_gets_no_leader(election_type: int, code: ErrorCode) -> None:
    tier = Host(dirs=("/a",)).started()
    tier.create_topic("orders")
    endpoint = OwnEndpoint(tier)
    tier._manager.directories[0].disk.fail("its cable is out")  # type: ignore[attr-defined]
    for asked in (None, (TopicPartitions("orders", (0,)),)):
        [result] = endpoint.ask(ELECT_LEADERS, 2, ElectLeadersRequest(election_type, asked)).replica_election_results
        assert [one.error_code for one in result.partition_result] == [code]
