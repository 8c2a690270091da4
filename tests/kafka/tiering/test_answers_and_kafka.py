"""The same requests to a broker and to endpoints on copies of its log directory: the answers are the same.

Hypothesis makes the requests of the fields of their classes. COMPARED_REQUESTS says how many of each API; a night takes 20,000.
"""

from collections.abc import Iterator

import pytest
from compared_brokers import World, compare_any, compared_with, known
from kafka_judge import oracle
from known_differences import KNOWN_DIFFERENCES, KnownDifference
from real_kafka import BROKER

from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    Api,
)

COMPARED = (
    *(FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, OFFSET_FOR_LEADER_EPOCH),
    *(DESCRIBE_CONFIGS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS),
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
@pytest.mark.parametrize("difference", KNOWN_DIFFERENCES, ids=lambda difference: difference.what)
def test_each_difference_that_is_listed_occurs(world: World, difference: KnownDifference) -> None:
    found = world.compare(*difference.shown_by)
    assert difference.what in {known(one, KNOWN_DIFFERENCES) for one in found}
