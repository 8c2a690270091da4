"""Clients from before 0.11, which Kafka 4 no longer answers: a broker of 3.9 and endpoints on copies of its log directory."""

from collections.abc import Iterator

import pytest
from compared_brokers import World, compared_with
from compared_requests import compare_any, known
from kafka_judge import oracle
from known_differences import KnownDifference
from known_old_differences import KNOWN_OLD_DIFFERENCES
from real_kafka import BROKER_3_9

from tiering.endpoint.protocol.api_keys import FETCH, LIST_OFFSETS, Api

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with compared_with(BROKER_3_9, tmp_path_factory.mktemp("broker"), KNOWN_OLD_DIFFERENCES) as found:
        yield found


@oracle
@pytest.mark.parametrize(("api", "versions"), [(FETCH, range(4)), (LIST_OFFSETS, range(1))], ids=["Fetch", "ListOffsets"])
def test_any_old_request_is_answered_as_by_a_broker(world: World, api: Api, versions: range) -> None:
    compare_any(world, api, versions, world.facts.values())


@oracle
@pytest.mark.parametrize("difference", KNOWN_OLD_DIFFERENCES, ids=lambda difference: difference.what)
def test_each_old_difference_that_is_listed_occurs(world: World, difference: KnownDifference) -> None:
    assert difference.what in {known(one, world.known) for one in world.shown(difference)}
