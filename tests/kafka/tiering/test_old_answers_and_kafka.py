"""Clients from before 0.11, which Kafka 4 no longer answers: a broker of 3.9 and endpoints on copies of its log directory."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random  # noqa: TID251  # seeded

import pytest
from any_requests import of_acls
from compared_brokers import World, compared_with
from compared_requests import compare_any, known
from compared_writes import AnyRecords, ComparedWrites, configs
from kafka_judge import oracle
from known_difference import KnownDifference
from known_differences import KNOWN_DIFFERENCES
from known_old_differences import KNOWN_OLD_DIFFERENCES
from local_tiers import Host
from real_kafka import BROKER_3_9
from writing_endpoint import WritingEndpoint

from remote.clock import SystemClock
from tiering.endpoint.protocol.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, FETCH, LIST_OFFSETS, Api
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic

OLD_WRITES = 150
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


@oracle
@pytest.mark.parametrize("api", [DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS], ids=lambda api: api.name)
def test_acls_are_refused_as_by_a_broker_without_an_authorizer(world: World, api: Api) -> None:
    values = world.facts.values() | of_acls(tuple(world.facts.topics))
    compare_any(replace(world, known=KNOWN_DIFFERENCES), api, range(api.first, api.last + 1), values)


@oracle
def test_what_old_clients_write_is_answered_and_kept_as_by_a_broker(world: World) -> None:
    """The last of the tests, since others compare the topics that there are."""
    host = Host(settings={}, now=SystemClock().now_ms())
    random = Random("old writes")
    both, records = ComparedWrites(world.broker, WritingEndpoint(host)), AnyRecords(random, host.now)
    for name, policy in (("w-old", "delete"), ("w-keyed", "compact")):
        both.create(CreatableTopic(name, 1, 1, configs=configs(cleanup_policy=policy, message_timestamp_after_max_ms="3600000")))
    for _ in range(OLD_WRITES):
        version = random.randrange(3)
        made = random.choices((records.old, records.sound, records.odd), (6, 1, 3))[0]()
        both.produce(random.choice(("w-old", "w-old", "w-keyed")), 0, made, version, random.choice((-1, 1)))
    assert both.found == []
    assert {0, 2, 32, 87} <= both.codes
    for name in ("w-old", "w-keyed"):
        theirs, ours = both.logs(name, 0)
        assert ours == theirs
        both.delete(name)
    assert both.found == []
