"""Which appends are made on the thread of the sockets, and which are left to a call that may wait."""

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pytest
from asked_endpoint import bytes_of, response_of
from hand_made import GZIP
from local_tiers import Host
from logs_at_work import batch_of
from managed import T0
from many_threads import in_a_thread
from writing_endpoint import WritingEndpoint, allowed

from local_log.disk import Space
from local_log.errors import Unreadable
from tiering.endpoint.apis.kafka_apis import Later, handle, handle_at_once
from tiering.endpoint.appends.at_once import BYTES_MAX, LONG_MS, PAUSE_MS
from tiering.endpoint.appends.free_room import LOOKED_MS_MAX
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.protocol.api_keys import PRODUCE
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.produce import ProduceRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request

ONE = batch_of("a", time=T0)
VERSION = 9
Offsets = dict[int, tuple[int, int]]
"""Error and base offset by partition."""


@pytest.fixture
def endpoint() -> WritingEndpoint:
    """Its two logs have two batches each, with which all is known that the next appends need."""
    found = WritingEndpoint(Host(dirs=("/a",)))
    found.tier.create_partitions("orders", 2)
    for number in (0, 1, 0, 1):
        found.produce(ONE, number=number)
    return found


def handled(endpoint: WritingEndpoint, request: ProduceRequest) -> Any:
    frame = write_request(RequestHeader(PRODUCE, VERSION, 99, "test"), request)[4:]
    return handle_at_once(frame, endpoint.connection, replace(endpoint.context, may_wait=False))


def sent(endpoint: WritingEndpoint, *records: bytes, **more: Any) -> Any:
    """What comes at once of a request with a batch for each partition: offsets, or a call."""
    request = endpoint.asked("orders", {number: (one,) for number, one in enumerate(records)}, VERSION, **more)
    found = handled(endpoint, request)
    return offsets_of(found) if isinstance(found, list) and found else found


def offsets_of(parts: list[Any]) -> Offsets:
    response = response_of(PRODUCE, VERSION, b"".join(map(bytes_of, parts)))
    return {one.index: (one.error_code, one.base_offset) for topic in response.responses for one in topic.partition_responses}


def ends(endpoint: WritingEndpoint) -> list[int]:
    return [endpoint.log(number=number).log_end_offset for number in (0, 1)]


def called(found: Any) -> Offsets:
    assert callable(found)
    return offsets_of(found())


def test_a_small_batch_is_appended_and_answered_at_once(endpoint: WritingEndpoint) -> None:
    assert sent(endpoint, ONE) == {0: (0, 2)}
    assert sent(endpoint, ONE, ONE) == {0: (0, 3), 1: (0, 2)}
    assert sent(endpoint, ONE, acks=0) == []
    assert ends(endpoint) == [5, 3]


def test_the_bytes_are_those_of_the_way_of_all_requests() -> None:
    at_once, later = WritingEndpoint(), WritingEndpoint()
    for _ in range(2):
        assert at_once.produce(ONE) == later.produce(ONE)
    for version in range(PRODUCE.first, PRODUCE.last + 1):
        for acks in (-1, 0, 1):
            request = at_once.asked("orders", {0: (ONE,)}, version, acks=acks)
            frame = write_request(RequestHeader(PRODUCE, version, 99, None if acks else "test"), request)[4:]
            found = handle_at_once(frame, at_once.connection, replace(at_once.context, may_wait=False))
            found = found() if callable(found) else found  # there is a segment to make
            expected = handle(frame, later.connection, later.context)
            assert isinstance(found, list)
            assert isinstance(expected, list)
            assert b"".join(map(bytes_of, found)) == b"".join(map(bytes_of, expected))
    assert at_once.log().read(0, 1 << 20).records == later.log().read(0, 1 << 20).records
    assert at_once.context.metrics.topics() == later.context.metrics.topics()


def test_an_append_that_fails_is_told_and_not_made_again(endpoint: WritingEndpoint) -> None:
    def fail() -> None:
        raise Unreadable("/a: Input/output error")

    endpoint.host.disk.calls.clear()
    endpoint.host.disk.on_call = fail
    assert sent(endpoint, ONE) == {0: (ErrorCode.KAFKA_STORAGE_ERROR, -1)}
    assert len([call for call in endpoint.host.disk.calls if call.startswith("write ")]) == 1
    assert len(endpoint.said) == 1


def test_a_volume_without_room_is_told_by_the_way_of_all_requests(endpoint: WritingEndpoint) -> None:
    endpoint.host.disk.space = lambda folder: Space(1 << 40, 0)  # type: ignore[method-assign]
    endpoint.clock.now += LOOKED_MS_MAX
    assert sent(endpoint, ONE) == {0: (ErrorCode.KAFKA_STORAGE_ERROR, -1)}
    assert "storage.min.free.bytes" in endpoint.said[0]
    assert ends(endpoint) == [2, 2]


def test_topics_that_are_not_here_or_internal_take_nothing(endpoint: WritingEndpoint) -> None:
    endpoint.tier.create_topic("__consumer_offsets")
    for topic, code in (("nowhere", 3), ("__consumer_offsets", 17)):
        found = handled(endpoint, endpoint.asked(topic, {0: (ONE,)}, VERSION))
        assert offsets_of(found) == {0: (code, -1)}


def test_what_is_refused_is_told_by_a_call_and_the_others_are_appended_once(endpoint: WritingEndpoint) -> None:
    found = sent(endpoint, ONE, ONE[:-1] + b"?")
    assert ends(endpoint) == [3, 2]
    assert called(found) == {0: (0, 2), 1: (ErrorCode.CORRUPT_MESSAGE, -1)}
    assert ends(endpoint) == [3, 2]


def test_a_log_that_another_thread_changes_is_not_waited_for(endpoint: WritingEndpoint) -> None:
    with endpoint.log(number=1).lock:
        found = in_a_thread(lambda: sent(endpoint, ONE, ONE))
        assert ends(endpoint) == [3, 2]
    assert called(found) == {0: (0, 2), 1: (0, 2)}


def test_a_segment_that_is_full_is_rolled_by_a_call(endpoint: WritingEndpoint) -> None:
    found = None
    while not callable(found):
        endpoint.host.disk.calls.clear()
        found = sent(endpoint, ONE)
        assert not any(call.startswith("sync") for call in endpoint.host.disk.calls)
    assert len(endpoint.log().local.segments) == 1
    assert called(found) == {0: (0, endpoint.log().log_end_offset - 1)}
    assert len(endpoint.log().local.segments) == 2


def test_a_sync_that_is_due_is_made_by_a_call(endpoint: WritingEndpoint) -> None:
    endpoint.tier.alter_configs("orders", {"flush.messages": "1"})
    assert called(sent(endpoint, ONE)) == {0: (0, 2)}


def test_what_takes_long_to_validate_is_left_to_a_call(endpoint: WritingEndpoint) -> None:
    assert callable(sent(endpoint, batch_of("a", time=T0, codec=GZIP)))
    assert callable(sent(endpoint, batch_of(bytes(BYTES_MAX), time=T0)))
    assert callable(sent(endpoint, ONE, transactional_id="payments"))
    assert ends(endpoint) == [2, 2]


def test_while_the_disk_is_slow_appends_are_left_to_calls(endpoint: WritingEndpoint) -> None:
    disk, clock = endpoint.host.disk, endpoint.clock

    def slow() -> None:
        clock.now += LONG_MS

    disk.on_call = slow
    assert sent(endpoint, ONE) == {0: (0, 2)}
    disk.on_call = lambda: None
    assert called(sent(endpoint, ONE)) == {0: (0, 3)}
    clock.now += PAUSE_MS
    assert sent(endpoint, ONE) == {0: (0, 4)}


class ByHand(Executor):
    """Does nothing of what it is given."""

    def submit(self, fn: Any, /, *args: Any, **options: Any) -> Any:
        """See Executor."""


def test_with_group_commit_it_is_appended_at_once_and_answered_later(endpoint: WritingEndpoint) -> None:
    endpoint.context = replace(endpoint.context, group_commit=GroupCommit(ByHand()))
    assert isinstance(sent(endpoint, ONE), Later)
    with endpoint.log(number=1).lock:
        found = in_a_thread(lambda: sent(endpoint, ONE, ONE))
    assert callable(found)
    later = found()
    assert isinstance(later, Later)
    assert not later.response.done()
    assert endpoint.context.group_commit is not None
    group = endpoint.context.group_commit._next
    assert group is not None
    assert {*group.logs} == {"/a/orders-0", "/a/orders-1"}


def test_what_a_client_may_not_write_is_told_to_the_audit_once(endpoint: WritingEndpoint) -> None:
    endpoint.tier.create_topic("payments")
    told: list[str] = []
    mine = Acl(ResourceType.TOPIC, "orders", f"User:{endpoint.connection.principal.name}", Operation.WRITE)
    endpoint.context = replace(allowed(endpoint.context, mine), audit=told.append)
    both = (
        *endpoint.asked("orders", {0: (ONE,)}, VERSION).topic_data,
        *endpoint.asked("payments", {0: (ONE,)}, VERSION).topic_data,
    )
    with endpoint.log().lock:
        found = in_a_thread(lambda: handled(endpoint, ProduceRequest(None, 1, 1000, both)))
    assert callable(found)
    response = response_of(PRODUCE, VERSION, b"".join(map(bytes_of, found())))
    assert [one.partition_responses[0].error_code for one in response.responses] == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert len(told) == 1
