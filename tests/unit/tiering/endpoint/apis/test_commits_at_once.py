"""Which commits of offsets are made on the thread of the sockets, which are left to a call that may wait, and what is kept."""

from dataclasses import replace
from typing import Any

import pytest
from asked_endpoint import bytes_of, response_of
from committing_endpoint import KEPT_FREE, CommittingEndpoint
from many_threads import in_a_thread
from writing_endpoint import ByHand, allowed

from local_log.disk import Space
from local_log.errors import Unreadable
from tiering.endpoint.apis.kafka_apis import Later
from tiering.endpoint.appends.at_once import LONG_MS, PAUSE_MS
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.protocol.api_keys import OFFSET_COMMIT
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_commit import OffsetCommitResponse

VERSION = 9
SYNCED = "sync /a/__consumer_offsets-0/00000000000000000000.log"


def code_of(found: Any) -> int:
    """The error code of a response, or of the parts of one."""
    if isinstance(found, list):
        found = response_of(OFFSET_COMMIT, VERSION, b"".join(map(bytes_of, found)))
    assert isinstance(found, OffsetCommitResponse)
    return found.topics[0].partitions[0].error_code


@pytest.fixture
def endpoint() -> CommittingEndpoint:
    return CommittingEndpoint()


def test_a_commit_is_appended_and_answered_at_once_and_found_after_a_crash(endpoint: CommittingEndpoint) -> None:
    assert [code_of(endpoint.handled(offset)) for offset in (3, 4)] == [ErrorCode.NONE] * 2
    assert (endpoint.offset(), endpoint.offsets_log().log_end_offset) == (4, 4)
    endpoint.host.loses_power(lost=0.0)
    endpoint.own(endpoint.host.started())
    endpoint.start()
    assert endpoint.offset() == 4


def test_the_bytes_are_those_of_a_commit_that_may_wait(endpoint: CommittingEndpoint) -> None:
    other = CommittingEndpoint()
    for offset in (3, 4):
        assert code_of(endpoint.handled(offset)) == ErrorCode.NONE
        other.context.at_once.took(0, other.clock.now_ms())
        assert code_of(other.handled(offset)()) == ErrorCode.NONE
    assert endpoint.offsets_log().read(0, 1 << 20).records == other.offsets_log().read(0, 1 << 20).records


@pytest.mark.parametrize("what", ["the coordinator", "its log"])
def test_a_commit_that_had_to_wait_for_another_thread_is_made_by_a_call_once(endpoint: CommittingEndpoint, what: str) -> None:
    lock = endpoint.context.groups._lock if what == "the coordinator" else endpoint.offsets_log().lock
    found: list[Any] = []
    with lock:
        in_a_thread(lambda: found.append(endpoint.handled(3)))
    assert endpoint.offset() == 2
    assert code_of(found[0]()) == ErrorCode.NONE
    assert (endpoint.offset(), endpoint.offsets_log().log_end_offset) == (3, 3)


def test_after_an_append_that_took_long_others_make_the_commits_for_a_while(endpoint: CommittingEndpoint) -> None:
    endpoint.context.at_once.took(0, endpoint.clock.now_ms())
    assert callable(endpoint.handled(3))
    endpoint.clock.now += PAUSE_MS

    def hang() -> None:
        endpoint.clock.now += LONG_MS

    endpoint.host.disk.on_call = hang
    assert code_of(endpoint.handled(4)) == ErrorCode.NONE
    assert callable(endpoint.handled(5))


def test_a_topic_that_is_not_there_and_a_client_that_may_not_are_refused(endpoint: CommittingEndpoint) -> None:
    assert code_of(endpoint.handled(3, "other")()) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    endpoint.context = allowed(endpoint.context, Acl(ResourceType.GROUP, "readers", "User:ANONYMOUS", Operation.READ))
    assert code_of(endpoint.handled(3)) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert endpoint.offset() == 2


def test_a_topic_by_its_id_is_looked_up_where_that_takes_no_time(endpoint: CommittingEndpoint) -> None:
    topic = endpoint.context.logs.topic("orders")
    assert topic is not None
    assert code_of(endpoint.handled(3, topic.id, version=10)) == ErrorCode.NONE
    assert callable(endpoint.handled(4, "AAAAAAAAAAAAAAAAAAAAAQ", version=10))


def test_a_full_volume_takes_no_commit_and_what_is_committed_is_read(endpoint: CommittingEndpoint) -> None:
    endpoint.clock.now += 10_000
    endpoint.host.disk.space = lambda folder: Space(1 << 40, KEPT_FREE // 2)  # type: ignore[method-assign]
    assert code_of(endpoint.handled(3)) == ErrorCode.NOT_COORDINATOR
    assert "storage.min.free.bytes" in endpoint.said[-1]
    assert endpoint.offset() == 2


@pytest.fixture
def by_hand(endpoint: CommittingEndpoint) -> ByHand:
    found = ByHand()
    endpoint.context = replace(endpoint.context, group_commit=GroupCommit(found))
    return found


def test_with_group_commit_one_sync_answers_all_commits_before_it(endpoint: CommittingEndpoint, by_hand: ByHand) -> None:
    endpoint.host.disk.calls.clear()
    waiting = [endpoint.handled(offset) for offset in (3, 4)]
    assert all(isinstance(one, Later) and not one.response.done() for one in waiting)
    by_hand.run()
    assert [code_of(one.parts()) for one in waiting] == [ErrorCode.NONE] * 2
    assert endpoint.host.disk.calls.count(SYNCED) == 1
    endpoint.host.loses_power()
    endpoint.own(endpoint.host.started())
    endpoint.start()
    assert endpoint.offset() == 4


def test_commits_whose_sync_fails_are_not_acknowledged(endpoint: CommittingEndpoint, by_hand: ByHand) -> None:
    waiting = endpoint.handled(3)

    def fail() -> None:
        raise Unreadable("/a: Input/output error")

    endpoint.host.disk.on_call = fail
    by_hand.run()
    assert code_of(waiting.parts()) == ErrorCode.NOT_COORDINATOR
    assert "committed offsets of group readers are not synced" in endpoint.said[-1]
