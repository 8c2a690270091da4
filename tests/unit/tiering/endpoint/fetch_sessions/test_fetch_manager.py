"""The cases of Kafka's FetchSessionTest that are about requests; each test names its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from archive_fakes import CountingIds

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.contexts import FetchContext, FullFetch, IncrementalFetch, SessionError, SessionlessFetch
from tiering.endpoint.fetch_sessions.manager import FetchManager
from tiering.endpoint.fetch_sessions.session import FINAL_EPOCH
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

FOO, BAR, ZAR = ("F" * 21 + "A", "B" * 21 + "A", "Z" * 21 + "A")
NAMES = {FOO: "foo", BAR: "bar", ZAR: "zar"}
BY_ID, BY_NAME = 18, 12
Place = tuple[str | None, int]

EMPTY = PartitionData(high_watermark=10, last_stable_offset=10, log_start_offset=10)


def error(code: int) -> PartitionData:
    return PartitionData(error_code=code, high_watermark=-1)


@dataclass(slots=True)
class Consumer:
    """Sends requests to one manager; `names` are the topics that it knows by id."""

    cache: FetchSessionCache = field(default_factory=lambda: FetchSessionCache(CountingIds(), slots_max=10, eviction_ms=1000))
    names: Mapping[str, str] = field(default_factory=lambda: NAMES)
    version: int = BY_ID
    now_ms: int = 0
    _manager: FetchManager | None = None

    def begin(
        self,
        session: int,
        epoch: int,
        *asked: tuple[str, FetchPartition],
        forgotten: Sequence[tuple[str, int]] = (),
        replica: int = -1,
    ) -> FetchContext:
        """A request for partitions of topics by id; those of a version without ids go by name."""
        topics = tuple(FetchTopic(*self._named(topic), (one,)) for topic, one in asked)
        removed = tuple(ForgottenTopic(*self._named(topic), (number,)) for topic, number in forgotten)
        request = FetchRequest(
            replica_id=replica, session_id=session, session_epoch=epoch, topics=topics, forgotten_topics_data=removed
        )
        if self._manager is None:
            self._manager = FetchManager(self.cache)
        return self._manager.begin(request, self.version, self.names.get, self.now_ms)

    def answer(self, begun: FetchContext, *answers: PartitionData) -> FetchResponse:
        """One answer a partition that is read."""
        return begun.respond(list(zip(begun.wanted, answers, strict=True)), self.now_ms)

    def _named(self, topic: str) -> tuple[str, str]:
        return ("", topic) if self.version == BY_ID else (NAMES[topic], ZERO_TOPIC_ID)


def asked(number: int = 0, offset: int = 0, **more: int) -> FetchPartition:
    return FetchPartition(number, fetch_offset=offset, log_start_offset=0, partition_max_bytes=100, **more)


def places(begun: FetchContext) -> list[Place]:
    return [(one.topic, one.asked.partition) for one in begun.wanted]


def told(response: FetchResponse) -> list[tuple[str, int]]:
    """The topics and error codes of what is answered."""
    return [(NAMES[topic.topic_id], one.error_code) for topic in response.responses for one in topic.partitions]


def code_of(begun: FetchContext) -> int:
    assert isinstance(begun, SessionError)
    response = begun.respond([], 0)
    assert (response.session_id, response.responses) == (0, ())
    return response.error_code


def test_a_session_knows_the_leader_epochs_and_offsets_that_were_asked_for_last() -> None:
    """testCachedLeaderEpoch, testLastFetchedEpoch."""
    consumer = Consumer()
    first = (
        asked(0),
        asked(1, 10, current_leader_epoch=1),
        asked(2, 10, current_leader_epoch=2, last_fetched_epoch=1),
    )
    begun = consumer.begin(0, 0, *((FOO, one) for one in first))
    assert [one.asked for one in begun.wanted] == list(first)
    session = consumer.answer(begun, EMPTY, EMPTY, EMPTY).session_id
    begun = consumer.begin(session, 1)
    assert [one.asked for one in begun.wanted] == list(first)
    consumer.answer(begun, EMPTY, EMPTY, EMPTY)
    changed = asked(0, 5, current_leader_epoch=6), asked(1, 10), asked(2, 10, current_leader_epoch=3, last_fetched_epoch=2)
    begun = consumer.begin(session, 2, *((FOO, one) for one in changed))
    assert [one.asked for one in begun.wanted] == list(changed)


def test_requests_without_a_session_and_with_one_that_there_is_not() -> None:
    """testFetchRequests."""
    consumer = Consumer()
    both = (FOO, asked(0)), (FOO, asked(1, 10))
    assert isinstance(consumer.begin(0, FINAL_EPOCH, *both), SessionlessFetch)
    begun = consumer.begin(0, 0, *both)
    assert isinstance(begun, FullFetch)
    response = consumer.answer(begun, EMPTY, EMPTY)
    assert told(response) == [("foo", 0), ("foo", 0)]
    session = response.session_id
    assert session > 0
    assert code_of(consumer.begin(session, 5, *both)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert code_of(consumer.begin(session + 1, 1, *both)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    begun = consumer.begin(session, 1)
    assert isinstance(begun, IncrementalFetch)
    assert [one.asked for one in begun.wanted] == [asked(0), asked(1, 10)]
    response = consumer.answer(begun, EMPTY, EMPTY)
    assert (response.error_code, response.session_id, response.responses) == (0, session, ())
    assert code_of(consumer.begin(session, 5)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    closing = consumer.begin(session, FINAL_EPOCH, (BAR, asked()))
    assert isinstance(closing, SessionlessFetch)
    assert len(consumer.cache) == 0
    assert consumer.answer(closing, EMPTY).session_id == 0


@pytest.mark.parametrize("version", [BY_ID, BY_NAME])
def test_partitions_join_and_leave_a_session(version: int) -> None:
    """testIncrementalFetchSession."""
    consumer = Consumer(version=version)
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked(0)), (FOO, asked(1, 10))), EMPTY, EMPTY).session_id
    begun = consumer.begin(session, 1, (BAR, asked(0, 15)), forgotten=[(FOO, 0)])
    assert [(*place, one.asked.fetch_offset) for place, one in zip(places(begun), begun.wanted, strict=True)] == [
        ("foo", 1, 10),
        ("bar", 0, 15),
    ]
    response = consumer.answer(begun, EMPTY, EMPTY)
    assert [(t.topic, t.topic_id) for t in response.responses] == [("bar", BAR if version == BY_ID else ZERO_TOPIC_ID)]
    assert consumer.cache.partitions == 2


def test_a_request_by_name_needs_no_ids() -> None:
    """testFetchSessionWithUnknownIdOldRequestVersion."""
    consumer = Consumer(version=BY_NAME, names={BAR: "bar"})
    response = consumer.answer(consumer.begin(0, 0, (FOO, asked(0)), (FOO, asked(1))), EMPTY, EMPTY)
    assert response.session_id > 0
    assert [one.error_code for topic in response.responses for one in topic.partitions] == [0, 0]


def test_topics_get_their_names_as_soon_as_they_are_known_and_keep_them() -> None:
    """testFetchSessionWithUnknownId, testResolveUnknownPartitions, testMaybeResolveUnknownName."""
    consumer = Consumer(names={})
    begun = consumer.begin(0, 0, (FOO, asked()), (BAR, asked()), (ZAR, asked()))
    assert places(begun) == [(None, 0)] * 3
    response = consumer.answer(begun, *[error(ErrorCode.UNKNOWN_TOPIC_ID)] * 3)
    assert told(response) == [(name, ErrorCode.UNKNOWN_TOPIC_ID) for name in ("foo", "bar", "zar")]
    session = response.session_id
    steps: list[tuple[dict[str, str], list[str | None]]] = [
        ({FOO: "foo"}, ["foo", None, None]),
        ({FOO: "foo", BAR: "bar"}, ["foo", "bar", None]),
        (NAMES, ["foo", "bar", "zar"]),
        ({}, ["foo", "bar", "zar"]),
    ]
    for epoch, (names, found) in enumerate(steps, start=1):
        consumer.names = names
        begun = consumer.begin(session, epoch)
        assert places(begun) == [(name, 0) for name in found]
        answers = [EMPTY if name else error(ErrorCode.UNKNOWN_TOPIC_ID) for name in found]
        response = consumer.answer(begun, *answers)
        assert response.session_id == session


@pytest.mark.parametrize(("begins", "goes_on"), [(BY_NAME, BY_ID), (BY_ID, BY_NAME)])
def test_a_session_stays_with_names_or_with_ids(begins: int, goes_on: int) -> None:
    """testIncrementalFetchSessionWithIdsWhenSessionDoesNotUseIds, testIncrementalFetchSessionWithoutIdsWhenSessionUsesIds."""
    consumer = Consumer(version=begins)
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked())), EMPTY).session_id
    consumer.version = goes_on
    assert code_of(consumer.begin(session, 1)) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_errors_are_told_again_and_what_comes_after_them_too() -> None:
    """testFetchSessionUpdateTopicIdsBrokerSide, testUpdateAndGenerateResponseData."""
    consumer = Consumer()
    begun = consumer.begin(0, 0, (FOO, asked()), (BAR, asked()))
    session = consumer.answer(begun, EMPTY, EMPTY).session_id
    inconsistent = error(ErrorCode.INCONSISTENT_TOPIC_ID)
    for epoch in (1, 2):
        response = consumer.answer(consumer.begin(session, epoch), inconsistent, EMPTY)
        assert told(response) == [("foo", ErrorCode.INCONSISTENT_TOPIC_ID)]
    assert told(consumer.answer(consumer.begin(session, 3), EMPTY, EMPTY)) == [("foo", 0)]
    assert code_of(consumer.begin(session, 3)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize("starts_resolved", [True, False])
@pytest.mark.parametrize("ends_resolved", [True, False])
def test_partitions_are_forgotten_whether_their_topics_are_known_or_not(starts_resolved: bool, ends_resolved: bool) -> None:
    """testToForgetPartitions."""
    consumer = Consumer(names={FOO: "foo"} if starts_resolved else {})
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked()), (BAR, asked())), EMPTY, EMPTY).session_id
    consumer.names = {FOO: "foo"} if ends_resolved else {}
    begun = consumer.begin(session, 1, forgotten=[(FOO, 0)])
    assert places(begun) == [(None, 0)]
    consumer.answer(begun, EMPTY)
    begun = consumer.begin(session, 2, forgotten=[(BAR, 0)])
    assert isinstance(begun, SessionlessFetch)
    assert begun.wanted == ()


def test_the_session_that_is_not_used_for_longest_makes_room() -> None:
    """testFetchSessionExpiration."""
    consumer = Consumer(FetchSessionCache(CountingIds(), slots_max=2, eviction_ms=1000))

    def opened() -> int:
        return consumer.answer(consumer.begin(0, 0, (FOO, asked())), EMPTY).session_id

    first = opened()
    consumer.now_ms = 500
    second = opened()
    consumer.now_ms = 1000
    assert isinstance(consumer.begin(first, 1), IncrementalFetch)
    consumer.now_ms = 1501
    third = opened()
    assert [consumer.cache.get(one) is not None for one in (first, second, third)] == [True, False, True]


def test_followers_take_the_place_of_consumers() -> None:
    """testPrivilegedSessionHandling."""
    consumer = Consumer(FetchSessionCache(CountingIds(), slots_max=2, eviction_ms=1000))

    def opened(replica: int) -> int:
        return consumer.answer(consumer.begin(0, 0, (FOO, asked()), replica=replica), EMPTY).session_id

    first = opened(1)
    consumer.now_ms = 500
    second = opened(-1)
    consumer.now_ms = 1000
    third = opened(1)
    assert [consumer.cache.get(one) is not None for one in (first, second, third)] == [True, False, True]
    consumer.now_ms = 1501
    fourth = opened(1)  # although the first is privileged, it is not used for long
    assert [consumer.cache.get(one) is not None for one in (first, third, fourth)] == [False, True, True]


def test_a_session_that_has_no_partitions_left_is_over() -> None:
    """testZeroSizeFetchSession."""
    consumer = Consumer()
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked(0)), (FOO, asked(1))), EMPTY, EMPTY).session_id
    begun = consumer.begin(session, 1, forgotten=[(FOO, 0), (FOO, 1)])
    assert consumer.answer(begun) == FetchResponse()
    assert len(consumer.cache) == 0


def test_partitions_that_part_from_the_log_are_told_always() -> None:
    """testDivergingEpoch."""
    consumer = Consumer()
    parts = PartitionData(high_watermark=10, log_start_offset=10, diverging_epoch=EpochEndOffset(3, 90))
    more = PartitionData(high_watermark=20, log_start_offset=10)
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked()), (BAR, asked())), EMPTY, parts).session_id
    for epoch, (foo, names) in enumerate([(EMPTY, ["bar"]), (parts, ["foo", "bar"]), (more, ["foo", "bar"])], start=1):
        response = consumer.answer(consumer.begin(session, epoch), foo, parts)
        assert [name for name, _ in told(response)] == names


def test_partitions_whose_records_were_sent_come_last_next_time() -> None:
    """testDeprioritizesPartitionsWithRecordsOnly."""
    consumer = Consumer()
    session = consumer.answer(
        consumer.begin(0, 0, (FOO, asked()), (BAR, asked()), (ZAR, asked())), EMPTY, EMPTY, EMPTY
    ).session_id
    begun = consumer.begin(session, 1)
    assert places(begun) == [("foo", 0), ("bar", 0), ("zar", 0)]
    grown = PartitionData(high_watermark=11, log_start_offset=10)
    sent = PartitionData(high_watermark=10, log_start_offset=10, records=(b"batch",))
    assert [name for name, _ in told(consumer.answer(begun, grown, sent, EMPTY))] == ["foo", "bar"]
    assert places(consumer.begin(session, 2)) == [("foo", 0), ("zar", 0), ("bar", 0)]


def test_partitions_are_told_apart_by_id_where_there_is_one_and_else_by_name() -> None:
    """testCachedPartitionEqualsAndHashCode."""
    consumer = Consumer(names={})
    unknown = consumer.begin(0, FINAL_EPOCH, (FOO, asked())).wanted[0]
    consumer.names = NAMES
    foo, bar = (one.key for one in consumer.begin(0, FINAL_EPOCH, (FOO, asked()), (BAR, asked())).wanted)
    assert unknown.key == foo != bar
    consumer.version = BY_NAME
    foo, bar = (one.key for one in consumer.begin(0, FINAL_EPOCH, (FOO, asked()), (BAR, asked())).wanted)
    assert unknown.key != foo != bar


def test_of_a_partition_that_is_named_twice_the_last_counts() -> None:
    begun = Consumer().begin(0, FINAL_EPOCH, (FOO, asked(0, 5)), (BAR, asked()), (FOO, asked(0, 7)))
    assert [(one.topic, one.asked.fetch_offset) for one in begun.wanted] == [("foo", 7), ("bar", 0)]


def test_two_answers_to_one_epoch_are_not_both_given() -> None:
    consumer = Consumer()
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked())), EMPTY).session_id
    waiting, later = consumer.begin(session, 1), consumer.begin(session, 2)
    assert consumer.answer(waiting, EMPTY) == FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session)
    assert consumer.answer(later, EMPTY) == FetchResponse(session_id=session)


@pytest.mark.parametrize("grows", [False, True])
def test_a_request_that_ends_a_session_outdates_the_one_before_it(grows: bool) -> None:
    consumer = Consumer(FetchSessionCache(CountingIds(), partitions_max=1))
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked())), EMPTY).session_id
    waiting = consumer.begin(session, 1)
    if grows:
        consumer.begin(session, 2, (FOO, asked(1)), (FOO, asked(2)), forgotten=[(FOO, 0)])
    else:
        consumer.begin(session, 2, forgotten=[(FOO, 0)])
    assert len(consumer.cache) == 0
    assert consumer.answer(waiting, EMPTY) == FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session)


def test_a_session_is_no_wait_for_requests_of_others() -> None:
    consumer = Consumer()
    mine, other = (consumer.answer(consumer.begin(0, 0, (FOO, asked())), EMPTY).session_id for _ in range(2))
    held = consumer.cache.get(other)
    assert held is not None
    with held.lock:
        assert consumer.answer(consumer.begin(mine, 1), EMPTY).session_id == mine
        assert consumer.answer(consumer.begin(0, 0, (BAR, asked())), EMPTY).session_id


def test_a_session_that_grows_out_of_its_room_is_over() -> None:
    consumer = Consumer(FetchSessionCache(CountingIds(), partitions_max=2))
    session = consumer.answer(consumer.begin(0, 0, (FOO, asked(0)), (FOO, asked(1))), EMPTY, EMPTY).session_id
    assert code_of(consumer.begin(session, 1, (FOO, asked(2)))) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(consumer.cache), consumer.cache.partitions) == (0, 0)
    assert consumer.answer(consumer.begin(0, 0, *((FOO, asked(n)) for n in range(3))), EMPTY, EMPTY, EMPTY).session_id == 0
