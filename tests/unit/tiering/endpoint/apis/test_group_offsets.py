"""The requests of groups about offsets, in all their versions: what does not need the coordinator, and what it is handed."""

from dataclasses import replace
from typing import Any

import pytest
from asked_endpoint import Endpoint
from offsets_kept import MemoryLog
from tiered_worlds import World

from tiering.endpoint.brokers.live_brokers import Broker, Cluster, LiveBrokers
from tiering.endpoint.coordinator.offsets_log import NAME
from tiering.endpoint.protocol.api_keys import FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOWHERE = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["local alone"], None, MemoryLog())


def id_of(endpoint: Endpoint, topic: str) -> str:
    """As clients ask for it, by the name."""
    found = endpoint.context.logs.topic(topic)
    assert found is not None
    return found.id


def commit(endpoint: Endpoint, version: int, offset: int, topic: str = "g-txn", *, group: str = "readers", **more: Any) -> int:
    """The error code for partition 0."""
    name = {"topic_id": topic} if version >= 10 else {"name": topic}
    of_topic = OffsetCommitRequestTopic(partitions=(OffsetCommitRequestPartition(0, offset),), **name)
    found = endpoint.ask(OFFSET_COMMIT, version, OffsetCommitRequest(group, topics=(of_topic,), **more)).topics[0]
    assert (found.topic_id if version >= 10 else found.name) == topic
    return found.partitions[0].error_code


def fetched(endpoint: Endpoint, version: int, *topics: str, group: str = "readers") -> Any:
    """Offset and error code of partition 0 of the topics, by name or id; of all without topics."""
    if version < 8:
        asked = tuple(OffsetFetchRequestTopic(topic, (0,)) for topic in topics) or None
        found = endpoint.ask(OFFSET_FETCH, version, OffsetFetchRequest(group, asked))
        assert not found.error_code
    else:
        name = "topic_id" if version >= 10 else "name"
        of = tuple(OffsetFetchRequestTopics(partition_indexes=(0,), **{name: topic}) for topic in topics) or None
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group, topics=of),))
        found = endpoint.ask(OFFSET_FETCH, version, request).groups[0]
        assert (found.group_id, found.error_code) == (group, 0)
    return {
        topic.topic_id if version >= 10 else topic.name: (one.committed_offset, one.error_code)
        for topic in found.topics
        for one in topic.partitions
    }


def test_every_version_of_a_commit_is_found_by_every_version_of_a_fetch(endpoint: Endpoint) -> None:
    topic_id = id_of(endpoint, "g-txn")
    for version in range(2, 11):
        assert commit(endpoint, version, 100 + version, topic_id if version >= 10 else "g-txn") == ErrorCode.NONE
        for of_fetch in range(1, 11):
            topic = topic_id if of_fetch >= 10 else "g-txn"
            assert fetched(endpoint, of_fetch, topic) == {topic: (100 + version, 0)}
            if of_fetch >= 2:
                assert fetched(endpoint, of_fetch) == {topic: (100 + version, 0)}


def test_a_topic_that_is_not_there_is_refused_by_name_or_id_and_the_others_are_committed(endpoint: Endpoint) -> None:
    assert commit(endpoint, 9, 1, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(endpoint, 10, 1, NOWHERE) == ErrorCode.UNKNOWN_TOPIC_ID
    one = OffsetCommitRequestPartition(0, 8)
    topics = tuple(OffsetCommitRequestTopic(name, partitions=(one,)) for name in ("g-txn", "nowhere", "g-mixed"))
    found = endpoint.ask(OFFSET_COMMIT, 9, OffsetCommitRequest("readers", topics=topics)).topics
    assert {topic.name: topic.partitions[0].error_code for topic in found} == {"nowhere": 3, "g-txn": 0, "g-mixed": 0}
    assert fetched(endpoint, 9) == {"g-txn": (8, 0), "g-mixed": (8, 0)}


def test_a_commit_for_many_partitions_takes_no_longer_for_each_than_for_one(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tuple(OffsetCommitRequestPartition(number, 8) for number in [0] * 20 + [7] * 20)
    request = OffsetCommitRequest("readers", topics=(OffsetCommitRequestTopic("g-txn", partitions=asked),))
    monkeypatch.setattr(OffsetCommitRequestPartition, "__eq__", None)  # partitions are not compared with each other
    found = endpoint.ask(OFFSET_COMMIT, 9, request).topics
    assert sorted(one.error_code for topic in found for one in topic.partitions) == [0] * 20 + [3] * 20


def test_a_fetch_by_an_unknown_id_is_refused_and_by_an_unknown_name_told_that_there_is_none(endpoint: Endpoint) -> None:
    topic_id = id_of(endpoint, "g-txn")
    commit(endpoint, 9, 5)
    assert fetched(endpoint, 10, NOWHERE, topic_id) == {topic_id: (5, 0), NOWHERE: (-1, ErrorCode.UNKNOWN_TOPIC_ID)}
    assert fetched(endpoint, 9, "nowhere") == {"nowhere": (-1, 0)}


def test_what_the_coordinator_refuses_is_said_of_every_partition(endpoint: Endpoint) -> None:
    assert commit(endpoint, 9, 5, generation_id_or_member_epoch=3) == ErrorCode.GROUP_ID_NOT_FOUND


def test_several_groups_are_answered_at_once(endpoint: Endpoint) -> None:
    commit(endpoint, 9, 1, group="a")
    commit(endpoint, 9, 2, group="b")
    groups = tuple(OffsetFetchRequestGroup(group, topics=None) for group in ("b", "a", "none"))
    found = endpoint.ask(OFFSET_FETCH, 8, OffsetFetchRequest(groups=groups)).groups
    assert [(of.group_id, [one.committed_offset for topic in of.topics for one in topic.partitions]) for of in found] == [
        ("b", [2]),
        ("a", [1]),
        ("none", []),
    ]


def delete(endpoint: Endpoint, group: str, **topics: tuple[int, ...]) -> Any:
    of = tuple(
        OffsetDeleteRequestTopic(name, tuple(map(OffsetDeleteRequestPartition, numbers))) for name, numbers in topics.items()
    )
    return endpoint.ask(OFFSET_DELETE, 0, OffsetDeleteRequest(group, of))


def test_offsets_of_partitions_that_there_are_can_be_deleted(endpoint: Endpoint) -> None:
    assert delete(endpoint, "readers", **{"g-txn": (0,)}).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    commit(endpoint, 9, 1)
    found = delete(endpoint, "readers", **{"g-txn": (0, 9), "nowhere": (0,)})
    codes = {(topic.name, one.partition_index): one.error_code for topic in found.topics for one in topic.partitions}
    assert codes == {("g-txn", 0): 0, ("g-txn", 9): 3, ("nowhere", 0): 3}
    assert fetched(endpoint, 9) == {}


@pytest.mark.parametrize("version", range(7))
def test_every_group_is_coordinated_here_in_every_version(endpoint: Endpoint, version: int) -> None:
    asked = FindCoordinatorRequest("readers") if version < 4 else FindCoordinatorRequest(coordinator_keys=("readers", ""))
    found = endpoint.ask(FIND_COORDINATOR, version, asked)
    answers = [found] if version < 4 else found.coordinators
    assert [(one.error_code, one.node_id, one.host, one.port) for one in answers] == [(0, 1, "broker.test", 9092)] * len(answers)
    assert [one.key for one in found.coordinators] == ([] if version < 4 else ["readers", ""])


def test_transactions_and_share_groups_are_refused_with_the_reason(endpoint: Endpoint) -> None:
    old = endpoint.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest("writer", TRANSACTION))
    assert (old.error_code, old.node_id, old.host, old.port) == (ErrorCode.POLICY_VIOLATION, -1, "", -1)
    assert "has no transactions" in old.error_message
    for kind, code in (
        (TRANSACTION, ErrorCode.POLICY_VIOLATION),
        (SHARE, ErrorCode.INVALID_REQUEST),
        (7, ErrorCode.INVALID_REQUEST),
    ):
        new = endpoint.ask(FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=kind, coordinator_keys=("a", "b"))).coordinators
        assert [(one.key, one.error_code, one.node_id) for one in new] == [("a", code, -1), ("b", code, -1)]


def test_of_several_brokers_the_one_that_leads_a_group_s_partition_coordinates_it_and_the_others_say_so(
    endpoint: Endpoint,
) -> None:
    brokers = tuple(Broker(number, f"broker-{number}", 9092) for number in (1, 2, 3))
    endpoint.context = replace(endpoint.context, cluster=Cluster(LiveBrokers(2, brokers)))
    groups = [f"group {number}" for number in range(12)]
    found = endpoint.ask(FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=tuple(groups))).coordinators
    assert {one.node_id for one in found} == {1, 2, 3}
    for one in found:
        partition = endpoint.context.groups.partition_for(one.key)
        assert one.node_id == endpoint.context.cluster.live.leader_of(NAME, partition)
        code = ErrorCode.NONE if one.node_id == 2 else ErrorCode.NOT_COORDINATOR
        assert commit(endpoint, 9, 4, group=one.key) == code
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(one.key, topics=None),))
        assert endpoint.ask(OFFSET_FETCH, 8, request).groups[0].error_code == code
        assert delete(endpoint, one.key).error_code == code


@pytest.mark.parametrize("version", [2, 9, 10])
def test_a_partition_that_there_is_not_has_no_offset(endpoint: Endpoint, version: int) -> None:
    name = {"topic_id": id_of(endpoint, "g-txn")} if version >= 10 else {"name": "g-txn"}
    partitions = tuple(OffsetCommitRequestPartition(number, 5) for number in (0, 7, -1))
    request = OffsetCommitRequest("readers", topics=(OffsetCommitRequestTopic(partitions=partitions, **name),))
    found = endpoint.ask(OFFSET_COMMIT, version, request).topics
    codes = {one.partition_index: one.error_code for topic in found for one in topic.partitions}
    assert codes == {0: 0, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
