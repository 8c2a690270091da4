"""The same requests to a broker and to endpoints on copies of its log directory: the answers are the same.

Hypothesis makes the requests of the fields of their classes. COMPARED_REQUESTS says how many of each API; a night takes 20,000.
"""

import time
from collections.abc import Iterator

import pytest
from any_requests import GROUPS
from compared_brokers import Side, World, compare_any, compare_frames, compared_with, known
from kafka_judge import oracle
from known_differences import KNOWN_DIFFERENCES, KnownDifference
from real_kafka import BROKER

from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DELETE_GROUPS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    LEAVE_GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    SYNC_GROUP,
    Api,
)
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

COMPARED = (
    *(FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, OFFSET_FOR_LEADER_EPOCH),
    *(DESCRIBE_CONFIGS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS, DESCRIBE_LOG_DIRS, DESCRIBE_PRODUCERS),
)
OF_GROUPS = (
    *(FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE, DESCRIBE_GROUPS, LIST_GROUPS),
    *(HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DELETE_GROUPS),
)
FIRST_OF_KAFKA_4 = {FETCH.key: 4, LIST_OFFSETS.key: 1}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with compared_with(BROKER, tmp_path_factory.mktemp("broker")) as found:
        yield found


@oracle
@pytest.mark.parametrize("api", COMPARED, ids=lambda api: api.name)
def test_any_request_is_answered_as_by_a_broker(world: World, api: Api) -> None:
    compare_any(world, api, range(FIRST_OF_KAFKA_4.get(api.key, api.first), api.last + 1), KNOWN_DIFFERENCES)


@oracle
@pytest.mark.parametrize("api", COMPARED, ids=lambda api: api.name)
def test_a_request_with_something_wrong_is_refused_or_answered_as_by_a_broker(world: World, api: Api) -> None:
    found = compare_frames(world, api, range(FIRST_OF_KAFKA_4.get(api.key, api.first), api.last + 1), KNOWN_DIFFERENCES)
    assert found["answered"]
    assert not found["theirs"]
    assert found["ours"] <= found.total() // 10  # a broker does not look at the size of a tagged field that it knows


@oracle
@pytest.mark.parametrize("difference", KNOWN_DIFFERENCES, ids=lambda difference: difference.what)
def test_each_difference_that_is_listed_occurs(world: World, difference: KnownDifference) -> None:
    found = world.compare(*difference.shown_by)
    assert difference.what in {known(one, KNOWN_DIFFERENCES) for one in found}


@pytest.fixture(scope="module")
def with_groups(world: World) -> World:
    """The same, from when the broker has created the topic in which it keeps what groups commit."""
    deadline = time.monotonic() + 60
    while not coordinates(world.broker):
        assert time.monotonic() < deadline, "the broker does not coordinate groups"
        time.sleep(0.1)
    return world


def coordinates(broker: Side) -> bool:
    found = broker.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS)).coordinators
    asked = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group, topics=()) for group in GROUPS))
    return not any(one.error_code for one in (*found, *broker.ask(OFFSET_FETCH, 8, asked).groups))


@oracle
@pytest.mark.parametrize("api", OF_GROUPS, ids=lambda api: api.name)
def test_any_request_about_groups_is_answered_as_by_a_broker(with_groups: World, api: Api) -> None:
    compare_any(with_groups, api, range(api.first, api.last + 1), KNOWN_DIFFERENCES)
