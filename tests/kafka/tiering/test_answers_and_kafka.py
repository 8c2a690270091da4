"""The same requests to a broker and to endpoints on copies of its log directory: the answers are the same.

Hypothesis makes the requests of the fields of their classes. COMPARED_REQUESTS says how many of each API; a night takes 20,000.
"""

import time
from collections.abc import Iterator
from random import Random  # noqa: TID251  # seeded

import pytest
from any_lives import lives
from any_requests import GROUPS, of_groups, of_producers
from compared_brokers import Side, World, compared_with
from compared_headers import compare_headers
from compared_requests import EACH, compare_any, compare_frames, compare_lives, for_any, known
from compared_security import compare_acls, compare_as_user, compare_logins
from compared_transactions import ComparedTransactions
from compared_writes import AnyRecords, ComparedWrites, alter_groups, make_topics, reassign, remove_topics
from consumer_lives import consumer_lives
from kafka_judge import oracle
from known_difference import KnownDifference
from known_differences import KNOWN_DIFFERENCES
from local_tiers import Host
from migrating_lives import migrating_lives
from odd_logs import TRIMMED_AT, oddities
from real_kafka import BROKER
from transaction_lives import Step, lives_that_repeat_sequence_numbers, transaction_lives
from writing_endpoint import WritingEndpoint

from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT
from local_log.formats.record import Codec
from remote.clock import SystemClock
from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DELETE_GROUPS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    ELECT_LEADERS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    LEAVE_GROUP,
    LIST_CONFIG_RESOURCES,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SYNC_GROUP,
    UPDATE_FEATURES,
    Api,
)
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tiering.endpoint.protocol.messages.produce import ProduceRequest

COMPARED = (
    *(FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, OFFSET_FOR_LEADER_EPOCH),
    *(DESCRIBE_CONFIGS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS, DESCRIBE_LOG_DIRS, DESCRIBE_PRODUCERS),
    *(ELECT_LEADERS, LIST_PARTITION_REASSIGNMENTS, LIST_CONFIG_RESOURCES, UPDATE_FEATURES),
    *(SASL_HANDSHAKE, SASL_AUTHENTICATE),
)
OF_GROUPS = (
    *(FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE, DESCRIBE_GROUPS, LIST_GROUPS),
    *(HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DELETE_GROUPS),
)
FIRST_OF_KAFKA_4 = {FETCH.key: 4, LIST_OFFSETS.key: 1}
WRITES = 400
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with compared_with(BROKER, tmp_path_factory.mktemp("broker"), KNOWN_DIFFERENCES, is_secured=True) as found:
        wait_for_coordinator(found.broker)
        yield found


def versions_of(api: Api) -> range:
    """Those that Kafka 4 has."""
    return range(FIRST_OF_KAFKA_4.get(api.key, api.first), api.last + 1)


@oracle
def test_the_logs_have_all_that_logs_may_have(world: World) -> None:
    found = oddities(world.folder)
    assert found.pop("magic") == {0, 1, 2}
    assert found.pop("codec") == set(Codec)
    assert found == {what: {True, False} for what in found}
    assert sum(1 for folder in world.folder.glob("many.with-dots-[0-9]")) == 5
    assert f"many.with-dots 1 {TRIMMED_AT}" in (world.folder / LOG_START_OFFSET_CHECKPOINT).read_text()


@oracle
@pytest.mark.parametrize("api", COMPARED, ids=lambda api: api.name)
def test_any_request_is_answered_as_by_a_broker(world: World, api: Api) -> None:
    compare_any(world, api, versions_of(api), world.facts.values())


@oracle
@pytest.mark.parametrize("api", COMPARED, ids=lambda api: api.name)
def test_a_request_with_something_wrong_is_refused_or_answered_as_by_a_broker(world: World, api: Api) -> None:
    found = compare_frames(world, api, versions_of(api), world.facts.values())
    assert found["answered"]
    assert not found["theirs"]
    assert found["ours"] <= found.total() // 10  # a broker does not look at the size of a tagged field that it knows


@oracle
@pytest.mark.parametrize("difference", KNOWN_DIFFERENCES, ids=lambda difference: difference.what)
def test_each_difference_that_is_listed_occurs(world: World, difference: KnownDifference) -> None:
    assert difference.what in {known(one, world.known) for one in world.shown(difference)}


def wait_for_coordinator(broker: Side) -> None:
    """Until it has created the topic in which it keeps what groups commit."""
    deadline = time.monotonic() + 60
    while not coordinates(broker):
        assert time.monotonic() < deadline, "the broker does not coordinate groups"
        time.sleep(0.1)


def coordinates(broker: Side) -> bool:
    found = broker.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS)).coordinators
    asked = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group, topics=()) for group in GROUPS))
    return not any(one.error_code for one in (*found, *broker.ask(OFFSET_FETCH, 8, asked).groups))


@oracle
@pytest.mark.parametrize("api", OF_GROUPS, ids=lambda api: api.name)
def test_any_request_about_groups_is_answered_as_by_a_broker(world: World, api: Api) -> None:
    compare_any(world, api, versions_of(api), world.facts.values() | of_groups())


@oracle
def test_members_of_any_group_are_answered_as_by_a_broker(world: World) -> None:
    compare_lives(world, lives())


@oracle
def test_members_of_any_consumer_group_are_answered_as_by_a_broker(world: World) -> None:
    compare_lives(world, consumer_lives())


@oracle
def test_members_of_any_group_that_migrates_are_answered_as_by_a_broker(world: World) -> None:
    compare_lives(world, migrating_lives())


@oracle
def test_any_records_are_refused(world: World) -> None:
    def has_records(request: ProduceRequest) -> bool:  # a broker does not answer null at all
        return all(one.records is not None for topic in request.topic_data for one in topic.partition_data)

    compare_any(world, PRODUCE, range(3, PRODUCE.last + 1), world.facts.values() | of_producers(), has_records)


@oracle
def test_any_change_of_acls_and_any_question_about_them_is_answered_as_by_a_broker(world: World) -> None:
    compare_acls(world)


@oracle
def test_a_user_may_do_what_a_broker_lets_it_do(world: World) -> None:
    apis = (*COMPARED, *OF_GROUPS)
    compare_as_user(world, apis, {api: versions_of(api) for api in apis})


@oracle
def test_any_client_that_says_who_it_is_is_answered_as_by_a_broker(world: World) -> None:
    compare_logins(world)


@oracle
def test_a_request_with_an_odd_header_is_answered_or_ends_the_connection_as_by_a_broker(world: World) -> None:
    found = compare_headers(world)
    assert min(found.values()) >= 20


@oracle
def test_producers_in_any_transactions_are_answered_as_by_a_broker_and_leave_the_same_logs(world: World) -> None:
    both = ComparedTransactions.begun(world.broker)

    def live(steps: list[Step]) -> None:
        differences = both.compare(steps)
        assert not differences, (steps, differences)

    for steps in lives_that_repeat_sequence_numbers():
        live(steps)
    assert both.duplicates >= 20
    for_any(transaction_lives(), live)
    assert both.steps > 5 * EACH
    assert {0, 48, 49, 51, 90} <= both.codes
    both.ended()


@oracle
def test_what_is_written_is_answered_and_kept_as_by_a_broker(world: World) -> None:
    """The last of the tests, since others compare the topics that there are."""
    host = Host(settings={}, now=SystemClock().now_ms())
    random = Random("writes")
    both, records = ComparedWrites(world.broker, WritingEndpoint(host)), AnyRecords(random, host.now)
    places = make_topics(both)
    for step in range(WRITES):
        made = random.choices((records.sound, records.idempotent, records.odd), (3, 4, 6))[0]()
        name, number = random.choice(places)
        version = random.randrange(3, PRODUCE.last + 1)
        both.produce(name, number, made, version, random.choice((-1, -1, 1, 1, 2)))
        if step % 40 == 39:
            both.trim(name, number, random.choice((-1, 0, 1, 10_000, -5)), version % 3)
    assert both.found == []
    assert {0, 2, 3, 10, 21, 32, 45, 47, 53, 87, 100} <= both.codes
    for name, number in places:
        if name in both.endpoint.tier.topics() and number in both.endpoint.tier.topics()[name].partitions:
            theirs, ours = both.logs(name, number)
            assert ours == theirs, (name, number)
    alter_groups(both)
    reassign(both, world.folder.parent / "data")
    remove_topics(both)
    assert both.found == []
