"""Which requests of a group's members are answered on the thread of the sockets: those that write nothing."""

from dataclasses import replace
from typing import Any

import pytest
from committing_endpoint import CommittingEndpoint
from many_threads import in_a_thread

from tiering.endpoint.apis.kafka_apis import Later
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.protocol.api_keys import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


@pytest.fixture
def endpoint() -> CommittingEndpoint:
    return CommittingEndpoint()


def join(endpoint: CommittingEndpoint, member_id: str = "", said: bytes = b"", instance_id: str | None = None) -> Any:
    protocols = (JoinGroupRequestProtocol("range", said),)
    request = JoinGroupRequest("members", 10_000, 10_000, member_id, instance_id, "consumer", protocols)
    return endpoint.at_once(JOIN_GROUP, 5, request)


def sync(endpoint: CommittingEndpoint, member_id: str, generation: int, *assigned: str) -> Any:
    assignments = tuple(SyncGroupRequestAssignment(one, one.encode()) for one in assigned)
    return endpoint.at_once(SYNC_GROUP, 3, SyncGroupRequest("members", generation, member_id, assignments=assignments))


def joined(endpoint: CommittingEndpoint, *later: Later) -> list[Any]:
    """The answers to joins, when the delay of the first one is over."""
    endpoint.clock.now += 1
    endpoint.context.groups.tick()
    return [endpoint.answer_of(one) for one in later]


def test_a_rebalance_is_answered_at_once_but_for_what_is_written(endpoint: CommittingEndpoint) -> None:
    first = join(endpoint)
    assert callable(first), "a new group is written"
    parts = first()
    member_id = endpoint.context.groups.describe_group("members", 5).members
    assert isinstance(parts, list)
    assert member_id == (), "it is to join with the id that it was given"
    leader = join(endpoint).member_id
    follower = join(endpoint).member_id
    [of_leader, of_follower] = joined(endpoint, join(endpoint, leader), join(endpoint, follower))
    assert (of_leader.leader, of_follower.generation_id) == (leader, of_leader.generation_id)
    waiting = sync(endpoint, follower, of_leader.generation_id)
    assert isinstance(waiting, Later)
    assigns = sync(endpoint, leader, of_leader.generation_id, leader, follower)
    assert callable(assigns), "the generation is written"
    assert not waiting.response.done()
    assigns()
    assert endpoint.answer_of(waiting).assignment == follower.encode()
    beat = endpoint.at_once(HEARTBEAT, 3, HeartbeatRequest("members", of_leader.generation_id, follower))
    assert beat.error_code == ErrorCode.NONE


def test_a_static_member_joins_by_a_call_since_its_new_id_may_be_written(endpoint: CommittingEndpoint) -> None:
    join(endpoint)()
    assert callable(join(endpoint, instance_id="one"))


def test_while_another_thread_is_answered_nobody_waits_for_it_here(endpoint: CommittingEndpoint) -> None:
    join(endpoint)()
    member_id, found = join(endpoint).member_id, list[Any]()
    with endpoint.context.groups._lock:
        in_a_thread(lambda: found.append(join(endpoint, member_id)))
        in_a_thread(lambda: found.append(sync(endpoint, member_id, 1)))
        in_a_thread(lambda: found.append(endpoint.at_once(HEARTBEAT, 3, HeartbeatRequest("members", 1, member_id))))
    assert all(map(callable, found))
    assert isinstance(found[0](), Later)


def test_without_a_log_nothing_is_written_and_all_is_answered_at_once(endpoint: CommittingEndpoint) -> None:
    config = GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0)
    groups = GroupCoordinator(config, None, endpoint.clock, endpoint.host.ids, endpoint.said.append)
    endpoint.context = replace(endpoint.context, groups=groups)
    [told] = joined(endpoint, join(endpoint, join(endpoint).member_id))
    assert sync(endpoint, told.member_id, told.generation_id, told.member_id).assignment == told.member_id.encode()


def test_what_may_be_too_much_memory_is_counted_by_a_call(endpoint: CommittingEndpoint) -> None:
    groups = GroupCoordinator(GroupCoordinatorConfig(groups_bytes_max=1), None, endpoint.clock, endpoint.host.ids, lambda _: None)
    endpoint.context = replace(endpoint.context, groups=groups)
    assert callable(join(endpoint))
